"""Leaf buffers: the events of one variable in the order of time, and how far rounds have come."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cepbench.engines.zstream.kernels.bits import WORD
from cepbench.state import Stateful, check_shape


@dataclass
class Leaf(Stateful):
    """The events of a variable, by row number."""

    SAVED = ("_held",)

    times: np.ndarray  #: int64 (at least stop,)
    positions: np.ndarray  #: int64 (at least stop,); empty unless ``has_positions``
    #: float64 (columns, at least stop + WORD); what conditions read; whole words of bits are
    #: tested, so that some is read behind the last.
    values: np.ndarray
    has_positions: bool  #: whether positions are asked for
    base: int = 0  #: the first row that is stored
    fresh: int = 0  #: the first row that no assembly round has seen
    stop: int = 0  #: the row behind those that have arrived

    @classmethod
    def empty(cls, columns: int, *, has_positions: bool) -> Leaf:
        """A buffer without events."""
        none = np.empty(0, np.int64)
        return cls(none, none, np.empty((columns, WORD)), has_positions)

    @property
    def _held(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """The stored events, and how many of them rounds have seen."""
        rows = slice(self.base, self.stop)
        return (
            self.times[rows], self.positions[rows], self.values[:, rows], self.fresh - self.base,
        )  # fmt: skip

    @_held.setter
    def _held(self, held: tuple[np.ndarray, np.ndarray, np.ndarray, int]) -> None:
        times, positions, values, fresh = held
        count = len(times)
        check_shape("positions", positions, (count * self.has_positions,))
        check_shape("values", values, (len(self.values), count))
        self.base = self.fresh = self.stop = 0
        self.make_room(count)
        self.times[:count], self.values[:, :count] = times, values
        self.positions[: len(positions)] = positions
        self.fresh, self.stop = fresh, count

    def has_room(self, events: int) -> bool:
        """Whether so many events can be added, and another one written behind them."""
        return self.stop + events < len(self.times)

    def make_room(self, events: int) -> int:
        """Drop what is not stored any more, make room for events, and give what was dropped."""
        dropped = self.base
        count = self.stop - dropped
        # At least twice what is stored, so that events are moved once on average.
        room = max(events, count) + 1

        def moved(stored: np.ndarray, room: int) -> np.ndarray:
            found = np.empty((*stored.shape[:-1], count + room), stored.dtype)
            found[..., :count] = stored[..., dropped : self.stop]
            return found

        self.times, self.values = moved(self.times, room), moved(self.values, room + WORD)
        if self.has_positions:
            self.positions = moved(self.positions, room)
        self.base, self.fresh, self.stop = 0, self.fresh - dropped, count
        return dropped

    def first_row(self, time: int) -> int:
        """The first stored row that is not before a time."""
        if self.base == self.stop or self.times[self.base] >= time:
            return self.base
        return self.base + int(self.times[self.base : self.stop].searchsorted(time))

    @property
    def bytes(self) -> int:
        """Those that the stored events take."""
        return 8 * (1 + self.has_positions + len(self.values)) * (self.stop - self.base)
