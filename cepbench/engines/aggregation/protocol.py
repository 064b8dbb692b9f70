"""The protocol of aggregation methods: a method opens a task as a run, which turns events into values.

To add one, write a module with a class of runs and an :class:`AggregationMethod`, and add it to the
tuple in :mod:`cepbench.engines.aggregation.registry`; a user-defined one is a class under
:func:`cepbench.aggregator`. The front end, :func:`cepbench.aggregate` and
:class:`cepbench.Aggregator`, checks pattern, arguments and batches, measures time, and makes tables
of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import nan
from typing import Any, NamedTuple, Protocol

import numpy as np

from cepbench.engines.runs.work import Work
from cepbench.patterns.model import Pattern
from cepbench.streams.event_stream import EventStream

#: When a row is reported.
EMITS = ("trigger", "change")

#: Which matches a value counts.
SCOPES = ("window", "trigger", "stream")

#: The values of the keys of GROUP BY; () without them.
Key = tuple[Any, ...]


@dataclass(frozen=True)
class AggregationTask:
    """The input of a run; see :class:`cepbench.Aggregator`."""

    pattern: Pattern  #: with AGG
    emit: str
    scope: str
    evaluator: str | None = None  #: for a method that lists matches: how it finds them


class Row(NamedTuple):
    """The values of a group after an event, or at a time."""

    position: int  #: of the event; -1 at a time
    time: int  #: in ticks of the stream
    key: Key
    values: tuple[Any, ...]  #: an int, a float or None (missing) for each aggregate


@dataclass(frozen=True)
class AggregateMetrics:
    """Metrics of an aggregation [qi2014]_, section 6.1.

    Attributes
    ----------
    seconds : float
        Wall-clock time, without compilation and set-up.
    events : int
        Events pushed, of any type.
    updates : int
        Changes of counters; in ``two-step`` the matches folded into one.
    peak_counters : int
        Maximum number of counters at a time.
    peak_objects : int
        Maximum number of objects: counters; in ``two-step`` the matches that count, each stored
        until it expires, plus the maximum number of buffered events.
    peak_bytes : int or float
        Maximum size of the state; NaN if not measured.
    work : Work
        What was done, in the words of :data:`~cepbench.engines.runs.work.WORDS`; of ``two-step`` by the
        evaluator.
    """

    seconds: float = 0.0
    events: int = 0
    updates: int = 0
    peak_counters: int = 0
    peak_objects: int = 0
    peak_bytes: int | float = nan
    work: Work = field(default_factory=Work)

    def __post_init__(self) -> None:
        object.__setattr__(self, "work", Work(self.work))

    @classmethod
    def of_runs(cls, listed: Sequence[AggregateMetrics]) -> AggregateMetrics:
        """Those of several runs, summed; the maxima may be of different times."""
        return cls(
            updates=sum(its.updates for its in listed),
            peak_counters=sum(its.peak_counters for its in listed),
            peak_objects=sum(its.peak_objects for its in listed),
            peak_bytes=sum(its.peak_bytes for its in listed),
            work=Work.total(its.work for its in listed),
        )

    def to_dict(self) -> dict[str, float]:
        """All by name, and the words of work."""
        plain = {name: value for name, value in vars(self).items() if name != "work"}
        return {**plain, **self.work}

    @property
    def seconds_per_slide(self) -> float:
        """Time per event, with each of which the window slides; NaN without events."""
        return self.seconds / self.events if self.events else nan


class AggregationRun(Protocol):
    """The aggregation of one task."""

    def push(self, batch: EventStream) -> Sequence[Row]:
        """Process the next events, at least one, and return the rows to report, by position.

        A list, or for speed :class:`~cepbench.engines.aggregation.rows.Rows`, which are in columns.
        """
        ...

    def value(self, time: int) -> Sequence[Row]:
        """The value of each group at a time, not before the last event; changes nothing.

        A group is seen with its first match or, if an event of the last item alone determines the
        keys, with the first of these.
        """
        ...

    def metrics(self) -> AggregateMetrics:
        """Metrics so far; the front end adds seconds and events."""
        ...

    def snapshot(self) -> dict[str, np.ndarray]:
        """The state, as arrays of numbers or text (no objects)."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a snapshot of the same task."""
        ...


@dataclass(frozen=True)
class AggregationMethod:
    """A method: its name, the constructor of its runs, and what it declares."""

    name: str
    #: Raises :class:`~cepbench.errors.UnsupportedPatternError` for a pattern that it cannot aggregate.
    open: Callable[[AggregationTask], AggregationRun]
    lists_matches: bool = False  #: whether it takes an evaluator
    expires: bool = True  #: whether events may leave the window while it runs
    #: Whether it takes patterns whose items bind events of types below theirs, and groups by types.
    concepts: bool = True
    source: str = ""  #: in the literature
    implementation: type[Any] | None = None  #: the class that a user registered

    @property
    def function(self) -> Callable[..., Any]:
        """The class that a user registered, or ``open``."""
        return self.implementation or self.open

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to cepbench."""
        return self.implementation is None
