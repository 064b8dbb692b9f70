"""What the engines share that keep the runs of a partition apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.matches import Column
from cepbench.engines.runs.pieces import room_for_more
from cepbench.engines.sase.automaton_engine import AutomatonEngine
from cepbench.engines.sase.kernels import pool, tables
from cepbench.engines.sase.partitions import Partitions
from cepbench.kernels.instructions import STACK

#: Accepting runs whose matches are constructed together.
_ENDS = 1 << 14

#: Runs for which there is room at first.
_RUNS = 16


class ApartEngine(AutomatonEngine):
    """Keeps runs apart, in partitions that are numbered anew in each round; see
    :class:`AutomatonEngine`.

    ``columns`` of runs, ``end_columns`` of accepting ones and ``counters`` are how many the kernel
    has.
    """

    SAVED: ClassVar[tuple[str, ...]] = (
        "pool.runs",
        "pool.vectors",
        "pool.counters",
        "_partitions.held",
    )

    def __init__(self, task: BranchTask, *, columns: int, end_columns: int, counters: int) -> None:
        super().__init__(task, by_start=False)
        self.pool = pool.Pool(
            runs=np.zeros((0, columns), np.int64),
            vectors=np.zeros((0, self.layout.width)),
            ends=np.zeros((room_for_more(_ENDS), end_columns), np.int64),
            counters=np.zeros(counters, np.int64),
            tallies=self.tallies,
            profile=self.profile,
            stack=np.empty(STACK),
        )
        self.pool.counters[pool.FREE] = pool.NONE
        self._partitions = Partitions(self.layout.plan.keys)
        self._prunes = task.branches[0].output != "all"

    def _round(self, events: tables.Events) -> None:
        super()._round(events)
        self._measure()
        self._compact(int(events.times[-1]) - self.layout.plan.window)

    def _construct(self) -> None:
        ends, counters = self.pool.ends, self.pool.counters
        number = int(counters[pool.SETTLED if self._prunes else pool.ENDS])
        if number:
            self._keep(self._chunks_of(ends[:number]), number)
        rest = int(counters[pool.ENDS]) - number
        ends[:rest] = ends[number : number + rest]
        counters[pool.ENDS], counters[pool.SETTLED] = rest, 0

    @abstractmethod
    def _chunks_of(self, ends: np.ndarray) -> Iterable[list[Column]]:
        """The matches of accepting runs."""

    def _make_room(self) -> None:
        runs, ends, counters = self.pool.runs, self.pool.ends, self.pool.counters
        if 2 * counters[pool.FREE_RUNS] < max(1, len(runs)):
            self._add_runs()
        if 2 * (counters[pool.ENDS] + pool.ENDS_A_STEP) > len(ends):
            self.pool = self.pool._replace(ends=np.concatenate((ends, ends)))

    def _add_runs(self) -> None:
        """Double the room for runs."""
        runs, vectors = self.pool.runs, self.pool.vectors
        more = max(_RUNS, len(runs))
        self.pool = self.pool._replace(
            runs=np.concatenate((runs, np.zeros((more, runs.shape[1]), np.int64))),
            vectors=np.concatenate((vectors, np.zeros((more, vectors.shape[1])))),
        )
        pool.add_runs(self.pool, len(runs))

    def _waiting(self) -> np.ndarray:
        """The numbers of the runs that go on with the next events."""
        return np.flatnonzero(self.pool.runs[:, pool.RUN_STATE] >= 0)

    def _compact(self, earliest: int) -> None:
        """Keep the runs alone that began at ``earliest`` or later."""
        runs, numbers = self.pool.runs, self._waiting()
        live = numbers[runs[numbers, pool.START] >= earliest]
        self._take(live[self._partitions.keep(runs[live, pool.PARTITION])])

    def _take(self, numbers: np.ndarray) -> None:
        """Keep the runs of these numbers alone, in this order, in front of free ones."""
        runs, vectors = self.pool.runs, self.pool.vectors
        live, room = len(numbers), 2 * max(_RUNS, len(numbers))
        if (numbers != np.arange(live)).any():
            runs[:live], vectors[:live] = runs[numbers], vectors[numbers]
        if len(runs) > 2 * room:
            self.pool = self.pool._replace(runs=runs[:room].copy(), vectors=vectors[:room].copy())
        self.pool.counters[[pool.FREE, pool.FREE_RUNS]] = pool.NONE, 0
        pool.add_runs(self.pool, live)

    def _live(self) -> int:
        return int(len(self.pool.runs) - self.pool.counters[pool.FREE_RUNS])
