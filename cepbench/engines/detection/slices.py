"""Detection in slices of a stream, each with the events around it on which its matches depend.

A match belongs to the slice of its earliest event, so that the matches of all slices are those of one
pass, each once.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cepbench.engines.detection.detector import WINDOWS_KEPT
from cepbench.engines.detection.workload_detector import Detector
from cepbench.engines.runs.arrow_matches import arrow_table, taken
from cepbench.engines.runs.matches import (
    BranchMatches,
    Found,
    SetColumn,
    matches_by_branch,
    no_matches,
)
from cepbench.engines.runs.returned import returned_table
from cepbench.errors import CepbenchError, UnsupportedPatternError
from cepbench.patterns.model import Pattern
from cepbench.patterns.reach import looks_back, shared_keys
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents

#: Columns of a count: a row for each slice.
COUNTS = pa.schema(
    {
        "slice": pa.int64(),
        "events": pa.int64(),
        "copied": pa.int64(),
        "matches": pa.int64(),
        "seconds": pa.float64(),
    }
)

#: The column of a workload's matches that names their query; those of each query are in a struct.
QUERY = "query"

#: The next events, and what is reported of each instead of its position.
Batch = tuple[EventStream, pa.Array | None]


@dataclass(frozen=True)
class Slice:
    """A part of the stream in time.

    Attributes
    ----------
    number : int
    start, end : int or None
        In ticks: it has the matches with an earliest event from ``start`` on and before ``end``. The
        first slice has no start, the last one no end.
    plan : OrderPlan, TreePlan, Automaton, UnionPlan, WorkloadPlan or None
    """

    number: int
    start: int | None
    end: int | None
    plan: AnyPlan | WorkloadPlan | None

    def __str__(self) -> str:
        return f"slice {self.number}"


@dataclass
class Budget:
    """How long a slice may take before it is cut, which leaves a rest to others.

    Attributes
    ----------
    seconds : float
    least : int
        The least length of a rest, in ticks: that of a shorter one is not worth the events around it.
    cut : int or None
        Once it was cut: its new end, in ticks, where the rest starts.
    """

    seconds: float
    least: int = 1
    cut: int | None = None
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


@dataclass(frozen=True)
class SliceDetection:
    """What is detected in each slice; checked on construction.

    Attributes
    ----------
    pattern : Pattern or Workload
    evaluator : str or None
    counts : bool
        Whether matches are only counted.
    key : str or None
        An attribute by whose values the stream is divided too.

    Raises
    ------
    UnsupportedPatternError
        If equalities do not tie all variables to the key.
    """

    pattern: Pattern | Workload
    evaluator: str | None = None
    counts: bool = False
    key: str | None = None

    def __post_init__(self) -> None:
        if self.key is not None:
            check_key(self.pattern, self.key)
        for pattern in self.queries.values():
            if not _can_be_cut(pattern) and self.key is None and not self.keys:
                raise UnsupportedPatternError(
                    f"{_clause(pattern)}: a match depends on all earlier matches, so the stream cannot "
                    "be cut in time, and no attribute divides it; use cep.evaluate, which takes the "
                    "stream in one pass, or write WHERE [attribute], which divides it by that attribute"
                )

    @cached_property
    def queries(self) -> Mapping[str, Pattern]:
        """The patterns of a workload by name; of one pattern it alone."""
        return queries_of(self.pattern)

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The attributes that divide the stream."""
        return keys_of(self.pattern)

    @property
    def by_time(self) -> bool:
        """Whether the stream can be cut in time: whether matches do not depend on earlier ones."""
        return all(map(_can_be_cut, self.queries.values()))

    @cached_property
    def types(self) -> list[str] | None:
        """The types of the events that matches depend on; None for all."""
        return types_of_matches(self.pattern)

    @cached_property
    def lead(self) -> int:
        """How long before a slice the events begin that its matches depend on, in ticks."""
        return max(its.window.length if looks_back(its) else 0 for its in self.queries.values())

    @cached_property
    def tail(self) -> int:
        """How long after the last tick of a slice its matches may end, in ticks."""
        return max(its.window.length for its in self.queries.values())

    def reach(self, part: Slice) -> tuple[int | None, int | None]:
        """From when on and before when are the events that a slice needs, in ticks."""
        first = None if part.start is None else part.start - self.lead
        last = None if part.end is None else part.end + self.tail
        return first, last

    def events_of(self, part: Slice, times: np.ndarray) -> np.ndarray:
        """Which events a slice needs, by their times in ticks; an array of bool."""
        return _between(times, *self.reach(part))

    def matches(
        self, part: Slice, batches: Iterable[Batch], budget: Budget | None = None
    ) -> Iterator[pa.Table]:
        """The matches of a slice, as they are found.

        Parameters
        ----------
        part : Slice
        batches : iterable of (EventStream, Array or None)
            The events of the slice in the order of time, see :meth:`events_of`, and what is reported
            of each: its position in the whole stream, or an identifier. None if the pattern's RETURN
            has no variables.
        budget : Budget, optional
            When it is used up, the slice ends after the events processed so far; the matches are
            those of the slice until there.

        Yields
        ------
        Table
            Of :func:`matches_schema`.

        Raises
        ------
        CepbenchError
            With the number of the slice in its message.
        """
        with _named(part):
            for run in self._batches(part, batches, budget):
                owned = run.owned()
                if any(len(its) for parts in owned.values() for its in parts):
                    yield run.table(owned)

    def count(
        self, part: Slice, batches: Iterable[Batch], budget: Budget | None = None
    ) -> pa.Table:
        """The number of matches of a slice: a row of :func:`counts_schema`.

        ``events`` are those of the slice, ``copied`` those of others that it needs, ``seconds`` the
        time spent in its detectors.

        Parameters and errors are those of :meth:`matches`.
        """
        with _named(part):
            if self.lead:
                return self._listed(part, batches, budget)
            # No match of the events from the slice on begins before it, and what begins after it
            # are the matches of the events after it.
            both = [self._detector(part, "count") for _ in range(2)]
            found, events = Counter[str](), [0, 0]
            for stream, _ in batches:
                if not len(stream):
                    continue
                if not self.events_of(part, stream.timestamps[:1])[0]:
                    break  # of a slice that was cut
                after = len(stream)
                if part.end is not None:
                    after = int(np.searchsorted(stream.timestamps, part.end))
                for number, its in enumerate((stream, stream[after:])):
                    if len(its):
                        self._add(found, both[number].take(its), 1 - 2 * number)
                        events[number] += len(its)
                if budget is not None:
                    part = budget.after(part, stream)
            for number, detector in enumerate(both):
                if events[number]:
                    self._add(found, detector.finish(), 1 - 2 * number)
            seconds = sum(detector.metrics().seconds for detector in both)
            return self._row(part, events[0] - events[1], events[1], found, seconds)

    def _listed(self, part: Slice, batches: Iterable[Batch], budget: Budget | None) -> pa.Table:
        """As :meth:`count`, by listing the matches."""
        found, own, events, seconds = Counter[str](), 0, 0, 0.0
        for run in self._batches(part, batches, budget):
            found.update({q: sum(map(len, parts)) for q, parts in run.owned().items()})
            if run.new is not None:
                events += len(run.new)
                own += int(_between(run.new.timestamps, run.part.start, run.part.end).sum())
            seconds = run.detector.metrics().seconds
        return self._row(part, own, events - own, found, seconds)

    def _add(self, counted: Counter[str], found: Any, sign: int) -> None:
        """Add what a detector found to the numbers of matches."""
        for query, its in by_query(found).items():
            counted[query] += sign * its.number

    def _row(
        self, part: Slice, events: int, copied: int, found: Mapping[str, int], seconds: float
    ) -> pa.Table:
        numbers: Any = {query: found[query] for query in self.queries}
        if isinstance(self.pattern, Pattern):
            (numbers,) = numbers.values()
        values = (part.number, events, copied, numbers, seconds)
        return pa.table([[its] for its in values], schema=counts_schema(self.pattern))

    def _batches(
        self, part: Slice, batches: Iterable[Batch], budget: Budget | None = None
    ) -> Iterator[_Run]:
        """A detector after each batch, and after the end of the stream."""
        run = _Run(part, self._detector(part, "matches"), self.queries)
        for stream, names in batches:
            if not len(stream):
                continue
            if not self.events_of(run.part, stream.timestamps[:1])[0]:
                break  # of a slice that was cut
            run.push(stream, names)
            yield run
            if budget is not None:
                run.part = budget.after(run.part, stream)
        run.finish()
        yield run

    def _detector(self, part: Slice, output: str) -> Detector:
        return self.detector(part.plan, output=output)

    def detector(self, plan: Any, **options: Any) -> Detector:
        """A detector of all queries, without their RETURN."""
        if isinstance(self.pattern, Pattern):
            plain: Any = replace(self.pattern, returns=())
        else:
            patterns = {query: replace(its, returns=()) for query, its in self.queries.items()}
            plain = Workload(patterns, hierarchy=self.pattern.hierarchy)
            if isinstance(plan, WorkloadPlan):
                plan = replace(plan, workload=plain)
        return Detector(plain, plan, evaluator=self.evaluator, **options)


