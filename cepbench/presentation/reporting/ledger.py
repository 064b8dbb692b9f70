"""Tables for readers: of a ledger, a claim a row, and of numbers with their intervals."""

from __future__ import annotations

import re
from collections.abc import Sequence

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


#: Column of a setting → what stands for claims that are measured once for all of its values.
_OF_ALL = {"regime": "all", "engine": "plans alone"}


def ledger_for_readers(table: pd.DataFrame, page: str = "") -> Styler:
    """The table of :func:`cepbench.presentation.reporting.verdicts.ledger` for a notebook's cell, a row a claim.

    Its numbers and reasons are on a ``page`` of claims, if there is one, to which the claims link.
    """
    first = verdicts.by_claim(table)
    shown = pd.DataFrame(
        {
            "figure": first["figure"].to_numpy(),
            "claim": first["statement"].to_numpy(),
            "verdict": first["overall"].to_numpy(),
            "why": [_sentence(title) if title else "" for title in first["title"]],
        }
    )
    styler = _left_aligned(shown)
    if page:
        anchors = dict(zip(first["statement"], first["paper"] + "-" + first["id"], strict=True))

        def linked(text: object) -> str:
            return str(Markup('<a href="{}#{}">{}</a>').format(page, anchors[str(text)], text))

        styler = styler.format(linked, subset=["claim"])
    return styler.map(lambda verdict: f"{_colour(verdict)}; font-weight: bold", subset=["verdict"])


def counts_for_readers(table: pd.DataFrame, by: Sequence[str]) -> Styler | None:
    """How many claims of a ledger have each verdict, a row a value of columns; None where they have one.

    Verdicts that no claim has are left out, and so are columns ``by`` that do not vary.
    """
    varied = [name for name in by if table.loc[table[name] != "", name].nunique() > 1]
    if not varied:
        return None
    judged = [
        (*which, verdicts.overall_of(part))
        for which, part in table.groupby([*varied, "id"], sort=False)
    ]
    heads = [*varied, "verdict"]
    counted = pd.DataFrame(judged, columns=[*varied, "id", "verdict"]).groupby(heads, sort=False)
    shown = counted.size().unstack(fill_value=0)
    shown = shown[[state for state in states.STATES if state in shown]]
    if varied == ["figure"]:
        shown = shown.loc[sorted(shown.index, key=_by_number)]
    named = shown.replace(0, "").rename_axis(columns=None).reset_index()
    return _left_aligned(
        named.replace({name: {"": _OF_ALL[name]} for name in varied if name in _OF_ALL})
    )


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


def _by_number(figure: str) -> tuple[int, str]:
    """Figure 8 is before figure 10, and those with a name are last."""
    digits = re.match(r"\d+", figure)
    return (int(digits[0]), figure) if digits else (10**9, figure)


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
