"""The first page of a report: what was run, when, where and with what, and links to the rest."""

from __future__ import annotations

import base64
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from cepbench.experiments.cells import provenance
from cepbench.experiments.profiles import EXPERIMENTS
from cepbench.reporting.pages import CONTENT_POLICY

_TEMPLATES = Path(__file__).parent / "templates"

#: Estimate of the full profile's sweeps, as ``make sweep`` told it once.
FULL_PROFILE = Path(__file__).with_name("full_profile.toml")

#: Packages whose version can move a figure.
_PACKAGES = (
    "cepbench", "numpy", "numba", "pandas", "pyarrow", "pyspark", "altair", "matplotlib",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the report.

    Attributes
    ----------
    title, summary : str
        As in the notebook's metadata.
    link : str
        Relative to the index.
    seconds : float
        What running it took.
    parameters : mapping
        Of this run.
    pictures : sequence of path
        PNG files, shown small.
    files : sequence of str
        Other results, relative to the index.
    """

    title: str
    summary: str
    link: str
    seconds: float
    parameters: Mapping[str, Any]
    pictures: Sequence[Path] = ()
    files: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a benchmark printed when ``make bench`` ran it last.

    Attributes
    ----------
    name : str
    printed : str
    when : datetime
    files : sequence of str
        Its rows, relative to the index; empty if it wrote none.
    """

    name: str
    printed: str
    when: datetime
    files: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class FullProfile:
    """How long the sweeps of the full profile are expected to take.

    Attributes
    ----------
    cores : int
    processor : str
    hours : mapping of str to (float, float, float)
        What a sweep is for -> expected hours, and the ends of a 95 % interval; sweeps that were
        estimated only.
    """

    cores: int
    processor: str
    hours: Mapping[str, tuple[float, float, float]]

    @property
    def missing(self) -> list[str]:
        """What the sweeps are for that were not estimated."""
        return [what for what in EXPERIMENTS.values() if what not in self.hours]

    @property
    def total(self) -> tuple[float, float, float]:
        """Hours of all sweeps; the ends are those of each sweep added up, so they lie apart."""
        expected, low, high = map(sum, zip(*self.hours.values(), strict=True))
        return expected, low, high


def full_profile(path: Path = FULL_PROFILE) -> FullProfile | None:
    """The estimate kept with the package, if any; ``make sweep`` makes one for its own machine."""
    if not path.exists():
        return None
    kept = tomllib.loads(path.read_text(encoding="utf-8"))
    hours = {
        what: tuple(kept["hours"][name])
        for name, what in EXPERIMENTS.items()
        if name in kept["hours"]
    }
    return FullProfile(kept["cores"], kept["processor"], hours)


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the index shows.

    Attributes
    ----------
    profile : str
    seed : int
    started : datetime
    seconds : float
    pages : sequence of Page
    verdicts : mapping of str to int
        Verdict in words -> how many claims of the ledger have it; empty without a ledger.
    machine : mapping of str to str
        Processor and cores; never a name or an address.
    versions : mapping of str to str
    full_profile : FullProfile or None
    benchmarks : sequence of Benchmark
    """

    profile: str
    seed: int
    started: datetime
    seconds: float
    pages: Sequence[Page]
    verdicts: Mapping[str, int] = field(default_factory=dict)
    machine: Mapping[str, str] = field(default_factory=lambda: machine())
    versions: Mapping[str, str] = field(default_factory=lambda: versions())
    full_profile: FullProfile | None = field(default_factory=lambda: full_profile())
    benchmarks: Sequence[Benchmark] = ()


def machine() -> dict[str, str]:
    """Processor and cores of this machine, without its name."""
    here = provenance()
    return {"processor": here["cpu"], "cores": str(here["cores"])}


def versions() -> dict[str, str]:
    """Python and the packages whose version can move a figure."""
    return {
        "python": provenance()["python_version"],
        **{package: version(package) for package in _PACKAGES},
    }


def index_html(report: Report) -> str:
    """The index as one page that loads nothing; every text in it is escaped.

    Parameters
    ----------
    report : Report
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = _duration
    environment.filters["picture"] = _picture
    environment.filters["moment"] = _moment
    template = environment.get_template("index.html.j2")
    return template.render(report=report, content_policy=CONTENT_POLICY)


def _moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def _duration(seconds: float) -> str:
    whole = round(seconds)
    return f"{whole // 60} min {whole % 60} s" if whole >= 60 else f"{whole} s"


def _picture(path: Path) -> str:
    return "data:image/png;base64," + base64.b64encode(path.read_bytes()).decode()
