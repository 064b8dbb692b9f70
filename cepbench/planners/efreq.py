"""EFREQ: the rarest event type first."""

from __future__ import annotations

import numpy as np

from cepbench.costs.costed import CostedProblem
from cepbench.planners.registry import plan_generator


@plan_generator(
    "EFREQ",
    kind="order",
    space="the order of arrival rates alone",
    source="[akdere2008]_ and [kolchinsky2015]_ in [kolchinsky2018]_, section 6.1",
)
def efreq(problem: CostedProblem, rng: np.random.Generator) -> list[int]:
    """Ascending arrival rates, before any filter.

    Of equal rates the earlier written variable comes first.
    """
    return sorted(range(problem.n), key=problem.log_rate)
