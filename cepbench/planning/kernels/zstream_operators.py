"""Algorithm 5 of [mei2009]_ over trees and placements of negations and groups."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.planning.kernels.log_sums import log_add


class OperatorCosts(NamedTuple):
    """Costs of operators over the intervals of an order of n leaves, in logarithms.

    There are m negations and g groups.

    An array of shape (n, n) has the value of leaves i … j at ``[i, j]``, i ≤ j.
    """

    base: np.ndarray  #: float64 (n, n): cardinality before negation and without groups.
    #: ``order``, ``hashed``: float64 (n, n): selectivity of the order in time, and of equalities
    #: evaluated by hashing.
    order: np.ndarray
    hashed: np.ndarray
    #: float64 (n, n): number of conjuncts within, times the weight of one; no logarithm.
    tests: np.ndarray
    #: ``exact``, ``tied``: bool (m, 2^g, n, n): whether NEG, and NSEQ, can be at a node over these
    #: leaves where a set of groups is formed.
    exact: np.ndarray
    tied: np.ndarray
    #: ``survivors``, ``survivors_read``: float64 (m,): share of records, and of pairs read above
    #: NSEQ, that a negation leaves.
    survivors: np.ndarray
    survivors_read: np.ndarray
    #: float64 (m,): number of a negation's conjuncts, times the weight of one; no logarithm.
    negation_tests: np.ndarray
    #: ``formed``, ``beside``: bool (g, n, n): whether a group can be formed from these leaves, and
    #: whether its start and end are here.
    formed: np.ndarray
    beside: np.ndarray
    #: ``group_read``, ``groups``: float64 (g, n, n): events that KSEQ reads, and groups that it
    #: makes, for each record.
    group_read: np.ndarray
    groups: np.ndarray
    #: float64 (g,): number of a group's conjuncts, times the weight of one; no logarithm.
    group_tests: np.ndarray


@njit
def cheapest_operators(costs: OperatorCosts) -> tuple[np.ndarray, int]:
    """The last step to the cheapest plan of each interval and set of negations and groups, and how
    many pairs of sub-plans were joined on the way.

    Bit b < m of a set says that negation b has its operator at or below the node: NEG, after which
    its share survives, or NSEQ, which takes effect at the first join where the negation is exact.
    Bit m + b says that group b is formed at or below the node, after its join and before NEG.

    Differs from the paper: costs start at infinity instead of being uninitialized, the second
    operand of ``Min`` and ``CARD`` is the subtree that begins at r, of size s − (r − i), and the
    placements of negations and groups are searched too.

    A step, for leaves i … j, int64, shape (n, n, 2^(m + g), 3), is ``(cut, set of the left half,
    set of groups formed here)`` of a join, whose right half begins at ``cut`` > i and has the rest
    of the set; at a leaf, ``cut`` = i; or ``(-1 - b, -1, 0)`` if the operator of negation b is on
    top.
    """
    n, m = len(costs.base), len(costs.survivors)
    every = 1 << m + len(costs.group_tests)
    best = np.full((n, n, every), np.inf)
    steps = np.zeros((n, n, every, 3), np.int64)
    # The sets that an interval can have, ascending.
    sets = np.zeros((n, n, every), np.int64)
    counts = np.zeros((n, n), np.int64)
    pairs = 0
    for length in range(n):
        for i in range(n - length):
            j = i + length
            if length == 0:
                _try_leaf(costs, best, steps, i)
            pairs += _try_cuts(costs, best, steps, sets, counts, i, j)
            _add_operators(costs, best, steps, i, j)
            for whole in range(every):
                if best[i, j, whole] < np.inf:
                    sets[i, j, counts[i, j]] = whole
                    counts[i, j] += 1
    return steps, pairs


@njit
def _try_leaf(costs: OperatorCosts, best: np.ndarray, steps: np.ndarray, i: int) -> None:
    """Leaves are free, but for the groups formed there."""
    new = formable = _formable(costs, i, i)
    while True:
        above = _groups_above(costs, new, i, i)
        best[i, i, new] = costs.base[i, i] + above
        steps[i, i, new, 0], steps[i, i, new, 2] = i, new
        if new == 0:
            break
        new = (new - 1) & formable


@njit
def _formable(costs: OperatorCosts, i: int, j: int) -> int:
    """The set of groups that can be formed from i … j."""
    found = 0
    for g in range(len(costs.group_tests)):
        if costs.formed[g, i, j]:
            found |= 1 << len(costs.survivors) + g
    return found


@njit
def _in_groups(costs: OperatorCosts, some: int, i: int, j: int) -> float:
    """ln of the number of choices of the groups of a set for a record of i … j."""
    found = 0.0
    for g in range(len(costs.group_tests)):
        if some >> len(costs.survivors) + g & 1:
            found += costs.groups[g, i, j]
    return found


@njit
def _try_cuts(
    costs: OperatorCosts,
    best: np.ndarray,
    steps: np.ndarray,
    sets: np.ndarray,
    counts: np.ndarray,
    i: int,
    j: int,
) -> int:
    """Join two halves of i … j at each cut, with each of their sets; gives the number of pairs."""
    order, hashed, tests = costs.order, costs.hashed, costs.tests
    formable = _formable(costs, i, j)
    pairs = 0
    for cut in range(i + 1, j + 1):
        common = min(0.0, order[i, j] - order[i, cut - 1] - order[cut, j])
        common += hashed[i, j] - hashed[i, cut - 1] - hashed[cut, j]
        common += costs.base[i, cut - 1] + costs.base[cut, j]
        joined = tests[i, j] - tests[i, cut - 1] - tests[cut, j]
        for a in range(counts[i, cut - 1]):
            left = sets[i, cut - 1, a]
            for b in range(counts[cut, j]):
                right = sets[cut, j, b]
                if left & right:
                    continue
                pairs += 1
                halves = _sum(best[i, cut - 1, left], best[cut, j, right])
                free = new = formable & ~(left | right)
                while True:
                    whole = left | right | new
                    if halves < best[i, j, whole]:
                        cost = _sum(
                            halves, _join(costs, left, right, new, i, cut, j, common, joined)
                        )
                        # `<` keeps the leftmost of equally good cuts.
                        if cost < best[i, j, whole]:
                            best[i, j, whole] = cost
                            steps[i, j, whole, 0] = cut
                            steps[i, j, whole, 1] = left
                            steps[i, j, whole, 2] = new
                    if new == 0:
                        break
                    new = (new - 1) & free
    return pairs


@njit
def _join(
    costs: OperatorCosts,
    left: int,
    right: int,
    new: int,
    i: int,
    cut: int,
    j: int,
    read: float,
    tests: float,
) -> float:
    """ln of the cost of joining two halves, and of forming the groups of the set ``new``."""
    m = len(costs.survivors)
    below, whole = left | right, left | right | new
    made, above = costs.base[i, j], -np.inf
    # A call passes all arrays.
    if len(costs.group_tests):
        read += _in_groups(costs, left, i, cut - 1) + _in_groups(costs, right, cut, j)
        met = 0
        for g in range(len(costs.group_tests)):
            if new >> m + g & 1 and not (costs.beside[g, i, cut - 1] or costs.beside[g, cut, j]):
                # KSEQ is the join itself.
                met |= 1 << m + g
                read += costs.group_read[g, i, j]
                tests += costs.group_tests[g]
        made += _in_groups(costs, below | met, i, j)
        above = _groups_above(costs, new & ~met, i, j)
    for v in range(m):
        if not below >> v & 1:
            continue
        is_exact = costs.exact[v, whole >> m, i, j]
        if left >> v & 1:
            is_applied = costs.exact[v, left >> m, i, cut - 1]
        else:
            is_applied = costs.exact[v, right >> m, cut, j]
        if is_applied:
            read += costs.survivors[v]
        elif is_exact:
            read += costs.survivors_read[v]
        if is_exact:
            made += costs.survivors[v]
    return _sum(log_add(read + math.log1p(tests), made), made + above)


@njit
def _groups_above(costs: OperatorCosts, some: int, i: int, j: int) -> float:
    """ln of the cost, for each record of i … j, of forming the groups of a set from it."""
    made, cost = 0.0, -np.inf
    for g in range(len(costs.group_tests)):
        if some >> len(costs.survivors) + g & 1:
            read = made + costs.group_read[g, i, j] + math.log1p(costs.group_tests[g])
            made += costs.groups[g, i, j]
            cost = _sum(cost, log_add(read, made))
    return cost


@njit
def _add_operators(
    costs: OperatorCosts, best: np.ndarray, steps: np.ndarray, i: int, j: int
) -> None:
    """Put NEG or NSEQ of further negations on top of i … j."""
    m = len(costs.survivors)
    for before in range(best.shape[2]):
        if best[i, j, before] == np.inf:
            continue
        groups = before >> m
        size = costs.base[i, j] + _in_groups(costs, before, i, j)
        for v in range(m):
            if before >> v & 1 and costs.exact[v, groups, i, j]:
                size += costs.survivors[v]
        for v in range(m):
            is_exact = costs.exact[v, groups, i, j]
            if before >> v & 1 or not (is_exact or costs.tied[v, groups, i, j]):
                continue
            made = size + costs.survivors[v] if is_exact else size
            added = log_add(size + math.log1p(costs.negation_tests[v]), made)
            cost = _sum(best[i, j, before], added)
            if cost < best[i, j, before | 1 << v]:
                best[i, j, before | 1 << v] = cost
                steps[i, j, before | 1 << v, 0] = -1 - v
                steps[i, j, before | 1 << v, 1] = -1
                steps[i, j, before | 1 << v, 2] = 0


@njit
def _sum(a: float, b: float) -> float:
    """The sum of two costs in logarithms, of which leaves have minus infinity."""
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    return log_add(a, b)
