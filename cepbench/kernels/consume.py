"""The consuming strategy: an event may be in one match only [kolchinsky2018]_, section 5.2.

Of the matches that any-match would find, in order of the position of their last event and then of
all their positions, one is a match if none of its events is in a match before it. What holds a
consumed event is of no further use and forgotten, so that less is joined.
"""

from __future__ import annotations

from cepbench.kernels.jit import njit_in_place
from cepbench.kernels.rows import move_row, swap_rows
from cepbench.kernels.tables import (
    CAPACITY,
    END,
    INT_OFFSET,
    KEPT,
    POSITIONS,
    START,
)


@njit_in_place
def choose_disjoint(first, number, plan, state, ints, floats, members):
    """Bring those of the root's rows ``first … first + number`` to the front that are matches.

    In the order in which they count. Gives how many they are; the others stay behind them.
    """
    root = len(plan.nodes) - 1
    chosen, live = 0, number
    while chosen < live:
        best = first + chosen
        for row in range(first + chosen + 1, first + live):
            if _comes_before(row, best, root, plan, state, ints, members):
                best = row
        place = first + chosen
        swap_rows(root, best, place, plan, state, ints, floats)
        chosen += 1
        row = first + chosen
        while row < first + live:
            if _share(root, row, place, plan, state, ints, members):
                live -= 1
                swap_rows(root, row, first + live, plan, state, ints, floats)
            else:
                row += 1
    return chosen


@njit_in_place
def consume(first, number, rest, plan, state, ints, floats, members):
    """Forget what holds an event of the root's rows ``first … first + number``.

    ``rest`` is the first of the root's rows that still wait.
    """
    root = len(plan.nodes) - 1
    for node in range(root + 1):
        if (plan.nodes[node, KEPT] == 0 and node != root) or (
            plan.spans[node, POSITIONS] == plan.spans[node, POSITIONS + 1]
        ):
            continue
        begin = rest if node == root else state[node, START]
        for match in range(first, first + number):
            kept = begin
            for row in range(begin, state[node, END]):
                if not _share(node, row, match, plan, state, ints, members):
                    move_row(node, row, kept, plan, state, ints, floats)
                    kept += 1
                elif _is_kleene(node, plan):
                    # Its rows are known by their numbers, so they stay, but join no more.
                    ints[state[node, INT_OFFSET] + state[node, CAPACITY] + row] = -1
                    kept += 1
            state[node, END] = kept


@njit_in_place
def _is_kleene(node, plan):
    """Whether a node is the leaf of a Kleene variable."""
    rule = plan.spans[node, POSITIONS]
    return plan.rules[rule, 1] == 2


@njit_in_place
def _share(node, row, match, plan, state, ints, members):
    """Whether a row of ``node`` holds an event of a match, a row of the root."""
    root = len(plan.nodes) - 1
    for rule in range(plan.spans[node, POSITIONS], plan.spans[node, POSITIONS + 1]):
        start, size, is_set = _events(node, row, rule, plan, state, ints)
        for number in range(size):
            position = members[1, start + number] if is_set else start
            if _holds(root, match, position, plan, state, ints, members):
                return True
    return False


@njit_in_place
def _holds(node, row, position, plan, state, ints, members):
    for rule in range(plan.spans[node, POSITIONS], plan.spans[node, POSITIONS + 1]):
        start, size, is_set = _events(node, row, rule, plan, state, ints)
        for number in range(size):
            if (members[1, start + number] if is_set else start) == position:
                return True
    return False


@njit_in_place
def _events(node, row, rule, plan, state, ints):
    """A position, 1 and False; or where a set starts in the pool, its size and True."""
    capacity = state[node, CAPACITY]
    place = state[node, INT_OFFSET] + plan.rules[rule, 0] * capacity + row
    if plan.rules[rule, 1] == 1:
        return ints[place], ints[place + capacity], True
    return ints[place], 1, False


@njit_in_place
def _comes_before(one, other, node, plan, state, ints, members):
    """Whether one row counts before another one: last position, then all of them in order."""
    last_one = _last_position(one, node, plan, state, ints, members)
    last_other = _last_position(other, node, plan, state, ints, members)
    if last_one != last_other:
        return last_one < last_other
    last_rule = plan.spans[node, POSITIONS + 1]
    rule = rule_other = plan.spans[node, POSITIONS]
    number = number_other = 0
    # Sets count with all their positions, so the two may come to a position by different rules.
    while rule < last_rule and rule_other < last_rule:
        start, size, is_set = _events(node, one, rule, plan, state, ints)
        mine = members[1, start + number] if is_set else start
        start_other, size_other, is_set = _events(node, other, rule_other, plan, state, ints)
        its = members[1, start_other + number_other] if is_set else start_other
        if mine != its:
            return mine < its
        number += 1
        if number == size:
            rule, number = rule + 1, 0
        number_other += 1
        if number_other == size_other:
            rule_other, number_other = rule_other + 1, 0
    return rule == last_rule and rule_other < last_rule


@njit_in_place
def _last_position(row, node, plan, state, ints, members):
    last = -1
    for rule in range(plan.spans[node, POSITIONS], plan.spans[node, POSITIONS + 1]):
        start, size, is_set = _events(node, row, rule, plan, state, ints)
        # The members of a set are in the order of their positions.
        last = max(last, members[1, start + size - 1] if is_set else start)
    return last
