"""The pool of members of sets: room for more, without those that no row mentions any more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepbench.kernels.tables import (
    CAPACITY,
    END,
    INT_OFFSET,
    OUTPUT,
    POSITIONS,
    START,
    Plan,
)


def compacted(
    members: np.ndarray,
    used: np.ndarray,
    more: int,
    plan: Plan,
    state: np.ndarray,
    ints: np.ndarray,
    chunks: Sequence[np.ndarray],
) -> np.ndarray:
    """A new pool with the sets that rows and matches mention, and room for ``more`` members.

    Not compiled: as capacities double, it is called a few times in the whole of a run. What rows
    and matches say of where their sets start is brought up to date.

    Parameters
    ----------
    members : int64 array, shape (2, capacity)
    used : int64 array, shape (1,)
        How much of the pool is taken; written in place.
    more : int
    plan : Plan
    state, ints : int64 arrays
    chunks : sequence of int64 arrays, each of shape (columns, matches)
        The matches of this batch.

    Returns
    -------
    int64 array, shape (2, capacity)
    """
    mentioned = list(_mentions(plan, state, ints, chunks))
    starts = np.concatenate([np.empty(0, np.int64), *(where for where, _ in mentioned)])
    sizes = np.concatenate([np.empty(0, np.int64), *(size for _, size in mentioned)])
    kept, first = np.unique(starts, return_index=True)
    lengths = sizes[first]
    begin = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    pool = np.empty((2, 2 * (total + more)), np.int64)
    pool[:, :total] = members[:, np.repeat(kept - begin, lengths) + np.arange(total)]
    for where, _ in mentioned:
        where[:] = begin[np.searchsorted(kept, where)]
    used[0] = total
    return pool


def _mentions(plan, state, ints, chunks):
    """Views of all columns that say where sets start, each with that of their sizes."""
    root = len(plan.nodes) - 1
    for node in range(plan.inner, root + 1):
        for column, kind, *_ in plan.rules[_rules(plan, node, POSITIONS)]:
            if kind != 1:
                continue
            if node == root and not plan.stored:
                for chunk in chunks:
                    yield chunk[column], chunk[column + 1]
                continue
            capacity = state[node, CAPACITY]
            begin = state[node, INT_OFFSET] + column * capacity
            rows = slice(begin + state[node, START], begin + state[node, END])
            yield ints[rows], ints[rows.start + capacity : rows.stop + capacity]
            for own, target, *_ in plan.rules[_rules(plan, root, OUTPUT)] if node == root else ():
                for chunk in chunks if own == column else ():
                    yield chunk[target], chunk[target + 1]


def _rules(plan, node, kind):
    return slice(plan.spans[node, kind], plan.spans[node, kind + 1])
