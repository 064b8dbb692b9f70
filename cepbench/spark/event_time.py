"""Detection by event time: events in any order up to a watermark, and state between micro-batches.

A watermark says that no event before it is expected any more. Events from it on are held back, those
before it go through a detector in the order of time and identifier, and an event that arrives after
the watermark has passed it is late: it goes to no detector and is handed back, as is one that has no
time. So the matches are those of the stream without these events in one pass, however the events are
divided and disordered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.engines.detection.detector import WINDOWS_KEPT, Detector
from cepbench.engines.detection.slices import named_table
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.snapshot import snapshot_bytes, snapshot_of_bytes
from cepbench.errors import SnapshotError
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.kinds import plan_to_json
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.workloads.model import queries_to_json
from cepbench.spark.frames import Columns
from cepbench.streams.row_groups import TICKS

#: The greatest times, in ticks: of datetimes as in any stream, and of numbers what Spark's watermark
#: bears, for which they are milliseconds, in microseconds.
FARTHEST_DATETIME, FARTHEST_NUMBER = 2**62 - 1, (2**63 - 1) // 1000


@dataclass(frozen=True)
class LiveDetection:
    """What is detected."""

    pattern: Pattern
    plan: AnyPlan | None
    evaluator: str | None
    #: With an identifier.
    columns: Columns
    #: Of the events.
    schema: pa.Schema
    #: The attribute by whose values events are divided among detectors.
    key: str | None = None
    detectors: int = 1

    @cached_property
    def header(self) -> str:
        """What state depends on besides events, as JSON."""
        return json.dumps(
            {
                **queries_to_json(self.pattern),
                "plan": self.plan and plan_to_json(self.plan),
                "evaluator": self.detector().evaluator,
                "time": self.columns.time,
                "type": self.columns.type,
                "id": self.columns.id,
                "key": self.key,
                "detectors": self.detectors,
                "columns": str(self.schema),
            }
        )

    def check(self, header: str) -> None:
        """Check that state is that of the same detection, or raise a SnapshotError."""
        old, new = json.loads(header), json.loads(self.header)
        for name in new | old:  # another version may have others
            if new.get(name) != old.get(name):
                raise SnapshotError(
                    f"the checkpoint is that of a detection with another {name}: {old.get(name)!r}, not "
                    f"{new.get(name)!r}; go on with the same, or start anew with another checkpoint and "
                    "sink"
                )

    def detector(self, position: int = 0) -> Detector:
        """A new detector of positions."""
        plain = replace(self.pattern, returns=())
        return Detector(plain, self.plan, evaluator=self.evaluator, position=position)

    def sound(self, events: pa.Table) -> tuple[pa.Table, dict[str, pa.Table]]:
        """The events that have a time, a type and an identifier, and the others by what they lack."""
        kind, farthest = self.schema.field(self.columns.time).type, FARTHEST_NUMBER
        if pa.types.is_timestamp(kind):
            farthest = FARTHEST_DATETIME // TICKS[kind.unit]
        time = events.column(self.columns.time).cast(pa.int64())
        inside = pc.and_(pc.less_equal(time, farthest), pc.greater_equal(time, -farthest))
        inside = pc.fill_null(inside, fill_value=True)
        reasons = pa.array([None] * len(events), pa.string())
        reasons = pc.if_else(
            inside, reasons, f"a time out of range in column {self.columns.time!r}"
        )
        for name in (self.columns.time, self.columns.type, self.columns.id):
            lacks = events.column(name).is_null()
            reasons = pc.if_else(lacks, f"no value in column {name!r}", reasons)
        broken = {
            reason: events.filter(pc.equal(reasons, reason))
            for reason in reasons.drop_null().unique().to_pylist()
        }
        return events.filter(reasons.is_null()), broken

    def sorted(self, events: pa.Table) -> pa.Table:
        """Events by time, those of one timestamp by identifier."""
        return events.sort_by([(self.columns.time, "ascending"), (self.columns.id, "ascending")])

    def before(self, events: pa.Table, tick: int) -> int:
        """How many of sorted events are before a time."""
        return int(np.searchsorted(self.columns.stream(events).timestamps, tick))


@dataclass
class LiveState:
    """A detector between micro-batches."""

    detection: LiveDetection
    #: Events of the last windows that went through the detector, which matches may still name, and
    #: after them those held back.
    events: pa.Table
    #: None before its first event, and once all that it knows is out of date.
    detector: Detector | None = None
    #: The time of the last event that went through it, in ticks.
    last: int = 0
    #: Once the watermark is after this tick, there may be matches without a new event; None if
    #: there is nothing to wait for.
    due: int | None = None
    _pushed: int = 0

    @classmethod
    def new(cls, detection: LiveDetection) -> Self:
        return cls(detection, detection.schema.empty_table())

    def push(self, came: pa.Table, watermark: int | None) -> tuple[list[pa.Table], pa.Table]:
        """Take the next events, which are sound, in any order; returns matches, and late events.

        The watermark, in ticks, does not decrease, and None is before all times. For errors see
        :meth:`cepbench.engines.detection.detector.Detector.take`.
        """
        came = self.detection.sorted(came)
        late = came[:0] if watermark is None else came[: self.detection.before(came, watermark)]
        kept, held = self.events[: self._pushed], self.events[self._pushed :]
        on_time = came[len(late) :]
        if len(on_time):
            held = self.detection.sorted(pa.concat_tables([held, on_time]))
        self.events = pa.concat_tables([kept, held])
        return list(self._advanced(watermark)), late

    def _advanced(self, watermark: int | None) -> Iterator[pa.Table]:
        """The matches that the events before the watermark complete."""
        detection, window = self.detection, self.detection.pattern.window.length
        stream = detection.columns.stream(self.events)
        times = stream.timestamps
        ready = self._pushed
        if watermark is not None:
            ready = int(np.searchsorted(times, watermark))
        if ready > self._pushed:
            if self.detector is None:
                self.detector = detection.detector()
            found = self.detector.take(stream[self._pushed : ready])
            yield from self._named(found, ready)
            self.last = int(times[ready - 1])
        self.due = int(times[ready]) if ready < len(times) else None
        first = ready
        if self.detector is not None:
            # No later event is in a window with one that the detector has.
            outdated = self.last + window
            if watermark is not None and watermark > outdated:
                yield from self._named(self.detector.finish(), ready)
                self.detector = None
            else:
                self.due = outdated if self.due is None else min(self.due, outdated)
                first = int(np.searchsorted(times, self.last - WINDOWS_KEPT * window))
        self.events = self.events[first:]
        self._pushed = ready - first

    def _named(self, found: Found, ready: int) -> Iterator[pa.Table]:
        """Matches as a table, if there are any."""
        if not found.number:
            return
        assert self.detector is not None
        first = self.detector.position - ready
        found_parts = self.detector.in_branches([found])
        parts = [part.moved(lambda its: its - first) for part in found_parts]
        names = self.events.column(self.detection.columns.id).combine_chunks()
        stream = self.detection.columns.stream(self.events)
        yield named_table(self.detection.pattern, parts, stream, names)

    def packed(self) -> tuple[str, bytes | None, bytes, int, int, int]:
        """The state as values that :meth:`of` takes."""
        detector = self.detector
        return (
            self.detection.header,
            None if detector is None else snapshot_bytes(detector.snapshot()),
            bytes_of(self.events),
            0 if detector is None else detector.position,
            self._pushed,
            self.last,
        )

    @classmethod
    def of(
        cls,
        detection: LiveDetection,
        header: str,
        snapshot: bytes | None,
        events: bytes,
        position: int,
        pushed: int,
        last: int,
    ) -> Self:
        """The state that :meth:`packed` returned.

        A SnapshotError if it is that of another detection.
        """
        detection.check(header)
        detector = None
        if snapshot is not None:
            detector = detection.detector(position)
            detector.resume_from(snapshot_of_bytes(snapshot))
        return cls(detection, table_of(events), detector, last, None, pushed)


def bytes_of(events: pa.Table | pa.RecordBatch) -> bytes:
    """Rows in Arrow's format of streams."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, events.schema) as writer:
        writer.write(events)
    return sink.getvalue().to_pybytes()


def table_of(written: bytes) -> pa.Table:
    """The rows that :func:`bytes_of` wrote."""
    return pa.ipc.open_stream(written).read_all()
