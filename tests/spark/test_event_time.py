"""Detection by event time: the matches of one pass over the events that are not late."""

from __future__ import annotations

import json
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
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.errors import SnapshotError
from cepbench.patterns.reach import shared_keys
from cepbench.spark.event_time import LiveDetection, LiveState
from cepbench.spark.frames import Columns
from tests.budgets import examples
from tests.engines.detection.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    NEXT,
    able,
    branch_plans,
    construct_cases,
)
from tests.engines.detection.strategies import Case, events_of
from tests.engines.detection.test_stream_slices import parts_of, rows_of

#: All constructs and strategies.
ALL = FAMILIES | GROUP_FAMILIES | {f"{name}, next": its for name, its in NEXT.items()}

#: After all events.
END = 2**62


def detection_of(
    pattern: cep.Pattern, plan: Any, evaluator: str | None, events: pa.Table
) -> LiveDetection:
    columns = Columns("time", "type", pattern.attributes, "no")
    return LiveDetection(pattern, plan, evaluator, columns, events.schema)


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
@examples(3)
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


def live_of(text: str, plan: Any, events: pd.DataFrame) -> Live:
    table = pa.Table.from_pandas(events.assign(no=np.arange(len(events))), preserve_index=False)
    live = Live(detection_of(cep.parse(text), plan, None, table))
    for row, time in enumerate(events["time"].tolist()):
        live.batch({0: table[row : row + 1]}, time)
    live.batch({}, END)
    return live


@pytest.mark.parametrize(
    ("text", "plan", "events"),
    [
        # Events of one time arrive one by one, when the watermark is there already.
        (
            "SEQ(A a, KL(B b), C c) WITHIN 4 units",
            cep.OrderPlan(["a", "b", "c"]),
            "A@1 B@2 B@2 C@3",
        ),
        # The match waits for one that ends before it, which may be its rival for two windows.
        (
            "OR(SEQ(A a, B b), SEQ(C c, C d, NOT(D n))) OUTPUT non_overlap WITHIN 10 units",
            cep.UnionPlan([cep.OrderPlan(["a", "b"]), cep.OrderPlan(["c", "d"])]),
            "A@0 C@9 C@10 B@10 B@18 D@19",
        ),
    ],
)
def test_one_by_one(text: str, plan: Any, events: str) -> None:
    its = events_of(events)
    live = live_of(f"PATTERN {text}", plan, its)
    stream = cep.EventStream.from_pandas(its, type="type", time="time")
    whole = cep.evaluate(f"PATTERN {text}", stream, plan, output="arrow")
    assert whole.metrics.matches
    pattern = cep.parse(f"PATTERN {text}")
    assert rows_of(live.matches, pattern) == rows_of([whole.arrow], pattern)


def test_events_of_one_time_in_the_order_of_their_identifiers() -> None:
    pattern = cep.parse("PATTERN SEQ(A a, KL(B b), C c) WITHIN 4 units")
    events = events_of("A@1 B@2 B@2 C@3")
    table = pa.Table.from_pandas(events.assign(no=np.arange(4)), preserve_index=False)
    live = Live(detection_of(pattern, cep.OrderPlan(["a", "b", "c"]), None, table))
    for row, watermark in ((0, None), (2, 2), (1, 2), (3, 2)):
        live.batch({0: table[row : row + 1]}, watermark)
    live.batch({}, END)
    assert rows_of(live.matches, pattern) == Counter([(0, (1,), 3), (0, (2,), 3), (0, (1, 2), 3)])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pattern", {"pattern": cep.parse("PATTERN SEQ(A a, B b) WITHIN 5 units")}),
        ("plan", {"plan": cep.OrderPlan(["b", "a"])}),
        ("evaluator", {"evaluator": "lazy-nfa-instances"}),
        ("id", {"columns": Columns("time", "type", (), "time")}),
        ("key", {"key": "lot"}),
        ("detectors", {"detectors": 2}),
        ("columns", {"schema": pa.schema({"time": pa.int64(), "type": pa.string()})}),
    ],
)
def test_the_state_of_another_detection_is_refused(name: str, change: dict[str, Any]) -> None:
    pattern = cep.parse("PATTERN SEQ(A a, B b) WITHIN 4 units")
    table = pa.Table.from_pandas(events_of("A@1").assign(no=[0]), preserve_index=False)
    detection = detection_of(pattern, cep.OrderPlan(["a", "b"]), None, table)
    state = LiveState.new(detection)
    state.push(table, None)  # held back: there is no detector yet
    with pytest.raises(SnapshotError, match=f"another {name}: .*another checkpoint"):
        LiveState.of(replace(detection, **change), *state.packed())
    header, *rest = state.packed()
    of_another_version = json.dumps({**json.loads(header), "since": 2})
    with pytest.raises(SnapshotError, match="another since: 2, not None"):
        LiveState.of(detection, of_another_version, *rest)


@pytest.mark.parametrize("unit", [None, "us", "ns"])
def test_broken_events_are_told_from_sound_ones(unit: str | None) -> None:
    far = {None: (2**63 - 1) // 1000 + 1, "us": (2**62 - 1) // 1000 + 1, "ns": 2**62}[unit]
    kind = pa.int64() if unit is None else pa.timestamp(unit, "UTC")
    table = pa.table(
        {
            "time": pa.array([1, None, 2, 3, far, 1 - far, None], pa.int64()).cast(kind),
            "type": ["A", "B", None, "B", "A", "B", None],
            "no": [0, 1, 2, None, 4, 5, 6],
        }
    )
    pattern = cep.parse("PATTERN SEQ(A a, B b) WITHIN 4 units")
    detection = detection_of(pattern, cep.OrderPlan(["a", "b"]), None, table)
    sound, broken = detection.sound(table)
    assert sound["no"].to_pylist() == [0, 5]
    assert {reason: its["no"].to_pylist() for reason, its in broken.items()} == {
        "no value in column 'time'": [1],
        "no value in column 'type'": [2, 6],
        "no value in column 'no'": [None],
        "a time out of range in column 'time'": [4],
    }
