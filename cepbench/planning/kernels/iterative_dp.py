"""Iterative dynamic programming: the next block of variables of an order."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.clock import now
from cepbench.kernels.jit import njit
from cepbench.planning.kernels.log_sums import log_add
from cepbench.planning.kernels.terms import CostTerms

#: Sets between two readings of the clock.
_SETS_PER_LOOK = 1 << 12


@njit
def cheapest_block(
    taken: np.ndarray,
    left: np.ndarray,
    length: int,
    terms: CostTerms,
    classes: np.ndarray,
    log_repeated: np.ndarray,
    deadline: int,
) -> np.ndarray:
    """The cheapest ``length`` variables to append to the taken ones, in order.

    Sets of the remaining variables are numbered, size by size, by their largest member, then by
    their second largest, and so on, so that the number of a set is a sum of binomial coefficients
    (the combinatorial number system).

    ``taken`` are the first variables of the order, ``left`` the remaining ones in ascending order,
    both int64. ``classes`` has 1 for the variables of each class with equal values, int64, shape
    (c, n), and ``log_repeated`` ln of the factor that the terms count too often in a set with k
    variables of a class, shape (c, n + 1).

    The block has shape (length,), or (0,) if the search did not complete. Of equally good blocks it
    is the one of earlier written variables, in written order.
    """
    log_bound, log_selectivity = terms.log_bound, terms.log_selectivity
    last = terms.last
    m = len(left)
    choose = np.zeros((m + 1, length + 2), dtype=np.int64)
    choose[:, 0] = 1
    for a in range(1, m + 1):
        for b in range(1, length + 2):
            choose[a, b] = choose[a - 1, b - 1] + choose[a - 1, b]
    begin = np.zeros(length + 2, dtype=np.int64)
    for size in range(length + 1):
        begin[size + 1] = begin[size] + choose[m, size]
    growth = terms.log_factor.copy()
    product = 0.0
    least_taken = np.inf
    is_late = False
    for v in taken:
        product += growth[v]
        growth += log_selectivity[v]
        least_taken = min(least_taken, log_bound[v])
        is_late = is_late or v == last
    held_taken = np.zeros(len(classes), dtype=np.int64)
    for c in range(len(classes)):
        for v in taken:
            held_taken[c] += classes[c, v]
    products = np.empty(begin[length + 1])
    costs = np.empty(begin[length + 1])
    final = np.empty(begin[length + 1], dtype=np.int16)
    # The cost of the taken variables is common to all orders.
    products[0] = product
    costs[0] = -np.inf
    clock = np.empty(2, dtype=np.int64)
    for size in range(1, length + 1):
        members = np.arange(size + 1)
        members[size] = m
        for number in range(choose[m, size]):
            if number % _SETS_PER_LOOK == 0 and now(clock) >= deadline:
                return np.empty(0, dtype=np.int64)
            at = begin[size] + number
            largest = left[members[size - 1]]
            added = growth[largest]
            least = min(least_taken, log_bound[largest])
            has_last = is_late or largest == last
            for q in range(size - 1):
                other = left[members[q]]
                added += log_selectivity[largest, other]
                least = min(least, log_bound[other])
                has_last = has_last or other == last
            # The number of the set without one member: smaller members keep their coefficients,
            # larger ones move down by one place.
            below = number
            above = 0
            before = np.inf
            for q in range(size - 1, -1, -1):
                below -= choose[members[q], q + 1]
                rest = begin[size - 1] + below + above
                above += choose[members[q], q]
                if q == size - 1:
                    products[at] = products[rest] + added
                cost = costs[rest]
                v = left[members[q]]
                if last >= 0 and has_last and (is_late or v != last):
                    cost = log_add(cost, terms.log_delay[v])
                # `<` puts the latest written of equally good variables last.
                if cost < before:
                    before = cost
                    final[at] = members[q]
            if size == 1:
                final[at] = members[0]
            total = products[at] + least + terms.log_order_factor[len(taken) + size]
            for c in range(len(classes)):
                held = held_taken[c]
                for q in range(size):
                    held += classes[c, left[members[q]]]
                total -= log_repeated[c, held]
            costs[at] = log_add(total, before)
            _advance(members, size)
    return _collect(costs, final, choose, begin, left, length)


@njit
def _advance(members: np.ndarray, size: int) -> None:
    """The next set of this size; the element after its members is the number of variables."""
    q = 0
    while q < size - 1 and members[q] + 1 == members[q + 1]:
        members[q] = q
        q += 1
    members[q] += 1


@njit
def _collect(
    costs: np.ndarray,
    final: np.ndarray,
    choose: np.ndarray,
    begin: np.ndarray,
    left: np.ndarray,
    length: int,
) -> np.ndarray:
    """The order of the cheapest set of full size."""
    number = int(np.argmin(costs[begin[length] : begin[length + 1]]))
    m = len(left)
    members = np.empty(length, dtype=np.int64)
    rest = number
    for q in range(length - 1, -1, -1):
        m -= 1
        while choose[m, q + 1] > rest:
            m -= 1
        members[q] = m
        rest -= choose[m, q + 1]
    order = np.empty(length, dtype=np.int64)
    for size in range(length, 0, -1):
        chosen = final[begin[size] + number]
        order[size - 1] = left[chosen]
        number = 0
        q = 0
        for p in range(size):
            if members[p] != chosen:
                members[q] = members[p]
                number += choose[members[q], q + 1]
                q += 1
    return order
