"""Hierarchical instance stacks over the batches of a stream, shared by all queries of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from time import perf_counter_ns

import numpy as np

from cepbench.engines.hierarchical_stacks.kernels import sequences
from cepbench.engines.hierarchical_stacks.kernels.stacks import Events, Stacks, push
from cepbench.engines.hierarchical_stacks.layout import StackLayout, stack_layout
from cepbench.engines.plan_runs.by_type import ByTypes, type_codes_of
from cepbench.engines.plan_runs.engine import BranchTask, Engine
from cepbench.engines.plan_runs.kernels.sequences import FOUND
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.engines.plan_runs.sequences import constructed, new_scratch, rounds_of
from cepbench.engines.runs.matches import BranchMatches, Found
from cepbench.engines.runs.pieces import room_for_more
from cepbench.kernels import counts
from cepbench.kernels.sorting import rows_with_flags
from cepbench.patterns.arrays import clause_holds, expression_values
from cepbench.patterns.model import Pattern
from cepbench.state import Stateful, check_shape
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: The least room for further events in a stack: arranging the stacks anew takes a while.
_SPARE = 64


class SharedStacks(Stateful):
    """Finds the matches of several SEQ of plain and negated items, none of which comes last.

    Each event is stored once, whatever the number of queries and items that it may be bound to.
    """

    SAVED = ("_stored", "_arrivals[:]", "_counts[:]", "peaks[:]", "numbers[:]", "reader")

    layout: StackLayout
    stacks: Stacks  #: the events; others once they have been arranged anew

    def __init__(self) -> None:
        self.reader = NumericReader()
        self.branches: list[Pattern] = []  #: of one or more patterns, each with its own window
        #: Whether the matches of each branch are returned, or only counted.
        self.reports: list[bool] = []
        self.batches = 0  #: the number of batches processed
        self._oldest = np.iinfo(np.int64).min  #: time of the first event that matters
        self.found: list[Found] = []  #: the matches of each branch in the last batch
        self.numbers: list[int] = []  #: how many there are so far
        self.nanoseconds: list[int] = []  #: the time spent in constructing its sequences
        self._counts: list[np.ndarray] = []
        self.peaks = np.zeros(counts.PEAKS, np.int64)  #: int64; see :mod:`cepbench.kernels.counts`
        #: Those that share the stacks, each with its branches.
        self.engines: list[StackEngine] = []

    def add(self, branches: Sequence[Pattern], *, reports: bool) -> slice:
        """Have the matches of some branches found too, before the first batch; their numbers."""
        first = len(self.branches)
        for branch in branches:
            self._counts.append(np.zeros((len(_nodes(branch)), counts.COUNT_COLUMNS), np.int64))
            self.branches.append(branch)
            self.reports.append(reports)
            self.numbers.append(0)
            self.nanoseconds.append(0)
        return slice(first, len(self.branches))

    @property
    def has_begun(self) -> bool:
        """Whether no more branches can be added."""
        return hasattr(self, "layout")

    def drop(self, own: slice) -> None:
        """Find the matches of some branches no more; what only they read is not stored any more."""
        for its in (self.branches, self.reports, self.numbers, self.nanoseconds, self._counts):
            del its[own]
        if not (self.has_begun and self.branches):
            return
        before, held = self.layout, self._held(np.iinfo(np.int64).min)
        arrivals = self._arrivals
        self._begin()
        moved = np.array([self.layout.stack_of(name) for name in before.stacks], np.int64)
        np.add.at(self._arrivals, moved[moved >= 0], arrivals[moved >= 0])
        columns = [expression for expression, _ in before.columns]
        filters = [clauses for clauses, _ in before.filters]
        values = held.values[[columns.index(its) for its, _ in self.layout.columns]]
        passed = held.passed[[filters.index(its) for its, _ in self.layout.filters]]
        stacks = moved[held.stacks]
        kept = self._kept(stacks, passed) & (stacks >= 0)
        left = Events(stacks, held.times, held.positions, values, passed)
        left = Events(*(np.ascontiguousarray(its[..., kept]) for its in left))
        self._hold(left, np.zeros(len(self.layout.stacks), np.int64))

    def _kept(self, stacks: np.ndarray, passed: np.ndarray) -> np.ndarray:
        """Which events of some stacks satisfy the conditions of any item that reads them, as bools."""
        kept = np.ones(len(stacks), bool)
        for stack, filters in enumerate(self.layout.keeps):
            if filters:
                own = np.flatnonzero(stacks == stack)
                kept[own] = passed[list(filters)][:, own].any(axis=0)
        return kept

    def _begin(self) -> None:
        """Compile the branches, and make empty stacks."""
        self.layout = stack_layout(self.branches, self.reader.code)
        #: The stack of each type of a batch, see :func:`_stacks_of`.
        self._kinds = ByTypes(partial(_stacks_of, self.layout))
        self._window = max(branch.window.length for branch in self.branches)
        self.reader.span = 2 * self._window
        shape = (len(self.branches), len(self.layout.stacks))
        self._lows = np.zeros(shape, np.int64)
        #: Whether an event of a stack may complete sequences of a query; and the events of a stack.
        self._completes = np.zeros(shape, bool)
        self._arrivals = np.zeros(len(self.layout.stacks), np.int64)
        for number, query in enumerate(self.layout.queries):
            self._completes[number, query.read_by(query.items - 1)] = True
        self._hold(self._no_events(), np.zeros(len(self.layout.stacks), np.int64))

    def advance(self, batch: EventStream | None, first_position: int) -> None:
        """Process a batch of events, or None for no events; see :attr:`found`."""
        if not self.has_begun:
            self._begin()
        self.batches += 1
        chunks = [[np.empty((query.items, 0), np.int64)] for query in self.layout.queries]
        before = list(self.numbers)
        # Divisions by zero are valid values of conditions.
        with np.errstate(all="ignore"):
            for part, position in rounds_of(batch, first_position):
                self._round(part, position, chunks)
        self.found = []
        for number, (branch, rows) in enumerate(zip(self.branches, chunks, strict=True)):
            its = None
            if self.reports[number]:
                its = BranchMatches(branch.positive_names, [*map(tuple, rows)])
            self.found.append(Found(self.numbers[number] - before[number], (its,)))

    def _round(
        self, part: EventStream, first_position: int, chunks: list[list[np.ndarray]]
    ) -> None:
        """Take up some events, and construct the sequences that they complete."""
        fresh = self._arrived(part, first_position)
        if not len(fresh.stacks):
            self._note_bytes(0)
            return
        arrived = np.bincount(fresh.stacks, minlength=len(self.layout.stacks))
        if (self.stacks.sizes + arrived > self._room).any():
            self._hold(self._held(int(part.timestamps[0]) - self._window), arrived)
        rows = np.empty(len(fresh.stacks), np.int64)
        push(fresh, self.stacks, self.layout.graph, rows)
        self._arrivals += arrived
        for number in np.flatnonzero(self._completes[:, arrived > 0].any(axis=1)).tolist():
            query = self.layout.queries[number]
            finals = rows[self._completes[number][fresh.stacks]]
            needed = query.filters[query.items - 1]
            if needed >= 0:
                finals = finals[self.stacks.events.passed[needed, finals]]
            if len(finals):
                self._construct(number, finals, chunks[number])
        self._oldest = int(part.timestamps[-1]) - self._window
        self._measure(self._oldest)

    def _arrived(self, part: EventStream, first_position: int) -> Events:
        """The events that are stored, in the order of arrival."""
        numbers, rows = np.empty((2, len(part)), np.int64)
        count = rows_with_flags(type_codes_of(part), self._kinds.of(part), numbers, rows)
        if not count:
            return self._no_events()
        rows = rows[:count].copy()
        stacks = numbers[rows] - 1
        code = self.reader.code
        passed = np.zeros((len(self.layout.filters), len(rows)), bool)
        for filter_number, (clauses, its) in enumerate(self.layout.filters):
            left = np.flatnonzero(self._among(its)[stacks])
            for clause in clauses:
                held = clause_holds(clause, self.reader.reading(part, rows[left]), code)
                left = left[np.broadcast_to(held, left.shape)]
            passed[filter_number, left] = True
        if any(self.layout.keeps):
            kept = self._kept(stacks, passed)
            rows, stacks, passed = rows[kept], stacks[kept], passed[:, kept]
        values = np.full((len(self.layout.columns), len(rows)), np.nan)
        for column, (expression, its) in enumerate(self.layout.columns):
            chosen = np.flatnonzero(self._among(its)[stacks])
            read = self.reader.reading(part, rows[chosen])
            values[column, chosen] = expression_values(expression, read, code)
        times = np.ascontiguousarray(part.timestamps[rows])
        return Events(stacks, times, rows + first_position, values, np.ascontiguousarray(passed))

    def _among(self, stacks: Sequence[int] | np.ndarray) -> np.ndarray:
        """A flag for each stack."""
        flags = np.zeros(len(self.layout.stacks), bool)
        flags[list(stacks)] = True
        return flags

    def _no_events(self) -> Events:
        none = np.empty(0, np.int64)
        values = np.empty((len(self.layout.columns), 0))
        return Events(none, none, none, values, np.empty((len(self.layout.filters), 0), bool))

    def _held(self, earliest: int) -> Events:
        """The stored events from a time on, in the order of arrival."""
        spans = zip(self.stacks.origins, self.stacks.sizes, strict=True)
        rows = np.concatenate([np.arange(origin, origin + size) for origin, size in spans])
        events = self.stacks.events
        rows = rows[events.times[rows] >= earliest]
        rows = rows[np.argsort(events.positions[rows])]
        return Events(*(np.ascontiguousarray(array[..., rows]) for array in events))

    def _hold(self, events: Events, arriving: np.ndarray) -> None:
        """Arrange the stacks anew, without events that are too old, with room for others."""
        graph, count = self.layout.graph, len(self.layout.stacks)
        self._room = 2 * (np.bincount(events.stacks, minlength=count) + arriving)
        self._room += room_for_more(_SPARE)
        room = int(self._room.sum())
        buckets = 2
        while buckets < 2 * room * max(len(graph.keys), 1):
            buckets *= 2
        if not len(graph.keys):
            buckets = 1
        self.stacks = Stacks(
            events=Events(*(np.empty((*array.shape[:-1], room), array.dtype) for array in events)),
            pointers=np.empty((np.diff(graph.edge_spans).max(initial=0), room), np.int64),
            previous=np.empty((len(graph.keys), room), np.int64),
            origins=np.cumsum(self._room) - self._room,
            sizes=np.zeros(count, np.int64),
            latest=np.zeros((count, 2), np.int64),
            chains=np.full(buckets, -1, np.int64),
            heads=np.empty(buckets),
            lasts=np.empty(buckets, np.int64),
        )
        self._bytes = sum(array.nbytes for array in (*self.stacks.events, *self.stacks[1:]))
        push(events, self.stacks, graph, np.empty(len(events.stacks), np.int64))
        self._lows[:] = 0

    def _construct(self, number: int, finals: np.ndarray, chunks: list[np.ndarray]) -> None:
        """Find the sequences of a query that these events complete."""
        begun = perf_counter_ns()
        query, stacks = self.layout.queries[number], self.stacks
        items, reports = query.items, self.reports[number]
        read = (int(stacks.sizes[query.read_by(item)].sum()) for item in range(items))
        most = max(len(finals), *read)
        # A view: it is not kept, since copies of the engine would hold values of their own for it.
        values = stacks.events.values
        begins = np.arange(len(values)) * values.shape[1]
        scratch = new_scratch(items, most, len(query.vias), values.reshape(-1), begins)
        scratch.candidates[-1, : len(finals)] = finals
        scratch.sizes[items - 1] = len(finals)
        run = partial(
            sequences.construct,
            reports,
            query,
            stacks,
            self.layout.graph,
            self._lows[number],
            scratch,
        )
        chunks += constructed(run, scratch, self._counts[number], least=0, reports=reports)
        self.numbers[number] += int(scratch.progress[FOUND])
        self.nanoseconds[number] += perf_counter_ns() - begun
        self._note_bytes(scratch.candidates.nbytes)

    def node_counts(self, branches: slice) -> list[NodeCounts]:
        """Of each branch the events that its items read, and the sequences constructed, by suffix."""
        found = []
        for number in range(len(self.branches))[branches]:
            branch, counted = self.branches[number], self._counts[number]
            leaves = len(branch.positive) + len(branch.negated)
            for leaf in range(leaves if self.has_begun else 0):
                read = self.layout.queries[number].read_by(leaf)
                counted[leaf, counts.CREATED] = self._arrivals[read].sum()
            counted[-1, counts.CREATED] = self.numbers[number]
            found.append(NodeCounts(_nodes(branch), leaves, branch.window.length, counted))
        return found

    def _measure(self, earliest: int) -> None:
        """Note how many events are stored that may still be bound."""
        stacks = self.stacks
        kept = [
            size - np.searchsorted(stacks.events.times[origin : origin + size], earliest)
            for origin, size in zip(stacks.origins, stacks.sizes, strict=True)
        ]
        self.peaks[counts.PEAK_EVENTS] = max(self.peaks[counts.PEAK_EVENTS], sum(kept))
        self._note_bytes(0)

    def _note_bytes(self, more: int) -> None:
        self.peaks[counts.PEAK_BYTES] = max(self.peaks[counts.PEAK_BYTES], more + self._bytes)

    @property
    def _stored(self) -> tuple[np.ndarray, ...]:
        """The events that a later one can follow; pointers between them are set again."""
        if not self.has_begun:
            self._begin()
        return tuple(self._held(self._oldest))

    @_stored.setter
    def _stored(self, events: tuple[np.ndarray, ...]) -> None:
        for array, none in zip(events, self._no_events(), strict=True):
            check_shape("events", array, (*none.shape[:-1], len(events[0])))
        self._hold(Events(*events), np.zeros(len(self.layout.stacks), np.int64))


class StackEngine(Engine):
    """Finds the matches of some branches on stacks that others may share, by default its own.

    Engines that share stacks are all made before the first batch, and each runs a batch before any
    runs the next; the first one to run it has it processed for all. Trees are not read, nor texts
    coded by the task's reader.
    """

    SAVED = ("_stacks_of_first",)

    def __init__(self, task: BranchTask, shared: SharedStacks | None = None) -> None:
        super().__init__(task)
        self._shared = shared or SharedStacks()
        self._own = self._shared.add(task.branches, reports=task.reports)
        self._shared.engines.append(self)
        self._batches = 0

    @property
    def peaks(self) -> np.ndarray:
        """Those of the stacks, shared or not; see :mod:`cepbench.kernels.counts`."""
        return self._shared.peaks

    @property
    def seconds(self) -> float:
        """The time spent in constructing sequences."""
        return sum(self._shared.nanoseconds[self._own]) / 1e9

    def node_counts(self) -> Sequence[NodeCounts]:
        """Counts of the events of each item, and of the sequences constructed, by suffix."""
        return self._shared.node_counts(self._own)

    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """Process a batch of events; see :meth:`Engine.run`."""
        if self._batches == self._shared.batches:
            self._shared.advance(batch, first_position)
        self._batches += 1
        own = self._shared.found[self._own]
        return Found(
            sum(each.number for each in own), tuple(one for each in own for one in each.matches)
        )

    def leave(self) -> None:
        """Take the branches off the stacks that others share; the engine cannot be used any more."""
        engines, size = self._shared.engines, len(self.task.branches)
        place = engines.index(self)
        del engines[place]
        for engine in engines[place:]:
            engine._own = slice(engine._own.start - size, engine._own.stop - size)
        self._shared.drop(self._own)

    @property
    def _stacks_of_first(self) -> SharedStacks | None:
        """Stacks are part of the state of the first engine that has them."""
        return None if self._own.start else self._shared


def _stacks_of(layout: StackLayout, part: EventStream) -> np.ndarray:
    """The numbers of the stacks of types, counted from 1; 0 for none."""
    return np.array([layout.stack_of(name) + 1 for name in part.type_names], np.int64)


def _nodes(branch: Pattern) -> list[tuple[str, ...]]:
    """The variables of each item, then of each suffix that is constructed."""
    names = branch.positive_names
    items = [(variable.name,) for variable in (*branch.positive, *branch.negated)]
    return items + [names[item:] for item in range(max(len(names) - 2, 0), -1, -1)]
