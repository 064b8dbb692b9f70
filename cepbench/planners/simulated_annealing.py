"""SA: simulated annealing over orders, which also goes uphill, less and less."""

from __future__ import annotations

import time

import numpy as np

from cepbench.costs.costed import CostedProblem
from cepbench.kernels.planning.order_moves import log_cost, state_of
from cepbench.kernels.planning.simulated_annealing import anneal
from cepbench.planners import any_cost
from cepbench.planners.budget import Budget, Found
from cepbench.planners.greedy import first_order
from cepbench.planners.iterative_improvement import descent, random_cycles
from cepbench.planners.registry import plan_generator

#: A neighbour that costs as much again is taken with a probability of exp(−1/2).
_HOT = 2.0
#: One that costs a hundredth more is hardly taken any more.
_COLD = 1e-3
_COOLING = 0.9
#: Neighbours that are tried at one temperature: so many for each variable, so many at most.
_STAGE = 16
_LONGEST_STAGE = 1600
#: It is frozen if it is cold and so many stages have found nothing better.
_IDLE = 4


@plan_generator(
    "SA",
    kind="order",
    space="all orders, from that of GREEDY uphill and down to a local minimum",
    source="[ioannidis1987]_, [swami1988]_; schedule of [ioannidis1990]_",
    anytime=True,
    default=False,
)
def simulated_annealing(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """Simulated annealing that starts from the order of GREEDY and is never worse than it.

    At each temperature 16·n random neighbours are tried, 1,600 at most, swaps and 3-cycles of
    positions alike; a better one is always taken, one that adds the part x of the present cost with
    probability exp(−x / temperature). The temperature goes from 2 down by a tenth at a time, to
    0.001 and on until four temperatures have found nothing better. The best order of all is then
    improved to a local minimum as II-GREEDY does it.

    Differs from [ioannidis1990]_, where 16·n and the first temperature come from: there the
    temperature is a cost, at first twice that of the start, and falls by 5 % at a time. Costs of
    event patterns lie many powers of ten apart, so most of such a schedule would be spent at
    temperatures at which everything is taken; here it is a part of the present cost. At the start
    the two are the same. Cooling faster and the descent at the end found the same orders in half
    the time.

    A step of its budget is a neighbour that is tried.
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
    """Anneal from a temperature on, and improve the best order that is met to a local minimum."""
    best = start.astype(np.int64)
    tried = best.copy()
    compiled = problem.cost.form == "sets"
    if compiled:
        state = state_of(tried, problem.terms)
        log_best = log_cost(state)
    else:
        log_best = problem.log_order_cost(tried.tolist())
    steps = idle = 0
    while problem.n > 1 and (temperature > _COLD or idle < _IDLE):
        count = min(_STAGE * problem.n, _LONGEST_STAGE, most_steps - steps)
        if count <= 0 or time.monotonic_ns() >= deadline:
            return Found(best.tolist(), complete=False, steps=steps)
        moves = _random_moves(problem.n, count, rng)
        before = log_best
        allowances = _log_allowances(temperature, rng.random(count))
        if compiled:
            log_best = anneal(state, moves, allowances, best, log_best)
        else:
            log_best = any_cost.anneal(problem, tried, moves, allowances, best, log_best)
        steps += count
        idle = 0 if log_best < before else idle + 1
        temperature *= _COOLING
    end = descent(problem, best, rng, most_steps - steps, deadline)
    return Found(end.plan, complete=end.complete, steps=steps + (end.steps or 0))


def _log_allowances(temperature: float, chances: np.ndarray) -> np.ndarray:
    """ln x for the largest x with exp(−x / temperature) above the chance."""
    # The smallest chance that a float in [0, 1) can be told from 0 by.
    part = -temperature * np.log(np.maximum(chances, 2.0**-53))
    return np.log(part)


def _random_moves(n: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Swaps and 3-cycles of any positions, half of them each."""
    if n == 2:
        return np.tile(np.array([[0, 1, 1]]), (count, 1))
    moves = random_cycles(n, count, rng)
    moves[:, 2] = np.where(rng.random(count) < 0.5, moves[:, 1], moves[:, 2])
    return moves
