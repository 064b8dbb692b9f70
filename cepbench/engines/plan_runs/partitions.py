"""Partition contiguity: the rank of each event among those of its partition."""

from __future__ import annotations

import numpy as np

from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


class PartitionRanks(Stateful):
    """Counts events by partition over batches: by value of an attribute, or code of the text.

    Events without a value form a partition without matches, since a comparison with a missing value
    is false.
    """

    SAVED = ("counts",)

    def __init__(self, attribute: str | None, counts: dict[float, int] | None = None) -> None:
        assert attribute is not None  # the pattern has seen to it
        self.attribute = attribute
        self.counts = dict(counts or {})

    def of(self, batch: EventStream, reader: NumericReader) -> np.ndarray:
        """The rank, from 0, of each event of the next batch within its partition."""
        values = reader.read(batch, self.attribute, slice(None))
        kinds, which, sizes = np.unique(values, return_inverse=True, return_counts=True)
        order = np.argsort(which, kind="stable")
        began = np.cumsum(sizes) - sizes
        ranks = np.empty(len(values), np.int64)
        ranks[order] = np.arange(len(values)) - np.repeat(began, sizes)
        before = np.array([self.counts.get(kind, 0) for kind in kinds.tolist()], np.int64)
        for kind, known, size in zip(kinds.tolist(), before.tolist(), sizes.tolist(), strict=True):
            if kind == kind:  # NaN equals no key and would be a new one in every batch
                self.counts[kind] = known + size
        return ranks + (before[which] if len(kinds) else 0)
