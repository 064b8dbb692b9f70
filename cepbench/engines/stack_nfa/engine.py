"""Active instance stacks over the batches of a stream, and the search at each round's end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from cepbench.engines.plan_runs.engine import BranchTask, Chunks, PlanEngine
from cepbench.engines.plan_runs.kernels.sequences import FOUND
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.engines.plan_runs.sequences import constructed, new_scratch, rounds_of
from cepbench.engines.stack_nfa.kernels import search, stacks
from cepbench.engines.stack_nfa.layout import SequenceLayout, sequence_layout
from cepbench.kernels import counts
from cepbench.kernels.sorting import sorted_by
from cepbench.state import Stateful, check_shape
from cepbench.streams.event_stream import EventStream

#: Events in a round.
_ROUND = 1 << 16


@dataclass
class Instances(Stateful):
    """The instances of one item: of negated ones all events, of others those that are active."""

    SAVED = ("times", "positions", "values")

    #: int64 (n,).
    times: np.ndarray
    positions: np.ndarray
    values: np.ndarray  #: float64 (columns, n); what conditions and partitions read
    codes: np.ndarray  #: int64 (n,); partitions, numbered anew in each round

    def resumed(self) -> None:
        """All are in one partition, until the next round."""
        check_shape("positions", self.positions, self.times.shape)
        self.codes = np.ones(len(self.times), np.int64)

    @classmethod
    def of(cls, times: np.ndarray, positions: np.ndarray, values: np.ndarray) -> Instances:
        """Instances that are in one partition."""
        return cls(times, positions, values, np.ones(len(times), np.int64))

    def __len__(self) -> int:
        return len(self.times)

    def since(self, earliest: int) -> Instances:
        """Those from a time on."""
        kept = self.times >= earliest
        return self if kept.all() else self.taken(np.flatnonzero(kept))

    def taken(self, rows: np.ndarray) -> Instances:
        """Those of some rows, given by number."""
        arrays = self.times, self.positions, self.values, self.codes
        # All rows exist, so nothing is clipped; this mode skips the check of bounds.
        return Instances(*(array.take(rows, -1, mode="clip") for array in arrays))

    def with_those(self, later: Instances) -> Instances:
        """These, then some that arrived later."""
        return Instances.of(
            np.concatenate((self.times, later.times)),
            np.concatenate((self.positions, later.positions)),
            np.concatenate((self.values, later.values), axis=1),
        )

    @property
    def bytes(self) -> int:
        """Those that the instances take."""
        return self.times.nbytes + self.positions.nbytes + self.values.nbytes


class StackEngine(PlanEngine):
    """Finds the matches of one SEQ of plain and negated items, none of which comes last, with the
    right-deep tree of its written order.
    """

    SAVED = ("_stacks", "_counts[:]", "_peaks[:]")

    layout: SequenceLayout

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task)
        (branch,), (tree,) = task.branches, task.trees
        self.layout = sequence_layout(branch, tree, task.reader.code)
        self._items = self.layout.plan.items
        self._stacks = [
            Instances.of(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((len(columns), 0)))
            for columns in self.layout.values
        ]
        self._counts = np.zeros((len(self.layout.nodes), counts.COUNT_COLUMNS), np.int64)

    def node_counts(self) -> list[NodeCounts]:
        """Counts of the stacks, and of the sequences that the search extended, by suffix."""
        leaves = len(self.layout.leaves)
        return [NodeCounts(self.layout.nodes, leaves, self.layout.window, self._counts)]

    def advance(
        self, batch: EventStream | None, first_position: int, until: int
    ) -> tuple[Chunks, int]:
        """Process a batch of events; see :meth:`PlanEngine.advance`."""
        chunks: list[np.ndarray] = []
        found = 0
        for part, position in rounds_of(batch, first_position, _ROUND):
            found += self._round(part, position, chunks)
        return self.without_sets(chunks), found

    def _round(self, part: EventStream, first_position: int, chunks: list[np.ndarray]) -> int:
        """Take up some events, and give the number of new matches; these are added to ``chunks``."""
        last = self._items - 1
        held = self.arrived(part, first_position)
        found = 0
        if len(held[last]):
            found = self._search(held, chunks)
            held[last] = held[last].taken(np.arange(0))  # an accepting event has been used
        # What a later event can follow.
        earliest = part.timestamps[-1] - self.layout.window
        self._stacks = [stack.since(earliest) for stack in held]
        sizes = np.array(list(map(len, self._stacks)))
        peak = self._counts[: len(sizes), counts.PEAK]
        np.maximum(peak, sizes, out=peak)
        self._peaks[counts.PEAK_EVENTS] = max(self._peaks[counts.PEAK_EVENTS], sizes.sum())
        return found

    def arrived(self, part: EventStream, first_position: int) -> list[Instances]:
        """The instances so far and the events that may become some, by stack."""
        held = []
        events = self.leaf_events(part)
        if not len(events.rows):
            return [*self._stacks]
        values = self.leaf_values(events, self.layout.values)
        positions = events.rows + first_position
        times = events.take_times(np.empty_like(positions))
        for number, (stack, (begin, end)) in enumerate(
            zip(self._stacks, pairwise(events.begins), strict=True)
        ):
            if begin < end:
                own, columns = slice(begin, end), len(self.layout.values[number])
                fresh = Instances.of(times[own], positions[own], values[:columns, own])
                stack = stack.with_those(fresh)
                self._counts[number, counts.CREATED] += end - begin
            held.append(stack)
        return held

    def _search(self, held: list[Instances], chunks: list[np.ndarray]) -> int:
        """Arrange the stacks and search backward from the accepting events."""
        tops = self.arranged(held)
        if not len(held[self._items - 1]):
            return 0
        rows = self._rows(held, tops)
        values = np.concatenate([stack.values.ravel() for stack in held])
        longest = max(map(len, held[: self._items]))
        scratch = new_scratch(self._items, longest, len(held), values, self._origins(held))
        reports = self.task.reports
        run = partial(search.search, reports, self.layout.plan, rows, scratch)
        chunks += constructed(run, scratch, self._counts, least=longest, reports=reports)
        found = int(scratch.progress[FOUND])
        self._counts[-1, counts.CREATED] += found
        taken = sum(stack.bytes for stack in held) + scratch.candidates.nbytes
        taken += sum(array.nbytes for array in (values, rows.tops, rows.lows, rows.bounds))
        self._peaks[counts.PEAK_BYTES] = max(self._peaks[counts.PEAK_BYTES], taken)
        return found

    def arranged(self, held: list[Instances]) -> list[np.ndarray]:
        """Arrange the stacks for a search, in place; gives for each item the row behind the most
        recent instance in the previous stack (RIP).
        """
        if any(self.layout.keys):
            self._partition(held)
        return self._activate(held)

    def _partition(self, held: list[Instances]) -> None:
        """Sort the stacks by partition; events without one are dropped."""
        keyed = [number for number, keys in enumerate(self.layout.keys) if keys]
        ends = np.cumsum([len(held[number]) for number in keyed])
        codes, largest = np.ones(ends[-1], np.int64), 1
        for key in range(len(self.layout.keys[0])):
            values = [held[number].values[self.layout.keys[number][key]] for number in keyed]
            codes, largest = stacks.number_partitions(codes, np.concatenate(values))
        for number, its in zip(keyed, np.split(codes, ends[:-1]), strict=True):
            order, stops = sorted_by(its, 0, largest + 1)
            held[number].codes = its
            held[number] = held[number].taken(order[stops[1] :])

    def _activate(self, held: list[Instances]) -> list[np.ndarray]:
        """Keep the instances that an active one of the item before precedes within the window."""
        tops = [np.zeros(len(held[0]), np.int64)]
        for item in range(1, self._items):
            behind = self._first_rows(held, item, item - 1, 0)
            active = behind > self._first_rows(held, item, item - 1, -self.layout.window)
            if not active.all():
                held[item] = held[item].taken(np.flatnonzero(active))
            tops.append(behind[active])
        return tops

    def _first_rows(self, held: list[Instances], x: int, y: int, shift: int) -> np.ndarray:
        """For each instance of stack ``x`` the first row of ``y`` at its time + ``shift``."""
        its, others = held[x], held[y]
        if bool(self.layout.keys[x]) != bool(self.layout.keys[y]):
            return np.searchsorted(others.times, its.times + shift)
        found = np.empty(len(its), np.int64)
        stacks.first_rows(its.codes, its.times, others.codes, others.times, shift, found)
        return found

    def _origins(self, held: list[Instances]) -> np.ndarray:
        """Where row 0 of each column of values would be; the rows of all stacks are numbered through."""
        sizes = np.array(list(map(len, held)))
        firsts = np.cumsum(sizes) - sizes
        origins = np.empty(sum(map(len, self.layout.values)), np.int64)
        place = 0
        for stack, columns in enumerate(self.layout.values):
            for column, _ in columns:
                origins[column] = place - firsts[stack]
                place += sizes[stack]
        return origins

    def _rows(self, held: list[Instances], tops: list[np.ndarray]) -> search.Rows:
        """The instances of all stacks, numbered through."""
        layout, items, last = self.layout, self._items, self._items - 1
        sizes = np.array(list(map(len, held)))
        firsts = np.cumsum(sizes) - sizes
        bounds = [np.empty(0, np.int64)]
        offsets = np.empty((len(layout.checks), 2), np.int64)
        place = 0
        for number, check in enumerate(layout.checks):
            stack, after, before = layout.plan.negations[number]
            sides = ((after, 1 if check.after else -layout.window), (before, 0))
            for side, (item, shift) in enumerate(sides):
                bounds.append(firsts[stack] + self._first_rows(held, item, stack, shift))
                offsets[number, side] = place - firsts[item]
                place += sizes[item]
        return search.Rows(
            tops=np.concatenate(
                [tops[0], *(tops[item] + firsts[item - 1] for item in range(1, items))]
            ),
            lows=np.array(
                [
                    firsts[item] + self._first_rows(held, last, item, -layout.window)
                    for item in range(last)
                ],
                np.int64,
            ).reshape(last, sizes[last]),
            finals=int(firsts[last]),
            bounds=np.concatenate(bounds),
            offsets=offsets,
            labels=np.concatenate([stack.positions for stack in held[:items]]),
        )

    def resumed(self) -> None:
        """Check that instances have the values that are compared."""
        for stack, columns in zip(self._stacks, self.layout.values, strict=True):
            check_shape("values", stack.values, (len(columns), len(stack.times)))
