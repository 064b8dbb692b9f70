"""Verdicts on the claims of a study: every claim measured and judged in every setting.

The claims are data, in ``ledger.toml``; the numbers come from :mod:`cepbench.experiments.analysis.checks`.
Papers compare averages over patterns. Here a claim is measured by the geometric mean of the
ratios of single patterns unless it is about averages, with a bootstrap interval: one pattern of a
thousand times the others' throughput then counts as much as any other.

A claim about throughput or memory is tested twice in each setting: on work, which no clock blurs,
and on what it is about. Where several engines ran it, the paper's own decides, and what the others
measured stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

import pandas as pd

from cepbench.experiments.analysis.checks import (
    NO_CASE,
    NO_DATA,
    ClaimCheck,
    Measured,
    is_of_runs,
    measure,
)
from cepbench.experiments.analysis.settings import Setting, by_setting
from cepbench.experiments.studies.registry import find_study
from cepbench.experiments.studies.study import Study
from cepbench.presentation.reporting import states
from cepbench.presentation.reporting.claims import (
    PARTIAL_MATCHES,
    PLACEHOLDER,
    Claim,
    ClaimTest,
    ledger_file,
)
from cepbench.text_table import with_prefix

#: Columns that name a setting.
SETTING = ("regime", "engine", "predicates")
_MEASURED = ("value", "low", "high", "patterns", "left_out", "bounds", "lack")
_BY_SETTING = list[tuple[Setting, pd.DataFrame]]
_Table = TypeVar("_Table", pd.DataFrame, pd.DataFrame | None)


def overall_of(rows: pd.DataFrame) -> str:
    """The state of one claim, of its rows of :func:`ledger` that decide, or of some of them."""
    its = rows[~rows["also"]] if not rows["also"].all() else rows
    return states.state_of(
        states.states_in_setting(zip(part["verdict"], part["is_timed"], strict=True))
        for _, part in its.groupby(list(SETTING), sort=False)
    )


def tested(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of :func:`ledger` that had data and a case."""
    return table[~table["lack"].isin([NO_DATA, NO_CASE])]


