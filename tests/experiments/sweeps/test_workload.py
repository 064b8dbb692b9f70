"""Pattern sets: shape of section 6.2, stability of the draws, the bound on the work."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.workload import (
    PATTERN_SETS,
    PatternSpec,
    draw_workload,
    most_partial_matches,
)
from cepbench.patterns.model import Operator, Variable

CARDINALITIES = {f"S{k:02d}": float(1 + k) for k in range(20)} | {"BRK.A": 3.5}


#: A pattern of size 4, with and without a bound, as the first version of this library drew it.
DRAWN_BEFORE = {
    ("sequence", None): "PATTERN SEQ(S08 a, S03 b, S15 c, S14 d)"
    " WHERE a.difference < b.difference AND b.difference > d.difference WITHIN 20 minutes",
    ("conjunction", None): "PATTERN AND(S18 a, S19 b, S14 c, S03 d)"
    " WHERE a.difference > c.difference AND a.difference < d.difference WITHIN 20 minutes",
    ("sequence", 30000.0): "PATTERN SEQ(S10 a, S16 b, S03 c, S14 d)"
    " WHERE b.difference < c.difference AND a.difference > d.difference WITHIN 20 minutes",
    ("conjunction", 30000.0): "PATTERN AND(S17 a, S03 b, S18 c, S14 d)"
    " WHERE a.difference > b.difference AND b.difference > c.difference WITHIN 20 minutes",
}


def drawn(
    *pattern_sets: str, cardinalities: Mapping[str, float] = CARDINALITIES, **how: Any
) -> list[PatternSpec]:
    return draw_workload(cardinalities, pattern_sets=pattern_sets, **how)


def test_patterns_have_the_shape_of_the_paper() -> None:
    specs = draw_workload(CARDINALITIES, patterns=6, seed=5)
    assert len(specs) == len({spec.pattern_id for spec in specs}) == 5 * 5 * 6
    compared = set()
    for spec in specs:
        pattern = spec.pattern
        assert str(pattern) == spec.text
        assert pattern.window.seconds == 1200
        branches = pattern.branches()
        assert len(branches) == (3 if spec.pattern_set == "disjunction" else 1)
        names = [name for branch in branches for name in branch.names]
        assert len(names) == len(set(names)) == len(branches) * spec.size
        for branch in branches:
            is_conjunction = spec.pattern_set == "conjunction"
            assert branch.operator is (Operator.AND if is_conjunction else Operator.SEQ)
            assert all(isinstance(item, Variable) for item in branch.structure.items)
            types = [variable.type for variable in branch.variables]
            assert len(types) == len(set(types)) == spec.size
            assert set(types) <= CARDINALITIES.keys()
            assert len(branch.conditions) == spec.size // 2
            pairs = {frozenset(clause.variables) for clause in branch.conditions}
            assert len(pairs) == len(branch.conditions)
            for clause in branch.conditions:
                (comparison,) = clause.comparisons
                assert len(clause.variables) == 2
                assert {a.name for a in comparison.attributes()} == {"difference"}
                compared.add(comparison.operator)
    assert compared == {"<", ">"}


@pytest.mark.parametrize(("pattern_set", "kind"), [("negation", "negated"), ("kleene", "kleene")])
def test_one_item_is_negated_or_repeated_at_any_place(pattern_set: str, kind: str) -> None:
    specs = drawn(pattern_set, sizes=[4], patterns=100)
    places = []
    for spec in specs:
        kinds = [variable.kind for variable in spec.pattern.variables]
        assert sorted(kinds) == sorted([kind, "plain", "plain", "plain"])
        places.append(kinds.index(kind))
    for place in range(4):
        assert abs(places.count(place) - 25) < 22  # five standard deviations


def test_the_identifier_under_kleene_is_rare() -> None:
    for bound in (1.5, 6.0):
        specs = drawn("kleene", sizes=[3], patterns=60, max_kleene_events=bound)
        rates = [
            CARDINALITIES[variable.type]
            for spec in specs
            for variable in spec.pattern.variables
            if variable.kind == "kleene"
        ]
        assert max(rates) == math.floor(bound)  # the others are drawn as ever
        plain = [CARDINALITIES[v.type] for s in specs for v in s.pattern.variables]
        assert max(plain) == 20


def test_sequences_and_conjunctions_are_what_they_were() -> None:
    for (pattern_set, bound), text in DRAWN_BEFORE.items():
        specs = drawn(pattern_set, sizes=[4], patterns=2, seed=5, max_partial_matches=bound)
        assert specs[1].text == text


def test_a_pattern_does_not_depend_on_the_others() -> None:
    few = draw_workload(CARDINALITIES, sizes=[4], patterns=2, seed=1)
    backwards, sets = dict(reversed(CARDINALITIES.items())), list(PATTERN_SETS)[::-1]
    many = draw_workload(backwards, pattern_sets=sets, sizes=[3, 5, 4], patterns=9, seed=1)
    by_id = {spec.pattern_id: spec for spec in many}
    assert [by_id[spec.pattern_id] for spec in few] == few


def test_seeds_sizes_and_numbers_give_different_patterns() -> None:
    one, other = (draw_workload(CARDINALITIES, patterns=3, seed=seed) for seed in (0, 1))
    assert len({spec.text for spec in [*one, *other]}) == 150


def test_identifiers_are_drawn_uniformly() -> None:
    names = [f"S{k}" for k in range(6)]
    for bound in (None, 1e9):
        how = {"sizes": [3], "patterns": 150, "max_partial_matches": bound}
        specs = drawn("sequence", cardinalities=dict.fromkeys(names, 2.0), **how)
        firsts = [spec.text.removeprefix("PATTERN SEQ(").split()[0] for spec in specs]
        for name in names:
            assert abs(firsts.count(name) - 25) < 23  # five standard deviations


@pytest.mark.parametrize("pattern_set", PATTERN_SETS)
def test_the_bound_holds(pattern_set: str) -> None:
    bound = 30_000 if pattern_set == "conjunction" else 3_000
    specs = drawn(pattern_set, patterns=10, max_partial_matches=bound)
    works = []
    for spec in specs:
        for branch in spec.pattern.branches():
            # What a variable stands for: nothing under NOT, sets under KL.
            rates = [
                2 ** CARDINALITIES[v.type] if v.kind == "kleene" else CARDINALITIES[v.type]
                for v in branch.positive
            ]
            subsets = itertools.chain.from_iterable(
                itertools.combinations(rates, k) for k in range(1, len(rates) + 1)
            )
            order = (lambda _: 1) if pattern_set == "conjunction" else math.factorial
            works.append(max(math.prod(subset) / order(len(subset)) for subset in subsets))
    assert max(works) <= bound
    assert max(works) > bound / 2  # it is the bound that holds them down


@given(st.lists(st.floats(0.01, 50), min_size=1, max_size=6), st.booleans())
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
        ({"pattern_sets": ["sequences"]}, "each of pattern_sets is one of .*, not 'sequences'"),
        ({"sizes": [22]}, "size 22: sizes run from 2 to the number of identifiers, here 21"),
        ({"patterns": 0}, "patterns must be at least 1, not 0"),
        ({"max_partial_matches": 0.5}, "none of 200,000 draws of 3 identifiers stays within"),
        (
            {"pattern_sets": ["kleene"], "max_kleene_events": 0.5},
            "stays within max_kleene_events=0.5; widen",
        ),
        ({"least_rate": 19.5}, "within rates from 19.5 to inf .1 of 21."),
        ({"least_rate": 99.0}, "within rates from 99 to inf .0 of 21."),
        ({"predicates": "2n"}, "predicates is one of n/2, n, not '2n'"),
        ({"cardinalities": {"A": 1.0, "B": 0.0, "C": 2.0}, "sizes": [2]}, "'B' has 0.0 events"),
    ],
)
def test_impossible_workloads_are_refused(arguments: dict[str, object], message: str) -> None:
    cardinalities = arguments.pop("cardinalities", CARDINALITIES)
    with pytest.raises(ExperimentError, match=message):
        draw_workload(cardinalities, **arguments)  # type: ignore[arg-type]


def test_a_negated_item_is_in_no_partial_match_and_may_be_frequent() -> None:
    cardinalities = {"OFTEN": 1e6, **{f"S{k}": 1.0 for k in range(4)}}
    how = {"sizes": [3], "patterns": 40, "max_partial_matches": 10.0}
    specs = drawn("negation", cardinalities=cardinalities, **how)
    with_frequent = [spec.text for spec in specs if "OFTEN" in spec.text]
    assert with_frequent and all("NOT(OFTEN" in text for text in with_frequent)


@pytest.mark.parametrize("pattern_set", PATTERN_SETS)
def test_rates_lie_between_their_bounds(pattern_set: str) -> None:
    bounds = {"least_rate": 6, "most_rate": 17.0, "regime": "dense"}
    specs = drawn(pattern_set, sizes=[3, 5], patterns=20, **bounds)
    items = [(v.kind, CARDINALITIES[v.type]) for s in specs for v in s.pattern.variables]
    rates = {rate for kind, rate in items if kind != "kleene"}
    assert rates == set(range(6, 18))
    kleene = {rate for kind, rate in items if kind == "kleene"}
    assert bool(kleene) == (pattern_set == "kleene")
    assert max(kleene, default=0) <= 5  # its own bound, below the rates of the others
    assert all(s.regime == "dense" and s.pattern_id.startswith("dense-") for s in specs)


def test_each_pattern_set_may_have_a_least_rate_of_its_own() -> None:
    sets = ("sequence", "conjunction")
    specs = drawn(*sets, sizes=[4], patterns=40, least_rate={"conjunction": 15})
    least = {
        name: min(
            CARDINALITIES[v.type]
            for spec in specs
            for v in spec.pattern.variables
            if spec.pattern_set == name
        )
        for name in sets
    }
    assert least == {"sequence": 1, "conjunction": 15}


def test_patterns_may_have_as_many_predicates_as_events() -> None:
    for pattern_set in PATTERN_SETS:
        for spec in drawn(pattern_set, sizes=[2, 3, 6], patterns=5, predicates="n"):
            for branch in spec.pattern.branches():
                assert len(branch.conditions) == {2: 1, 3: 3, 6: 6}[spec.size]


def test_predicates_are_as_selective_as_asked_for() -> None:
    """On events drawn anew from the distributions that the quantiles are of."""
    rng = np.random.default_rng(3)
    deviations = {name: 0.01 * rate for name, rate in CARDINALITIES.items()}
    quantiles = {
        name: np.quantile(rng.normal(0, sigma, 20_000), (np.arange(200) + 0.5) / 200)
        for name, sigma in deviations.items()
    }
    found = []
    how = {"selectivities": (0.01, 0.5), "quantiles": quantiles}
    for spec in drawn("conjunction", sizes=[4], patterns=60, **how):
        types = {v.name: v.type for v in spec.pattern.variables}
        for text in spec.text.partition(" WHERE ")[2].partition(" WITHIN")[0].split(" AND "):
            left, operator, right, *shift = text.split(" ")
            ours, theirs = (
                rng.normal(0, deviations[types[side.partition(".")[0]]], 40_000)
                for side in (left, right)
            )
            if shift:
                theirs = theirs + float(shift[0] + shift[1])
            found.append(np.mean(ours < theirs if operator == "<" else ours > theirs))
    assert len(found) == 120
    assert 0.004 < min(found) < 0.03
    assert 0.4 < max(found) < 0.55
    # Uniform in the logarithm: half of them below the geometric mean of the bounds.
    assert 0.35 < np.mean(np.array(found) < (0.01 * 0.5) ** 0.5) < 0.65


def test_rejected_draws_are_counted() -> None:
    free = drawn("sequence", sizes=[3], patterns=50)
    assert not any(spec.out_of_bounds or spec.contradictory for spec in free)
    # Half of the identifiers are too frequent for KL: one rejected draw before each, on average.
    halves = {f"S{k}": 1.0 if k % 2 else 9.0 for k in range(40)}
    kleene = drawn("kleene", cardinalities=halves, sizes=[3], patterns=200)
    assert 0.8 < np.mean([spec.out_of_bounds for spec in kleene]) < 1.2
    # Of the eight directions of a triangle of predicates two are cycles: 2/6 before each.
    cycles = drawn("conjunction", sizes=[3], patterns=200, predicates="n")
    assert 0.23 < np.mean([spec.contradictory for spec in cycles]) < 0.45


def test_a_strategy_comes_before_the_output() -> None:
    text = "PATTERN SEQ(A a, B b) OUTPUT non_overlap WITHIN 5 units"
    spec = PatternSpec("user-x", "user", 2, text, 0)
    found = spec.under("strict_contiguity", "7 units").pattern
    assert (found.strategy.name, found.output, found.window.length) == (
        "strict_contiguity", "non_overlap", 7,
    )  # fmt: skip
    assert spec.under().text == text
