"""Hierarchical instance stacks over the batches of a stream, shared by all queries of an engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from cepbench.evaluators.hierarchical_stacks.layout import stack_layout
from cepbench.evaluators.matches import BranchMatches, Found
from cepbench.evaluators.plan_runs.engine import BranchTask, Engine
from cepbench.evaluators.plan_runs.node_table import NodeCounts
from cepbench.evaluators.snapshot import stored_array
from cepbench.kernels import counts
from cepbench.kernels.batches import FIRST_CHUNK, LARGEST_CHUNK
from cepbench.kernels.hierarchical_stacks import sequences
from cepbench.kernels.hierarchical_stacks.stacks import Events, Stacks, push
from cepbench.kernels.instructions import STACK
from cepbench.patterns.arrays import clause_holds, expression_values
from cepbench.patterns.model import Attribute
from cepbench.streams.event_stream import EventStream

#: Events in a round, so that memory does not grow with batches.
ROUND = 1 << 15


class HierarchicalStacks(Engine):
    """Finds the matches of several SEQ of plain and negated items, none of which comes last.

    Each event is stored once, whatever the number of queries and items that it may be bound to.

    Parameters
    ----------
    task : BranchTask
        Of branches of one or more patterns, each with its own window; trees are not read.

    Attributes
    ----------
    numbers : ndarray of int64, shape (branches,)
        The matches of each branch so far.
    """

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task)
        self.layout = stack_layout(task.branches, task.reader.code)
        self.numbers = np.zeros(len(task.branches), np.int64)
        self._window = max(branch.window.length for branch in task.branches)
        self._lows = np.zeros((len(task.branches), len(self.layout.stacks)), np.int64)
        self._kinds: dict[str, int] = {}
        self._peaks = np.zeros(counts.PEAKS, np.int64)
        self._counts = [
            np.zeros((len(self._nodes(number)), counts.COUNT_COLUMNS), np.int64)
            for number in range(len(task.branches))
        ]
        self._hold(self._no_events(), np.zeros(len(self.layout.stacks), np.int64))

    @property
    def peaks(self) -> np.ndarray:
        """See :mod:`cepbench.kernels.counts`."""
        return self._peaks

    def node_counts(self) -> list[NodeCounts]:
        """Counts of the events of each item, and of the sequences constructed, by suffix."""
        return [
            NodeCounts(
                self._nodes(number),
                len(branch.positive) + len(branch.negated),
                branch.window.length,
                self._counts[number],
            )
            for number, branch in enumerate(self.task.branches)
        ]

    def _nodes(self, number: int) -> list[tuple[str, ...]]:
        branch = self.task.branches[number]
        names = branch.positive_names
        leaves = [(variable.name,) for variable in (*branch.positive, *branch.negated)]
        return leaves + [names[item:] for item in range(max(len(names) - 2, 0), -1, -1)]

    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """Process a batch of events; see :meth:`Engine.run`."""
        chunks = [[np.empty((query.items, 0), np.int64)] for query in self.layout.queries]
        before = self.numbers.copy()
        if batch is not None:
            # Divisions by zero are valid values of conditions.
            with np.errstate(all="ignore"):
                for begin in range(0, len(batch), ROUND):
                    part = batch[begin : begin + ROUND]
                    self._round(part, first_position + begin, chunks)
        matches = (
            BranchMatches(branch.positive_names, [tuple(rows) for rows in its])
            if self.task.reports
            else None
            for branch, its in zip(self.task.branches, chunks, strict=True)
        )
        return Found(int((self.numbers - before).sum()), tuple(matches))

    def _round(
        self, part: EventStream, first_position: int, chunks: list[list[np.ndarray]]
    ) -> None:
        """Take up some events, and construct the sequences that they complete."""
        fresh = self._arrived(part, first_position)
        arrived = np.bincount(fresh.stacks, minlength=len(self.layout.stacks))
        if (self._stacks.sizes + arrived > self._room).any():
            self._hold(self._held(int(part.timestamps[0]) - self._window), arrived)
        rows = np.empty(len(fresh.stacks), np.int64)
        push(fresh, self._stacks, self.layout.graph, rows)
        for number, query in enumerate(self.layout.queries):
            self._count(number, arrived)
            ends = query.stacks[query.spans[query.items - 1] : query.spans[query.items]]
            if arrived[ends].any():
                finals = rows[np.isin(fresh.stacks, ends)]
                if query.filters[query.items - 1] >= 0:
                    passed = self._stacks.events.passed[query.filters[query.items - 1]]
                    finals = finals[passed[finals]]
                if len(finals):
                    self._construct(number, finals, chunks[number])
        self._measure(int(part.timestamps[-1]) - self._window)

    def _arrived(self, part: EventStream, first_position: int) -> Events:
        """The events that are stored, in the order of arrival."""
        for name in part.type_names:
            if name not in self._kinds:
                self._kinds[name] = self.layout.stack_of(name)
        kinds = np.array([self._kinds[name] for name in part.type_names], np.int64)
        stacks = kinds[part.type_codes] if len(kinds) else np.empty(0, np.int64)
        rows = np.flatnonzero(stacks >= 0)
        stacks = stacks[rows]
        code = self.task.reader.code

        def reading(chosen: np.ndarray) -> Callable[[Attribute], np.ndarray]:
            return lambda attribute: self.task.reader.read(part, attribute.name, chosen)

        passed = np.zeros((len(self.layout.filters), len(rows)), bool)
        for filter_number, (clauses, its) in enumerate(self.layout.filters):
            left = np.flatnonzero(np.isin(stacks, its))
            for clause in clauses:
                held = clause_holds(clause, reading(rows[left]), code)
                left = left[np.broadcast_to(held, left.shape)]
            passed[filter_number, left] = True
        kept = np.ones(len(rows), bool)
        for stack, filters in enumerate(self.layout.keeps):
            if filters:
                kept[stacks == stack] = passed[:, stacks == stack][list(filters)].any(axis=0)
        rows, stacks, passed = rows[kept], stacks[kept], passed[:, kept]
        values = np.full((len(self.layout.columns), len(rows)), np.nan)
        for column, (expression, its) in enumerate(self.layout.columns):
            chosen = np.flatnonzero(np.isin(stacks, its))
            values[column, chosen] = expression_values(expression, reading(rows[chosen]), code)
        times = np.ascontiguousarray(part.timestamps[rows])
        return Events(stacks, times, rows + first_position, values, np.ascontiguousarray(passed))

    def _no_events(self) -> Events:
        none = np.empty(0, np.int64)
        values = np.empty((len(self.layout.columns), 0))
        return Events(none, none, none, values, np.empty((len(self.layout.filters), 0), bool))

    def _held(self, earliest: int) -> Events:
        """The stored events from a time on, in the order of arrival."""
        spans = zip(self._stacks.origins, self._stacks.sizes, strict=True)
        rows = np.concatenate([np.arange(origin, origin + size) for origin, size in spans])
        events = self._stacks.events
        rows = rows[events.times[rows] >= earliest]
        rows = rows[np.argsort(events.positions[rows])]
        return Events(*(array[..., rows] for array in events))

    def _hold(self, events: Events, arriving: np.ndarray) -> None:
        """Arrange the stacks anew, without events that are too old, with room for others."""
        graph, count = self.layout.graph, len(self.layout.stacks)
        self._room = 2 * (np.bincount(events.stacks, minlength=count) + arriving)
        room = int(self._room.sum())
        buckets = 2
        while buckets < 2 * room * max(len(graph.keys), 1):
            buckets *= 2
        if not len(graph.keys):
            buckets = 1
        self._stacks = Stacks(
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
        push(events, self._stacks, graph, np.empty(len(events.stacks), np.int64))
        self._lows[:] = 0

    def _construct(self, number: int, finals: np.ndarray, chunks: list[np.ndarray]) -> None:
        """Find the sequences of a query that these events complete."""
        query, stacks = self.layout.queries[number], self._stacks
        items, reports = query.items, self.task.reports
        spans = zip(query.spans[:items], query.spans[1:], strict=False)
        most = max(len(finals), *(int(stacks.sizes[query.stacks[x:y]].sum()) for x, y in spans))
        scratch = sequences.Scratch(
            candidates=np.empty((items, most), np.int64),
            sizes=np.zeros(items, np.int64),
            at=np.zeros(items, np.int64),
            bound=np.empty(len(query.vias), np.int64),
            stack=np.empty(STACK),
            progress=np.array([items, 0, 0]),
            tallies=np.zeros((items, sequences.TALLIES), np.int64),
        )
        scratch.candidates[-1, : len(finals)] = finals
        scratch.sizes[-1] = len(finals)
        size = FIRST_CHUNK if reports else 0
        ended = False
        while not ended:
            matches = np.empty((items, size), np.int64)
            ended = sequences.construct(
                reports, query, stacks, self.layout.graph, self._lows[number], scratch, matches
            )
            chunks.append(matches[:, : scratch.progress[sequences.WRITTEN]])
            size = min(2 * size, LARGEST_CHUNK)
        found = int(scratch.progress[sequences.FOUND])
        self.numbers[number] += found
        created = self._counts[number]
        for item in range(items - 1):
            its = created[len(created) - 1 - item]
            its[counts.CREATED] += scratch.tallies[item, sequences.EXTENDED]
            its[counts.COMPARED] += scratch.tallies[item, sequences.COMPARED]
        created[-1, counts.CREATED] = self.numbers[number]
        self._note_bytes(scratch.candidates.nbytes)

    def _count(self, number: int, arrived: np.ndarray) -> None:
        """Add the events that arrived in the stacks of each item."""
        query = self.layout.queries[number]
        of_owner = np.add.reduceat(arrived[query.stacks], query.spans[:-1])
        self._counts[number][: len(of_owner), counts.CREATED] += of_owner

    def _measure(self, earliest: int) -> None:
        """Note how many events are stored that may still be bound."""
        stacks = self._stacks
        kept = [
            size - np.searchsorted(stacks.events.times[origin : origin + size], earliest)
            for origin, size in zip(stacks.origins, stacks.sizes, strict=True)
        ]
        self._peaks[counts.PEAK_EVENTS] = max(self._peaks[counts.PEAK_EVENTS], sum(kept))
        self._note_bytes(0)

    def _note_bytes(self, more: int) -> None:
        arrays = (*self._stacks.events, *self._stacks[1:])
        taken = more + sum(array.nbytes for array in arrays)
        self._peaks[counts.PEAK_BYTES] = max(self._peaks[counts.PEAK_BYTES], taken)

    def packed(self) -> dict[str, np.ndarray]:
        """The state as plain arrays: the events; pointers are set again."""
        held = self._held(np.iinfo(np.int64).min)
        arrays = {"peaks": self._peaks.copy(), "numbers": self.numbers.copy()}
        arrays |= {f"counts/{n}": counted.copy() for n, counted in enumerate(self._counts)}
        return arrays | dict(zip(Events._fields, held, strict=True))

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Resume from the arrays that :meth:`packed` gave.

        Raises
        ------
        SnapshotError
            If they are not those of such an engine.
        """
        self._peaks = stored_array(snapshot, "peaks", self._peaks, self._peaks.shape)
        self.numbers = stored_array(snapshot, "numbers", self.numbers, self.numbers.shape)
        for number, counted in enumerate(self._counts):
            name = f"counts/{number}"
            self._counts[number] = stored_array(snapshot, name, counted, counted.shape)
        size = np.shape(snapshot.get("times", ()))[-1:]
        none = self._no_events()
        events = Events(
            *(
                stored_array(snapshot, name, array, (*array.shape[:-1], *size))
                for name, array in zip(Events._fields, none, strict=True)
            )
        )
        self._hold(events, np.zeros(len(self.layout.stacks), np.int64))
