"""Outer rows with few inner rows each: all pairs are materialized and tested together.

The outer rows of a block share the fixed cost of a test.
"""

from __future__ import annotations

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.candidates import OUTER_BLOCK
from cepbench.engines.joins.kernels.filters import FLIPPED
from cepbench.kernels.instructions import compares
from cepbench.kernels.jit import njit_in_place

#: Maximum average number of inner rows per outer row for which pairs are listed.
FEW = 6

#: Maximum number of listed pairs.
MOST_PAIRS = FEW * OUTER_BLOCK


@njit_in_place
def lists_pairs(node, pairs, outers, plan):
    """Whether the pairs of these outer rows are few enough to be listed."""
    return (
        pairs <= FEW * outers
        and plan.spans[node, tables.PROGRAM] == plan.spans[node, tables.PROGRAM + 1]
    )


@njit_in_place
def list_pairs(node, side, first, outers, plan, state, scratch):
    """List the pairs of each outer row's place in its block and the inner rows of its range that the first
    comparison of the node leaves, if it has any.

    Returns the number of pairs.
    """
    outer_of, inner_of = scratch.outer_of, scratch.inner_of
    pairs = 0
    for rule in tables.rules_of(node, tables.COMPARE, plan):
        mine, its, operator = _compared(rule, node, side, plan, state)
        for place in range(outers):
            value = state.floats[mine + first + place]
            for inner in range(scratch.starts[place], scratch.stops[place]):
                # Always written, kept only if it passes: no branch to mispredict.
                outer_of[pairs], inner_of[pairs] = place, inner
                pairs += int(compares(operator, value, state.floats[its + inner]))
        return pairs
    for place in range(outers):
        for inner in range(scratch.starts[place], scratch.stops[place]):
            outer_of[pairs], inner_of[pairs] = place, inner
            pairs += 1
    return pairs


@njit_in_place
def _compared(rule, node, side, plan, state):
    """Where the columns of a comparison begin, and its operator with the outer row's value on the left."""
    x, y = plan.nodes[node, tables.LEFT + side], plan.nodes[node, tables.RIGHT - side]
    operator = plan.rules[rule, 2]
    mine = tables.float_column(x, plan.rules[rule, side], state)
    its = tables.float_column(y, plan.rules[rule, 1 - side], state)
    return mine, its, FLIPPED[operator] if side == 1 else operator


@njit_in_place
def keep_pairs(node, side, first, pairs, plan, state, scratch):
    """Keep the listed pairs that join, by all but the first comparison; returns their number.

    ``first``, ``pairs``: the first outer row of the block, and the number of listed pairs.
    """
    outer_of, inner_of = scratch.outer_of, scratch.inner_of
    rules = plan.rules
    x, y = plan.nodes[node, tables.LEFT + side], plan.nodes[node, tables.RIGHT - side]
    for rule in tables.rules_of(node, tables.TESTED_LEFT + side, plan):
        bounded = rules[rule, 0]
        its = tables.int_column(y, bounded, state)
        low, high = scratch.low[bounded], scratch.high[bounded]
        kept = 0
        for pair in range(pairs):
            outer, inner = outer_of[pair], inner_of[pair]
            value = state.ints[its + inner]
            # Always written, kept only if they join: no branch to mispredict.
            outer_of[kept], inner_of[kept] = outer, inner
            kept += int((value >= low[outer]) & (value < high[outer]))
        pairs = kept
    for rule in tables.rules_of(node, tables.DISTINCT, plan):
        mine = tables.int_column(x, rules[rule, side], state) + first
        its = tables.int_column(y, rules[rule, 1 - side], state)
        kept = 0
        for pair in range(pairs):
            outer, inner = outer_of[pair], inner_of[pair]
            outer_of[kept], inner_of[kept] = outer, inner
            kept += int(state.ints[mine + outer] != state.ints[its + inner])
        pairs = kept
    for rule in range(plan.spans[node, tables.COMPARE] + 1, plan.spans[node, tables.COMPARE + 1]):
        mine, its, operator = _compared(rule, node, side, plan, state)
        mine += first
        kept = 0
        for pair in range(pairs):
            outer, inner = outer_of[pair], inner_of[pair]
            outer_of[kept], inner_of[kept] = outer, inner
            kept += int(compares(operator, state.floats[mine + outer], state.floats[its + inner]))
        pairs = kept
    return pairs
