"""Every aggregator and planner of shared counts gives the values of the twin, in every way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.aggregation.protocol import EMITS, SCOPES, AggregationTask, Row
from cepbench.engines.aggregation.slices import SliceAggregation
from cepbench.engines.runs.slices import Slice, cut
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import MatchAggregate, Pattern
from cepbench.patterns.reach import looks_back
from tests.contract.cases import FORMS, ContractCase, stream_in
from tests.contract.tally import Tally, explored
from tests.engines.aggregation.cases import (
    SEQUENCES,
    aggregate_cases,
    compared_cases,
    neighbour_cases,
)
from tests.engines.aggregation.sharing_cases import workload_cases
from tests.engines.detection.constructs import able
from tests.engines.detection.strategies import Case, batches_of, statistics_for
from tests.naive.aggregates import naive_rows, naive_values

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.filterwarnings("ignore::cepbench.errors.MissingTypeWarning"),
]

SIMPLE = aggregate_cases(SEQUENCES) | aggregate_cases(SEQUENCES, typed=True) | neighbour_cases()
CASES = SIMPLE | aggregate_cases(typed=True)


def _ranked(structures: tuple[str, ...], functions: list[str]) -> st.SearchStrategy[Case]:
    """Cases of compared neighbours, with COUNT and an aggregate of a value."""
    return st.builds(
        lambda case, function, attribute: replace(
            case,
            pattern=replace(
                case.pattern,
                aggregates=(MatchAggregate("COUNT"), MatchAggregate(function, "a", attribute)),
            ),
        ),
        compared_cases(structures),
        st.sampled_from(functions),
        st.sampled_from("xy"),
    )


#: Of a method that runs few other patterns, most cases are of these.
SUITABLE = {
    "order-statistics": _ranked(("SEQ", "AND"), ["COUNT", "SUM", "AVG"])
    | _ranked(("SEQ",), ["MIN", "MAX"])
}


@dataclass(frozen=True)
class _Choice:
    method: str
    evaluator: str | None
    emit: str
    scope: str

    @property
    def arguments(self) -> dict[str, Any]:
        return {"evaluator": self.evaluator, "emit": self.emit, "scope": self.scope}


def whole(case: ContractCase, how: _Choice, data: st.DataObject) -> None:
    found = cep.aggregate(case.pattern, case.stream, how.method, **how.arguments)
    _agrees(case, how, found.rows)
    assert len(found.values) == len(found.rows)


def live(case: ContractCase, how: _Choice, data: st.DataObject) -> None:
    live = cep.Aggregator(case.pattern, how.method, **how.arguments)
    rows: list[Row] = []
    for batch in data.draw(batches_of(case.stream)):
        rows += live.take(batch)
        if data.draw(st.booleans()):
            live = cep.Aggregator.restore(live.snapshot())
    assert live.flush().empty
    _agrees(case, how, rows)


def sliced(case: ContractCase, how: _Choice, data: st.DataObject) -> None:
    task = SliceAggregation(case.pattern, how.method, how.emit, how.scope, how.evaluator)
    times = case.stream.timestamps
    known = [*dict.fromkeys(times.tolist())] or [0]
    cuts = data.draw(st.lists(st.integers(0, len(known)), max_size=5).map(sorted))
    starts = [known[at] if at < len(known) else known[-1] + 1 for at in cuts]
    parts = data.draw(st.integers(1, 3)) if task.shared_key else 1
    rows: list[Row] = []
    for of_key in range(parts):
        slices = []
        for number, (start, end) in enumerate(cut(starts)):
            part = Slice(number, start, end, None, of_key, parts)
            needed = np.flatnonzero(task.events_of(part, times))
            pieces = data.draw(batches_of(case.stream.with_rows(needed)))
            slices.append(task.values(part, ((piece, None) for piece in pieces)))
        rows += task.joined(slices)
    _agrees(case, how, sorted(rows, key=lambda row: row.position))


def at_times(case: ContractCase, how: _Choice, data: st.DataObject) -> None:
    times = data.draw(_times(case.events, 10**9 if case.pattern.window.is_datetime else 1))
    if not cep.AGGREGATORS[how.method].expires:
        end = int(case.events["time"].iloc[:1].sum()) + case.pattern.window.length
        times = [min(time, end) for time in times]
    at = [pd.Timestamp(time) if case.pattern.window.is_datetime else time for time in times]
    arguments = {**how.arguments, "emit": "trigger"}
    found = cep.aggregate(case.pattern, case.stream, how.method, at=at, **arguments).rows
    for time in times:
        its = [row._replace(position=None) for row in found if row.time == time]
        assert set(its) == naive_values(case.pattern, case.events, time, scope=how.scope)
        assert len(its) == len(set(its)) * times.count(time)


def _forms(patterns: Iterable[Pattern]) -> st.SearchStrategy[str]:
    """The forms of columns, without decimals where sums would have to round them."""
    sums = any(its.function in ("SUM", "AVG") for pattern in patterns for its in pattern.aggregates)
    return st.sampled_from([form for form in FORMS if not (sums and form == "decimals")])


def _agrees(case: ContractCase, how: _Choice, rows: list[Row]) -> None:
    assert len(rows) == len(set(rows)), "the same row twice"
    assert set(rows) == naive_rows(case.pattern, case.events, emit=how.emit, scope=how.scope)
    positions = [row.position for row in rows]
    assert positions == sorted(positions)


def _times(events: pd.DataFrame, unit: int) -> st.SearchStrategy[list[int]]:
    known = events["time"].tolist() or [0]
    most = (known[-1] - known[0]) // unit + 25
    return st.lists(
        st.integers(-2, most).map(lambda n: known[0] + unit * n), min_size=1, max_size=3
    )


WAYS: Mapping[str, Callable[[ContractCase, _Choice, st.DataObject], None]] = {
    "whole": whole, "live": live, "sliced": sliced, "at times": at_times,
}  # fmt: skip


@pytest.mark.parametrize("name", cep.AGGREGATORS)
def test_aggregator(name: str, tally: Tally, seeds: Callable[[int], Sequence[int]]) -> None:
    entry = cep.AGGREGATORS[name]
    # Which patterns it runs is not declared, but asked. What lists matches runs them all.
    tally.pinned, tally.most = name, 0.35 if entry.lists_matches else 0.95
    explored(name, seeds(1), lambda data: _check(data, tally, name))


def _check(data: st.DataObject, tally: Tally, name: str) -> None:
    """One pattern in all ways."""
    entry = cep.AGGREGATORS[name]
    drawn = data.draw(CASES if data.draw(st.integers(0, 3)) == 3 else SUITABLE.get(name, SIMPLE))
    case = ContractCase(drawn.pattern, drawn.events, data.draw(_forms([drawn.pattern])))
    if not entry.expires:
        times = case.events["time"]
        within = times - times.iloc[:1].sum() <= case.pattern.window.length
        case = replace(case, events=case.events[within])
    evaluators: list[str | None] = [None]
    if entry.lists_matches:
        evaluators += able(case.pattern.without_aggregate())
    for way, check in WAYS.items():
        scopes = [its for its in SCOPES if not (way == "at times" and its == "trigger")]
        how = _Choice(
            name,
            data.draw(st.sampled_from(evaluators)),
            data.draw(st.sampled_from(EMITS)),
            data.draw(st.sampled_from(scopes)),
        )
        reason = _refused(case.pattern, how, way)
        if reason is None:
            check(case, how, data)
            tally.ran(name, way)
        else:
            tally.must_refuse(name, reason, lambda check=check, how=how: check(case, how, data))


def _refused(pattern: Pattern, how: _Choice, way: str) -> str | None:
    """Why a pattern has to be refused, in any way or by slices."""
    entry = cep.AGGREGATORS[how.method]
    try:
        entry.open(AggregationTask(pattern, how.emit, how.scope))
    except UnsupportedPatternError:
        if entry.lists_matches:
            raise
        return "this pattern"
    if way == "sliced":
        if how.scope == "stream":
            return "slices, scope stream"
        if pattern.selects:
            return "slices, one pass"
        if how.emit == "trigger" and looks_back(pattern) and not _groups_of_last(pattern):
            return "slices, groups seen before"
    return None


def _groups_of_last(pattern: Pattern) -> bool:
    """Whether the last item of every branch determines the group."""
    lasts = {
        [v for v in its.variables() if v in pattern.positive][-1].name
        for its in pattern.structure.alternatives()
    }
    return all(key.variable is None or {key.variable} == lasts for key in pattern.group_by)


@pytest.mark.parametrize(
    "name", [its.name for its in cep.WORKLOAD_PLANNERS.values() if its.shares == "aggregates"]
)
def test_planner(name: str, tally: Tally, seeds: Callable[[int], Sequence[int]]) -> None:
    tally.pinned = name
    explored(name, seeds(1), lambda data: _check_workload(data, tally, name), each=5)


def _check_workload(data: st.DataObject, tally: Tally, name: str) -> None:
    """One workload by a planner, or cut anywhere, in one way."""
    drawn = data.draw(workload_cases())
    workload = drawn.workload
    form = data.draw(_forms(workload.patterns.values()))
    stream = stream_in(form, drawn.events, is_datetime=False)
    plan = drawn.plan
    if data.draw(st.integers(0, 3)):
        statistics = {
            query: data.draw(statistics_for(Case(its.without_aggregate(), drawn.events)))
            for query, its in workload.patterns.items()
        }
        plan = cep.plan_workload(workload, statistics, name, seed=data.draw(st.integers(0, 9)))
    options: dict[str, Any] = {
        "sharing": plan,
        "emit": data.draw(st.sampled_from(EMITS)),
        "scope": data.draw(st.sampled_from(SCOPES)),
    }
    way = data.draw(st.sampled_from(["whole", "live", "at times"]))
    rows: dict[str, list[Row]] = {query: [] for query in workload.patterns}
    if way == "at times":
        options.update(emit="trigger", scope=data.draw(st.sampled_from(["window", "stream"])))
        times = data.draw(_times(drawn.events, 1))
        found = cep.aggregate(workload, stream, at=times, **options)
        for query, pattern in workload.patterns.items():
            for time in times:
                its = {
                    row._replace(position=None)
                    for row in found.rows[query].rows
                    if row.time == time
                }
                assert its == naive_values(pattern, drawn.events, time, scope=options["scope"])
        tally.ran(name, way)
        return
    if way == "whole":
        found = cep.aggregate(workload, stream, **options)
        rows = {query: its.rows for query, its in found.rows.items()}
    else:
        live: Any = cep.Aggregator(workload, **options)
        for batch in data.draw(batches_of(stream)):
            for query, its in live.take(batch).items():
                rows[query] += its
            if data.draw(st.booleans()):
                live = cep.Aggregator.restore(live.snapshot())
        assert live.flush().empty
    for query, pattern in workload.patterns.items():
        expected = naive_rows(pattern, drawn.events, emit=options["emit"], scope=options["scope"])
        assert len(rows[query]) == len(expected)
        assert set(rows[query]) == expected
    tally.ran(name, way)
