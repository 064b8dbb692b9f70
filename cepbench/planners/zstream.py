"""ZSTREAM: the best tree over leaves in written order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepbench.costs.costed import CostedProblem
from cepbench.kernels.planning.zstream import cheapest_cuts
from cepbench.planners import any_cost
from cepbench.planners.registry import plan_generator
from cepbench.plans.tree import Tree


@plan_generator(
    "ZSTREAM",
    kind="tree",
    costs="joins",
    exact=True,
    space="all trees whose leaves stand in written order",
    source="[mei2009]_, Algorithm 5, in [kolchinsky2018]_, section 6.1",
)
def zstream(problem: CostedProblem, rng: np.random.Generator) -> Tree[int]:
    """The cheapest tree over leaves in written order, in O(n³).

    Of equally good cuts of an interval the leftmost is taken.

    Differs from [mei2009]_: by default the cost is Cost_tree instead of ZStream's operator costs, as
    in the experiments of [kolchinsky2018]_.
    """
    return tree_over(problem, range(problem.n))


def tree_over(problem: CostedProblem, order: Sequence[int]) -> Tree[int]:
    """The cheapest tree whose leaves, left to right, are ``order``."""
    index = np.asarray(order, dtype=np.intp)
    if problem.cost.form == "sets":
        cuts = cheapest_cuts(problem.terms.over(index))
    else:
        cuts = any_cost.cheapest_cuts(problem, index)
    return any_cost.tree_of_cuts(cuts, order)
