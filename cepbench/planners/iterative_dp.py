"""IDP: the best next few variables by dynamic programming, again and again."""

from __future__ import annotations

from math import comb

import numpy as np

from cepbench.costs.costed import CostedProblem
from cepbench.kernels.planning.iterative_dp import cheapest_block
from cepbench.planners.budget import Budget, Found
from cepbench.planners.greedy import extended
from cepbench.planners.registry import plan_generator

#: Sets of variables that all blocks together may look at: half a second.
_SETS = 1 << 22
#: What a budget can raise it to: 18 bytes each.
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
    """Iterative dynamic programming over prefixes, the first of the two kinds of the paper, IDP1.

    The cheapest order of k variables that can come next is found as DP-LD finds a whole one, kept,
    and the next k are looked for behind it. k is as large as 4 million sets of variables in all
    allow: all variables up to 22, where the order is as good as that of DP-LD; 4 of 50, 3 of 100,
    2 of 200; of 400 one alone, which makes the order of GREEDY.

    A step of its budget is a set; so the steps, up to 16 million, say how large k is. Ended by its
    seconds it takes the rest of the order as GREEDY would.

    Differs from [kossmann2000]_: a block is chosen by the cost of the prefixes that end in it, where
    the paper also completes the candidates greedily to compare them.
    """
    deadline = budget.deadline()
    most = min(budget.most_steps, _MOST_SETS) if budget.steps < np.inf else _SETS
    k = _block_length(problem.n, most)
    order: list[int] = []
    while len(order) < problem.n:
        left = [v for v in range(problem.n) if v not in order]
        block = cheapest_block(
            np.array(order, dtype=np.int64),
            np.array(left, dtype=np.int64),
            min(k, len(left)),
            problem.terms,
            deadline,
        ).tolist()
        if not block:
            return Found(extended(problem, order), complete=False)
        order += block
    bound = problem.log_order_cost(order) if k == problem.n else None
    return Found(order, log_bound=bound, steps=_sets(problem.n, k))


def _block_length(n: int, most_sets: int) -> int:
    """The most variables in a block with which all blocks look at no more sets than that."""
    return max((k for k in range(2, n + 1) if _sets(n, k) <= most_sets), default=1)


def _sets(n: int, k: int) -> int:
    """How many sets are looked at with blocks of k variables."""
    return sum(comb(m, size) for m in range(n, 0, -k) for size in range(1, min(k, m) + 1))
