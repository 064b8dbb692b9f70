"""QUICKPICK: the best of many random trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.kernels.quickpick import best_random_tree
from cepbench.planning.planners import any_cost
from cepbench.planning.planners.budget import Budget, Found
from cepbench.planning.planners.predicate_graph import adjacency
from cepbench.planning.planners.registry import plan_generator

#: Trees per variable, if its budget allows.
TREES = 100


@plan_generator(
    "QUICKPICK",
    kind="tree",
    space="random bushy trees with as few cross products as the conditions allow",
    source="[waas2000]_",
    anytime=True,
    default=False,
)
def quickpick(problem: CostedProblem, rng: np.random.Generator, budget: Budget) -> Found:
    """The cheapest of 100·n trees, each built from the conditions in random order.

    It begins with one tree per variable. A condition, the order in time included, joins the trees of
    its two variables unless they are the same; remaining trees are joined in random order. A tree is
    abandoned as soon as its nodes cost more than the best tree so far. The left child of a node
    holds the earliest written variable below the node.

    A step of its budget is a tree, abandoned or not, of O((n + m) log n) for m conditions.

    Differs from [waas2000]_: there is no initial bound from a heuristic, and conditions are drawn
    without replacement.
    """
    most = TREES * problem.n
    if problem.form != "sets":
        return any_cost.best_random_tree(problem, rng, most, budget)
    joins, trees = best_random_tree(
        np.ascontiguousarray(np.argwhere(np.triu(adjacency(problem))), dtype=np.int64),
        problem.terms,
        rng,
        min(most, budget.most_steps),
        budget.deadline(),
    )
    found: list[Any] = list(range(problem.n))
    for i, j in joins.tolist():
        found[i] = (found[i], found[j])
    return Found(found[0], complete=trees == most, steps=trees)
