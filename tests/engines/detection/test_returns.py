"""RETURN: the columns it names, of the same matches, on every evaluator and live."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.runs.protocol import Evaluator
from cepbench.engines.runs.result import Metrics
from cepbench.errors import EvaluationError, StreamError
from cepbench.patterns.parse import reread
from tests.budgets import examples
from tests.contract.hand_examples import STREAM
from tests.engines.detection.constructs import FAMILIES, able, branch_plans, construct_cases
from tests.engines.detection.returns import plain, returns, rows_of
from tests.engines.detection.strategies import batches_of, stream_of
from tests.naive.returns import returned_row

#: The stream that the definition of a match is explained with, and values: x = 1.5 y.
EVENTS = STREAM.assign(
    x=np.arange(8) * 1.5, y=np.arange(8), s=pd.Categorical(["p", "q", None, "p", *"qpqp"])
)


@pytest.mark.kernel
@pytest.mark.parametrize("evaluator", ["sase", "tree", "lazy-nfa"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_values_of_sets_after_events_have_gone(evaluator: str, size: int) -> None:
    """Live, where the first of the events that are kept is no longer the first of the stream."""
    kinds = "DDDDDDDDABBCDDDDDABC"
    frame = pd.DataFrame({"type": list(kinds), "time": range(20), "x": np.arange(20.0)})
    text = """PATTERN SEQ(A a, KL(B b), C c) WITHIN 3 units
        RETURN b[1].x AS first, b[last].x AS latest, sum(b[].x) AS total"""
    plan = None if evaluator == "sase" else cep.OrderPlan(("a", "b", "c"))
    live = cep.Detector(text, plan, evaluator=evaluator)
    batches = stream_of(frame).batches(size)
    found = [live.push(batch) for batch in batches] + [live.flush()]
    rows = [tuple(row) for part in found for row in part.itertuples(index=False)]
    assert sorted(rows) == [(9, 9, 9), (9, 10, 19), (10, 10, 10), (18, 18, 18)]


@pytest.mark.parametrize("family", ["Kleene and negation", "disjunction", "everything"])
@given(data=st.data())
@examples(3)
def test_columns_are_those_of_the_twin(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(FAMILIES[family]))
    asked = replace(case.pattern, returns=data.draw(returns(case.pattern)))
    assert reread(str(asked)).returns == asked.returns
    evaluator = data.draw(st.sampled_from(able(asked)))
    plan = data.draw(branch_plans(evaluator, asked))
    without = cep.evaluate(case.pattern, case.stream, plan, evaluator=evaluator)
    result = cep.evaluate(asked, case.stream, plan, evaluator=evaluator)
    pd.testing.assert_frame_equal(result.positions, without.matches)
    rows = case.events.to_dict("records")
    names = list(asked.positive_names)
    expected = [
        tuple(map(plain, returned_row(asked, match, rows)))
        for match in rows_of(result.positions[names])
    ]
    assert list(result.matches.columns) == [column.name for column in asked.returns]
    assert rows_of(result.matches) == expected
    in_arrow = [tuple(map(plain, row.values())) for row in result.arrow.to_pylist()]
    assert sorted(in_arrow, key=repr) == sorted(expected, key=repr)
    # Live, with the state put away between batches; and only counted.
    for output in ("matches", "arrow"):
        detector = cep.Detector(asked, plan, evaluator=evaluator, output=output)
        found = []
        for batch in data.draw(batches_of(case.stream)):
            found += _rows(detector.push(batch))
            if data.draw(st.booleans()):
                detector = cep.Detector.restore(detector.snapshot())
        found += _rows(detector.flush())
        assert sorted(found, key=repr) == sorted(expected, key=repr)
    counted = cep.evaluate(asked, case.stream, plan, evaluator=evaluator, output="count")
    assert counted.metrics.matches == len(expected)


def _rows(found: Any) -> list[tuple[Any, ...]]:
    if isinstance(found, pd.DataFrame):
        return rows_of(found)
    return [tuple(map(plain, row.values())) for row in found.to_pylist()]


def returned(text: str) -> cep.Result:
    pattern = cep.parse(f"PATTERN {text}")
    parts = [cep.OrderPlan(branch.positive_names) for branch in pattern.branches()]
    plan = parts[0] if len(parts) == 1 else cep.UnionPlan(parts)
    return cep.evaluate(pattern, stream_of(EVENTS), plan)


def test_a_table_worked_by_hand() -> None:
    result = returned(
        "SEQ(A a, KL(B b), C c) WITHIN 4 units RETURN c, b, sum(b[].x) AS total, b.y, a.s, "
        "b[last].s, count(b.x) AS n, c.x - a.x AS rise"
    )
    pd.testing.assert_frame_equal(
        result.matches,
        pd.DataFrame(
            {
                "c": [3, 5, 5, 5, 5],
                "b": [(1,), (1,), (1, 4), (4,), (4,)],
                "total": [1.5, 1.5, 7.5, 6.0, 6.0],
                "b.y": [(1,), (1,), (1, 4), (4,), (4,)],
                "a.s": ["p", "p", "p", "p", None],
                "b[last].s": list("qqqqq"),
                "n": [1, 1, 2, 1, 1],
                "rise": [4.5, 7.5, 7.5, 7.5, 4.5],
            }
        ),
    )


def test_a_branch_that_lacks_a_variable_returns_nothing_of_it() -> None:
    result = returned("OR(SEQ(A a, B b), C c) WITHIN 1 units RETURN c, b.y AS y, a.x + b.x AS sum")
    pd.testing.assert_frame_equal(
        result.matches,
        pd.DataFrame(
            {
                "c": pd.array([None, 3, None, 5, 7], "Int64"),
                "y": pd.array([1, None, 4, None, None], "Int64"),
                "sum": [1.5, np.nan, 9.0, np.nan, np.nan],
            }
        ),
    )
    assert result.arrow.column("c").null_count == 2


def test_positions_in_the_whole_stream_and_values_of_the_part() -> None:
    part = stream_of(EVENTS)[3:]
    pattern = cep.parse("PATTERN SEQ(B b, C c) WITHIN 9 units RETURN c, b, c.y")
    result = cep.evaluate(pattern, part, cep.OrderPlan(["b", "c"])).in_whole_stream(part)
    assert rows_of(result.matches) == [(5, 4, 5), (7, 4, 7), (7, 6, 7)]
    assert rows_of(result.positions) == [(4, 5), (4, 7), (6, 7)]
    assert sorted(map(tuple, map(dict.values, result.arrow.to_pylist()))) == rows_of(result.matches)


def test_batches_of_matches_have_the_columns() -> None:
    pattern = cep.parse("PATTERN SEQ(B b, C c) WITHIN 9 units RETURN c.y, b")
    tables = cep.match_batches(pattern, stream_of(EVENTS), cep.OrderPlan(["b", "c"]), rows=2)
    rows = [tuple(row.values()) for table in tables for row in table.to_pylist()]
    assert sorted(rows) == [(3, 1), (5, 1), (5, 4), (7, 1), (7, 4), (7, 6)]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("a.price", "no attribute 'price'"),
        ("a.s + 1", r"a.s \+ 1: arithmetic on a text"),
        ("sum(b.s)", "texts can only be counted"),
    ],
)
def test_what_the_stream_cannot_return(columns: str, words: str) -> None:
    with pytest.raises(StreamError, match=words):
        returned(f"SEQ(A a, KL(B b)) WITHIN 4 units RETURN {columns}")


def test_a_match_that_comes_when_its_values_are_gone_is_an_error() -> None:
    class Late:
        def __init__(self, task: Any) -> None:
            assert task.pattern.returns == ()  # no matter of evaluators

        def push(self, batch: cep.EventStream) -> int:
            return 0

        def finish(self) -> pd.DataFrame:
            return pd.DataFrame({"a": [0]})

        def metrics(self) -> Any:
            return Metrics()

    late = Evaluator("late", Late, without_plan=True)
    pattern = cep.parse("PATTERN SEQ(A a) WITHIN 1 units RETURN a.x")
    detector = cep.Detector(pattern, evaluator=late)
    for batch in stream_of(EVENTS).batches(2):
        detector.push(batch)
    with pytest.raises(EvaluationError, match="position 0 more than 2 windows after it"):
        detector.flush()


def test_texts_of_batches_with_other_tables() -> None:
    """Each batch has its own table of texts and types; a number is no text."""
    pieces = [
        pd.DataFrame({"type": ["A"], "time": [0], "s": ["x"]}),
        pd.DataFrame({"type": ["B", "A"], "time": [1, 2], "s": ["y", None]}),
        pd.DataFrame({"type": ["C", "B"], "time": [3, 4], "s": ["x", "z"]}),
    ]
    streams = [cep.EventStream.from_pandas(p, type="type", time="time") for p in pieces]
    pattern = cep.parse("PATTERN SEQ(A a, B b) WITHIN 9 units RETURN a.s, b.s AS t")
    detector = cep.Detector(pattern, cep.OrderPlan(["a", "b"]))
    found = list(itertools.chain(*(rows_of(detector.push(stream)) for stream in streams)))
    assert sorted(found, key=repr) == sorted([("x", "y"), ("x", "z"), (None, "z")], key=repr)
    number = pd.DataFrame({"type": ["B"], "time": [5], "s": [1.0]})
    with pytest.raises(StreamError, match="row 5: attribute 's' is a number in the batch"):
        detector.push(cep.EventStream.from_pandas(number, type="type", time="time"))
