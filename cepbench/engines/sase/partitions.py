"""Partitions of the events of a round, and of the runs that wait for them."""

from __future__ import annotations

import numpy as np

from cepbench.engines.sase.kernels.tables import Events


class Partitions:
    """Numbers the partitions of each round anew: events that share the values of ``[attribute]``, which
    are in these columns of events.
    """

    def __init__(self, columns: np.ndarray) -> None:
        self._columns = columns
        #: float64 (runs, columns); the values of the runs that wait for the next round.
        self.held = np.empty((0, len(columns)))
        self._keys = self.held

    def of(self, events: Events) -> tuple[np.ndarray, np.ndarray, int]:
        """The partition of each of ``events.rows`` and of each run held, and their number.

        An event with a missing value is in a partition of its own.
        """
        if not len(self._columns):
            self._keys = np.empty((1, 0))
            return np.zeros(len(events.rows), np.int64), np.zeros(len(self.held), np.int64), 1
        keys = np.concatenate((self.held, events.values[self._columns][:, events.rows].T))
        numbers = np.zeros(len(keys), np.int64)
        for column in keys.T:
            values, ranks = np.unique(column, return_inverse=True)
            _, numbers = np.unique(numbers * len(values) + ranks, return_inverse=True)
        alone = np.flatnonzero(np.isnan(keys).any(axis=1))
        count = int(numbers.max(initial=0)) + 1
        numbers[alone] = count + np.arange(len(alone))
        count += len(alone)
        self._keys = np.empty((count, keys.shape[1]))
        self._keys[numbers] = keys
        return numbers[len(self.held) :], numbers[: len(self.held)], count

    def keep(self, partitions: np.ndarray) -> np.ndarray:
        """Hold runs in these partitions; returns which, since an event alone is followed by none."""
        keys = self._keys[partitions]
        kept = ~np.isnan(keys).any(axis=1)
        self.held = keys[kept]
        return np.asarray(kept)
