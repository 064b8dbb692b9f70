"""II-RANDOM and II-GREEDY: local search over orders by swaps and 3-cycles."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.kernels.iterative_improvement import descend
from cepbench.planning.planners import any_cost
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.greedy import first_order
from cepbench.planning.planners.registry import plan_generator

#: Limit of 3-cycles; from 33 variables on, this many random ones are drawn.
_MOST_CYCLES = 10_000
_SPACE = "all orders, down to a local minimum"
_SOURCE = "[swami1988]_, [swami1989]_ in [kolchinsky2018]_, section 6.1"


@plan_generator("II-RANDOM", kind="order", space=_SPACE, source=_SOURCE, anytime=True)
def ii_random(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """Iterative improvement from a random order.

    The neighbours of an order differ from it by a swap of two positions or by a cyclic shift of
    three. They are visited in random order and the first better one is taken, until no neighbour is
    better; beyond 32 variables, until none of all swaps and of 10,000 random 3-cycles is. A
    neighbour counts as better if it lowers the cost of the prefixes and delays that it changes by
    more than 10⁻⁹ of it, so equal costs never move.

    A step of its budget is a neighbour tried. Without a budget it ends at the first local minimum;
    with one it restarts from random orders until the budget ends, and returns the best local
    minimum.
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
    """Iterative improvement from the order of GREEDY; otherwise as II-RANDOM.

    It ends at the first local minimum, even if budget is left.
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
    """Descend from an order to a local minimum, or until the budget ends."""
    order = start.astype(np.int64)
    moves = rng.permutation(all_moves(problem.n, rng))
    if problem.form == "sets":
        steps, complete = descend(order, moves, problem.terms, most_steps, deadline)
    else:
        steps, complete = any_cost.descend(problem, order, moves, most_steps, deadline)
    return Found(order.tolist(), complete=complete, steps=steps)


def better(problem: CostedProblem, first: Found, second: Found) -> Found:
    """The cheaper order, the first if equal, with the steps of both."""
    costs = [problem.log_order_cost(found.plan) for found in (first, second)]
    plan = second.plan if costs[1] < costs[0] else first.plan
    return Found(plan, complete=second.complete, steps=(first.steps or 0) + (second.steps or 0))


def all_moves(n: int, rng: np.random.Generator) -> np.ndarray:
    """All swaps, and all or ``_MOST_CYCLES`` 3-cycles, as rows i, j, k for the kernels."""
    i, j = np.triu_indices(n, 1)
    swaps = np.column_stack([i, j, j])
    if n * (n - 1) * (n - 2) // 3 <= _MOST_CYCLES:
        triples = np.array(list(combinations(range(n), 3)), dtype=np.int64).reshape(-1, 3)
        cycles = np.concatenate([triples, triples[:, [0, 2, 1]]])
    else:
        cycles = random_cycles(n, _MOST_CYCLES, rng)
    return np.concatenate([swaps, cycles]).astype(np.int64)


def random_cycles(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random 3-cycles of n ≥ 3 positions, as rows i, j, k."""
    # The second and third are drawn from the remaining positions. All draws are one call, since
    # annealing makes many calls for few rows.
    chances = rng.random((3, count))
    chances *= np.array([[n], [n - 1], [n - 2]])
    a, b, c = chances.astype(np.int64)
    b += b >= a
    c += c >= np.minimum(a, b)
    c += c >= np.maximum(a, b)
    return np.stack([a, b, c], axis=1)
