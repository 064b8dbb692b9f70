"""What an explanation says in words: where the estimate is worst, and where the time went."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cepbench.evaluators.result import Metrics
from cepbench.explanations.columns import MARKED, Row, is_more, is_rare, percent, short


def findings(nodes: Sequence[Row], metrics: Metrics, evaluator: str) -> list[str]:
    """Sentences about a plan that was run.

    Parameters
    ----------
    nodes : sequence of mapping
        Rows of all branches; see :class:`~cepbench.explanations.explanation.Explanation`.
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
        return "No node has an estimate and enough rows to judge it by."
    row = max(judged, key=lambda row: row["q_error"])
    error = row["q_error"]
    if math.isnan(row["measured"]):
        what = "rows expected", row["estimated_created"], row["created"]
    else:
        what = "partial matches expected", row["estimated"], row["measured"]
    numbers = f"{short(what[1])} {what[0]}, {short(what[2])} measured"
    if error < MARKED[0]:
        return (
            f"No estimate is off by more than a factor of {math.ceil(10 * error) / 10:.1f}, "
            f"that at {_place(row, nodes)} most: {numbers}."
        )
    wrong = f"{short(error)} times too {'low' if is_more(row) else 'high'}"
    return f"The estimate is furthest off at {_place(row, nodes)}, {wrong}: {numbers}."


def _most_time(nodes: Sequence[Row]) -> str:
    row = max(nodes, key=lambda row: row["seconds"])
    total = sum(row["seconds"] for row in nodes)
    if not total:
        return ""
    expected = ""
    if not math.isnan(row["cost_share"]):
        expected = f", and {percent(row['cost_share'])} of the cost was expected there"
    return (
        f"Most time went into {_place(row, nodes)}: {percent(row['time_share'])} of the "
        f"{total:.3g} s that all nodes took{expected}."
    )


def _place(row: Row, nodes: Sequence[Row]) -> str:
    branch = f" of branch {row['branch']}" if nodes[-1]["branch"] else ""
    root = "the root " if row["parent"] < 0 else ""
    return f"{root}({row['variables']}){branch}"
