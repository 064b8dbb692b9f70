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
def list_pairs(outers, scratch):
    """List the pairs of each outer row's place in its block and the inner rows of its range.

    Returns the number of pairs.
    """
    outer_of, inner_of = scratch.outer_of, scratch.inner_of
    pairs = 0
    for place in range(outers):
        for inner in range(scratch.starts[place], scratch.stops[place]):
            outer_of[pairs] = place
            inner_of[pairs] = inner
            pairs += 1
    return pairs


@njit_in_place
def keep_pairs(node, side, first, pairs, plan, state, scratch):
    """Keep the listed pairs that join; returns their number.

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
    for rule in tables.rules_of(node, tables.COMPARE, plan):
        operator = rules[rule, 2]
        if side == 1:
            operator = FLIPPED[operator]
        mine = tables.float_column(x, rules[rule, side], state) + first
        its = tables.float_column(y, rules[rule, 1 - side], state)
        kept = 0
        for pair in range(pairs):
            outer, inner = outer_of[pair], inner_of[pair]
            outer_of[kept], inner_of[kept] = outer, inner
            kept += int(compares(operator, state.floats[mine + outer], state.floats[its + inner]))
        pairs = kept
    return pairs


@njit_in_place
def append_pairs(node, side, first, pairs, plan, state, scratch):
    """Append a row for each of the listed pairs to a node."""
    nodes = plan.nodes
    outer_of, inner_of = scratch.outer_of, scratch.inner_of
    x, y = nodes[node, tables.LEFT + side], nodes[node, tables.RIGHT - side]
    end = state.rows[node, tables.END]

    mine = tables.int_column(x, nodes[x, tables.EARLIEST], state) + first
    its = tables.int_column(y, nodes[y, tables.EARLIEST], state)
    target = tables.int_column(node, nodes[node, tables.EARLIEST], state) + end
    for pair in range(pairs):
        state.ints[target + pair] = min(
            state.ints[mine + outer_of[pair]], state.ints[its + inner_of[pair]]
        )
    mine = tables.int_column(x, nodes[x, tables.LATEST], state) + first
    its = tables.int_column(y, nodes[y, tables.LATEST], state)
    target = tables.int_column(node, nodes[node, tables.LATEST], state) + end
    for pair in range(pairs):
        state.ints[target + pair] = max(
            state.ints[mine + outer_of[pair]], state.ints[its + inner_of[pair]]
        )

    for rule in tables.rules_of(node, tables.COPY_INT, plan):
        target = tables.int_column(node, plan.rules[rule, 2], state) + end
        column = state.ints[target : target + pairs]
        copy_pairs(rule, node, side, first, plan, state, scratch, column)
    for rule in tables.rules_of(node, tables.COPY_FLOAT, plan):
        target = tables.float_column(node, plan.rules[rule, 2], state) + end
        values = state.floats[target : target + pairs]
        if plan.rules[rule, 0] == side:
            source = tables.float_column(x, plan.rules[rule, 1], state) + first
            _gather(state.floats, source, outer_of, values)
        else:
            _gather(
                state.floats, tables.float_column(y, plan.rules[rule, 1], state), inner_of, values
            )


@njit_in_place
def copy_pairs(rule, node, side, first, plan, state, scratch, column):
    """Fill a column by a copy rule: from the listed outer rows, or from the inner rows.

    ``rule``: number of a rule of the kind ``COPY_INT``. ``column``: int64 (pairs,), written in
    place.
    """
    copied = plan.rules[rule, 1]
    if plan.rules[rule, 0] == side:
        x = plan.nodes[node, tables.LEFT + side]
        source = tables.int_column(x, copied, state) + first
        _gather(state.ints, source, scratch.outer_of, column)
    else:
        y = plan.nodes[node, tables.RIGHT - side]
        _gather(state.ints, tables.int_column(y, copied, state), scratch.inner_of, column)


@njit_in_place
def _gather(arena, source, chosen, column):
    """Fill ``column`` from the rows ``chosen`` of the one that starts at ``source``."""
    for row in range(len(column)):
        column[row] = arena[source + chosen[row]]
