"""The plans of several generators for one pattern, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cepbench.arguments import seed as seed_from
from cepbench.errors import PlanGeneratorError
from cepbench.markup import Html
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import PlanGenerator, generators_from
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.notes import from_log, shown_log
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.model import Statistics
from cepbench.presentation.explainer.columns import Row
from cepbench.presentation.explainer.explain import explain
from cepbench.presentation.explainer.explanation import Explanation
from cepbench.presentation.explainer.tree_picture import tree_picture
from cepbench.presentation.figures.styles import style_of

#: Columns of the table of plans, in order.
COLUMNS = (
    "generator", "plan_kind", "plan", "cost", "log_cost", "relative_cost", "same_as", "reason",
)  # fmt: skip

#: Costs above this multiple of the least cost are set in bold.
_DEAR = 2.0


@dataclass(frozen=True, repr=False)
class SideBySide:
    """The result of :func:`plans_side_by_side`; a notebook shows it as a row of annotated trees.

    ``table`` has one row per generator: ``generator``, ``plan_kind`` (``order`` or ``tree``), ``plan`` (as
    text), ``cost`` and ``log_cost``, ``relative_cost`` (to the least cost of the same kind; costs of orders
    and of trees are not comparable), ``same_as`` (the preceding generators with an equal plan) and
    ``reason`` (why there is no plan, else empty).
    """

    pattern: Pattern
    statistics: Statistics
    table: pd.DataFrame
    #: By generator; those without a plan are missing.
    plans: Mapping[str, AnyPlan]
    #: The plan of each generator node by node.
    explanations: Mapping[str, Explanation]
    #: Generator → a line shown with its plan; None reserves no space for it.
    notes: Mapping[str, str] | None = None

    def __repr__(self) -> str:
        return f"SideBySide({len(self.plans)} plans of {self.pattern})"

    def describe(self) -> str:
        """The table as text."""
        shown = self.table[["generator", "plan_kind", "plan", "cost", "relative_cost"]].copy()
        shown["same as"] = self.table["same_as"].str.join(", ")
        return str(shown.to_string(index=False))

    def _repr_html_(self) -> str:
        """The panels, grouped by kind of plan, with one scale of line widths."""
        # Equal plans share an explanation; converting its table takes longer than drawing it.
        nodes = {id(each): each.nodes.to_dict("records") for each in self.explanations.values()}
        logs = [node["log_estimated"] for its in nodes.values() for node in its]
        largest = max(filter(math.isfinite, logs), default=0.0)
        panels = []
        for (_, text), rows in self.table.groupby(["plan_kind", "plan"], sort=False):
            for group in [rows] if text else [rows[k : k + 1] for k in range(len(rows))]:
                panels.append(self._panel(group.to_dict("records"), nodes, largest))
        return str(_PAGE(panels=panels))

    def _panel(
        self, rows: Sequence[Row], nodes: Mapping[int, Sequence[Row]], largest: float
    ) -> dict[str, Any]:
        """What the template shows of generators with one plan, or of one without a plan."""
        kind, names = rows[0]["plan_kind"], [row["generator"] for row in rows]
        colours = [style_of(name, kind).colour for name in names]
        panel: dict[str, Any] = {
            "kind": kind, "names": [*zip(names, colours, strict=True)], "reason": rows[0]["reason"],
            "pictures": [], "lines": [], "dash": "solid" if kind == "order" else "dashed",
        }  # fmt: skip
        explanation = self.explanations.get(names[0])
        if explanation is None:
            return panel
        its = nodes[id(explanation)]
        panel["pictures"] = [
            tree_picture(
                part.tree, [node for node in its if node["branch"] == number], measured=False,
                longest=6, largest=largest, colour=colours[0],
            )
            for number, part in enumerate(explanation.plan.parts)
        ]  # fmt: skip
        if self.notes is not None:
            # A line at least: panels keep their size while numbers change.
            noted = {name: self.notes[name] for name in names if name in self.notes}
            several = len(names) > 1
            lines = [f"{name}: {note}" if several else note for name, note in noted.items()]
            panel["lines"] = lines or [""]
        panel["cost"], panel["ratio"], panel["is_bold"] = _cost(rows[0])
        return panel


def plans_side_by_side(
    pattern: Pattern | str,
    statistics: Statistics,
    generators: Sequence[str | PlanGenerator] | None = None,
    *,
    seed: int = 0,
    time_selectivity: str = "adjacent",
    alpha: float = 0.0,
    last: str | Sequence[str | None] | None = None,
) -> SideBySide:
    """Plan a pattern with several generators and compare their plans.

    In the picture the width of a line shows the expected number of partial matches.

    Parameters
    ----------
    pattern : Pattern or str
        Of any kind, or its text; with OR, each plan has one tree per branch.
    generators : sequence of str or PlanGenerator, optional
        Names in ``cep.PLAN_GENERATORS``, for example; by default those of
        :func:`cepbench.planning.planners.registry.default_generators`.
    seed, time_selectivity, alpha, last
        As ``cep.plan`` takes them.

    Raises
    ------
    PlanGeneratorError
        If a generator is unknown. A generator that refuses or fails has a row with the reason.
    StatisticsError, UnsupportedPatternError
        If the statistics do not fit the pattern, or an argument is invalid.
    """
    pattern, statistics = pattern_from(pattern), statistics_from(statistics)
    seed = seed_from(seed, PlanGeneratorError)  # checked once, not per generator
    chosen = generators_from(generators)
    plans: dict[str, AnyPlan] = {}
    explanations: dict[str, Explanation] = {}
    reasons: dict[str, str] = {}
    drawn: dict[tuple[str, str], Explanation] = {}
    for generator in chosen:
        try:
            found = plan(
                pattern, statistics, generator, seed=seed, time_selectivity=time_selectivity,
                alpha=alpha, last=last,
            )  # fmt: skip
        except PlanGeneratorError as error:
            reasons[generator.name] = str(error)
            continue
        plans[generator.name] = found
        key = (found.kind, found.text)
        if key not in drawn:
            drawn[key] = explain(
                pattern, found, statistics, time_selectivity=time_selectivity, alpha=alpha,
                last=last,
            )  # fmt: skip
        explanations[generator.name] = drawn[key]
    return SideBySide(pattern, statistics, _table(chosen, plans, reasons), plans, explanations)


def _table(
    generators: Sequence[PlanGenerator], plans: Mapping[str, AnyPlan], reasons: Mapping[str, str]
) -> pd.DataFrame:
    logs = {name: math.nan if p.log_cost is None else p.log_cost for name, p in plans.items()}
    best: dict[str, float] = {}
    for name, found in plans.items():
        best[found.kind] = min(best.get(found.kind, math.inf), logs[name])
    rows: list[tuple[object, ...]] = []
    seen: dict[tuple[str, str], list[str]] = {}
    for generator in generators:
        name, kind = generator.name, generator.kind
        if name in plans:
            text = plans[name].text
            equal = seen.setdefault((kind, text), [])
            costs = (plans[name].cost, logs[name], from_log(logs[name] - best[kind]))
            rows.append((name, kind, text, *costs, tuple(equal), ""))
            equal.append(name)
        else:
            rows.append((name, kind, "", *[math.nan] * 3, (), reasons[name]))
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _cost(row: Row) -> tuple[str, str, bool]:
    """The cost, its ratio to the least cost, and whether the ratio is set in bold."""
    ratio = row["relative_cost"]
    if math.isnan(row["log_cost"]):
        return "no estimate", "", False
    cost = f"cost {shown_log(row['log_cost'])}, "
    if ratio < 1.0005:
        return cost, "the best", True
    times = f"{ratio:.{3 if ratio >= 1.1 else 4}g}" if ratio < 1e6 else "over 10⁶"
    return cost, f"{times} × the best", ratio >= _DEAR


_PAGE = Html(
    """<div class="cep-side-by-side" style="line-height:1.4">
{% for kind, group in panels | groupby("kind") %}
<div style="font-weight:600;margin:0.6em 0 0.4em">{{ kind | capitalize }} plans</div>
<div style="display:flex;flex-wrap:wrap;gap:10px;align-items:flex-start">
{% for panel in group %}
<figure style="margin:0;padding:6px 10px;border:1px solid rgba(127,127,127,.35);\
border-radius:4px;max-width:100%"><figcaption>
{%- for name, colour in panel.names -%}
<span style="font-weight:600;border-bottom:3px {{ panel.dash }} {{ colour }}">{{ name }}</span>
{{- ", " if not loop.last }}{% endfor %}</figcaption>
{% if panel.pictures %}
<div style="margin-top:4px"><small>{{ panel.cost }}
{%- if panel.is_bold %}<b>{{ panel.ratio }}</b>{% else %}{{ panel.ratio }}{% endif %}
{% for line in panel.lines %}<br/>{{ line or "\u00a0" }}{% endfor %}</small></div>
<div style="display:flex;flex-wrap:wrap;gap:8px">
{% for picture in panel.pictures %}
<div>
{% if panel.pictures | length > 1 %}<div><small>branch {{ loop.index0 }}</small></div>{% endif %}
{{ picture }}</div>
{% endfor %}
</div>
{% else %}
<p style="max-width:20em"><small>{{ panel.reason }}</small></p>
{% endif %}
</figure>
{% endfor %}
</div>
{% endfor %}
<p><small>Numbers: partial matches expected to coexist within a window; the thicker a line, the \
more (logarithmic, one scale for all). Costs are compared among plans of one kind.
</small></p></div>"""
)
