"""The reference results of the package, from a finished report.

``python -m cepbench.presentation.reporting.reference_results keep REPORT PROFILE`` keeps its sweeps, the tables that
its notebooks measured and its verdicts; the profile is ``full`` or ``quick``, of which tables are not kept, since
nothing is drawn from them. What is not finished is kept as far as it came, and ``resume REPORT`` lays the full profile
out again for another sitting, or machine, to go on with.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from cepbench.experiments.studies.measured import study_sweep
from cepbench.experiments.studies.profiles import MEASURED_AS
from cepbench.experiments.studies.reference import (
    keep_sweep,
    keep_table,
    kept_table,
    lacking,
    results_folder,
    resume_sweep,
)
from cepbench.experiments.studies.registry import STUDIES
from cepbench.experiments.sweeps.store import count_rows
from cepbench.experiments.sweeps.sweep_file import named_sweeps
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.notebooks import measured_tables
from cepbench.presentation.reporting.requests import LEDGER

#: Columns of a ledger that are kept.
VERDICTS = ["id", "overall", "regime", "engine", "predicates", "also", "basis", "value", "low", "high",
            "patterns", "verdict"]  # fmt: skip


def keep_report(report: Path, profile: str) -> Iterator[Path]:
    """Write the reference results of all studies, and return the files."""
    for name in named_sweeps():
        sweep = study_sweep(name, profile, report / "data")
        if count_rows(sweep.folder):
            key, _, short = name.partition("/")
            yield from keep_sweep(sweep.folder, sweep.streams, results_folder(key, profile), short)
    for key, study in STUDIES.items():
        for page in study.notebooks if profile == MEASURED_AS else ():
            for name in measured_tables(report / key / page / f"{page}.ipynb"):
                whole = pd.read_parquet(report / f"{name}.parquet")
                yield from keep_table(whole, kept_table(name))
        ledger = report / key / LEDGER / f"{LEDGER}.parquet"
        if ledger.exists():
            # Of pages that were not run there is no verdict, rather than "not testable".
            known = [
                claim.id
                for claim in claims(study)
                if (report / key / claim.results / "results.parquet").exists()
            ]
            table = pd.read_parquet(ledger)
            yield from keep_table(
                table.loc[table["id"].isin(known), VERDICTS], results_folder(key, profile) / LEDGER
            )


def resume_report(report: Path) -> Iterator[Path]:
    """Lay out what the package has of sweeps of the full profile, for a run to complete; returns their folders."""
    for name in named_sweeps():
        if not lacking([name], []):
            key, _, short = name.partition("/")
            sweep = study_sweep(name, MEASURED_AS, report / "data")
            resume_sweep(key, short, sweep.folder)
            yield sweep.folder


if __name__ == "__main__":
    report, *profile = sys.argv[2:]
    if sys.argv[1] == "keep":
        written = list(keep_report(Path(report), *profile))
        print(f"{len(written)} files, {sum(path.stat().st_size for path in written) / 1e6:.1f} MB")
    else:
        print(f"{len(list(resume_report(Path(report))))} sweeps")
