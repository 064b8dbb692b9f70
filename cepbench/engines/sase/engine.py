"""Merged runs of an automaton over the batches of a stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.graph_matches import graph_chunks, room_for
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.rooted_graph import RootedGraph
from cepbench.engines.sase.automaton_engine import BUFFER, AutomatonEngine
from cepbench.engines.sase.kernels import tables
from cepbench.engines.sase.kernels.advance import advance
from cepbench.engines.sase.kernels.profile import APART
from cepbench.engines.sase.kernels.room import empty_state, roomier
from cepbench.engines.sase.returning import returned_columns, returned_rows
from cepbench.kernels.batches import FIRST_CHUNK
from cepbench.kernels.exact import integers
from cepbench.patterns.model import Returned


class SaseEngine(AutomatonEngine):
    """Merges equivalent runs, and gives matches as graphs, or as the values that columns of RETURN
    need; see :class:`AutomatonEngine`.
    """

    SAVED: ClassVar[tuple[str, ...]] = (
        "_state.runs", "_state.vectors", "_state.heads", "_state.buckets", "_state.partitions",
        "_state.keys", "_state.partition_buckets", "_state.cells", "_state.cell_times",
        "_state.totals", "_state.free_cells", "_state.found", "_state.counters", "_state.progress",
        "_state.graph.nodes", "_state.graph.totals",
    )  # fmt: skip

    def __init__(
        self,
        task: BranchTask,
        *,
        compresses: bool = False,
        returns: Sequence[Returned] | None = None,
    ) -> None:
        (self._automaton,) = task.trees
        self._returns = returns
        super().__init__(
            task,
            by_start=not task.reports or returns is not None,
            returned=returned_columns(self._automaton, returns or ()) or (),
        )
        self._values: list[tuple[np.ndarray, np.ndarray]] = []
        self._state = empty_state(self.layout.plan, self.layout.width, self.tallies, self.profile)
        self._compresses = compresses
        #: Of the first chunk of matches, so that those of the next events fit into it as a rule.
        self._room = FIRST_CHUNK
        self._graphs: list[RootedGraph] = []
        self.seconds[BUFFER] = np.nan

    @property
    def work(self) -> dict[str, int]:
        """See :class:`AutomatonEngine`; counted histories are in no buffer."""
        written = int(self.tallies[tables.WRITTEN])
        return super().work | ({} if self.layout.plan.counts else {"buffer_writes": written})

    @property
    def visits_apart(self) -> float:
        """Events read by runs, had none been merged; NaN unless histories are counted."""
        known = self.task.watched and not self.task.reports
        return float(self.profile[:, APART].sum()) if known else math.nan

    def _counted(self) -> int:
        (found,) = integers(self._state.found[None])
        self._state.found[:] = 0
        return found

    def _found(self) -> Found:
        if self._returns is not None:
            roots = np.concatenate([np.empty((2, 0), np.int64), *(r for r, _ in self._values)], 1)
            width = len(self.layout.plan.returned)
            values = np.concatenate([np.empty((width, 0)), *(v for _, v in self._values)], 1)
            self._values = []
            rows = returned_rows(self._automaton, self._returns, roots, values)
            return Found(rows.lasts.shape[1], (), values=rows)
        if self._compresses:
            graphs, self._graphs = self._graphs, []
            return Found.of_graphs([(0, graph) for graph in graphs])
        return super()._found()

    def _advance(self, events: tables.Events) -> bool:
        ended = bool(advance(self.layout.plan, self._state, events))
        if not ended:
            now = events.times[events.rows[self._state.progress[tables.AT]]]
            self._earliest = int(now) - self.layout.plan.window
        return ended

    def _make_room(self) -> None:
        first = self._first + int(np.searchsorted(self._times, self._earliest))
        self._state = roomier(self.layout.plan, self._state, self._earliest, first)
        self._check_limit(self._live())

    def _construct(self) -> None:
        state = self._state
        number = state.counters[tables.ROOTS]
        if not number:
            return
        if self._returns is not None:
            roots = state.roots[:, :number].copy()
            # The largest number may have more digits.
            self.check_matches(max(int(roots[0].max()), self._counted() // int(number)), 1)
            self._values.append((roots, state.values[:, :number].copy()))
            state.counters[tables.ROOTS] = 0
            return
        roots, positions = state.roots[:, :number].copy()
        lasts = self._times[positions - self._first]
        earliest = self._first + np.searchsorted(self._times, lasts - self.layout.plan.window)
        if self._compresses:
            self._graphs.append(RootedGraph.of(state.graph, roots, earliest, lasts))
        else:
            before, variables = self.written, self.layout.variables
            self._keep(graph_chunks(state.graph, roots, earliest, variables, self._room), number)
            self._room = room_for(self.written - before)
        state.counters[tables.ROOTS] = 0

    def _live(self) -> int:
        return int(len(self._state.runs) - self._state.counters[tables.FREE_RUNS])
