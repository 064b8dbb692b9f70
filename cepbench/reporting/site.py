"""A report: every notebook run, and all that were run published as a site."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
from nbformat import NotebookNode

from cepbench.errors import ReportError
from cepbench.experiments.profiles import PROFILES
from cepbench.reporting.downloads import write_downloads, write_thumbnails
from cepbench.reporting.index import Report, index_html
from cepbench.reporting.ledger import PLURAL, Claim, anchor_of, counts_of
from cepbench.reporting.navigation import Entry, Navigation, group_of
from cepbench.reporting.notebooks import parameters_of, read_executed, run_notebook
from cepbench.reporting.pages import PICTURES, Body, Page, body_of, page_of
from cepbench.reporting.provenance import Benchmark, benchmarks_in, full_profile
from cepbench.reporting.shell import render, write_assets
from cepbench.reporting.story import facts, further, headlines, verdicts_by_figure

#: Notebooks of the report, in the order of its pages; each one's metadata says its group.
NOTEBOOKS = (
    "quickstart", "tutorial", "explore", "own_generator", "figures_3_4_5", "figure_6", "figure_7",
    "figure_8", "figure_9", "figure_7_extended", "robustness", "cost_models", "ledger",
)  # fmt: skip

#: The notebook that reads the results of all others, so it comes last.
LEDGER = "ledger"

_BENCHMARKS = Entry("Benchmarks", "benchmarks.html", "more")
_DOCUMENTATION = Entry("Documentation", "docs/index.html", "more")


def build_report(
    folder: str | Path,
    *,
    profile: str = "quick",
    seed: int = 0,
    notebooks: str | Path = "notebooks",
    stems: Sequence[str] = NOTEBOOKS,
    parameters: Mapping[str, Any] | None = None,
    data: str | Path | None = None,
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
    stems : sequence of str
        Which of them, without ``.ipynb``.
    parameters : mapping, optional
        More parameters, for every notebook that has them; one that no notebook has is an error.
    data : path, optional
        Where the generated stream is kept for the next report; ``<folder>/data`` by default.
    say : callable
        Told what is going on, line by line.

    Returns
    -------
    Path
        Of the first page.

    Raises
    ------
    ReportError
        If the profile or a parameter is unknown, a notebook is missing, or a cell fails.
    """
    if profile not in PROFILES:
        raise ReportError(f"unknown profile {profile!r}; there are {' and '.join(PROFILES)}")
    target, source = Path(folder), Path(notebooks)
    paths = {stem: source / f"{stem}.ipynb" for stem in stems}
    known = {stem: parameters_of(path) for stem, path in paths.items()}
    more = dict(parameters or {})
    for name in more:
        if not any(name in names for names in known.values()):
            everything = sorted(set().union(*known.values()))
            raise ReportError(
                f"no notebook has a parameter {name!r}; there are {', '.join(everything)}"
            )
    target.mkdir(parents=True, exist_ok=True)
    for stem, path in paths.items():
        own = {
            "profile": profile,
            "seed": seed,
            # Relative, so that no name of a home folder is published.
            "output": _relative(target / stem, source),
            "data": _relative(Path(data) if data else target / "data", source),
            "report": _relative(target, source),
            **more,
        }
        say(f"{stem}: running {path}")
        executed = run_notebook(
            path,
            target / stem / f"{stem}.ipynb",
            {name: value for name, value in own.items() if name in known[stem]},
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
    bodies, pages = {}, []
    for stem, notebook in executed.items():
        page = _page(target, stem, notebook)
        saved = [thumbnail.stem for thumbnail in page.thumbnails]
        bodies[stem] = body_of(notebook, folder=stem, saved=saved, code_shown=page.code_shown)
        pages.append(page)
    entries = [page.entry for page in pages]
    if benchmarks:
        entries.append(_BENCHMARKS)
    if (target / _DOCUMENTATION.link).is_file():
        entries.append(_DOCUMENTATION)
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
    _write(index, index_html(_report(target, pages, bodies, benchmarks), navigation))
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


def _page(target: Path, stem: str, notebook: NotebookNode) -> Page:
    metadata = notebook.metadata
    ran = metadata.get("papermill", {})
    own = metadata.get("cepbench", {})
    return Page(
        stem,
        title=metadata.get("title", stem),
        summary=metadata.get("summary", ""),
        group=group_of(metadata, stem),
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
        full_profile=full_profile(),
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


def _relative(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path, start)).as_posix()
