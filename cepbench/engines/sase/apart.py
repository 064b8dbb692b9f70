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
from cepbench.engines.sase.kernels.room import with_partitions
from cepbench.kernels.instructions import STACK

#: Accepting runs whose matches are constructed together.
_ENDS = 1 << 14

#: Room for runs and partitions that is kept when they have expired.
_SMALL = 1 << 10

#: Twice as many runs, and partitions, there is room for at first.
_RUNS, _PARTITIONS = 16, 4


class ApartEngine(AutomatonEngine):
    """Keeps runs apart, in lists by partition; see :class:`AutomatonEngine`.

    Runs that have expired are removed when an event visits them, and all of them, with their partitions,
    when the tables have grown or a window has passed.

    ``columns`` of runs, ``end_columns`` of accepting ones and ``counters`` are how many the kernel
    has.
    """

    SAVED: ClassVar[tuple[str, ...]] = (
        "pool.runs",
        "pool.vectors",
        "pool.counters",
        "pool.heads",
        "pool.partitions",
        "pool.keys",
        "pool.partition_buckets",
        "_compacted",
        "_size",
    )

    def __init__(self, task: BranchTask, *, columns: int, end_columns: int, counters: int) -> None:
        super().__init__(task, by_start=False)
        self.pool = pool.Pool(
            runs=np.zeros((0, columns), np.int64),
            vectors=np.zeros((0, self.layout.width)),
            heads=np.zeros((0, pool.HEADS), np.int64),
            partitions=np.zeros((0, tables.PARTITION_COLUMNS), np.int64),
            keys=np.zeros((0, len(self.layout.plan.keys))),
            partition_buckets=np.zeros(0, np.int64),
            ends=np.zeros((room_for_more(_ENDS), end_columns), np.int64),
            counters=np.zeros(counters, np.int64),
            tallies=self.tallies,
            profile=self.profile,
            stack=np.empty(STACK),
        )
        #: The time of the event after which expired runs have been removed.
        self._compacted = 0
        #: How many runs and partitions there was room for then.
        self._size = 0
        self._compact(0)
        self._prunes = task.branches[0].output != "all"

    def _round(self, events: tables.Events) -> None:
        super()._round(events)
        now, size = int(events.times[-1]), len(self.pool.runs) + len(self.pool.partitions)
        earliest = now - self.layout.plan.window
        is_due = size > self._size or earliest >= self._compacted
        if (is_due and size > room_for_more(_SMALL)) or self._live() > self.task.limit:
            self._measure()
            self._compact(earliest)
            self._compacted = now

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
        if 2 * counters[tables.FREE_RUNS] < len(runs):
            self._add_runs()
        if counters[tables.FREE_PARTITION] < 0:
            self._add_partitions()
        if 2 * (counters[pool.ENDS] + pool.ENDS_A_STEP) > len(ends):
            self.pool = self.pool._replace(ends=np.concatenate((ends, ends)))

    def _add_runs(self) -> None:
        """Double the room for runs."""
        runs, vectors = self.pool.runs, self.pool.vectors
        self.pool = self.pool._replace(
            runs=np.concatenate((runs, np.zeros_like(runs))),
            vectors=np.concatenate((vectors, np.zeros_like(vectors))),
        )
        pool.add_runs(self.pool, len(runs))

    def _add_partitions(self) -> None:
        """Double the room for partitions."""
        size = 2 * len(self.pool.partitions)
        self.pool = with_partitions(self.layout.plan, self.pool, size)

    def _numbers(self, earliest: int) -> np.ndarray:
        """The numbers of the runs that began at ``earliest`` or later."""
        runs = self.pool.runs
        return np.flatnonzero((runs[:, pool.RUN_STATE] >= 0) & (runs[:, pool.START] >= earliest))

    def _compact(self, earliest: int) -> None:
        """Keep the runs alone that began at ``earliest`` or later, and their partitions."""
        old, numbers = self.pool, self._numbers(earliest)
        partitions = len(np.unique(old.runs[numbers, pool.PARTITION]))
        self.pool = self._empty(len(numbers), partitions)
        pool.keep(self.layout.plan, self.pool, old, earliest)
        self._size = len(self.pool.runs) + len(self.pool.partitions)

    def _empty(self, runs: int, partitions: int) -> pool.Pool:
        """A pool without runs and partitions, but with room for twice as many."""
        old, plan, size = self.pool, self.layout.plan, 2 * max(2, room_for_more(_RUNS), runs)
        old.counters[: pool.ENDS] = pool.NONE, 0, pool.NONE
        empty = old._replace(
            runs=np.zeros((size, old.runs.shape[1]), np.int64),
            vectors=np.zeros((size, old.vectors.shape[1])),
            heads=old.heads[:0], partitions=old.partitions[:0], keys=old.keys[:0],
        )  # fmt: skip
        pool.add_runs(empty, 0)
        # A power of two.
        return with_partitions(
            plan, empty, 2 << (max(room_for_more(_PARTITIONS), partitions) - 1).bit_length()
        )

    def _live(self) -> int:
        return int(len(self.pool.runs) - self.pool.counters[tables.FREE_RUNS])
