"""Algorithm 5 of [mei2009]_ over trees and placements of negations, with groups."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cepbench.kernels.jit import njit
from cepbench.kernels.planning.log_sums import log_add


class OperatorCosts(NamedTuple):
    """Costs of operators over the intervals of an order of n leaves, in logarithms.

    There are m negations and g groups.

    An array of shape (n, n) has the value of leaves i … j at ``[i, j]``, i ≤ j.

    Attributes
    ----------
    base : ndarray of float64, shape (n, n)
        Cardinality before negation, with the groups that are formed there.
    order, hashed : ndarray of float64, shape (n, n)
        Selectivity of the order in time, and of equalities evaluated by hashing.
    tests : ndarray of float64, shape (n, n)
        Number of conjuncts within, times the weight of one; no logarithm.
    exact, tied : ndarray of bool, shape (m, n, n)
        Whether NEG, and NSEQ, can be at a node over these leaves.
    survivors, survivors_read : ndarray of float64, shape (m,)
        Share of records, and of pairs read above NSEQ, that a negation leaves.
    negation_tests : ndarray of float64, shape (m,)
        Number of a negation's conjuncts, times the weight of one; no logarithm.
    formed, beside : ndarray of bool, shape (g, n, n)
        Whether a group is formed at or below these leaves, and whether its start and end are here.
    group_read, groups : ndarray of float64, shape (g, n, n)
        Events that KSEQ reads, and groups that it makes, for each record.
    group_tests : ndarray of float64, shape (g,)
        Number of a group's conjuncts, times the weight of one; no logarithm.
    """

    base: np.ndarray
    order: np.ndarray
    hashed: np.ndarray
    tests: np.ndarray
    exact: np.ndarray
    tied: np.ndarray
    survivors: np.ndarray
    survivors_read: np.ndarray
    negation_tests: np.ndarray
    formed: np.ndarray
    beside: np.ndarray
    group_read: np.ndarray
    groups: np.ndarray
    group_tests: np.ndarray


@njit
def cheapest_operators(costs: OperatorCosts) -> np.ndarray:
    """The last step to the cheapest plan of each interval and set of negations.

    Bit b of a set says that negation b has its operator at or below the node: NEG, after which its
    share survives, or NSEQ, which takes effect at the first join where the negation is exact.

    Differs from the paper: costs start at infinity instead of being uninitialized, the second
    operand of ``Min`` and ``CARD`` is the subtree that begins at r, of size s − (r − i), and the
    placements of negations are searched too.

    Parameters
    ----------
    costs : OperatorCosts

    Returns
    -------
    ndarray of int64, shape (n, n, 2^m, 2)
        For leaves i … j: ``(cut, set of the left half)`` of a join, whose right half begins at
        ``cut`` > i and has the rest of the set; or ``(-1 - b, -1)`` if the operator of negation b
        is on top.
    """
    n, m = len(costs.base), len(costs.survivors)
    best = np.full((n, n, 1 << m), np.inf)
    steps = np.zeros((n, n, 1 << m, 2), np.int64)
    # The sets that an interval can have, ascending.
    sets = np.zeros((n, n, 1 << m), np.int64)
    counts = np.zeros((n, n), np.int64)
    for length in range(n):
        for i in range(n - length):
            j = i + length
            if length == 0:
                # Leaves are free, but for the groups formed there.
                shrunk, best[i, j, 0] = _groups_above(costs, i, i, i)
                best[i, j, 0] += costs.base[i, i] - shrunk
            _try_cuts(costs, best, steps, sets, counts, i, j)
            _add_operators(costs, best, steps, i, j)
            for whole in range(1 << m):
                if best[i, j, whole] < np.inf:
                    sets[i, j, counts[i, j]] = whole
                    counts[i, j] += 1
    return steps


@njit
def _try_cuts(
    costs: OperatorCosts,
    best: np.ndarray,
    steps: np.ndarray,
    sets: np.ndarray,
    counts: np.ndarray,
    i: int,
    j: int,
) -> None:
    """Join two halves of i … j at each cut, with each of their sets."""
    m = len(costs.survivors)
    order, hashed, tests = costs.order, costs.hashed, costs.tests
    for cut in range(i + 1, j + 1):
        in_groups, above = 0.0, -np.inf
        # A call passes all arrays.
        if len(costs.groups):
            in_groups, above = _groups_above(costs, i, cut, j)
        common = min(0.0, order[i, j] - order[i, cut - 1] - order[cut, j])
        common += hashed[i, j] - hashed[i, cut - 1] - hashed[cut, j]
        common += costs.base[i, cut - 1] + costs.base[cut, j]
        joined = tests[i, j] - tests[i, cut - 1] - tests[cut, j]
        for g in range(len(costs.groups)):
            if _meets(costs, g, i, cut, j):
                common += costs.group_read[g, i, j]
                joined += costs.group_tests[g]
        common += math.log1p(joined)
        for a in range(counts[i, cut - 1]):
            left = sets[i, cut - 1, a]
            for b in range(counts[cut, j]):
                right = sets[cut, j, b]
                if left & right:
                    continue
                halves = _sum(best[i, cut - 1, left], best[cut, j, right])
                if halves >= best[i, j, left | right]:
                    continue
                read, made = common, costs.base[i, j] - in_groups
                for v in range(m):
                    if not (left | right) >> v & 1:
                        continue
                    is_applied = (
                        costs.exact[v, i, cut - 1] if left >> v & 1 else costs.exact[v, cut, j]
                    )
                    if is_applied:
                        read += costs.survivors[v]
                    elif costs.exact[v, i, j]:
                        read += costs.survivors_read[v]
                    if costs.exact[v, i, j]:
                        made += costs.survivors[v]
                cost = _sum(_sum(halves, log_add(read, made)), made + above)
                # `<` keeps the leftmost of equally good cuts.
                if cost < best[i, j, left | right]:
                    best[i, j, left | right] = cost
                    steps[i, j, left | right, 0] = cut
                    steps[i, j, left | right, 1] = left


@njit
def _meets(costs: OperatorCosts, g: int, i: int, cut: int, j: int) -> bool:
    """Whether KSEQ of a group is the join of the halves at ``cut``."""
    return costs.formed[g, i, j] and not (costs.beside[g, i, cut - 1] or costs.beside[g, cut, j])


@njit
def _groups_above(costs: OperatorCosts, i: int, cut: int, j: int) -> tuple[float, float]:
    """ln of the groups formed from the records of the join at ``cut``, and ln of their cost.

    Both for each record; at a leaf i = cut = j.
    """
    made, cost = 0.0, -np.inf
    for g in range(len(costs.groups)):
        if not costs.formed[g, i, j]:
            continue
        if cut > i and (
            costs.formed[g, i, cut - 1] or costs.formed[g, cut, j] or _meets(costs, g, i, cut, j)
        ):
            continue
        read = made + costs.group_read[g, i, j] + math.log1p(costs.group_tests[g])
        made += costs.groups[g, i, j]
        cost = _sum(cost, log_add(read, made))
    return made, cost


@njit
def _add_operators(
    costs: OperatorCosts, best: np.ndarray, steps: np.ndarray, i: int, j: int
) -> None:
    """Put NEG or NSEQ of further negations on top of i … j."""
    m = len(costs.survivors)
    for before in range(1 << m):
        if best[i, j, before] == np.inf:
            continue
        size = costs.base[i, j]
        for v in range(m):
            if before >> v & 1 and costs.exact[v, i, j]:
                size += costs.survivors[v]
        for v in range(m):
            if before >> v & 1 or not (costs.exact[v, i, j] or costs.tied[v, i, j]):
                continue
            made = size + costs.survivors[v] if costs.exact[v, i, j] else size
            added = log_add(size + math.log1p(costs.negation_tests[v]), made)
            cost = _sum(best[i, j, before], added)
            if cost < best[i, j, before | 1 << v]:
                best[i, j, before | 1 << v] = cost
                steps[i, j, before | 1 << v, 0] = -1 - v
                steps[i, j, before | 1 << v, 1] = -1


@njit
def _sum(a: float, b: float) -> float:
    """The sum of two costs in logarithms, of which leaves have minus infinity."""
    if a == -np.inf:
        return b
    if b == -np.inf:
        return a
    return log_add(a, b)
