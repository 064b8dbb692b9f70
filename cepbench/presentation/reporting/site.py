"""A report: notebooks are run, and published as a site with those run before."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import urlencode

import pandas as pd
from nbformat import NotebookNode

from cepbench.errors import ReportError, did_you_mean
from cepbench.experiments.plugins import load_plugins
from cepbench.experiments.studies.measured import StudySweep, measure_all, study_sweep
from cepbench.experiments.studies.profiles import MEASURED_AS, REFERENCE
from cepbench.experiments.studies.reference import lacking
from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.studies.study import Study
from cepbench.experiments.sweeps.store import COMPLETE
from cepbench.experiments.sweeps.sweep_file import KEYS
from cepbench.files import held, write_json
from cepbench.presentation.reporting import requests, story
from cepbench.presentation.reporting.algorithms import described
from cepbench.presentation.reporting.beside_reference import (
    REFERENCE_PAGE,
    beside_reference,
    reference_ledger,
)
from cepbench.presentation.reporting.crate import write_crate
from cepbench.presentation.reporting.downloads import write_downloads, write_thumbnail
from cepbench.presentation.reporting.front_picture import front_picture
from cepbench.presentation.reporting.index import (
    FRONT_PICTURE,
    Judged,
    Report,
    StudyReport,
    index_html,
)
from cepbench.presentation.reporting.ledger import LOOKS
from cepbench.presentation.reporting.memory import PEAK, peak_memory
from cepbench.presentation.reporting.navigation import START, Entry, Navigation, group_of
from cepbench.presentation.reporting.notebooks import (
    measured_tables,
    parameters_of,
    read_notebook,
    run_notebook,
)
from cepbench.presentation.reporting.pages import PICTURES, Body, Page, body_of, code_of, page_of
from cepbench.presentation.reporting.parameters import (
    PROFILES,
    checked_parameters,
    literals,
    unknown_parameter,
)
from cepbench.presentation.reporting.provenance import benchmarks_in
from cepbench.presentation.reporting.search import write_search
from cepbench.presentation.reporting.shell import render, write_assets
from cepbench.presentation.reporting.side_by_side import ONE_CORE, Task, run_side_by_side
from cepbench.presentation.reporting.titles import in_words, summary_of, title_of
from cepbench.presentation.reporting.verdicts import counts_of

#: The lock of a report, and what its holder does.
_WRITER = ("report", "writes a report", ReportError)
_CLAIMS = Entry("Claims", story.CLAIMS_PAGE, START)
_ALGORITHMS = Entry("Algorithms", "algorithms.html", START)
_REFERENCE = Entry("Beside the reference", REFERENCE_PAGE, "more")
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
    only: Sequence[str | requests.Request] = (),
    parameters: Mapping[str, Any] | None = None,
    plugins: Sequence[str | Path] = (),
    strict: bool = False,
    on_progress: Callable[[str, str], object] = print,
) -> Path:
    """Run notebooks and publish them, with those that were run before, as :func:`publish_report`.

    Raises ReportError if the profile or a parameter is unknown, a notebook is missing or
    has the name of another page, a cell fails, or warns where that is an error, or another process
    writes the report; ExperimentError if a sweep that a notebook reads cannot be measured;
    PlanGeneratorError if a file of plug-ins is missing, fails or registers nothing.

    Parameters
    ----------
    folder : path
        Gets the site, a folder of results a notebook, and in ``data`` generated streams for the next report.
    profile : str
        ``quick`` takes minutes and ``full`` hours, ``reference`` draws what the package has; with the seed a
        parameter of the notebooks.
    only : sequence of str or Request
        Names of notebooks in the folder ``notebooks``, or paths of any; all of the report by default.
    parameters : mapping, optional
        More parameters, for every notebook that has them; one that no notebook has is an error.
    plugins : sequence of paths
        Python files with plan generators or evaluators, which the notebooks load.
    strict : bool
        A warning that a cell prints is an error.
    on_progress : callable
        Called with the name of a notebook or sweep and its state, such as ``running`` or ``12 s``.
    """
    target = Path(folder)
    wanted = [each for each in only if isinstance(each, requests.Request)]
    if len(wanted) < len(only) or not only:
        named = [each for each in only if isinstance(each, str)]
        wanted += requests.requests_for(named, notebooks)
    for request in wanted:
        study = requests.study_of(request.stem)
        profiles = (*study.profiles, REFERENCE) if study else PROFILES
        if profile not in profiles:
            raise ReportError(
                f"unknown profile {profile!r}; there are {' and '.join(profiles)}"
                f"{did_you_mean(profile, profiles)}"
            )
    known = {request.stem: parameters_of(request.path) for request in wanted}
    more = dict(parameters or {})
    for name in more:
        if not any(name in names for names in known.values()):
            raise unknown_parameter(name, sorted(set().union(*known.values())), "any notebook")
    load_plugins(plugins)  # so that errors in them are raised before anything runs
    streams = target / "data"
    by_stem = {request.stem: request for request in wanted}
    metadata = {stem: read_notebook(request.path).metadata for stem, request in by_stem.items()}
    for stem in list(by_stem) if profile == REFERENCE else ():
        missing = lacking(metadata[stem].get("sweeps", ()), measured_tables(by_stem[stem].path))
        if missing:
            on_progress(stem, f"left out: the package has no results of {', '.join(missing)}")
        elif requests.study_of(stem) is None and metadata[stem].get("uses") != ONE_CORE:
            on_progress(stem, "left out: it measures on all cores")
        else:
            continue
        del by_stem[stem]
    settings = {}
    for stem, request in by_stem.items():
        given = {
            **requests.settings_of(
                request,
                known[stem],
                report=target,
                data=streams,
                profile=profile,
                seed=seed,
                plugins=plugins,
            ),
            **{name: value for name, value in more.items() if name in known[stem]},
            **request.parameters,
        }
        settings[stem] = checked_parameters(given, literals(known[stem]), request.path.name)
    target.mkdir(parents=True, exist_ok=True)
    with held(target, *_WRITER):
        read = {
            stem: _sweeps_of(metadata[stem].get("sweeps", ()), its, streams)
            for stem, its in settings.items()
        }
        # Those that have to be measured, before any notebook runs: a sweep then has all cores, and
        # Spark is started once.
        unmeasured = {
            its.folder: its for found in read.values() for its in found if not its.is_finished
        }
        sweeps = list(unmeasured.values())
        tasks = [Task.of(stem, metadata[stem], request.after) for stem, request in by_stem.items()]
        # A sweep has all cores, and takes about as long as two notebooks side by side.
        weights = {f"sweep {sweep.sweep.name}": 2.0 for sweep in sweeps} | dict.fromkeys(
            by_stem, 1.0
        )
        steps = Steps(on_progress, weights)
        began = time.perf_counter()
        remaining = measure_all(sweeps)
        while True:
            with peak_memory() as peak:
                sweep = next(remaining, None)
            if sweep is None:
                break
            if not sweep.reference_of:
                write_json(sweep.folder / PEAK, {"bytes": peak.bytes})
            steps(f"sweep {sweep.sweep.name}", f"{time.perf_counter() - began:.0f} s")
            began = time.perf_counter()
        steps.ended("sweeps")

        bodies: dict[str, Body] = {}
        converting = Lock()

        def run(stem: str) -> float:
            path = target / stem / f"{Path(stem).name}.ipynb"
            executed = run_notebook(
                by_stem[stem].path,
                path,
                settings[stem],
                metadata=by_stem[stem].metadata,
                sweeps=[requests.relative(its.folder / COMPLETE, target) for its in read[stem]],
                strict=strict,
            )
            # Beside the next notebook: most of what a page takes, which one core would do in the end.
            with converting:  # the exporter of nbconvert is one for all threads
                bodies[stem] = _body_of(stem, read_notebook(path))
            return float(executed.metadata.papermill.duration)

        run_side_by_side(tasks, run, on_progress=steps)
        steps.ended("notebooks")
        index = _published(target, on_progress, bodies)
        steps.ended("pages")
        for phase, seconds in steps.phases.items():
            on_progress(phase, f"{seconds:.0f} s")
        return index


#: Parameters of a notebook that change a sweep which it reads.
_OF_SWEEPS = {*KEYS, "identifiers", "days"} - {"seed", "data"}


def _sweeps_of(names: Sequence[str], settings: dict[str, Any], data: Path) -> list[StudySweep]:
    """The sweeps that a notebook with these settings reads.

    ``fresh`` discards their results, and is removed from the settings.
    """
    changes = {key: value for key, value in settings.items() if key in _OF_SWEEPS}
    found = [
        study_sweep(name, settings["profile"], data, seed=settings["seed"], **changes)
        for name in names
    ]
    if found and settings.pop("fresh", False):
        for sweep in found:
            sweep.discard()
    return found


class Steps:
    """Progress that says which step has ended, and about how long the others will take.

    ``tell`` gets what and its state; ``weights`` are the steps, by what they do, with their shares of the time.
    """

    def __init__(
        self,
        tell: Callable[[str, str], object],
        weights: Mapping[str, float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tell, self._weights, self._clock = tell, dict(weights), clock
        self._left, self._began = dict(weights), clock()
        #: What has ended → the seconds that it took.
        self.phases: dict[str, float] = {}

    def __call__(self, what: str, state: str) -> None:
        if state != "running" and self._left.pop(what, 0.0):
            whole, left = sum(self._weights.values()), sum(self._left.values())
            state += f" (step {len(self._weights) - len(self._left)} of {len(self._weights)}"
            if self._left and left < 0.9 * whole:  # the first steps say little
                seconds = (self._clock() - self._began) * left / (whole - left)
                state += f", about {seconds / 60:.0f} min left"
            state += ")"
        self._tell(what, state)

    def ended(self, phase: str) -> None:
        """A phase has ended, which began where the last one did."""
        passed = self._clock() - self._began
        self.phases[phase] = passed - sum(self.phases.values())


def publish_report(
    folder: str | Path, *, on_progress: Callable[[str, str], object] = print
) -> Path:
    """Make the site of notebooks that were run before, and return its first page; nothing is run.

    Every ``<stem>/<stem>.ipynb`` in the folder of a report becomes ``<stem>.html``, with tables as
    CSV beside its results; a study's lie one folder deeper, in that of its key.
    ``index.html`` is the first page, ``assets`` holds what the pages share, and
    ``ro-crate-metadata.json`` says which run made what. Progress is
    reported with the stem of each notebook that is left out, and why.

    Raises ReportError if there is no executed notebook, or another process writes the report.
    """
    target = Path(folder)
    if not target.is_dir():
        raise _nothing_in(target)
    with held(target, *_WRITER):
        return _published(target, on_progress, {})


def _nothing_in(target: Path) -> ReportError:
    return ReportError(
        f"there is no executed notebook in {target}; run some by `cepbench report build`"
    )


def _published(
    target: Path, on_progress: Callable[[str, str], object], known: Mapping[str, Body]
) -> Path:
    """The first page of a site whose pages have these bodies, the others those of their notebooks."""
    executed = _executed(target, on_progress)
    if not executed:
        raise _nothing_in(target)
    benchmarks = benchmarks_in(target)
    judged = {key: _judged(target, study, executed) for key, study in STUDIES.items()}
    bodies: dict[str, Body] = {}
    pages: list[Page] = []
    for stem, notebook in executed.items():
        group = group_of(stem)
        # Two papers may both have a Figure 6; in one group it would be the copy of a notebook.
        others = [page for page in pages if group not in STUDIES or page.group == group]
        labels = [page.entry.label for page in others]
        bodies[stem] = known.get(stem) or _body_of(stem, notebook)
        its = _fields_of(stem, STUDIES[group], judged[group]) if group in judged else {}
        page = _page(target, stem, notebook, bodies[stem], group, labels)
        pages.append(replace(page, **{**its, "found": bodies[stem].found or its.get("found", "")}))
    entries = [page.entry for page in pages]
    studies = [_study_report(target, study, pages, judged[study.key]) for study in STUDIES.values()]
    claims = [claim for study in studies for claim in study.claims]
    if claims:
        entries.append(_CLAIMS)
    entries.append(_ALGORITHMS)
    beside = beside_reference(target)
    if beside:
        entries.append(_REFERENCE)
    if benchmarks:
        entries.append(_BENCHMARKS)
    documentation = [entry for entry in _DOCUMENTATION if (target / entry.link).is_file()]
    entries += documentation
    navigation = Navigation.of(entries)
    write_assets(target)
    texts: dict[str, str] = {}
    for page in pages:
        _write_pictures(target, page.stem, bodies[page.stem])
        texts[page.link] = page_of(page, bodies[page.stem], navigation)
        (target / page.link).write_text(texts[page.link], encoding="utf-8")
    rows = described(claims, target / "docs")
    write_search(target, entries, texts, claims, rows)
    tables: dict[Entry, dict[str, Any]] = {
        _CLAIMS: {"template": "claims_page.html.j2", "claims": claims, "looks": LOOKS},
        _ALGORITHMS: {
            "template": "algorithms_page.html.j2",
            "rows": rows,
        },
        _REFERENCE: {"template": "reference_page.html.j2", "looks": LOOKS, **(beside or {})},
        _BENCHMARKS: {"template": "benchmarks.html.j2", "benchmarks": benchmarks},
    }
    for entry in entries:
        if entry in tables:
            text = render(navigation=navigation, here=entry.link, **tables[entry])
            (target / entry.link).write_text(text, encoding="utf-8")
    index = target / "index.html"
    drawn, caption = front_picture()
    (target / FRONT_PICTURE).write_text(drawn, encoding="utf-8")
    report = Report(
        pages,
        facts=story.facts(target, [page.stem for page in pages]),
        studies=studies,
        benchmarks=benchmarks,
        documentation=documentation,
        caption=caption,
    )
    index.write_text(index_html(report, navigation), encoding="utf-8")
    write_crate(target, pages, entries, [study.study for study in studies if study.pages])
    return index


def _body_of(stem: str, notebook: NotebookNode) -> Body:
    return body_of(notebook, folder=stem, code=code_of(group_of(stem)))


def _executed(target: Path, on_progress: Callable[[str, str], object]) -> dict[str, NotebookNode]:
    """Stem -> notebook, in the order of the site; one that failed is no page."""
    stems = [
        path.parent.relative_to(target).as_posix()
        for pattern in ("*/*.ipynb", "*/*/*.ipynb")
        for path in sorted(target.glob(pattern))
        if path.stem == path.parent.name
    ]
    found = {}
    for stem in sorted(stems, key=requests.rank_of):
        notebook = read_notebook(target / stem / f"{Path(stem).name}.ipynb")
        if notebook.metadata.get("papermill", {}).get("exception"):
            on_progress(stem, "left out, since a cell of it failed; run it again")
        else:
            found[stem] = notebook
    return found


def _page(
    target: Path, stem: str, notebook: NotebookNode, body: Body, group: str, labels: Sequence[str]
) -> Page:
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
        group=group,
        seconds=ran.get("duration") or 0.0,
        started=datetime.fromisoformat(ran["start_time"]) if ran.get("start_time") else None,
        parameters=dict(ran.get("parameters", {})),
        machine=dict(own.get("machine", {})),
        versions=dict(own.get("versions", {})),
        commit=own.get("commit", ""),
        sweeps=list(own.get("sweeps", ())),
        figures=body.figures,
        downloads=write_downloads(target, stem, notebook, body.figures),
    )


def _fields_of(stem: str, study: Study, judged: Judged) -> dict[str, Any]:
    """Fields of a study's page: its claims and what was found, or of the ledger what holds where."""
    name = stem.rpartition("/")[2]
    if name == requests.LEDGER:
        chosen = urlencode({"paper": study.label})
        return {"lines": judged.lines, "every_claim": f"{story.CLAIMS_PAGE}#{chosen}"}
    claims = judged.claims.get(name, ())
    return {"claims": claims, "found": story.sentence_of(claims)}


