"""Partitions of events, and of the runs that wait for them."""

from __future__ import annotations

import numpy as np

from cepbench.engines.runs.pieces import room_for_more
from cepbench.engines.sase.kernels import tables
from cepbench.engines.sase.kernels.partitions import Table, number
from cepbench.engines.sase.kernels.room import with_partitions
from cepbench.state import check_shape

#: Partitions that there is room for at first; a power of two.
_PARTITIONS = 4

#: All flags: each event begins a partition.
_ANY = -1


class Partitions:
    """Numbers partitions, the events that share the values of ``[attribute]``, as they come.

    Without an attribute there is one, that of all events.
    """

    def __init__(self, plan: tables.Plan) -> None:
        self._plan = plan
        self.values = np.empty((int(not len(plan.keys)), len(plan.keys)))

    @property
    def values(self) -> np.ndarray:
        """The values of each partition, float64 (partitions, attributes); to be set to those that are kept."""
        return self._table.keys[: self.number]

    @values.setter
    def values(self, values: np.ndarray) -> None:
        kept, keys = len(values), len(self._plan.keys)
        check_shape("values", values, (kept, keys))
        table = Table(
            heads=np.empty((kept, 0), np.int64),
            partitions=np.full((kept, tables.PARTITION_COLUMNS), -1),
            keys=values,
            partition_buckets=np.empty(0, np.int64),
            counters=np.full(tables.FREE_PARTITION + 1, -1),
        )
        table.partitions[:, tables.OF_RUNS] = 0
        least = max(2 * kept, room_for_more(_PARTITIONS))
        self._table = with_partitions(self._plan, table, 1 << (least - 1).bit_length())

    @property
    def number(self) -> int:
        """How many partitions there are."""
        free = int(self._table.counters[tables.FREE_PARTITION])
        return len(self._table.keys) if free < 0 else free

    def of(self, events: tables.Events) -> np.ndarray:
        """The partition of each of ``events.rows``; one with a missing value is alone in its partition."""
        numbers, done = np.empty(len(events.rows), np.int64), 0
        while True:
            done = number(self._plan, self._table, events, _ANY, numbers, done)
            if done == len(numbers):
                return numbers
            self._table = with_partitions(self._plan, self._table, 2 * len(self._table.keys))


def side_by_side(partitions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The events of each partition side by side, in their order, behind those of none (-1).

    Returns
    -------
    order : int64 (events,)
    numbers : int64 (n,)
        The partitions that have events.
    spans : int64 (n + 1,)
        Of ``order``, their events.
    """
    order = np.argsort(partitions, kind="stable")
    its = partitions[order]
    begins = np.flatnonzero(its > np.append(-1, its[:-1]))
    return order, its[begins], np.append(begins, len(order))
