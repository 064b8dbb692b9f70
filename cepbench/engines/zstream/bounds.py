"""Rows that events set in other leaves, and comparisons with the events there."""

from __future__ import annotations

from dataclasses import dataclass

#: A column of values of the first leaf, one of the second, an operator.
Comparison = tuple[int, int, int]


@dataclass(frozen=True)
class Bound:
    """For each event of leaf ``x`` a row of leaf ``y``: the first one at its time + ``shift``."""

    x: int
    y: int
    shift: int
    #: A leaf: count from the time of its event that negates the event of ``x`` instead; or -1.
    negated: int = -1
    comparisons: tuple[Comparison, ...] = ()  #: between the events of ``x`` and of ``negated``
    #: Whether the negating event is the first one after the event of ``x``, not the last before.
    is_after: bool = False
    node: int = -1  #: which node's comparisons these are; -1 if there are none
