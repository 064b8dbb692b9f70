"""Pattern sets: shape of section 6.2, stability of the draws, the bound on the work."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import ExperimentError
from cepbench.experiments.workload import PATTERN_SETS, draw_workload, most_partial_matches
from cepbench.patterns.model import Operator

CARDINALITIES = {f"S{k:02d}": float(1 + k) for k in range(20)} | {"BRK.A": 3.5}


def test_patterns_have_the_shape_of_the_paper() -> None:
    specs = draw_workload(CARDINALITIES, patterns=20, seed=5)
    assert len(specs) == len({spec.pattern_id for spec in specs}) == 2 * 5 * 20
    compared = set()
    for spec in specs:
        pattern = spec.pattern
        expected = {"sequence": Operator.SEQ, "conjunction": Operator.AND}[spec.pattern_set]
        assert pattern.operator is expected and pattern.is_simple
        assert str(pattern) == spec.text
        types = [variable.type for variable in pattern.variables]
        assert len(types) == len(set(types)) == spec.size
        assert set(types) <= CARDINALITIES.keys()
        assert len(pattern.conditions) == spec.size // 2
        assert pattern.window.seconds == 1200
        pairs = {frozenset(clause.variables) for clause in pattern.conditions}
        assert len(pairs) == len(pattern.conditions)
        for clause in pattern.conditions:
            (comparison,) = clause.comparisons
            assert len(clause.variables) == 2
            assert {attribute.name for attribute in comparison.attributes()} == {"difference"}
            compared.add(comparison.operator)
    assert compared == {"<", ">"}


def test_a_pattern_does_not_depend_on_the_others() -> None:
    few = draw_workload(CARDINALITIES, sizes=[4], patterns=2, seed=1)
    many = draw_workload(
        dict(reversed(CARDINALITIES.items())),
        pattern_sets=["conjunction", "sequence"],
        sizes=[3, 5, 4],
        patterns=9,
        seed=1,
    )
    by_id = {spec.pattern_id: spec for spec in many}
    assert [by_id[spec.pattern_id] for spec in few] == few


def test_seeds_sizes_and_numbers_give_different_patterns() -> None:
    one, other = (draw_workload(CARDINALITIES, patterns=10, seed=seed) for seed in (0, 1))
    assert len({spec.text for spec in [*one, *other]}) > 190


def test_identifiers_are_drawn_uniformly() -> None:
    names = [f"S{k}" for k in range(6)]
    for bound in (None, 1e9):
        specs = draw_workload(
            dict.fromkeys(names, 2.0),
            pattern_sets=["sequence"],
            sizes=[3],
            patterns=300,
            max_partial_matches=bound,
        )
        firsts = [spec.text.removeprefix("PATTERN SEQ(").split()[0] for spec in specs]
        for name in names:
            assert abs(firsts.count(name) - 50) < 33  # five standard deviations


@pytest.mark.parametrize("pattern_set", PATTERN_SETS)
def test_the_bound_holds(pattern_set: str) -> None:
    specs = draw_workload(
        CARDINALITIES, pattern_sets=[pattern_set], patterns=10, max_partial_matches=30_000
    )
    works = []
    for spec in specs:
        rates = [CARDINALITIES[variable.type] for variable in spec.pattern.variables]
        subsets = itertools.chain.from_iterable(
            itertools.combinations(rates, k) for k in range(1, spec.size + 1)
        )
        order = math.factorial if pattern_set == "sequence" else (lambda _: 1)
        works.append(max(math.prod(subset) / order(len(subset)) for subset in subsets))
    assert max(works) <= 30_000
    assert max(works) > 15_000  # it is the bound that holds them down


@given(
    st.lists(st.floats(0.01, 50), min_size=1, max_size=6),
    st.booleans(),
)
def test_most_partial_matches_is_the_worst_subset(rates: list[float], ordered: bool) -> None:
    worst = max(
        math.prod(subset) / (math.factorial(len(subset)) if ordered else 1)
        for k in range(1, len(rates) + 1)
        for subset in itertools.combinations(rates, k)
    )
    assert most_partial_matches(np.array(rates), ordered=ordered) == pytest.approx(worst)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern_sets": ["sequences"]}, "unknown pattern set 'sequences'"),
        ({"sizes": [22]}, "size 22: sizes run from 2 to the number of identifiers, here 21"),
        ({"patterns": 0}, "at least one"),
        ({"max_partial_matches": 0.5}, "none of 200,000 draws of 3 identifiers stays below"),
        ({"cardinalities": {"A": 1.0, "B": 0.0, "C": 2.0}, "sizes": [2]}, "'B' has 0.0 events"),
    ],
)
def test_impossible_workloads_are_refused(arguments: dict[str, object], message: str) -> None:
    cardinalities = arguments.pop("cardinalities", CARDINALITIES)
    with pytest.raises(ExperimentError, match=message):
        draw_workload(cardinalities, **arguments)  # type: ignore[arg-type]
