"""Conformance cases on engines: which find the matches expected, which fewer, which more, which cannot say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from cepbench.arguments import elements, shown, texts
from cepbench.errors import ExperimentError
from cepbench.experiments.conformance.adapters import OUTSIDE_ENGINES as OUTSIDE_ENGINES
from cepbench.experiments.conformance.cases import Case, Match, alike, read_cases, written
from cepbench.experiments.conformance.checker import Report
from cepbench.experiments.conformance.outside import NotInstalled, OutsideEngine

#: What an engine says of a case, from the best to none.
STATUSES = EQUAL, FEWER, MORE, OTHER, CANNOT_SAY, NOT_INSTALLED = (
    "equal", "fewer", "more", "fewer and more", "cannot say", "not installed",
)  # fmt: skip

#: Those that differ.
DIFFERS = (FEWER, MORE, OTHER)

_COLUMNS = ("case", "theme", "rule", "engine", "status", "reason", "expected", "lacking", "beyond")


def compare_engines(
    engines: Iterable[str] | None = None,
    cases: str | Path | Sequence[Case] = "conformance/cases",
) -> Conformance:
    """Run conformance cases on engines and compare their matches with those expected.

    Raises
    ------
    ExperimentError
        If there is no such engine.
    CaseError
        If there are no cases, or a file of them is broken.

    Parameters
    ----------
    engines : str or sequence of str, optional
        Names in ``cep.OUTSIDE_ENGINES``, among them those registered by ``@cep.outside_engine``; by default
        all. What installs one that is not here is in the ``reason``.
    cases : path or sequence of Case
        A folder with the files of :mod:`cepbench.experiments.conformance.cases`.

    Returns
    -------
    Conformance
    """
    wanted = texts(OUTSIDE_ENGINES if engines is None else engines, "engines", ExperimentError)
    chosen = [OUTSIDE_ENGINES.find(name) for name in wanted]
    read = cases_from(cases)
    rows = [row for engine in chosen for row in _rows(engine, read)]
    return Conformance(pd.DataFrame(rows, columns=list(_COLUMNS)), tuple(read))


def cases_from(given: Any) -> list[Case]:
    """The cases of a folder, or those listed; anything else is an ExperimentError."""
    if isinstance(given, str | Path):
        return read_cases(given)
    read = elements(given, "cases", '"conformance/cases"', ExperimentError)
    for case in read:
        if not isinstance(case, Case):
            raise ExperimentError(f"cases are a folder, or a list of cases, not {shown(case)}")
    return read


def _rows(engine: OutsideEngine, cases: Sequence[Case]) -> Iterator[dict[str, object]]:
    for case, answer in zip(cases, engine.answers(cases), strict=True):
        expected = alike(case.expected)
        known = expected if isinstance(answer, str) else alike(answer)
        lacking, beyond = (_listed(its) for its in (expected - known, known - expected))
        status = {(False, False): EQUAL, (True, False): FEWER, (False, True): MORE}.get(
            (bool(lacking), bool(beyond)), OTHER
        )
        said = isinstance(answer, str)
        silent = NOT_INSTALLED if isinstance(answer, NotInstalled) else CANNOT_SAY
        yield {
            "case": case.name,
            "theme": case.theme,
            "rule": case.rule,
            "engine": engine.name,
            "status": silent if said else status,
            "reason": answer if said else "",
            "expected": len(case.expected),
            "lacking": lacking,
            "beyond": beyond,
        }


def _listed(matches: Counter[Match]) -> tuple[Match, ...]:
    return tuple(sorted(matches.elements(), key=written))


@dataclass(frozen=True, repr=False)
class Conformance(Report):
    """What engines said of cases."""

    #: A row for each engine and case: ``case``, ``theme``, ``rule``, ``engine``, ``status`` (``equal``,
    #: ``fewer``, ``more``, ``fewer and more``, ``cannot say``, ``not installed``), the ``reason`` of the
    #: last two, the number of matches ``expected``, and those ``lacking`` and ``beyond``.
    table: pd.DataFrame
    cases: tuple[Case, ...]

    @property
    def counts(self) -> pd.DataFrame:
        """How many cases an engine answers how: a row an engine, a column a status."""
        counted = self.table.groupby(["engine", "status"], sort=False).size().unstack(fill_value=0)
        return counted.reindex(columns=list(STATUSES), fill_value=0)

    @property
    def missing(self) -> dict[str, str]:
        """Engine -> that it is not installed, and what installs it."""
        its = self.table[self.table["status"] == NOT_INSTALLED].drop_duplicates("engine")
        return {
            name: f"{NOT_INSTALLED}: {reason}"
            for name, reason in zip(its["engine"], its["reason"], strict=True)
        }

    def _heading(self) -> str:
        engines = self.table["engine"].nunique()
        differs = self.table["status"].isin(DIFFERS).sum()
        return f"{len(self.cases)} cases on {engines} engines: {differs} answers differ"

    def _lines(self) -> list[str]:
        missing = self.missing
        lines = [
            f"  {name:<12} {missing.get(str(name)) or _counted(its)}"
            for name, its in self.counts.iterrows()
        ]
        for row in self.table[self.table["status"].isin(DIFFERS)].to_dict("records"):
            lines.append(f"  {row['engine']:<12} {row['status']:<14} {row['case']} ({row['rule']})")
            for word, matches in (("lacks", row["lacking"]), ("beyond", row["beyond"])):
                if matches:
                    more = f", and {len(matches) - 1} more" if len(matches) > 1 else ""
                    lines.append(f"{'':28}{word} ({written(matches[0])}){more}")
        return lines


def _counted(its: pd.Series) -> str:
    return ", ".join(f"{number} {status}" for status, number in its.items() if number)
