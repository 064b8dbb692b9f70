"""Detection in slices of a stream, each with the events around it on which its matches depend.

A match belongs to the slice of its earliest event, so that the matches of all slices are those of one
pass, each once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from cepbench.engines.detection.detector import WINDOWS_KEPT
from cepbench.engines.detection.workload_detector import Detector
from cepbench.engines.runs.arrow_matches import arrow_table, taken
from cepbench.engines.runs.matches import BranchMatches, Found, matches_by_branch, no_matches
from cepbench.engines.runs.returned import returned_table
from cepbench.engines.runs.slices import Batch, Budget, Slice, Slicer, selection
from cepbench.errors import UnsupportedPatternError, errors_at
from cepbench.patterns.model import Pattern
from cepbench.patterns.reach import shared_keys
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload, of_queries
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

#: Events of a batch for a detector.
_BATCH = 20_000


@dataclass(frozen=True)
class SliceDetection(Slicer):
    """The matches that begin in each slice, or their number; checked on construction.

    An UnsupportedPatternError if equalities do not tie all variables to the dividing ``key``.
    """

    pattern: Pattern | Workload
    evaluator: str | Mapping[str, str] | None = None  #: of a workload maybe one of each query
    counts: bool = False
    key: str | None = None

    spans = 0, 1

    def __post_init__(self) -> None:
        if self.key is not None:
            check_key(self.pattern, self.key)
        for pattern in self.queries.values():
            if pattern.selects and self.key is None and not self.keys:
                raise UnsupportedPatternError(
                    f"{selection(pattern)}: a match depends on all earlier matches, so the stream cannot "
                    "be cut in time, and no attribute divides it; use cep.evaluate, which takes the "
                    "stream in one pass, or write WHERE [attribute], which divides it by that attribute"
                )

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The attributes that divide the stream."""
        return keys_of(self.pattern)

    @property
    def by_time(self) -> bool:
        """Whether the stream can be cut in time: whether matches do not depend on earlier ones."""
        return not any(its.selects for its in self.queries.values())

    @cached_property
    def types(self) -> list[str] | None:
        return types_of_matches(self.pattern)

    @property
    def names_events(self) -> bool:
        return not self.counts and any(
            not its.returns or any(isinstance(column.value, str) for column in its.returns)
            for its in self.queries.values()
        )

    def schema(self, nothing: EventStream, names: pa.DataType | None) -> pa.Schema:
        if self.counts:
            return counts_schema(self.pattern)
        return matches_schema(self.pattern, nothing, names)

    def found(
        self, part: Slice, batches: Iterable[Batch], budget: Budget | None = None
    ) -> Iterator[pa.Table]:
        """The matches of a slice, or their number, from batches of any size."""
        pieces = (
            (stream[row : row + _BATCH], None if names is None else names[row : row + _BATCH])
            for stream, names in batches
            for row in range(0, len(stream), _BATCH)
        )
        if self.counts:
            yield self.count(part, pieces, budget)
        else:
            yield from self.matches(part, pieces, budget)

    def matches(
        self, part: Slice, batches: Iterable[Batch], budget: Budget | None = None
    ) -> Iterator[pa.Table]:
        """The matches of a slice as they are found, in tables of :func:`matches_schema`; errors name it."""
        with errors_at(str(part)):
            run = _Run(self.detector(part.plan), self.queries)
            for step in self._steps(part, batches, budget):
                owned = run.owned(*step)
                if any(len(its) for parts in owned.values() for its in parts):
                    yield run.table(owned)

    def count(
        self, part: Slice, batches: Iterable[Batch], budget: Budget | None = None
    ) -> pa.Table:
        """The number of matches of a slice: a row of :func:`counts_schema`; errors name it.

        ``events`` are its own, ``copied`` the others that it needs, ``seconds`` the time in its detectors.
        """
        with errors_at(str(part)):
            if self.lead:
                return self._listed(part, batches, budget)
            # No match of the events from the slice on begins before it, and what begins after it
            # are the matches of the events after it.
            both = [self.detector(part.plan, output="count") for _ in range(2)]
            found, events = Counter[str](), [0, 0]
            for now, stream, _ in self._steps(part, batches, budget):
                if stream is None:
                    break
                after = len(stream)
                if now.end is not None:
                    after = int(np.searchsorted(stream.timestamps, now.end))
                for number, its in enumerate((stream, stream[after:])):
                    if len(its):
                        self._add(found, both[number].take(its), 1 - 2 * number)
                        events[number] += len(its)
            for number, detector in enumerate(both):
                if events[number]:
                    self._add(found, detector.finish(), 1 - 2 * number)
            seconds = sum(detector.metrics().seconds for detector in both)
            return self._row(part, events[0] - events[1], events[1], found, seconds)

    def _listed(self, part: Slice, batches: Iterable[Batch], budget: Budget | None) -> pa.Table:
        """As :meth:`count`, by listing the matches."""
        found, own, events = Counter[str](), 0, 0
        run = _Run(self.detector(part.plan), self.queries)
        for now, stream, names in self._steps(part, batches, budget):
            owned = run.owned(now, stream, names)
            found.update({query: sum(map(len, parts)) for query, parts in owned.items()})
            if stream is not None:
                events += len(stream)
                own += int(now.has(stream.timestamps).sum())
        return self._row(part, own, events - own, found, run.detector.metrics().seconds)

    def _add(self, counted: Counter[str], found: Any, sign: int) -> None:
        """Add what a detector found to the numbers of matches."""
        for query, its in by_query(found).items():
            counted[query] += sign * its.number

    def _row(
        self, part: Slice, events: int, copied: int, found: Mapping[str, int], seconds: float
    ) -> pa.Table:
        numbers: Any = {query: found[query] for query in self.queries}
        values = (part.number, events, copied, numbers.get("", numbers), seconds)
        return pa.table([[its] for its in values], schema=counts_schema(self.pattern))

    def _steps(
        self, part: Slice, batches: Iterable[Batch], budget: Budget | None
    ) -> Iterator[tuple[Slice, EventStream | None, pa.Array | None]]:
        """The slice, as it is cut so far, and its next events; after the last ones None."""
        for stream, names in batches:
            if not len(stream):
                continue
            if not self.events_of(part, stream.timestamps[:1])[0]:
                break  # of a slice that was cut
            yield part, stream, names
            if budget is not None:
                part = budget.after(part, stream)
        yield part, None, None

    def detector(self, plan: Any, **options: Any) -> Detector:
        """A detector of all queries, without their RETURN."""
        patterns = {query: replace(its, returns=()) for query, its in self.queries.items()}
        plain: Any = of_queries(patterns, self.pattern.hierarchy)
        evaluator: Any = self.evaluator
        if isinstance(plan, WorkloadPlan):
            plan = replace(plan, workload=plain)
        return Detector(plain, plan, evaluator=evaluator, **options)


