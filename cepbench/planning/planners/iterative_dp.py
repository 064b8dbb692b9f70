"""IDP: iterative dynamic programming, block by block."""

from __future__ import annotations

from math import comb

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.equal_values import repeated
from cepbench.planning.kernels.iterative_dp import cheapest_block
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.greedy import extended
from cepbench.planning.planners.registry import plan_generator

#: Limit of the sets of variables of all blocks together: half a second.
_SETS = 1 << 22
#: The largest limit by a budget, at 18 bytes per set.
_MOST_SETS = 1 << 24


@plan_generator(
    "IDP",
    kind="order",
    costs="sets",
    space="all orders, in blocks: each is the cheapest next one",
    source="IDP1 of [kossmann2000]_",
    anytime=True,
    default=False,
)
def iterative_dp(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """Iterative dynamic programming over prefixes, IDP1 of the paper.

    The cheapest next k variables are found as DP-LD finds a whole order, and so on block by block. k
    is the largest for which all blocks have at most 4 million sets of variables: all variables up to
    22, where the order costs as much as that of DP-LD; 4 of 50, 3 of 100, 2 of 200, and 1 of 400,
    which gives the order of GREEDY.

    A step of its budget is a set, so the steps, up to 16 million, determine k. When its seconds end,
    it completes the order as GREEDY does.

    Differs from [kossmann2000]_: blocks are compared by the cost of their prefixes; the paper also
    completes the candidates greedily.
    """
    deadline = budget.deadline()
    most = min(budget.most_steps, _MOST_SETS) if budget.steps < np.inf else _SETS
    k = block_length(problem.n, most)
    equal = problem.partly_equal
    classes = np.zeros((0, problem.n), np.int64)
    log_repeated = np.zeros((0, problem.n + 1))
    if equal is not None:
        classes = equal.members.astype(np.int64)
        log_repeated = np.outer(equal.log_selectivity, repeated(np.arange(problem.n + 1)))
    order: list[int] = []
    while len(order) < problem.n:
        left = [v for v in range(problem.n) if v not in order]
        block = cheapest_block(
            np.array(order, dtype=np.int64),
            np.array(left, dtype=np.int64),
            min(k, len(left)),
            problem.terms,
            classes,
            log_repeated,
            deadline,
        ).tolist()
        if not block:
            return Found(extended(problem, order), complete=False)
        order += block
    bound = problem.log_order_cost(order) if k == problem.n else None
    return Found(order, log_bound=bound, steps=sets_of_blocks(problem.n, k))


def block_length(n: int, most_sets: int) -> int:
    """The largest block length for which all blocks have at most that many sets."""
    return max((k for k in range(2, n + 1) if sets_of_blocks(n, k) <= most_sets), default=1)


def sets_of_blocks(n: int, k: int) -> int:
    """The number of sets of all blocks of k variables."""
    return sum(comb(m, size) for m in range(n, 0, -k) for size in range(1, min(k, m) + 1))
