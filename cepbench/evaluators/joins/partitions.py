"""Partition contiguity: the rank of every event among those that share the partition's attribute."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

from cepbench.patterns.model import Attribute, Clause, Comparison, Kind, Pattern
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


def with_partition(pattern: Pattern) -> Pattern:
    """The pattern with its partition's attribute equal everywhere, if it has such a strategy.

    Of the events in a match any two are compared, so that each join leaves out what it can. What
    [kolchinsky2018]_, section 5.2, says of the partition is thereby an ordinary condition.
    """
    name = pattern.strategy.attribute
    if name is None:
        return pattern
    pairs = [
        (Attribute(x, name), Attribute(y, name)) for x, y in combinations(pattern.positive_names, 2)
    ]
    pairs += [
        (Attribute(v.name, name, "previous"), Attribute(v.name, name))
        for v in pattern.positive
        if v.kind is Kind.KLEENE
    ]
    if len(pattern.positive) == 1:
        # Nothing to be equal to: what is missing differs from itself, and so is in no partition.
        pairs += [(Attribute(x, name), Attribute(x, name)) for x in pattern.positive_names]
    equal = tuple(Clause((Comparison("=", one, other),)) for one, other in pairs)
    return replace(pattern, conditions=pattern.conditions + equal)


class PartitionRanks:
    """Counts events by partition, batch after batch.

    Parameters
    ----------
    attribute : str
        Whose values make the partitions. Events without a value are a partition of no use: a
        comparison with a missing value is false.
    counts : dict of float to int
        Events seen so far by the value, or the code of the text.
    """

    def __init__(self, attribute: str | None, counts: dict[float, int] | None = None) -> None:
        assert attribute is not None  # the pattern has seen to it
        self.attribute = attribute
        self.counts = dict(counts or {})

    def of(self, batch: EventStream, reader: NumericReader) -> np.ndarray:
        """The rank of each event of the next batch within its partition, from 0 on."""
        values = reader.read(batch, self.attribute, slice(None))
        kinds, which, sizes = np.unique(values, return_inverse=True, return_counts=True)
        order = np.argsort(which, kind="stable")
        began = np.cumsum(sizes) - sizes
        ranks = np.empty(len(values), np.int64)
        ranks[order] = np.arange(len(values)) - np.repeat(began, sizes)
        before = np.array([self.counts.get(kind, 0) for kind in kinds.tolist()], np.int64)
        for kind, known, size in zip(kinds.tolist(), before.tolist(), sizes.tolist(), strict=True):
            if kind == kind:  # NaN is equal to no key, and would be a new one in every batch
                self.counts[kind] = known + size
        return ranks + (before[which] if len(kinds) else 0)
