"""Late events within the slack count as if they had come in order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.protocol import EMITS, SCOPES, Row
from cepbench.errors import EvaluationError, SnapshotError, StreamError
from tests.budgets import examples
from tests.engines.aggregation.cases import SEQUENCES, aggregate_cases, methods_for

TEXT = "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 6 units"


def batch(*events: tuple[str, int]) -> cep.EventStream:
    frame = pd.DataFrame(events, columns=["type", "time"])
    return cep.EventStream.from_pandas(frame, type="type", time="time")


def arrivals(data: st.DataObject, stream: cep.EventStream, slack: int) -> list[cep.EventStream]:
    """The stream with events late by up to the slack, in batches in order of time.

    Events of the same time stay in order.
    """
    times = stream.timestamps
    delays = np.array([data.draw(st.integers(0, slack)) for _ in times], np.int64)
    for time in set(times.tolist()):
        delays[times == time] = np.maximum.accumulate(delays[times == time])
    order = np.argsort(times + delays, kind="stable")
    cuts = [
        place
        for place in range(1, len(order))
        if times[order[place]] < times[order[place - 1]] or data.draw(st.booleans())
    ]
    return [stream.with_rows(rows) for rows in np.split(order, cuts)]


@given(data=st.data())
@examples(5)
def test_values_are_those_of_the_events_in_order(data: st.DataObject) -> None:
    case = data.draw(aggregate_cases(SEQUENCES) | aggregate_cases())
    unit = 10**9 if case.pattern.window.is_datetime else 1
    slack = data.draw(st.integers(0, 9))
    scope = data.draw(st.sampled_from(SCOPES))
    method = data.draw(st.sampled_from(methods_for(case.pattern, scope)))
    options = {"method": method, "emit": data.draw(st.sampled_from(EMITS)), "scope": scope}
    expected = cep.aggregate(case.pattern, case.stream, **options)
    live = cep.Aggregator(case.pattern, slack=slack, **options)
    rows: list[Row] = []
    latest = None
    for part in arrivals(data, case.stream, slack * unit):
        if data.draw(st.booleans()):
            live = cep.Aggregator.restore(live.snapshot())
        rows += live.take(part)
        if len(part):
            latest = max(int(part.timestamps[-1]), latest or int(part.timestamps[-1]))
            # A row is there as soon as its event can have no other before it.
            until = latest - slack * unit
            assert rows == expected.rows[: len(rows)]
            assert all(row.time <= until for row in rows)
            assert all(row.time >= until for row in expected.rows[len(rows) :])
    rows += live.finish()
    assert rows == expected.rows
    assert live.metrics.events == len(case.stream)


def test_rows_wait_for_the_slack() -> None:
    live = cep.Aggregator(TEXT, slack=2)
    assert live.push(batch(("B", 3), ("B", 4))).empty
    assert live.push(batch(("A", 3))).empty
    assert live.value(4)["COUNT"].tolist() == [0]
    assert live.push(batch(("C", 8))).to_numpy().tolist() == [[0, 3, 0], [2, 4, 1]]
    assert live.push(batch(("B", 6), ("B", 8))).to_numpy().tolist() == [[3, 6, 2]]
    assert live.flush().to_numpy().tolist() == [[5, 8, 3]]


def test_an_event_later_than_the_slack_is_refused_alone() -> None:
    live = cep.Aggregator(TEXT, slack="2 units")
    live.push(batch(("A", 3), ("B", 9)))
    with pytest.raises(
        StreamError, match=r"row 2: .* starts at 6, .*\(9\); late by .* slack = 2;"
    ) as late:
        live.push(batch(("B", 6), ("B", 9)))
    assert late.value.row == 2
    assert live.push(batch(("B", 7))).to_numpy().tolist() == [[1, 7, 1]]
    without = cep.Aggregator(TEXT)
    without.push(batch(("A", 3)))
    with pytest.raises(StreamError, match=r"row 1: .*; push batches in the order of time"):
        without.push(batch(("A", 2)))


def test_late_events_of_a_workload() -> None:
    workload = cep.Workload({"Q1": TEXT, "Q2": TEXT.replace("6 units", "4 units")})
    plan = cep.WorkloadPlan(workload, shares_prefixes=True)
    live = cep.Aggregator(workload, "a-seq", sharing=plan, slack=2)
    assert live.push(batch(("B", 8))).empty
    assert live.push(batch(("A", 6))).empty
    live = cep.Aggregator.restore(live.snapshot())
    # The event of type C lets the one before it be processed.
    assert live.push(batch(("C", 10)))[["query", "position", "COUNT"]].to_numpy().tolist() == [
        ["Q1", 1, 1], ["Q2", 1, 1],
    ]  # fmt: skip
    assert live.push(batch(("B", 11))).empty
    assert live.flush()["COUNT"].tolist() == [2, 0]
    with pytest.raises(EvaluationError, match="slack"):
        cep.Aggregator(workload, slack="soon")


def test_slack_of_datetimes() -> None:
    frame = pd.DataFrame({"type": list("BBA"), "at": [1.0, 1.5, 2.5]})
    frame["at"] = pd.Timestamp("2026-01-05 09:30") + pd.to_timedelta(frame["at"], unit="s")
    stream = cep.EventStream.from_pandas(frame, type="type", time="at")
    for slack in ("500 milliseconds", 0.5):
        live = cep.Aggregator("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 6 seconds", slack=slack)
        live.push(stream[1:2])
        assert live.push(stream[:1])["position"].tolist() == [0]
        assert live.push(stream[2:])["position"].tolist() == [1]


@pytest.mark.parametrize("slack", [-1, "soon", "2 seconds", None, True])
def test_slacks_that_mean_nothing(slack: object) -> None:
    with pytest.raises(EvaluationError, match="slack"):
        cep.Aggregator(TEXT, slack=slack)  # type: ignore[arg-type]


def test_a_damaged_snapshot_of_late_events() -> None:
    live = cep.Aggregator(TEXT, slack=2)
    live.push(batch(("A", 3)))
    snapshot = live.snapshot()
    late = ["known", *(name for name in snapshot if name.startswith("late/"))]
    assert len(late) > 2
    for name in late:
        with pytest.raises(SnapshotError):
            cep.Aggregator.restore({key: its for key, its in snapshot.items() if key != name})