def by_query(found: Any) -> Mapping[str, Any]:
    """What a detector gives, by query."""
    return found if isinstance(found, Mapping) else {"": found}


def keys_of(pattern: Pattern | Workload) -> tuple[str, ...]:
    """The attributes by whose values a stream can be divided for all queries."""
    first, *others = (shared_keys(its) for its in pattern.queries.values())
    return tuple(key for key in first if all(key in keys for keys in others))


def counts_schema(pattern: Pattern | Workload) -> pa.Schema:
    """:data:`COUNTS`; of a workload ``matches`` has the number of each query."""
    if not pattern.by_query:
        return COUNTS
    numbers = pa.struct([(query, pa.int64()) for query in pattern.queries])
    return COUNTS.set(COUNTS.get_field_index("matches"), pa.field("matches", numbers))


def matches_schema(
    pattern: Pattern | Workload, events: EventStream, names: pa.DataType | None
) -> pa.Schema:
    """The columns of matches that name their events, by names of this type; ``events`` are none.

    Those of RETURN, or of :func:`cepbench.engines.runs.arrow_matches.match_schema`. Of a workload
    :data:`QUERY`, and for each query a struct of its columns, missing in matches of others.
    """
    its = None if names is None else pa.array([], names)
    tables = {}
    for query, one in pattern.queries.items():
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
    contiguous = ("contiguity" in its.strategy.name for its in pattern.queries.values())
    return None if types is None or any(contiguous) else list(types)


def check_key(pattern: Pattern | Workload, key: str) -> None:
    """An UnsupportedPatternError if equalities do not tie all variables to an attribute."""
    if any(its.strategy.name == "strict_contiguity" for its in pattern.queries.values()):
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

    def __init__(self, detector: Detector, queries: Mapping[str, Pattern]) -> None:
        self.detector = detector
        self._queries = queries
        patterns = queries.values()
        attributes = {a.name for its in patterns for col in its.returns for a in col.attributes()}
        span = max(its.window.length for its in patterns)
        self._recent = RecentEvents(attributes, WINDOWS_KEPT * span, 0)
        self._names: list[pa.Array] = []
        #: The position of the first of these.
        self._first = 0

    def owned(
        self, part: Slice, stream: EventStream | None, names: pa.Array | None
    ) -> dict[str, list[BranchMatches]]:
        """The matches by the next events, or at the end, that begin in the slice, by query and branch."""
        if stream is None:
            found: Mapping[str, Found] = by_query(self.detector.finish())
        else:
            self._recent.push(stream)
            if names is not None:
                self._names.append(names)
                while self._first + len(self._names[0]) <= self._recent.first:
                    self._first += len(self._names.pop(0))
            found = by_query(self.detector.take(stream))
        times, first = self._recent.stream.timestamps, self._recent.first
        owned = {}
        for query, its in found.items():
            if its.number:
                parts = matches_by_branch(self._queries[query], [its])
                here = (one.moved(lambda its: its - first) for one in parts)
                owned[query] = [
                    one.taken(np.flatnonzero(part.has(times[one.first_positions()])))
                    for one in here
                ]
        return owned

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
