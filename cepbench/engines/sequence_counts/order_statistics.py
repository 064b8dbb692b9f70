"""The state of a count of compared neighbours: the events in the window, by partition."""

from __future__ import annotations

from copy import copy
from functools import cache
from typing import NamedTuple

import numpy as np

from cepbench.engines.sequence_counts.integers import integers
from cepbench.engines.sequence_counts.kernels import tables
from cepbench.engines.sequence_counts.kernels.order_statistics.count import count_compared
from cepbench.engines.sequence_counts.kernels.order_statistics.extremes import maximize_compared
from cepbench.engines.sequence_counts.kernels.order_statistics.tables import (
    BARS_LAST,
    BARS_MIDDLE,
    FIRST,
    HALF_BITS,
    HIGH,
    ITEMS,
    LOW,
    MIDDLE,
    PARTITION_COLUMNS,
    PEAK,
    STORED,
    Comparisons,
    Stored,
)
from cepbench.kernels.instructions import LESS, compares
from cepbench.state import Stateful, check_shape

#: Where a scan of the window for each event takes less time than trees, as measured: so few events are stored,
#: of an AND, in which each event is a last one, half as many, or so few are new.
SHORT, FEW = 50, 22

#: By item: the numbers of middle events that its events' weights are part of.
_NUMBERS = (slice(0, 1), slice(0), slice(1, 2))

#: Two neighbours: the columns of the earlier and of the later event, and the operator with the later one on its
#: left.
Compared = tuple[int, int, int]


class Closing(NamedTuple):
    """A NOT before the last item, compared with the item before it."""

    flag: int  #: of its events
    value: int  #: their column
    compared: int  #: the column of the events before it
    operator: int  #: with the forbidden event on its left; neither EQUAL nor UNEQUAL


