"""A report beside the reference: its sweeps run by run, and its verdicts claim by claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.studies.against_reference import against_reference
from cepbench.experiments.studies.profiles import PROFILES
from cepbench.experiments.studies.reference import read_parts, results_folder
from cepbench.experiments.studies.registry import STUDIES
from cepbench.presentation.reporting.claims import claims
from cepbench.presentation.reporting.requests import LEDGER
from cepbench.presentation.reporting.story import CLAIMS_PAGE
from cepbench.presentation.reporting.verdicts import by_claim

#: The page.
REFERENCE_PAGE = "reference.html"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A claim's verdict here, and that of each profile of the reference; None where there is none."""

    paper: str
    figure: str
    statement: str
    link: str
    here: str
    reference: dict[str, str | None]

    @property
    def differs(self) -> bool:
        """Whether a profile of the reference has another verdict than this report."""
        return any(verdict not in (None, self.here) for verdict in self.reference.values())


@cache
def reference_ledger(study: str, profile: str) -> pd.DataFrame | None:
    """The verdicts of the reference, a row a claim, setting and test; None if it has none."""
    try:
        return read_parts(results_folder(study, profile) / LEDGER)
    except ExperimentError:
        return None


def verdicts_beside(report: Path) -> Iterator[Verdicts]:
    """Every claim that a report has judged, beside the reference; none if that has no verdicts."""
    for key, study in STUDIES.items():
        own = report / key / LEDGER / f"{LEDGER}.parquet"
        tables = {profile: reference_ledger(key, profile) for profile in PROFILES}
        if not own.exists() or all(table is None for table in tables.values()):
            continue
        known = {
            profile: {} if table is None else dict(zip(table["id"], table["overall"], strict=True))
            for profile, table in tables.items()
        }
        ids = {claim.id for claim in claims(study)}
        for row in by_claim(pd.read_parquet(own)).itertuples(index=False):
            if row.id in ids:
                yield Verdicts(
                    study.label,
                    str(row.figure),
                    str(row.statement),
                    f"{CLAIMS_PAGE}#{key}-{row.id!s}",
                    str(row.overall),
                    {profile: verdicts.get(row.id) for profile, verdicts in known.items()},
                )


def beside_reference(report: Path) -> dict[str, Any] | None:
    """What the page shows: ``verdicts``, and ``sweeps`` with what they differ in; None without a reference."""
    verdicts = list(verdicts_beside(report))
    sweeps = list(against_reference(report / "data"))
    return {"verdicts": verdicts, "sweeps": sweeps} if verdicts or sweeps else None
