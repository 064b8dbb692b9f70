"""Executed notebooks as HTML that opens offline: no request leaves the page, charts included."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

import vl_convert
from nbconvert import HTMLExporter
from nbformat import NotebookNode

from cepbench.figures.interactive import VEGALITE_MIME

_TEMPLATES = Path(__file__).parent / "templates"

#: What a page may load. Nothing from elsewhere, whatever somebody writes in a notebook.
CONTENT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:"
)

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def page_of(notebook: NotebookNode) -> str:
    """One HTML page with everything in it.

    Scripts, styles, fonts and pictures are in the page itself, Vega once, and a content security
    policy forbids requests. Formulas are not drawn: MathJax would have to be loaded.

    Parameters
    ----------
    notebook : NotebookNode
        With outputs; stays as it is. ``metadata.title`` is the page's title. A code cell tagged
        ``fold`` is shown folded, one tagged ``parameters`` or ``injected-parameters`` too.
    """
    shown = deepcopy(notebook)
    charts = _prepare(shown)
    exporter = HTMLExporter(
        template_name="offline",
        extra_template_basedirs=[str(_TEMPLATES)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
        embed_images=True,
    )
    resources = {"vega": _vega() if charts else "", "content_policy": CONTENT_POLICY}
    html, _ = exporter.from_notebook_node(shown, resources)
    return str(html)


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed, about 0.9 MB, as the global ``vegaEmbed``."""
    bundle = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    # Its hundreds of top-level names stay inside the function.
    return f"(function () {{\n{bundle}\n}})();"


def _prepare(notebook: NotebookNode) -> int:
    """Charts as elements that the page's script fills, texts as a terminal would show them."""
    charts = 0
    for cell in notebook.cells:
        outputs: list[NotebookNode] = []
        for output in _joined(cell.get("outputs", [])):
            if output.output_type == "stream":
                output.text = _as_in_terminal(output.text)
                if not output.text.strip():
                    continue
            elif VEGALITE_MIME in output.get("data", {}):
                output.data = {"text/html": _chart(charts, output.data[VEGALITE_MIME])}
                charts += 1
            outputs.append(output)
        if "outputs" in cell:
            cell.outputs = outputs
    return charts


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Pieces of one text put together: a progress bar comes in as many as it has steps."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if (
            last is not None
            and output.output_type == last.output_type == "stream"
            and output.name == last.name
        ):
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _chart(number: int, specification: dict[str, Any]) -> str:
    # "<" is the only character that could end the script element early.
    text = json.dumps(specification).replace("<", "\\u003c")
    return (
        f'<div class="chart" id="chart-{number}"></div>'
        f'<script type="application/json" class="chart-specification" data-chart="chart-{number}">'
        f"{text}</script>"
    )


def _as_in_terminal(text: str) -> str:
    """What is left on the screen after carriage returns, as a progress bar prints them."""
    lines = _COLOURS.sub("", text).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
