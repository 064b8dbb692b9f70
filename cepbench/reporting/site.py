"""A report: every notebook run and published, and an index of them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from cepbench.errors import ReportError
from cepbench.experiments.profiles import PROFILES
from cepbench.reporting.index import Benchmark, Page, Report, index_html
from cepbench.reporting.ledger import PLURAL, counts_of
from cepbench.reporting.notebooks import parameters_of, run_notebook
from cepbench.reporting.pages import page_of

#: Notebooks of the report, in the order of its index.
NOTEBOOKS = (
    "quickstart", "own_generator", "figures_3_4_5", "figure_6", "figure_7", "figure_8", "figure_9",
    "figure_7_extended", "robustness", "cost_models", "ledger",
)  # fmt: skip

#: The notebook that reads the results of all others, so it comes last.
LEDGER = "ledger"

_FILES = (".parquet", ".svg")


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
    """Run notebooks and publish them as pages below an index.

    Parameters
    ----------
    folder : path
        Gets ``index.html``, a page a notebook, and a folder of results a notebook.
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
        Of the index.

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
    started, clock = datetime.now(UTC), time.perf_counter()
    pages = []
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
        page = _publish(path, target, {k: v for k, v in own.items() if k in known[stem]})
        say(f"{stem}: {page.seconds:.0f} s")
        pages.append(page)
    report = Report(
        profile,
        seed,
        started,
        time.perf_counter() - clock,
        pages,
        verdicts=_verdicts(target),
        benchmarks=benchmarks_in(target),
    )
    index = target / "index.html"
    index.write_text(index_html(report), encoding="utf-8")
    return index


def _publish(notebook: Path, target: Path, parameters: Mapping[str, Any]) -> Page:
    stem = notebook.stem
    clock = time.perf_counter()
    executed = run_notebook(notebook, target / stem / f"{stem}.ipynb", parameters)
    seconds = time.perf_counter() - clock
    (target / f"{stem}.html").write_text(page_of(executed), encoding="utf-8")
    results = sorted((target / stem).glob("*"))
    return Page(
        title=executed.metadata.get("title", stem),
        summary=executed.metadata.get("summary", ""),
        link=f"{stem}.html",
        seconds=seconds,
        parameters=parameters,
        pictures=[path for path in results if path.suffix == ".png"],
        files=[f"{stem}/{path.name}" for path in results if path.suffix in _FILES],
    )


def _verdicts(target: Path) -> dict[str, int]:
    """How many claims of the ledger have each verdict, in words; empty without a ledger."""
    path = target / LEDGER / f"{LEDGER}.parquet"
    if not path.exists():
        return {}
    return {PLURAL[verdict]: n for verdict, n in counts_of(pd.read_parquet(path)).items()}


def benchmarks_in(target: Path) -> list[Benchmark]:
    """What ``make bench`` left below the folder of a report."""
    return [
        Benchmark(
            path.stem.removeprefix("bench_").replace("_", " "),
            path.read_text(encoding="utf-8"),
            datetime.fromtimestamp(path.stat().st_mtime, UTC),
            [f"benchmarks/{rows.name}" for rows in path.parent.glob(f"{path.stem}.parquet")],
        )
        for path in sorted((target / "benchmarks").glob("bench_*.txt"))
    ]


def _relative(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path, start)).as_posix()
