"""The inner rows that join an outer row: a range of rows by time, then tests by column.

Shared by joins, sets and checks. Outer rows are processed in blocks, so that their bounds and
ranges are columns too.
"""

from __future__ import annotations

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.filters import (
    BLOCK,
    FLIPPED,
    HIGHEST,
    LOWEST,
    count_between,
    count_between_both,
    count_compared,
    keep_between,
    keep_compared,
    keep_other,
    run_program,
)
from cepbench.kernels.jit import njit_in_place

#: Outer rows whose bounds are computed together.
OUTER_BLOCK = 256

#: Intervals of an index on time.
GUIDE = 1024


@njit_in_place
def is_exact(node, side, plan):
    """Whether every inner row in the range of an outer row joins it, so that no tests are needed."""
    spans = plan.spans
    tested = spans[node, tables.TESTED_LEFT + side + 1] - spans[node, tables.TESTED_LEFT + side]
    return tested == 0 and spans[node, tables.DISTINCT] == spans[node, tables.PROGRAM + 1]


@njit_in_place
def set_bounds(node, side, first, outers, plan, state, scratch):
    """Bound the timestamps of inner rows: ``low[column] <= t < high[column]`` of ``scratch``."""
    low, high = scratch.low, scratch.high
    x = plan.nodes[node, tables.LEFT + side]
    rules = tables.rules_of(node, tables.BOUNDS_LEFT + side, plan)
    for rule in rules:
        low[plan.rules[rule, 1], :outers] = LOWEST
        high[plan.rules[rule, 1], :outers] = HIGHEST
    for rule in rules:
        bounded, shift = plan.rules[rule, 1], plan.rules[rule, 3]
        begin = tables.int_column(x, plan.rules[rule, 2], state) + first
        column = state.ints[begin : begin + outers]
        lowest, highest = low[bounded, :outers], high[bounded, :outers]
        if plan.rules[rule, 0] == tables.LOWER:
            for row in range(outers):
                lowest[row] = max(lowest[row], column[row] + shift)
        else:
            for row in range(outers):
                highest[row] = min(highest[row], column[row] + shift)


@njit_in_place
def looks_up(node, side, plan):
    """Whether at most one inner row can join an outer row, and is found by its number."""
    spans = plan.spans
    return spans[node, tables.LOOKUP_LEFT + side] < spans[node, tables.LOOKUP_LEFT + side + 1]


@njit_in_place
def inner_range(rectangle, first, last):
    """Let :func:`find_ranges` search the inner rows from ``first`` to before ``last``."""
    rectangle[tables.INNER_FIRST], rectangle[tables.INNER_LAST] = first, last


@njit_in_place
def find_ranges(node, side, outers, plan, state, scratch):
    """The range of inner rows within the bounds of each outer row, by columns sorted by time."""
    starts, stops = scratch.starts, scratch.stops
    first, last = scratch.rectangle[tables.INNER_FIRST], scratch.rectangle[tables.INNER_LAST]
    y = plan.nodes[node, tables.RIGHT - side]
    if plan.nodes[y, tables.SORTED] == 0:
        starts[:outers] = first
        stops[:outers] = last
        return
    latest = plan.nodes[y, tables.LATEST]
    base = tables.int_column(y, latest, state)
    column = state.ints[base + first : base + last]
    first_at_least(column, first, scratch.low[latest], starts, outers, scratch.guide)
    first_at_least(column, first, scratch.high[latest], stops, outers, scratch.guide)


@njit_in_place
def look_up(node, side, first, outers, plan, state, scratch):
    """As :func:`find_ranges`, if at most one inner row can join an outer row."""
    starts, stops = scratch.starts, scratch.stops
    rule = plan.spans[node, tables.LOOKUP_LEFT + side]
    shift = plan.rules[rule, 2]
    begin, end = scratch.rectangle[tables.INNER_FIRST], scratch.rectangle[tables.INNER_LAST]
    x, y = plan.nodes[node, tables.LEFT + side], plan.nodes[node, tables.RIGHT - side]
    outer = tables.int_column(x, plan.rules[rule, 1], state) + first
    inner = tables.int_column(y, plan.rules[rule, 0], state)
    oldest = before = state.ints[inner + begin]
    at = begin
    for row in range(outers):
        value = state.ints[outer + row] + shift
        starts[row] = stops[row] = begin
        if value < oldest:
            continue
        # As no two are equal, it is no more rows away from the one found before than their difference.
        low = max(begin, at + min(0, value - before))
        size = min(end, at + 1 + max(0, value - before)) - low
        while size > 1:
            half = size // 2
            # Without a branch to mispredict.
            low += half * int(state.ints[inner + low + half] <= value)
            size -= half
        before, at = value, low
        starts[row] = low
        stops[row] = low + int(state.ints[inner + low] == value)


@njit_in_place
def first_at_least(column, offset, values, found, count, guide):
    """For each value the first row of a sorted column that is not smaller.

    Many values in ascending order are found by a merge scan. Otherwise ``guide`` is an equi-width
    index on the time spanned by the column, with the first row of each interval, which leaves a row
    or two to search.

    ``column``: int64 (rows,), ascending.
    ``offset``: int, added to all results; the result is ``offset + rows`` if all rows are smaller.
    ``values``: int64 (at least count,).
    ``found``: int64 (at least count,), written in place.
    ``count``: int, number of values.
    ``guide``: int64 (GUIDE + 1,), working space.
    """
    rows = len(column)
    if rows == 0 or count == 0:
        found[:count] = offset
        return
    if 8 * count > rows and _never_falls(values[:count]):
        row = 0
        for number in range(count):
            while row < rows and column[row] < values[number]:
                row += 1
            found[number] = row + offset
        return
    least, greatest = column[0], column[rows - 1]
    shift = -1
    # Halved, so that the difference cannot overflow.
    if 8 * count > rows > 8 and greatest // 2 - least // 2 < HIGHEST // 2:
        shift = 0
        while (greatest - least) >> shift >= min(GUIDE, 2 * rows):
            shift += 1
        part = 0
        for row in range(rows):
            while part <= (column[row] - least) >> shift:
                guide[part] = row
                part += 1
        guide[part] = rows
    for number in range(count):
        value = values[number]
        low, high = 0, rows
        if value > greatest:
            low = rows
        elif value <= least:
            high = 0
        elif shift >= 0:
            part = (value - least) >> shift
            low, high = guide[part], guide[part + 1]
        while low < high:
            middle = (low + high) // 2
            if column[middle] < value:
                low = middle + 1
            else:
                high = middle
        found[number] = low + offset


