"""Numbers of the front page, all read from the results of the run."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
from markupsafe import Markup

from cepbench.experiments.studies.registry import find_study
from cepbench.experiments.studies.study import Study
from cepbench.experiments.sweeps.cells import OK
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.presentation.reporting import verdicts
from cepbench.presentation.reporting.claim_scale import scale_of
from cepbench.presentation.reporting.claims import Claim, claims_by_id, ledger_file
from cepbench.presentation.reporting.states import (
    OPEN,
    PLURAL,
    STATES,
    UNDECIDED,
    state_of,
    states_in_setting,
)
from cepbench.presentation.reporting.verdicts import shown_percent, shown_value

#: The page on which all claims stand.
CLAIMS_PAGE = "claims.html"

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
    #: Value and ends of the interval; the first is not a number if nothing was measured.
    numbers: tuple[float, float, float] = (math.nan, math.nan, math.nan)
    #: How many patterns it is of, and why nothing was measured.
    counted: str = ""
    #: The range that the claim expects.
    expected: tuple[float, float] = (-math.inf, math.inf)
    #: Whether it is of another engine than the paper's.
    also: bool = False
    #: What is compared, such as throughput.
    basis: str = ""

    @property
    def expected_text(self) -> str:
        """The range in words."""
        low, high = (f"{end:g}".replace("-", "−") for end in self.expected)
        if math.isinf(self.expected[1]):
            return f"{low} or more"
        return f"{high} or less" if math.isinf(self.expected[0]) else f"{low} to {high}"


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of the ledger with its verdict as a whole, and a cell a setting and test."""

    statement: str
    cells: tuple[Cell, ...]
    verdict: str
    #: On the page of claims.
    anchor: str = ""
    #: Label of the paper, its figure, and the page of its results.
    paper: str = ""
    figure: str = ""
    page: str = ""
    #: Why it does not hold everywhere, a few words on the reason, and the reason in full.
    why: str = ""
    title: str = ""
    reason: str = ""
    #: Its checks, in words.
    checks: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()

    @property
    def link(self) -> str:
        """Where all of it stands, relative to the site."""
        return f"{CLAIMS_PAGE}#{self.anchor}"

    @property
    def deciding(self) -> list[Cell]:
        """What was measured in the settings that decide, on the basis whose verdict is the claim's.

        That is what the claim is about, else work; on all bases where the verdict needs several.
        """
        found = [its for its in self.cells if not its.also] or [*self.cells]
        # In a setting the last test is on what the claim is about.
        for basis in dict.fromkeys(its.basis for its in reversed(found)):
            cells = [its for its in found if its.basis == basis]
            alone = state_of(states_in_setting([(its.verdict, False)]) for its in cells)
            if alone == self.verdict:
                found = cells
                break
        return [its for its in found if its.measured != _NOTHING] or found

    @property
    def scale(self) -> Markup:
        """The numbers of :attr:`deciding` over the range that they are expected in, of several the last one."""
        expected = self.deciding[-1].expected
        return scale_of(expected, _drawn([c for c in self.deciding if c.expected == expected]))

    def scale_of(self, cell: Cell) -> Markup:
        """One number over its expected range, on a scale of all that expect the same."""
        alike = [its for its in self.cells if its.expected == cell.expected]
        return scale_of(cell.expected, _drawn([cell]), _drawn(alike))


def _drawn(cells: Sequence[Cell]) -> list[tuple[float, float, float]]:
    return [its.numbers for its in cells if not math.isnan(its.numbers[0])]


def judged_claims(
    ledger: pd.DataFrame, stems: Collection[str] = ()
) -> dict[str, list[JudgedClaim]]:
    """Name of a page → the claims that are judged from its results, in the order of the ledger.

    The table is that of :func:`cepbench.presentation.reporting.verdicts.ledger`; ``stems`` are those of
    the pages that there are.
    """
    found: dict[str, list[JudgedClaim]] = {}
    varied = verdicts.varied_in(ledger)
    for claim, rows in _known(ledger):
        first = rows[0]
        stem = f"{first.paper}/{claim.results}"
        judged = JudgedClaim(
            claim.statement,
            tuple(_cell(claim, row, varied) for row in rows),
            first.overall,
            f"{first.paper}-{claim.id}",
            find_study(first.paper).label,
            claim.figure,
            f"{stem}.html" if stem in stems else "",
            first.why,
            first.title,
            first.reason,
            tuple(dict.fromkeys(row.check for row in rows)),
            tuple(dict.fromkeys(row.engine for row in rows if row.engine)),
        )
        found.setdefault(claim.results, []).append(judged)
    return found


def _cell(claim: Claim, row: Any, varied: Sequence[str]) -> Cell:
    """A row of the ledger; the ledger may be older than the file of the claim."""
    test = next((its for its in claim.tests if its.text == row.check), claim.main)
    return Cell(
        verdicts.place_and_basis(row, varied, several=len(claim.tests) > 1),
        _NOTHING if pd.isna(row.value) else shown_value(row.value),
        verdicts.shown_interval(row),
        row.verdict,
        (row.value, row.low, row.high),
        _counts(row),
        (test.low, test.high),
        row.also,
        row.basis,
    )


def _counts(row: Any) -> str:
    """How many patterns, and how many of them are bounds or left out; or what is missing."""
    if pd.isna(row.value):
        return f"{row.lack}: {row.detail}"
    counts = [f"{row.patterns} patterns"]
    counts += [f"{row.bounds} bounds"] if row.bounds else []
    counts += [f"{row.left_out} left out"] if row.left_out else []
    return ", ".join(counts)


def headlines(ledger: pd.DataFrame) -> list[JudgedClaim]:
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
            found.append(JudgedClaim(claim.statement, tuple(cells), rows[0].overall))
    return found


def sentence_of(claims: Sequence[JudgedClaim]) -> str:
    """What was found, in a sentence with its numbers and verdict, of the first claim that was decided; empty without claims."""
    decided = [claim for claim in claims if claim.verdict not in (UNDECIDED, OPEN)]
    return next((f"{claim.statement} Here: {_here(claim)}" for claim in decided or claims), "")


def _here(claim: JudgedClaim) -> str:
    """The numbers that decide, and the verdict."""
    parts = [
        f"{cell.measured}{f' ({cell.place})' if cell.place else ''}"
        f"{f', 95 %: {cell.interval}' if cell.interval else ''}"
        for cell in claim.deciding
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
