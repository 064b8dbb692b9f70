"""DP-B: the best tree, by dynamic programming over all splits of all sets of variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.costs.problem import PlanningProblem
from cepbench.kernels.dp_b import cheapest_tree
from cepbench.kernels.subset_sizes import log_subset_sizes
from cepbench.planners.registry import plan_generator


@plan_generator(
    "DP-B",
    plans="tree",
    exact=True,
    space="all bushy trees, cross products included",
    source="[selinger1979]_ in [kolchinsky2018]_, section 6.1",
    max_size=22,
)
def dp_b(problem: PlanningProblem, rng: np.random.Generator) -> Any:
    """The tree of least cost: bushy dynamic programming, O(3^n) steps, 32·2^n bytes at most.

    The left child of a node holds the earliest written variable below the node. Of equally good
    splits the one whose left child has the smallest set is taken, sets being compared as binary
    numbers in which the first written variable is the lowest digit.
    """
    sizes = log_subset_sizes(
        problem.log_factor, problem.log_bound, problem.log_selectivity, problem.log_order_factor
    )
    left_of = dict(cheapest_tree(sizes, problem.log_alpha, problem.pivot, problem.n).tolist())

    def build(mask: int) -> Any:
        if mask not in left_of:
            return mask.bit_length() - 1
        left = left_of[mask]
        return (build(left), build(mask ^ left))

    return build((1 << problem.n) - 1)
