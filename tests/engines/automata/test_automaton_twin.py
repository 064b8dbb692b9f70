"""The naive automaton itself: worked examples, and the brute-force twin where both apply."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.patterns.model import ANY
from cepbench.patterns.parse import parse
from tests.budgets import examples
from tests.engines.detection.constructs import AUTOMATA, NEXT, construct_cases
from tests.naive.automaton import automaton_matches
from tests.naive.matcher import labelled_matches, naive_matches

#: Figure 3 of [agrawal2008] lost its numbers; these fit all that the text says of it.
STOCKS = pd.DataFrame(
    {
        "type": "Stock",
        "time": range(1, 9),
        "symbol": 7,
        "price": [100, 120, 120, 121, 120, 125, 120, 120],
        "volume": [1010, 990, 1005, 999, 999, 750, 950, 590],
    }
)
QUERY_3 = """PATTERN SEQ(KL(Stock a), Stock b)
WHERE [symbol] AND a[1].volume > 1000 AND a[i].price > {}(a[..i-1].price)
      AND b.volume < 80% * a[last].volume
STRATEGY next {} WITHIN 60 units"""


@pytest.mark.parametrize(
    ("function", "output", "expected"),
    [
        # R1, R2, R3 of Figure 3, and the run that e6 continues.
        ("avg", "", {("12345", 6), ("34", 6), ("1234567", 8), ("346", 8)}),
        ("max", "", {("124", 6), ("34", 6), ("1246", 8), ("346", 8)}),
        ("avg", "OUTPUT non_overlap", {("34", 6)}),
        ("max", "OUTPUT non_overlap", {("34", 6)}),
    ],
)
def test_query_3(function: str, output: str, expected: set[tuple[str, int]]) -> None:
    found = automaton_matches(parse(QUERY_3.format(function, output)), STOCKS)
    numbers = {("".join(str(position + 1) for position in a), b + 1) for _, (a, b) in found}
    assert numbers == expected


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
