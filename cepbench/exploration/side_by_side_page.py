"""Plans side by side in a notebook: one panel a generator, its lines in the generator's colour."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cepbench.explainer.columns import Row
from cepbench.explainer.explanation import Explanation
from cepbench.explainer.page import tree_picture
from cepbench.figures.styles import style_of
from cepbench.markup import Html
from cepbench.plans.notes import shown_log

#: Dearer than this many times the best one, a cost is set in bold.
_DEAR = 2.0

_HEADINGS = {"order": "Order plans", "tree": "Tree plans"}


@dataclass(frozen=True)
class Panel:
    """What is shown of one generator.

    Attributes
    ----------
    generator, kind : str
        Name and kind of plan.
    log_cost, relative_cost : float
        NaN if there is no plan.
    same_as : sequence of str
        Generators before it with an equal plan.
    explanation : Explanation or None
    reason : str
        Why there is no plan.
    note : str or None
        One more line; None reserves no space for it.
    """

    generator: str
    kind: str
    log_cost: float
    relative_cost: float
    same_as: Sequence[str]
    explanation: Explanation | None
    reason: str = ""
    note: str | None = None


def panels_html(panels: Sequence[Panel]) -> str:
    """The panels in rows by kind of plan; lines are of one scale in all of them.

    Without ids, scripts or classes that a page would need styles for.
    """
    # Equal plans share an explanation, and to take it apart takes longer than to draw it.
    rows = {id(e): e.nodes.to_dict("records") for p in panels if (e := p.explanation) is not None}
    logs = [row["log_estimated"] for its in rows.values() for row in its]
    largest = max(filter(math.isfinite, logs), default=0.0)
    sections = [
        (heading, [_shown(panel, rows, largest) for panel in panels if panel.kind == kind])
        for kind, heading in _HEADINGS.items()
    ]
    return str(_PAGE(sections=sections, has_notes=any(panel.note for panel in panels)))


def _shown(panel: Panel, rows: Mapping[int, Sequence[Row]], largest: float) -> dict[str, object]:
    """What the template has for a panel; ``lines`` are texts and whether they are bold."""
    colour = style_of(panel.generator, panel.kind).colour
    found: dict[str, object] = {
        "name": panel.generator,
        "dash": "solid" if panel.kind == "order" else "dashed",
        "colour": colour,
        "reason": panel.reason,
        "pictures": [],
    }
    if panel.explanation is not None:
        parts = panel.explanation.plan.parts
        own = rows[id(panel.explanation)]
        found["pictures"] = [
            tree_picture(
                part.tree, [row for row in own if row["branch"] == number], measured=False,
                small=True, largest=largest, colour=colour,
            )
            for number, part in enumerate(parts)
        ]  # fmt: skip
        same = f"same plan as {panel.same_as[0]}" if panel.same_as else ""
        # As many lines always, so that panels do not jump when numbers change.
        found["lines"] = [text for text in (same, panel.note) if text is not None]
        found["cost"], found["ratio"], found["is_bold"] = _cost(panel)
    return found


def _cost(panel: Panel) -> tuple[str, str, bool]:
    """The cost, how it compares with the best one, and whether that is to be seen at once."""
    ratio = panel.relative_cost
    if math.isnan(panel.log_cost):
        return "no estimate", "", False
    cost = f"cost {shown_log(panel.log_cost)}, "
    if ratio < 1.0005:
        return cost, "the best", True
    times = f"{ratio:.{3 if ratio >= 1.1 else 4}g}" if ratio < 1e6 else "over 10⁶"
    return cost, f"{times} × the best", ratio >= _DEAR


_PAGE = Html(
    """<div class="cep-side-by-side" style="line-height:1.4">
{% for heading, panels in sections if panels %}
<div style="font-weight:600;margin:0.6em 0 0.4em">{{ heading }}</div>
<div style="display:flex;flex-wrap:wrap;gap:10px;align-items:flex-start">
{% for panel in panels %}
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
{%- if has_notes %} Old plan: what the one by the unchanged numbers would cost now, as a multiple \
of the new one's cost.{% endif %}</small></p></div>"""
)
