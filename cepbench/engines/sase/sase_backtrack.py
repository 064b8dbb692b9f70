"""The engine of SASE+ that backtracks [agrawal2008]_, section 5.2.3.

One run of a partition reads events until it fails, or until it completes a match. Where it may move
in several ways, it moves towards the final state; a run for the other ways is postponed, and reads
the events from there again. Runs that have read all events of a batch are suspended.

With OUTPUT non_overlap, no run reads beyond the last event of the match found so far.

Differs from the paper: what precedes the last event of a run is a path in a graph of matches without
unions, which needs no versions, since one run of a partition moves at a time. With OUTPUT non_overlap
the paper takes the first match that a run completes; others that complete earlier are looked for
first here, so that all engines report the same matches.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.graph_matches import graph_chunks
from cepbench.engines.runs.kernels.graph import NEXT, empty_graph, reclaim, with_room
from cepbench.engines.runs.matches import Column
from cepbench.engines.runs.pieces import room_for_more
from cepbench.engines.sase.apart import ApartEngine
from cepbench.engines.sase.automaton_engine import BUFFER
from cepbench.engines.sase.kernels import sase_backtrack as kernel
from cepbench.engines.sase.kernels import tables
from cepbench.engines.sase.kernels.moves import ENDS
from cepbench.engines.sase.kernels.profile import STORED, SUM
from cepbench.engines.sase.run import AutomatonRun, evaluator_of_automata
from cepbench.errors import PartialMatchLimitError
from cepbench.kernels.batches import NEVER

#: Accepting runs whose matches are constructed together.
_ENDS = 1 << 12


class BacktrackEngine(ApartEngine):
    """Runs one run of a partition at a time; see :class:`ApartEngine`."""

    SAVED = (
        "state.waiting.numbers", "state.waiting.vectors", "state.counters", "_graph.nodes",
        "_graph.totals",
    )  # fmt: skip

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task)
        # Runs read one after the other: there is no event after which they could be counted.
        self.profile[:, STORED : SUM + 1] = np.nan
        self._graph = empty_graph()
        self.state = kernel.State(
            stack=self._runs(16),
            waiting=self._runs(0),
            suspended=self._runs(16),
            ends=np.zeros((room_for_more(_ENDS), kernel.END_COLUMNS), np.int64),
            counters=np.zeros(kernel.COUNTERS, np.int64),
        )
        self.seconds[BUFFER] = np.nan

    def _runs(self, capacity: int) -> kernel.Runs:
        return kernel.Runs(
            np.zeros((capacity, kernel.RUN_COLUMNS), np.int64),
            np.zeros((capacity, self.layout.width)),
        )

    @property
    def work(self) -> dict[str, int]:
        """See :class:`AutomatonEngine`; without unions, a node of the graph is an event selected."""
        written = int(self._graph.totals[NEXT])
        return super().work | ({"buffer_writes": written} if self.task.reports else {})

    def _arranged(self, events: tables.Events) -> tuple[Any, ...]:
        counters = self.state.counters
        its, held, number = self._partitions.of(events)
        # Those of a partition side by side, in the order of their positions and starts.
        rows, runs = (np.argsort(numbers, kind="stable") for numbers in (its, held))
        events = events._replace(rows=events.rows[rows])
        edges = np.arange(number + 1)
        spans = np.searchsorted(its[rows], edges)
        waiting = np.searchsorted(held[runs], edges)
        self.state = self.state._replace(waiting=_taken(self.state.waiting, runs))
        counters[:] = 0
        counters[kernel.BOUND], counters[kernel.LATEST] = NEVER, -1
        return events, spans, waiting

    def _advance(self, events: tables.Events, spans: np.ndarray, waiting: np.ndarray) -> bool:
        return bool(
            kernel.backtrack(
                self.layout.plan, self.state, self._graph, self._machine, events, spans, waiting,
                self.task.limit, not self.task.reports, self._prunes,
            )
        )  # fmt: skip

    def _compact(self, earliest: int) -> None:
        self._reclaim()
        state = self.state
        number = state.counters[kernel.SUSPENDED]
        numbers = state.suspended.numbers[:number]
        live = np.flatnonzero(numbers[:, kernel.START] >= earliest)
        live = live[self._partitions.keep(numbers[live, kernel.FROM])]
        self.state = state._replace(waiting=_taken(state.suspended, live))

    def _chunks_of(self, ends: np.ndarray) -> Iterator[list[Column]]:
        roots, earliest = ends.T.copy()
        return graph_chunks(self._graph, roots, earliest, self.layout.variables)

    def _make_room(self) -> None:
        state, counters = self.state, self.state.counters
        if counters[kernel.COPIES] > self.task.limit:
            of_sets = f" with different sets of {self._sets}" if self._sets else ""
            raise PartialMatchLimitError(
                f"more than {self.task.limit:,} runs{of_sets} split off from one; use a shorter "
                "window or more conditions, or allow more with partial_match_limit"
            )
        depth, suspended = counters[kernel.DEPTH], counters[kernel.SUSPENDED]
        self._check_limit(int(depth + suspended))
        if 2 * (depth + 1) > len(state.stack.numbers):
            state = state._replace(stack=self._wider(state.stack))
        if 2 * suspended > len(state.suspended.numbers):
            state = state._replace(suspended=self._wider(state.suspended))
        self.state = state
        self._widen_ends(0)
        self._reclaim()
        self._graph = with_room(self._graph, len(self._graph.nodes) // 2)

    def _reclaim(self) -> None:
        """Release the nodes that no run needs."""
        state, counters = self.state, self.state.counters
        # All that later runs select is later.
        starts = [
            state.stack.numbers[: counters[kernel.DEPTH], kernel.ORIGIN],
            state.waiting.numbers[counters[kernel.SOURCE] :, kernel.ORIGIN],
            state.suspended.numbers[: counters[kernel.SUSPENDED], kernel.ORIGIN],
            state.ends[: counters[ENDS], kernel.END_FIRST],
        ]
        reclaim(self._graph, min(int(part.min(initial=NEVER)) for part in starts))

    def _wider(self, runs: kernel.Runs) -> kernel.Runs:
        """The list with room for twice as many runs."""
        more = self._runs(len(runs.numbers))
        return kernel.Runs(
            np.concatenate((runs.numbers, more.numbers)),
            np.concatenate((runs.vectors, more.vectors)),
        )

    def _live(self) -> int:
        return len(self.state.waiting.numbers)


def _taken(runs: kernel.Runs, chosen: np.ndarray) -> kernel.Runs:
    """The runs of these numbers."""
    return kernel.Runs(runs.numbers[chosen], runs.vectors[chosen])


SASE_BACKTRACK = evaluator_of_automata(
    "sase-backtrack", partial(AutomatonRun, engine=BacktrackEngine), prunes_output=True
)
