"""EFREQ-SETS: EFREQ with the rate of join ordering for variables under KL."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.registry import plan_generator


@plan_generator(
    "EFREQ-SETS",
    kind="order",
    space="the order of arrival rates alone",
    source="[kolchinsky2018]_, sections 4 and 6.1",
    default=False,
)
def efreq_sets(problem: CostedProblem, rng: np.random.Generator) -> list[int]:
    """Ascending arrival rates, before any filter; under KL those of sets of events, 2^(rW) / W.

    Of equal rates the earlier written variable comes first. Without KL its plans are those of
    EFREQ.
    """
    return [int(i) for i in np.argsort(problem.log_cardinality, kind="stable")]
