"""The pool of members of sets: room for more, without those that no row mentions any more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepbench.kernels.joins.tables import (
    BRANCH,
    CAPACITY,
    END,
    INT_OFFSET,
    IS_ROOT,
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
    starts = np.concatenate([np.empty(0, np.int64), *(a[rows] for a, _, rows in mentioned)])
    sizes = np.concatenate([np.empty(0, np.int64), *(size[rows] for _, size, rows in mentioned)])
    kept, first = np.unique(starts, return_index=True)
    lengths = sizes[first]
    begin = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    pool = np.empty((2, 2 * (total + more)), np.int64)
    pool[:, :total] = members[:, np.repeat(kept - begin, lengths) + np.arange(total)]
    for where, _, rows in mentioned:
        where[rows] = begin[np.searchsorted(kept, where[rows])]
    used[0] = total
    return pool


def _mentions(plan, state, ints, chunks):
    """Views of all columns that say where sets start, of those of their sizes, and which rows do."""
    for node in range(plan.inner, len(plan.nodes)):
        is_root, branch = plan.nodes[node, IS_ROOT] == 1, plan.nodes[node, BRANCH]
        for column, kind, *_ in plan.rules[_rules(plan, node, POSITIONS)]:
            if kind != 1:
                continue
            if is_root and not plan.stored:
                for chunk in chunks:
                    yield chunk[column], chunk[column + 1], slice(None)
                continue
            capacity = state[node, CAPACITY]
            begin = state[node, INT_OFFSET] + column * capacity
            rows = slice(begin + state[node, START], begin + state[node, END])
            yield ints[rows], ints[rows.start + capacity : rows.stop + capacity], slice(None)
            for own, target, *_ in plan.rules[_rules(plan, node, OUTPUT)]:
                for chunk in chunks if own == column else ():
                    mine = slice(None) if branch < 0 else np.flatnonzero(chunk[0] == branch)
                    yield chunk[target], chunk[target + 1], mine


def _rules(plan, node, kind):
    return slice(plan.spans[node, kind], plan.spans[node, kind + 1])
