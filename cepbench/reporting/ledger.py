"""The ledger of a study: every claim of its paper beside what was measured, with a verdict.

The claims are data, in ``ledger.toml``; the numbers come from :mod:`cepbench.analysis.checks`.
Papers compare averages over patterns. Here a claim is measured by the geometric mean of the
ratios of single patterns, with a bootstrap interval: one pattern of a thousand times the others'
throughput then counts as much as any other.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import pandas as pd
from markupsafe import Markup
from pandas.io.formats.style import Styler

from cepbench.analysis.checks import CHECK_KINDS, ClaimCheck, Measured, Selection, measure
from cepbench.errors import ReportError
from cepbench.figures.rows import quantity_of
from cepbench.studies.registry import find_study
from cepbench.studies.study import Study

#: The verdicts.
HOLDS = "holds"
FAILS = "does not hold"
OPEN = "not testable at this profile"
VERDICTS = (HOLDS, FAILS, OPEN)
#: The verdicts on several claims.
PLURAL = {HOLDS: "hold", FAILS: "do not hold", OPEN: "are not testable at this profile"}

#: Keys of a claim's entry: texts that it must have, selections of runs, and options of its check.
_TEXTS = ("id", "figure", "section", "statement", "kind", "results", "metric")
_SIDES = ("over", "under", "than")
_OPTIONS = ("pattern_sets", "sizes", "needed_sizes", "across", "take")
#: Words for metrics that are not those of charts.
_METRICS = {
    "stream_throughput": "throughput of the whole stream",
    "plan_cost_times_seconds": "plan cost × planning time",
    "latency_mean": "mean latency",
    "events_per_second_by_latency": "throughput / latency",
}


@dataclass(frozen=True, slots=True)
class Reason:
    """Why claims of the paper do not hold here: in a few words, and in full."""

    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Claim:
    """An entry of the ledger.

    Attributes
    ----------
    id : str
        Unique.
    figure, section : str
        Of the claim's paper.
    statement : str
        What is claimed, in our own words.
    results : str
        The study's notebook whose results are read.
    check : ClaimCheck
        What is measured.
    low, high : float
        The expected range; infinite on a side that has no end.
    text : str
        The check in words.
    reason : Reason or None
        Why it comes out as it does, where that is not "holds" and known.
    headline : str
        What was measured in a few words, for the front page; empty if the claim is not on it.
    """

    id: str
    figure: str
    section: str
    statement: str
    results: str
    check: ClaimCheck
    low: float
    high: float
    text: str
    reason: Reason | None = None
    headline: str = ""

    @property
    def fails_if(self) -> str:
        """What would have to be measured for the verdict "does not hold"."""
        ends = []
        if self.low > -math.inf:
            ends.append(f"below {self.low:g}")
        if self.high < math.inf:
            ends.append(f"above {self.high:g}")
        return f"the interval is wholly {' or wholly '.join(ends)}"


@cache
def claims(study: Study) -> tuple[Claim, ...]:
    """All entries of a study's ledger, in its order.

    Parameters
    ----------
    study : Study

    Raises
    ------
    ReportError
        If an entry lacks a key, has an unknown one, or cannot fail, or a headline has no claim.
    """
    data = tomllib.loads(study.ledger.read_text(encoding="utf-8"))
    groups = data.get("groups", {})
    reasons = {name: Reason(**entry) for name, entry in data.get("reasons", {}).items()}
    lines = data.get("headlines", {})
    entries = tuple(
        _claim(entry, study, groups, reasons, lines.get(entry.get("id"), ""))
        for entry in data["claim"]
    )
    names = [entry.id for entry in entries]
    for name in lines:
        if name not in names:
            raise ReportError(f"{study.ledger} has a headline for {name!r}, but no such claim")
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ReportError(f"{study.ledger} has two claims {min(twice)!r}; give one another id")
    return entries


def judge(measured: Measured, low: float, high: float) -> tuple[str, str]:
    """Verdict on a measurement against an expected range, and why if it is left open.

    Parameters
    ----------
    measured : Measured
    low, high : float
        The claim holds if the whole interval is within, does not hold if all of it is outside.

    Returns
    -------
    verdict, why : str
    """
    if measured.problem:
        return OPEN, measured.problem
    if math.isnan(measured.low) or math.isnan(measured.high):
        return OPEN, "there is no interval"
    if low <= measured.low and measured.high <= high:
        return HOLDS, ""
    if measured.high < low or measured.low > high:
        return FAILS, ""
    ends = [f"{end:g}" for end in (low, high) if measured.low <= end <= measured.high]
    unknown = measured.left_out and measured.high == math.inf
    why = f"the interval contains {' and '.join(ends)}"
    return OPEN, f"{measured.left_out} runs did not end" if unknown else why


def ledger(
    study: str,
    tables: Mapping[str, pd.DataFrame],
    *,
    figures: Sequence[str] = (),
    seed: int = 0,
) -> pd.DataFrame:
    """Every claim of a study, measured and judged.

    Parameters
    ----------
    study : str
        Citation key.
    tables : mapping of str to DataFrame
        Notebook -> its results; a claim about a notebook that is not there is left open. Only rows
        of the study's generators count: the claims are about those.
    figures : sequence of str
        Claims about these figures only; all if there are none.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        One row a claim, in the order of the ledger: ``paper`` (its citation key), ``id``, ``figure``, ``section``,
        ``statement``, ``check``, ``fails_if``, ``value``, ``low``, ``high`` (95 % interval),
        ``patterns``, ``left_out``, ``verdict``, ``why`` (in a few words), ``reason`` (in full,
        where one is known); and ``saved``, ``saved_low``,
        ``saved_high``, for claims about throughput the same check on partial matches created,
        inverted: by what factor fewer there are, with no clock involved.
    """
    its = find_study(study)
    counted = {
        name: table[table["generator"].isin(its.generators)] if its.generators else table
        for name, table in tables.items()
    }
    rows = []
    for claim in claims(its):
        if figures and claim.figure not in figures:
            continue
        measured = measure(claim.check, counted.get(claim.results), seed=seed)
        saved = _saved(claim.check, counted.get(claim.results), seed)
        verdict, why = judge(measured, claim.low, claim.high)
        reason = claim.reason if claim.reason and verdict != HOLDS else Reason("", "")
        rows.append(
            {
                "paper": its.key,
                **{name: getattr(claim, name) for name in ("id", "figure", "section", "statement")},
                "check": claim.text,
                "fails_if": claim.fails_if,
                **{name: getattr(measured, name) for name in ("value", "low", "high")},
                "saved": 1 / saved.value,
                "saved_low": 1 / saved.high,
                "saved_high": 1 / saved.low,
                "patterns": measured.patterns,
                "left_out": measured.left_out,
                "verdict": verdict,
                "why": " ".join(_sentence(text) for text in (why, reason.title) if text),
                "reason": reason.text,
            }
        )
    return pd.DataFrame(rows)


def _saved(check: ClaimCheck, table: pd.DataFrame | None, seed: int) -> Measured:
    """The same check on partial matches, where they tell what the plan does for throughput."""
    # The lowest ratio of one is the highest of its inverse.
    one_number = not check.across or check.take == "median"
    if check.metric != "events_per_second" or check.under is None or not one_number:
        return Measured()
    return measure(replace(check, metric="partial_matches_created"), table, seed=seed)


def counts_of(table: pd.DataFrame) -> dict[str, int]:
    """Verdict -> how many claims have it; every verdict is there."""
    return {verdict: int((table["verdict"] == verdict).sum()) for verdict in VERDICTS}


def ledger_for_readers(table: pd.DataFrame, *, short: bool = False) -> Styler:
    """The table of :func:`ledger` for a notebook's cell.

    Parameters
    ----------
    table : DataFrame
    short : bool
        Without the checks and their conditions of failure, and without anchors: links lead to the
        longer table of a claim.
    """
    shown = pd.DataFrame(
        {
            "claim": table["statement"],
            "verdict": table["verdict"],
            "measured (95 %)": _with_intervals(table),
            "fewer partial matches by": _with_intervals(
                table, ("saved", "saved_low", "saved_high")
            ),
            "why": table["why"],
            "check": table["check"],
            "fails if": table["fails_if"],
            "patterns": _counted(table),
        }
    )
    if table["saved"].isna().all():
        shown = shown.drop(columns=["fewer partial matches by"])
    if short:
        shown = shown.drop(columns=["check", "fails if"])
    styler = _left_aligned(shown)
    if not short:
        anchors = dict(zip(table["statement"], table["id"], strict=True))

        def anchored(text: object) -> str:
            anchor = anchor_of(anchors[str(text)])
            return str(Markup('<span id="{}">{}</span>').format(anchor, text))

        styler = styler.format(anchored, subset=["claim"])
    return styler.map(_verdict_look, subset=["verdict"])


def display_claims(
    study: str, tables: Mapping[str, pd.DataFrame], *, figures: Sequence[str], seed: int = 0
) -> None:
    """In a notebook: the verdicts on the claims about some figures, and the reasons behind them.

    Parameters
    ----------
    study, tables, figures, seed
        As :func:`ledger` takes them.
    """
    from IPython.display import display

    verdicts = ledger(study, tables, figures=figures, seed=seed)
    display(ledger_for_readers(verdicts))
    if verdicts["reason"].any():
        display(reasons_for_readers(verdicts))


def anchor_of(claim: str) -> str:
    """Where the claim of such an id is in a page, without the ``#``."""
    return f"claim-{claim}"


