"""ARTIFACT.md: each claim, the command that judges it, how long that takes, what it should give, and where.

``python -m cepbench.presentation.reporting.artifact REPORT >ARTIFACT.md`` reads the ledgers and a finished report,
whose numbers are the reference.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd

from cepbench.engines.runs.result import shown_bytes
from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.studies.study import Study
from cepbench.experiments.sweeps.store import COMPLETE, read_kept
from cepbench.presentation.reporting.beside_reference import reference_ledger
from cepbench.presentation.reporting.claims import Claim, claims
from cepbench.presentation.reporting.memory import PEAK
from cepbench.presentation.reporting.verdicts import shown_measured

_HEAD = """\
# Artifact

What a reviewer runs, how long it takes, and what should come out. This file is made by
`python -m cepbench.presentation.reporting.artifact REPORT` from the ledgers and a finished report.

## Ten minutes

Needed: Python 3.11 or newer, make, 4 GiB of free memory, {space} GiB of disk, and PyPI once. Nothing is downloaded later.
In an unpacked archive, `sha256sum --check --quiet SHA256SUMS` compares all files first.

```sh
make env                       # packages, compiled kernels: four minutes on two cores
source .venv/bin/activate
cepbench doctor                # every engine against DuckDB, and Spark: all lines are ok
cepbench compare --pattern-name rare-last --data nasdaq-style/sample
cepbench claim {first}
```

## Everything

`make report PROFILE=reference` draws the site from results at the papers' sizes, which the package has: three minutes.
`make report` measures the quick profile of all studies, draws the site and compares it with the reference; `make test` compares
all engines with the naive matcher. `make report PROFILE=full` are the papers' sizes: hours, resumed where they were interrupted.

## Claims

`cepbench claim ID` runs the notebook of one claim and judges it as the report does. *Expected* is where the ledger says that the
number has to be; *quick* what that profile gave, with its 95 % interval, on the paper's engine and in the first of
several settings; *full* what the papers' sizes gave, where the package has results of them. Claims that do not hold are listed as
such; the reasons are on the report's page `claims.html`. *Minutes*, the peak of memory and what is left on disk are those of its
notebook with its sweeps and their streams, which other claims on the same page share. Measured on {machine}.
"""


def text_of(report: Path) -> Iterator[str]:
    """The lines of the file, by a finished report."""
    space = _size(report) / (1 << 30)
    tables = []
    for study in STUDIES.values():
        judged = pd.read_parquet(report / study.key / "ledger" / "ledger.parquet")
        tables += ["", f"### {study.label}", "", *_table(study, judged, _costs(study, report))]
    one = next(iter(STUDIES.values()))
    first, about = claims(one)[0].id, _notebook(one, report, one.notebooks[0])["cepbench"]
    machine = "{processor}, {cores} cores".format(**about["machine"])
    machine += f", cepbench {about['versions']['cepbench']}"
    # The environment takes the rest.
    yield from _HEAD.format(space=math.ceil(space + 3), first=first, machine=machine).splitlines()
    yield from tables


def expected(claim: Claim) -> str:
    """The range in which a claim promises its number."""
    its = claim.main
    if claim.absolute:
        return "a time elsewhere"
    if math.isinf(its.low):
        return f"at most {its.high:g}"
    return f"at least {its.low:g}" if math.isinf(its.high) else f"{its.low:g} to {its.high:g}"


def _table(study: Study, judged: pd.DataFrame, costs: dict[str, Cost]) -> Iterator[str]:
    yield "| `cepbench claim` | figure | claim | expected | quick | full | minutes | memory | disk |"
    yield "|---|---|---|---|---|---|---:|---:|---:|"
    full = reference_ledger(study.key, "full")
    for claim in claims(study):
        cost = costs[claim.results]
        yield (
            f"| {claim.id} | {claim.figure} | {claim.statement} | {expected(claim)} | {_found(claim, judged)} "
            f"| {_found(claim, full)} | {cost.seconds / 60:.1f} | {shown_bytes(cost.memory) if cost.memory else '–'} "
            f"| {shown_bytes(cost.disk)} |"
        )


def _found(claim: Claim, judged: pd.DataFrame | None) -> str:
    """The verdict on a claim with its number, of a table of verdicts."""
    rows = judged[judged["id"] == claim.id] if judged is not None else pd.DataFrame()
    if rows.empty:
        return "–"
    its = rows[(rows["basis"] == claim.main.basis) & ~rows["also"] & rows["value"].notna()]
    row = next(its.itertuples(index=False), None)
    overall = str(rows["overall"].iloc[0])
    if row is None:
        return overall
    return f"{overall}: {shown_measured(row)}"


def _notebook(study: Study, report: Path, name: str) -> Mapping[str, Any]:
    """What an executed notebook says of its run."""
    path = report / study.key / name / f"{name}.ipynb"
    found: Mapping[str, Any] = nbformat.read(path, as_version=4).metadata
    return found


@dataclass
class Cost:
    """What a page takes: seconds, the peak of memory and what is left on disk, in bytes."""

    seconds: float
    memory: int
    disk: int = 0


def _costs(study: Study, report: Path) -> dict[str, Cost]:
    """Notebook → what it and its sweeps took."""
    found = {}
    for name in study.notebooks:
        about = _notebook(study, report, name)
        cost = Cost(about["papermill"]["duration"], about["cepbench"].get("memory") or 0)
        for sweep in about.get("sweeps") or ():
            for folder in (report / "data" / "sweeps").glob(f"{sweep.rpartition('/')[2]}-*"):
                begun, ended = (folder / its for its in ("sweep.json", COMPLETE))
                cost.seconds += max(ended.stat().st_mtime - begun.stat().st_mtime, 0.0)
                if (folder / PEAK).exists():
                    cost.memory = max(cost.memory, read_kept(folder, "memory")["bytes"])
                cost.disk += sum(map(_size, (folder, *_streams(folder))))
        cost.disk += _size(report / study.key / name)
        found[name] = cost
    return found


def _streams(sweep: Path) -> Iterator[Path]:
    """The generated streams that a sweep ran on."""
    identity = read_kept(sweep, "sweep")
    names = identity.get("streams", {}).values() or [identity.get("data", "")]
    yield from (path for name in set(names) if (path := sweep.parents[1] / name).is_dir())


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print("\n".join(text_of(Path(sys.argv[1]))))
