"""The naive automaton itself: worked examples, and the brute-force twin where both apply."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.patterns.model import ANY
from cepbench.patterns.parse import parse
from tests.budgets import examples
from tests.engines.detection.constructs import AUTOMATA, NEXT, construct_cases
from tests.engines.sase.test_sase import FIGURE_3, FIGURE_6, QUERY_3, stock
from tests.naive.automaton import automaton_matches
from tests.naive.matcher import labelled_matches, naive_matches


@pytest.mark.parametrize(("function", "expected"), [("avg", FIGURE_3), ("max", FIGURE_6)])
def test_query_3(function: str, expected: set[object]) -> None:
    text = QUERY_3.replace("avg", function)
    first = text.replace("WITHIN", "OUTPUT non_overlap WITHIN")
    for asked, due in ((text, expected), (first, {((2, 3), 5)})):
        found = automaton_matches(parse(asked), stock().to_pandas())
        assert {match for _, match in found} == due


@pytest.mark.parametrize("family", AUTOMATA)
@given(data=st.data())
@examples(8)
def test_the_strategies_that_both_have(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(AUTOMATA[family]))
    pattern = replace(case.pattern, output=data.draw(st.sampled_from(["all", "non_overlap"])))
    assert automaton_matches(pattern, case.events) == labelled_matches(pattern, case.events)


@pytest.mark.parametrize("family", NEXT)
@given(data=st.data())
@examples(8)
def test_every_match_under_next_is_one_under_any(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(NEXT[family]))
    found = {match for _, match in automaton_matches(case.pattern, case.events)}
    assert found <= naive_matches(replace(case.pattern, strategy=ANY), case.events)
