"""ZSTREAM: the best tree over leaves in written order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cepbench.costs.problem import PlanningProblem
from cepbench.kernels.planning.zstream import cheapest_cuts
from cepbench.planners.registry import plan_generator


@plan_generator(
    "ZSTREAM",
    kind="tree",
    exact=True,
    space="all trees whose leaves stand in written order",
    source="[mei2009]_, Algorithm 5, in [kolchinsky2018]_, section 6.1",
)
def zstream(problem: PlanningProblem, rng: np.random.Generator) -> Any:
    """The cheapest tree that joins neighbours of the written order only, in O(n³).

    Of equally good cuts of an interval the leftmost is taken.

    Differs from [mei2009]_: the cost is Cost_tree of [kolchinsky2018]_ instead of ZStream's own
    operator costs, as in the experiments of [kolchinsky2018]_.
    """
    return tree_over(problem, range(problem.n))


def tree_over(problem: PlanningProblem, order: Sequence[int]) -> Any:
    """The cheapest tree whose leaves, left to right, are ``order``."""
    index = np.asarray(order, dtype=np.intp)
    cuts = cheapest_cuts(
        problem.log_factor[index],
        problem.log_bound[index],
        np.ascontiguousarray(problem.log_selectivity[np.ix_(index, index)]),
        problem.log_order_factor,
        problem.log_alpha,
        -1 if problem.pivot < 0 else list(order).index(problem.pivot),
    )

    def build(first: int, last: int) -> Any:
        if first == last:
            return int(index[first])
        cut = int(cuts[first, last])
        return (build(first, cut - 1), build(cut, last))

    return build(0, problem.n - 1)
