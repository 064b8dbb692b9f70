"""Numbers of the front page, all read from the results of the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from cepbench.experiments.studies.registry import find_study
from cepbench.experiments.studies.study import Study
from cepbench.experiments.sweeps.cells import OK
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.presentation.reporting import verdicts
from cepbench.presentation.reporting.claims import Claim, claims_by_id, ledger_file
from cepbench.presentation.reporting.states import OPEN, PLURAL, STATES, UNDECIDED
from cepbench.presentation.reporting.verdicts import shown_percent, shown_value

#: Columns of results that :func:`facts` reads.
_COUNTED = ["pattern", "generator", "status", "seconds", "events"]

#: Stands for what was not measured.
_NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Cell:
    """A claim measured in one setting."""

    #: Regime, engine and predicates, and the basis where a claim is tested on several; empty where there
    #: is one of each. An engine beside the paper's is "also".
    place: str
    #: Value, or the claim's headline with it; a dash if nothing was measured.
    measured: str
    interval: str
    verdict: str


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of the ledger with its verdict as a whole, a cell a setting and test, and where it is explained, if at all."""

    statement: str
    cells: tuple[Cell, ...]
    verdict: str
    link: str
    #: Label of the paper, and its figure.
    paper: str = ""
    figure: str = ""


def judged_claims(
    ledger: pd.DataFrame, link: Callable[[Claim], str]
) -> dict[str, list[JudgedClaim]]:
    """Name of a page → the claims that are judged from its results, in the order of the ledger.

    The table is that of :func:`cepbench.presentation.reporting.verdicts.ledger`; ``link`` gives the place
    where a claim is explained.
    """
    found: dict[str, list[JudgedClaim]] = {}
    varied = verdicts.varied_in(ledger)
    for claim, rows in _known(ledger):
        several = len(claim.tests) > 1
        cells = [
            Cell(
                verdicts.place_and_basis(row, varied, several=several),
                _NOTHING if pd.isna(row.value) else shown_value(row.value),
                verdicts.shown_interval(row),
                row.verdict,
            )
            for row in rows
        ]
        judged = JudgedClaim(
            claim.statement, tuple(cells), rows[0].overall, link(claim),
            find_study(rows[0].paper).label, claim.figure,
        )  # fmt: skip
        found.setdefault(claim.results, []).append(judged)
    return found


def headlines(ledger: pd.DataFrame, link: Callable[[Claim], str]) -> list[JudgedClaim]:
    """Claims that have a ``headline`` in the ledger's file and were measured; see :func:`judged_claims`."""
    found = []
    varied = verdicts.varied_in(ledger)
    for claim, rows in _known(ledger):
        if not claim.headline:
            continue
        written = shown_percent if "{percent}" in claim.headline else shown_value
        cells = [
            Cell(
                verdicts.place_of(row, varied),
                claim.headline.format(
                    value=shown_value(row.value), percent=shown_percent(row.value)
                ),
                verdicts.shown_interval(row, written),
                row.verdict,
            )
            for row in rows
            if not (row.also or row.basis != claim.main.basis or pd.isna(row.value))
        ]
        if cells:
            found.append(JudgedClaim(claim.statement, tuple(cells), rows[0].overall, link(claim)))
    return found


def sentence_of(claims: Sequence[JudgedClaim]) -> str:
    """What was found, in a sentence with its numbers and verdict, of the first claim that was decided; empty without claims."""
    decided = [claim for claim in claims if claim.verdict not in (UNDECIDED, OPEN)]
    return next((f"{claim.statement} Here: {_here(claim)}" for claim in decided or claims), "")


def _here(claim: JudgedClaim) -> str:
    """The numbers of the last test in each setting, and the verdict."""
    measured = [cell for cell in claim.cells if cell.measured != _NOTHING] or claim.cells
    last = {cell.place.partition(", ")[0]: cell for cell in measured}
    parts = [
        f"{cell.measured}{f' ({cell.place})' if cell.place else ''}"
        f"{f', 95 %: {cell.interval}' if cell.interval else ''}"
        for cell in last.values()
    ]
    return f"{'; '.join(parts)}: {claim.verdict}."


def regime_lines(
    study: Study, ledger: pd.DataFrame, numbers: pd.DataFrame
) -> list[tuple[str, str]]:
    """What holds where, in a line for each regime whose numbers are known and one for all.

    Tables are those of :mod:`cepbench.presentation.reporting.verdicts`. A line is a regime, empty for all,
    and its sentences.
    """
    file = ledger_file(study)
    quoted = verdicts.quotable(ledger, numbers)
    lines = []
    for regime in [name for name in ledger["regime"].unique() if name]:
        text = verdicts.filled(file.regime_line, quoted, regime=regime)
        if text:
            rows = verdicts.tested(ledger[ledger["regime"] == regime])
            overall = [verdicts.overall_of(part) for _, part in rows.groupby("id", sort=False)]
            lines.append((regime, f"{_counted(overall)} {text}"))
    text = verdicts.filled(file.last_line, quoted)
    if text:
        lines.append(("", f"{_counted(list(verdicts.by_claim(ledger)['overall']))} {text}"))
    return lines


def facts(folder: Path, stems: list[str]) -> list[tuple[str, str]]:
    """How much was done, as numbers with what they count; only what the results of some page hold.

    ``folder`` is that of the site; ``stems`` are the notebooks whose ``results.parquet`` are read.
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
        # Results also name plans given by hand and adaptation policies there.
        "plan generators": len(set(rows["generator"]).intersection(PLAN_GENERATORS)),
    }
    return [(_large(number), what) for what, number in found.items() if number]


def _counted(overall: list[str]) -> str:
    """How many of the claims have each verdict, as a sentence."""
    words = ", ".join(
        f"{count} {verdict if count == 1 else PLURAL[verdict]}"
        for verdict in STATES
        if (count := overall.count(verdict))
    )
    return f"Of {len(overall)} claims, {words}."


def _known(ledger: pd.DataFrame) -> Iterator[tuple[Claim, list[Any]]]:
    """Claims with their rows, without those that the ledger of today does not have."""
    by_id = claims_by_id(ledger["paper"].unique())
    for which, rows in ledger.groupby(["paper", "id"], sort=False):
        if which in by_id:
            yield by_id[which], list(rows.itertuples(index=False))


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
