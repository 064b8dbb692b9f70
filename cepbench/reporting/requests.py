"""Which notebooks are to be run, under which names and with what: the report's and anybody's."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cepbench.errors import ReportError, suggest
from cepbench.reporting.notebooks import parameters_of

#: Notebooks of the report, in the order of its pages; each one's metadata says its group.
NOTEBOOKS = (
    "quickstart", "tutorial", "explore", "own_generator", "figures_3_4_5", "figure_6", "figure_7",
    "figure_8", "figure_9", "figure_7_extended", "robustness", "cost_models", "ledger",
)  # fmt: skip

#: What the site has besides pages of notebooks, so that none can be called so.
_TAKEN = ("index", "benchmarks", "docs", "assets", "data")

#: Parameters that are paths, and what they are set to where a notebook's default of them begins
#: with ``output``: the folders of the report.
_FOLDERS = ("output", "data", "report")


@dataclass(frozen=True, slots=True)
class Request:
    """A notebook to run and publish.

    Attributes
    ----------
    path : Path
        Of the notebook.
    stem : str
        Of its page and its folder of results.
    parameters : mapping of str to object
        For this notebook alone; they win over those for all.
    metadata : mapping of str to object
        ``title`` and ``summary`` of the page, where the notebook's own do not fit.
    """

    path: Path
    stem: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


def requests_for(wanted: Sequence[str], folder: str | Path = "notebooks") -> list[Request]:
    """The notebooks that somebody names, each once, those of the report in its order.

    Parameters
    ----------
    wanted : sequence of str
        Paths of notebooks, or names of those in ``folder``. None: all of the report.
    folder : path

    Raises
    ------
    ReportError
        If there is no such notebook, two have one name, or one has a name that the site needs.
    """
    source = Path(folder)
    if not wanted:
        return [Request(source / f"{stem}.ipynb", stem) for stem in NOTEBOOKS]
    found: dict[str, Request] = {}
    for name in dict.fromkeys(wanted):
        request = _named(name, source)
        known = found.setdefault(request.stem, request)
        if known.path.resolve() != request.path.resolve():
            raise ReportError(
                f"{known.path} and {request.path} would both be the page {request.stem}.html; "
                "rename one of them"
            )
    ranks = {stem: rank for rank, stem in enumerate(NOTEBOOKS)}
    return sorted(found.values(), key=lambda request: ranks.get(request.stem, len(ranks)))


def page_name(text: str) -> str:
    """A name for a page and its folder, from any text: letters, digits, ``-`` and ``_``."""
    return re.sub(r"[^\w-]+", "_", text).strip("_")


def _named(name: str, source: Path) -> Request:
    inside = source / f"{name}.ipynb"
    path = Path(name) if name.endswith(".ipynb") else inside
    if not path.is_file():
        there = {path.stem for path in source.glob("*.ipynb")}
        known = sorted({*NOTEBOOKS, *there} - {Path(name).stem})
        near = suggest(Path(name).stem, known)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}."
        if not there:
            hint += f" None is in {source}: run this at the root of the project."
        what = f"file {path}" if name.endswith(".ipynb") else f"notebook {name!r} in {source}"
        raise ReportError(f"there is no {what}; {hint} Or name the path of any notebook")
    stem = page_name(path.stem)
    if not stem or stem in _TAKEN:
        raise ReportError(
            f"{path}: a page cannot be called {stem!r}, the site needs that; rename it"
        )
    if stem in NOTEBOOKS and path.resolve() != (source / f"{stem}.ipynb").resolve():
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
    """What the builder sets of a notebook's parameters; the others keep their defaults.

    Parameters
    ----------
    request : Request
    known : mapping of str to str
        Parameter -> default, as the notebook says it.
    report, data : Path
        Folders of the report, and of generated streams.
    profile, seed, plugins
        As :func:`cepbench.reporting.site.build_report` takes them.

    Raises
    ------
    ReportError
        If there are files of plug-ins, and the notebook is one of the user's without a parameter
        for them.
    """
    here = request.path.parent
    folders = {"output": report / request.stem, "data": data, "report": report}
    own: dict[str, Any] = {
        "profile": profile,
        "seed": seed,
        **{
            # Relative, so that no name of a home folder is published.
            name: relative(folders[name], here)
            for name in _FOLDERS
            if re.match(r"""["']output\b""", known.get(name, ""))
        },
    }
    if plugins:
        if "plugin" not in known and request.stem not in NOTEBOOKS:
            raise ReportError(
                f'{request.path} takes no plug-ins: write plugin = "" into its parameters cell, '
                "and open_notebook(output, plugin) of cepbench.reporting.opening below it"
            )
        own["plugin"] = [relative(Path(file), here) for file in plugins]
    return {name: value for name, value in own.items() if name in known}


def declared(requests: Sequence[Request]) -> dict[str, dict[str, str]]:
    """Stem -> parameters that its notebook declares, with their defaults."""
    return {request.stem: parameters_of(request.path) for request in requests}


def relative(path: Path, start: Path) -> str:
    """A path as seen from a folder, with slashes."""
    return Path(os.path.relpath(path, start)).as_posix()
