"""Joins of a sequence under contiguity: a partial match is known by its last event.

Its other events are so many events before that one, in the stream or in its partition. So a node of the plan is a flag
of each event, whether a partial match ends there, and a join looks at the flag of one event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np
import pandas as pd

from cepbench.engines.joins.engine import JoinEngine
from cepbench.engines.joins.kernels.neighbours import expire, gathered, keep, lifetimes, next_to
from cepbench.engines.plan_runs.by_type import TypeRows
from cepbench.engines.plan_runs.engine import BranchTask, Chunks, Layout, PlanEngine
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.engines.plan_runs.nodes import PlannedNodes, Tree, is_plain_chain
from cepbench.engines.plan_runs.partitions import PartitionRanks
from cepbench.engines.plan_runs.sequences import rounds_of
from cepbench.engines.runs.pieces import room_for_more
from cepbench.kernels import counts
from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.model import Attribute, Clause, Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.plans.tree import right_deep
from cepbench.state import check_shape
from cepbench.streams.event_stream import EventStream

#: Events for which there is room besides those that are stored.
_ROOM = 1024

#: Events in a round, whose arrays of 64 bits are not yet mapped one by one when they are allocated.
_ROUND = 1 << 14

#: What is stored is counted so many times a round.
_MOMENTS = 256


class _Join(NamedTuple):
    """An inner node; an event's place is how many events before the last one of the node it is."""

    driver: int  #: the child with that last event
    other: int  #: the one whose row ends at an earlier event
    ends: int  #: the place where it does
    begins: int  #: that of the node's first event
    order: (
        np.ndarray
    )  #: int64 (pairs, 2), the places of two events of which the first has to be earlier
    clauses: tuple[Clause, ...]  #: conditions on a row of each child
    places: Mapping[str, int]  #: of each variable's event


@dataclass(frozen=True, kw_only=True)
class NeighbourLayout(Layout):
    """A compiled pattern and plan."""

    joins: tuple[_Join, ...]  #: the root last
    #: int64 (joins,), the child that has the flags of each: a leaf, or, inverted, another node.
    others: np.ndarray
    readers: Mapping[str, frozenset[int]]  #: attribute → the leaves of whose events it is read


@lru_cache(maxsize=256)
def _layout(branch: Pattern, tree: Tree, *, reports: bool) -> NeighbourLayout:
    planned = PlannedNodes(branch, tree, positions=reports)
    joins = []
    readers: dict[str, set[int]] = {}
    for node in planned.nodes[planned.inner :]:
        first, last = node.variables[0], node.variables[-1]
        at = branch.positive_names.index
        places = {name: at(last) - at(name) for name in node.variables}
        driver, other = node.right, node.left
        if last not in planned.nodes[driver].variables:
            driver, other = other, driver
        ends = places[planned.nodes[other].variables[-1]]
        order = np.array([(places[x], places[y]) for x, y in node.order], np.int64)
        clauses = tuple(node.joined)
        joins.append(_Join(driver, other, ends, places[first], order, clauses, places))
        for attribute in (its for clause in clauses for its in clause.attributes()):
            readers.setdefault(attribute.name, set()).add(planned.leaf_of[attribute.variable])
    return NeighbourLayout(
        leaves=planned.branch.leaves,
        filters=tuple(planned.branch.filters.values()),
        nodes=tuple(node.variables for node in planned.nodes),
        columns=len(branch.positive) if reports else 0,
        joins=tuple(joins),
        others=np.array([j.other if j.other < planned.inner else ~j.other for j in joins]),
        readers={name: frozenset(leaves) for name, leaves in readers.items()},
    )


def joins_of(task: BranchTask) -> PlanEngine:
    """The engine that joins some branches; where latencies are measured, one that goes from timestamp to timestamp."""
    first = task.branches[0]
    is_next = "contiguity" in first.strategy.name and is_plain_chain(first)
    if is_next and not (first.negated or task.timed):
        warm_up()
        return NeighbourEngine(task)
    return JoinEngine(task)


