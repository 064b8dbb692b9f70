"""Predicate graphs: conditions, filters and temporal order between the variables of a pattern.

In the picture variables are in a row, conditions arcs above and time arrows. Arcs never hide a variable
or another arc's label: wider arcs are higher, and arcs of equal width have their apexes at different
places.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import pandas as pd

from cepbench.diagram import Box, Diagram, Line, Point, Text
from cepbench.markup import Html, shortened
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Kind, Pattern
from cepbench.planning.costs.temporal import TemporalOrder
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.model import Statistics
from cepbench.presentation.explainer.columns import Row, short

_NODES = (
    "branch", "variable", "type", "kind", "rate", "per_window", "filter", "filter_selectivity",
)  # fmt: skip
_EDGES = ("branch", "first", "second", "kind", "condition", "selectivity")

_COLUMN = 112.0  # pixels from one variable to the next
_RISE, _FALL = 34.0, 20.0  # height of an arc per variable passed, above and below
_CONDITION = "#3b8ed0"
_LONGEST = 14  # maximum length of a name

#: Key to the picture.
_LEGEND = (
    "Blue arcs: conditions with their selectivities, the thicker the more selective. Grey arrows: "
    "temporal order. Larger circles: more events; dashed: negated; double: a set of events."
)


@dataclass(frozen=True, repr=False)
class PredicateGraph:
    """The result of :func:`predicate_graph`; a notebook shows it as a picture.

    ``nodes`` has one row per variable and branch: ``branch``, ``variable``, ``type``, ``kind`` (``plain``,
    ``negated``, ``kleene``), ``rate`` (events per second or tick), ``per_window`` (events per window),
    ``filter`` (conditions on the variable alone, as text) and ``filter_selectivity``.

    ``edges`` has one row per condition on two variables and per pair of neighbours in the temporal order:
    ``branch``, ``first``, ``second``, ``kind`` (``condition`` or ``time order``), ``condition`` (as text) and
    ``selectivity``: for temporal order the 1/2 of ``time_selectivity="adjacent"``, NaN if unknown.
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
        nodes, edges = self.nodes.to_dict("records"), self.edges.to_dict("records")
        pictures = [
            _graph_diagram(
                *([row for row in rows if row["branch"] == branch] for rows in (nodes, edges))
            )
            for branch in sorted({row["branch"] for row in nodes})
        ]
        filters = ((row["filter"], row["filter_selectivity"]) for row in nodes if row["filter"])
        conditions = (
            (row["condition"], row["selectivity"]) for row in edges if row["kind"] == "condition"
        )
        lines = [(text, short(value)) for text, value in dict.fromkeys([*filters, *conditions])]
        return str(_PAGE(pictures=pictures, legend=_LEGEND, lines=lines))


