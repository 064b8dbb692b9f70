"""Improving a tree by changing its leaf order: the search of FLIPS and the start of DP-B."""

from __future__ import annotations

import time

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.budget import UNLIMITED, Budget
from cepbench.planning.planners.zstream import tree_over
from cepbench.planning.plans.tree import Tree, leaves


def improved(
    problem: CostedProblem,
    tree: Tree[int],
    rng: np.random.Generator,
    rounds: int,
    budget: Budget | None = None,
) -> tuple[Tree[int], int]:
    """The best tree of some rounds of flips, or of those that fit the budget, and their number."""
    deadline = UNLIMITED if budget is None else budget.deadline()
    cost = problem.log_tree_cost(tree)
    best, least = tree, cost
    done = 0
    while done < rounds and problem.n > 2 and time.monotonic_ns() < deadline:
        other = tree_over(problem, leaves(_flipped(tree, rng)))
        other_cost = problem.log_tree_cost(other)
        # Equally good trees are accepted, to leave plateaus, but not returned.
        if other_cost <= cost:
            tree, cost = other, other_cost
        if cost < least:
            best, least = tree, cost
        done += 1
    return best, done


def _flipped(tree: Tree[int], rng: np.random.Generator) -> Tree[int]:
    if not isinstance(tree, tuple):
        return tree
    left, right = _flipped(tree[0], rng), _flipped(tree[1], rng)
    return (left, right) if rng.random() < 0.5 else (right, left)