def ledger(
    study: str,
    tables: Mapping[str, pd.DataFrame],
    *,
    seed: int = 0,
    quoted: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Every claim of a study, by its citation key, measured and judged in every setting.

    Results are by notebook; a claim about a notebook that is not there is not testable. Only rows
    of the study's generators count: the claims are about those. The :func:`numbers` of these tables
    are ``quoted``, where they are already known.

    One row a claim, setting and test, claims in the order of the ledger: ``paper`` (its citation
    key), ``id``, ``figure``, ``section``, ``statement``, ``overall`` (verdict on the claim),
    ``why`` (it is not "holds", in a few words), ``title`` and ``reason`` (in full, where one is
    known); ``regime``, ``engine``, ``predicates`` (empty where results do not vary them),
    ``also`` (another engine than the paper's, which decides nothing), ``basis``, ``is_timed``,
    ``check``, ``fails_if``, ``value``, ``low``, ``high`` (95 % interval), ``patterns``,
    ``left_out``, ``bounds``, ``verdict``, ``lack`` and ``detail`` (why it is open).
    """
    its = find_study(study)
    file = ledger_file(its)
    settings = _settings(study, tables)
    rows = [
        {
            "paper": its.key,
            **{name: getattr(claim, name) for name in ("id", "figure", "section", "statement")},
            **row,
        }
        for claim in file.claims
        for row in _judged(claim, its, settings.get(claim.results, [(Setting(), None)]), seed)
    ]
    found = pd.DataFrame(rows)
    if quoted is None:
        quoted = numbers(study, tables, seed=seed)
    values = quotable(found, quoted)
    varied = varied_in(found)
    by_id = {claim.id: claim for claim in file.claims}
    parts = [
        _with_overall(by_id[str(name)], part, values, varied)
        for name, part in found.groupby("id", sort=False)
    ]
    first = ["paper", "id", "figure", "section", "statement", "overall", "why", "title", "reason"]
    whole = pd.concat(parts)
    return whole[[*first, *(name for name in whole if name not in first)]]


def numbers(study: str, tables: Mapping[str, pd.DataFrame], *, seed: int = 0) -> pd.DataFrame:
    """Numbers that sentences of a ledger quote and no claim is about; parameters are those of :func:`ledger`.

    One row a number and setting: ``id``, ``regime``, ``engine``, ``predicates``, ``basis``,
    ``value``, ``low``, ``high``, ``patterns``, ``left_out``, ``bounds``, ``lack``.
    """
    settings = _settings(study, tables)
    rows = [
        {
            "id": number.id,
            **asdict(setting),
            "basis": "",
            **_fields(measure(number.check, table, seed=seed)),
        }
        for number in ledger_file(find_study(study)).numbers
        for setting, table in _settings_of([number.check], settings.get(number.results, []))
    ]
    return pd.DataFrame(rows, columns=["id", *SETTING, "basis", *_MEASURED])


def _settings(study: str, tables: Mapping[str, pd.DataFrame]) -> dict[str, _BY_SETTING]:
    generators = find_study(study).generators
    return {
        name: by_setting(table[table["generator"].isin(generators)] if generators else table)
        for name, table in tables.items()
    }


def _settings_of(
    checks: Iterable[ClaimCheck], settings: Sequence[tuple[Setting, _Table]]
) -> list[tuple[Setting, _Table]]:
    """The settings to measure in: what is about plans alone is the same on every engine."""
    if any(map(is_of_runs, checks)):
        return list(settings)
    found: dict[Setting, _Table] = {}
    for setting, table in settings:
        found.setdefault(replace(setting, engine=""), table)
    return list(found.items())


def _fields(measured: Measured) -> dict[str, object]:
    return {name: getattr(measured, name) for name in _MEASURED}


def _judged(
    claim: Claim, study: Study, settings: Sequence[tuple[Setting, pd.DataFrame | None]], seed: int
) -> list[dict[str, Any]]:
    """Rows of a claim; a setting that has none of its data is left out beside those that have."""
    rows: list[dict[str, Any]] = []
    for setting, table in _settings_of([test.check for test in claim.tests], settings):
        for test in claim.tests:
            measured = measure(test.check, table, seed=seed)
            rows.append({**asdict(setting), "also": False, **_verdict(claim, test, measured)})
    informed = {tuple(row[name] for name in SETTING) for row in rows if row["lack"] != NO_DATA}
    rows = [row for row in rows if not informed or tuple(row[name] for name in SETTING) in informed]
    for engine in study.engines:
        of_engine = [row for row in rows if engine in (row["engine"], row["regime"])]
        if any(row["verdict"] != states.OPEN for row in of_engine):
            for row in rows:
                row["also"] = engine not in (row["engine"], row["regime"])
            break
    return rows


def _verdict(claim: Claim, test: ClaimTest, measured: Measured) -> dict[str, object]:
    verdict, lack, detail = states.judge(measured, test.low, test.high, is_factor=test.is_factor)
    if claim.absolute and verdict != states.OPEN:
        verdict, lack = states.OPEN, states.NOT_COMPARABLE
        detail = "a time in seconds on another machine"
    return {
        "basis": test.basis,
        "is_timed": test.is_timed,
        "check": test.text,
        "fails_if": test.fails_if,
        **_fields(measured),
        "verdict": verdict,
        "lack": lack,
        "detail": detail,
    }


def _with_overall(
    claim: Claim, part: pd.DataFrame, quoted: pd.DataFrame, varied: Sequence[str]
) -> pd.DataFrame:
    overall = overall_of(part)
    why = "" if overall == states.HOLDS else _why(part, overall, varied)
    title = reason = ""
    if claim.reason and overall != states.HOLDS:
        title = claim.reason.heading
        reason = filled(claim.reason.sentences, quoted)
    return part.assign(overall=overall, why=why, title=title, reason=reason)


def _why(part: pd.DataFrame, overall: str, varied: Sequence[str]) -> str:
    """Where a claim holds and where not; what is missing where it is not testable."""
    deciding = part[~part["also"]]
    if overall == states.OPEN:
        causes = dict.fromkeys(zip(deciding["lack"], deciding["detail"], strict=True))
        return "; ".join(f"{lack}: {detail}" for lack, detail in causes)
    rows_tested = tested(deciding)
    if rows_tested["verdict"].nunique() == 1 and overall != states.UNDECIDED:
        return ""
    texts = []
    for verdict in states.STATES:
        its = rows_tested[rows_tested["verdict"] == verdict]
        places: dict[str, list[str]] = {}
        rows: Iterable[Any] = its.itertuples(index=False)
        for row in rows:
            places.setdefault(place_of(row, varied), []).append(row.basis)
        several = part["basis"].nunique() > 1
        named = [
            ": ".join(text for text in (place, ", ".join(bases)) if text)
            if several or not place
            else place
            for place, bases in places.items()
        ]
        if named:
            texts.append(f"{verdict} ({'; '.join(named)})")
    return "; ".join(texts)


def varied_in(table: pd.DataFrame) -> list[str]:
    """Of :data:`SETTING` the columns with several values; a table of :func:`ledger`."""
    return [name for name in SETTING if table.loc[table[name] != "", name].nunique() > 1]


def place_of(row: object, varied: Sequence[str] = SETTING) -> str:
    """The setting of a row in words, of the columns that vary; empty if there are none."""
    regime, engine, predicates = (getattr(row, name) if name in varied else "" for name in SETTING)
    named = f"{predicates} predicates" if predicates else ""
    return ", ".join(text for text in (regime, engine, named) if text)


def quotable(*tables: pd.DataFrame) -> pd.DataFrame:
    """What was measured, of tables of :func:`ledger` and :func:`numbers`, for :func:`filled`."""
    columns = ["id", *SETTING, "basis", "value"]
    parts = [table.loc[table["value"].notna(), columns] for table in tables]
    return pd.concat([part for part in parts if len(part)] or parts[:1])


def filled(sentences: Sequence[str], found: pd.DataFrame, *, regime: str | None = None) -> str:
    """Sentences with the numbers of a run; one whose numbers were not all measured is left out.

    Numbers are in place of each :data:`~cepbench.presentation.reporting.claims.PLACEHOLDER`, from a table
    of :func:`quotable`: those of a regime, or each with its setting where there are several.
    """
    rows = found if regime is None else found[found["regime"] == regime]
    whole = []
    for template in sentences:
        sentence = template
        quoted = {
            its[0]: _quoted(its[1], its[2] or "", rows) for its in PLACEHOLDER.finditer(sentence)
        }
        if all(quoted.values()):
            for placeholder, text in quoted.items():
                sentence = sentence.replace(placeholder, text)
            whole.append(sentence)
    return " ".join(whole)


def _quoted(name: str, form: str, found: pd.DataFrame) -> str:
    """Value or values of a claim, on what it is about, or of a number; empty if there is none."""
    own = found[found["id"] == name]
    own = own[(own["basis"] == PARTIAL_MATCHES) == (form == PARTIAL_MATCHES)]
    own = own.drop_duplicates(list(SETTING), keep="last")  # its last test
    written = shown_percent if form == "percent" else shown_value
    rows: list[Any] = list(own.itertuples(index=False))
    if len(rows) == 1:
        return written(rows[0].value)
    varied = [column for column in SETTING if own[column].nunique() > 1]
    return ", ".join(f"{written(row.value)} ({place_of(row, varied)})" for row in rows)


def place_and_basis(row: Any, varied: Sequence[str], *, several: bool) -> str:
    """The setting of a row, with what it is tested on where there are several; an engine beside the paper's is "also"."""
    words = ("also" if row.also else "", place_of(row, varied), row.basis if several else "")
    return ", ".join(filter(None, words))


def shown_value(value: float) -> str:
    """Three digits or so, from 10 k to 999 T with a prefix; a question mark for an end that is not known."""
    if math.isinf(value):
        return "?"
    size = abs(float(f"{value:.3g}"))
    form = ".3g" if size < 0.1 else ".2f" if size < 1000 else ",.0f"
    text = f"{value:{form}}" if size < 10_000 else with_prefix(value)
    return text.replace("-", "−")


def shown_percent(value: float) -> str:
    """A share or ratio in percent."""
    return f"{100 * value:.0f} %".replace("-", "−")


def shown_interval(row: Any, written: Callable[[float], str] = shown_value) -> str:
    """Empty where nothing was measured or there is no spread, as with the longest of all times."""
    if pd.isna(row.value) or row.low == row.high:
        return ""
    return f"{written(row.low)} to {written(row.high)}"


def shown_measured(row: Any) -> str:
    """A number that was measured, with its interval in brackets: ``1.10 (1.09 to 1.13)``."""
    interval = shown_interval(row)
    return shown_value(float(row.value)) + (f" ({interval})" if interval else "")


def by_claim(table: pd.DataFrame) -> pd.DataFrame:
    """The first row of each claim of :func:`ledger`, with what is the same in all of its rows."""
    return table.drop_duplicates(["paper", "id"])


def counts_of(table: pd.DataFrame) -> dict[str, int]:
    """Verdict → how many claims of :func:`ledger` have it; every verdict is there."""
    overall = by_claim(table)["overall"]
    return {verdict: int((overall == verdict).sum()) for verdict in states.STATES}