def predicate_graph(pattern: Pattern | str, statistics: Statistics | None = None) -> PredicateGraph:
    """Build the graph of a pattern: variables are nodes, conditions and temporal order are edges.

    Parameters
    ----------
    pattern : Pattern or str
        Of any kind, or its text; with OR there is one graph per branch.
    statistics : Statistics, optional
        Source of rates and selectivities; missing ones are NaN.

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


_PAGE = Html(
    """<div class="cep-predicate-graph">
{% for picture in pictures %}
<figure style="margin:0.5em 0">
{% if pictures | length > 1 %}<figcaption>branch {{ loop.index0 }}</figcaption>{% endif %}
{{ picture }}</figure>
{% endfor %}
<p><small>{{ legend }}</small></p>
{% if lines %}
<table class="dataframe"><thead><tr><th style="text-align:left">condition</th>
<th>selectivity</th></tr></thead><tbody>
{% for condition, selectivity in lines %}
<tr><td style="text-align:left">{{ condition }}</td>
<td style="text-align:right">{{ selectivity }}</td></tr>
{% endfor %}
</tbody></table>
{% else %}
<p>no conditions</p>
{% endif %}
</div>"""
)


def _graph_diagram(nodes: Sequence[Row], edges: Sequence[Row]) -> Diagram:
    radii = _radii(nodes)
    boxes = {
        row["variable"]: _node(row, _COLUMN * number, 2 * radii[row["variable"]])
        for number, row in enumerate(nodes)
    }
    lowest = 38.0 + 14 * max(len(_below(row)) for row in nodes)
    lines = []
    for row in edges:
        one, other = boxes[row["first"]], boxes[row["second"]]
        passed = (other.x - one.x) / _COLUMN
        middle = (one.x + other.x) / 2
        # The apex of a quadratic curve is halfway to its control point.
        if row["kind"] == "condition":
            lines.append(
                _condition(row, [(one.x, -17), (middle, -17 - 2 * _RISE * passed), (other.x, -17)])
            )
            continue
        ends = [(one.x, lowest), (middle, lowest + 2 * _FALL * passed), (other.x, lowest)]
        if passed == 1:
            ends = [(one.at(1, 0)[0] + 4, 0.0), (middle, 0.0), (other.at(-1, 0)[0] - 4, 0.0)]
        look = {"stroke_width": 1.5, "stroke_dasharray": "5 3"}
        lines.append(Line(ends, "Q", "full", tip=row["condition"], look=look, opacity=0.55))
    return Diagram("predicate graph", [*boxes.values()], lines)


def _condition(row: Row, ends: Sequence[Point]) -> Line:
    """An arc between two variables, with the condition as tooltip."""
    value = row["selectivity"]
    (_, y), (x, control), _ = ends
    label = () if math.isnan(value) else (Text(x, (y + control) / 2 - 5, short(value)),)
    return Line(
        ends, "Q", texts=label, tip=f"{row['condition']}: selectivity {short(value)}",
        look={"stroke": _CONDITION, "stroke_opacity": 0.8, "stroke_width": _thickness(value)},
    )  # fmt: skip


def _thickness(selectivity: float) -> float:
    """Line width: 1.5 for selectivity 1, up to 7.5 for 0.001."""
    if math.isnan(selectivity):
        return 1.5
    return 1.5 + 2 * min(3.0, -math.log10(max(selectivity, 1e-3)))


def _node(row: Row, x: float, size: float) -> Box:
    look: dict[str, Any] = {"fill_opacity": 0.12, "stroke": "currentColor"}
    if row["kind"] == "negated":
        look["stroke_dasharray"] = "3 3"
    texts = [Text(x, 32, shortened(row["variable"], _LONGEST), size=13, is_bold=True)]
    texts += [Text(x, 46 + 14 * k, line, opacity=0.85) for k, line in enumerate(_below(row))]
    tip = "; ".join([row["variable"], *_below(row), row["filter"]]).rstrip("; ")
    shape = "double" if row["kind"] == "kleene" else "circle"
    return Box(x, 0.0, size, size, shape, tuple(texts), tip, look)


def _below(row: Row) -> list[str]:
    before = {"negated": "no ", "kleene": "set of "}.get(row["kind"], "")
    lines = [shortened(before + row["type"], _LONGEST)]
    if not math.isnan(row["per_window"]):
        lines.append(f"{short(row['per_window'])} per window")
    if row["filter"]:
        value = row["filter_selectivity"]
        lines.append("filtered" if math.isnan(value) else f"filter passes {short(value)}")
    return lines


def _radii(nodes: Sequence[Row]) -> dict[str, float]:
    """Radii from 7 to 15 pixels, by the logarithm of the events per window."""
    known = [row["per_window"] for row in nodes if row["per_window"] > 0]
    most = max(known, default=1.0)
    found = {}
    for row in nodes:
        events = row["per_window"]
        share = math.log10(most / events) / 2 if events > 0 else 1.0
        found[row["variable"]] = 11.0 if math.isnan(events) else 15 - 8 * min(1.0, share)
    return found
