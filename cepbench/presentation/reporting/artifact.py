"""ARTIFACT.md: each claim, the command that judges it, how long that takes, what it should give, and where.

``python -m cepbench.presentation.reporting.artifact REPORT >ARTIFACT.md`` reads the ledgers and a finished report,
whose numbers are the reference.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd

from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.studies.study import Study
from cepbench.presentation.reporting.claims import Claim, claims
from cepbench.presentation.reporting.verdicts import shown_interval, shown_value

_HEAD = """\
# Artifact

What a reviewer runs, how long it takes, and what should come out. This file is made by
`python -m cepbench.presentation.reporting.artifact REPORT` from the ledgers and a finished report.

## Ten minutes

Needed: Python 3.11 or newer, make, 4 GiB of free memory, {space} GiB of disk, and PyPI once. Nothing is downloaded later.

```sh
make env                       # packages, compiled kernels: five minutes on two cores
source .venv/bin/activate
cepbench doctor                # every engine against DuckDB, and Spark: all lines are ok
cepbench compare --pattern-name rare-last --data nasdaq-style/sample
cepbench claim {first}
```

## Everything

`make report` measures the quick profile of all studies and draws the site; `make test` compares all engines with the naive
matcher. `make report REPORT_ARGS="--profile full"` are the papers' sizes: hours, resumed where they were interrupted.

## Claims

`cepbench claim ID` runs the notebook of one claim and judges it as the report does. *Expected* is where the ledger says that the
number has to be; *measured* what the quick profile gave, with its 95 % interval, on the paper's engine and in the first of
several settings. Claims that do not hold are listed as such; the reasons are on the report's page `claims.html`. *Minutes* are
those of its notebook with its sweeps, which other claims on the same page share. Measured on {machine}.
"""


def text_of(report: Path) -> Iterator[str]:
    """The lines of the file, by a finished report."""
    space = sum(file.stat().st_size for file in report.rglob("*") if file.is_file()) / (1 << 30)
    tables = []
    for study in STUDIES.values():
        minutes = _minutes(study, report)
        judged = pd.read_parquet(report / study.key / "ledger" / "ledger.parquet")
        tables += ["", f"### {study.label}", "", *_table(study, judged, minutes)]
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


def _table(study: Study, judged: pd.DataFrame, minutes: dict[str, float]) -> Iterator[str]:
    yield "| `cepbench claim` | figure | claim | expected | measured | verdict | minutes |"
    yield "|---|---|---|---|---|---|---:|"
    for claim in claims(study):
        rows = judged[judged["id"] == claim.id]
        its = rows[(rows["basis"] == claim.main.basis) & ~rows["also"] & rows["value"].notna()]
        row = next(its.itertuples(index=False), None)
        interval = row is not None and shown_interval(row)
        measured = "–" if row is None else shown_value(float(row.value))  # type: ignore[arg-type]
        if interval:
            measured += f" ({interval})"
        yield (
            f"| {claim.id} | {claim.figure} | {claim.statement} | {expected(claim)} | {measured} "
            f"| {rows['overall'].iloc[0]} | {minutes[claim.results]:.1f} |"
        )


def _notebook(study: Study, report: Path, name: str) -> Mapping[str, Any]:
    """What an executed notebook says of its run."""
    path = report / study.key / name / f"{name}.ipynb"
    found: Mapping[str, Any] = nbformat.read(path, as_version=4).metadata
    return found


def _minutes(study: Study, report: Path) -> dict[str, float]:
    """Notebook → how long it and its sweeps took."""
    found = {}
    for name in study.notebooks:
        about = _notebook(study, report, name)
        seconds = about["papermill"]["duration"]
        for sweep in about.get("sweeps") or ():
            for folder in (report / "data" / "sweeps").glob(f"{sweep.rpartition('/')[2]}-*"):
                begun, ended = (folder / its for its in ("sweep.json", "results.parquet"))
                seconds += max(ended.stat().st_mtime - begun.stat().st_mtime, 0.0)
        found[name] = seconds / 60
    return found


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    print("\n".join(text_of(Path(sys.argv[1]))))
