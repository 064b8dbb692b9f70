"""II-RANDOM and II-GREEDY: local search over orders by swaps and 3-cycles."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from cepbench.costs.costed import CostedProblem
from cepbench.kernels.planning.iterative_improvement import descend
from cepbench.planners import any_cost
from cepbench.planners.budget import Budget, Found
from cepbench.planners.greedy import first_order
from cepbench.planners.registry import plan_generator

#: With more 3-cycles than this (from 33 variables on), so many are drawn by chance instead.
_MOST_CYCLES = 10_000
_SPACE = "all orders, down to a local minimum"
_SOURCE = "[swami1988]_, [swami1989]_ in [kolchinsky2018]_, section 6.1"


@plan_generator("II-RANDOM", kind="order", space=_SPACE, source=_SOURCE, anytime=True)
def ii_random(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """Iterative improvement that starts from a random order.

    The neighbours of an order differ from it by a swap of two positions or by a cyclic shift of
    three. They are visited in random order, the first better one is taken, and so on until no
    neighbour is better; beyond 32 variables, until none of all swaps and of 10,000 random 3-cycles
    is. A neighbour counts as better if it lowers the prefixes and delays that it changes by one
    part in 10⁹, so equal costs never move.

    A step of its budget is a neighbour that is tried. Without a budget it ends at the first local
    minimum; with one it starts again from further random orders as long as any is left, and
    returns the best of all that it came to.
    """
    deadline = budget.deadline()
    found = descent(problem, rng.permutation(problem.n), rng, budget.most_steps, deadline)
    # One variable has no neighbours to spend a budget on.
    while budget.is_limited and found.complete and problem.n > 1:
        left = budget.most_steps - (found.steps or 0)
        again = descent(problem, rng.permutation(problem.n), rng, left, deadline)
        found = better(problem, found, again)
    return found


@plan_generator("II-GREEDY", kind="order", space=_SPACE, source=_SOURCE, anytime=True)
def ii_greedy(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """Iterative improvement that starts from the order of GREEDY; else as II-RANDOM.

    It ends at the first local minimum, whatever is left of its budget.
    """
    start = np.array(first_order(problem, rng))
    return descent(problem, start, rng, budget.most_steps, budget.deadline())


def descent(
    problem: CostedProblem,
    start: np.ndarray,
    rng: np.random.Generator,
    most_steps: int,
    deadline: int,
) -> Found:
    """From an order down to a local minimum, or as far as the budget lets it come."""
    order = start.astype(np.int64)
    moves = rng.permutation(_moves(problem.n, rng))
    if problem.cost.form == "sets":
        steps, complete = descend(order, moves, problem.terms, most_steps, deadline)
    else:
        steps, complete = any_cost.descend(problem, order, moves, most_steps, deadline)
    return Found(order.tolist(), complete=complete, steps=steps)


def better(problem: CostedProblem, first: Found, second: Found) -> Found:
    """The order of less cost, the first of equally good ones, and the steps of both."""
    costs = [problem.log_order_cost(found.plan) for found in (first, second)]
    plan = second.plan if costs[1] < costs[0] else first.plan
    return Found(plan, complete=second.complete, steps=(first.steps or 0) + (second.steps or 0))


def _moves(n: int, rng: np.random.Generator) -> np.ndarray:
    """Rows i, j, k as kernels read them: all swaps, and all or ``_MOST_CYCLES`` cycles."""
    i, j = np.triu_indices(n, 1)
    swaps = np.column_stack([i, j, j])
    if n * (n - 1) * (n - 2) // 3 <= _MOST_CYCLES:
        triples = np.array(list(combinations(range(n), 3)), dtype=np.int64).reshape(-1, 3)
        cycles = np.concatenate([triples, triples[:, [0, 2, 1]]])
    else:
        cycles = random_cycles(n, _MOST_CYCLES, rng)
    return np.concatenate([swaps, cycles]).astype(np.int64)


def random_cycles(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """3-cycles of any of at least 3 positions, as rows i, j, k."""
    # Of each row the second and third are drawn from the positions that are still free. Chances
    # are drawn all at once, for in annealing the rows are few and the draws many.
    chances = rng.random((3, count))
    chances *= np.array([[n], [n - 1], [n - 2]])
    a, b, c = chances.astype(np.int64)
    b += b >= a
    c += c >= np.minimum(a, b)
    c += c >= np.maximum(a, b)
    return np.stack([a, b, c], axis=1)
