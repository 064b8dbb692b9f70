"""Draws the pictures of README and architecture.md: ``.venv/bin/python docs/pictures.py``.

Both are generated, from the plans of a real pattern and from the table of packages; a test checks
that they are current.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path

from cepbench.markup import element

HERE = Path(__file__).resolve().parent

#: Plan generators of the picture of plans, the most expensive plan first.
SHOWN = ("TRIVIAL", "EFREQ", "DP-LD")

_INK, _PALE, _PAPER = "#222222", "#666666", "#ffffff"


def plans_picture() -> str:
    """Three plans of one pattern and their runs: the same matches at different cost."""
    import cepbench as cep
    from cepbench.presentation.explainer.tree_picture import tree_picture
    from cepbench.presentation.figures.styles import style_of

    dataset = cep.open_dataset("nasdaq-style/sample")
    stream, pattern = dataset.stream(), dataset.patterns["rare-last"]
    statistics = cep.measure_statistics(pattern, stream)
    plans = {name: cep.plan(pattern, statistics, name) for name in SHOWN}
    runs = {name: cep.explain(pattern, plan, statistics, stream) for name, plan in plans.items()}
    # A common scale of line widths.
    largest = max(run.nodes["log_estimated"].max() for run in runs.values())
    panels, width, top, height = [], 24.0, 130.0, 0.0
    for name, run in runs.items():
        assert run.metrics is not None
        colour = style_of(name, "order").colour
        tree = tree_picture(
            plans[name].parts[0].tree, run.nodes.to_dict("records"), measured=False, longest=6,
            largest=largest, colour=colour,
        )  # fmt: skip
        wide, high = (1.4 * size for size in tree.extent[2:])
        drawing = str(tree).replace(
            f'width="{tree.extent[2]:.0f}"',
            f'x="{width:g}" y="{top:g}" width="{wide:g}" height="{high:g}"',
            1,
        )
        made = f"{run.metrics.partial_matches_created:,} partial matches created"
        panels += [
            _text(width, 92, name, 16, colour, bold=True),
            _text(width + 84, 92, " → ".join(plans[name].parts[0].names), 15, _PALE),
            _text(width, 116, made, 15, _INK, bold=True),
            drawing,
        ]
        width, height = width + max(wide, 248) + 24, max(height, high)
        matches = run.metrics.matches
    title = f"One pattern, three plans, the same {matches:,} matches"
    types = ", ".join(f"{variable.name}: {variable.type}" for variable in pattern.variables)
    caption = f"{types}; numbers: expected partial matches in a window of {pattern.window}"
    text = [_text(24, 34, title, 19, _INK, bold=True), _text(24, 58, caption, 14, _PALE), *panels]
    return _page(width, top + height + 10, title, text)


def layers_of(page: str) -> dict[str, list[str]]:
    """Layer → its packages, from the table of architecture.md; the lowest layer first."""
    found: dict[str, list[str]] = {}
    for layer, package in re.findall(r"^\| `(\w+)/(?:(\w+)/?)?` \|", page, re.MULTILINE):
        found.setdefault(layer, []).extend([package] if package else [])
    return found


def layers_picture(page: str) -> str:
    """The layers in a line, each with its packages; data flows down."""
    left, named, wide, high, gap, across = 40, 150, 146, 28, 10, 5
    width = left + named + across * (wide + gap) + left
    y, parts = 74.0, []
    for number, (layer, packages) in enumerate(layers_of(page).items()):
        rows = max(1, -(-len(packages) // across))
        layer_high = rows * (high + gap) + gap
        if number:
            x = left + named / 2 - gap
            parts.append(
                f'<line x1="{x:g}" y1="{y - 16:g}" x2="{x:g}" y2="{y:g}" stroke="{_PALE}" '
                'stroke-width="2" marker-end="url(#end)"/>'
            )
        parts.append(
            f'<rect x="{left}" y="{y:g}" width="{width - 2 * left:g}" height="{layer_high:g}" '
            f'rx="6" fill="#eef3f8" stroke="{_INK}"/>'
        )
        parts.append(_text(left + 16, y + layer_high / 2 + 6, layer, 17, _INK, bold=True))
        for k, package in enumerate(packages):
            at_x = left + named + k % across * (wide + gap)
            at_y = y + gap + k // across * (high + gap)
            parts.append(
                f'<rect x="{at_x:g}" y="{at_y:g}" width="{wide}" height="{high}" rx="4" '
                f'fill="{_PAPER}" stroke="{_PALE}"/>'
            )
            parts.append(_text(at_x + wide / 2, at_y + 19, package, 13, _INK, anchor="middle"))
        y += layer_high + 16
    head = (
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" '
        f'markerHeight="6" orient="auto"><path d="M0,0L8,4L0,8z" fill="{_PALE}"/></marker></defs>'
    )
    title = "Seven layers in a line"
    caption = "Data flows down; a layer imports only from layers above it."
    text = [head, _text(left, 30, title, 17, _INK, bold=True), _text(left, 52, caption, 13, _PALE)]
    return _page(width, y + 8, title, [*text, *parts])


def _text(
    x: float, y: float, text: str, size: int, colour: str, *, bold: bool = False, anchor: str = ""
) -> str:
    return element(
        "text", text, x=f"{x:g}", y=f"{y:g}", font_size=size, fill=colour,
        font_weight="bold" if bold else None, text_anchor=anchor or None,
    )  # fmt: skip


def _page(width: float, height: float, title: str, parts: list[str]) -> str:
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" font-family="sans-serif" role="img">\n'
        f"<title>{html.escape(title)}</title>\n"
        f'<rect width="100%" height="100%" fill="{_PAPER}"/>\n{body}\n</svg>\n'
    )


def pictures() -> dict[str, str]:
    """File name -> text of each picture."""
    page = (HERE / "architecture.md").read_text(encoding="utf-8")
    return {"plans.svg": plans_picture(), "layers.svg": layers_picture(page)}


if __name__ == "__main__":
    for name, drawn in pictures().items():
        (HERE / name).write_text(drawn, encoding="utf-8")
        sys.stdout.write(f"docs/{name}\n")
