"""ZSTREAM and ZSTREAM-ORD: the best tree over leaves in written order, and in that of GREEDY."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from cepbench.errors import PlanningRefusedError
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.zstream import ZStream
from cepbench.planning.kernels.zstream import cheapest_cuts
from cepbench.planning.kernels.zstream_operators import cheapest_operators
from cepbench.planning.planners import any_cost
from cepbench.planning.planners.budget import UNLIMITED, Budget
from cepbench.planning.planners.greedy import greedy
from cepbench.planning.planners.registry import plan_generator
from cepbench.planning.plans.tree import Tree, leaves

#: Limit of negated variables and groups whose placements are searched, in time and memory of 2^m.
MOST_PLACED = 8


@plan_generator(
    "ZSTREAM",
    kind="tree",
    costs="joins",
    exact=True,
    space="all trees whose leaves stand in written order",
    source="[mei2009]_, Algorithm 5, in [kolchinsky2018]_, section 6.1",
)
def zstream(problem: CostedProblem, rng: np.random.Generator) -> Any:
    """The cheapest tree over leaves in written order, in O(n³).

    Of equally good cuts of an interval the leftmost is taken. Under the costs ``zstream`` and
    ``zstream-repaired`` the plan places negated variables and groups too, and is the cheapest of all
    placements.

    Differs from [mei2009]_: by default the cost is Cost_tree instead of ZStream's operator costs, as
    in the experiments of [kolchinsky2018]_.

    Raises PlanningRefusedError if there are more than :data:`MOST_PLACED` negated variables and
    groups to place.
    """
    return shape_over(problem, range(problem.n))


@plan_generator(
    "ZSTREAM-ORD",
    kind="tree",
    costs="joins",
    space="all trees whose leaves stand in the order of GREEDY",
    source="[kolchinsky2018]_, section 6.1",
)
def zstream_ord(problem: CostedProblem, rng: np.random.Generator) -> Any:
    """ZSTREAM over the leaf order of GREEDY; ties as in these two."""
    return shape_over(problem, greedy(problem, rng))


def shape_over(problem: CostedProblem, order: Sequence[int]) -> Any:
    """The cheapest tree over an order of leaves, with placements if the cost is that of operators."""
    if not isinstance(problem.cost, ZStream) or problem.operators is None:
        return tree_over(problem, order)
    negations = [negation.name for negation in problem.operators.negations]
    groups = [group.name for group in problem.operators.groups]
    if len(negations) + len(groups) > MOST_PLACED:
        raise PlanningRefusedError(
            f"placements of {len(negations)} negated variables and {len(groups)} groups take too long "
            f"to search, and the limit is {MOST_PLACED} together; choose DP-B or SA, which push each "
            "down as far as is exact"
        )
    steps, _ = cheapest_operators(problem.cost.intervals(problem, order))
    placements: dict[str, tuple[int, ...]] = {}

    def build(first: int, last: int, placed: int) -> Tree[int]:
        cut, left, formed = steps[first, last, placed].tolist()
        below = tuple(order[first : last + 1])
        if cut < 0:
            placements[negations[-1 - cut]] = below
            return build(first, last, placed ^ 1 << -1 - cut)
        for number, group in enumerate(groups, len(negations)):
            if formed >> number & 1:
                placements[group] = below
        if first == last:
            return int(order[first])
        return (build(first, cut - 1, left), build(cut, last, placed ^ left ^ formed))

    tree = build(0, problem.n - 1, (1 << len(negations) + len(groups)) - 1)
    return (tree, placements) if placements else tree


def tree_over(problem: CostedProblem, order: Sequence[int]) -> Tree[int]:
    """The cheapest tree whose leaves, left to right, are ``order``."""
    index = np.asarray(order, dtype=np.intp)
    if problem.form == "sets":
        cuts = cheapest_cuts(problem.terms.over(index))
    else:
        cuts = any_cost.cheapest_cuts(problem, index)
    return any_cost.tree_of_cuts(cuts, order)


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
