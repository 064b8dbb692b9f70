"""ZSTREAM-ORD: the best tree over leaves in the order of GREEDY."""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.greedy import greedy
from cepbench.planning.planners.registry import plan_generator
from cepbench.planning.planners.zstream import shape_over


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
