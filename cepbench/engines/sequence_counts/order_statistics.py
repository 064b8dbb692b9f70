"""The state of a count of compared neighbours: the events in the window, by partition."""

from __future__ import annotations

from functools import cache

import numpy as np

from cepbench.engines.sequence_counts.integers import integers
from cepbench.engines.sequence_counts.kernels import tables
from cepbench.engines.sequence_counts.kernels.order_statistics import (
    COUNTED,
    FIRST,
    HALF_BITS,
    ITEMS,
    PARTITION_COLUMNS,
    PEAK,
    STORED,
    Comparisons,
    Table,
    count_compared,
)
from cepbench.kernels.instructions import compares
from cepbench.state import Stateful, check_shape

#: Where a scan of the window for each event takes less time than trees, as measured: so few events are stored,
#: or so few are new.
SHORT, FEW = 100, 22

#: Two neighbours: the columns of the earlier and of the later event, and the operator with the later one on its
#: left.
Compared = tuple[int, int, int]


class ComparedWindow(Stateful):
    """The events in the window of each partition, with what precedes and follows them in matches.

    Parameters
    ----------
    begins : int64 (items,)
        The flag of the events of each of two or three items.
    compared : (Compared or None, Compared or None)
        The first item and the middle one, which is the second one of two; and the middle one and the last one.
    window : int
    counts_window : bool
        Whether values are the matches in the window, else those that an event completes.
    weighted : int
        The item whose events have weights; -1 for none.
    """

    SAVED = ("_sizes", "_times", "_items", "_values", "_weights", "_numbers", "_totals")

    def __init__(
        self,
        begins: np.ndarray,
        compared: tuple[Compared | None, Compared | None],
        window: int,
        *,
        counts_window: bool,
        weighted: int = -1,
    ) -> None:
        before, behind = compared
        own = [before and before[0], None, behind and behind[1]]
        own[1] = before[1] if before else behind and behind[0]
        self._begins = begins
        self._columns = [*dict.fromkeys(its for its in own if its is not None)]
        none = len(self._columns)
        places = [none if its is None else self._columns.index(its) for its in own]
        users = np.zeros(none, np.int64)
        for item, place in enumerate(places):
            if place < none:
                users[place] |= 1 << item
        self._plan = Comparisons(
            items=len(begins),
            passes=np.array(
                [
                    _passes(before and before[2], is_later=False),
                    _passes(behind and behind[2], is_later=True),
                ]
            ),
            users=users,
            places=np.array(places),
            window=window,
            counts_window=counts_window,
            weighted=1 << weighted if weighted >= 0 else 0,
            short=SHORT,
            few=FEW,
        )
        #: Matches since they were taken last, as ``_totals`` of each partition.
        self._found = np.zeros((1, 2), np.int64)
        self._sizes = np.zeros(0, np.int64)
        self._times = np.zeros(0, np.int64)
        self._items = np.zeros(0, np.int64)
        self._values = np.zeros((none, 0))
        self._weights = np.zeros(0, np.int64)
        self._numbers = np.zeros((2, 0), np.int64)
        self._totals = np.zeros((0, PARTITION_COLUMNS), np.int64)

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._sizes)

    def add(self, number: int) -> None:
        """Add so many partitions without events."""
        self._sizes = np.append(self._sizes, np.zeros(number, np.int64))
        self._totals = np.append(
            self._totals, np.zeros((number, PARTITION_COLUMNS), np.int64), axis=0
        )

    def keep(self, partitions: np.ndarray) -> None:
        """Keep some partitions, numbered anew."""
        places = np.full(len(self._sizes), -1)
        places[partitions] = np.arange(len(partitions))
        its = np.repeat(places, self._sizes)
        self._keep_rows(np.argsort(its, kind="stable")[np.count_nonzero(its < 0) :])
        self._sizes, self._totals = self._sizes[partitions], self._totals[partitions]

    def are_active(self, earliest: int) -> np.ndarray:
        """Whether each partition has events from some time on."""
        found = self._sizes > 0
        found[found] = self._times[np.cumsum(self._sizes)[found] - 1] >= earliest
        return found

    def peaks(self) -> np.ndarray:
        """The maximum number of events, and of their counters, one for either direction, since this was asked
        last, each summed over partitions.
        """
        events = int(self._totals[:, PEAK].sum())
        self._totals[:, PEAK] = self._totals[:, STORED]
        return np.array([events, (1 + self._plan.counts_window) * events])

    @property
    def bytes(self) -> int:
        """The size of its state."""
        return self.state_bytes()

    def take(self) -> int:
        """The number of matches since this was asked last."""
        low, high = self._found[0].tolist()
        self._found[:] = 0
        return int(low + (high << HALF_BITS))

    def push(self, events: tables.Events, samples: int) -> tuple[np.ndarray, np.ndarray]:
        """Process some events; see :meth:`~cepbench.engines.sequence_counts.windows.CountingWindow.push`.

        The numbers are those of the first events, and of the events that enter trees, once for each item.
        """
        rows, fresh = events.rows, np.zeros_like(self._sizes)
        fresh[events.parts] = np.diff(events.spans)
        spans = np.append(0, np.cumsum(self._sizes + fresh))
        behind_old = spans[:-1] + self._sizes
        number = len(self._times)
        # Where the events stored and then the new ones go, by partition.
        order: np.ndarray | slice = slice(None)
        if len(fresh) > 1:
            partitions = np.arange(len(fresh))
            both = np.append(np.repeat(partitions, self._sizes), np.repeat(partitions, fresh))
            order = np.argsort(both, kind="stable")

        def merged(stored: np.ndarray, more: np.ndarray) -> np.ndarray:
            return np.concatenate((stored, more), axis=-1)[..., order]

        flags, values = events.flags[rows], events.values[self._columns][:, rows]
        items = np.zeros(len(rows), np.int64)
        for item, begin in enumerate(self._begins.tolist()):
            items |= ((flags & begin) != 0).astype(np.int64) << item
        for users, are_missing in zip(self._plan.users.tolist(), np.isnan(values), strict=True):
            if are_missing.any():
                items[are_missing] &= ~users
        items[(flags & tables.COUNTED) != 0] |= COUNTED
        times = events.times[rows]
        entered = items[times < events.until] & ITEMS
        weights = self._weights
        if self._plan.weighted:
            weights = merged(weights, events.weights[rows])
        sampled = events.samples if samples else np.full(len(rows), -1)
        table = Table(
            spans=spans,
            fresh=behind_old,
            until=events.until,
            times=merged(self._times, times),
            items=merged(self._items, items),
            values=np.ascontiguousarray(merged(self._values, values)),
            weights=weights,
            numbers=np.ascontiguousarray(merged(self._numbers, np.zeros((2, len(rows)), np.int64))),
            samples=merged(np.full(number, -1), sampled),
        )
        out = np.zeros((samples, 3), np.int64)
        kept = count_compared(self._plan, table, self._totals, self._found, out)
        self._times, self._items, self._values = table.times, table.items, table.values
        self._weights, self._numbers = table.weights, table.numbers
        self._sizes = np.diff(np.append(0, np.cumsum(kept))[spans])
        self._keep_rows(np.flatnonzero(kept))
        begun = np.count_nonzero(entered & FIRST)
        return integers(out), np.array([begun, np.bitwise_count(entered).sum(), 0], np.int64)

    def resumed(self) -> None:
        """All arrays are of the same events."""
        number = int(self._sizes.sum())
        check_shape("times", self._times, (number,))
        check_shape("items", self._items, (number,))
        check_shape("values", self._values, (len(self._columns), number))
        check_shape("weights", self._weights, (number if self._plan.weighted else 0,))
        check_shape("numbers", self._numbers, (2, number))
        check_shape("totals", self._totals, (len(self._sizes), PARTITION_COLUMNS))

    def _keep_rows(self, rows: np.ndarray) -> None:
        self._times, self._items = self._times[rows], self._items[rows] & ~COUNTED
        self._values, self._numbers = self._values[:, rows], self._numbers[:, rows]
        if self._plan.weighted:
            self._weights = self._weights[rows]


def _passes(operator: int | None, *, is_later: bool) -> list[int]:
    """Whether an event with a smaller, an equal and a greater value than the middle one's passes; the
    later one is left of the operator.
    """
    if operator is None:
        return [1, 1, 1]
    pairs = ((0.0, 1.0), (0.0, 0.0), (1.0, 0.0))
    found = [
        compares(operator, one, two) if is_later else compares(operator, two, one)
        for one, two in pairs
    ]
    return [*map(int, found)]


@cache
def warm_up() -> None:
    """Compile the kernel, or load it from the disk cache."""
    none = np.zeros(0, np.int64)
    window = ComparedWindow(np.array([1, 2]), (None, None), 1, counts_window=False)
    window.push(
        tables.Events(none, none, none, np.zeros((0, 0)), np.zeros(1, int), 0, none, none, none), 0
    )
