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
from cepbench.engines.sase.apart import ApartEngine
from cepbench.engines.sase.automaton_engine import BUFFER
from cepbench.engines.sase.kernels import sase_backtrack as kernel
from cepbench.engines.sase.kernels import tables
from cepbench.engines.sase.kernels.partitions import number
from cepbench.engines.sase.kernels.pool import (
    COUNTERS_OF_ALL,
    ENDS,
    NONE,
    ORIGIN,
)
from cepbench.engines.sase.kernels.profile import STORED, SUM
from cepbench.engines.sase.partitions import side_by_side
from cepbench.engines.sase.run import AutomatonRun, evaluator_of_automata
from cepbench.errors import PartialMatchLimitError
from cepbench.kernels.batches import NEVER


class BacktrackEngine(ApartEngine):
    """Runs one run of a partition at a time; see :class:`ApartEngine`."""

    SAVED = ("_graph.nodes", "_graph.totals")

    def __init__(self, task: BranchTask) -> None:
        super().__init__(
            task,
            columns=kernel.RUN_COLUMNS,
            end_columns=kernel.END_COLUMNS,
            counters=kernel.COUNTERS,
        )
        # Runs read one after the other: there is no event after which they could be counted.
        self.profile[:, STORED : SUM + 1] = np.nan
        self._graph = empty_graph()
        self.seconds[BUFFER] = np.nan

    @property
    def work(self) -> dict[str, int]:
        """See :class:`AutomatonEngine`; without unions, a node of the graph is an event selected."""
        written = int(self._graph.totals[NEXT])
        return super().work | ({"buffer_writes": written} if self.task.reports else {})

    def _arranged(self, events: tables.Events) -> tuple[Any, ...]:
        self._earliest = int(events.times[0]) - self.layout.plan.window
        partitions = np.empty(len(events.rows), np.int64)
        done = 0
        plan = self.layout.plan
        begins = plan.bits[tables.BEGIN]
        while (done := number(plan, self.pool, events, begins, partitions, done)) < len(partitions):
            self._add_partitions()
        order, numbers, spans = side_by_side(partitions)
        counters = self.pool.counters
        counters[COUNTERS_OF_ALL:] = 0
        counters[[kernel.TOP, kernel.LATEST]] = NONE
        counters[kernel.SOURCE], counters[kernel.BOUND] = kernel.ARRIVES, NEVER
        return events._replace(rows=events.rows[order]), numbers, spans

    def _advance(self, events: tables.Events, numbers: np.ndarray, spans: np.ndarray) -> bool:
        return bool(
            kernel.backtrack(
                self.layout.plan, self.pool, self._graph, events, numbers, spans,
                self.task.limit, not self.task.reports, self._prunes,
            )
        )  # fmt: skip

    def _chunks_of(self, ends: np.ndarray) -> Iterator[list[Column]]:
        roots, earliest = ends.T.copy()
        return graph_chunks(self._graph, roots, earliest, self.layout.variables)

    def _make_room(self) -> None:
        if self.pool.counters[kernel.COPIES] > self.task.limit:
            of_sets = f" with different sets of {self._sets}" if self._sets else ""
            raise PartialMatchLimitError(
                f"more than {self.task.limit:,} runs{of_sets} split off from one; use a shorter "
                "window or more conditions, or allow more with partial_match_limit"
            )
        runs = self._numbers(self._earliest)
        self._check_limit(len(runs))
        # All that later runs select is later.
        starts = self.pool.runs[runs, ORIGIN].min(initial=NEVER)
        super()._make_room()
        ends = self.pool.ends[: self.pool.counters[ENDS], kernel.END_FIRST]
        reclaim(self._graph, int(ends.min(initial=starts)))
        self._graph = with_room(self._graph, len(self._graph.nodes) // 2)


SASE_BACKTRACK = evaluator_of_automata(
    "sase-backtrack", partial(AutomatonRun, engine=BacktrackEngine), prunes_output=True
)