class ComparedWindow(Stateful):
    """The events in the window of each partition, with what precedes and follows them in matches.

    Parameters
    ----------
    begins : int64 (items,)
        The flag of the events of each of two or three items.
    compared : (Compared or None, Compared or None)
        The first item and the middle one, which is the second one of two; and the middle one and the last one.
    window : int
    prevents : int64 (items,), optional
        The flags of the events that are forbidden before each item of a SEQ but the first; by default none.
    closing : Closing, optional
    counts_window : bool
        Whether values are the matches in the window, else those that an event completes.
    is_ordered : bool
        Whether the items follow each other; else no event is both of the first and of the last item of three.
    """

    SAVED = (*(f"_stored.{name}" for name in Stored._fields), "_totals")

    def __init__(
        self,
        begins: np.ndarray,
        compared: tuple[Compared | None, Compared | None],
        window: int,
        *,
        prevents: np.ndarray | None = None,
        closing: Closing | None = None,
        counts_window: bool,
        is_ordered: bool = True,
    ) -> None:
        if prevents is None:
            prevents = np.zeros(len(begins), np.int64)
        is_alone = len(begins) == 2 and (closing is not None or bool(prevents.any()))
        if is_alone:
            begins, prevents = np.append(0, begins), np.append(0, prevents)
            compared = None, compared[0]
        before, behind = compared
        own = [before and before[0], None, behind and behind[1]]
        own[1] = before[1] if before else behind and behind[0]
        closing = closing or Closing(0, 0, 0, 0)
        columns = [*dict.fromkeys(its for its in own if its is not None)]
        if closing.flag:
            columns = [*dict.fromkeys((*columns, closing.value, closing.compared))]
        none = len(columns)
        places = [none if its is None else columns.index(its) for its in own]
        users = np.zeros(none, np.int64)
        for item, place in enumerate(places):
            if place < none:
                users[place] |= 1 << item
        kept = FIRST | MIDDLE if is_ordered else ITEMS
        for bar, flags in zip((BARS_MIDDLE, BARS_LAST), prevents[1:].tolist(), strict=False):
            kept |= bar if flags else 0
        goes_on = len(begins) == 3 and (counts_window or not is_ordered)
        self._plan = Comparisons(
            items=len(begins),
            is_ordered=is_ordered,
            kept=kept,
            goes_on=goes_on,
            is_alone=is_alone,
            waits=kept & BARS_MIDDLE > 0,
            closes=goes_on and not is_alone and (kept & BARS_LAST > 0 or closing.flag > 0),
            begins=np.array(begins, np.int64),
            prevents=np.array(prevents, np.int64),
            closing=closing.flag,
            closing_value=columns.index(closing.value) if closing.flag else 0,
            closed_value=columns.index(closing.compared) if closing.flag else 0,
            operator=closing.operator,
            columns=np.array(columns, np.int64),
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
            weighted=0,
            short=SHORT if is_ordered else SHORT // 2,
            few=FEW,
        )
        self._is_maximum = False
        #: Matches since they were taken last, as ``_totals`` of each partition.
        self._found = np.zeros((1, 2), np.int64)
        nothing = np.zeros(0, np.int64)
        self._stored = Stored(
            nothing, nothing, nothing, np.zeros((none, 0)), nothing, np.zeros((2, 0), np.int64)
        )
        self._totals = np.zeros((0, PARTITION_COLUMNS), np.int64)

    def weighing(self, item: int, *, is_maximum: bool = False) -> ComparedWindow:
        """A copy in which the events of an item have weights: 0 for those so far, whose matches are not counted.

        Its totals are sums, or the largest weights in the window (``is_maximum``), of a SEQ without ``closing`` and of
        no events so far.
        """
        its, item = copy(self), item + self._plan.is_alone
        its._is_maximum = is_maximum
        kept = self._plan.kept | ITEMS * is_maximum
        its._plan = self._plan._replace(weighted=1 << item, kept=kept)
        its._found, its._totals = np.zeros_like(self._found), self._totals.copy()
        its._totals[:, [LOW, HIGH]] = 0
        weights, numbers = np.zeros(len(self._stored.times), np.int64), self._stored.numbers.copy()
        numbers[_NUMBERS[item]] = 0
        its._stored = self._stored._replace(weights=weights, numbers=numbers)
        return its

    @property
    def weighs(self) -> bool:
        """Whether matches of events so far may weigh anything."""
        stored, item = self._stored, self._plan.weighted.bit_length() - 1
        sums = self._totals[:, [LOW, HIGH]], stored.weights, stored.numbers[_NUMBERS[item]]
        return any(its.any() for its in sums)

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._stored.sizes)

    @property
    def longest(self) -> int:
        """The most events that a partition stores."""
        return int(self._stored.sizes.max(initial=0))

    def add(self, number: int) -> None:
        """Add so many partitions without events."""
        sizes = np.append(self._stored.sizes, np.zeros(number, np.int64))
        self._stored = self._stored._replace(sizes=sizes)
        self._totals = np.append(
            self._totals, np.zeros((number, PARTITION_COLUMNS), np.int64), axis=0
        )

    def keep(self, partitions: np.ndarray) -> None:
        """Keep some partitions, numbered anew."""
        sizes, times, items, values, weights, numbers = self._stored
        places = np.full(len(sizes), -1)
        places[partitions] = np.arange(len(partitions))
        its = np.repeat(places, sizes)
        rows = np.argsort(its, kind="stable")[np.count_nonzero(its < 0) :]
        self._stored = Stored(
            sizes[partitions],
            times[rows],
            items[rows],
            np.ascontiguousarray(values[:, rows]),
            weights[rows] if self._plan.weighted else weights,
            np.ascontiguousarray(numbers[:, rows]),
        )
        self._totals = self._totals[partitions]

    def are_active(self, earliest: int) -> np.ndarray:
        """Whether each partition has events from some time on."""
        sizes = self._stored.sizes
        found = sizes > 0
        found[found] = self._stored.times[np.cumsum(sizes)[found] - 1] >= earliest
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
        out, done = np.zeros((samples, 3), np.int64), np.zeros(3, np.int64)
        sampled = events.samples if samples else np.zeros(0, np.int64)
        if self._is_maximum:
            self._stored = maximize_compared(
                self._plan, self._stored, events, sampled, self._totals, out, done
            )
            return out[:, 0], done
        self._stored = count_compared(
            self._plan, self._stored, events, sampled, self._totals, self._found, out, done
        )
        return integers(out), done

    def resumed(self) -> None:
        """All arrays are of the same events."""
        sizes, times, items, values, weights, numbers = self._stored
        number = int(sizes.sum())
        check_shape("times", times, (number,))
        check_shape("items", items, (number,))
        check_shape("values", values, (len(self._plan.columns), number))
        check_shape("weights", weights, (number if self._plan.weighted else 0,))
        check_shape("numbers", numbers, (2, number))
        check_shape("totals", self._totals, (len(sizes), PARTITION_COLUMNS))


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
def warm_up(*, is_maximum: bool = False) -> None:
    """Compile the kernel of counts and sums or that of largest weights, or load it from the disk cache."""
    none, times = np.zeros((2, 0), np.int64)
    times.flags.writeable = False  # as those of a stream
    window = ComparedWindow(np.array([1, 2]), ((0, 0, LESS), None), 1, counts_window=False)
    if is_maximum:
        window = window.weighing(0, is_maximum=True)
    spans = np.zeros(1, np.int64)
    window.push(
        tables.Events(none, times, none, np.zeros((1, 0)), spans, 0, none, none, none), samples=0
    )