class NeighbourEngine(PlanEngine):
    """Joins the single events of a SEQ under contiguity.

    All events of the last window are stored, whatever their types, as columns.
    """

    SAVED = ("_packed", "_counts[:]", "_peaks[:]")

    layout: NeighbourLayout

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task)
        (branch,) = task.branches
        layout = self.layout = _layout(branch, task.trees[0], reports=task.reports)
        self._window, self._items = branch.window.length, len(branch.positive)
        if branch.strategy.attribute is not None:
            self.ranks = PartitionRanks(branch.strategy.attribute, self._window, self._items - 1)
        leaves = [(leaf.type, its) for leaf, its in zip(layout.leaves, layout.filters, strict=True)]
        #: Types of leaves with conditions on single events, and by leaf the number of its own.
        self._kinds = [*dict.fromkeys(leaves)]
        self._kind_of = [*map(self._kinds.index, leaves)]
        self._types = TypeRows({kind for kind, _ in self._kinds if kind is not None})
        self._counts = np.zeros((len(layout.nodes), counts.COUNT_COLUMNS), np.int64)
        #: How many events before each of a round those of a match may be, counted from its first one.
        self._back = np.empty((self._items, 0), np.int64)
        self._packed = (
            np.empty(0, np.int64),
            np.empty((len(layout.readers), 0)),
            np.empty((len(layout.joins), 0), bool),
        )

    @property
    def _packed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the events that are stored all timestamps, values by attribute, and flags by join."""
        its = slice(self._begin, self._end)
        return self._times[its], self._values[:, its], self._flags[:, its]

    @_packed.setter
    def _packed(self, packed: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
        self._times, self._values, self._flags = packed
        self._begin, self._end = 0, len(self._times)
        check_shape("values", self._values, (len(self.layout.readers), self._end))
        check_shape("flags", self._flags, (len(self.layout.joins), self._end))
        self._stored = np.count_nonzero(self._flags, axis=1)

    def node_counts(self) -> list[NodeCounts]:
        """See :meth:`PlanEngine.node_counts`."""
        return self.counts_by_branch([range(len(self._counts))], self._window, self._counts)

    def advance(
        self, batch: EventStream | None, first_position: int, until: int
    ) -> tuple[Chunks, int]:
        """See :meth:`PlanEngine.advance`."""
        chunks, found = [], 0
        known = [] if batch is None else [*self._events_by_kind(batch)]
        for events, position in rounds_of(batch, first_position, _ROUND):
            begin, size = position - first_position, len(events)
            if self._back.shape[1] != size:
                self._back = np.arange(size) - np.arange(self._items)[:, np.newaxis]
            chosen = [
                self._back[0]
                if rows is None
                else rows[slice(*rows.searchsorted((begin, begin + size)))] - begin
                for rows in known
            ]
            matches = self._joined(events, position, [chosen[kind] for kind in self._kind_of])
            found += matches.shape[1]
            if self.task.reports and matches.shape[1]:
                chunks.append(matches)
            self._expire(size)
        return self.without_sets(chunks), found

    def _events_by_kind(self, batch: EventStream) -> Iterator[np.ndarray | None]:
        """The rows of the events that can be bound to leaves of each kind; None for all events."""
        by_type = self._types.by_type(batch) if self._types.types else {}
        for kind, filters in self._kinds:
            rows = by_type.get(kind)
            if filters:
                rows = np.arange(len(batch)) if rows is None else rows
                rows = self.fitting(batch, rows, filters) if len(rows) else rows
            yield rows

    def _joined(self, events: EventStream, position: int, chosen: list[np.ndarray]) -> np.ndarray:
        """Join the events of a round, those of each leaf; returns the positions of matches, int64 (items, matches)."""
        since = perf_counter_ns()
        self._store(events, chosen)
        begin = self._end - len(events)
        if self.ranks is None:
            places, shift = self._back, begin
        else:
            places, shift = self.ranks.of(events, self.task.reader, position), begin - position
            places[0] = self._back[0] + position
        for leaf, its in enumerate(chosen):
            self._counts[leaf, counts.CREATED] += len(its)
        for number, join in enumerate(self.layout.joins):
            node = len(chosen)
            flags, others = self._flags[number], chosen[join.other]
            flags[begin : self._end][_some(others, len(events))] = True
            chosen.append(self._rows(join, node, chosen[join.driver], places, shift, flags))
            if self.task.watched:
                now = perf_counter_ns()
                self._counts[node, counts.NANOSECONDS] += now - since
                since = now
        found = places[::-1].take(chosen[-1], axis=1)
        found += shift + position - begin
        return found

    def _store(self, events: EventStream, chosen: list[np.ndarray]) -> None:
        """Store the events of a round."""
        size = len(events)
        if self._end + size > len(self._times):
            self._make_room(size)
        new = slice(self._end, self._end + size)
        self._times[new] = events.timestamps
        self._flags[:, new] = False
        for values, (name, leaves) in zip(self._values, self.layout.readers.items(), strict=True):
            for rows in {id(chosen[leaf]): chosen[leaf] for leaf in leaves}.values():
                some = _some(rows, size)
                values[new][some] = self.task.reader.read(events, name, some)
        self._end += size

    def _make_room(self, size: int) -> None:
        """Store what is stored in arrays with room for so many events more."""
        stored = self._packed
        kept = self._end - self._begin
        room = kept + size + room_for_more(max(_ROOM, kept + size))
        self._begin, self._end = 0, kept
        for name, its in zip(("_times", "_values", "_flags"), stored, strict=True):
            larger = np.empty((*its.shape[:-1], room), its.dtype)
            larger[..., :kept] = its
            setattr(self, name, larger)

    def _rows(
        self,
        join: _Join,
        node: int,
        rows: np.ndarray,
        places: np.ndarray,
        shift: int,
        flags: np.ndarray,
    ) -> np.ndarray:
        """The events of the driver at which rows of a node end."""
        if not len(rows):
            return rows
        found = np.empty(len(rows), np.int64)
        number = next_to(
            rows, places, shift, join.ends, join.begins, join.order, self._times, flags, self._window, found,
        )  # fmt: skip
        if join.clauses:
            self._counts[node, counts.COMPARED] += number
        for clause in join.clauses:
            read = self._reading_of(join, places, shift, found[:number])
            number = keep(found[:number], clause_holds(clause, read, self.task.reader.code))
        found = found[:number]
        self._counts[node, counts.CREATED] += number
        if node < len(self._counts) - 1:
            unit = counts.lifetime_shift(self._window)
            self._counts[node, counts.LIFETIME] += lifetimes(
                found, places, shift, join.begins, self._times, self._window, unit
            )
        return found

    def _reading_of(
        self, join: _Join, places: np.ndarray, shift: int, rows: np.ndarray
    ) -> Callable[[Attribute], np.ndarray]:
        columns = dict(zip(self.layout.readers, self._values, strict=True))

        def values(attribute: Attribute) -> np.ndarray:
            found = np.empty(len(rows))
            place = places[join.places[attribute.variable]]
            gathered(columns[attribute.name], place, shift, rows, found)
            return found

        return values

    def _expire(self, new: int) -> None:
        """Keep the events of the window before the last of ``new`` ones; raise if partial matches in one were too many."""
        layout, before = self.layout, self._end - new
        size = self._end - self._begin
        self._begin = expire(
            self._times, self._flags, self._begin, before, self._end, max(1, new // _MOMENTS),
            self._window, layout.others, self._stored, self._counts, self._peaks,
        )  # fmt: skip
        row = self._times.itemsize + self._values.itemsize * len(self._values) + len(self._flags)
        self._peaks[counts.PEAK_BYTES] = max(self._peaks[counts.PEAK_BYTES], size * row)
        if self._peaks[counts.PEAK_PARTIAL_MATCHES] > self.task.limit:
            inner = self._counts[len(layout.leaves) : -1, counts.PEAK]
            raise self.too_many(layout.nodes[len(layout.leaves) + int(inner.argmax())])


def _some(rows: np.ndarray, size: int) -> np.ndarray | slice:
    """Rows of so many as an index: a slice if they are all."""
    return slice(None) if len(rows) == size else rows


@cache
def warm_up() -> None:
    """Compile the kernels or load them from the disk cache, to exclude this from measured times."""
    events = pd.DataFrame({"type": ["A", "B", "C"], "time": range(3), "x": [1.0, 2.0, 3.0]})
    stream = EventStream.from_pandas(events, type="type", time="time")
    text = (
        "PATTERN SEQ(A a, B b, C c) WHERE b.x < c.x STRATEGY partition_contiguity(x) WITHIN 9 units"
    )
    pattern = parse(text)
    NeighbourEngine(BranchTask.of_one(pattern, right_deep(pattern.positive_names))).run(
        stream, 0, ended=True
    )
