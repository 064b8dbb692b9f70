"""What is handed to people: the table of matches, and how a notebook shows it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cepbench.engines.adaptation.adapt import adapt
from cepbench.engines.detection.evaluate import evaluate
from cepbench.errors import EvaluationError
from cepbench.patterns.model import Operator, Pattern, Structure, Variable, Window
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from tests.engines.detection.strategies import events_of, stream_of


def test_matches_are_a_table_of_positions_in_the_pattern_s_order() -> None:
    pattern = parse("PATTERN AND(B second, A first) WITHIN 9 units")
    stream = stream_of(events_of("A@1 B@2 A@3 B@3"))
    result = evaluate(pattern, stream, OrderPlan(["first", "second"]))
    assert list(result.matches.columns) == ["second", "first"]
    assert (result.matches.dtypes == np.int64).all()
    assert result.matches.index.tolist() == [0, 1, 2, 3]
    # By the position of the last event, then by all positions.
    assert result.matches.to_numpy().tolist() == [[1, 0], [1, 2], [3, 0], [3, 2]]


def test_matches_of_branches_stand_by_their_last_event_then_by_branch() -> None:
    pattern = parse("PATTERN OR(SEQ(A a, B b), SEQ(C c, B d), SEQ(B e, A f)) WITHIN 9 units")
    plan = UnionPlan([OrderPlan(["b", "a"]), OrderPlan(["c", "d"]), OrderPlan(["e", "f"])])
    result = evaluate(pattern, stream_of(events_of("C@1 A@2 B@3 A@4 B@5")), plan)
    rows = result.matches[["a", "b", "c", "d", "e", "f", "branch"]].astype("Int64")
    shown = [tuple(None if pd.isna(v) else int(v) for v in row) for row in rows.to_numpy()]
    assert shown == [
        (1, 2, None, None, None, None, 0),
        (None, None, 0, 2, None, None, 1),
        (None, None, None, None, 2, 3, 2),
        (1, 4, None, None, None, None, 0),
        (3, 4, None, None, None, None, 0),
        (None, None, 0, 4, None, None, 1),
    ]


def test_counted_matches_are_not_there() -> None:
    pattern = parse("PATTERN AND(A a, B b) WITHIN 9 units")
    result = evaluate(
        pattern, stream_of(events_of("A@1 B@2")), TreePlan(("b", "a")), output="count"
    )
    assert result.found is None
    assert result.metrics.matches == 1
    with pytest.raises(EvaluationError, match=r'1 matches were only counted.*output="matches"'):
        _ = result.matches
    assert "1 matches" in result._repr_html_()


def test_names_are_escaped_in_a_notebook() -> None:
    evil = "<script>alert(1)</script>"
    pattern = Pattern(
        Structure(Operator.AND, (Variable(evil, evil), Variable("b", "B"))), (), Window(9, "units")
    )
    frame = pd.DataFrame({"type": [evil, "B"], "time": [1, 2]})
    plan = OrderPlan([evil, "b"])
    stream = stream_of(frame)
    result = evaluate(pattern, stream, plan)
    assert result.matches.to_numpy().tolist() == [[0, 1]]
    for shown in (result, result.metrics, pattern, plan, TreePlan((evil, "b")), stream):
        page = shown._repr_html_()
        assert "<script" not in page, type(shown)
    assert "&lt;script&gt;" in result._repr_html_()
    assert "matches by the lazy-nfa evaluator" in result._repr_html_()


def test_a_result_describes_itself() -> None:
    pattern = parse("PATTERN SEQ(A a, B b) WITHIN 9 units")
    result = evaluate(pattern, stream_of(events_of("A@1 B@2")), OrderPlan(["b", "a"]))
    described = result.describe()
    assert described.startswith("lazy-nfa: order plan")
    assert "comparisons" in described


def test_a_result_prints_as_one_line_and_the_first_matches() -> None:
    """As a list of fields it would take a screen before the first match."""
    pattern = parse("PATTERN AND(A a, B b) WITHIN 99 units")
    events = events_of(" ".join(f"{name}@{time}" for time in range(6) for name in "AB"))
    result = evaluate(pattern, stream_of(events), OrderPlan(["a", "b"]))
    line, *table = str(result).splitlines()
    assert line == repr(result) and line.startswith("Result(36 matches by lazy-nfa along a, b over")
    assert len(table) == 12 and table[1].split() == ["0", "0", "0", "1", "0"]
    assert table[-1] == "… and 26 more"
    counted = evaluate(pattern, stream_of(events), OrderPlan(["a", "b"]), output="count")
    assert str(counted) == repr(counted) and "\n" not in repr(counted)
    assert repr(pattern) == "<PATTERN AND(A a, B b) WITHIN 99 units>"
    adaptive = adapt(pattern, stream_of(events))
    assert repr(adaptive).startswith("AdaptiveResult(36 matches by ")


@pytest.mark.parametrize("condition", ["", "WHERE a.x < b.x"])
def test_printed_matches_have_the_time_and_what_is_read_of_each_event(condition: str) -> None:
    events = events_of("A@1 B@2 A@3 B@3 B@7")
    events["x"] = [0.5, 1.5, 1.0, 2.5, 0.25]
    stream = stream_of(events)
    pattern = parse(f"PATTERN SEQ(A a, KL(B b)) {condition} WITHIN 4 units")
    result = evaluate(pattern, stream, evaluator="sase")
    printed = str(result).splitlines()[1:]
    read = [".x"] if condition else []
    assert printed[0].split() == [
        "a",
        "a.time",
        *map("a{}".format, read),
        "b",
        "b.time",
        *map("b{}".format, read),
    ]
    assert len(printed) == 1 + len(result.matches)
    for line, (a, b) in zip(printed[1:], result.matches.to_numpy(), strict=True):
        each = [int(place) for place in b]
        of_b = [tuple(each), tuple(events["time"][each].tolist())]
        row = [a, events["time"][a], *([events["x"][a]] if condition else []), *of_b]
        row += [tuple(events["x"][each].tolist())] if condition else []
        assert line.split()[1:] == " ".join(map(str, row)).split()


def test_no_match_prints_as_one_line() -> None:
    pattern = parse("PATTERN SEQ(A a, B b) WITHIN 9 units")
    result = evaluate(pattern, stream_of(events_of("B@1 A@2")))
    assert str(result) == repr(result) and result.matches.empty