def reasons_for_readers(table: pd.DataFrame) -> Styler:
    """The reasons behind the table of :func:`ledger`, each once, with the claims it is about."""
    known = table[table["reason"] != ""]
    titles = {
        claim.reason.text: claim.reason.title
        for key in table["paper"].unique()
        for claim in claims(find_study(key))
        if claim.reason
    }
    shown = known.groupby("reason", sort=False)["statement"].agg(" ".join).reset_index()
    shown.insert(0, "why", shown["reason"].map(titles))
    return _left_aligned(shown.rename(columns={"reason": "in full", "statement": "claims"}))


def for_readers(table: pd.DataFrame) -> Styler:
    """A table of numbers with intervals for people: ``1.93 (1.61 to 2.30)`` in place of three columns.

    Parameters
    ----------
    table : DataFrame
        Its intervals are in columns ``low`` and ``high`` beside ``value``, or ``…_low`` and
        ``…_high`` beside another name.

    Returns
    -------
    Styler
        Heads are words, and a missing value is "all".
    """
    shown = table.copy()
    for name in table.columns:
        ends = ["low", "high"] if name == "value" else [f"{name}_low", f"{name}_high"]
        if set(ends) <= set(table.columns):
            shown[name] = _with_intervals(table, (name, *ends))
            words = _WORDS_OF.get(name, name.replace("_", " "))
            shown = shown.drop(columns=ends).rename(columns={name: f"{words} (95 %)"})
    shown.columns = [_WORDS_OF.get(name, name.replace("_", " ")) for name in shown.columns]
    if "metric" in shown:
        shown["metric"] = shown["metric"].str.replace("_", " ")
    shown = shown.astype(object).where(shown.notna(), "all")
    return _left_aligned(
        shown.map(lambda value: f"{value:g}" if isinstance(value, float) else value)
    )


