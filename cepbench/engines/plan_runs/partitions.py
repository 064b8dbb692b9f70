"""Partition contiguity: the place of each event among those of its partition."""

from __future__ import annotations

import numpy as np

from cepbench.engines.plan_runs.kernels.partitions import enter, follow
from cepbench.state import Stateful, check_shape
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


class PartitionRanks(Stateful):
    """Follows partitions over batches: by value of an attribute, or code of the text.

    Events without a value form a partition without matches, since a comparison with a missing value
    is false. Of each event the positions of up to ``most`` events before it are known.
    """

    SAVED = ("values", "latest", "_used[:]")

    def __init__(self, attribute: str | None, most: int = 0) -> None:
        assert attribute is not None  # the pattern has seen to it
        self.attribute = attribute
        #: float64 (partitions,), and int64 (partitions, 1 + most); see `kernels.partitions`.
        self.values = np.zeros(1)
        self.latest = np.zeros((1, 1 + most), np.int64)
        self._used = np.zeros(1, np.int64)
        self.resumed()

    def resumed(self) -> None:
        """See :meth:`Stateful.resumed`."""
        check_shape("latest", self.latest, (len(self.values), self.latest.shape[-1]))
        self._chain = np.empty(len(self.values), np.int64)
        # Few partitions share a bucket, since to go on to the next one is mispredicted.
        self._heads = np.empty(4 * len(self.values), np.int64)
        enter(self.values, self._used[0], self._heads, self._chain)

    def of(self, batch: EventStream, reader: NumericReader, first_position: int) -> np.ndarray:
        """The rank, from 0, of each event of the next batch within its partition.

        And in further rows the position of the event before it, of the one before that, and so on;
        -1 for none.
        """
        values = reader.read(batch, self.attribute, slice(None))
        found = np.empty((self.latest.shape[1], len(values)), np.int64)
        row = 0
        while True:
            row = follow(
                values, row, first_position, self.values, self.latest, self._used, self._heads,
                self._chain, found,
            )  # fmt: skip
            if row == len(values):
                return found
            self.values = np.concatenate((self.values, np.zeros_like(self.values)))
            self.latest = np.concatenate((self.latest, np.zeros_like(self.latest)))
            self.resumed()
