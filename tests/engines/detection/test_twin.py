"""The brute-force twin itself, on examples worked by hand from the definition of a match."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import UnsatisfiablePatternError
from cepbench.patterns.contradictions import check_satisfiable
from cepbench.patterns.model import Pattern
from tests.engines.detection.constructs import FAMILIES, construct_cases
from tests.engines.detection.strategies import Case
from tests.naive.matcher import labelled_matches, naive_matches


@given(data=st.data())
def test_the_branches_of_the_model_have_the_matches_of_the_pattern(data: st.DataObject) -> None:
    """Both rewritten by the model and gone through as written."""
    case = data.draw(construct_cases(FAMILIES["everything"]))
    pattern = Pattern(case.pattern.structure, case.pattern.conditions, case.pattern.window)
    branches = pattern.branches()
    expected: dict[tuple, int] = {}
    for number, branch in enumerate(branches):
        assert branch.branches() == (branch,)
        for match in naive_matches(branch, case.events):
            bound = dict(zip(branch.positive_names, match, strict=True))
            expected.setdefault(tuple(map(bound.get, pattern.positive_names)), number)
    assert labelled_matches(pattern, case.events) == {(b, m) for m, b in expected.items()}


@given(case=construct_cases(FAMILIES["everything"], sizes=(1, 3), conditions=(1, 4)))
def test_what_is_refused_as_impossible_has_no_match(case: Case) -> None:
    try:
        check_satisfiable(case.pattern)
    except UnsatisfiablePatternError:
        assert labelled_matches(case.pattern, case.events) == set()
