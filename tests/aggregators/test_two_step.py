"""Every value of every method is the naive one, however the stream is divided."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.aggregators.protocol import EMITS, SCOPES, Row
from tests.aggregators.cases import aggregate_cases
from tests.budgets import examples
from tests.evaluators.constructs import able
from tests.evaluators.strategies import Case, batches_of
from tests.naive.aggregates import naive_rows, naive_values

pytestmark = pytest.mark.kernel


def options_of(data: st.DataObject, case: Case) -> dict[str, str | None]:
    """Options of any method that runs the pattern."""
    evaluators = [None, *able(case.pattern.without_aggregate())]
    return {
        "method": data.draw(st.sampled_from([*cep.AGGREGATORS])),
        "evaluator": data.draw(st.sampled_from(evaluators)),
        "scope": data.draw(st.sampled_from(SCOPES)),
    }


@given(data=st.data())
@examples(80)
def test_values_after_events(data: st.DataObject) -> None:
    case = data.draw(aggregate_cases())
    options = options_of(data, case)
    for emit in EMITS:
        expected = naive_rows(case.pattern, case.events, emit=emit, scope=str(options["scope"]))
        found = cep.aggregate(case.pattern, case.stream, emit=emit, **options)  # type: ignore[arg-type]
        assert len(found.rows) == len(set(found.rows))
        assert set(found.rows) == expected
        positions = [row.position for row in found.rows]
        assert positions == sorted(positions)
        assert len(found.values) == found.arrow.num_rows == len(expected)


@given(data=st.data())
@examples(30)
def test_values_in_batches_with_restorations(data: st.DataObject) -> None:
    case = data.draw(aggregate_cases())
    options = {**options_of(data, case), "emit": data.draw(st.sampled_from(EMITS))}
    expected = cep.aggregate(case.pattern, case.stream, **options)  # type: ignore[arg-type]
    live = cep.Aggregator(case.pattern, **options)  # type: ignore[arg-type]
    rows: list[Row] = []
    for batch in data.draw(batches_of(case.stream)):
        if data.draw(st.booleans()):
            live = cep.Aggregator.restore(live.snapshot())
        rows += live.take(batch)
    assert rows == expected.rows
    assert live.flush().empty


@given(data=st.data())
@examples(30)
def test_values_at_times(data: st.DataObject) -> None:
    case = data.draw(aggregate_cases())
    options = options_of(data, case)
    if options["scope"] == "trigger":
        options["scope"] = "window"
    known = case.events["time"].tolist()
    least, most = (min(known), max(known)) if known else (0, 0)
    unit = 10**9 if case.pattern.window.is_datetime else 1
    times = [
        least + unit * data.draw(st.integers(-2, (most - least) // unit + 25)) for _ in range(3)
    ]
    at = [pd.Timestamp(time) if unit > 1 else time for time in times]
    found = cep.aggregate(case.pattern, case.stream, at=at, **options).rows  # type: ignore[arg-type]
    expected = [
        naive_values(case.pattern, case.events, time, scope=str(options["scope"])) for time in times
    ]
    assert [row.time for row in found] == [
        t for t, its in zip(times, expected, strict=True) for _ in its
    ]
    for time, its in zip(times, expected, strict=True):
        assert {row._replace(position=None) for row in found if row.time == time} == its
