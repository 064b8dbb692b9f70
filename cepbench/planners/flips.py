"""FLIPS: local search over trees, by the best tree over one leaf order after the other."""

from __future__ import annotations

import numpy as np

from cepbench.costs.costed import CostedProblem
from cepbench.planners.budget import Budget, Found
from cepbench.planners.greedy import greedy
from cepbench.planners.leaf_orders import improved
from cepbench.planners.registry import plan_generator
from cepbench.planners.zstream import tree_over

#: Leaf orders that are tried without a budget.
_ROUNDS = 50


@plan_generator(
    "FLIPS",
    kind="tree",
    costs="joins",
    space="all trees, down to what random flips do not improve",
    source="a search of our own over the trees of [mei2009]_, Algorithm 5",
    anytime=True,
    default=False,
)
def flips(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """The tree of ZSTREAM-ORD, improved by random flips of children, O(n³) each.

    A tree stays the same when the children of a node change places, but its leaves come in another
    order, and the best tree over that order is at least as good. So a round flips each node of
    the present tree with probability 1/2 and takes the best tree over the leaves as they stand
    then. Without a budget there are 50 rounds, with one as many as it allows; a round is a step.
    """
    rounds = budget.most_steps if budget.is_limited else _ROUNDS
    start = tree_over(problem, greedy(problem, rng))
    tree, done = improved(problem, start, rng, rounds, budget)
    return Found(tree, complete=not budget.is_limited, steps=done)
