"""Late events, put in order before they are aggregated: the future work of [qi2014]_, section 8."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from cepbench.errors import StreamError
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents

#: Longer than any stream.
_FOREVER = 2**62


class LateEvents(Stateful):
    """Puts batches that overlap in time in order.

    An event is held back, with some attributes, until none may come before it: until another one is
    ``slack`` ticks later. Events of the same time keep the order in which they came.
    """

    SAVED = ("_slack", "_latest", "_held")

    def __init__(self, slack: int, attributes: Collection[str]) -> None:
        self._slack = slack
        self._attributes = tuple(attributes)
        self._latest: int | None = None
        self._held = self._empty()

    def sorted(self, batch: EventStream, row: int) -> tuple[EventStream, EventStream]:
        """The events that can no longer change their places, and those to hold back.

        Of a batch of at least one event, the first of which has this row; it is refused if it is later than
        the slack. Nothing changes before :meth:`hold`.
        """
        first, latest = int(batch.timestamps[0]), self._latest
        if latest is not None and first < latest - self._slack:
            advice = "push batches in the order of time"
            if self._slack:
                advice = f"late by more than slack = {self._slack}; push it earlier, or raise slack"
            raise StreamError(
                f"row {row}: this batch starts at {first}, before the last event pushed "
                f"({latest}); {advice}",
                row=row,
            )
        if not self._slack:
            return batch, batch[len(batch) :]
        joined = self._empty()
        for part in (self.held, batch):
            if len(part):
                joined.push(part)
        events = joined.stream
        events = events.with_rows(np.argsort(events.timestamps, kind="stable"))
        ready = int(np.searchsorted(events.timestamps, self._after(batch) - self._slack, "right"))
        return events[:ready], events[ready:]

    def hold(self, batch: EventStream, held: EventStream) -> None:
        """Hold back what :meth:`sorted` returned of a batch."""
        self._latest = self._after(batch)
        self._held = self._empty()
        if len(held):
            self._held.push(held)

    @property
    def held(self) -> EventStream:
        """The events held back, in order."""
        return self._held.stream

    def _after(self, batch: EventStream) -> int:
        """The greatest timestamp, with a batch."""
        last = int(batch.timestamps[-1])
        return last if self._latest is None else max(last, self._latest)

    def _empty(self) -> RecentEvents:
        return RecentEvents(self._attributes, _FOREVER, 0)
