"""EFREQ: the rarest event type first."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.registry import plan_generator


@plan_generator(
    "EFREQ",
    kind="order",
    space="the order of arrival frequencies alone",
    source="[akdere2008]_ and [kolchinsky2015]_ in [kolchinsky2018]_, section 6.1",
)
def efreq(problem: CostedProblem, rng: np.random.Generator) -> list[int]:
    """Ascending arrival frequencies of the events, before any filter.

    Of equal frequencies the earlier written variable comes first.

    Under KL the frequency is that of the events. [kolchinsky2018]_ leaves this open: section 4
    introduces the rate 2^(rW) / W of their sets to reduce plan generation to join ordering, but
    EFREQ is a native method, of engines that do without that reduction. EFREQ-SETS is the other
    reading.
    """
    return [int(i) for i in np.argsort(problem.log_arrivals, kind="stable")]
