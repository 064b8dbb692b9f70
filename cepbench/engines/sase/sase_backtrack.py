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

import time
from functools import partial

import numpy as np

from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.graph_matches import graph_chunks
from cepbench.engines.runs.kernels.graph import NEXT, empty_graph, reclaim, with_room
from cepbench.engines.runs.pieces import room_for_more
from cepbench.engines.sase.automaton_engine import AutomatonEngine
from cepbench.engines.sase.kernels import sase_backtrack as kernel
from cepbench.engines.sase.kernels import tables
from cepbench.engines.sase.kernels.moves import Machine
from cepbench.engines.sase.kernels.profile import STORED, SUM, empty_profile
from cepbench.engines.sase.partitions import Partitions
from cepbench.engines.sase.run import AutomatonRun, evaluator_of_automata
from cepbench.errors import PartialMatchLimitError
from cepbench.kernels.batches import NEVER
from cepbench.kernels.instructions import STACK

#: Accepting runs whose matches are constructed together.
_ENDS = 1 << 12


class BacktrackEngine(AutomatonEngine):
    """Runs one run of a partition at a time; see :class:`AutomatonEngine`."""

    SAVED = (
        "_state.waiting.numbers", "_state.waiting.vectors", "_state.counters", "_state.tallies",
        "_graph.nodes", "_graph.totals", "_partitions.held", "_machine.profile",
    )  # fmt: skip

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task, by_start=False)
        self._machine = Machine(
            np.empty(STACK), empty_profile(self.layout.plan, watched=task.watched)
        )
        # Runs read one after the other: there is no event after which they could be counted.
        self.profile[:, STORED : SUM + 1] = np.nan
        self._partitions = Partitions(self.layout.plan.keys)
        self._prunes = task.branches[0].output != "all"
        self._graph = empty_graph()
        self._state = kernel.State(
            stack=self._runs(16),
            waiting=self._runs(0),
            suspended=self._runs(16),
            ends=np.zeros((2, room_for_more(_ENDS)), np.int64),
            counters=np.zeros(kernel.COUNTERS, np.int64),
            tallies=np.zeros(tables.TALLIES, np.int64),
        )
        self.seconds[2] = np.nan

    def _runs(self, capacity: int) -> kernel.Runs:
        return kernel.Runs(
            np.zeros((capacity, kernel.RUN_COLUMNS), np.int64),
            np.zeros((capacity, self.layout.width)),
        )

    @property
    def tallies(self) -> np.ndarray:  # type: ignore[override]
        """See :mod:`cepbench.engines.sase.kernels.tables`."""
        return self._state.tallies

    @property
    def profile(self) -> np.ndarray:  # type: ignore[override]
        """See :mod:`cepbench.engines.sase.kernels.profile`."""
        return self._machine.profile

    @property
    def work(self) -> dict[str, int]:
        """See :class:`AutomatonEngine`; without unions, a node of the graph is an event selected."""
        written = int(self._graph.totals[NEXT])
        return super().work | ({"buffer_writes": written} if self.task.reports else {})

    def _round(self, events: tables.Events) -> None:
        plan, counters = self.layout.plan, self._state.counters
        its, held, number = self._partitions.of(events)
        # Those of a partition side by side, in the order of their positions and starts.
        rows, runs = (np.argsort(numbers, kind="stable") for numbers in (its, held))
        events = events._replace(rows=events.rows[rows])
        edges = np.arange(number + 1)
        spans = np.searchsorted(its[rows], edges)
        waiting = np.searchsorted(held[runs], edges)
        self._state = self._state._replace(waiting=_taken(self._state.waiting, runs))
        counters[:] = 0
        counters[kernel.BOUND], counters[kernel.LATEST] = NEVER, -1
        ended = False
        while not ended:
            began = time.perf_counter()
            ended = kernel.backtrack(
                plan, self._state, self._graph, self._machine, events, spans, waiting,
                self.task.limit, not self.task.reports, self._prunes,
            )  # fmt: skip
            began = self._clock(0, began)
            self._construct()
            self._clock(1, began)
            if not ended:
                self._make_room()
        self._measure()
        self._reclaim()
        self._suspend(int(events.times[-1]) - plan.window)

    def _suspend(self, earliest: int) -> None:
        """Let the suspended runs that have not expired wait for the next events."""
        state = self._state
        number = state.counters[kernel.SUSPENDED]
        numbers = state.suspended.numbers[:number]
        live = np.flatnonzero(numbers[:, kernel.START] >= earliest)
        live = live[self._partitions.keep(numbers[live, kernel.FROM])]
        self._state = state._replace(waiting=_taken(state.suspended, live))

    def _construct(self) -> None:
        """Write the matches that are certain."""
        counters, ends = self._state.counters, self._state.ends
        number = int(counters[kernel.SETTLED if self._prunes else kernel.ENDS])
        if number:
            roots, earliest = ends[:, :number].copy()
            self._keep(graph_chunks(self._graph, roots, earliest, self.layout.variables), number)
        rest = int(counters[kernel.ENDS]) - number
        ends[:, :rest] = ends[:, number : number + rest].copy()
        counters[kernel.ENDS], counters[kernel.SETTLED] = rest, 0

    def _make_room(self) -> None:
        """Enlarge the tables that are full."""
        state, counters = self._state, self._state.counters
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
        if 2 * counters[kernel.ENDS] > state.ends.shape[1]:
            state = state._replace(ends=np.tile(state.ends, 2))
        self._state = state
        self._reclaim()
        self._graph = with_room(self._graph, len(self._graph.nodes) // 2)

    def _reclaim(self) -> None:
        """Release the nodes that no run needs."""
        state, counters = self._state, self._state.counters
        # All that later runs select is later.
        starts = [
            state.stack.numbers[: counters[kernel.DEPTH], kernel.ORIGIN],
            state.waiting.numbers[counters[kernel.SOURCE] :, kernel.ORIGIN],
            state.suspended.numbers[: counters[kernel.SUSPENDED], kernel.ORIGIN],
            state.ends[1, : counters[kernel.ENDS]],
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
        return len(self._state.waiting.numbers)


def _taken(runs: kernel.Runs, chosen: np.ndarray) -> kernel.Runs:
    """The runs of these numbers."""
    return kernel.Runs(runs.numbers[chosen], runs.vectors[chosen])


SASE_BACKTRACK = evaluator_of_automata(
    "sase-backtrack", partial(AutomatonRun, engine=BacktrackEngine), prunes_output=True
)
