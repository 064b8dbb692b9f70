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
from cepbench.engines.sase.run import AutomatonRun, evaluator_of_automata

#: Selections between which the buffer is left alone, and prefixes of versions at first.
_LOG, _VERSIONS = 1 << 14, 1 << 10


class BasicEngine(ApartEngine):
    """Lets all runs read an event when it comes; see :class:`ApartEngine`."""

    SAVED = (
        "state.versions", "state.tops", "buffer.entries", "buffer.pointers", "buffer.bounds",
    )  # fmt: skip

    def __init__(self, task: BranchTask) -> None:
        super().__init__(
            task,
            columns=kernel.RUN_COLUMNS,
            end_columns=versioned_buffer.END_COLUMNS,
            counters=kernel.COUNTERS,
        )
        states = self.layout.plan.states
        self.buffer = versioned_buffer.empty_buffer(states)
        tops = np.zeros((states, kernel.TOPS), np.int64)
        tops[:, kernel.LAST_POSITION] = -1
        self.state = kernel.State(
            versions=np.zeros(
                (max(4, room_for_more(_VERSIONS)), versioned_buffer.VERSION_COLUMNS), np.int64
            ),
            tops=tops,
            log=np.zeros((room_for_more(_LOG), versioned_buffer.LOG_COLUMNS), np.int64),
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
        counters = self.pool.counters
        counters[kernel.AT], counters[kernel.AT_RUN] = 0, kernel.ARRIVES
        return (events,)

    def _advance(self, events: tables.Events) -> bool:
        plan = self.layout.plan
        ended = kernel.advance_apart(
            plan, self.pool, self.state, events, not self.task.reports, self._prunes
        )
        row = -1 if ended else events.rows[self.pool.counters[kernel.AT]]
        self._earliest = int(events.times[row]) - plan.window
        return bool(ended)

    def _construct(self) -> None:
        self._store()
        self._clock(BUFFER)
        super()._construct()
        self._clock(CONSTRUCTION)
        versioned_buffer.prune(self.buffer, self._earliest)
        kernel.prune_versions(self.pool, self.state, self._earliest)
        self._clock(BUFFER)

    def _store(self) -> None:
        """Enter what runs have selected in the buffer."""
        logged = int(self.pool.counters[kernel.LOGGED])
        if not logged:
            return
        self.buffer = versioned_buffer.with_room(self.buffer, self.state.log[:logged])
        versioned_buffer.store(self.state.log, logged, self.buffer)
        self.pool.counters[kernel.LOGGED] = 0

    def _chunks_of(self, ends: np.ndarray) -> Iterator[list[Column]]:
        versions, items = self.state.versions, self.layout.plan.items
        write = partial(versioned_buffer.construct, self.buffer, versions, ends, items)
        return written_chunks(self.layout.variables, 0, write)

    def _make_room(self) -> None:
        state, counters = self.state, self.pool.counters
        self._check_limit(len(self._numbers(self._earliest)))
        super()._make_room()
        first, behind = counters[kernel.FIRST_VERSION], counters[kernel.NEXT_VERSION]
        size = len(state.versions)
        if 2 * (behind - first + kernel.VERSIONS) > size:
            numbers = np.arange(first, behind)
            versions = np.zeros((2 * size, state.versions.shape[1]), np.int64)
            versions[numbers % len(versions)] = state.versions[numbers % size]
            self.state = self.state._replace(versions=versions)


SASE_BASIC = evaluator_of_automata(
    "sase-basic", partial(AutomatonRun, engine=BasicEngine), prunes_output=True
)
