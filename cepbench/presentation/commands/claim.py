"""``cepbench claim``: one claim of a paper, measured and judged alone."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

from cepbench.errors import ReportError, did_you_mean
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.options import declared, examples
from cepbench.presentation.commands.report import check_notebooks

#: Columns of a ledger that tell the tests of a claim apart.
_OF_A_TEST = ("regime", "engine", "predicates", "basis")

EXAMPLES = examples("cepbench claim", "cepbench claim ii-greedy-random --profile quick")


@declared
def claim(
    id: str | None = None,
    profile: str = "quick",
    study: list[str] | None = None,
    fresh: bool = False,
    output: Path = Path("reports"),
    notebooks: Path = Path("notebooks"),
    seed: int = 0,
    json: bool = False,
) -> None:
    """Measure and judge one claim of a paper, or list all.

    Its notebook is run, and nothing else; what the report has measured is read, unless it is to be
    fresh. The verdict and its numbers are those of the report.
    """
    with out.progress("loading claims"):
        from cepbench.experiments.studies.registry import STUDIES, studies_of
        from cepbench.presentation.reporting.claims import claims
        from cepbench.presentation.reporting.requests import requests_for
    its = {one.id: (one, paper) for paper in studies_of(study or []) for one in claims(paper)}
    if id is None:
        _list(list(its.values()), json=json)
        return
    everywhere = {one.id for paper in STUDIES.values() for one in claims(paper)}
    if id not in its:
        whose = (
            "is not one of --study" if id in everywhere else f"there is none{did_you_mean(id, its)}"
        )
        raise ReportError(f"claim {id!r}: {whose}; `cepbench claim` lists all")
    wanted, paper = its[id]
    stem = f"{paper.key}/{wanted.results}"
    results = output / stem / "results.parquet"
    if fresh or not results.exists():
        from cepbench.presentation.reporting.site import build_report

        check_notebooks(notebooks)
        build_report(
            output,
            profile=profile,
            seed=seed,
            notebooks=notebooks,
            only=requests_for([stem], notebooks),
            parameters={"fresh": True} if fresh else None,
            on_progress=lambda what, state: print(f"{what}: {state}", file=sys.stderr),
        )
    else:
        out.log(f"reading {results}, measured before; --fresh measures again")
    import pandas as pd

    from cepbench.presentation.reporting.verdicts import ledger

    table = ledger(paper.key, {wanted.results: pd.read_parquet(results)}, seed=seed)
    rows = table[table["id"] == id]
    if json:
        out.write_json({**_entry(wanted, paper), "page": f"{output / stem}.html", "tests": rows})
        return
    _show(rows, f"{output / stem}.html")


def _entry(one: Any, paper: Any) -> dict[str, Any]:
    return {
        "id": one.id,
        "study": paper.key,
        "figure": one.figure,
        "section": one.section,
        "notebook": one.results,
        "statement": one.statement,
    }


def _list(known: list[tuple[Any, Any]], *, json: bool) -> None:
    rows = [_entry(one, paper) for one, paper in known]
    if json:
        out.write_json(rows)
        return
    columns = {name: name for name in ("id", "study", "figure", "statement")}
    out.write_table(rows, columns, shrink="statement")


def _show(rows: Any, page: str) -> None:
    from cepbench.experiments.studies.profiles import PROFILES
    from cepbench.presentation.reporting.beside_reference import reference_ledger
    from cepbench.presentation.reporting.verdicts import (
        place_and_basis,
        shown_interval,
        shown_value,
    )

    first = rows.iloc[0]
    references = {
        profile: table[table["id"] == first["id"]]
        for profile in PROFILES
        if (table := reference_ledger(first["paper"], profile)) is not None
    }
    out.write_text(f"{first['statement']} ({first['paper']}, figure {first['figure']})")
    out.write_line(f"\n{first['overall']}{': ' if first['why'] else ''}{first['why']}")
    for profile, its in references.items():
        if len(its):
            out.write_line(f"reference, {profile}: {its['overall'].iloc[0]}")
    out.write_line()
    several = rows["basis"].nunique() > 1
    shown = [
        {
            "where": place_and_basis(row, ("regime", "engine", "predicates"), several=several),
            "measured": "" if math.isnan(row.value) else shown_value(row.value),
            "interval": shown_interval(row),
            "fails if": row.fails_if,
            "patterns": row.patterns,
            "verdict": row.verdict,
            **{
                f"reference, {profile}": _same_test(its, row) for profile, its in references.items()
            },
        }
        for row in rows.itertuples(index=False)
    ]
    out.write_table(shown, {name: name for name in shown[0]}, shrink="where")
    out.write_line()
    for check in dict.fromkeys(rows["check"]):
        out.write_text(check)
    if first["reason"]:
        out.write_text(f"\n{first['title']}. {first['reason']}")
    out.write_line(f"\npage: {page}")


def _same_test(reference: Any, row: Any) -> str:
    """What the reference measured in the same place: value and interval; empty if it did not."""
    from cepbench.presentation.reporting.verdicts import shown_measured

    for its in reference.itertuples(index=False):
        if all(getattr(its, name) == getattr(row, name) for name in _OF_A_TEST):
            return "" if math.isnan(its.value) else shown_measured(its)
    return ""
