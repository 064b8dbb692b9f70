"""What ties the variables of a pattern together: conditions, filters and the order in time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from cepbench.costs.temporal import TemporalOrder
from cepbench.exploration.graph_picture import graphs_html
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Kind, Pattern
from cepbench.statistics.given import statistics_from
from cepbench.statistics.model import Statistics

_NODES = (
    "branch", "variable", "type", "kind", "rate", "per_window", "filter", "filter_selectivity",
)  # fmt: skip
_EDGES = ("branch", "first", "second", "kind", "condition", "selectivity")


@dataclass(frozen=True, repr=False)
class PredicateGraph:
    """What :func:`predicate_graph` returns; a notebook shows it as a picture.

    Attributes
    ----------
    pattern : Pattern
    nodes : DataFrame
        One row a variable of each branch: ``branch``, ``variable``, ``type``, ``kind`` (``plain``,
        ``negated``, ``kleene``), ``rate`` (events per second or tick), ``per_window`` (events per
        window), ``filter`` (conditions on the variable alone, as text) and ``filter_selectivity``.
    edges : DataFrame
        One row a condition on two variables, or a step of the order in time: ``branch``,
        ``first``, ``second``, ``kind`` (``condition`` or ``time order``), ``condition`` (as text)
        and ``selectivity``. The order in time has the 1/2 with which the adjacent estimates count
        it. What is not known is NaN.
    """

    pattern: Pattern
    nodes: pd.DataFrame
    edges: pd.DataFrame

    def __repr__(self) -> str:
        conditions = int((self.edges["kind"] == "condition").sum())
        return f"PredicateGraph({len(self.nodes)} variables, {conditions} conditions)"

    def describe(self) -> str:
        """Both tables as text."""
        return f"{self.nodes.to_string(index=False)}\n\n{self.edges.to_string(index=False)}"

    def _repr_html_(self) -> str:
        return graphs_html(self.nodes.to_dict("records"), self.edges.to_dict("records"))


def predicate_graph(pattern: Pattern | str, statistics: Statistics | None = None) -> PredicateGraph:
    """The graph whose nodes are the variables of a pattern and whose edges its conditions.

    Parameters
    ----------
    pattern : Pattern or str
        Of any kind, or its text; one with OR has a graph for each branch.
    statistics : Statistics, optional
        Where rates and selectivities come from; NaN without it, or where it has none.

    Returns
    -------
    PredicateGraph
        With ``nodes`` and ``edges``, two DataFrames, and a picture in notebooks.

    Notes
    -----
    Source: [kolchinsky2018]_, sections 3.1 and 4, where a SEQ is an AND with one more condition on
    the timestamps of each two neighbours. Conditions are drawn above the variables, the order in
    time as arrows on their line and below it.
    """
    pattern = pattern_from(pattern)
    if statistics is not None:
        statistics = statistics_from(statistics)
    nodes: list[dict[str, object]] = []
    edges: list[dict[str, object]] = []
    for number, branch in enumerate(pattern.branches()):
        nodes += _nodes(number, branch, statistics)
        edges += _edges(number, branch, statistics)
    return PredicateGraph(
        pattern,
        pd.DataFrame(nodes, columns=list(_NODES)),
        pd.DataFrame(edges, columns=list(_EDGES)),
    )


def _nodes(number: int, branch: Pattern, statistics: Statistics | None) -> list[dict[str, object]]:
    found = []
    window = branch.window.seconds
    for variable in branch.variables:
        name = variable.name
        expected = math.nan
        if statistics is not None and name in statistics.names:
            expected = statistics.cardinality(name, window)
        found.append(
            {
                "branch": number,
                "variable": name,
                "type": variable.type,
                "kind": str(variable.kind),
                "rate": expected / window if window else math.nan,
                "per_window": expected,
                "filter": " AND ".join(map(str, branch.clauses_between(name, name))),
                "filter_selectivity": _selectivity(statistics, name, name),
            }
        )
    return found


def _edges(number: int, branch: Pattern, statistics: Statistics | None) -> list[dict[str, object]]:
    found: list[dict[str, object]] = []
    for first, second in combinations(branch.names, 2):
        clauses = branch.clauses_between(first, second)
        if clauses:
            found.append(
                {
                    "branch": number,
                    "first": first,
                    "second": second,
                    "kind": "condition",
                    "condition": " AND ".join(map(str, clauses)),
                    "selectivity": _selectivity(statistics, first, second),
                }
            )
    place = {name: position for position, name in enumerate(branch.names)}
    steps = {**dict.fromkeys(TemporalOrder(branch).covering(), 0.5), **_around_negated(branch)}
    for first, second in sorted(steps, key=lambda step: (place[step[0]], place[step[1]])):
        found.append(
            {
                "branch": number,
                "first": first,
                "second": second,
                "kind": "time order",
                "condition": f"{first} before {second}",
                "selectivity": steps[first, second],
            }
        )
    return found


def _around_negated(branch: Pattern) -> dict[tuple[str, str], float]:
    """Between which variables a negated one must not be; no plan counts with it."""
    before = branch.structure.precedence()
    negated = {v.name for v in branch.variables if v.kind is Kind.NEGATED}
    return {
        (x, y): math.nan
        for x, y in before
        if {x, y} & negated and not any((x, z) in before and (z, y) in before for z in branch.names)
    }


def _selectivity(statistics: Statistics | None, first: str, second: str) -> float:
    if statistics is None or not statistics.has_selectivity(first, second):
        return math.nan
    return statistics.selectivity(first, second)
