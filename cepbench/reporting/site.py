"""A report: every notebook run, and all that were run published as a site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
from nbformat import NotebookNode

from cepbench.errors import ReportError
from cepbench.plugins import load_plugins
from cepbench.reporting.downloads import write_downloads, write_thumbnails
from cepbench.reporting.index import Report, index_html
from cepbench.reporting.ledger import PLURAL, Claim, anchor_of, counts_of
from cepbench.reporting.navigation import OWN, Entry, Navigation, group_of
from cepbench.reporting.notebooks import read_executed, run_notebook
from cepbench.reporting.opening import unknown_parameter
from cepbench.reporting.pages import PICTURES, Body, Page, body_of, page_of
from cepbench.reporting.provenance import Benchmark, benchmarks_in
from cepbench.reporting.requests import (
    NOTEBOOKS,
    Request,
    declared,
    requests_for,
    settings_of,
)
from cepbench.reporting.shell import render, write_assets
from cepbench.reporting.story import facts, further, headlines, verdicts_by_figure
from cepbench.reporting.titles import in_words, summary_of, title_of
from cepbench.studies.kolchinsky2018.profiles import PROFILES

#: The notebook that reads the results of all others, so it comes last.
LEDGER = "ledger"

_BENCHMARKS = Entry("Benchmarks", "benchmarks.html", "more")
#: Pages that ``make docs`` makes, where they are there.
_DOCUMENTATION = (
    Entry("How-to pages", "docs/index.html", "docs"),
    Entry("Language card", "docs/language.html", "docs"),
    Entry("Reference", "docs/reference/index.html", "docs"),
)


def build_report(
    folder: str | Path,
    *,
    profile: str = "quick",
    seed: int = 0,
    notebooks: str | Path = "notebooks",
    only: Sequence[str | Request] = (),
    parameters: Mapping[str, Any] | None = None,
    plugins: Sequence[str | Path] = (),
    data: str | Path | None = None,
    strict: bool = False,
    say: Any = print,
) -> Path:
    """Run notebooks and publish them, with those that were run before, as :func:`publish_report`.

    Parameters
    ----------
    folder : path
        Gets the site, and a folder of results a notebook.
    profile : str
        ``quick`` takes minutes and ``full`` hours; handed to the notebooks.
    seed : int
        Handed to the notebooks.
    notebooks : path
        Folder of the notebooks.
    only : sequence of str or Request
        Names of notebooks in that folder, or paths of any; all of the report by default.
    parameters : mapping, optional
        More parameters, for every notebook that has them; one that no notebook has is an error.
    plugins : sequence of paths
        Python files with plan generators or evaluators, handed to the notebooks.
    data : path, optional
        Where the generated stream is kept for the next report; ``<folder>/data`` by default.
    strict : bool
        A warning that a cell prints is an error.
    say : callable
        Told what is going on, line by line.

    Returns
    -------
    Path
        Of the first page.

    Raises
    ------
    ReportError
        If the profile or a parameter is unknown, a notebook is missing or has the name of another
        page, a cell fails, or warns where that is an error.
    PlanGeneratorError
        If a file of plug-ins is missing, fails or registers nothing.
    """
    if profile not in PROFILES:
        raise ReportError(f"unknown profile {profile!r}; there are {' and '.join(PROFILES)}")
    target = Path(folder)
    wanted = [each for each in only if isinstance(each, Request)]
    if len(wanted) < len(only) or not only:
        wanted += requests_for([each for each in only if isinstance(each, str)], notebooks)
    known = declared(wanted)
    more = dict(parameters or {})
    for name in more:
        if not any(name in names for names in known.values()):
            raise unknown_parameter(name, sorted(set().union(*known.values())), "any notebook")
    load_plugins(plugins)  # what is wrong with one is told before anything runs
    settings = {
        request.stem: settings_of(
            request,
            known[request.stem],
            report=target,
            data=Path(data) if data else target / "data",
            profile=profile,
            seed=seed,
            plugins=plugins,
        )
        for request in wanted
    }
    target.mkdir(parents=True, exist_ok=True)
    for request in wanted:
        stem, names = request.stem, known[request.stem]
        say(f"{stem}: running {request.path}")
        executed = run_notebook(
            request.path,
            target / stem / f"{stem}.ipynb",
            {
                **settings[stem],
                **{name: value for name, value in more.items() if name in names},
                **request.parameters,
            },
            metadata=request.metadata,
            strict=strict,
        )
        say(f"{stem}: {executed.metadata.papermill.duration:.0f} s")
    return publish_report(target, say=say)


def publish_report(folder: str | Path, *, say: Any = print) -> Path:
    """Make the site of notebooks that were run before; nothing is run.

    Parameters
    ----------
    folder : path
        Of a report. Every ``<stem>/<stem>.ipynb`` in it becomes ``<stem>.html``, with tables as
        CSV and thumbnails beside its results; ``index.html`` tells of all of them, and
        ``assets`` holds what the pages share.
    say : callable
        Told which notebooks are left out, line by line.

    Returns
    -------
    Path
        Of the first page.

    Raises
    ------
    ReportError
        If there is no executed notebook, or one names an unknown group.
    """
    target = Path(folder)
    executed = _executed(target, say)
    if not executed:
        raise ReportError(
            f"there is no executed notebook in {target}; run some by `cepbench report build`"
        )
    benchmarks = benchmarks_in(target)
    bodies: dict[str, Body] = {}
    pages: list[Page] = []
    for stem, notebook in executed.items():
        page = _page(target, stem, notebook, [page.entry.label for page in pages])
        saved = [thumbnail.stem for thumbnail in page.thumbnails]
        bodies[stem] = body_of(notebook, folder=stem, saved=saved, code_shown=page.code_shown)
        pages.append(page)
    entries = [page.entry for page in pages]
    if benchmarks:
        entries.append(_BENCHMARKS)
    documentation = [entry for entry in _DOCUMENTATION if (target / entry.link).is_file()]
    entries += documentation
    navigation = Navigation.of(entries)
    write_assets(target)
    for page in pages:
        _write_pictures(target, page.stem, bodies[page.stem])
        _write(target / page.link, page_of(page, bodies[page.stem], navigation))
    if benchmarks:
        here = _BENCHMARKS.link
        text = render("benchmarks.html.j2", benchmarks=benchmarks, navigation=navigation, here=here)
        _write(target / here, text)
    index = target / "index.html"
    report = replace(_report(target, pages, bodies, benchmarks), documentation=documentation)
    _write(index, index_html(report, navigation))
    return index


def _executed(target: Path, say: Any) -> dict[str, NotebookNode]:
    """Stem -> notebook, in the order of the site; one that failed is no page."""
    stems = [
        path.stem for path in sorted(target.glob("*/*.ipynb")) if path.stem == path.parent.name
    ]
    ranks = {stem: rank for rank, stem in enumerate(NOTEBOOKS)}
    found = {}
    for stem in sorted(stems, key=lambda stem: ranks.get(stem, len(ranks))):
        notebook = read_executed(target / stem / f"{stem}.ipynb")
        if notebook.metadata.get("papermill", {}).get("exception"):
            say(f"{stem}: left out, since a cell of it failed; run it again")
        else:
            found[stem] = notebook
    return found


def _page(target: Path, stem: str, notebook: NotebookNode, labels: Sequence[str]) -> Page:
    metadata = notebook.metadata
    ran = metadata.get("papermill", {})
    own = metadata.get("cepbench", {})
    title = title_of(notebook, stem)
    if title.partition(":")[0] in labels:  # a copy of a notebook, with the title of the first
        title = f"{in_words(stem)}: {title}"
    return Page(
        stem,
        title=title,
        summary=summary_of(notebook),
        group=group_of(metadata, stem) if stem in NOTEBOOKS else OWN,
        seconds=ran.get("duration") or 0.0,
        started=datetime.fromisoformat(ran["start_time"]) if ran.get("start_time") else None,
        parameters=dict(ran.get("parameters", {})),
        machine=dict(own.get("machine", {})),
        versions=dict(own.get("versions", {})),
        thumbnails=write_thumbnails(target, stem),
        downloads=write_downloads(target, stem, notebook),
    )


def _report(
    target: Path,
    pages: Sequence[Page],
    bodies: Mapping[str, Body],
    benchmarks: Sequence[Benchmark],
) -> Report:
    titles = {page.stem: page.entry.label for page in pages}

    def link(claim: Claim) -> str:
        """The claim on its figure's page, or else in the ledger, or else that page."""
        anchor = anchor_of(claim.id)
        for stem in (claim.results, LEDGER):
            if stem in bodies and anchor in bodies[stem].ids:
                return f"{stem}.html#{anchor}"
        return f"{claim.results}.html" if claim.results in bodies else ""

    path = target / LEDGER / f"{LEDGER}.parquet"
    ledger = pd.read_parquet(path) if path.exists() else None
    counted = {} if ledger is None else counts_of(ledger)
    return Report(
        [replace(page, anchors=bodies[page.stem].anchors) for page in pages],
        facts=facts(target, list(titles)),
        headlines=[] if ledger is None else headlines(ledger, link),
        further=[
            (text, f"{stem}.html", titles[stem]) for text, stem in further(target) if stem in titles
        ],
        verdicts={PLURAL[verdict]: count for verdict, count in counted.items()},
        claims={} if ledger is None else verdicts_by_figure(ledger, link),
        ledger_link=f"{LEDGER}.html" if LEDGER in titles else "",
        benchmarks=benchmarks,
    )


def _write_pictures(target: Path, stem: str, body: Body) -> None:
    folder = target / stem / PICTURES
    for old in folder.glob("*"):
        old.unlink()  # an earlier run may have shown more
    for link, content in body.pictures.items():
        folder.mkdir(exist_ok=True)
        (target / link).write_bytes(content)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
