"""FLIPS: local search over trees, by the best tree over changing leaf orders."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.greedy import greedy
from cepbench.planning.planners.registry import plan_generator
from cepbench.planning.planners.zstream import improved, tree_over

#: Leaf orders tried without a budget.
_ROUNDS = 50


@plan_generator(
    "FLIPS",
    kind="tree",
    costs="joins",
    space="all trees, down to one that random flips do not improve",
    source="own search over the trees of [mei2009]_, Algorithm 5",
    anytime=True,
    default=False,
)
def flips(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """The tree of ZSTREAM-ORD, improved by random flips of children, O(n³) each.

    Swapping the children of a node changes the leaf order but not the cost of a tree, and the best
    tree over the new leaf order is at least as good. A round swaps the children of each node of the
    current tree with probability 1/2 and takes the best tree over the resulting leaf order. Without
    a budget there are 50 rounds, with one as many as it allows; a round is a step.
    """
    rounds = budget.most_steps if budget.is_limited else _ROUNDS
    start = tree_over(problem, greedy(problem, rng))
    tree, done = improved(problem, start, rng, rounds, budget)
    return Found(tree, complete=not budget.is_limited, steps=done)
