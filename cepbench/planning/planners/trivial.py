"""TRIVIAL: the written order."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.registry import plan_generator


@plan_generator(
    "TRIVIAL",
    kind="order",
    space="the written order alone",
    source="[kolchinsky2018]_, section 6.1; the order of SASE and Cayuga",
)
def trivial(problem: CostedProblem, rng: np.random.Generator) -> list[int]:
    """The order in which the pattern was written."""
    return list(range(problem.n))