def queries_of(pattern: Pattern | Workload) -> Mapping[str, Pattern]:
    """The patterns of a workload by name, or one of no name."""
    return pattern.patterns if isinstance(pattern, Workload) else {"": pattern}


def by_query(found: Any) -> Mapping[str, Any]:
    """What a detector gives, by query."""
    return found if isinstance(found, Mapping) else {"": found}


def keys_of(pattern: Pattern | Workload) -> tuple[str, ...]:
    """The attributes by whose values a stream can be divided for all queries."""
    first, *others = (shared_keys(its) for its in queries_of(pattern).values())
    return tuple(key for key in first if all(key in keys for keys in others))


def _can_be_cut(pattern: Pattern) -> bool:
    return pattern.strategy.name != "consuming" and pattern.output == "all"


def _clause(pattern: Pattern) -> str:
    if pattern.output != "all":
        return f"OUTPUT {pattern.output}"
    return f"STRATEGY {pattern.strategy}"


def counts_schema(pattern: Pattern | Workload) -> pa.Schema:
    """:data:`COUNTS`; of a workload ``matches`` has the number of each query."""
    if isinstance(pattern, Pattern):
        return COUNTS
    numbers = pa.struct([(query, pa.int64()) for query in pattern.patterns])
    return COUNTS.set(COUNTS.get_field_index("matches"), pa.field("matches", numbers))


