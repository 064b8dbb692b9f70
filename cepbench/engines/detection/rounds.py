"""A stream in rounds of about as many matches each, so that few of them are in memory at once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

from cepbench.engines.runs.pieces import events_at_once, matches_at_once
from cepbench.streams.event_stream import EventStream

#: Events of the first round, and the matches that a round should have.
_ROUND, _MATCHES = 256, 1 << 16


class Rounds:
    """Divides batches into rounds of about as many matches each, by default as many as fit in the cache.

    ``events`` are those of the first round, and ``most`` the most of any.
    """

    def __init__(
        self, events: int = _ROUND, matches: int = _MATCHES, most: int = sys.maxsize
    ) -> None:
        self._size = events_at_once(events)
        self._matches = matches_at_once(matches)
        self._most = most

    def parts(self, batch: EventStream, updates: Callable[[], int]) -> Iterator[EventStream]:
        """The rounds of a batch; ``updates`` gives the matches so far."""
        begin = 0
        while begin < len(batch):
            size, before = self._size, updates()
            part = batch[begin : begin + size]
            yield part
            begin += size
            # The next round may complete more.
            due = len(part) * self._matches // max(1, updates() - before)
            self._size = max(1, min(due, max(size, 2 * len(part)), self._most))
