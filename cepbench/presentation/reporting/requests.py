"""Requests for notebooks: which ones, under which names, and with which parameters."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cepbench.errors import ReportError, did_you_mean
from cepbench.experiments.studies.profiles import REFERENCE
from cepbench.experiments.studies.registry import STUDIES, studies_of
from cepbench.experiments.studies.study import Study
from cepbench.presentation.reporting.claims import claims

#: Notebooks that show how something is done; they belong to no study.
GENERAL = ("quickstart", "tutorial", "explore", "user_defined_generator", "cluster")

#: The notebook that judges the claims of a study, and its page in the study's folder.
LEDGER = "ledger"

#: What the site has besides pages of notebooks, so that none can be called so.
_TAKEN = ("index", "benchmarks", "reference", "docs", "assets", "data")


@dataclass(frozen=True, slots=True)
class Request:
    """A notebook to run and publish."""

    path: Path
    #: Of its page and its folder of results; ``<key>/<name>`` for a study's.
    stem: str
    #: For this notebook alone; they win over those for all.
    parameters: Mapping[str, Any] = field(default_factory=dict)
    #: ``title`` and ``summary`` of the page, where the notebook's own do not fit.
    metadata: Mapping[str, Any] = field(default_factory=dict)
    #: Stems of those whose results it reads.
    after: Sequence[str] = ()


def stems_of(studies: Sequence[Study]) -> list[str]:
    """The pages of studies, in their order: ``<key>/<name>``, the ledger last."""
    return [f"{study.key}/{name}" for study in studies for name in (*study.notebooks, LEDGER)]


def report_stems() -> list[str]:
    """All pages of the report in its order: the general ones, then study by study."""
    return [*GENERAL, *stems_of(list(STUDIES.values()))]


def study_of(stem: str) -> Study | None:
    """The study that a page belongs to, if it does."""
    return STUDIES.get(stem.partition("/")[0]) if "/" in stem else None


def requests_for(
    wanted: Sequence[str], folder: str | Path = "notebooks", *, studies: Sequence[str] = ()
) -> list[Request]:
    """Requests for notebooks, each once, those of the report in its order.

    Notebooks are paths, or names of those in a folder, a study's with or without its key; studies
    are citation keys, for all their notebooks. Without both: all of the report.

    Raises ReportError if there is no such notebook or study, several studies have one of that name,
    two have one name, or one has a name that the site needs.
    """
    source = Path(folder)
    if not wanted and not studies:
        return [_own_request(stem, source) for stem in report_stems()]
    its = stems_of(studies_of(studies)) if studies else []
    found = {stem: _own_request(stem, source) for stem in its}
    for name in dict.fromkeys(wanted):
        request = _named(name, source)
        known = found.setdefault(request.stem, request)
        if known.path.resolve() != request.path.resolve():
            raise ReportError(
                f"{known.path} and {request.path} would both be the page {request.stem}.html; "
                "rename one of them"
            )
    return sorted(found.values(), key=lambda request: rank_of(request.stem))


def rank_of(stem: str) -> int:
    """Place of a page in the report; that of users' pages is behind all others."""
    stems = report_stems()
    return stems.index(stem) if stem in stems else len(stems)


def page_name(text: str) -> str:
    """A name for a page and its folder, from any text: letters, digits, ``-`` and ``_``."""
    return re.sub(r"[^\w-]+", "_", text).strip("_")


def _own_request(stem: str, source: Path) -> Request:
    """A notebook of the report. That of the ledger is one for all studies."""
    study = study_of(stem)
    if study is None or not stem.endswith(f"/{LEDGER}"):
        return Request(source / f"{stem}.ipynb", stem)
    return Request(
        source / f"{LEDGER}.ipynb",
        stem,
        {"study": study.key},
        {
            "title": f"Ledger: the claims of {study.label}",
            "summary": f"Every claim of {study.label} that a number can settle, with its "
            "measurement and verdict.",
        },
        sorted({f"{study.key}/{claim.results}" for claim in claims(study)}),
    )


def _named(name: str, source: Path) -> Request:
    its = {stem: _own_request(stem, source).path for stem in report_stems()}
    same = [stem for stem in its if name in (stem, stem.rpartition("/")[2])]
    if len(same) > 1:
        raise ReportError(f"several studies have a notebook {name!r}; name {' or '.join(same)}")
    path = its[same[0]] if same else Path(name)
    if not same and not name.endswith(".ipynb"):
        path = source / f"{name}.ipynb"
    if not path.is_file():
        there = {path.stem for path in source.glob("*.ipynb")}
        short = {stem.rpartition("/")[2] for stem in its}
        known = sorted({*short, *its, *there} - {name, Path(name).stem})
        near = did_you_mean(Path(name).stem, known).removeprefix("; ")
        hint = near or f"there are {', '.join(known)}."
        if not there:
            hint += f" None is in {source}: run this at the root of the project."
        what = f"file {path}" if name.endswith(".ipynb") else f"notebook {name!r} in {source}"
        raise ReportError(f"there is no {what}; {hint} Or name the path of any notebook")
    if same:  # ledgers of several studies are one notebook
        return _own_request(same[0], source)
    for stem, own in its.items():
        if path.resolve() == own.resolve():
            return _own_request(stem, source)
    stem = page_name(path.stem)
    if not stem or stem in (*_TAKEN, *STUDIES):
        raise ReportError(
            f"{path}: a page cannot be called {stem!r}, the site needs that; rename it"
        )
    if stem in GENERAL:
        raise ReportError(
            f"{path}: the report has a notebook {stem} of its own, whose page this would replace; "
            "rename it"
        )
    return Request(path, stem)


def settings_of(
    request: Request,
    known: Mapping[str, str],
    *,
    report: Path,
    data: Path,
    profile: str,
    seed: int,
    plugins: Sequence[str | Path],
) -> dict[str, Any]:
    """The parameters of a notebook that the report sets; the others keep their defaults, ``known``.

    ``report`` and ``data`` are the folders of the report, for a notebook of a study its folder in
    it, and of generated streams; the others are those of
    :func:`~cepbench.presentation.reporting.site.build_report`.

    Raises ReportError if there are plug-ins, and the notebook is not one of the report and has no
    parameter for them.
    """
    here = request.path.parent
    own_folder = report / request.stem
    folders = {"output": own_folder, "data": data, "report": own_folder.parent}
    own: dict[str, Any] = {
        # What belongs to no study has no results in the package, and takes seconds.
        "profile": profile if study_of(request.stem) or profile != REFERENCE else "quick",
        "seed": seed,
        **{
            # Relative, so that no name of a home folder is published.
            name: relative(path, here)
            for name, path in folders.items()
            if re.match(r"""["'](\w+/)?output\b""", known.get(name, ""))
        },
    }
    if plugins:
        if "plugin" not in known and request.stem not in report_stems():
            raise ReportError(
                f'{request.path} takes no plug-ins: write plugin = "" into its parameters cell, '
                "and open_notebook(output, plugin) of cepbench.presentation.reporting.opening below it"
            )
        own["plugin"] = [relative(Path(file), here) for file in plugins]
    return {name: value for name, value in own.items() if name in known}


def relative(path: Path, start: Path) -> str:
    """A path as seen from a folder, with slashes."""
    return Path(os.path.relpath(path, start)).as_posix()
