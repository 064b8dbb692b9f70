"""The runs of an automaton over the batches of a stream."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from cepbench.errors import PartialMatchLimitError
from cepbench.evaluators.graph_matches import graph_chunks
from cepbench.evaluators.matches import BranchMatches, Column, Found, SetColumn, no_matches
from cepbench.evaluators.plan_runs.engine import BranchTask, Engine, rows_of_types
from cepbench.evaluators.plan_runs.node_table import NodeCounts
from cepbench.evaluators.rooted_graph import RootedGraph
from cepbench.evaluators.sase.layout import automaton_layout
from cepbench.evaluators.snapshot import stored_array
from cepbench.kernels import counts
from cepbench.kernels.sase import starts, tables
from cepbench.kernels.sase.advance import advance
from cepbench.kernels.sase.room import empty_state, roomier
from cepbench.patterns.arrays import clause_holds, expression_values
from cepbench.streams.event_stream import EventStream

#: Some events: all by the slice, or their numbers.
Rows = np.ndarray | slice

#: Events in a round, so that memory does not grow with batches.
ROUND = 1 << 16


class SaseEngine(Engine):
    """Finds the matches of one SEQ of plain and Kleene items by the runs of its automaton.

    Parameters
    ----------
    task : BranchTask
        Of one branch; its tree is the automaton, in which there are no negated items.
    compresses : bool
        Whether matches are returned as graphs.

    Attributes
    ----------
    seconds : ndarray of float64, shape (2,)
        Time of moves, and of the construction of matches.
    events : int
    written : int
        Events in all matches.
    """

    def __init__(self, task: BranchTask, *, compresses: bool = False) -> None:
        super().__init__(task)
        (automaton,) = task.trees
        self.layout = automaton_layout(automaton, task.reader.code, counts=not task.reports)
        self._state = empty_state(self.layout.plan, self.layout.width)
        #: Timestamps of the events in the window, and the position of the first of them.
        self._times = np.empty(0, np.int64)
        self._first = 0
        self._peaks = np.zeros(counts.PEAKS, np.int64)
        self._compresses = compresses
        self.seconds = np.zeros(2)
        self.events = self.written = 0

    @property
    def peaks(self) -> np.ndarray:
        """See :mod:`cepbench.kernels.counts`; a run is a partial match."""
        return self._peaks

    @property
    def tallies(self) -> np.ndarray:
        """See :mod:`cepbench.kernels.sase.tables`."""
        return self._state.tallies

    def node_counts(self) -> list[NodeCounts]:
        """None: the automaton has no nodes."""
        return []

    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """Process a batch of events; see :meth:`Engine.run`."""
        chunks: list[list[Column]] = []
        graphs: list[RootedGraph] = []
        for begin in range(0, 0 if batch is None else len(batch), ROUND):
            assert batch is not None
            self._round(batch[begin : begin + ROUND], first_position + begin, chunks, graphs)
        if not self.task.reports:
            limbs = self._state.found.tolist()
            self._state.found[:] = 0
            return Found(sum(limb << starts.LIMB * k for k, limb in enumerate(limbs)), (None,))
        if self._compresses:
            return Found.of_graphs([(0, graph) for graph in graphs])
        found = no_matches(self.layout.variables)
        if chunks:
            found = BranchMatches(found.names, chunks)
        return Found(len(found), (found,))

    def _round(
        self,
        part: EventStream,
        first_position: int,
        chunks: list[list[Column]],
        graphs: list[RootedGraph],
    ) -> None:
        plan = self.layout.plan
        if not len(self._times):
            self._first = first_position
        self._times = np.concatenate((self._times, part.timestamps))
        self.events += len(part)
        events = self._events(part, first_position)
        ended = False
        with np.errstate(all="ignore"):
            while not ended:
                began = time.perf_counter()
                ended = advance(plan, self._state, events)
                moved = time.perf_counter()
                self._construct(chunks, graphs)
                self.seconds += moved - began, time.perf_counter() - moved
                if not ended:
                    now = events.times[events.rows[self._state.progress[tables.AT]]]
                    earliest = int(now) - plan.window
                    first = self._first + int(np.searchsorted(self._times, earliest))
                    self._state = roomier(plan, self._state, earliest, first)
                    self._check_limit()
        old = int(np.searchsorted(self._times, part.timestamps[-1] - plan.window))
        self._times, self._first = self._times[old:], self._first + old
        self._measure()

    def _events(self, part: EventStream, first_position: int) -> tables.Events:
        """What the kernels read of some events."""
        plan, code = self.layout.plan, self.task.reader.code
        whole = slice(None)
        numbers: dict[str, np.ndarray] = {}

        def read(name: str, rows: Rows) -> np.ndarray:
            if rows is not whole:
                return self.task.reader.read(part, name, rows)
            if name not in numbers:
                numbers[name] = self.task.reader.read(part, name, rows)
            return numbers[name]

        flags = np.zeros(len(part), np.int64)
        types = {passing.type for passing in self.layout.passing}
        of_type: dict[str | None, Rows]
        if types == {None} or types == set(part.type_names) == {*part.type_names[:1]}:
            of_type = dict.fromkeys(types, whole)
        else:
            of_type = {**rows_of_types(part, types)}
        for passing in self.layout.passing:
            rows = of_type[passing.type]
            held: Any = True
            for clause in passing.clauses:
                held = held & clause_holds(clause, lambda a, at=rows: read(a.name, at), code)  # type: ignore[misc]  # fmt: skip
            flags[rows] |= passing.flag * held
        chosen = np.arange(len(part)) if plan.dies else np.flatnonzero(flags)
        its: Rows = whole if len(chosen) == len(part) else chosen
        values = np.empty((len(self.layout.columns), len(part)))
        for column, expression in enumerate(self.layout.columns):
            values[column, its] = expression_values(expression, lambda a: read(a.name, its), code)
        if plan.dies and len(plan.keys):
            chosen = np.flatnonzero(~np.isnan(values[plan.keys[0]]))
        # Read-only, because a kernel is compiled separately for writable and read-only arrays.
        times = np.ascontiguousarray(part.timestamps).view()
        times.flags.writeable = False
        return tables.Events(chosen, times, flags, values, first_position)

    def _construct(self, chunks: list[list[Column]], graphs: list[RootedGraph]) -> None:
        """Write the matches whose last events have been found."""
        state = self._state
        number = state.counters[tables.ROOTS]
        if not number:
            return
        roots, positions = state.roots[:, :number].copy()
        lasts = self._times[positions - self._first]
        earliest = self._first + np.searchsorted(self._times, lasts - self.layout.plan.window)
        if self._compresses:
            graphs.append(RootedGraph.of(state.graph, roots, earliest, lasts))
        else:
            found = 0
            for chunk in graph_chunks(state.graph, roots, earliest, self.layout.variables):
                found += len(chunk[0])
                self._check_matches(found, number)
                self.written += sum(map(_size, chunk))
                chunks.append(chunk)
        state.counters[tables.ROOTS] = 0

    def _check_matches(self, found: int, roots: int) -> None:
        """Limit the sets of Kleene variables, which other engines store."""
        sets = [variable.name for variable in self.layout.variables if variable.is_set]
        if sets and found > self.task.limit * roots:
            raise PartialMatchLimitError(
                f"more than {self.task.limit:,} matches end with one event, for there are so many "
                f"sets of {', '.join(sets)}; use a shorter window or more conditions, only count "
                "matches, or allow more with partial_match_limit"
            )

    def _check_limit(self) -> None:
        live = len(self._state.runs) - self._state.counters[tables.FREE_RUNS]
        if live > self.task.limit:
            raise PartialMatchLimitError(
                f"more than {self.task.limit:,} runs of the automaton have to be stored; use a "
                "shorter window or more conditions, or allow more with partial_match_limit"
            )

    def _measure(self) -> None:
        self._check_limit()
        stored = sum(array.nbytes for array in self._arrays().values())
        for peak, value in (
            (counts.PEAK_PARTIAL_MATCHES, self._state.tallies[tables.PEAK_RUNS]),
            (counts.PEAK_BYTES, stored),
        ):
            self._peaks[peak] = max(self._peaks[peak], value)

    def _arrays(self) -> dict[str, np.ndarray]:
        """The state between rounds, by name."""
        state = self._state
        arrays = {
            name: array
            for name, array in state._asdict().items()
            if name not in ("graph", "stack", "roots")
        }
        return {**arrays, "nodes": state.graph.nodes, "totals_of_nodes": state.graph.totals}

    def packed(self) -> dict[str, np.ndarray]:
        """The state as plain arrays."""
        arrays = {name: array.copy() for name, array in self._arrays().items()}
        window = np.append(self._first, self._times)
        return {**arrays, "window": window, "peaks": self._peaks.copy()}

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Resume from the arrays that :meth:`packed` gave.

        Raises
        ------
        SnapshotError
            If they are not those of such an engine.
        """

        def stored(name: str, like: np.ndarray) -> np.ndarray:
            # Tables have as many rows as were needed.
            return stored_array(snapshot, name, like, np.shape(snapshot.get(name, like)))

        self._peaks = stored_array(snapshot, "peaks", self._peaks, self._peaks.shape)
        window = stored("window", self._times)
        self._first, self._times = int(window[0]), window[1:]
        arrays = {name: stored(name, like) for name, like in self._arrays().items()}
        graph = self._state.graph._replace(
            nodes=arrays.pop("nodes"), totals=arrays.pop("totals_of_nodes")
        )
        self._state = self._state._replace(graph=graph, **arrays)


def _size(column: Column) -> int:
    """The number of events in a column of matches."""
    return len(column.positions if isinstance(column, SetColumn) else column)
