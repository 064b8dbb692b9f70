"""ORDER BY arrival: times by which events of one timestamp follow each other in the order of the stream.

All that reads events compares one time of each, for the order of items as for the window. So events
are *stamped* instead: the stamp of an event is its timestamp, counted in units from an origin, times
``slots``, plus its rank among the events of that timestamp. For timestamps d units apart, of ranks r
and s < ``slots`` / 2, stamps differ by d · slots + s - r. Within a window of w units that is at most
w · slots + slots / 2 - 1, which is the window of stamps, and beyond it at least (w + 1) · slots -
(slots / 2 - 1), which is more. A half-open window is a closed one a tick shorter before that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cepbench.errors import StreamError
from cepbench.patterns.expressions import HIGH_PART, LOW_PART
from cepbench.patterns.model import Pattern, Window
from cepbench.patterns.times import in_ticks
from cepbench.streams.columns import AttributeColumn
from cepbench.streams.event_stream import EventStream

#: Stamps are smaller, so that arithmetic with two windows fits 64 bits.
_MOST = 2**61

#: In longer windows of stamps the unit is as large as it can be, as sums of the times for which partial
#: matches are stored are to fit.
_LONG = 2**45

#: The least slots on a stream that arrives in batches, and those for each event of the most frequent
#: timestamp of its first batch.
_SLOTS, _SLOTS_OF_TIE = 2**12, 8

#: The unit on such a stream of datetimes, in nanoseconds, unless it begins with finer ones.
_MICROSECOND = 1000


@dataclass(frozen=True)
class ArrivalClock:
    """Stamps the events of a stream, batch by batch."""

    #: The first timestamp.
    origin: int = 0
    #: In ticks of timestamps; it divides all that are stamped, from the origin on.
    unit: int = 1
    #: Stamps of each unit.
    slots: int = _SLOTS
    #: The timestamp of the last event stamped.
    last: int | None = None
    #: Its rank.
    rank: int = 0

    @classmethod
    def of(cls, stream: EventStream, patterns: Iterable[Pattern]) -> Self:
        """The clock of a whole stream."""
        times = stream.timestamps
        if not len(times):
            return cls()
        origin, slots = int(times[0]), 2 * (1 + int(_ranks(times).max()))
        span, unit = int(times[-1]) - origin, 1
        longest = max(pattern.window.length for pattern in patterns)
        if longest * slots >= _LONG or (span + 1) * slots >= _MOST:
            unit = int(np.gcd.reduce((times - origin).view(np.uint64))) or 1
        if span >= _MOST or (span // unit + 1) * slots >= _MOST:
            raise StreamError(
                f"ORDER BY arrival: {span:,} ticks from the first event to the last, of which "
                f"{slots // 2:,} share a timestamp, are too many for integers of 64 bits; round the "
                "timestamps, or detect in parts of the stream"
            )
        return cls(origin, unit, slots)

    @classmethod
    def live(
        cls, patterns: Iterable[Pattern], first: EventStream | None = None, *, asked: bool = False
    ) -> Self:
        """The clock of a stream that arrives in batches, from the first one, if it is known.

        With ``asked`` it is one by which all patterns have the same :meth:`asked`.
        """
        windows = [pattern.window for pattern in patterns]
        in_microseconds = all(its.is_datetime for its in windows)
        if asked and len({its.length % _MICROSECOND for its in windows}) > 1:
            in_microseconds = False
        times = np.zeros(1, np.int64) if first is None else first.timestamps
        in_microseconds = in_microseconds and not (times % _MICROSECOND).any()
        return cls(
            int(times[0]),
            _MICROSECOND if in_microseconds else 1,
            max(_SLOTS, _SLOTS_OF_TIE * (1 + int(_ranks(times).max()))),
        )

    def stamped(self, batch: EventStream) -> tuple[EventStream, Self]:
        """The next events with stamps for times, and the clock after them.

        A StreamError if a timestamp is no whole number of units, has too many events, or is too
        late.
        """
        times = batch.timestamps
        if not len(times):
            return replace(batch, is_datetime=False), self
        ranks = _ranks(times)
        if times[0] == self.last:
            # Events of the last timestamp before count on from its rank.
            ranks[: np.searchsorted(times, times[0], "right")] += self.rank + 1
        self._check(times, ranks)
        stamps = times - self.origin
        if self.unit > 1:
            stamps //= self.unit
        stamps *= self.slots
        stamps += ranks
        after = replace(self, last=int(times[-1]), rank=int(ranks[-1]))
        attributes = _with_time(batch)
        return replace(batch, timestamps=stamps, is_datetime=False, attributes=attributes), after

    def _check(self, times: np.ndarray, ranks: np.ndarray) -> None:
        span = int(times[-1]) - self.origin
        if span >= _MOST or (span // self.unit + 1) * self.slots >= _MOST:
            most = _MOST // self.slots * self.unit
            raise StreamError(
                f"ORDER BY arrival: the time {times[-1]} is more than {most:,} ticks after the first "
                "event, the most for integers of 64 bits; begin anew, one window before this batch"
            )
        if self.unit > 1 and (uneven := (times - self.origin) % self.unit).any():
            raise StreamError(
                f"ORDER BY arrival: the time {times[np.flatnonzero(uneven)[0]]} is not in whole units of "
                f"{self.unit} nanoseconds, as all times of the first batch are; round it, or begin with a "
                "batch that has such times"
            )
        if ranks.max() >= self.slots // 2:
            time = times[np.argmax(ranks >= self.slots // 2)]
            raise StreamError(
                f"ORDER BY arrival: the time {time} has more than {self.slots // 2:,} events, the most "
                "after this first batch; begin with a batch that has so many, or take the whole stream "
                "at once"
            )

    def pattern(self, pattern: Pattern) -> Pattern:
        """The pattern in the order of time that has the same matches on stamped events."""
        length = pattern.window.length // self.unit * self.slots + self.slots // 2 - 1
        # Stamps of no stream differ by more.
        window = Window(min(length, _MOST), "units")
        conditions = tuple(map(in_ticks, pattern.conditions))
        return replace(pattern, order="time", window=window, conditions=conditions)

    def asked(self, time: int, window: Window) -> int:
        """The stamp after all events of a time, before which a window has the events that it has
        before the time.

        Only where :meth:`check_windows` passes.
        """
        units, rest = divmod(time - self.origin, self.unit)
        units += rest > window.length % self.unit
        return min(units * self.slots + self.slots // 2 - 1, 2 * _MOST)

    def check_windows(self, patterns: Iterable[Pattern]) -> None:
        """Check that no window is longer than all that can be stamped, or raise a StreamError."""
        for its in patterns:
            if self.pattern(its).window.length >= _MOST:
                raise StreamError(
                    f"ORDER BY arrival: WITHIN {its.window} is longer than the "
                    f"{_MOST // self.slots * self.unit:,} ticks that fit integers of 64 bits; use a "
                    "shorter window, or round the timestamps to microseconds"
                )

    def times(self, stamps: np.ndarray) -> np.ndarray:
        """The timestamps of stamped events."""
        return stamps // self.slots * self.unit + self.origin

    def is_like(self, other: ArrivalClock) -> bool:
        """Whether a pattern is the same by both clocks."""
        return (self.unit, self.slots) == (other.unit, other.slots)

    def restarted(self) -> Self:
        """The clock before any event."""
        return replace(self, last=None, rank=0)


def in_time(pattern: Pattern, stream: EventStream) -> tuple[Pattern, EventStream]:
    """A pattern in the order of time, and a stream, with the same matches; themselves if it is that."""
    if pattern.order == "time":
        return pattern, stream
    clock = ArrivalClock.of(stream, [pattern])
    return clock.pattern(pattern), clock.stamped(stream)[0]


def _with_time(batch: EventStream) -> Mapping[str, AttributeColumn]:
    """The attributes, and what conditions on time read, which the stamps are not."""
    name = batch.time_name
    if not (name and batch.is_time(name)):
        return batch.attributes
    read = (name, HIGH_PART + name, LOW_PART + name)
    return {**batch.attributes, **{its: batch.column(its) for its in read}}


def _ranks(times: np.ndarray) -> np.ndarray:
    """The rank of each event among those of its timestamp."""
    ranks = np.zeros(len(times), np.int64)
    if len(times) == 1:
        return ranks
    tied = times[1:] == times[:-1]
    rows = np.flatnonzero(tied) + 1
    if len(rows) > len(times) // 2:
        firsts = np.append(0, np.flatnonzero(~tied) + 1)
        return np.arange(len(times)) - np.repeat(firsts, np.diff(firsts, append=len(times)))
    # If there are few, only these are numbered.
    firsts = np.flatnonzero(np.diff(rows, prepend=-1) > 1)
    sizes = np.diff(firsts, append=len(rows))
    ranks[rows] = 1 + np.arange(len(rows)) - np.repeat(firsts, sizes)
    return ranks
