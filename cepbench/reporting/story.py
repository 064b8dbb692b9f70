"""What the front page tells in numbers. All of them are read from the results of the run."""

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


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim of the ledger with what became of it.

    Attributes
    ----------
    statement : str
    measured : str
        Value and interval; a dash if nothing was measured.
    verdict : str
    look, sign : str
        See :data:`LOOKS`.
    link : str
        Where the claim is explained; empty if no page of the site does.
    """

    statement: str
    measured: str
    verdict: str
    look: str
    sign: str
    link: str


@dataclass(frozen=True, slots=True)
class Headline:
    """A claim of a paper beside one sentence of what was measured; the rest as in Verdict."""

    claim: str
    measured: str
    interval: str
    verdict: str
    look: str
    sign: str
    link: str


def verdicts_by_figure(
    ledger: pd.DataFrame, link: Callable[[Claim], str]
) -> dict[str, list[Verdict]]:
    """Figure of a study's paper -> its claims, in the order of the ledger.

    Parameters
    ----------
    ledger : DataFrame
        As :func:`cepbench.reporting.ledger.ledger` returns it.
    link : callable
        Claim -> where it is explained.
    """
    found: dict[str, list[Verdict]] = {}
    for claim, row in _known(ledger):
        measured = "–" if pd.isna(row.value) else _with_interval(row)
        verdict = Verdict(row.statement, measured, row.verdict, *LOOKS[row.verdict], link(claim))
        found.setdefault(row.figure, []).append(verdict)
    return found


def headlines(ledger: pd.DataFrame, link: Callable[[Claim], str]) -> list[Headline]:
    """Claims that have a ``headline`` in the ledger's file and were measured.

    Parameters
    ----------
    ledger, link
        As in :func:`verdicts_by_figure`.
    """
    return [
        Headline(
            row.statement,
            claim.headline.format(
                value=_minus(shown_value(row.value)), percent=_percent(row.value)
            ),
            _interval(row, in_percent="{percent}" in claim.headline),
            row.verdict,
            *LOOKS[row.verdict],
            link(claim),
        )
        for claim, row in _known(ledger)
        if claim.headline and not pd.isna(row.value)
    ]


def facts(folder: Path, stems: list[str]) -> list[tuple[str, str]]:
    """How much was done, as numbers with what they count; only what some page's results hold.

    Parameters
    ----------
    folder : Path
        Of the site.
    stems : list of str
        Notebooks whose ``results.parquet`` are read.
    """
    runs = events = 0
    patterns: set[str] = set()
    generators: set[str] = set()
    for table in _results(folder, stems):
        patterns |= set(table.get("pattern", pd.Series(dtype=str)).dropna())
        generators |= set(table.get("generator", pd.Series(dtype=str)).dropna())
        if {"status", "seconds", "events"} <= set(table.columns):
            ended = table[(table["status"] == OK) & table["seconds"].notna()]
            runs += len(ended)
            events += int(ended["events"].sum())
    found = {
        "runs measured": f"{runs:,}" if runs else "",
        "events processed": _large(events) if events else "",
        "patterns": f"{len(patterns):,}" if patterns else "",
        "plan generators": f"{len(generators)}" if generators else "",
    }
    return [(number, what) for what, number in found.items() if number]


def _known(ledger: pd.DataFrame) -> Iterator[tuple[Claim, Any]]:
    """Rows with their claims; what an older report judged and the ledger no longer has is left out."""
    by_id = {
        (key, claim.id): claim
        for key in ledger["paper"].unique()
        for claim in claims(find_study(key))
    }
    rows: Iterator[Any] = ledger.itertuples(index=False)
    for row in rows:
        if (row.paper, row.id) in by_id:
            yield by_id[row.paper, row.id], row


def _interval(row: Any, *, in_percent: bool = False) -> str:
    """Empty where there is no spread, as with the longest of all times."""
    if row.low == row.high:
        return ""
    written = _percent if in_percent else shown_value
    return _minus(f"{written(row.low)} to {written(row.high)}")


def _with_interval(row: Any) -> str:
    value, interval = _minus(shown_value(row.value)), _interval(row)
    return f"{value} ({interval})" if interval else value


def _percent(value: float) -> str:
    return f"{100 * value:.0f} %"


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _results(folder: Path, stems: list[str]) -> Iterator[pd.DataFrame]:
    wanted = {"pattern", "generator", "status", "seconds", "events"}
    for stem in stems:
        path = folder / stem / "results.parquet"
        if path.exists():
            names = [name for name in pq.read_schema(path).names if name in wanted]
            yield pd.read_parquet(path, columns=names)


def _large(count: int) -> str:
    for unit, name in ((1e9, "billion"), (1e6, "million")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count:,}"