def matches_schema(
    pattern: Pattern | Workload, events: EventStream, names: pa.DataType | None
) -> pa.Schema:
    """The columns of matches that name their events.

    Those of RETURN; or without it one for each positive variable, and with OR ``branch``. See
    :func:`cepbench.engines.runs.arrow_matches.match_schema`. Of a workload :data:`QUERY`, and for each
    query a struct of its columns, which is missing in matches of others.

    Parameters
    ----------
    pattern : Pattern or Workload
    events : EventStream
        Without events, but with the attributes of the pattern.
    names : DataType or None
        The type of what is reported of an event.
    """
    its = None if names is None else pa.array([], names)
    tables = {}
    for query, one in queries_of(pattern).items():
        nothing = [no_matches(branch.positive) for branch in one.branches()]
        tables[query] = named_table(one, nothing, events, its)
    return _one_table(tables).schema


def _one_table(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The matches of all queries; of a pattern its own columns."""
    if "" in tables:
        return tables[""]
    columns: dict[str, Any] = {
        QUERY: pa.array(
            [query for query, its in tables.items() for _ in range(len(its))], pa.string()
        )
    }
    for query, table in tables.items():
        own = table.combine_chunks().to_struct_array().combine_chunks()
        parts = [own if q == query else pa.nulls(len(its), own.type) for q, its in tables.items()]
        columns[query] = pa.concat_arrays(parts)
    return pa.table(columns)


def types_of_matches(pattern: Pattern | Workload) -> list[str] | None:
    """The types of the events that matches depend on; None for all."""
    types = pattern.types
    contiguous = ("contiguity" in its.strategy.name for its in queries_of(pattern).values())
    return None if types is None or any(contiguous) else list(types)


def check_key(pattern: Pattern | Workload, key: str) -> None:
    """Check that a stream can be divided by the values of an attribute.

    Raises
    ------
    UnsupportedPatternError
        If equalities do not tie all variables to it.
    """
    if any(its.strategy.name == "strict_contiguity" for its in queries_of(pattern).values()):
        raise UnsupportedPatternError(
            f"key={key!r}: under strict contiguity a match depends on events of all values; leave "
            "out key="
        )
    keys = keys_of(pattern)
    if key not in keys:
        others = f"; it can be divided by {', '.join(keys)}" if keys else ""
        raise UnsupportedPatternError(
            f"key={key!r}: matches may have events of several values of it{others}; leave "
            f"out key=, or write WHERE [{key}], which makes it equal all over a match"
        )


class _Run:
    """A detector of a slice, and the events of its last windows."""

    def __init__(self, part: Slice, detector: Detector, queries: Mapping[str, Pattern]) -> None:
        self.part = part
        self.detector = detector
        self._queries = queries
        patterns = queries.values()
        attributes = {a.name for its in patterns for col in its.returns for a in col.attributes()}
        span = max(its.window.length for its in patterns)
        self._recent = RecentEvents(attributes, WINDOWS_KEPT * span, 0)
        self._names: list[pa.Array] = []
        #: The position of the first of these.
        self._first = 0
        self._found: Mapping[str, Found] = {}
        #: The last batch; None after the end.
        self.new: EventStream | None = None

    def push(self, stream: EventStream, names: pa.Array | None) -> None:
        self.new = stream
        self._recent.push(stream)
        if names is not None:
            self._names.append(names)
            while self._first + len(self._names[0]) <= self._recent.first:
                self._first += len(self._names.pop(0))
        self._found = by_query(self.detector.take(stream))

    def finish(self) -> None:
        self.new = None
        self._found = by_query(self.detector.finish())

    def owned(self) -> dict[str, list[BranchMatches]]:
        """The new matches of each query and branch whose first event is in the slice, by rows kept."""
        return {query: self._owned(query, its) for query, its in self._found.items() if its.number}

    def _owned(self, query: str, found: Found) -> list[BranchMatches]:
        recent, part = self._recent, self.part
        times = recent.stream.timestamps
        parts = [
            moved(its, -recent.first) for its in matches_by_branch(self._queries[query], [found])
        ]
        return [
            its.taken(np.flatnonzero(_between(times[its.first_positions()], part.start, part.end)))
            for its in parts
        ]

    def table(self, owned: Mapping[str, Sequence[BranchMatches]]) -> pa.Table:
        names = None
        if self._names:
            self._names = [pa.concat_arrays(self._names)]
            names = self._names[0].slice(self._recent.first - self._first)
        tables = {}
        for query, pattern in self._queries.items():
            its = owned.get(query) or [no_matches(branch.positive) for branch in pattern.branches()]
            tables[query] = named_table(pattern, its, self._recent.stream, names)
        return _one_table(tables)


def named_table(
    pattern: Pattern,
    matches: Sequence[BranchMatches],
    events: EventStream,
    names: pa.Array | None,
) -> pa.Table:
    """Matches given by rows of events, with the names of these."""
    table = arrow_table(pattern, matches)
    variables = set(table.column_names) - {"branch"} | set(pattern.positive_names)
    if pattern.returns:
        table = returned_table(table, pattern, events)
        variables = {its.name for its in pattern.returns if isinstance(its.value, str)}
    columns: Mapping[str, Any] = {
        name: taken(names, table.column(name).combine_chunks())
        if name in variables
        else table.column(name)
        for name in table.column_names
    }
    return pa.table(columns)


def moved(part: BranchMatches, by: int) -> BranchMatches:
    """Matches with other positions of the same events."""
    chunks = [
        [
            SetColumn(column.offsets, column.positions + by)
            if isinstance(column, SetColumn)
            else column + by
            for column in chunk
        ]
        for chunk in part.chunks
    ]
    return BranchMatches(part.names, chunks)


def _between(times: np.ndarray, start: int | None, end: int | None) -> np.ndarray:
    """Which times are from ``start`` on and before ``end``."""
    inside = np.ones(len(times), bool)
    if start is not None:
        inside &= times >= start
    if end is not None:
        inside &= times < end
    return inside


@contextmanager
def _named(part: Slice) -> Iterator[None]:
    """Errors say in which slice they arose."""
    try:
        yield
    except CepbenchError as error:
        error.args = (f"{part}: {error}", *error.args[1:])
        raise


def cut(starts: Iterable[int]) -> Iterator[tuple[int | None, int | None]]:
    """Start and end of each slice between these times."""
    return itertools.pairwise([None, *starts, None])
