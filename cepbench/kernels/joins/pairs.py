"""Outer rows with few inner rows each: all their pairs are listed, and tested together.

A block of outer rows then shares the fixed cost of a test, which otherwise each of them would pay.
"""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.joins.candidates import OUTER_BLOCK
from cepbench.kernels.joins.filters import FLIPPED, compares
from cepbench.kernels.joins.tables import (
    CAPACITY,
    COMPARE,
    COPY_FLOAT,
    COPY_INT,
    DISTINCT,
    EARLIEST,
    END,
    FLOAT_OFFSET,
    INT_OFFSET,
    LATEST,
    LEFT,
    PROGRAM,
    RIGHT,
    TESTED_LEFT,
)

#: Up to so many inner rows an outer row, on average, pairs are listed.
FEW = 6

#: Pairs that are listed at most.
MOST_PAIRS = FEW * OUTER_BLOCK


@njit_in_place
def lists_pairs(node, pairs, outers, plan):
    """Whether so few pairs of so many outer rows are better tested together.

    Parameters
    ----------
    node, pairs, outers : int
    plan : Plan
    """
    return pairs <= FEW * outers and plan.spans[node, PROGRAM] == plan.spans[node, PROGRAM + 1]


@njit_in_place
def list_pairs(outers, scratch):
    """List each outer row's place in its block with all inner rows of its range.

    Parameters
    ----------
    outers : int
        How many outer rows, of the ranges ``scratch.starts`` and ``scratch.stops``.
    scratch : Scratch
        ``outer_of`` and ``inner_of`` are written.

    Returns
    -------
    int
        How many pairs there are.
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
    """Keep those of the listed pairs that join; gives how many are left.

    Parameters
    ----------
    node, side : int
        The node, and the side of the outer rows.
    first, pairs : int
        The first outer row of the block, and how many pairs are listed.
    plan, state, scratch : Plan, NodeState, Scratch
    """
    outer_of, inner_of = scratch.outer_of, scratch.inner_of
    rules, spans = plan.rules, plan.spans
    x, y = plan.nodes[node, LEFT + side], plan.nodes[node, RIGHT - side]
    x_ints, y_ints = state.rows[x, INT_OFFSET] + first, state.rows[y, INT_OFFSET]
    for rule in range(spans[node, TESTED_LEFT + side], spans[node, TESTED_LEFT + side + 1]):
        bounded = rules[rule, 0]
        its = y_ints + bounded * state.rows[y, CAPACITY]
        low, high = scratch.low[bounded], scratch.high[bounded]
        kept = 0
        for pair in range(pairs):
            outer, inner = outer_of[pair], inner_of[pair]
            value = state.ints[its + inner]
            # Always written, kept only if they join: no branch to mispredict.
            outer_of[kept], inner_of[kept] = outer, inner
            kept += int((value >= low[outer]) & (value < high[outer]))
        pairs = kept
    for rule in range(spans[node, DISTINCT], spans[node, DISTINCT + 1]):
        mine = x_ints + rules[rule, side] * state.rows[x, CAPACITY]
        its = y_ints + rules[rule, 1 - side] * state.rows[y, CAPACITY]
        kept = 0
        for pair in range(pairs):
            outer, inner = outer_of[pair], inner_of[pair]
            outer_of[kept], inner_of[kept] = outer, inner
            kept += int(state.ints[mine + outer] != state.ints[its + inner])
        pairs = kept
    for rule in range(spans[node, COMPARE], spans[node, COMPARE + 1]):
        operator = rules[rule, 2]
        if side == 1:
            operator = FLIPPED[operator]
        mine = state.rows[x, FLOAT_OFFSET] + rules[rule, side] * state.rows[x, CAPACITY] + first
        its = state.rows[y, FLOAT_OFFSET] + rules[rule, 1 - side] * state.rows[y, CAPACITY]
        kept = 0
        for pair in range(pairs):
            outer, inner = outer_of[pair], inner_of[pair]
            outer_of[kept], inner_of[kept] = outer, inner
            kept += int(compares(operator, state.floats[mine + outer], state.floats[its + inner]))
        pairs = kept
    return pairs


@njit_in_place
def append_pairs(node, side, first, pairs, plan, state, scratch):
    """Write a row for each of the listed pairs after the last one of a node.

    Parameters
    ----------
    node, side, first, pairs : int
        As for :func:`keep_pairs`.
    plan, state, scratch : Plan, NodeState, Scratch
    """
    nodes, spans = plan.nodes, plan.spans
    outer_of, inner_of = scratch.outer_of, scratch.inner_of
    x, y = nodes[node, LEFT + side], nodes[node, RIGHT - side]
    x_ints, y_ints = state.rows[x, INT_OFFSET] + first, state.rows[y, INT_OFFSET]
    capacity = state.rows[node, CAPACITY]
    base = state.rows[node, INT_OFFSET] + state.rows[node, END]

    mine = x_ints + nodes[x, EARLIEST] * state.rows[x, CAPACITY]
    its = y_ints + nodes[y, EARLIEST] * state.rows[y, CAPACITY]
    target = base + nodes[node, EARLIEST] * capacity
    for pair in range(pairs):
        state.ints[target + pair] = min(
            state.ints[mine + outer_of[pair]], state.ints[its + inner_of[pair]]
        )
    mine = x_ints + nodes[x, LATEST] * state.rows[x, CAPACITY]
    its = y_ints + nodes[y, LATEST] * state.rows[y, CAPACITY]
    target = base + nodes[node, LATEST] * capacity
    for pair in range(pairs):
        state.ints[target + pair] = max(
            state.ints[mine + outer_of[pair]], state.ints[its + inner_of[pair]]
        )

    for rule in range(spans[node, COPY_INT], spans[node, COPY_INT + 1]):
        target = base + plan.rules[rule, 2] * capacity
        column = state.ints[target : target + pairs]
        copy_pairs(rule, node, side, first, plan, state, scratch, column)
    base = state.rows[node, FLOAT_OFFSET] + state.rows[node, END]
    for rule in range(spans[node, COPY_FLOAT], spans[node, COPY_FLOAT + 1]):
        target, copied = base + plan.rules[rule, 2] * capacity, plan.rules[rule, 1]
        if plan.rules[rule, 0] == side:
            source = state.rows[x, FLOAT_OFFSET] + copied * state.rows[x, CAPACITY] + first
            _gather(state.floats, source, outer_of, state.floats[target : target + pairs])
        else:
            source = state.rows[y, FLOAT_OFFSET] + copied * state.rows[y, CAPACITY]
            _gather(state.floats, source, inner_of, state.floats[target : target + pairs])


@njit_in_place
def copy_pairs(rule, node, side, first, plan, state, scratch, column):
    """Fill a column as a rule says: from the listed outer rows, or from the inner ones.

    Parameters
    ----------
    rule : int
        Number of a rule of the kind ``COPY_INT``.
    node, side, first : int
        As for :func:`keep_pairs`.
    plan, state, scratch : Plan, NodeState, Scratch
    column : int64 array, shape (pairs,)
        Written in place.
    """
    copied = plan.rules[rule, 1]
    if plan.rules[rule, 0] == side:
        x = plan.nodes[node, LEFT + side]
        source = state.rows[x, INT_OFFSET] + copied * state.rows[x, CAPACITY] + first
        _gather(state.ints, source, scratch.outer_of, column)
    else:
        y = plan.nodes[node, RIGHT - side]
        source = state.rows[y, INT_OFFSET] + copied * state.rows[y, CAPACITY]
        _gather(state.ints, source, scratch.inner_of, column)


@njit_in_place
def _gather(arena, source, chosen, column):
    """Fill ``column`` from the rows ``chosen`` of the one that starts at ``source``."""
    for row in range(len(column)):
        column[row] = arena[source + chosen[row]]