#: Heads of columns that say more than their names.
_WORDS_OF = {
    "value": "measured",
    "spearman": "rank correlation",
    "microseconds_per_event": "µs per event",
    "generator": "plan generator",
    "baseline": "compared with",
}


def _claim(
    entry: Mapping[str, Any],
    study: Study,
    groups: Mapping[str, list[str]],
    reasons: Mapping[str, Reason],
    headline: str,
) -> Claim:
    name = entry.get("id", "without an id")
    known = {*_TEXTS, *_SIDES, *_OPTIONS, "expected", "reason"}
    for key in entry:
        if key not in known:
            raise ReportError(f"claim {name!r} has an unknown key {key!r}; keys are {known}")
    for key in (*_TEXTS, "over", "expected"):
        if key not in entry:
            raise ReportError(f"claim {name!r} has no {key!r}")
    expected = entry["expected"]
    if entry["kind"] not in CHECK_KINDS:
        raise ReportError(
            f"claim {name!r}: no kind {entry['kind']!r}; there are {', '.join(CHECK_KINDS)}"
        )
    if not expected or set(expected) - {"from", "to"}:
        raise ReportError(f"claim {name!r} cannot fail: expected has neither from nor to")
    than = entry.get("than")
    options: dict[str, Any] = {
        key: tuple(entry[key]) if isinstance(entry[key], list) else entry[key]
        for key in _OPTIONS
        if key in entry
    }
    check = ClaimCheck(
        kind=entry["kind"],
        metric=entry["metric"],
        over=_selection(entry["over"], groups),
        under=_selection(entry["under"], groups) if "under" in entry else None,
        than=(_selection(than["over"], groups), _selection(than["under"], groups))
        if than
        else None,
        **options,
    )
    return Claim(
        **{key: entry[key] for key in ("id", "figure", "section", "statement", "results")},
        check=check,
        low=float(expected.get("from", -math.inf)),
        high=float(expected.get("to", math.inf)),
        text=_in_words(check, entry, study),
        reason=reasons[entry["reason"]] if "reason" in entry else None,
        headline=headline,
    )


