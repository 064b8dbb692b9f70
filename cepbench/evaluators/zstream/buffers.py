"""Leaf buffers: the events of one variable in the order of time, and how far rounds have come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cepbench.kernels.zstream.bits import WORD


@dataclass
class Leaf:
    """The events of a variable, by row number.

    Attributes
    ----------
    times, positions : ndarray of int64, shape (events,)
    values : ndarray of float64, shape (columns, events + WORD)
        What conditions read; the rest is padding, for whole words of bits are tested.
    base : int
        The first row that is stored.
    fresh : int
        The first row that no assembly round has seen.
    stop : int
        The row behind those that have arrived.
    """

    times: np.ndarray
    positions: np.ndarray
    values: np.ndarray
    base: int = 0
    fresh: int = 0
    stop: int = 0

    @classmethod
    def empty(cls, columns: int) -> Leaf:
        """A buffer without events."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.full((columns, WORD), np.nan))

    def extend(self, events: int) -> int:
        """Drop what is not stored any more, make room for events, and give what was dropped."""
        dropped = self.base
        kept = slice(dropped, self.stop)
        count = self.stop - dropped

        def moved(stored: np.ndarray, room: int) -> np.ndarray:
            found = np.empty((*stored.shape[:-1], count + room), stored.dtype)
            found[..., :count] = stored[..., kept]
            return found

        self.times, self.positions = moved(self.times, events), moved(self.positions, events)
        self.values = moved(self.values, events + WORD)
        self.values[:, -WORD:] = np.nan
        self.base, self.fresh, self.stop = 0, self.fresh - dropped, count
        return dropped

    def first_row(self, time: int) -> int:
        """The first stored row that is not before a time."""
        return self.base + int(np.searchsorted(self.times[self.base : self.stop], time))

    @property
    def bytes(self) -> int:
        """Those that the stored events take."""
        return 8 * (2 + len(self.values)) * (self.stop - self.base)
