"""Numbers of the front page, all read from the results of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from cepbench.reporting.ledger import FAILS, HOLDS, OPEN, Claim, claims, shown_value
from cepbench.studies.registry import find_study
from cepbench.sweeps.cells import OK

#: Verdict -> class of its look in the style sheet, and a sign, since colour alone says nothing.
LOOKS = {HOLDS: ("holds", "✓"), FAILS: ("fails", "✗"), OPEN: ("open", "?")}

#: Columns of results that :func:`facts` reads.
_COUNTED = ["pattern", "generator", "status", "seconds", "events"]


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of the ledger with its verdict.

    Attributes
    ----------
    statement : str
    measured : str
        Value, or the claim's headline with it; a dash if nothing was measured.
    interval : str
        Empty if there is none.
    verdict : str
        A key of :data:`LOOKS`.
    link : str
        Where the claim is explained; empty if no page of the site does.
    """

    statement: str
    measured: str
    interval: str
    verdict: str
    link: str


def verdicts_by_figure(
    ledger: pd.DataFrame, link: Callable[[Claim], str]
) -> dict[str, list[JudgedClaim]]:
    """Figure of a study's paper -> its claims, in the order of the ledger.

    Parameters
    ----------
    ledger : DataFrame
        As :func:`cepbench.reporting.ledger.ledger` returns it.
    link : callable
        Claim -> where it is explained.
    """
    found: dict[str, list[JudgedClaim]] = {}
    for claim, row in _known(ledger):
        measured = "–" if pd.isna(row.value) else _minus(shown_value(row.value))
        judged = JudgedClaim(row.statement, measured, _interval(row), row.verdict, link(claim))
        found.setdefault(row.figure, []).append(judged)
    return found


def headlines(ledger: pd.DataFrame, link: Callable[[Claim], str]) -> list[JudgedClaim]:
    """Claims that have a ``headline`` in the ledger's file and were measured.

    Parameters
    ----------
    ledger, link
        As in :func:`verdicts_by_figure`.
    """
    found = []
    for claim, row in _known(ledger):
        if claim.headline and not pd.isna(row.value):
            shown = {"value": _minus(shown_value(row.value)), "percent": _percent(row.value)}
            interval = _interval(row, in_percent="{percent}" in claim.headline)
            measured = claim.headline.format(**shown)
            found.append(JudgedClaim(row.statement, measured, interval, row.verdict, link(claim)))
    return found


def facts(folder: Path, stems: list[str]) -> list[tuple[str, str]]:
    """How much was done, as numbers with what they count; only what some page's results hold.

    Parameters
    ----------
    folder : Path
        Of the site.
    stems : list of str
        Notebooks whose ``results.parquet`` are read.
    """
    tables = list(_results(folder, stems))
    if not tables:
        return []
    rows = pd.concat(tables).reindex(columns=_COUNTED)
    ended = rows[(rows["status"] == OK) & rows["seconds"].notna() & rows["events"].notna()]
    found = {
        "runs measured": len(ended),
        "events processed": int(ended["events"].sum()),
        "patterns": rows["pattern"].nunique(),
        "plan generators": rows["generator"].nunique(),
    }
    return [(_large(number), what) for what, number in found.items() if number]


def _known(ledger: pd.DataFrame) -> Iterator[tuple[Claim, Any]]:
    """Rows with their claims, without those that the ledger of today does not have."""
    by_id = {
        (key, claim.id): claim
        for key in ledger["paper"].unique()
        for claim in claims(find_study(key))
    }
    rows: Iterator[Any] = ledger.itertuples(index=False)
    return ((by_id[row.paper, row.id], row) for row in rows if (row.paper, row.id) in by_id)


def _interval(row: Any, *, in_percent: bool = False) -> str:
    """Empty where nothing was measured or there is no spread, as with the longest of all times."""
    if pd.isna(row.value) or row.low == row.high:
        return ""
    written = _percent if in_percent else shown_value
    return _minus(f"{written(row.low)} to {written(row.high)}")


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _results(folder: Path, stems: list[str]) -> Iterator[pd.DataFrame]:
    for path in (folder / stem / "results.parquet" for stem in stems):
        if path.exists():
            names = set(pq.read_schema(path).names)
            yield pd.read_parquet(path, columns=[name for name in _COUNTED if name in names])


def _large(count: int) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:,}"
