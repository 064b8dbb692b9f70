"""The join of the rows of two children at an inner node, as they are created.

Every pair of rows is joined once, in the step in which the later row was created. The pairs of a
step are a rectangle of rows of one child, the *outer* rows, and of the other, the *inner* rows. For
each outer row, time conditions on a sorted column become a range of inner rows; the other
conditions are tested column by column on blocks of inner rows, or, if ranges are short, on blocks
of pairs.
"""

from __future__ import annotations

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.blocks import bound_blocks, find_fitting
from cepbench.engines.joins.kernels.buffers import has_room
from cepbench.engines.joins.kernels.candidates import (
    OUTER_BLOCK,
    choose,
    count_joining,
    find_ranges,
    is_exact,
    look_up,
    looks_up,
    set_bounds,
    test,
    total_length,
)
from cepbench.engines.joins.kernels.equality import (
    choose_equal,
    count_equal,
    index_rule,
    make_index,
)
from cepbench.engines.joins.kernels.filters import BLOCK
from cepbench.engines.joins.kernels.pairs import keep_pairs, list_pairs, lists_pairs
from cepbench.engines.joins.kernels.rows import (
    LISTED,
    ONE,
    SUCCESSIVE,
    Chosen,
    append,
    copy_ints,
)
from cepbench.kernels import counts
from cepbench.kernels.jit import njit_in_place

#: Cost of an outer row in inner rows tested: rectangles are joined along their shorter side.
_OUTER_COST = 32


@njit_in_place
def has_drivers(node, plan, state):
    """Whether a new row may drive the join at a node."""
    for side in range(2):
        child = plan.nodes[node, tables.LEFT + side]
        if (
            plan.nodes[node, tables.LEFT_DRIVES + side] == 1
            and state.rows[child, tables.FRESH] < state.rows[child, tables.END]
        ):
            return True
    return False


@njit_in_place
def join_node(node, counting, limit, plan, state, scratch, matches):
    """Join the fresh rows of both children of an inner node.

    Rows of the root are matches: they are written to ``matches``, or only counted. If there is no
    room for more rows, it returns, and resumes when called again.

    Returns ``OK``, ``TOO_MANY`` or ``NO_ROOM`` (for ``scratch.rectangle[FOUND]`` rows).
    """
    rectangle = scratch.rectangle
    is_root = node == len(plan.nodes) - 1 and not plan.stored
    if rectangle[tables.TURN] < 0:
        state.rows[node, tables.FRESH] = state.rows[node, tables.END]
        _lay_out(node, 0, is_root, plan, state, rectangle)
    while True:
        if rectangle[tables.OUTER] < rectangle[tables.OUTER_LAST]:
            outcome = _join_rectangle(node, counting, limit, plan, state, scratch, matches)
            if outcome != tables.OK:
                return outcome
        if rectangle[tables.TURN] == 1:
            break
        _lay_out(node, 1, is_root, plan, state, rectangle)
    rectangle[tables.TURN] = -1
    return tables.OK


@njit_in_place
def _lay_out(node, side, is_root, plan, state, rectangle):
    """The rows with which the fresh rows of one side are joined; possibly none."""
    nodes = plan.nodes
    x, y = nodes[node, tables.LEFT + side], nodes[node, tables.RIGHT - side]
    both_drive = nodes[node, tables.LEFT_DRIVES] + nodes[node, tables.RIGHT_DRIVES] == 2
    first, last = state.rows[x, tables.FRESH], state.rows[x, tables.END]
    inner_first, inner_last = state.rows[y, tables.START], state.rows[y, tables.END]
    rectangle[tables.TURN] = side
    if both_drive and side == 1:
        # Pairs of fresh rows were joined in the turn of the left side.
        inner_last = state.rows[y, tables.FRESH]
    if nodes[node, tables.LEFT_DRIVES + side] == 0 or inner_first == inner_last:
        last = first
    rectangle[tables.OUTER] = rectangle[tables.OUTER_LAST] = first
    if first == last:
        return
    # Results are sorted by time only if the drivers are the outer rows.
    if (
        (is_root or both_drive)
        and not looks_up(node, side, plan)
        and _better_turned(node, side, last - first, inner_last - inner_first, plan)
    ):
        side = 1 - side
        first, last, inner_first, inner_last = inner_first, inner_last, first, last
    rectangle[tables.SIDE] = side
    rectangle[tables.OUTER], rectangle[tables.OUTER_LAST] = first, last
    rectangle[tables.INNER_FIRST], rectangle[tables.INNER_LAST] = inner_first, inner_last
    rectangle[tables.INNER] = -1


@njit_in_place
def _better_turned(node, side, outer, inner, plan):
    """Whether to exchange the inner and outer rows of a rectangle."""
    inner_cost = 0 if is_exact(node, side, plan) else inner
    outer_cost = 0 if is_exact(node, 1 - side, plan) else outer
    return inner * (_OUTER_COST + outer_cost) < outer * (_OUTER_COST + inner_cost)


