"""The result of :func:`cepbench.presentation.explainer.explain.explain`: a plan with numbers by node."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd

from cepbench.engines.runs.choice import Choice
from cepbench.engines.runs.result import Metrics
from cepbench.patterns.model import Pattern
from cepbench.planning.planners.stakes import Stakes
from cepbench.planning.plans.model import AnyPlan
from cepbench.presentation.explainer.columns import (
    MARKED,
    Row,
    is_more,
    is_rare,
    listed,
    node_columns,
    percent,
    severity,
    short,
)
from cepbench.presentation.explainer.report import Content, Report
from cepbench.presentation.explainer.tree_picture import LEGEND, tree_picture


@dataclass(frozen=True, repr=False)
class Explanation(Report):
    """A plan with estimates and, if it was run, measurements by node.

    ``nodes`` has one row per node of the plan's tree in post-order (left, right, node), branch by branch,
    followed by one row per negated variable and group of the branch. Missing numbers are NaN. Columns:

    - ``branch``, ``node`` (its number), ``parent`` (the number of its parent, or of the node that checks a
      negated variable or forms a group; -1 for the root), ``kind`` (``event``, ``set``, ``join``,
      ``negated``, ``group``), ``variables`` and ``types`` in the order of the plan, ``step`` (in an order
      plan; otherwise 0);
    - ``operator``: under ZStream's costs ``SEQ``, ``AND``, ``KSEQ``, ``NSEQ`` or ``NEG``; otherwise empty,
      as for events;
    - ``arrival_rate``: events of the variable's type per second (or tick), before any filter;
    - ``estimated``: expected partial matches PM, those that coexist within the window, and
      ``log_estimated``, its natural logarithm, which is always finite;
    - ``estimated_rate``: expected rows created per second (or tick);
    - ``cost``, ``log_cost``, ``cost_share``: contribution of the node to the plan's cost; 0 for the events
      of an order plan other than the first;

    and only for a plan that was run:

    - ``measured``: partial matches that coexist within the window, averaged over active time. NaN at the
      root, whose rows are matches and are not stored, and for events stored as future members of sets;
    - ``q_error``: factor between ``estimated`` and ``measured``; at the root between ``estimated_created``
      and ``created``;
    - ``estimated_created``, ``created``: rows created in the whole stream; for a ``set`` or ``negated`` node
      events, unless its sets are materialized alone;
    - ``peak_stored``: maximum number of stored rows, those that could still be extended;
    - ``comparisons``: pairs of rows whose conditions were tested one by one;
    - ``seconds``, ``time_share``: time spent in the node.
    """

    pattern: Pattern
    #: With its cost under the given statistics.
    plan: AnyPlan
    evaluator: str
    nodes: pd.DataFrame
    #: Of the run, times include the clocks at the nodes; None if it was not run.
    metrics: Metrics | None = None
    #: Why estimates are missing, or that the plan was made for a different cost.
    remarks: tuple[str, ...] = ()
    #: Whether choosing a plan matters for this pattern; None without estimates.
    stakes: Stakes | None = None
    #: The engines by their expected times, which count the matches of the stream, or of a million events if the
    #: plan was not run; None without statistics.
    choice: Choice | None = None
    legend = LEGEND

    def __repr__(self) -> str:
        ran = "not run" if self.metrics is None else f"{self.metrics.matches:,} matches"
        return f"Explanation({self.plan!r}, {ran})"

    def sentences(self) -> list[str]:
        """Findings of the run, the legend of its table, and whether choosing a plan matters."""
        at_stake = self.stakes.sentences() if self.stakes else []
        if self.metrics is None:
            return [*self._engines(), *at_stake]
        once, twice = (f"{limit:g}" for limit in MARKED)
        return [
            f"{self.metrics.matches:,} matches in {self.metrics.events:,} events; "
            f"{self.metrics.seconds:.3g} s by the {self.evaluator} evaluator.",
            *self._work(),
            *self._engines(),
            *findings(self.nodes.to_dict("records")),
            f"Off by: × more or ÷ fewer than expected, ! from {once} and !! from {twice} on; "
            "at the root by rows created.",
            *at_stake,
        ]

    def _engines(self) -> list[str]:
        if self.choice is None:
            return []
        where = "a million events" if self.metrics is None else "this stream"
        return [f"Expected times to count the matches of {where}: {self.choice.text}."]

    def _branches(self) -> list[list[Row]]:
        return [[*table.to_dict("records")] for _, table in self.nodes.groupby("branch")]

    def _content(self) -> Content:
        branches, ran = self._branches(), self.metrics is not None
        orders = (part.names for part in self.plan.parts if part.kind == "order")
        return Content(
            [
                self.plan.describe().splitlines()[0],
                *(f"order: {' → '.join(names)}" for names in orders),
                *self.remarks,
            ],
            node_columns("second" if self.pattern.window.is_datetime else "tick", measured=ran),
            [[*_labelled(rows)] for rows in branches],
            (
                (
                    f"branch {number}" if len(branches) > 1 else "",
                    tree_picture(part.tree, rows, measured=ran),
                )
                for number, (part, rows) in enumerate(zip(self.plan.parts, branches, strict=True))
            ),
        )


def _labelled(table: Sequence[Row]) -> Iterator[Row]:
    """The rows of a branch from the root down, each with a ``label``, indented by tree lines."""
    children: dict[int, list[int]] = {}
    for number, row in enumerate(table):
        children.setdefault(row["parent"], []).append(number)
    # A stack, since the tree of an order over hundreds of variables is too deep for recursion.
    waiting = [(root, "", "") for root in children[-1]]
    while waiting:
        number, rail, below = waiting.pop()
        yield {**table[number], "label": rail + _label(table[number])}
        its = children.get(number, [])
        for place, child in reversed(list(enumerate(its))):
            is_last = place == len(its) - 1
            waiting.append(
                (child, below + ("└ " if is_last else "├ "), below + ("  " if is_last else "│ "))
            )


def _label(row: Row) -> str:
    text = {
        "event": f"{row['variables']}: {row['types']}",
        "set": f"{row['variables']}: sets of {row['types']}",
        "negated": f"{row['variables']}: no {row['types']}",
        "group": f"{row['variables']}: group of {row['types']}",
        "join": listed(row["variables"]),
    }[row["kind"]]
    text = f"{row['operator']} {text}" if row["operator"] else text
    return f"{row['step']}. {text}" if row["step"] else text


def findings(nodes: Sequence[Row]) -> list[str]:
    """Sentences about the nodes of all branches of a plan that was run: the worst estimate, the most time."""
    return [*filter(None, (_worst_estimate(nodes), _most_time(nodes)))]


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
