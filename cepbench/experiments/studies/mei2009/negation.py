"""The pairs around a negated event that it leaves: both costs of [mei2009]_ beside a run.

Table 2 takes the share of pairs without a negating event between them as 1 − Pt·Pt, whatever the
rate of that event; the repaired cost as (1 − e^−m)/m for m of them in a window.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.nodes import plan_cost
from cepbench.planning.costs.q_error import q_error
from cepbench.planning.plans.model import TreePlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream

#: Cost → its name in tables.
COSTS = {"zstream": "printed", "zstream-repaired": "repaired"}


def surviving_pairs(
    results: pd.DataFrame,
    pattern: Pattern,
    streams: Mapping[str, EventStream],
    plans: Mapping[str, TreePlan],
) -> pd.DataFrame:
    """The share of pairs that a negation leaves, and by what factor NSEQ is ahead of NEG.

    Results are those of :func:`cepbench.experiments.studies.mei2009.runs.runs_on_streams`, of one
    engine and the two plans by name, ``NSEQ`` and ``NEG``, of a SEQ of two events with a negated
    one between them; streams are by setting.

    One row a setting and cost: ``setting``, ``cost`` (a value of :data:`COSTS`), ``measured`` and
    ``estimated`` shares with their ``q_error``; ``speed_up``, the median throughput of NSEQ divided
    by that of NEG, and ``cost_ratio``, the estimated cost of NEG divided by that of NSEQ.
    """
    cells = results.groupby(["pattern_set", "generator"])
    speed, matches = (cells[name].median().unstack() for name in ("events_per_second", "matches"))
    rows = []
    positive = pattern.without(pattern.negated)
    for setting, stream in streams.items():
        whole = evaluate(
            positive, stream, TreePlan(plans["NEG"].tree), evaluator="zstream", output="count"
        )
        measured = float(matches["NEG"][setting]) / whole.metrics.matches
        found = measure_statistics(pattern, stream)
        for cost, name in COSTS.items():
            tables = {
                plan: plan_cost(pattern, plans[plan], found, cost=cost) for plan in ("NSEQ", "NEG")
            }
            pairs, left = tables["NEG"]["cardinality"]
            totals = {plan: np.sum(table["cost"]) for plan, table in tables.items()}
            rows.append(
                {
                    "setting": setting,
                    "cost": name,
                    "measured": measured,
                    "estimated": left / pairs,
                    "q_error": float(q_error(left / pairs, measured)),
                    "speed_up": float((speed["NSEQ"] / speed["NEG"])[setting]),
                    "cost_ratio": totals["NEG"] / totals["NSEQ"],
                }
            )
    return pd.DataFrame(rows)
