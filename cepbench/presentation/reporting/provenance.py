"""Where numbers come from: machine and versions of a run, and benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cepbench.experiments.sweeps.cells import provenance

#: Packages whose version can move a figure.
_PACKAGES = (
    "cepbench", "numpy", "numba", "pandas", "pyarrow", "pyspark", "altair", "matplotlib",
)  # fmt: skip


def of_this_run() -> dict[str, Any]:
    """``machine``, without its name; ``versions`` of Python and the packages that can move a figure; ``commit``."""
    here = provenance()
    return {
        "machine": {"processor": here["cpu"], "cores": str(here["cores"])},
        "versions": {
            "python": here["python_version"],
            **{package: version(package) for package in _PACKAGES},
        },
        "commit": here["commit"] or "",
    }


@dataclass(frozen=True, slots=True)
class Benchmark:
    """Output of a benchmark in the last ``make bench``; its rows are files relative to the site, if it wrote some."""

    name: str
    printed: str
    when: datetime
    files: Sequence[str] = ()


def benchmarks_in(folder: Path) -> list[Benchmark]:
    """Benchmarks below the folder of a report."""
    return [
        Benchmark(
            path.stem.removeprefix("bench_").replace("_", " "),
            path.read_text(encoding="utf-8"),
            datetime.fromtimestamp(path.stat().st_mtime, UTC),
            [f"benchmarks/{rows.name}" for rows in path.parent.glob(f"{path.stem}.parquet")],
        )
        for path in sorted((folder / "benchmarks").glob("bench_*.txt"))
    ]
