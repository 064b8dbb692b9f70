"""The pool of members of sets: compaction to the sets that rows refer to, and growth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepbench.engines.joins.kernels import tables

#: Minimum capacity of a new pool: compaction takes as long as the creation of thousands of sets.
LEAST_ROOM = 1 << 12


def most_members(limit: int) -> int:
    """How many members of sets may be stored where so many partial matches may: a few gigabytes by default, too."""
    return 5 * max(limit, 1 << 20)


def compacted(
    more: int, plan: tables.Plan, state: tables.NodeState, chunks: Sequence[np.ndarray]
) -> tables.NodeState:
    """A new pool with the sets referred to by rows and matches, and room for ``more`` members.

    Not compiled: as capacities double, it is called a few times in a run. The columns of rows and
    matches with the starts of their sets are updated: ``state.ints``, ``state.used`` and ``chunks``,
    int64 (columns, matches), of this batch.
    """
    references = list(_references(plan, state, chunks))
    starts = np.concatenate([np.empty(0, np.int64), *(a[rows] for a, _, rows in references)])
    sizes = np.concatenate([np.empty(0, np.int64), *(size[rows] for _, size, rows in references)])
    kept, first = np.unique(starts, return_index=True)
    lengths = sizes[first]
    begin = np.cumsum(lengths) - lengths
    total = int(lengths.sum())
    pool = np.empty((2, max(2 * (total + more), LEAST_ROOM)), np.int64)
    pool[:, :total] = state.members[:, np.repeat(kept - begin, lengths) + np.arange(total)]
    for where, _, rows in references:
        where[rows] = begin[np.searchsorted(kept, where[rows])]
    state.used[0] = total
    return state._replace(members=pool)


def stored_members(plan: tables.Plan, state: tables.NodeState) -> int:
    """The members of the sets that stored rows refer to."""
    rows = [(starts[rows], sizes[rows]) for starts, sizes, rows in _references(plan, state, ())]
    if not rows:
        return 0
    starts, sizes = (np.concatenate(its) for its in zip(*rows, strict=True))
    return int(sizes[np.unique(starts, return_index=True)[1]].sum())


def _references(plan, state, chunks):
    """Views of all columns of starts of sets, the columns of their sizes, and the valid rows."""
    for node in range(plan.inner, len(plan.nodes)):
        is_root, branch = plan.nodes[node, tables.IS_ROOT] == 1, plan.nodes[node, tables.BRANCH]
        for column, kind, *_ in plan.rules[_rules(plan, node, tables.POSITIONS)]:
            if kind != 1:
                continue
            if is_root and not plan.stored:
                for chunk in chunks:
                    yield chunk[column], chunk[column + 1], slice(None)
                continue
            capacity = state.rows[node, tables.CAPACITY]
            begin = state.rows[node, tables.INT_OFFSET] + column * capacity
            first, last = (
                begin + state.rows[node, tables.START],
                begin + state.rows[node, tables.END],
            )
            sizes = state.ints[first + capacity : last + capacity]
            yield state.ints[first:last], sizes, slice(None)
            for own, target, *_ in plan.rules[_rules(plan, node, tables.OUTPUT)]:
                for chunk in chunks if own == column else ():
                    mine = slice(None) if branch < 0 else np.flatnonzero(chunk[0] == branch)
                    yield chunk[target], chunk[target + 1], mine


def _rules(plan, node, kind):
    return slice(plan.spans[node, kind], plan.spans[node, kind + 1])
