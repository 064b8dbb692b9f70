"""Draws the pictures of README and architecture.md: ``.venv/bin/python docs/pictures.py``.

Both are generated, from the plans of a real pattern and from the table of packages; a test checks
that they are current.
"""

from __future__ import annotations

import html
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from cepbench.markup import element

HERE = Path(__file__).resolve().parent

#: Plan generators of the picture of plans, the most expensive plan first.
SHOWN = ("TRIVIAL", "EFREQ", "DP-LD")

_INK, _PALE, _PAPER = "#222222", "#666666", "#ffffff"


def plans_picture() -> str:
    """Three plans of one pattern and their runs: the same matches at different cost."""
    import cepbench as cep
    from cepbench.explainer.page import tree_picture
    from cepbench.figures.styles import style_of

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
        drawing = str(
            tree_picture(
                plans[name].parts[0].tree, run.nodes.to_dict("records"), measured=False,
                small=True, largest=largest, colour=colour,
            )
        )  # fmt: skip
        size = re.search(r'viewBox="0 0 (\d+) (\d+)" width="\d+"', drawing)
        assert size is not None
        wide, high = float(size[1]) * 1.15, float(size[2]) * 1.15
        drawing = drawing.replace(
            f'width="{size[1]}"', f'x="{width:g}" y="{top:g}" width="{wide:g}" height="{high:g}"', 1
        )
        made = f"{run.metrics.partial_matches_created:,} partial matches created"
        panels += [
            _text(width, 92, name, 16, colour, bold=True),
            _text(width + 84, 92, " → ".join(plans[name].parts[0].names), 15, _PALE),
            _text(width, 116, made, 15, _INK, bold=True),
            drawing,
        ]
        width, height = width + wide + 24, max(height, high)
        matches = run.metrics.matches
    title = f"One pattern, three plans, the same {matches:,} matches"
    types = ", ".join(f"{variable.name}: {variable.type}" for variable in pattern.variables)
    caption = f"{types}; numbers: expected partial matches in a window of {pattern.window}"
    text = [_text(24, 34, title, 19, _INK, bold=True), _text(24, 58, caption, 14, _PALE), *panels]
    return _page(width, top + height + 10, title, text)


def packages_of(table: str) -> dict[str, set[str]]:
    """Package → the packages that it may import, from the table of architecture.md."""
    found: dict[str, set[str]] = {}
    for row in re.finditer(r"^\| (`[^|]+) \|[^|]*\| ([^|]+) \|$", table, re.MULTILINE):
        sees = row[2].partition(";")[0]
        above = set(found)
        if sees.startswith("everything"):
            seen = above - set(re.findall(r"\w+", sees.partition(" but ")[2]))
        else:
            seen = {word for word in re.findall(r"\w+", sees) if word in above}
        found |= {package: set(seen) for package in re.findall(r"`(\w+)/?`", row[1])}
    return found


def packages_picture(table: str) -> str:
    """The packages in layers, with arrows from direct dependencies."""
    packages = packages_of(table)
    # Imported by all: no arrows.
    everywhere = {"arguments", "errors", "files", "markup", "papers", "seeds"}
    layer: dict[str, int] = {}
    for package, sees in packages.items():
        below = [layer[other] for other in sees - everywhere]
        layer[package] = 1 + max(below, default=-1)
    rows: list[list[str]] = [[] for _ in range(1 + max(layer.values()))]
    for package in packages:
        rows[layer[package]].append(package)
    wide, high, gap, step, left = 112, 34, 14, 66, 40
    longest = max(map(len, rows))
    width = 2 * left + longest * (wide + gap) - gap
    place = {}
    for number, row in enumerate(rows):
        shift = (longest - len(row)) * (wide + gap) / 2
        for k, package in enumerate(row):
            place[package] = (left + shift + k * (wide + gap), 74 + number * step)
    lines, boxes = [], []
    for package in packages:
        x, y = place[package]
        for other in sorted(_direct(package, packages) - everywhere):
            to_x, to_y = place[other]
            lines.append(
                f'<line x1="{to_x + wide / 2:g}" y1="{to_y + high:g}" x2="{x + wide / 2:g}" '
                f'y2="{y:g}" stroke="{_PALE}" stroke-opacity="0.55" marker-end="url(#end)"/>'
            )
        boxes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{wide}" height="{high}" rx="5" fill="#eef3f8" '
            f'stroke="{_INK}"/>'
            + _text(x + wide / 2, y + high / 2 + 5, package, 14, _INK, anchor="middle")
        )
    head = (
        '<defs><marker id="end" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0,0L8,4L0,8z" fill="{_PALE}"/></marker></defs>'
    )
    title = "Packages and their imports"
    caption = (
        "A package imports from those above it, never from below; errors, files, seeds from all."
    )
    text = [head, _text(left, 30, title, 17, _INK, bold=True), _text(left, 52, caption, 13, _PALE)]
    return _page(max(width, 640), 74 + len(rows) * step, title, [*text, *lines, *boxes])


def _direct(package: str, packages: Mapping[str, set[str]]) -> set[str]:
    """The direct imports: those not implied by another one."""
    sees = packages[package]
    return {one for one in sees if not any(one in packages[other] for other in sees)}


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
    table = (HERE / "architecture.md").read_text(encoding="utf-8")
    return {"plans.svg": plans_picture(), "packages.svg": packages_picture(table)}


if __name__ == "__main__":
    for name, drawn in pictures().items():
        (HERE / name).write_text(drawn, encoding="utf-8")
        sys.stdout.write(f"docs/{name}\n")
