"""Queries that share counters have the values that each has alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.aggregators.protocol import EMITS, SCOPES, Row
from tests.aggregators.workload_cases import WorkloadCase, workload_cases
from tests.budgets import examples
from tests.evaluators.strategies import batches_of
from tests.naive.aggregates import naive_rows, naive_values

pytestmark = pytest.mark.kernel

CASES = workload_cases()


@given(case=CASES, emit=st.sampled_from(EMITS), scope=st.sampled_from(SCOPES))
@examples(60)
def test_values_after_events(case: WorkloadCase, emit: str, scope: str) -> None:
    found = cep.aggregate(case.workload, case.stream, sharing=case.plan, emit=emit, scope=scope)
    for name, pattern in case.workload.patterns.items():
        rows = found.rows[name].rows
        assert len(rows) == len(set(rows))
        assert set(rows) == naive_rows(pattern, case.events, emit=emit, scope=scope)
    table = found.values
    assert len(table) == found.arrow.num_rows == sum(len(its.rows) for its in found.rows.values())
    keys = [
        (p, [*case.workload.patterns].index(q))
        for p, q in zip(table.position, table["query"], strict=True)
    ]
    assert keys == sorted(keys)


@given(
    case=CASES, emit=st.sampled_from(EMITS), scope=st.sampled_from(SCOPES), data=st.data()
)  # fmt: skip
@examples(25)
def test_values_in_batches_with_restorations(
    case: WorkloadCase, emit: str, scope: str, data: st.DataObject
) -> None:
    options = {"sharing": case.plan, "emit": emit, "scope": scope}
    expected = cep.aggregate(case.workload, case.stream, **options)  # type: ignore[call-overload]
    live = cep.Aggregator(case.workload, **options)  # type: ignore[arg-type]
    rows: dict[str, list[Row]] = {name: [] for name in case.workload.patterns}
    for batch in data.draw(batches_of(case.stream)):
        if data.draw(st.booleans()):
            live = cep.Aggregator.restore(live.snapshot())
        for name, its in live.take(batch).items():  # type: ignore[attr-defined]
            rows[name] += its
    assert rows == {name: its.rows for name, its in expected.rows.items()}
    assert live.flush().empty


@given(case=CASES, scope=st.sampled_from(["window", "stream"]), data=st.data())
@examples(25)
def test_values_at_times(case: WorkloadCase, scope: str, data: st.DataObject) -> None:
    times = data.draw(st.lists(st.integers(-2, 40), min_size=3, max_size=3))
    found = cep.aggregate(case.workload, case.stream, sharing=case.plan, at=times, scope=scope)
    for name, pattern in case.workload.patterns.items():
        for time in times:
            its = {r._replace(position=None) for r in found.rows[name].rows if r.time == time}  # type: ignore[arg-type]
            assert its == naive_values(pattern, case.events, time, scope=scope)
    assert [*dict.fromkeys(found.values.time)] == [
        *dict.fromkeys(time for time in times if time in {*found.values.time})
    ]
