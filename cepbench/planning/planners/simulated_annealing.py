"""SA: simulated annealing over orders."""

from __future__ import annotations

import time

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.kernels.order_moves import log_cost, state_of
from cepbench.planning.kernels.simulated_annealing import anneal
from cepbench.planning.planners import any_cost
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.greedy import first_order
from cepbench.planning.planners.iterative_improvement import descent, random_cycles
from cepbench.planning.planners.registry import plan_generator

#: Start: a neighbour of twice the cost is accepted with probability exp(−1/2).
_HOT = 2.0
#: End: a neighbour that costs 1 % more is accepted with probability exp(−10).
_COLD = 1e-3
_COOLING = 0.9
#: Neighbours tried per temperature: for each variable, and at most.
_STAGE = 16
_LONGEST_STAGE = 1600
#: It is frozen after this many cold stages without improvement.
_IDLE = 4


@plan_generator(
    "SA",
    kind="order",
    space="all orders, from that of GREEDY to a local minimum",
    source="[ioannidis1987]_, [swami1988]_; schedule of [ioannidis1990]_",
    anytime=True,
    default=False,
)
def simulated_annealing(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """Simulated annealing from the order of GREEDY, never worse than it.

    At each temperature 16·n random neighbours are tried, at most 1,600, half swaps and half
    3-cycles of positions. A better one is always accepted, one that adds the fraction x of the
    current cost with probability exp(−x / temperature). The temperature starts at 2 and falls by
    10 % at a time, to 0.001 and on until four temperatures have brought no improvement. The best
    order is then improved to a local minimum as in II-GREEDY.

    Differs from [ioannidis1990]_, the source of 16·n and the first temperature: there the
    temperature is a cost, initially twice that of the start, and falls by 5 % at a time. Costs of
    event patterns differ by many orders of magnitude, so most of that schedule would accept every
    neighbour; here the temperature is relative to the current cost. Faster cooling with a final
    descent found the same orders in half the time.

    A step of its budget is a neighbour tried.
    """
    start = np.array(first_order(problem, rng))
    return annealed(problem, start, _HOT, rng, budget.most_steps, budget.deadline())


def annealed(
    problem: CostedProblem,
    start: np.ndarray,
    temperature: float,
    rng: np.random.Generator,
    most_steps: int,
    deadline: int,
) -> Found:
    """Anneal from a temperature on, then descend from the best order to a local minimum."""
    best = start.astype(np.int64)
    tried = best.copy()
    compiled = problem.form == "sets"
    if compiled:
        state = state_of(tried, problem.terms)
        log_best = log_cost(state)
    else:
        log_best = any_cost.log_order_cost(problem, tried)
    steps = idle = 0
    while problem.n > 1 and (temperature > _COLD or idle < _IDLE):
        count = min(_STAGE * problem.n, _LONGEST_STAGE, most_steps - steps)
        if count <= 0 or time.monotonic_ns() >= deadline:
            return Found(best.tolist(), complete=False, steps=steps)
        moves = _random_moves(problem.n, count, rng)
        before = log_best
        allowances = log_allowances(temperature, rng.random(count))
        if compiled:
            log_best = anneal(state, moves, allowances, best, log_best)
        else:
            log_best = any_cost.anneal(problem, tried, moves, allowances, best, log_best)
        steps += count
        idle = 0 if log_best < before else idle + 1
        temperature *= _COOLING
    end = descent(problem, best, rng, most_steps - steps, deadline)
    return Found(end.plan, complete=end.complete, steps=steps + (end.steps or 0))


def log_allowances(temperature: float, chances: np.ndarray) -> np.ndarray:
    """ln x for the largest x with exp(−x / temperature) above the chance."""
    # The smallest positive value of ``rng.random``.
    part = -temperature * np.log(np.maximum(chances, 2.0**-53))
    return np.log(part)


def _random_moves(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Random moves, half swaps and half 3-cycles."""
    if n == 2:
        return np.tile(np.array([[0, 1, 1]]), (count, 1))
    moves = random_cycles(n, count, rng)
    moves[:, 2] = np.where(rng.random(count) < 0.5, moves[:, 1], moves[:, 2])
    return moves
