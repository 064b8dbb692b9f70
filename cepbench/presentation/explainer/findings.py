"""Findings of an explanation as sentences: the worst estimate, and the most expensive node."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cepbench.engines.runs.result import Metrics
from cepbench.presentation.explainer.columns import (
    MARKED,
    Row,
    is_more,
    is_rare,
    listed,
    percent,
    severity,
    short,
)


def findings(nodes: Sequence[Row], metrics: Metrics, evaluator: str) -> list[str]:
    """Sentences about a plan that was run.

    Parameters
    ----------
    nodes : sequence of mapping
        Rows of all branches; see :class:`~cepbench.presentation.explainer.explanation.Explanation`.
    metrics : Metrics
    evaluator : str
    """
    found = [
        f"{metrics.matches:,} matches in {metrics.events:,} events; "
        f"{metrics.seconds:.3g} s by the {evaluator} evaluator.",
        _worst_estimate(nodes),
        _most_time(nodes),
    ]
    return [sentence for sentence in found if sentence]


def _worst_estimate(nodes: Sequence[Row]) -> str:
    judged = [row for row in nodes if not (math.isnan(row["q_error"]) or is_rare(row))]
    if not judged:
        return "No node has an estimate and enough rows to judge it."
    row = max(judged, key=lambda row: row["q_error"])
    error = row["q_error"]
    if error < MARKED[0]:
        return (
            f"No estimate is off by more than a factor of {math.ceil(10 * error) / 10:.1f}; "
            f"the worst is at {_place(row, nodes)} ({_numbers(row)})."
        )
    sentence = (
        f"The worst estimate is at {_place(row, nodes)}, {short(error)} times too "
        f"{'low' if is_more(row) else 'high'} ({_numbers(row)})."
    )
    origin = _origin(row, nodes)
    if origin is not row:
        sentence += f" The error originates at {_place(origin, nodes)} ({_numbers(origin)})."
    return sentence


def _origin(row: Row, nodes: Sequence[Row]) -> Row:
    """The lowest node from which all estimates up to ``row`` are marked."""
    below = [
        child
        for child in nodes
        if (child["branch"], child["parent"]) == (row["branch"], row["node"])
        and severity(child)
        and is_more(child) == is_more(row)
    ]
    return _origin(max(below, key=lambda child: child["q_error"]), nodes) if below else row


def _numbers(row: Row) -> str:
    if math.isnan(row["measured"]):
        what, expected, found = "rows", row["estimated_created"], row["created"]
    else:
        what, expected, found = "partial matches", row["estimated"], row["measured"]
    return f"{what}: {short(expected)} expected, {short(found)} measured"


def _most_time(nodes: Sequence[Row]) -> str:
    row = max(nodes, key=lambda row: row["seconds"])
    total = sum(row["seconds"] for row in nodes)
    if not total:
        return ""
    expected = ""
    if not math.isnan(row["cost_share"]):
        expected = f"; its expected share of the cost is {percent(row['cost_share'])}"
    return (
        f"Most time was spent in {_place(row, nodes)}: {percent(row['time_share'])} of the "
        f"{total:.3g} s of all nodes{expected}."
    )


def _place(row: Row, nodes: Sequence[Row]) -> str:
    branch = f" of branch {row['branch']}" if nodes[-1]["branch"] else ""
    root = "the root " if row["parent"] < 0 else ""
    return f"{root}({listed(row['variables'])}){branch}"
