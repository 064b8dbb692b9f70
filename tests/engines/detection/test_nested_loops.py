"""The documentation's engine of one's own finds what the twin finds, in batches and restored."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.experiments.plugins import load_plugins
from tests.budgets import examples
from tests.engines.detection.checks import check, check_in_batches
from tests.engines.detection.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    able,
    construct_cases,
    plans_of_kind,
)
from tests.engines.detection.strategies import batches_of
from tests.naive.matcher import labelled_matches

NAME, FILE = "nested-loops", Path(__file__).parents[3] / "docs" / "nested_loops.py"

#: Those of which it runs some.
ABLE = [name for name, its in (FAMILIES | GROUP_FAMILIES).items() if "any" in its.strategies]


@pytest.fixture(autouse=True)
def registered() -> None:
    load_plugins([FILE])


def test_it_is_short_and_passes_its_checks() -> None:
    assert len(FILE.read_text(encoding="utf-8").splitlines()) <= 150
    report = cep.check_evaluator(NAME)
    assert report.passed, report.describe()
    assert set(report.table[report.table["status"] == "refused"]["pattern"]) == {
        "kleene", "consuming", "strict contiguity",
    }  # fmt: skip


@pytest.mark.parametrize("family", ABLE)
@given(data=st.data())
@examples(10)
def test_as_the_twin_in_any_batches(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases((FAMILIES | GROUP_FAMILIES)[family]))
    assume(NAME in able(case.pattern))
    expected = labelled_matches(case.pattern, case.events)
    chosen = data.draw(plans_of_kind("tree", case.pattern))
    check(case, expected, chosen, NAME)
    batches = data.draw(batches_of(case.stream))
    restored = data.draw(st.lists(st.booleans(), min_size=len(batches), max_size=len(batches)))
    check_in_batches(case, expected, chosen, NAME, batches, restored)


def test_a_limit_of_partial_matches() -> None:
    dataset = cep.open_dataset("nasdaq-style/sample")
    stream, pattern = dataset.stream(), dataset.patterns["rare-last"]
    plan = cep.plan(pattern, cep.measure_statistics(pattern, stream), "TRIVIAL")
    with pytest.raises(cep.errors.PartialMatchLimitError, match="more than 50 partial matches"):
        cep.evaluate(pattern, stream, plan, evaluator=NAME, partial_match_limit=50)
