"""What a row of one side of a join says about the timestamps and ranks of rows of the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cepbench.evaluators.joins.nodes import Key, Node
from cepbench.evaluators.joins.programs import Rule
from cepbench.kernels.joins import tables


@dataclass(frozen=True)
class Side:
    """A child of a node.

    Attributes
    ----------
    node : Node
    ints : dict of Key to int
        Its integer columns.
    row : ndarray of int64, shape (NODE_COLUMNS,)
        Its row in the kernels' table of nodes.
    """

    node: Node
    ints: dict[Key, int]
    row: np.ndarray


def bounds_of(node: Node, outer_side: int, outer: Side, inner: Side, window: int) -> list[Rule]:
    """The bounds on inner rows that a row of the other child gives.

    Parameters
    ----------
    node : Node
        The join.
    outer_side : int
        0 if the outer row is one of the left child, 1 for the right one.
    outer, inner : Side
    window : int

    Returns
    -------
    list of (LOWER or UPPER, column of the inner row, column of the outer row, shift)
    """
    mine, its = outer.ints, inner.ints
    bounds: list[Rule] = []
    for x, y in node.order:
        if x in outer.node.variables:
            bounds.append((tables.LOWER, its["earliest", y], mine["latest", x], 1))
        else:
            bounds.append((tables.UPPER, its["latest", x], mine["earliest", y], 0))
    earliest, latest = int(inner.row[tables.EARLIEST]), int(inner.row[tables.LATEST])
    if node.drives[outer_side]:
        newest = int(outer.row[tables.LATEST])
        bounds.append((tables.LOWER, earliest, newest, -window))
        if earliest != latest and inner.node.is_sorted:
            # It follows, and narrows the range.
            bounds.append((tables.LOWER, latest, newest, -window))
    if node.drives[1 - outer_side]:
        oldest = int(outer.row[tables.EARLIEST])
        bounds.append((tables.UPPER, latest, oldest, window + 1))
    for x, y, least, most in node.apart:
        if x in outer.node.variables:
            bounds.append((tables.LOWER, its["rank", y], mine["rank", x], least))
            bounds.append((tables.UPPER, its["rank", y], mine["rank", x], most + 1))
        else:
            bounds.append((tables.LOWER, its["rank", x], mine["rank", y], -most))
            bounds.append((tables.UPPER, its["rank", x], mine["rank", y], 1 - least))
    return bounds
