"""The extreme value of each block of inner rows: one comparison tells that no row of a block joins.

Of selective comparisons, and of values that change slowly with time, it tells so of most blocks.
"""

from __future__ import annotations

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.filters import FLIPPED
from cepbench.kernels.instructions import EQUAL, LESS, LESS_EQUAL, UNEQUAL, compares
from cepbench.kernels.jit import njit_in_place

#: Blocks of inner rows at most, and the binary logarithm of the fewest rows of one.
BLOCKS = 1024
_SHIFT = 6

#: Pairs for each inner row from which finding the extremes is worth it.
_WORTH = 8


@njit_in_place
def bound_blocks(node, side, pairs, plan, state, scratch):
    """Find the extreme values of blocks of inner rows that the first comparison of a node reads.

    ``pairs``: how many pairs would be tested.

    Returns the binary logarithm of the rows of a block, or -1 if blocks are of no use.
    """
    rectangle, extremes = scratch.rectangle, scratch.extremes
    first, last = rectangle[tables.INNER_FIRST], rectangle[tables.INNER_LAST]
    rule = plan.spans[node, tables.COMPARE]
    if rule == plan.spans[node, tables.COMPARE + 1] or pairs < _WORTH * (last - first):
        return -1
    operator = _operator(rule, side, plan)
    if operator in (EQUAL, UNEQUAL):
        return -1
    shift = _SHIFT
    while (last - first) >> shift >= BLOCKS:
        shift += 1
    y = plan.nodes[node, tables.RIGHT - side]
    base = tables.float_column(y, plan.rules[rule, 1 - side], state)
    is_greatest = operator in (LESS, LESS_EQUAL)
    for block in range((last - 1 - first >> shift) + 1):
        begin = first + (block << shift)
        extreme = -np.inf if is_greatest else np.inf
        for value in state.floats[base + begin : base + min(last, begin + (1 << shift))]:
            # Never a missing one.
            if value > extreme if is_greatest else value < extreme:
                extreme = value
        extremes[block] = extreme
    return shift


@njit_in_place
def find_fitting(shift, node, side, outer, begin, stop, most, plan, state, scratch):
    """The next inner rows of ``begin..stop`` in blocks with one that passes the comparison with an outer row.

    ``shift``: the result of :func:`bound_blocks`, not -1. ``most``: how many rows to give, at least one.

    Returns the first of these rows and the row behind them; both are ``stop`` if there are none.
    """
    rule, first = plan.spans[node, tables.COMPARE], scratch.rectangle[tables.INNER_FIRST]
    operator = _operator(rule, side, plan)
    x = plan.nodes[node, tables.LEFT + side]
    value = state.floats[tables.float_column(x, plan.rules[rule, side], state) + outer]
    block, last = (begin - first) >> shift, (stop - 1 - first) >> shift
    while block <= last and not compares(operator, value, scratch.extremes[block]):
        block += 1
    begin = min(stop, max(begin, first + (block << shift)))
    stop = min(stop, begin + most)
    while first + (block << shift) < stop and compares(operator, value, scratch.extremes[block]):
        block += 1
    return begin, min(stop, first + (block << shift))


@njit_in_place
def _operator(rule, side, plan):
    """That of a comparison with the value of the outer row on its left."""
    operator = plan.rules[rule, 2]
    return FLIPPED[operator] if side == 1 else operator
