"""Searches without compiled kernels, for costs of the forms ``joins`` and ``plans``.

A cost of the form ``joins`` is evaluated for many joins at once, one of the form ``plans`` plan by
plan. See :mod:`cepbench.planning.costs.model`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from cepbench.errors import PlanningRefusedError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.predicate_graph import adjacency
from cepbench.planning.planners.registry import MOST_OF_OTHER_COSTS, OPTIMAL
from cepbench.planning.plans.tree import Tree

#: An order counts as better if its cost is lower by more than this fraction.
_LEAST_GAIN = 1e-9


def extended(problem: CostedProblem, prefix: Sequence[int]) -> list[int]:
    """Complete a prefix of an order, each time by the cheapest join."""
    order = list(prefix) or [int(np.argmin(problem.cost.log_leaves(problem, "order")))]
    while len(order) < problem.n:
        taken = np.isin(np.arange(problem.n), order)
        left = np.flatnonzero(~taken)
        costs = problem.cost.log_steps(problem, np.tile(taken, (len(left), 1)), left)
        order.append(int(left[np.argmin(costs)]))
    return order


def cheapest_order(problem: CostedProblem, budget: Budget) -> Found:
    """The order of least cost; ties as in DP-LD.

    Raises PlanningRefusedError if there are more variables than :data:`MOST_OF_OTHER_COSTS`.
    """
    n = problem.n
    _refuse_beyond("order", problem)
    deadline = budget.deadline()
    if budget.most_steps < (1 << n) - 1:
        return Found(extended(problem, []), complete=False)
    best = np.full(1 << n, np.inf)
    final = np.zeros(1 << n, dtype=np.int64)
    best[1 << np.arange(n)] = problem.cost.log_leaves(problem, "order")
    final[1 << np.arange(n)] = np.arange(n)
    sets = np.arange(1 << n, dtype=np.int64)
    members = _members(n)
    for size in range(2, n + 1):
        if time.monotonic_ns() >= deadline:
            return Found(extended(problem, []), complete=False)
        layer = sets[np.bitwise_count(sets) == size]
        for v in range(n):
            whole = layer[(layer >> v & 1).astype(bool)]
            before = whole ^ (1 << v)
            steps = problem.cost.log_steps(problem, members[before], np.full_like(whole, v))
            costs = np.logaddexp(best[before], steps)
            better = costs <= best[whole]
            best[whole[better]] = costs[better]
            final[whole[better]] = v
    order: list[int] = []
    rest = (1 << n) - 1
    while rest:
        order.append(int(final[rest]))
        rest ^= 1 << order[-1]
    return Found(order[::-1], steps=(1 << n) - 1)


def cheapest_tree(problem: CostedProblem, budget: Budget) -> Found:
    """The tree of least cost, by all splits of all sets; ties as in DP-B.

    Raises PlanningRefusedError if there are more variables than :data:`MOST_OF_OTHER_COSTS`.
    """
    n = problem.n
    _refuse_beyond("tree", problem)
    deadline = budget.deadline()
    best = np.empty(1 << n)
    best[1 << np.arange(n)] = problem.cost.log_leaves(problem, "tree")
    left_of: dict[int, int] = {}
    members = _members(n)
    steps = 0
    for whole in range(3, 1 << n):
        first = whole & -whole
        if whole == first:
            continue
        if steps >= budget.most_steps or time.monotonic_ns() >= deadline:
            order = extended(problem, [])
            cuts = cheapest_cuts(problem, np.array(order))
            return Found(tree_of_cuts(cuts, order), complete=False, steps=steps)
        # All splits with the first variable on the left, in ascending order of their masks.
        left = np.array([first], dtype=np.int64)
        for bit in range(n):
            if (whole ^ first) >> bit & 1:
                left = np.concatenate([left, left | (1 << bit)])
        left = left[:-1]
        right = whole ^ left
        joins = problem.cost.log_joins(problem, "tree", members[left], members[right])
        costs = np.logaddexp(np.logaddexp(best[left], best[right]), joins)
        chosen = int(np.argmin(costs))
        best[whole] = costs[chosen]
        left_of[whole] = int(left[chosen])
        steps += len(left)
    return Found(tree_of_splits(left_of, n), steps=steps)


def tree_of_splits(left_of: Mapping[int, int], n: int) -> Tree[int]:
    """The tree over n variables from the bit masks of sets and of their left halves."""

    def build(mask: int) -> Tree[int]:
        if mask not in left_of:
            return mask.bit_length() - 1
        left = left_of[mask]
        return (build(left), build(mask ^ left))

    return build((1 << n) - 1)


def cheapest_cuts(problem: CostedProblem, order: np.ndarray) -> np.ndarray:
    """The cut of each interval of leaves in the cheapest tree over an order, int64, shape (n, n).

    As of :func:`cepbench.planning.kernels.zstream.cheapest_cuts`; of equally good cuts the
    leftmost.
    """
    n = problem.n
    # The variables before each place; intervals are differences.
    before = np.zeros((n + 1, n), dtype=bool)
    before[:, order] = np.tri(n + 1, n, -1, dtype=bool)
    best = np.empty((n, n))
    best[np.arange(n), np.arange(n)] = problem.cost.log_leaves(problem, "tree")[order]
    cuts = np.zeros((n, n), dtype=np.int64)
    for length in range(1, n):
        # All intervals of a length at once: a row each, a column for each cut.
        first = np.arange(n - length)[:, None]
        last = first + length
        cut = first + np.arange(1, length + 1)
        left, right = before[cut] & ~before[first], before[last + 1] & ~before[cut]
        joins = problem.cost.log_joins(problem, "tree", left.reshape(-1, n), right.reshape(-1, n))
        costs = np.logaddexp(best[first, cut - 1], best[cut, last])
        costs = np.logaddexp(costs, joins.reshape(cut.shape))
        chosen = np.argmin(costs, axis=1)[:, None]
        best[first, last] = np.take_along_axis(costs, chosen, 1)
        cuts[first, last] = np.take_along_axis(cut, chosen, 1)
    return cuts


def tree_of_cuts(cuts: np.ndarray, order: Sequence[int]) -> Tree[int]:
    """The tree over an order of leaves with these cuts."""

    def build(first: int, last: int) -> Tree[int]:
        if first == last:
            return int(order[first])
        cut = int(cuts[first, last])
        return (build(first, cut - 1), build(cut, last))

    return build(0, len(order) - 1)


def descend(
    problem: CostedProblem, order: np.ndarray, moves: np.ndarray, most_moves: int, deadline: int
) -> tuple[int, bool]:
    """Improve an order in place until none of the moves lowers its cost.

    Parameters and results as of :func:`cepbench.planning.kernels.iterative_improvement.descend`.
    """
    cost = log_order_cost(problem, order)
    tried = met = at = 0
    while met < len(moves):
        if tried >= most_moves or time.monotonic_ns() >= deadline:
            return tried, False
        other = _moved(order, moves[at])
        other_cost = log_order_cost(problem, other)
        tried += 1
        met += 1
        if other_cost < cost - _LEAST_GAIN:
            order[:], cost, met = other, other_cost, 0
        at = (at + 1) % len(moves)
    return tried, True


def anneal(
    problem: CostedProblem,
    order: np.ndarray,
    moves: np.ndarray,
    log_allowances: np.ndarray,
    best: np.ndarray,
    log_best: float,
) -> float:
    """Try moves one by one; accept those that add at most their allowance.

    Parameters and result as of :func:`cepbench.planning.kernels.simulated_annealing.anneal`, with
    an order, changed in place, instead of its state.
    """
    cost = log_order_cost(problem, order)
    for move, allowance in zip(moves, log_allowances, strict=True):
        other = _moved(order, move)
        other_cost = log_order_cost(problem, other)
        if other_cost <= np.logaddexp(cost, cost + allowance):
            order[:], cost = other, other_cost
            if cost < log_best:
                log_best = cost
                best[:] = order
    return log_best


def best_random_tree(
    problem: CostedProblem, rng: np.random.Generator, most_trees: int, budget: Budget
) -> Found:
    """The cheapest of random trees, each built from the conditions in random order."""
    deadline = budget.deadline()
    edges = np.argwhere(np.triu(adjacency(problem)))
    every = np.argwhere(np.triu(np.ones((problem.n, problem.n), dtype=bool), 1))
    best: Tree[int] = 0
    least = np.inf
    made = 0
    while made < min(most_trees, budget.most_steps) and (
        not made or time.monotonic_ns() < deadline
    ):
        trees: dict[int, Tree[int]] = {v: v for v in range(problem.n)}
        name = list(range(problem.n))
        for a, b in np.concatenate([rng.permutation(edges), rng.permutation(every)]).tolist():
            early, late = sorted((name[a], name[b]))
            if early != late:
                trees[early] = (trees[early], trees.pop(late))
                name = [early if one == late else one for one in name]
        cost = problem.log_tree_cost(trees[0])
        made += 1
        if made == 1 or cost < least:
            best, least = trees[0], cost
    return Found(best, complete=made == most_trees, steps=made)


def log_order_cost(problem: CostedProblem, order: np.ndarray) -> float:
    """ln of the cost of an order, kept for local searches, which return to the same orders."""
    return _kept_log_cost(problem, tuple(order.tolist()))


@lru_cache(maxsize=1 << 16)
def _kept_log_cost(problem: CostedProblem, order: tuple[int, ...]) -> float:
    return problem.log_order_cost(order)


def _moved(order: np.ndarray, move: np.ndarray) -> np.ndarray:
    """The order with the variables at i, j and k shifted cyclically."""
    i, j, k = move
    other = order.copy()
    other[i], other[j] = order[j], order[k]
    other[k] = order[i]
    return other


def _members(n: int) -> np.ndarray:
    """The variables in each set, which is its binary number; bool, shape (2^n, n)."""
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(bool)


def _refuse_beyond(kind: str, problem: CostedProblem) -> None:
    most = MOST_OF_OTHER_COSTS[kind]
    if problem.n > most:
        raise PlanningRefusedError(
            f"{OPTIMAL[kind]} takes at most {most} variables for the cost {problem.cost.name}, and the "
            f'pattern has {problem.n}; choose ZSTREAM-ORD or SA, or cost="throughput"'
        )
