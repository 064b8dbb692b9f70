"""Plans side by side in a notebook: one panel a generator, its lines in the generator's colour."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cepbench.explainer.columns import Row
from cepbench.explainer.explanation import Explanation
from cepbench.explainer.page import tree_picture
from cepbench.figures.styles import style_of
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
        A line more; None leaves no room for one.
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
    sections = []
    for kind, heading in _HEADINGS.items():
        own = [panel for panel in panels if panel.kind == kind]
        if own:
            drawn = "".join(_panel(panel, rows, largest) for panel in own)
            sections.append(
                f'<div style="font-weight:600;margin:0.6em 0 0.4em">{heading}</div>'
                '<div style="display:flex;flex-wrap:wrap;gap:10px;align-items:flex-start">'
                f"{drawn}</div>"
            )
    note = (
        "Numbers: partial matches expected to coexist within a window; the thicker a line, the "
        "more (logarithmic, one scale for all). Costs are compared among plans of one kind."
    )
    if any(panel.note for panel in panels):
        note += (
            " Old plan: what the one by the unchanged numbers would cost now, as a multiple of the "
            "new one's cost."
        )
    return f'<div class="cep-side-by-side" style="line-height:1.4">{"".join(sections)}<p><small>{note}</small></p></div>'


def _panel(panel: Panel, rows: Mapping[int, Sequence[Row]], largest: float) -> str:
    colour = style_of(panel.generator, panel.kind).colour
    dash = "solid" if panel.kind == "order" else "dashed"
    name = html.escape(panel.generator)
    title = f'<span style="font-weight:600;border-bottom:3px {dash} {colour}">{name}</span>'
    if panel.explanation is None:
        body = f'<p style="max-width:20em"><small>{html.escape(panel.reason)}</small></p>'
    else:
        own = rows[id(panel.explanation)]
        body = _cost(panel) + _pictures(panel.explanation, own, largest, colour)
    return (
        '<figure style="margin:0;padding:6px 10px;border:1px solid rgba(127,127,127,.35);'
        f'border-radius:4px;max-width:100%"><figcaption>{title}</figcaption>{body}</figure>'
    )


def _cost(panel: Panel) -> str:
    ratio = panel.relative_cost
    if math.isnan(panel.log_cost):
        told = "no estimate"
    elif ratio < 1.0005:
        told = f"cost {shown_log(panel.log_cost)}, <b>the best</b>"
    else:
        times = f"{ratio:.{3 if ratio >= 1.1 else 4}g}" if ratio < 1e6 else "over 10⁶"
        text = f"{times} × the best"
        told = f"cost {shown_log(panel.log_cost)}, {f'<b>{text}</b>' if ratio >= _DEAR else text}"
    same = f"same plan as {panel.same_as[0]}" if panel.same_as else ""
    # As many lines always, so that panels do not jump when numbers change.
    lines = [told, *(html.escape(t) or "&#160;" for t in (same, panel.note) if t is not None)]
    return f'<div style="margin-top:4px"><small>{"<br/>".join(lines)}</small></div>'


def _pictures(explanation: Explanation, rows: Sequence[Row], largest: float, colour: str) -> str:
    """A tree for each branch of the pattern."""
    parts = explanation.plan.parts
    found = []
    for number, part in enumerate(parts):
        own = [row for row in rows if row["branch"] == number]
        picture = tree_picture(
            part.tree, own, measured=False, small=True, largest=largest, colour=colour
        )
        heading = f"<div><small>branch {number}</small></div>" if len(parts) > 1 else ""
        found.append(f"<div>{heading}{picture}</div>")
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px">{"".join(found)}</div>'
