"""Equality joins, of values or of ranks: a hash index over the inner rows of a rectangle.

The index is rebuilt for each rectangle, because rows may move in between. It takes a few
nanoseconds per inner row, less than testing all inner rows for more than a few outer rows.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.candidates import test
from cepbench.engines.joins.kernels.filters import BLOCK
from cepbench.kernels.hashing import bucket_of
from cepbench.kernels.instructions import EQUAL
from cepbench.kernels.jit import njit_in_place

#: Maximum number of inner rows to index; if there are more, all are tested.
INDEXED = 1 << 16

#: With fewer rows on either side, testing all is faster.
FEWEST_OUTER, FEWEST_INNER = 16, 128

# For literals Numba would compile the called kernels again.
_ONE = np.int64(1)


@njit_in_place
def index_rule(node, plan, rectangle):
    """The rule of the equality by which to index the inner rows of a rectangle; -1 for none."""
    outer = rectangle[tables.OUTER_LAST] - rectangle[tables.OUTER]
    inner = rectangle[tables.INNER_LAST] - rectangle[tables.INNER_FIRST]
    if outer < FEWEST_OUTER or inner < FEWEST_INNER or inner > INDEXED:
        return -1
    for rule in tables.rules_of(node, tables.RANKS, plan):
        return rule if plan.rules[rule, 0] >= 0 else -1
    for rule in tables.rules_of(node, tables.COMPARE, plan):
        if plan.rules[rule, 2] == EQUAL:
            return rule
    return -1


@njit_in_place
def _value(rule, node, side, row, plan, state):
    """What an equality compares of a row of the left child, with ``side`` 1 of the right one."""
    child, column = plan.nodes[node, tables.LEFT + side], plan.rules[rule, side]
    if rule < plan.spans[node, tables.RANKS]:
        return state.floats[tables.float_column(child, column, state) + row]
    rank = state.ints[tables.int_column(child, column, state) + row]
    return np.float64(rank + (1 - side) * plan.rules[rule, 2])


@njit_in_place
def make_index(rule, node, side, plan, state, scratch):
    """Index the inner rows of ``scratch.rectangle``: chains of rows in ascending order.

    Returns the number of buckets, a power of two.
    """
    first, last = scratch.rectangle[tables.INNER_FIRST], scratch.rectangle[tables.INNER_LAST]
    heads, chain = scratch.heads, scratch.chain
    buckets = 1
    while buckets < last - first:
        buckets *= 2
    for bucket in range(buckets):
        heads[bucket] = -1
    for row in range(last - 1, first - 1, -1):
        bucket = bucket_of(_value(rule, node, 1 - side, row, plan, state), buckets)
        chain[row - first] = heads[bucket]
        heads[bucket] = row
    return buckets


@njit_in_place
def choose_equal(rule, buckets, node, side, outer, row, begin, stop, plan, state, scratch):
    """Write the inner rows ``begin..stop`` that join an outer row to ``scratch.chosen``.

    ``rule``, ``buckets``: the rule of the equality, and the result of :func:`make_index`.

    Returns ``found``: int, number of rows; at most ``BLOCK``. ``compared``: int, number of rows
    with the same value. ``after``: int, the row at which to resume.
    """
    value = _value(rule, node, side, outer, plan, state)
    first, chain = scratch.rectangle[tables.INNER_FIRST], scratch.chain
    found = compared = 0
    at = scratch.heads[bucket_of(value, buckets)]
    while at >= 0 and at < begin:
        at = chain[at - first]
    while at >= 0 and at < stop and found < BLOCK:
        if _value(rule, node, 1 - side, at, plan, state) == value:
            compared += 1
            test(node, side, outer, row, at, _ONE, plan, state, scratch)
            scratch.chosen[found] = at
            found += int(scratch.mask[0])
        at = chain[at - first]
    return found, compared, at if 0 <= at < stop else stop


@njit_in_place
def count_equal(rule, buckets, node, side, outer, row, start, stop, plan, state, scratch):
    """The numbers of inner rows ``start..stop`` that join an outer row, and that have its value."""
    total = equal = 0
    while start < stop:
        found, compared, start = choose_equal(
            rule, buckets, node, side, outer, row, start, stop, plan, state, scratch
        )
        total += found
        equal += compared
    return total, equal
