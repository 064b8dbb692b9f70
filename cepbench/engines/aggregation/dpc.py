"""DPC, dynamic prefix counting: one counter for each prefix of the sequence, without expiry.

Source: [qi2014]_, section 3.1, Lemmas 1 and 2, Figure 3.

Differs from the paper: it refuses to go on when an event expires; sets, NOT, ``[attribute]`` and the
other aggregates as in A-Seq.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cepbench.engines.aggregation.counting import CountingRun, warmed
from cepbench.engines.aggregation.partitions import numbered
from cepbench.engines.aggregation.protocol import AggregationMethod, AggregationTask, Key
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.sequences import CountedSequence, sequence_of
from cepbench.engines.sase.automaton_engine import events_of
from cepbench.engines.sequence_counts.kernels import tables
from cepbench.engines.sequence_counts.windows import CountingWindow
from cepbench.errors import UnsupportedTaskError
from cepbench.streams.event_stream import EventStream

_NEVER = 2**62


class _Prefixes(CountedSequence):
    """The sequence behind an item without events, with which all histories begin."""

    def items(self) -> tuple[tables.Items, int, int]:
        """See :meth:`CountedSequence.items`."""
        its, width, final = super().items()
        names = ("begins", "takes", "prevents", "sources", "columns")
        behind: dict[str, Any] = {name: np.append(0, getattr(its, name)) for name in names}
        behind |= {"loops": np.append(-1, its.loops), "spans": np.append([0, 0], its.spans)}
        return its._replace(**behind, by_start=True, window=_NEVER), width, final


class PrefixCountingRun(CountingRun):
    """A run of ``dpc``."""

    SAVED = ("_oldest",)

    def __init__(self, task: AggregationTask) -> None:
        # While nothing has expired, the window is the whole stream.
        scope = "stream" if task.scope == "window" else task.scope
        super().__init__(replace(task, scope=scope), "dpc", by_start=False)
        #: Position and time of the first event that expires.
        self._oldest: tuple[int, int] | None = None

    def _compiled(self, name: str, *, by_start: bool) -> CountedSequence:
        given = sequence_of(self._task, self._reader, name, by_start=by_start)
        return _Prefixes(given.pattern, given.layout, given.scope)

    def push(self, batch: EventStream) -> Rows:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.push`; refused if an event expires."""
        if self._oldest is None:
            self._oldest = self._first_of(batch)
        if self._oldest is not None:
            end = self._oldest[1] + self._sequence.pattern.window.length
            row = int(np.searchsorted(batch.timestamps, end, side="right"))
            if row < len(batch):
                self._refuse(f"row {self.valuation.position + row}")
        return super().push(batch)

    def value(self, time: int) -> Rows:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.value`; likewise refused."""
        if self._oldest and time > self._oldest[1] + self._sequence.pattern.window.length:
            self._refuse("the time asked for")
        return super().value(time)

    def _first_of(self, batch: EventStream) -> tuple[int, int] | None:
        """The first event that begins a match, or prevents that one begins."""
        items = self._sequence.layout.items
        events = events_of(self._sequence.layout.of_events, self._reader, batch, 0)
        rows = np.flatnonzero(events.flags & (items.begins[0] | items.prevents[0]))
        numbers, _ = numbered(batch, self._sequence.pattern.equivalences, rows)
        for row in rows[numbers >= 0][:1].tolist():
            return self.valuation.position + row, int(batch.timestamps[row])
        return None

    def _refuse(self, where: str) -> None:
        assert self._oldest is not None
        raise UnsupportedTaskError(
            f"{where}: the event of row {self._oldest[0]} expires, which the counters of dpc cannot "
            "take back; use the method window-product, a-seq or two-step, or a longer window"
        )

    def _add(self, groups: list[Key]) -> None:
        first = len(self.groups)
        super()._add(groups)
        for window in self._windows:
            assert isinstance(window, CountingWindow)
            for partition in range(first, len(self.groups)):
                window.begin(partition)


def _open(task: AggregationTask) -> PrefixCountingRun:
    return warmed(PrefixCountingRun(task))


DPC = AggregationMethod("dpc", _open, expires=False, source="[qi2014]_, section 3.1")
