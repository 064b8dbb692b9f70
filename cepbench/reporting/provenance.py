"""Where numbers come from: machine and versions of a run, benchmarks, and the full profile's hours."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from cepbench.studies.kolchinsky2018.profiles import EXPERIMENTS
from cepbench.sweeps.cells import provenance

#: Estimate of the full profile's sweeps, as ``make sweep`` told it once.
FULL_PROFILE = Path(__file__).with_name("full_profile.toml")

#: Packages whose version can move a figure.
_PACKAGES = (
    "cepbench", "numpy", "numba", "pandas", "pyarrow", "pyspark", "altair", "matplotlib",
)  # fmt: skip


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


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a benchmark printed when ``make bench`` ran it last.

    Attributes
    ----------
    name : str
    printed : str
    when : datetime
    files : sequence of str
        Its rows, relative to the site; empty if it wrote none.
    """

    name: str
    printed: str
    when: datetime
    files: Sequence[str] = ()


def benchmarks_in(folder: Path) -> list[Benchmark]:
    """What ``make bench`` left below the folder of a report."""
    return [
        Benchmark(
            path.stem.removeprefix("bench_").replace("_", " "),
            path.read_text(encoding="utf-8"),
            datetime.fromtimestamp(path.stat().st_mtime, UTC),
            [f"benchmarks/{rows.name}" for rows in path.parent.glob(f"{path.stem}.parquet")],
        )
        for path in sorted((folder / "benchmarks").glob("bench_*.txt"))
    ]


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
