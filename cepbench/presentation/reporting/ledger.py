"""Tables of the ledger for readers: claims in rows, work and time side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from markupsafe import Markup
from pandas.io.formats.style import Styler

from cepbench.presentation.reporting import states, verdicts

#: State → class of its look in the style sheet, a sign, since colour alone says nothing, and its colour
#: where there is no style sheet.
LOOKS = {
    states.HOLDS: ("holds", "✓", "#117733"),
    states.EXCEEDS: ("exceeds", "»", "#00578a"),
    states.IN_WORK: ("in-work", "◑", "#0b6a6a"),
    states.PARTLY: ("partly", "½", "#7a5200"),
    states.UNDECIDED: ("undecided", "~", "#5a5080"),
    states.FAILS: ("fails", "✗", "#882255"),
    states.OPEN: ("open", "?", "#616161"),
}

#: Heads of the columns of tests on what is counted, and on what a clock says.
WORK, TIME = "in work", "in time"


def ledger_for_readers(table: pd.DataFrame, *, short: bool = False) -> Styler:
    """The table of :func:`cepbench.presentation.reporting.verdicts.ledger` for a notebook's cell.

    A row is a claim. The columns :data:`WORK` and :data:`TIME` have a line for each test and setting, with
    the sign of its verdict, value and 95 % interval; those of an engine that decides nothing come
    last, as "also". A ``short`` one is without the checks and their conditions of failure, and without
    anchors: links lead to the longer table of a claim.
    """
    first = verdicts.by_claim(table)
    main = table.drop_duplicates(["paper", "id"], keep="last")
    columns = {
        head: _lines(table, table["is_timed"] == timed)
        for head, timed in ((WORK, False), (TIME, True))
    }
    columns = {head: lines for head, lines in columns.items() if any(lines)}
    shown = pd.DataFrame(
        {
            "claim": first["statement"].to_numpy(),
            "verdict": first["overall"].to_numpy(),
            **columns,
            "why": [
                " ".join(_sentence(text) for text in texts if text)
                for texts in zip(first["why"], first["title"], strict=True)
            ],
            "check": main["check"].to_numpy(),
            "fails if the interval is": _conditions(table),
        }
    )
    if short:
        shown = shown.drop(columns=["check", "fails if the interval is"])
    styler = _left_aligned(shown).format(_coloured, subset=list(columns))
    if not short:
        anchors = dict(zip(first["statement"], first["id"], strict=True))

        def anchored(text: object) -> str:
            anchor = anchor_of(anchors[str(text)])
            return str(Markup('<span id="{}">{}</span>').format(anchor, text))

        styler = styler.format(anchored, subset=["claim"])
    return styler.map(lambda verdict: f"{_colour(verdict)}; font-weight: bold", subset=["verdict"])


def _conditions(table: pd.DataFrame) -> list[str]:
    """What fails the tests of each claim; named by what they are on where there are several."""
    tests = table.drop_duplicates(["paper", "id", "basis"])
    several = tests.groupby(["paper", "id"], sort=False)["basis"].transform("size") > 1
    named = (tests["basis"] + ": ").where(several, "") + tests["fails_if"]
    return list(named.groupby([tests["paper"], tests["id"]], sort=False).agg("; ".join))


def _lines(table: pd.DataFrame, chosen: pd.Series[bool]) -> list[str]:
    """The chosen rows of each claim that had data, a line each."""
    varied = verdicts.varied_in(table)
    lines: dict[str, list[str]] = {str(name): [] for name in table["id"].unique()}
    shown = verdicts.tested(table[chosen]).sort_values("also", kind="stable")
    several = shown.groupby("id")["basis"].transform("nunique") > 1
    rows: Iterator[Any] = shown.itertuples()
    for row in rows:
        what = verdicts.place_and_basis(row, varied, several=several[row.Index])
        lines[row.id].append(f"{LOOKS[row.verdict][1]} {what} {measured_text(row)}")
    return ["\n".join(its) for its in lines.values()]


def measured_text(row: Any) -> str:
    """Value and interval of a row, with the number of patterns, and of bounds among them."""
    if pd.isna(row.value):
        return f"{row.lack}: {row.detail}"
    interval = verdicts.shown_interval(row)
    text = verdicts.shown_value(row.value) + (f" ({interval})" if interval else "")
    counts = [f"{row.patterns} patterns"]
    counts += [f"{row.bounds} bounds"] if row.bounds else []
    counts += [f"{row.left_out} left out"] if row.left_out else []
    return f"{text}; {', '.join(counts)}"


def _coloured(cell: object) -> str:
    """Lines of a cell, the sign of each in the colour of its verdict."""
    by_sign = {sign: verdict for verdict, (_, sign, _) in LOOKS.items()}
    lines = []
    for line in str(cell).splitlines():
        sign, _, text = line.partition(" ")
        lines.append(
            Markup('<span role="img" aria-label="{}" style="{}">{}</span> {}').format(
                by_sign[sign], _colour(by_sign[sign]), sign, text
            )
        )
    return str(Markup("<br>").join(lines)) or "–"


def anchor_of(claim: str) -> str:
    """Where the claim of such an id is in a page, without the ``#``."""
    return f"claim-{claim}"


def reasons_for_readers(table: pd.DataFrame) -> Styler:
    """The reasons behind a table of verdicts, each once, with the claims it is about."""
    first = verdicts.by_claim(table)
    known = first[first["reason"] != ""]
    shown = known.groupby(["title", "reason"], sort=False)["statement"].agg(" ".join).reset_index()
    heads = {"title": "why", "reason": "in full", "statement": "claims"}
    return _left_aligned(shown.rename(columns=heads))


def for_readers(table: pd.DataFrame) -> Styler:
    """A table of numbers with intervals for people: ``1.93 (1.61 to 2.30)`` in place of three columns.

    Intervals are in columns ``low`` and ``high`` beside ``value``, or ``…_low`` and ``…_high`` beside
    another name. Heads are words, and a missing value is "all".
    """
    shown = table.copy()
    for name in table.columns:
        ends = ["low", "high"] if name == "value" else [f"{name}_low", f"{name}_high"]
        if set(ends) <= set(table.columns):
            shown[name] = _with_intervals(table, [name, *ends])
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


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}."


def _with_intervals(table: pd.DataFrame, columns: list[str]) -> list[str]:
    shown = verdicts.shown_value
    return [
        "–" if pd.isna(value) else f"{shown(value)} ({shown(low)} to {shown(high)})"
        for value, low, high in table[columns].itertuples(index=False)
    ]


def _left_aligned(shown: pd.DataFrame) -> Styler:
    styler = shown.style.hide(axis="index").format(escape="html")
    return styler.set_table_styles([{"selector": "th, td", "props": "text-align: left"}])


def _colour(verdict: str) -> str:
    """The colour of a verdict: of the site, which has another in the dark, or else that of its look."""
    name, _, colour = LOOKS[verdict]
    return f"color: var(--{name}, {colour})"
