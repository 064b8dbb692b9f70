"""Sums over matches, in which an event weighs its value: by counts in which it weighs a digit of that.

A sum over matches is linear in the values of an item's events, and a value is a sum of digits times powers of
2^20. So for each such power there is a count by integers of 64 bits (:class:`ComparedWindow`), from the first event
that has a digit there to the last one in the window, and the sum of all is exact. Of floats the digits are those of
their binary fractions or, where that is the same float, of ten thousandths, for decimals have few of these.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cepbench.engines.aggregation.semirings import LARGEST, SMALLER, Total, largest_sum
from cepbench.engines.sequence_counts.integers import narrowed
from cepbench.engines.sequence_counts.kernels.tables import Events
from cepbench.engines.sequence_counts.order_statistics import ComparedWindow
from cepbench.errors import StreamError
from cepbench.state import Stateful

#: Bits of a digit, and the bits of a float that are more than its unit at least: 2^-41 is less than 10^-12.
_BITS, _PRECISE = 20, 41
_MASK = np.uint64((1 << _BITS) - 1)

#: The events that a partition may have in a window. Of n events none is in more than n^2 matches, in a SEQ as its first
#: or last event, in an AND also as a middle one; so they weigh less than 2^20 n^2 = 2^62, which is what a kernel adds to
#: a sum at once. Whatever else it computes is right modulo 2^64.
MOST_EVENTS = 1 << 21

#: Units of a value for which decimals are looked up.
_PARTS = 1e4

#: The place of infinite values, far beyond those of all others, and two places on of negative ones.
_INFINITE = 1 << 12


class DigitWindow(Stateful):
    """The sum of an item's values over the matches in the window, by partition; or the number of missing ones, below 0.

    Parameters
    ----------
    total : Total
        Of kind COUNT, SUM or AVG.
    empty : ComparedWindow
        A count of no partitions.
    item : int
        The place of the item whose events have values.
    flag : int
        The flag of these events.
    is_float : bool
        Whether the values are floats.
    """

    SAVED = ("_places", "_counts", "_origin")

    def __init__(
        self, total: Total, empty: ComparedWindow, item: int, flag: int, *, is_float: bool
    ) -> None:
        self._empty, self._item, self._flag = empty, item, flag
        self._dtype = total.dtype(is_float=is_float)
        #: Whether it is the number of missing values, below 0.
        self.is_missing = total.kind == "COUNT"
        self._exponent = SMALLER if is_float and total.kind == "AVG" else 0
        #: By place, which is twice a power of 2^20, and one more if that is of ten thousandths.
        self._counts: dict[int, ComparedWindow] = {}
        #: The power of 2 at place 0, so that the largest values have no digit of a few bits.
        self._origin: int | None = None

    @property
    def _places(self) -> list[int]:
        return [*self._counts]

    @_places.setter
    def _places(self, places: list[int]) -> None:
        self._counts = {place: self._empty.weighing(self._item) for place in places}

    def add(self, number: int) -> None:
        """Add so many partitions without events."""
        for count in self._counts.values():
            count.add(number)

    def keep(self, partitions: np.ndarray) -> None:
        """Keep some partitions, numbered anew."""
        for count in self._counts.values():
            count.keep(partitions)

    def peaks(self) -> np.ndarray:
        """See :meth:`ComparedWindow.peaks`."""
        peaks = [count.peaks() for count in self._counts.values()]
        return np.array(sum(peaks, start=np.zeros(2, np.int64)))

    @property
    def bytes(self) -> int:
        """The size of its state."""
        return sum(count.bytes for count in self._counts.values())

    def push(self, events: Events, samples: int, matches: ComparedWindow) -> np.ndarray:
        """The totals of :meth:`ComparedWindow.push`; ``matches`` are those before these events.

        A StreamError if there are more than :data:`MOST_EVENTS`.
        """
        if not self.is_missing and matches.longest + len(events.rows) > MOST_EVENTS:
            raise StreamError(
                f"order-statistics adds up values of at most {MOST_EVENTS:,} events in a window, where only "
                "counts are exact; use another method, such as a-seq"
            )
        weights: dict[int, np.ndarray] = {}
        its = np.flatnonzero(events.flags & self._flag)
        for place, of_place, digits in self._digits(events.weights[its] - self.is_missing):
            if place not in weights:
                weights[place] = np.zeros(len(events.flags), np.int64)
            weights[place][its[of_place]] = digits
        nothing = np.zeros(len(events.flags), np.int64)
        totals: np.ndarray = np.zeros(samples, self._dtype)
        counts = {place: count for place, count in self._counts.items() if count.weighs}
        new = weights.keys() - counts.keys()
        counts |= {place: matches.weighing(self._item) for place in new}
        # Of floats the least ones first.
        self._counts = dict(sorted(counts.items()))
        for place, count in self._counts.items():
            its_events = events._replace(weights=weights.get(place, nothing))
            totals = self._plus(totals, count.push(its_events, samples)[0], place)
        return totals

    def _digits(self, values: np.ndarray) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """The digits of some values but 0: the place, which values have one there, and these, with their signs."""
        places = np.zeros(len(values), np.int64)
        if values.dtype == np.float64:
            for place, infinite in ((_INFINITE, np.inf), (_INFINITE + 2, -np.inf)):
                if len(found := np.flatnonzero(values == infinite)):
                    yield place, found, np.sign(infinite).astype(np.int64)
            values = np.ldexp(np.where(np.isinf(values), 0.0, values), self._exponent)
            with np.errstate(over="ignore"):
                parts = np.rint(values * _PARTS)
            are_parts = (parts / _PARTS == values) & (np.abs(parts) < 2.0**53)
            fractions, exponents = np.frexp(values)
            if self._origin is None and not are_parts.all():
                self._origin = int(exponents[~are_parts].max()) % _BITS
            units, shift = np.divmod(exponents - (self._origin or 0) - _PRECISE, _BITS)
            values = np.where(are_parts, parts, np.ldexp(fractions, shift + _PRECISE))
            values = np.rint(values).astype(np.int64)
            places = np.where(are_parts, 1, 2 * units)
        signs, rest = np.sign(values), np.abs(values).view(np.uint64)
        while rest.any():
            digits = (rest & _MASK).astype(np.int64)
            for place in np.unique(places[digits > 0]).tolist():
                found = np.flatnonzero((digits > 0) & (places == place))
                yield place, found, signs[found] * digits[found]
            rest, places = rest >> np.uint64(_BITS), places + 2

    def _plus(self, totals: np.ndarray, found: np.ndarray, place: int) -> np.ndarray:
        """Some totals and those of a place."""
        exponent = _BITS * (place >> 1)
        if self._dtype is np.float64:
            with np.errstate(over="ignore", invalid="ignore"):
                exponent += -self._exponent if place & 1 else (self._origin or 0) - self._exponent
                more = np.ldexp(found.astype(np.float64), exponent)
                return np.asarray(totals + (more / _PARTS if place & 1 else more))
        if largest_sum(totals, 1) + largest_sum(found, 1 << exponent) >= LARGEST:
            totals, found = totals.astype(object), found.astype(object)
        return narrowed(totals + (found << exponent))