def _selection(entry: Mapping[str, Any], groups: Mapping[str, list[str]]) -> Selection:
    generators = entry["generators"]
    if isinstance(generators, str):
        generators = groups[generators]
    return Selection(tuple(generators), entry.get("alpha"), entry.get("strategy"))


def _in_words(check: ClaimCheck, entry: Mapping[str, Any], study: Study) -> str:
    def side(given: Mapping[str, Any]) -> str:
        return _side(given, len(study.generators))

    metric = _METRICS.get(check.metric, quantity_of(check.metric).title.lower())
    kind = (
        "geometric mean"
        if check.kind == "ratio" and "under" not in entry
        else CHECK_KINDS[check.kind].words
    )
    what = f"{kind}: {metric}, {side(entry['over'])}"
    if "under" in entry:
        what += f" / {side(entry['under'])}"
    if "than" in entry:
        what += f", over that of {side(entry['than']['over'])} / {side(entry['than']['under'])}"
    if check.across:
        what += f"; {check.take} by {check.across.replace('_', ' ')}"
    if check.pattern_sets:
        what += f"; {', '.join(check.pattern_sets)}"
    if check.sizes:
        one = len(check.sizes) == 1
        what += f"; size {check.sizes[0]}" if one else f"; sizes {check.sizes[0]}–{check.sizes[-1]}"
    return what


def _side(entry: Mapping[str, Any], every: int) -> str:
    generators = entry["generators"]
    if isinstance(generators, str):
        text = generators.replace("_", " ")
    elif len(generators) > 3:
        text = f"{len(generators)} others" if len(generators) < every else f"all {every}"
    else:
        text = " + ".join(generators)
    if "alpha" in entry:
        text += f" (α = {entry['alpha']:g})"
    if "strategy" in entry:
        text += f" ({entry['strategy'].replace('_', ' ')})"
    return text


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _with_intervals(
    table: pd.DataFrame, columns: Sequence[str] = ("value", "low", "high")
) -> list[str]:
    return [
        "–"
        if pd.isna(value)
        else f"{shown_value(value)} ({shown_value(low)} to {shown_value(high)})"
        for value, low, high in table[list(columns)].itertuples(index=False)
    ]


def shown_value(value: float) -> str:
    """Three digits or so; a question mark for an end that is not known."""
    if math.isinf(value):
        return "?"
    return f"{value:.2f}" if 0.1 <= abs(value) < 1000 else f"{value:.3g}"


def _counted(table: pd.DataFrame) -> list[str]:
    return [
        f"{patterns} ({left_out} left out)" if left_out else f"{patterns}"
        for patterns, left_out in table[["patterns", "left_out"]].itertuples(index=False)
    ]


def _left_aligned(shown: pd.DataFrame) -> Styler:
    styler = shown.style.hide(axis="index").format(escape="html")
    return styler.set_table_styles([{"selector": "th, td", "props": "text-align: left"}])


def _verdict_look(verdict: Any) -> str:
    # The variables are those of the site, which has others in the dark.
    colours = {HOLDS: "--holds, #117733", FAILS: "--fails, #882255", OPEN: "--open, #616161"}
    return f"color: var({colours[verdict]}); font-weight: bold"
