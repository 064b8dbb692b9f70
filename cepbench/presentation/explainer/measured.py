"""Measurements at the nodes of a plan, in the units of the estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cepbench.engines.runs.result import Result
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.q_error import q_error
from cepbench.planning.statistics.measure import active_time
from cepbench.presentation.explainer.estimates import ExplainedNode
from cepbench.streams.event_stream import EventStream

#: Columns of measurements, in the order of the table.
MEASURED = (
    "measured", "q_error", "estimated_created", "created", "peak_stored", "comparisons", "seconds",
    "time_share",
)  # fmt: skip


def measure(
    result: Result,
    stream: EventStream,
    nodes: Sequence[Sequence[ExplainedNode]],
    estimates: Sequence[pd.DataFrame],
) -> list[pd.DataFrame]:
    """The tables of estimates by branch, with the columns :data:`MEASURED` of a run on a stream."""
    pattern = result.pattern
    branches = pattern.branches()
    counts = result.nodes
    # Estimates are per second of active time, the evaluator's averages over the whole time span.
    active = max(active_time(pattern, stream), pattern.window.seconds)
    span = _span(stream)
    total = float(counts["seconds"].sum()) or math.nan
    tables = []
    for number, branch in enumerate(branches):
        rows = counts[counts["branch"] == number] if len(branches) > 1 else counts
        rows = rows.reset_index(drop=True)
        found = pd.DataFrame(
            [_measured(branch, node, rows, span, active) for node in nodes[number]]
        )
        expected = estimates[number]
        found["estimated_created"] = expected["estimated_rate"] * active
        found["time_share"] = found["seconds"] / total
        found["q_error"] = _q_errors(branch, nodes[number], expected, found, active)
        tables.append(pd.concat([expected, found[list(MEASURED)]], axis=1))
    return tables


def _measured(
    branch: Pattern, node: ExplainedNode, rows: pd.DataFrame, span: float, active: float
) -> dict[str, float]:
    # Several rows if sets of a Kleene variable are materialized alone, or the plan is a single
    # leaf.
    own = rows[rows["variables"] == ", ".join(sorted(node.variables, key=branch.names.index))]
    if own.empty:  # groups, and negations beside them, are not nodes of the engine
        return dict.fromkeys(
            ("measured", "created", "peak_stored", "comparisons", "seconds"), math.nan
        )
    last = own.iloc[-1]
    is_root = node.parent < 0
    is_partial_match = node.kind in ("event", "join") or len(own) > 1
    alive = math.nan
    # Events stored as future members of sets, or for negation, are not partial matches.
    if active and is_partial_match:
        if node.kind == "event" or (not span and not is_root):
            # Every event is alive for a whole window, as are rows if all timestamps are equal.
            alive = int(own["created"].iloc[-1]) * branch.window.seconds / active
        elif not is_root:
            alive = float(last["mean_stored"]) * span / active
    return {
        "measured": alive,
        "created": int(last["created"]),
        "peak_stored": int(own["peak_stored"].max()),
        "comparisons": int(own["comparisons"].sum()),
        "seconds": float(own["seconds"].sum()),
    }


def _q_errors(
    branch: Pattern,
    nodes: Sequence[ExplainedNode],
    expected: pd.DataFrame,
    found: pd.DataFrame,
    active: float,
) -> np.ndarray:
    """Q-errors by coexisting partial matches; for the root, which stores none, by rows created."""
    sizes = np.array([len(node.variables) for node in nodes])
    # The resolution of the measurement: one row of average lifetime.
    least = branch.window.seconds / (sizes * active) if active else np.ones(len(nodes))
    errors = q_error(expected["estimated"], found["measured"], least)
    by_created = q_error(found["estimated_created"], found["created"], 1.0)
    is_root = np.array([node.parent < 0 for node in nodes])
    chosen: np.ndarray = np.where(is_root, by_created, errors)
    return chosen


def _span(stream: EventStream) -> float:
    if not len(stream):
        return 0.0
    ticks = int(stream.timestamps[-1]) - int(stream.timestamps[0])
    return ticks / 1e9 if stream.is_datetime else float(ticks)
