"""Executed notebooks as pages: charts, figures, text and tables, with folded code."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from markupsafe import Markup
from nbconvert import HTMLExporter
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_output

from cepbench.presentation.figures.offline import VEGALITE_MIME
from cepbench.presentation.figures.recording import RECORD_MIME
from cepbench.presentation.reporting.downloads import Downloads, Thumbnail
from cepbench.presentation.reporting.navigation import START, Entry, Navigation
from cepbench.presentation.reporting.shell import TEMPLATES, render, root_of, with_contents
from cepbench.presentation.reporting.titles import in_words

#: Folder of the pictures that a page shows, within that of the notebook's results.
PICTURES = "pictures"

_WIDGET = "application/vnd.jupyter.widget-view+json"

_STREAMS = CoalesceStreamsPreprocessor()

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site."""

    #: Of its notebook; ``<key>/<name>`` for a study's.
    stem: str
    title: str
    summary: str = ""
    #: A key of :func:`cepbench.presentation.reporting.navigation.groups`.
    group: str = START
    seconds: float = 0.0
    started: datetime | None = None
    #: Of this run, as machine and versions; empty if they were not recorded.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    thumbnails: Sequence[Thumbnail] = ()
    downloads: Downloads = field(default_factory=Downloads)
    #: Stem of a picture → where on the page it is, as ``#id``.
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
        """Whether its code is unfolded; see :func:`shows_code`."""
        return shows_code(self.group)


def shows_code(group: str) -> bool:
    """Whether pages of a group show their code: those that teach, others show results."""
    return group == START


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


def body_of(notebook: NotebookNode, *, folder: str, code_shown: bool = False) -> Body:
    """The cells of a notebook with outputs as HTML. Formulas are not drawn: MathJax would have to be loaded.

    A chart and the figure for print that is saved after it are one: the screen shows the chart,
    paper the figure. So it is where a cell calls ``save_figure``, which leaves a record, and shows
    what it saved, and there is no text between the two.

    Code cells are folded. With ``code_shown`` they are not, but for cells tagged ``fold``, ``parameters`` or
    ``injected-parameters``. ``folder`` is that of its results, relative to the site: the stem of its page.
    """
    shown, body = deepcopy(notebook), Body(folder)
    for cell in shown.cells:
        body.prepare(cell)
    text, _ = _exporter().from_notebook_node(shown, {"code_shown": code_shown})
    body.html = str(text)
    return body


@cache
def _exporter() -> HTMLExporter:
    return HTMLExporter(
        template_name="offline",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_input_prompt=True,
        exclude_output_prompt=True,
    )


@dataclass(slots=True)
class Body:
    """The cells of a notebook as HTML, and the files that it shows."""

    #: Of its results, relative to the site: the stem of its page.
    folder: str
    html: str = ""
    charts: int = 0
    #: Path relative to the site → content.
    pictures: dict[str, bytes] = field(default_factory=dict)
    anchors: dict[str, str] = field(default_factory=dict)
    #: Sentences for the front page that the notebook recorded.
    findings: list[str] = field(default_factory=list)
    #: Stems of the figures that it saved.
    figures: list[str] = field(default_factory=list)
    #: Charts since the last text that have no figure for print yet: what their template is given, and
    #: the output that it makes.
    _waiting: list[tuple[dict[str, Any], NotebookNode]] = field(default_factory=list)

    def prepare(self, cell: NotebookNode) -> None:
        """Make a cell ready for the template: charts and pictures as elements, texts as printed."""
        if cell.cell_type != "code":
            self._waiting = []
            return
        saved: list[str] = []  # by this cell, and not shown yet
        outputs = []
        # As a terminal shows a progress bar, which is written in many pieces with carriage returns.
        _STREAMS.preprocess_cell(cell, {}, 0)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if RECORD_MIME in data:
                record = data[RECORD_MIME]
                if "finding" in record:
                    self.findings.append(record["finding"])
                if "figure" in record:
                    saved.append(record["figure"])
                    self.figures = list(dict.fromkeys([*self.figures, record["figure"]]))
                continue
            if output.output_type == "stream":
                output.text = _COLOURS.sub("", output.text)
                if not output.text.strip():
                    continue
            elif VEGALITE_MIME in data:
                output = self._chart(data[VEGALITE_MIME])
            elif "image/svg+xml" in data or "image/png" in data:
                output = self._picture(data, saved.pop(0) if saved else "")
            elif "text/markdown" in data:
                self._waiting = []
            elif _WIDGET in data and "text/html" in data:
                # A widget without a kernel is an empty place; this is what stands for it.
                del data[_WIDGET]
            outputs.append(output)
        cell.outputs = outputs

    def _chart(self, specification: Mapping[str, Any]) -> NotebookNode:
        title = _title_of(specification)
        # "<" is the only character that could end the script element early.
        text = json.dumps({"description": title, **specification}).replace("<", "\\u003c")
        anchor = f"chart-{self.charts}"
        given = {"anchor": anchor, "name": title, "specification": Markup(text)}
        self.charts += 1
        output = _drawn("chart.html.j2", **given, twin=False, files=[])
        self._waiting.append((given, output))
        return output

    def _picture(self, data: Mapping[str, Any], stem: str) -> NotebookNode:
        is_svg = "image/svg+xml" in data
        content = data["image/svg+xml"].encode() if is_svg else b64decode(data["image/png"])
        number, root = len(self.pictures), root_of(self.folder)
        link = f"{self.folder}/{PICTURES}/{number}.{'svg' if is_svg else 'png'}"
        self.pictures[link] = content
        twin = bool(stem and self._waiting)
        if twin:
            chart, output = self._waiting.pop(0)
            files = [f"{root}{self.folder}/{stem}.{ending}" for ending in ("svg", "png")]
            output.data = _drawn("chart.html.j2", **chart, twin=True, files=files).data
            anchor, name = chart["anchor"], chart["name"]
        else:
            anchor, name = f"picture-{number}", in_words(stem or "figure")
        if stem:
            self.anchors.setdefault(stem, f"#{anchor}")
        return _drawn("picture.html.j2", anchor=anchor, link=root + link, name=name, twin=twin)


def _drawn(template: str, **given: Any) -> NotebookNode:
    return new_output("display_data", {"text/html": render(template, **given)})


def _title_of(specification: Mapping[str, Any]) -> str:
    title = specification.get("title", "chart")
    if isinstance(title, str):
        return title
    if isinstance(title, list):
        return " ".join(title)
    parts = [title.get(part, "") for part in ("text", "subtitle")]
    return ". ".join(" ".join(part) if isinstance(part, list) else part for part in parts if part)