def _judged(target: Path, study: Study, stems: Collection[str]) -> Judged:
    path = target / study.key / requests.LEDGER / f"{requests.LEDGER}.parquet"
    beside = path.with_name("numbers.parquet")
    if not path.exists() or not beside.exists():
        return Judged()
    stem = f"{study.key}/{requests.LEDGER}"
    ledger = pd.read_parquet(path)
    verdicts, full = counts_of(ledger), reference_ledger(study.key, MEASURED_AS)
    reference = {} if full is None else counts_of(full.assign(paper=study.key))
    return Judged(
        claims=story.judged_claims(ledger, stems),
        headlines=story.headlines(ledger),
        lines=story.regime_lines(study, ledger, pd.read_parquet(beside)),
        verdicts=verdicts,
        full={} if reference == verdicts else reference,
        link=f"{stem}.html" if stem in stems else "",
    )


def _study_report(target: Path, study: Study, pages: Sequence[Page], judged: Judged) -> StudyReport:
    own = [page for page in pages if page.group == study.key]
    figures = ((its.stem, name) for its in own for name in its.figures)
    return StudyReport(study, own, write_thumbnail(target, figures), judged if own else Judged())


def _write_pictures(target: Path, stem: str, body: Body) -> None:
    folder = target / stem / PICTURES
    for old in folder.glob("*"):
        old.unlink()  # an earlier run may have shown more
    for link, content in body.pictures.items():
        folder.mkdir(exist_ok=True)
        (target / link).write_bytes(content)
