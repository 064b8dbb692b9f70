"""The HTML of plans side by side: one panel per generator, its lines in the generator's colour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from cepbench.markup import Html
from cepbench.planning.plans.notes import shown_log
from cepbench.presentation.explainer.columns import Row
from cepbench.presentation.explainer.explanation import Explanation
from cepbench.presentation.explainer.page import tree_picture
from cepbench.presentation.figures.styles import style_of

#: Costs above this multiple of the least cost are set in bold.
_DEAR = 2.0


def panels_html(
    rows: Sequence[Row],
    explanations: Mapping[str, Explanation],
    notes: Mapping[str, str] | None = None,
) -> str:
    """The panels, grouped by kind of plan, with one scale of line widths.

    Parameters
    ----------
    rows : sequence of mapping
        The rows of :attr:`~cepbench.presentation.exploration.side_by_side.SideBySide.table`.
    explanations : mapping of str to Explanation
        Generator → its plan node by node.
    notes : mapping of str to str, optional
        Generator → one more line of its panel; None reserves no space for that line.

    Returns
    -------
    str
        HTML without ids, scripts or classes that would need a style sheet.
    """
    # Equal plans share an explanation; converting its table takes longer than drawing it.
    nodes = {id(each): each.nodes.to_dict("records") for each in explanations.values()}
    logs = [node["log_estimated"] for its in nodes.values() for node in its]
    largest = max(filter(math.isfinite, logs), default=0.0)
    panels = []
    for row in rows:
        name, kind = row["generator"], row["plan_kind"]
        colour = style_of(name, kind).colour
        panel: dict[str, Any] = {
            "name": name, "kind": kind, "colour": colour, "reason": row["reason"], "pictures": [],
            "dash": "solid" if kind == "order" else "dashed",
        }  # fmt: skip
        explanation = explanations.get(name)
        if explanation is not None:
            its = nodes[id(explanation)]
            panel["pictures"] = [
                tree_picture(
                    part.tree, [node for node in its if node["branch"] == number], measured=False,
                    small=True, largest=largest, colour=colour,
                )
                for number, part in enumerate(explanation.plan.parts)
            ]  # fmt: skip
            same = f"same plan as {row['same_as'][0]}" if row["same_as"] else ""
            # Always the same number of lines: panels keep their size while numbers change.
            panel["lines"] = [same] if notes is None else [same, notes.get(name, "")]
            panel["cost"], panel["ratio"], panel["is_bold"] = _cost(row)
        panels.append(panel)
    return str(_PAGE(panels=panels, has_notes=bool(notes)))


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
<span style="font-weight:600;border-bottom:3px {{ panel.dash }} {{ panel.colour }}">
{{- panel.name }}</span></figcaption>
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
{%- if has_notes %} Old plan: the cost of the plan for the unchanged numbers, under the changed \
ones, as a multiple of the new plan's cost.{% endif %}</small></p></div>"""
)
