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
    for number, (branch, its, expected) in enumerate(zip(branches, nodes, estimates, strict=True)):
        rows = counts[counts["branch"] == number] if len(branches) > 1 else counts
        found = _measured(branch, its, rows, span, active)
        found["estimated_created"] = expected["estimated_rate"] * active
        found["time_share"] = found["seconds"] / total
        found["q_error"] = _q_errors(branch, its, expected, found, active)
        tables.append(pd.concat([expected, found[list(MEASURED)]], axis=1))
    return tables


def _measured(
    branch: Pattern, nodes: Sequence[ExplainedNode], rows: pd.DataFrame, span: float, active: float
) -> pd.DataFrame:
    """What was counted at each node; NaN for groups, and negations beside them, which no engine counts."""
    keys = [", ".join(sorted(node.variables, key=branch.names.index)) for node in nodes]
    # Several rows if sets of a Kleene variable are materialized alone, or the plan is a single
    # leaf.
    own = rows.groupby("variables").agg(
        created=("created", "last"),
        mean_stored=("mean_stored", lambda its: its.iloc[-1]),
        peak_stored=("peak_stored", "max"),
        comparisons=("comparisons", "sum"),
        seconds=("seconds", "sum"),
        parts=("created", "size"),
    )
    own = own.reindex(keys).reset_index(drop=True)
    own["measured"] = np.nan
    if active:
        is_event = np.array([node.kind == "event" for node in nodes])
        is_root = np.array([node.parent < 0 for node in nodes])
        # Events stored as future members of sets, or for negation, are not partial matches.
        is_row = np.array([node.kind == "join" for node in nodes]) | (own["parts"] > 1).to_numpy()
        # Every event is alive for a whole window, as are rows if all timestamps are equal; of a window of
        # length 0 active time is the number of moments.
        window = branch.window.seconds
        for_window = own["created"] * (window or 1.0) / active
        in_part = own["mean_stored"] * span / active if span and window else for_window
        own["measured"] = in_part.where(is_row & ~is_root).mask(is_event, for_window)
    return own


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
    least = (branch.window.seconds or 1.0) / (sizes * active) if active else np.ones(len(nodes))
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
