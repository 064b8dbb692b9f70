"""Slices of a stream, each with the events around it on which what is found in it depends."""

from __future__ import annotations

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.patterns.model import Pattern
from cepbench.patterns.reach import looks_back
from cepbench.streams.event_stream import EventStream

#: The next events, and what is reported of each instead of its position.
Batch = tuple[EventStream, pa.Array | None]

#: From what a task gets, the places of parts in the list of all, and the events of each.
Reader = Callable[[Iterator[pa.RecordBatch]], Iterator[tuple[int, Iterable[Batch]]]]


@dataclass(frozen=True)
class Slice:
    """A part of the stream in time, and of the values of a key."""

    number: int
    #: In ticks: from ``start`` on and before ``end``. The first slice has no start, the last no end.
    start: int | None
    end: int | None
    plan: Any = None
    of_key: int = 0  #: which of how many parts of the values of the key
    parts: int = 1

    def has(self, times: np.ndarray) -> np.ndarray:
        """Which times are in it; an array of bool."""
        return _between(times, self.start, self.end)

    def __str__(self) -> str:
        return f"slice {self.number}"


@dataclass
class Budget:
    """How long a slice may take before it is cut, which leaves a rest to others."""

    seconds: float
    #: The least length of a rest, in ticks: that of a shorter one is not worth the events around it.
    least: int = 1
    cut: int | None = None  #: once it was cut: its new end, in ticks, where the rest starts
    _began: float = field(default_factory=time.perf_counter)

    def after(self, part: Slice, events: EventStream) -> Slice:
        """The slice once these events are processed: with an earlier end if the time is over."""
        next_time = int(events.timestamps[-1]) + 1
        if (
            self.cut is None
            and time.perf_counter() - self._began >= self.seconds
            and (part.start is None or next_time > part.start)
            and (part.end is None or next_time + self.least <= part.end)
        ):
            self.cut = next_time
            return replace(part, end=next_time)
        return part


class Slicer(ABC):
    """What is found in each slice of a stream."""

    pattern: Any
    #: An attribute by whose values the events of a slice are divided before it gets them.
    key: str | None = None
    #: How many windows before a slice the matches that it is to find may begin, and after it end.
    spans: ClassVar[tuple[int, int]]

    @property
    def queries(self) -> Mapping[str, Pattern]:
        """The patterns of a workload by name; of one pattern it alone."""
        its: Mapping[str, Pattern] = self.pattern.queries
        return its

    @property
    def types(self) -> list[str] | None:
        """The types of the events that are needed; None for all."""
        return None

    @property
    def names_events(self) -> bool:
        """Whether what is found names events."""
        return False

    @cached_property
    def looks_back(self) -> bool:
        """Whether a match may depend on events before its first one, of another window."""
        return any(map(looks_back, self.queries.values()))

    @cached_property
    def lead(self) -> int:
        """How long before a slice the events begin on which it depends, in ticks."""
        its = self.queries.values()
        return max((self.spans[0] + looks_back(one)) * one.window.length for one in its)

    @cached_property
    def tail(self) -> int:
        """How long after the last tick of a slice its matches may end, in ticks."""
        return self.spans[1] * max(its.window.length for its in self.queries.values())

    def reach(self, part: Slice) -> tuple[int | None, int | None]:
        """From when on and before when are the events that a slice needs, in ticks."""
        first = None if part.start is None else part.start - self.lead
        last = None if part.end is None else part.end + self.tail
        return first, last

    def events_of(self, part: Slice, times: np.ndarray) -> np.ndarray:
        """Which events a slice needs, by their times in ticks; an array of bool."""
        return _between(times, *self.reach(part))

    @abstractmethod
    def schema(self, nothing: EventStream, names: pa.DataType | None) -> pa.Schema:
        """The columns of what is found, for such events and the type of their names."""

    @abstractmethod
    def found(
        self, part: Slice, batches: Iterable[Batch], budget: Budget | None = None
    ) -> Iterator[pa.Table]:
        """What is found in a slice.

        Parameters
        ----------
        batches : iterable of (EventStream, Array or None)
            The events of the slice in the order of time, see :meth:`events_of`, and what is reported
            of each: its position in the whole stream, or an identifier. None if none is named.
        budget : Budget, optional
            When it is used up, a slice of which matches are found ends after the events processed so
            far; they are those of the slice until there.
        """


def selection(pattern: Pattern) -> str:
    """The clause by which a match depends on all earlier ones."""
    return f"OUTPUT {pattern.output}" if pattern.output != "all" else f"STRATEGY {pattern.strategy}"


def part_of(values: np.ndarray, parts: int) -> np.ndarray:
    """The part of each event by its value of a key: equal values are of one part."""
    if values.dtype != object:
        values = values.astype(np.float64) + 0.0  # as they are compared; and −0 is 0
    return pd.util.hash_array(values) % np.uint64(parts)


def cut(starts: Iterable[int]) -> Iterator[tuple[int | None, int | None]]:
    """Start and end of each slice between these times."""
    return itertools.pairwise([None, *starts, None])


def _between(times: np.ndarray, start: int | None, end: int | None) -> np.ndarray:
    """Which times are from ``start`` on and before ``end``."""
    inside = np.ones(len(times), bool)
    if start is not None:
        inside &= times >= start
    if end is not None:
        inside &= times < end
    return inside
