"""The engine of SASE+ with runs apart [agrawal2008]_, sections 5.1 and 5.2.1.

All runs of a partition read an event when it comes. What they have selected is in one versioned
buffer, from which matches are constructed.

Differs from the paper: the buffer and the pool of runs are pruned for many events at a time, see
:mod:`cepbench.engines.sase.kernels.versioned_buffer`. A run that may both take and ignore an event goes on
as two whose versions differ in length, see :func:`cepbench.trace`. Conditions on an event alone are
tested for a batch at once, and events that none of them lets through are read by no run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.graph_matches import written_chunks
from cepbench.engines.runs.matches import Column
from cepbench.engines.runs.pieces import room_for_more
from cepbench.engines.sase.apart import ApartEngine
from cepbench.engines.sase.automaton_engine import BUFFER, CONSTRUCTION
from cepbench.engines.sase.kernels import sase_basic as kernel
from cepbench.engines.sase.kernels import tables, versioned_buffer
from cepbench.engines.sase.kernels.profile import STORED
from cepbench.engines.sase.run import AutomatonRun, evaluator_of_automata

#: Selections, and accepting runs, between which the buffer is left alone; prefixes of versions at
#: first.
_LOG, _ENDS, _VERSIONS = 1 << 14, 1 << 14, 1 << 10


class BasicEngine(ApartEngine):
    """Lets all runs read an event when it comes; see :class:`ApartEngine`."""

    SAVED = (
        "state.runs", "state.vectors", "state.versions", "state.tops", "state.counters",
        "buffer.entries", "buffer.pointers", "buffer.bounds",
    )  # fmt: skip

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task)
        plan, width = self.layout.plan, self.layout.width
        self.buffer = versioned_buffer.empty_buffer(plan.states)
        tops = np.zeros((plan.states, kernel.TOPS), np.int64)
        tops[:, kernel.LAST_POSITION] = -1
        counters = np.zeros(kernel.COUNTERS, np.int64)
        counters[kernel.FREE] = -1
        self.state = kernel.State(
            runs=np.zeros((0, kernel.RUN_COLUMNS), np.int64),
            vectors=np.zeros((0, width)),
            heads=np.empty(0, np.int64),
            versions=np.zeros(
                (max(4, room_for_more(_VERSIONS)), versioned_buffer.VERSION_COLUMNS), np.int64
            ),
            tops=tops,
            log=np.zeros((room_for_more(_LOG), versioned_buffer.LOG_COLUMNS), np.int64),
            ends=np.zeros((room_for_more(_ENDS), versioned_buffer.END_COLUMNS), np.int64),
            counters=counters,
        )

    @property
    def work(self) -> dict[str, int]:
        """See :class:`AutomatonEngine`."""
        return super().work | {
            "buffer_writes": int(self.buffer.bounds[:, versioned_buffer.NEXT_POINTER].sum()),
            "pointers_followed": self.written - self.constructed,
        }

    @property
    def visits_apart(self) -> float:
        """Events read by runs, none of which are merged."""
        return float(self.tallies[tables.VISITED])

    def _arranged(self, events: tables.Events) -> tuple[Any, ...]:
        its, held, number = self._partitions.of(events)
        self.state = self.state._replace(heads=np.full(number, -1))
        self.profile[:, STORED] = 0.0  # until they are entered
        kernel.enter_all(self.state, held, self._machine)
        counters = self.state.counters
        counters[kernel.AT], counters[kernel.AT_RUN] = 0, kernel.ARRIVES
        return events, its

    def _advance(self, events: tables.Events, partitions: np.ndarray) -> bool:
        plan = self.layout.plan
        ended = kernel.advance_apart(
            plan, self.state, self._machine, events, partitions, not self.task.reports, self._prunes
        )
        row = -1 if ended else events.rows[self.state.counters[kernel.AT]]
        self._earliest = int(events.times[row]) - plan.window
        return bool(ended)

    def _construct(self) -> None:
        self._store()
        self._clock(BUFFER)
        super()._construct()
        self._clock(CONSTRUCTION)
        versioned_buffer.prune(self.buffer, self._earliest)
        kernel.prune_versions(self.state, self._earliest)
        self._clock(BUFFER)

    def _store(self) -> None:
        """Enter what runs have selected in the buffer."""
        logged = int(self.state.counters[kernel.LOGGED])
        self.buffer = versioned_buffer.with_room(self.buffer, self.state.log[:logged])
        versioned_buffer.store(self.state.log, logged, self.buffer)
        self.state.counters[kernel.LOGGED] = 0

    def _chunks_of(self, ends: np.ndarray) -> Iterator[list[Column]]:
        versions, items = self.state.versions, self.layout.plan.items
        write = partial(versioned_buffer.construct, self.buffer, versions, ends, items)
        return written_chunks(self.layout.variables, 0, write)

    def _make_room(self) -> None:
        state, counters = self.state, self.state.counters
        live = state.runs[:, kernel.RUN_STATE] >= 0
        live &= state.runs[:, kernel.START] >= self._earliest
        self._check_limit(int(np.count_nonzero(live)))
        if 2 * counters[kernel.FREE_RUNS] < len(state.runs) or not len(state.runs):
            self._add_runs(max(16, len(state.runs)))
        first, behind = counters[kernel.FIRST_VERSION], counters[kernel.NEXT_VERSION]
        size = len(state.versions)
        if 2 * (behind - first + kernel.VERSIONS) > size:
            numbers = np.arange(first, behind)
            versions = np.zeros((2 * size, state.versions.shape[1]), np.int64)
            versions[numbers % len(versions)] = state.versions[numbers % size]
            self.state = self.state._replace(versions=versions)
        self._widen_ends(kernel.SELECTIONS)

    def _add_runs(self, more: int) -> None:
        """Enlarge the pool."""
        state = self.state
        old = len(state.runs)
        self.state = state._replace(
            runs=np.concatenate((state.runs, np.zeros((more, kernel.RUN_COLUMNS), np.int64))),
            vectors=np.concatenate((state.vectors, np.zeros((more, state.vectors.shape[1])))),
        )
        kernel.add_runs(self.state, old)

    def _compact(self, earliest: int) -> None:
        state = self.state
        runs = state.runs
        live = np.flatnonzero(
            (runs[:, kernel.RUN_STATE] >= 0) & (runs[:, kernel.START] >= earliest)
        )
        live = live[self._partitions.keep(runs[live, kernel.PARTITION])]
        self.state = state._replace(runs=runs[live], vectors=state.vectors[live])
        self.state.counters[kernel.FREE] = -1
        self.state.counters[kernel.FREE_RUNS] = 0

    def _live(self) -> int:
        return len(self.state.runs)


SASE_BASIC = evaluator_of_automata(
    "sase-basic", partial(AutomatonRun, engine=BasicEngine), prunes_output=True
)
