"""Runs of automata step by step: Figures 3 to 5, and the naive automaton."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import EvaluationError, UnsupportedPatternError
from cepbench.explainer import trace as module
from cepbench.explainer.trace import is_compatible
from tests.automata.test_automaton import QUERY_2, QUERY_3
from tests.budgets import examples
from tests.evaluators.constructs import AUTOMATA, NEXT, Family, construct_cases
from tests.naive.automaton import automaton_matches

#: Figure 3 of [agrawal2008] lost its numbers; these fit all that the text says of it.
STOCKS = pd.DataFrame(
    {
        "type": "Stock",
        "time": pd.date_range("2008-06-09", periods=8, freq="min"),
        "symbol": "X",
        "price": [100, 120, 120, 121, 120, 125, 120, 120],
        "volume": [1010, 990, 1005, 999, 999, 750, 950, 590],
    }
)


def stream_of(frame: pd.DataFrame) -> cep.EventStream:
    return cep.EventStream.from_pandas(frame, type="type", time="time")


@pytest.fixture(scope="module")
def traced() -> module.Trace:
    return cep.trace(QUERY_3, stream_of(STOCKS))


def test_the_matches_of_figure_3_have_the_versions_of_figure_4(traced: module.Trace) -> None:
    assert traced.matches.to_numpy().tolist() == [
        ["1.0.0", 5, (0, 1, 2, 3, 4), 5],  # R1
        ["2.0.0", 5, (2, 3), 5],  # R2
        ["1.1.0", 7, (0, 1, 2, 3, 4, 5, 6), 7],  # R3
        ["2.1.0", 7, (2, 3, 5), 7],
    ]


def test_the_shared_buffer_of_figure_4(traced: module.Trace) -> None:
    pointers = traced.pointers(3).to_numpy().tolist()
    assert pointers == [
        ["a[1]", 0, "", -1, "1"],
        ["a[i]", 1, "a[1]", 0, "1.0"],
        ["a[i]", 2, "a[i]", 1, "1.0"],
        ["a[1]", 2, "", -1, "2"],
        ["a[i]", 3, "a[i]", 2, "1.0"],
        ["a[i]", 3, "a[1]", 2, "2.0"],
    ]
    # The erroneous result of section 5.1: from e6 of R2 to e4, and on to e3 in the stack a[i].
    assert not is_compatible((2, 0, 0), (1, 0)) and is_compatible((2, 0, 0), (2, 0))
    assert is_compatible((1, 1, 0), (1, 0)) and not is_compatible((1, 0, 0), (1, 1))
    drawn = ET.fromstring(traced.draw(7))
    texts = [element.text for element in drawn.iter() if element.tag.endswith("}text")]
    assert texts[:3] == ["a[1]", "a[i]", "b"] and {"1.0.0", "2.0.0", "1.1.0"} <= set(texts)


def test_the_computation_states_of_figure_5(traced: module.Trace) -> None:
    after = traced.runs[traced.runs["event"] == 3]
    assert after.columns[2:].tolist() == [
        "version", "state", "last", "start",
        "value a[1].symbol", "sum a[i].price", "count a[i]", "value a[i].volume",
    ]  # fmt: skip
    start = [int(stamp.value) for stamp in STOCKS["time"]]
    assert after.iloc[:, 2:].to_numpy().tolist() == [
        ["1.0", "a[i]", 3, start[0], "X", 461.0, 4.0, 999.0],
        ["2.0", "a[i]", 3, start[2], "X", 241.0, 2.0, 999.0],
    ]
    moves = traced.runs[traced.runs["event"] == 5]["move"].tolist()
    assert moves == ["proceed", "begin", "take"] * 2


def test_a_run_fails_where_no_formula_holds() -> None:
    traced = cep.trace(QUERY_3.replace("next", "strict_contiguity"), stream_of(STOCKS))
    assert "fail" in set(traced.runs["move"])
    # The matches of Figure 6 are skipping ones, but for the first.
    assert traced.matches["a"].tolist() == [(0, 1, 2, 3, 4), (0, 1, 2, 3, 4, 5, 6)]


@pytest.mark.parametrize("families", [AUTOMATA, NEXT], ids=["any or contiguity", "next"])
@pytest.mark.parametrize("family", AUTOMATA)
@given(data=st.data())
@examples(25)
def test_a_trace_finds_the_matches_of_the_naive_automaton(
    family: str, families: dict[str, Family], data: st.DataObject
) -> None:
    case = data.draw(construct_cases(families[family]))
    pattern = replace(case.pattern, output="all")
    try:
        found = cep.trace(pattern, stream_of(case.events)).matches
    except UnsupportedPatternError:
        return
    names = list(pattern.positive_names)
    matches = list(found[names].itertuples(index=False, name=None))
    assert len(set(matches)) == len(matches)
    assert {(0, match) for match in matches} == automaton_matches(pattern, case.events)


@pytest.mark.parametrize(
    "text",
    ["SEQ(A a, NOT(B b))", "OR(A a, B b)", "SEQ(A a, B b) STRATEGY any OUTPUT non_overlap"],
)
def test_what_has_no_trace(text: str) -> None:
    frame = pd.DataFrame({"type": ["A", "B"], "time": [1, 2]})
    with pytest.raises(UnsupportedPatternError, match="of one automaton and all its runs"):
        cep.trace(f"PATTERN {text} WITHIN 9 units", stream_of(frame))


def test_a_trace_is_of_a_short_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 10)
    with pytest.raises(EvaluationError, match="event 5: more than 10 steps"):
        cep.trace(QUERY_3, stream_of(STOCKS))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8))
@examples(25)
def test_query_2_finds_what_is_reachable_in_time(shipments: list[tuple[int, int]]) -> None:
    """Section 3.3: sites that a series of shipments leads to from site 0."""
    frame = pd.DataFrame(
        [("Alert", "contaminated", 0.0, None, None)]
        + [("Shipment", None, None, float(start), float(end)) for start, end in shipments],
        columns=["type", "kind", "site", "from", "to"],
    ).astype(dict.fromkeys(("site", "from", "to"), float))
    frame["time"] = pd.date_range("2008-06-09", periods=len(frame), freq="min")
    stream = stream_of(frame)
    ends: set[int] = set()
    for start, end in shipments:
        if start == 0 or start in ends:
            ends.add(end)
    traced = cep.trace(QUERY_2, stream).matches
    assert {int(frame["to"][position]) for position in traced["event"]} == ends
    found = cep.evaluate(QUERY_2, stream, evaluator="sase").matches
    assert set(zip(found["a"], found["b"], strict=True)) == set(
        zip(traced["a"], traced["b"], strict=True)
    )
