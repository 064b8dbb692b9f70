"""What the engines share that keep the runs of a partition apart."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np

from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.matches import Column
from cepbench.engines.sase.automaton_engine import AutomatonEngine
from cepbench.engines.sase.kernels import tables
from cepbench.engines.sase.kernels.moves import ENDS, SETTLED, Machine
from cepbench.engines.sase.partitions import Partitions
from cepbench.kernels.instructions import STACK


class ApartEngine(AutomatonEngine):
    """Keeps runs apart, in partitions that are numbered anew in each round; see
    :class:`AutomatonEngine`.
    """

    SAVED = ("_partitions.held",)

    state: Any  #: of its kernel; has ``counters``, and accepting runs in ``ends``

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task, by_start=False)
        self._machine = Machine(np.empty(STACK), self.profile, self.tallies)
        self._partitions = Partitions(self.layout.plan.keys)
        self._prunes = task.branches[0].output != "all"

    def _round(self, events: tables.Events) -> None:
        super()._round(events)
        self._measure()
        self._compact(int(events.times[-1]) - self.layout.plan.window)

    @abstractmethod
    def _compact(self, earliest: int) -> None:
        """Keep the runs that began at ``earliest`` or later, for the next round."""

    def _construct(self) -> None:
        ends, counters = self.state.ends, self.state.counters
        number = int(counters[SETTLED if self._prunes else ENDS])
        if number:
            self._keep(self._chunks_of(ends[:number]), number)
        rest = int(counters[ENDS]) - number
        ends[:rest] = ends[number : number + rest]
        counters[ENDS], counters[SETTLED] = rest, 0

    @abstractmethod
    def _chunks_of(self, ends: np.ndarray) -> Iterable[list[Column]]:
        """The matches of accepting runs."""

    def _widen_ends(self, more: int) -> None:
        """Double the room for accepting runs unless there is as much for ``more``."""
        ends = self.state.ends
        if 2 * (self.state.counters[ENDS] + more) > len(ends):
            self.state = self.state._replace(ends=np.concatenate((ends, ends)))
