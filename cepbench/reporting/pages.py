"""Executed notebooks as pages: charts, figures, text and tables; code is folded."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from markupsafe import Markup
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from nbformat.v4 import new_output

from cepbench.figures.offline import VEGALITE_MIME
from cepbench.reporting.contents import with_contents
from cepbench.reporting.downloads import Downloads, Thumbnail
from cepbench.reporting.navigation import Entry, Navigation
from cepbench.reporting.shell import TEMPLATES, render

#: Folder of the pictures that a page shows, within that of the notebook's results.
PICTURES = "pictures"

_WIDGET = "application/vnd.jupyter.widget-view+json"

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_SAVED = re.compile(r"save_figure\(\s*[^,()]+,\s*[^,()]+,\s*(f?)\"([^\"]+)\"")
_IDS = re.compile(r"""\sid=["']([^"']+)["']""")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site.

    Attributes
    ----------
    stem : str
        Of its notebook.
    title, summary, group : str
        As in the notebook's metadata.
    seconds : float
        What running it took.
    started : datetime or None
        When it was run, if the notebook says so.
    parameters : mapping
        Of this run.
    machine, versions : mapping of str to str
        Of this run; empty if they were not written down.
    thumbnails : sequence of Thumbnail
    downloads : Downloads
    anchors : mapping of str to str
        Stem of a picture -> where on the page it is, as ``#id``.
    """

    stem: str
    title: str
    summary: str = ""
    group: str = "start"
    seconds: float = 0.0
    started: datetime | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    thumbnails: Sequence[Thumbnail] = ()
    downloads: Downloads = field(default_factory=Downloads)
    anchors: Mapping[str, str] = field(default_factory=dict)

    @property
    def link(self) -> str:
        """Relative to the folder of the site."""
        return f"{self.stem}.html"

    @property
    def entry(self) -> Entry:
        """The page in the navigation."""
        return Entry(self.title, self.link, self.group)

    @property
    def code_shown(self) -> bool:
        """Pages that teach are read for their code; others for what came out."""
        return self.group == "start"


@dataclass(frozen=True, slots=True)
class Body:
    """The cells of a notebook as HTML, and the files that it shows.

    Attributes
    ----------
    html : str
    charts : int
    pictures : mapping of str to bytes
        Path relative to the site -> content.
    anchors : mapping of str to str
        As in :class:`Page`.
    ids : set of str
        Everything on the page that a link can lead to.
    """

    html: str
    charts: int
    pictures: Mapping[str, bytes]
    anchors: Mapping[str, str]
    ids: frozenset[str]


def page_of(page: Page, body: Body, navigation: Navigation) -> str:
    """One HTML page, which loads files beside it and nothing else."""
    text = render(
        "page.html.j2",
        page=page,
        body=Markup(body.html),  # nbconvert has escaped it
        titled="<h1" in body.html,
        charts=body.charts,
        navigation=navigation,
        here=page.link,
    )
    return with_contents(text)


def body_of(
    notebook: NotebookNode,
    *,
    folder: str,
    saved: Sequence[str] = (),
    code_shown: bool = False,
) -> Body:
    """The cells of a notebook as HTML. Formulas are not drawn: MathJax would have to be loaded.

    A chart and the figure for print that is saved after it are one: the screen shows the chart,
    paper the figure. So it is where a cell calls ``save_figure`` and shows what it saved, and
    there is no text between the two.

    Parameters
    ----------
    notebook : NotebookNode
        With outputs; stays as it is. Code cells are folded.
    folder : str
        Of its results, relative to the site.
    saved : sequence of str
        Stems of the figures that are in this folder as SVG and PNG.
    code_shown : bool
        Code is unfolded, but for cells tagged ``fold``, ``parameters`` or ``injected-parameters``.
    """
    shown = deepcopy(notebook)
    prepared = _Prepared(folder, saved)
    for cell in shown.cells:
        prepared.cell(cell)
    text, _ = _exporter().from_notebook_node(shown, {"code_shown": code_shown})
    return Body(
        str(text),
        prepared.charts,
        prepared.pictures,
        prepared.anchors,
        frozenset(_IDS.findall(text)),
    )


@cache
def _exporter() -> HTMLExporter:
    return HTMLExporter(
        template_name="offline",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )


class _Prepared:
    """Cells made ready for the template: charts and pictures as elements, texts as printed."""

    def __init__(self, folder: str, saved: Sequence[str]) -> None:
        self.folder, self.saved = folder, saved
        self.charts = 0
        self.pictures: dict[str, bytes] = {}
        self.anchors: dict[str, str] = {}
        #: Charts since the last text that have no figure for print yet, with their outputs.
        self._waiting: list[tuple[str, str, NotebookNode]] = []

    def cell(self, cell: NotebookNode) -> None:
        if cell.cell_type != "code":
            self._waiting = []
            return
        stems = self._stems(cell.source)
        outputs = []
        for output in _joined(cell.get("outputs", [])):
            data = output.get("data", {})
            if output.output_type == "stream":
                output.text = _as_in_terminal(output.text)
                if not output.text.strip():
                    continue
            elif VEGALITE_MIME in data:
                output = self._chart(data[VEGALITE_MIME])
            elif "image/svg+xml" in data or "image/png" in data:
                output = self._picture(data, cell.source, stems)
            elif "text/markdown" in data:
                self._waiting = []
            elif _WIDGET in data and "text/html" in data:
                # A widget without a kernel is an empty place; this is what stands for it.
                del data[_WIDGET]
            outputs.append(output)
        cell.outputs = outputs

    def _stems(self, source: str) -> list[str]:
        """Which of the saved figures a cell saves; several if their name is put together."""
        found = []
        for composed, name in _SAVED.findall(source):
            pattern = re.escape(name)
            if composed:
                pattern = re.sub(r"\\\{[^{}]*\\\}", ".+", pattern)
            found += [stem for stem in self.saved if re.fullmatch(pattern, stem)]
        return found

    def _chart(self, specification: Mapping[str, Any]) -> NotebookNode:
        anchor = f"chart-{self.charts}"
        self.charts += 1
        name = _title_of(specification)
        # "<" is the only character that could end the script element early.
        text = json.dumps({"description": name, **specification}).replace("<", "\\u003c")
        output = _as_html(
            f'<figure class="drawn" id="{anchor}"><div class="chart" id="{anchor}-here"></div>'
            f'<script type="application/json" class="chart-specification" '
            f'data-chart="{anchor}-here">{text}</script></figure>'
        )
        self._waiting.append((anchor, name, output))
        return output

    def _picture(self, data: Mapping[str, Any], source: str, stems: list[str]) -> NotebookNode:
        is_svg = "image/svg+xml" in data
        content = data["image/svg+xml"].encode() if is_svg else _decoded(data["image/png"])
        number = len(self.pictures)
        link = f"{self.folder}/{PICTURES}/{number}.{'svg' if is_svg else 'png'}"
        self.pictures[link] = content
        if "save_figure(" in source and self._waiting:
            anchor, name, chart = self._waiting.pop(0)
            chart.data["text/html"] = _with_twin(chart.data["text/html"], self._files(stems))
            look, ground = "drawn twin", ""
        else:
            anchor, name = f"picture-{number}", (stems[0] if stems else "figure").replace("_", " ")
            look, ground = "drawn", ' class="paper"'
        for stem in stems:
            self.anchors.setdefault(stem, f"#{anchor}")
        own = "" if look.endswith("twin") else f' id="{anchor}"'
        return _as_html(
            f'<figure class="{look}"{own}><div{ground}><img src="{html.escape(link)}" '
            f'alt="{html.escape(name)}"></div></figure>'
        )

    def _files(self, stems: list[str]) -> str:
        if len(stems) != 1:
            return ""
        links = " ".join(
            f'<a href="{html.escape(self.folder)}/{html.escape(stems[0])}.{ending}" download>'
            f"{ending.upper()}</a>"
            for ending in ("svg", "png")
        )
        return f'<figcaption class="chart-files">For print: {links}</figcaption>'


def _with_twin(chart: str, files: str) -> str:
    opening, closing = 'class="drawn"', "</figure>"
    marked = chart.replace(opening, 'class="drawn has-twin"', 1)
    return marked.removesuffix(closing) + files + closing


def _as_html(text: str) -> NotebookNode:
    return new_output("display_data", {"text/html": text})


def _title_of(specification: Mapping[str, Any]) -> str:
    title = specification.get("title", "chart")
    if isinstance(title, str):
        return title
    if isinstance(title, list):
        return " ".join(title)
    parts = [title.get(part, "") for part in ("text", "subtitle")]
    return ". ".join(" ".join(part) if isinstance(part, list) else part for part in parts if part)


def _decoded(picture: str) -> bytes:
    return base64.b64decode(picture)


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


def _as_in_terminal(text: str) -> str:
    """What is left on the screen after carriage returns, as a progress bar prints them."""
    lines = _COLOURS.sub("", text).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)