@njit_in_place
def _join_rectangle(node, counting, limit, plan, state, scratch, matches):
    """Join the rows of ``scratch.rectangle``, until there is no room for more."""
    rectangle = scratch.rectangle
    side = rectangle[tables.SIDE]
    exact = is_exact(node, side, plan)
    looked_up = looks_up(node, side, plan)
    equality = -1 if looked_up else index_rule(node, plan, rectangle)
    buckets = 0
    if equality >= 0:
        buckets = make_index(equality, node, side, plan, state, scratch)
    for first in range(rectangle[tables.OUTER], rectangle[tables.OUTER_LAST], OUTER_BLOCK):
        outers = min(OUTER_BLOCK, rectangle[tables.OUTER_LAST] - first)
        set_bounds(node, side, first, outers, plan, state, scratch)
        if looked_up:
            look_up(node, side, first, outers, plan, state, scratch)
        else:
            find_ranges(node, side, outers, plan, state, scratch)
        pairs = total_length(scratch.starts, scratch.stops, outers)
        begun = rectangle[tables.INNER] >= 0
        shift = -1 if equality >= 0 else bound_blocks(node, side, pairs, plan, state, scratch)
        if counting and exact:
            state.counts[node, counts.CREATED] += pairs
        elif equality < 0 and not begun and lists_pairs(node, pairs, outers, plan):
            outcome = _join_pairs(
                node, counting, limit, first, outers, pairs, plan, state, scratch, matches
            )
            if outcome != tables.OK:
                return outcome
        elif counting:
            _count_rows(node, equality, buckets, shift, first, outers, plan, state, scratch)
        else:
            outcome = _join_rows(
                node, equality, buckets, shift, limit, first, outers, plan, state, scratch, matches
            )
            if outcome != tables.OK:
                return outcome
    return tables.OK


@njit_in_place
def _count_rows(node, equality, buckets, shift, first, outers, plan, state, scratch):
    """Count the pairs of a block of outer rows, one outer row after the other."""
    side = scratch.rectangle[tables.SIDE]
    for row in range(outers):
        start, stop = scratch.starts[row], scratch.stops[row]
        if start >= stop:
            continue
        if equality >= 0:
            found, compared = count_equal(
                equality, buckets, node, side, first + row, row, start, stop, plan, state, scratch
            )
        else:
            found, compared = 0, stop - start
            while start < stop:
                end = stop
                if shift >= 0:
                    start, end = find_fitting(
                        shift,
                        node,
                        side,
                        first + row,
                        start,
                        stop,
                        stop - start,
                        plan,
                        state,
                        scratch,
                    )
                found += count_joining(
                    node, side, first + row, row, start, end, plan, state, scratch
                )
                start = end
        state.counts[node, counts.CREATED] += found
        state.counts[node, counts.COMPARED] += compared


@njit_in_place
def _join_rows(node, equality, buckets, shift, limit, first, outers, plan, state, scratch, matches):
    """Join a block of outer rows, one after the other."""
    rectangle, mask, chosen = scratch.rectangle, scratch.mask, scratch.chosen
    side = rectangle[tables.SIDE]
    exact = is_exact(node, side, plan)
    for row in range(outers):
        outer, stop = first + row, scratch.stops[row]
        begin = scratch.starts[row] if rectangle[tables.INNER] < 0 else rectangle[tables.INNER]
        rectangle[tables.INNER] = -1
        while begin < stop:
            if equality >= 0:
                found, compared, after = choose_equal(
                    equality, buckets, node, side, outer, row, begin, stop, plan, state, scratch
                )
            else:
                after = min(stop, begin + BLOCK)
                if shift >= 0:
                    before = begin
                    begin, after = find_fitting(
                        shift, node, side, outer, begin, stop, BLOCK, plan, state, scratch
                    )
                    state.counts[node, counts.COMPARED] += begin - before
                found, compared = after - begin, 0
                if not exact:
                    compared = found
                    test(node, side, outer, row, begin, found, plan, state, scratch)
                    found = choose(begin, found, mask, chosen)
            inner = Chosen(SUCCESSIVE, begin, chosen) if exact else Chosen(LISTED, 0, chosen)
            outcome = _add(
                node, found, limit, Chosen(ONE, outer, chosen), inner, plan, state, scratch, matches
            )
            if outcome != tables.OK:
                rectangle[tables.OUTER], rectangle[tables.INNER], rectangle[tables.FOUND] = (
                    outer,
                    begin,
                    found,
                )
                return outcome
            state.counts[node, counts.COMPARED] += compared
            begin = after
    return tables.OK


@njit_in_place
def _join_pairs(node, counting, limit, first, outers, pairs, plan, state, scratch, matches):
    """Join a block of outer rows with few inner rows each, or count their pairs."""
    rectangle = scratch.rectangle
    side = rectangle[tables.SIDE]
    found = list_pairs(node, side, first, outers, plan, state, scratch)
    if is_exact(node, side, plan):
        pairs = 0  # none is compared
    else:
        found = keep_pairs(node, side, first, found, plan, state, scratch)
    if counting:
        state.counts[node, counts.CREATED] += found
    else:
        outer, inner = Chosen(LISTED, first, scratch.outer_of), Chosen(LISTED, 0, scratch.inner_of)
        outcome = _add(node, found, limit, outer, inner, plan, state, scratch, matches)
        if outcome != tables.OK:
            rectangle[tables.OUTER], rectangle[tables.FOUND] = first, found
            return outcome
    state.counts[node, counts.COMPARED] += pairs
    return tables.OK


@njit_in_place
def _add(node, found, limit, outer, inner, plan, state, scratch, matches):
    """Add joined rows to a node, or to the matches, if they may be stored and there is room for them."""
    if found == 0:
        return tables.OK
    end, side = state.rows[node, tables.END], scratch.rectangle[tables.SIDE]
    if end - state.rows[node, tables.START] + found > limit:
        return tables.TOO_MANY
    if node == len(plan.nodes) - 1 and not plan.stored:
        if end + found > matches.shape[1]:
            return tables.NO_ROOM
        for rule in tables.rules_of(node, tables.COPY_INT, plan):
            column = matches[plan.rules[rule, 2], end : end + found]
            copy_ints(rule, node, side, outer, inner, plan, state, column)
    else:
        if not has_room(node, found, plan, state):
            return tables.NO_ROOM
        append(found, node, side, outer, inner, plan, state)
    state.rows[node, tables.END] += found
    state.counts[node, counts.CREATED] += found
    return tables.OK
