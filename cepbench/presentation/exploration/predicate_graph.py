"""Predicate graphs: conditions, filters and temporal order between the variables of a pattern."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import pandas as pd

from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Kind, Pattern
from cepbench.planning.costs.temporal import TemporalOrder
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.model import Statistics
from cepbench.presentation.exploration.graph_picture import graphs_html

_NODES = (
    "branch", "variable", "type", "kind", "rate", "per_window", "filter", "filter_selectivity",
)  # fmt: skip
_EDGES = ("branch", "first", "second", "kind", "condition", "selectivity")


@dataclass(frozen=True, repr=False)
class PredicateGraph:
    """The result of :func:`predicate_graph`; a notebook shows it as a picture.

    Attributes
    ----------
    pattern : Pattern
    nodes : DataFrame
        One row per variable and branch: ``branch``, ``variable``, ``type``, ``kind`` (``plain``,
        ``negated``, ``kleene``), ``rate`` (events per second or tick), ``per_window`` (events per
        window), ``filter`` (conditions on the variable alone, as text) and ``filter_selectivity``.
    edges : DataFrame
        One row per condition on two variables and per pair of neighbours in the temporal order:
        ``branch``, ``first``, ``second``, ``kind`` (``condition`` or ``time order``), ``condition``
        (as text) and ``selectivity``: for temporal order the 1/2 of ``time_selectivity="adjacent"``,
        NaN if unknown.
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
    """Build the graph of a pattern: variables are nodes, conditions and temporal order are edges.

    Parameters
    ----------
    pattern : Pattern or str
        Of any kind, or its text; with OR there is one graph per branch.
    statistics : Statistics, optional
        Source of rates and selectivities; missing ones are NaN.

    Returns
    -------
    PredicateGraph
        With the DataFrames ``nodes`` and ``edges``, and a picture in notebooks.

    Notes
    -----
    Source: [kolchinsky2018]_, sections 3.1 and 4, where a SEQ is an AND with an additional condition
    on the timestamps of each pair of neighbours. Conditions are drawn above the variables, temporal
    order as arrows between and below them.
    """
    pattern = pattern_from(pattern)
    if statistics is not None:
        statistics = statistics_from(statistics)
    nodes: list[tuple[object, ...]] = []
    edges: list[tuple[object, ...]] = []
    for number, branch in enumerate(pattern.branches()):
        nodes += _nodes(number, branch, statistics)
        edges += _edges(number, branch, statistics)
    return PredicateGraph(
        pattern,
        pd.DataFrame(nodes, columns=list(_NODES)),
        pd.DataFrame(edges, columns=list(_EDGES)),
    )


def _nodes(
    number: int, branch: Pattern, statistics: Statistics | None
) -> Iterator[tuple[object, ...]]:
    """Rows with the columns :data:`_NODES`."""
    window = branch.window.seconds
    for variable in branch.variables:
        name = variable.name
        expected = math.nan
        if statistics is not None and name in statistics.names:
            expected = statistics.cardinality(name, window)
        rate = expected / window if window else math.nan
        filters = " AND ".join(map(str, branch.clauses_between(name, name)))
        yield (
            number, name, variable.type_text, str(variable.kind), rate, expected, filters,
            _selectivity(statistics, name, name),
        )  # fmt: skip


def _edges(
    number: int, branch: Pattern, statistics: Statistics | None
) -> Iterator[tuple[object, ...]]:
    """Rows with the columns :data:`_EDGES`."""
    for first, second in combinations(branch.names, 2):
        clauses = " AND ".join(map(str, branch.clauses_between(first, second)))
        if clauses:
            selectivity = _selectivity(statistics, first, second)
            yield number, first, second, "condition", clauses, selectivity
    place = {name: position for position, name in enumerate(branch.names)}
    steps = {**dict.fromkeys(TemporalOrder(branch).covering(), 0.5), **_around_negated(branch)}
    for first, second in sorted(steps, key=lambda step: (place[step[0]], place[step[1]])):
        order = f"{first} before {second}"
        yield number, first, second, "time order", order, steps[first, second]


def _around_negated(branch: Pattern) -> dict[tuple[str, str], float]:
    """The temporal order of negated variables and their neighbours; no cost model includes it."""
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
