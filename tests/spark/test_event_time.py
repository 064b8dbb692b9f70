"""Detection by event time: the matches of one pass over the events that are not late."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import SnapshotError, StreamError
from cepbench.evaluators.registry import EVALUATORS
from cepbench.patterns.reach import shared_keys
from cepbench.spark.columns import Columns
from cepbench.spark.event_time import LiveDetection, LiveState
from tests.budgets import examples
from tests.evaluators.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    NEXT,
    able,
    branch_plans,
    construct_cases,
)
from tests.evaluators.strategies import Case, events_of
from tests.evaluators.test_slices import parts_of, rows_of

#: All constructs and strategies.
ALL = FAMILIES | GROUP_FAMILIES | {f"{name}, next": its for name, its in NEXT.items()}

#: After all events.
END = 2**62


def detection_of(
    pattern: cep.Pattern, plan: Any, evaluator: str | None, events: pa.Table
) -> LiveDetection:
    columns = Columns("time", "type", pattern.attributes)
    return LiveDetection(pattern, plan, evaluator, columns, "no", events.schema)


class Live:
    """The detectors of keys as Spark calls them, each from what it saved before."""

    def __init__(self, detection: LiveDetection) -> None:
        self.detection = detection
        self.saved: dict[int, tuple[Any, ...]] = {}
        self.due: dict[int, int] = {}
        self.matches: list[pa.Table] = []
        self.late: list[int] = []

    def batch(self, came: dict[int, pa.Table], watermark: int | None) -> None:
        for key, events in came.items():
            self._push(key, events, watermark)
        for key in [
            key for key, due in self.due.items() if watermark is not None and watermark > due
        ]:
            self._push(key, self.detection.schema.empty_table(), watermark)

    def _push(self, key: int, events: pa.Table, watermark: int | None) -> None:
        state = LiveState.new(self.detection)
        if key in self.saved:
            state = LiveState.of(self.detection, *self.saved.pop(key))
        self.due.pop(key, None)
        matches, late = state.push(events, watermark)
        self.matches += matches
        self.late += late.column("no").to_pylist()
        if state.due is not None:
            assert watermark is None or state.due >= watermark
            self.saved[key] = state.packed()
            self.due[key] = state.due


def in_times_of(case: Case) -> pd.DataFrame:
    """The events of a case, with datetimes if its window is a duration."""
    if not case.pattern.window.is_datetime:
        return case.events
    return case.events.assign(time=pd.to_datetime(case.events["time"], unit="ns"))


@pytest.mark.kernel
@pytest.mark.parametrize("family", ALL)
@given(data=st.data())
@examples(6)
def test_any_order_any_watermarks_any_keys(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(ALL[family]))
    pattern, stream = case.pattern, case.stream
    if data.draw(st.booleans()):
        pattern = replace(pattern, equivalences=("s",))
    if pattern.strategy.name != "consuming" and data.draw(st.integers(0, 3)) == 0:
        pattern = replace(pattern, output="non_overlap")
    keys = shared_keys(pattern)
    key = data.draw(st.sampled_from([None, *keys]))
    saving = [name for name in able(pattern) if EVALUATORS.find(name).snapshots]
    assume(saving)
    evaluator = data.draw(st.sampled_from(saving))
    plan = data.draw(branch_plans(evaluator, pattern))
    number = len(stream)
    table = pa.Table.from_pandas(
        in_times_of(case).assign(no=np.arange(number)), preserve_index=False
    )
    of_event = parts_of(stream, key, data.draw(st.integers(1, 3)))
    live = Live(detection_of(pattern, plan, evaluator, table))

    # Events are disordered by up to some time, more or less than the watermark waits.
    times = case.events["time"].to_numpy()
    unit = 10**9 if pattern.window.is_datetime else 1
    spread = data.draw(st.integers(0, 6))
    delays = data.draw(st.lists(st.integers(0, spread), min_size=number, max_size=number))
    arrival = np.argsort(times + unit * np.array(delays, np.int64), kind="stable")
    cuts = sorted(data.draw(st.sets(st.integers(0, number), max_size=4)))
    slack = unit * data.draw(st.integers(0, 6))
    watermark, late = None, []
    for rows in np.split(arrival, cuts):
        came = {
            part: table.take(rows[of_event[rows] == part]) for part in set(of_event[rows].tolist())
        }
        live.batch(came, watermark)
        if watermark is not None:
            late += [row for row in rows.tolist() if times[row] < watermark]
        if len(rows):
            watermark = max(times[rows].max() - slack, -END if watermark is None else watermark)
    live.batch({}, END)
    assert not live.saved
    assert sorted(live.late) == sorted(late)

    on_time = np.setdiff1d(np.arange(number), late)
    whole = cep.evaluate(
        pattern, stream.with_rows(on_time), plan, evaluator=evaluator, output="arrow"
    ).arrow
    expected = Counter(
        tuple(
            tuple(on_time[list(its)].tolist()) if isinstance(its, tuple)
            else its if place == len(pattern.positive_names) or its is None
            else int(on_time[its])
            for place, its in enumerate(row)
        )
        for row in rows_of([whole], pattern).elements()
    )  # fmt: skip
    assert rows_of(live.matches, pattern) == expected
