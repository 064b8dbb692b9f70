"""Partition contiguity: the place of each event among those of its partition."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cepbench.engines.plan_runs.kernels.partitions import enter, follow
from cepbench.kernels.arrays import read_only
from cepbench.state import Stateful, check_shape, damaged
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


class PartitionRanks(Stateful):
    """Follows partitions over batches: by value of an attribute, or code of the text; one of all events
    without an attribute.

    Events without a value form a partition without matches, since a comparison with a missing value
    is false. Of each event the positions of up to ``most`` events before it are known, and if ``timed`` the time
    of the first of them, if they are not more than a window before it. Partitions without events in a window are
    evicted.
    """

    SAVED = ("values", "last", "latest", "moments", "_used[:]")

    def __init__(
        self, attribute: str | None, window: int, most: int = 0, *, timed: bool = False
    ) -> None:
        self.attribute, self._most, self._timed = attribute, most, timed
        self.window = window
        #: float64 and int64 (partitions,), and int64 (1 + most, partitions) and (most or 0, partitions); see
        #: `kernels.partitions`.
        self.values, self.last = np.zeros(1), np.zeros(1, np.int64)
        self.latest = np.zeros((1 + most, 1), np.int64)
        self.moments = np.zeros((most * timed, 1), np.int64)
        self._used = np.zeros(1, np.int64)
        self.resumed()

    def resumed(self) -> None:
        """See :meth:`Stateful.resumed`."""
        number = len(self.values)
        check_shape("last", self.last, (number,))
        check_shape("latest", self.latest, (1 + self._most, number))
        check_shape("moments", self.moments, (self._most * self._timed, number))
        if not 0 <= self._used[0] <= number:
            raise damaged(f"it has {self._used[0]} partitions, and room for {number}")
        self._chain = np.empty(number, np.int64)
        # Few partitions share a bucket, since to go on to the next one is mispredicted.
        self._heads = np.empty(4 * number, np.int64)
        enter(self.values, self._used[0], self._heads, self._chain)

    def of(self, batch: EventStream, reader: NumericReader, first_position: int) -> np.ndarray:
        """The rank of each event of the next batch within its partition.

        And in further rows the position of the event before it, of the one before that, and so on;
        -1 for none. If timed, in the last row the timestamp of the one ``most`` before; the least number for none.
        """
        read = np.zeros(len(batch))
        if self.attribute is not None:
            read = reader.read(batch, self.attribute, slice(None))
        values, times = (read_only(np.ascontiguousarray(its)) for its in (read, batch.timestamps))
        found = np.empty((1 + self._most + self._timed, len(values)), np.int64)
        numbers = np.empty(len(values), np.int64)
        row = 0
        while True:
            row = follow(
                values, times, row, first_position, self.values, self.last, self.latest,
                self.moments, self._used, self._heads, self._chain, numbers, found,
            )  # fmt: skip
            if row == len(values):
                return found
            self._make_room(int(times[row]) - self.window)

    def _make_room(self, oldest: int) -> None:
        """Evict partitions without events since a time, and have room for as many as are left."""
        kept = np.flatnonzero(self.last >= oldest)
        rows = np.resize(kept, 1 << (2 * len(kept)).bit_length())
        self.values, self.last = self.values[rows], self.last[rows]
        self.latest, self.moments = self.latest[:, rows], self.moments[:, rows]
        self._used[0] = len(kept)
        self.resumed()


def warm_up_partitions() -> None:
    """Compile the kernels or load them from the disk cache."""
    events = pd.DataFrame({"type": ["A"], "time": [0], "x": [1.0]})
    batch = EventStream.from_pandas(events, type="type", time="time")
    PartitionRanks("x", 1, 1, timed=True).of(batch, NumericReader(), 0)
