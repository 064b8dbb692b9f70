"""ZSTREAM-ORD: the best tree over leaves in the order of GREEDY."""

from __future__ import annotations

import numpy as np

from cepbench.costs.costed import CostedProblem
from cepbench.planners.greedy import greedy
from cepbench.planners.registry import plan_generator
from cepbench.planners.zstream import tree_over
from cepbench.plans.tree import Tree


@plan_generator(
    "ZSTREAM-ORD",
    kind="tree",
    costs="joins",
    space="all trees whose leaves stand in the order of GREEDY",
    source="[kolchinsky2018]_, section 6.1",
)
def zstream_ord(problem: CostedProblem, rng: np.random.Generator) -> Tree[int]:
    """ZSTREAM over the leaf order of GREEDY; ties as in these two."""
    return tree_over(problem, greedy(problem, rng))
