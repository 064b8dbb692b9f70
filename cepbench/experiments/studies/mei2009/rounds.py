"""What the size of a batch costs in time to a match, and saves in work: no experiment of [mei2009]_.

The paper's engine evaluates in rounds of a batch each (section 4.3) and does not say of which size.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pandas as pd

from cepbench.engines.detection.detector import Detector
from cepbench.experiments.studies.runs import OF_ONE_KIND, in_settings
from cepbench.experiments.sweeps.cells import OK
from cepbench.experiments.sweeps.measure import timed_pushes
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import TreePlan
from cepbench.streams.event_stream import EventStream


def batch_sizes(
    pattern: Pattern,
    stream: EventStream,
    plan: TreePlan,
    sizes: Sequence[int],
    evaluators: Sequence[str],
    repetitions: int,
) -> pd.DataFrame:
    """Push a stream in batches of each size (events), each a round, and time every push.

    Evaluators run in turn, so that they share the drift of the machine's speed. One row a size,
    evaluator and repetition, for summaries: ``pattern_set`` is the size, ``pattern_id`` the run;
    ``events_per_second``; and ``latency_mean``, seconds from the push that completes a match to its
    end, on average over the matches. The time in which a batch fills, which depends on the source,
    is not included.
    """
    rows = []
    for repetition, size, evaluator in product(range(repetitions), sizes, evaluators):
        detector = Detector(pattern, plan, evaluator=evaluator, output="count")
        pushes = list(timed_pushes(detector, stream.batches(size)))
        waited = sum(matches * spent for spent, matches in pushes)
        found = detector.metrics().matches
        rows.append(
            {
                "setting": f"{size:,}",
                "size": len(pattern.planned_names),
                "repetition": repetition,
                "generator": "left-deep",
                "evaluator": evaluator,
                "status": OK,
                "events_per_second": len(stream) / sum(spent for spent, _ in pushes),
                "latency_mean": waited / found if found else float("nan"),
                "matches": found,
            }
        )
    runs = pd.DataFrame(rows)
    return in_settings(runs, runs["setting"]).assign(regime="", **OF_ONE_KIND)