@njit_in_place
def _never_falls(values):
    falls = 0
    later = values[1:]
    for row in range(len(later)):
        falls += int(later[row] < values[row])
    return falls == 0


@njit_in_place
def total_length(starts, stops, outers):
    """Total number of rows in all ranges."""
    total = 0
    for row in range(outers):
        total += max(0, stops[row] - starts[row])
    return total


@njit_in_place
def test(node, side, outer, row, begin, size, plan, state, scratch):
    """Set ``scratch.mask`` to 1 for the inner rows of a block that join an outer row, else to 0.

    ``begin``, ``size``: the first inner row, and the number of them, at most ``BLOCK``.
    """
    mask = scratch.mask[:size]
    rules, spans = plan.rules, plan.spans
    x, y = plan.nodes[node, tables.LEFT + side], plan.nodes[node, tables.RIGHT - side]
    mask[:] = 1
    for rule in tables.rules_of(node, tables.TESTED_LEFT + side, plan):
        column = rules[rule, 0]
        first = tables.int_column(y, column, state) + begin
        low, high = scratch.low[column, row], scratch.high[column, row]
        keep_between(mask, state.ints[first : first + size], low, high)
    for rule in tables.rules_of(node, tables.DISTINCT, plan):
        mine, its = rules[rule, side], rules[rule, 1 - side]
        first = tables.int_column(y, its, state) + begin
        value = state.ints[tables.int_column(x, mine, state) + outer]
        keep_other(mask, state.ints[first : first + size], value)
    for rule in tables.rules_of(node, tables.COMPARE, plan):
        mine, its, operator = rules[rule, side], rules[rule, 1 - side], rules[rule, 2]
        if side == 1:
            operator = FLIPPED[operator]
        first = tables.float_column(y, its, state) + begin
        value = state.floats[tables.float_column(x, mine, state) + outer]
        keep_compared(mask, operator, value, state.floats[first : first + size])
    if spans[node, tables.PROGRAM] < spans[node, tables.PROGRAM + 1]:
        run_program(
            mask,
            plan,
            spans[node, tables.PROGRAM],
            spans[node, tables.PROGRAM + 1],
            scratch.stack,
            side == 0,
            state.floats,
            (state.rows[x, tables.FLOAT_OFFSET] + outer, state.rows[x, tables.CAPACITY]),
            (state.rows[y, tables.FLOAT_OFFSET] + begin, state.rows[y, tables.CAPACITY]),
        )


@njit_in_place
def count_joining(node, side, outer, row, start, stop, plan, state, scratch):
    """The number of inner rows ``start..stop`` that join an outer row, if tests are needed."""
    rules, spans = plan.rules, plan.spans
    bounded, last_bounded = (
        spans[node, tables.TESTED_LEFT + side],
        spans[node, tables.TESTED_LEFT + side + 1],
    )
    compared, last_compared = spans[node, tables.COMPARE], spans[node, tables.COMPARE + 1]
    bounds, comparisons = last_bounded - bounded, last_compared - compared
    others = spans[node, tables.PROGRAM + 1] - spans[node, tables.DISTINCT] - comparisons
    y = plan.nodes[node, tables.RIGHT - side]
    # The most frequent tests are counted in one pass, several times as fast as with a mask.
    if others == 0 and comparisons == 0 and bounds <= 2:
        column, second = rules[bounded, 0], rules[last_bounded - 1, 0]
        low, high = scratch.low[column, row], scratch.high[column, row]
        first = tables.int_column(y, column, state)
        if bounds == 1:
            return count_between(state.ints[first + start : first + stop], low, high)
        also = tables.int_column(y, second, state)
        return count_between_both(
            state.ints[first + start : first + stop],
            low,
            high,
            state.ints[also + start : also + stop],
            scratch.low[second, row],
            scratch.high[second, row],
        )
    if others == 0 and comparisons == 1 and bounds == 0:
        mine, its, operator = rules[compared, side], rules[compared, 1 - side], rules[compared, 2]
        if side == 1:
            operator = FLIPPED[operator]
        x = plan.nodes[node, tables.LEFT + side]
        value = state.floats[tables.float_column(x, mine, state) + outer]
        first = tables.float_column(y, its, state)
        return count_compared(operator, value, state.floats[first + start : first + stop])
    total = 0
    for begin in range(start, stop, BLOCK):
        size = min(BLOCK, stop - begin)
        test(node, side, outer, row, begin, size, plan, state, scratch)
        for place in range(size):
            total += int(scratch.mask[place])
    return total


@njit_in_place
def choose(begin, size, mask, chosen):
    """List the rows of a block that join; returns their number.

    ``begin``, ``size``: the first row, and the number of rows. ``mask``: uint8 (at least size,).
    ``chosen``: int64 (at least size,), written in place.
    """
    found = 0
    for row in range(size):
        # Always written, kept only if it joins: no branch to mispredict.
        chosen[found] = begin + row
        found += int(mask[row])
    return found
