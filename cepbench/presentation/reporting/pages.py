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
from typing import Any, Literal

from markupsafe import Markup
from nbconvert import HTMLExporter
from nbconvert.preprocessors import CoalesceStreamsPreprocessor
from nbformat import NotebookNode
from nbformat.v4 import new_output

from cepbench.experiments.studies.registry import STUDIES
from cepbench.presentation.figures.offline import VEGALITE_MIME
from cepbench.presentation.figures.recording import RECORD_MIME
from cepbench.presentation.reporting.arrangement import arranged, without_title
from cepbench.presentation.reporting.downloads import Downloads, bare_of
from cepbench.presentation.reporting.frames import folded_if_long, readable_frames
from cepbench.presentation.reporting.ledger import LOOKS
from cepbench.presentation.reporting.navigation import START, Entry, Navigation
from cepbench.presentation.reporting.shell import TEMPLATES, render, root_of, with_contents
from cepbench.presentation.reporting.story import JudgedClaim
from cepbench.presentation.reporting.titles import in_words

#: Where a page has its code.
Code = Literal["shown", "folded", "last"]

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
    commit: str = ""
    #: Results of sweeps that it read, relative to the site.
    sweeps: Sequence[str] = ()
    #: Stems of those that it saved.
    figures: Sequence[str] = ()
    downloads: Downloads = field(default_factory=Downloads)
    #: Those of the paper that are judged from its results.
    claims: Sequence[JudgedClaim] = ()
    #: What was found, in a sentence; and of a ledger what holds where: a regime, or empty, and sentences.
    found: str = ""
    lines: Sequence[tuple[str, str]] = ()
    #: Of a ledger: where its claims stand, relative to the site.
    every_claim: str = ""

    @property
    def link(self) -> str:
        """Relative to the folder of the site."""
        return f"{self.stem}.html"

    @property
    def source(self) -> str:
        """Its notebook without outputs, relative to the site."""
        return bare_of(self.stem)

    @property
    def entry(self) -> Entry:
        """The page in the navigation."""
        return Entry(self.title, self.link, self.group)

    @property
    def code(self) -> Code:
        """Where its code is."""
        return code_of(self.group)


def code_of(group: str) -> Code:
    """Where pages of a group have their code: those that teach show it, those of studies show results."""
    return "shown" if group == START else "last" if group in STUDIES else "folded"


def page_of(page: Page, body: Body, navigation: Navigation) -> str:
    """One HTML page, which loads files beside it and nothing else."""
    text = render(
        "page.html.j2",
        page=page,
        # nbconvert has escaped them
        **{part: Markup(getattr(body, part)) for part in ("lead", "html", "method")},
        looks=LOOKS,
        charts=body.charts,
        navigation=navigation,
        here=page.link,
    )
    return with_contents(text)


def body_of(notebook: NotebookNode, *, folder: str, code: Code = "folded") -> Body:
    """The cells of a notebook with outputs as HTML. Formulas are not drawn: MathJax would have to be loaded.

    A chart and the figure for print that is saved after it are one: the screen shows the chart,
    paper the figure. So it is where a cell calls ``save_figure``, which leaves a record, and shows
    what it saved, and there is no text between the two.

    Cells are as they are, each with its code, which is ``shown`` or ``folded``; folded are always those tagged
    ``fold``, ``parameters`` or ``injected-parameters``. Where code is ``last``, a page begins with the first
    finding and chart, and ends with the method, see :mod:`cepbench.presentation.reporting.arrangement`, and
    all code. ``folder`` is that of its results, relative to the site: the stem of its page.
    """
    shown, body = deepcopy(notebook), Body(folder, shows_results=code == "last")
    cells = shown.cells
    if cells and cells[0].cell_type == "markdown":
        without_title(cells[0])
    charts, twins = [], []
    for place, cell in enumerate(cells):
        before = body.on_screen, len(body.pictures)
        body.prepare(cell)
        if body.on_screen > before[0]:
            charts.append(place)
        elif len(body.pictures) > before[1]:
            twins.append(place)
    if code != "last":
        body.html = _html_of(shown, cells, code=code)
        return body
    listing = [
        NotebookNode(cell, id=f"code-{place}", outputs=[])
        for place, cell in enumerate(cells)
        if cell.cell_type == "code"
    ]
    lead, sections, method = arranged(cells, charts, twins)
    body.lead, body.html = _html_of(shown, lead), _html_of(shown, sections)
    body.method = _html_of(shown, method) + _html_of(shown, listing, code="plain")
    return body


def _html_of(notebook: NotebookNode, cells: Sequence[NotebookNode], *, code: str = "") -> str:
    """Some cells as HTML, without code, or with it ``shown``, ``folded`` or ``plain``."""
    shown = [cell for cell in cells if code or cell.cell_type != "code" or cell.outputs]
    text, _ = _exporter().from_notebook_node(NotebookNode(notebook, cells=shown), {"code": code})
    return str(text)


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
    #: Whether its first finding and chart stand before all else.
    shows_results: bool = False
    #: ``lead``: the first chart; ``html``: all that follows; ``method``: how it was made.
    lead: str = ""
    html: str = ""
    method: str = ""
    #: The first finding, where it stands before all else.
    found: str = ""
    charts: int = 0
    #: Charts and pictures that a screen shows.
    on_screen: int = 0
    #: Path relative to the site → content.
    pictures: dict[str, bytes] = field(default_factory=dict)
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
        outputs: list[NotebookNode] = []
        # As a terminal shows a progress bar, which is written in many pieces with carriage returns.
        _STREAMS.preprocess_cell(cell, {}, 0)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if RECORD_MIME in data:
                record = data[RECORD_MIME]
                if "finding" in record and self.shows_results and not self.found:
                    self.found = record["finding"]
                    if outputs and "text/markdown" in outputs[-1].get("data", {}):
                        outputs.pop()  # which shows it
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
            if "text/html" in output.get("data", {}):
                html = readable_frames(output.data["text/html"])
                output.data["text/html"] = folded_if_long(html) if self.shows_results else html
            outputs.append(output)
        cell.outputs = outputs

    def _chart(self, specification: Mapping[str, Any]) -> NotebookNode:
        title = _title_of(specification)
        # "<" is the only character that could end the script element early.
        text = json.dumps({"description": title, **specification}).replace("<", "\\u003c")
        anchor = f"chart-{self.charts}"
        given = {"anchor": anchor, "name": title, "specification": Markup(text)}
        self.charts += 1
        self.on_screen += 1
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
            self.on_screen += 1
            anchor, name = f"picture-{number}", in_words(stem or "figure")
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
