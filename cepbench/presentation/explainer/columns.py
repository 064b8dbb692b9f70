"""The columns of an explanation and the formats of its numbers, for text and notebooks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from cepbench.planning.costs.q_error import FEWEST_MATCHES
from cepbench.planning.plans.notes import shown_log

#: q-errors from which an estimate gets one and two marks.
MARKED = (2.0, 10.0)

#: Placeholder of a missing number.
MISSING = "–"

_MOST_LISTED = 8

#: Colours of estimates that are too low and too high.
_MORE, _LESS = "#d55e00", "#3b8ed0"

_SUFFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))

Row = Mapping[Any, Any]


class Column(NamedTuple):
    """A column of a table: its heading, a row's text, and its further CSS declarations."""

    name: str
    shown: Callable[[Row], str]
    #: A heading above those of adjacent columns with the same one.
    group: str = ""
    is_left: bool = False
    #: Whether the texts are cut where lines are too long.
    is_label: bool = False
    style: Callable[[Row], str] = lambda row: ""


def numbers(name: str, key: str, group: str = "") -> Column:
    """The column of a table's numbers."""
    return Column(name, lambda row: short(row[key]), group)


def shares(name: str, key: str, group: str = "") -> Column:
    """The column of a table's shares, with a bar behind each, which makes large ones easy to find."""

    def bar(row: Row) -> str:
        if math.isnan(row[key]):
            return ""
        stops = f"rgba(127,127,127,.35) {100 * row[key]:.1f}%,transparent 0"
        return f";background:linear-gradient(to left,{stops})"

    return Column(name, lambda row: percent(row[key]), group, style=bar)


def texts(name: str, key: str) -> Column:
    """The column of a table's texts."""
    return Column(name, lambda row: row[key], is_left=True)


def node_columns(unit: str, *, measured: bool) -> tuple[Column, ...]:
    """The columns of nodes; ``unit`` is that of time in rates, ``second`` or ``tick``."""
    label = Column(
        "", lambda row: row["label"], is_left=True, is_label=True,
        style=lambda row: ";white-space:pre;font-family:monospace",
    )  # fmt: skip
    cost = shares("cost", "cost_share", "est.")
    if not measured:
        return (
            label,
            numbers("arrivals", "arrival_rate", f"per {unit}"),
            numbers("rows", "estimated_rate", f"per {unit}"),
            Column("matches", _estimate, "partial"),
            cost,
        )
    return (
        label,
        Column("est.", _estimate, "partial matches"),
        numbers("actual", "measured", "partial matches"),
        numbers("est.", "estimated_created", "rows created"),
        numbers("actual", "created", "rows created"),
        Column("off by", off_by, "estimate", style=_marked),
        numbers("stored", "peak_stored", "most"),
        numbers("tested", "comparisons", "pairs"),
        cost,
        shares("time", "time_share"),
    )


def short(number: float) -> str:
    """A number with three significant digits, in at most seven characters."""
    if math.isnan(number):
        return MISSING
    if math.isinf(number):
        return "∞"
    if number == 0:
        return "0"
    if number < 1e-3:
        return f"{number:.1e}"
    if number < 99.95:
        return f"{number:.3g}"
    if number < 9_999.5:
        return f"{number:,.0f}"
    for suffix, size in _SUFFIXES:
        if number >= 0.9995 * size:
            digits = number / size
            return f"{digits:.3g}{suffix}" if digits < 999.5 else f"{number:.1e}".replace("e+", "e")
    raise AssertionError(number)


def percent(share: float) -> str:
    """A share as a whole percentage."""
    if math.isnan(share):
        return MISSING
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def listed(variables: str) -> str:
    """A node's variables; if there are many, the first two, the last one and their number."""
    names = variables.split(", ")
    if len(names) <= _MOST_LISTED:
        return variables
    return f"{names[0]}, {names[1]}, …, {names[-1]} ({len(names)})"


def severity(row: Row) -> int:
    """The marks, 0 to 2, of a node's estimation error.

    If few rows were expected and created, the error is mostly noise and has no mark.
    """
    error = row["q_error"]
    if math.isnan(error) or is_rare(row):
        return 0
    return sum(error >= limit for limit in MARKED)


def is_rare(row: Row) -> bool:
    """Whether a node has too few rows to judge its estimate."""
    return bool(row["created"] < FEWEST_MATCHES and not row["estimated_created"] >= FEWEST_MATCHES)


def is_more(row: Row) -> bool:
    """Whether the measurement at a node exceeds the estimate."""
    if math.isnan(row["measured"]):
        return bool(row["created"] > row["estimated_created"])
    return bool(row["measured"] > row["estimated"])


def off_by(row: Row) -> str:
    """The factor by which the measurement is above (×) or below (÷) the estimate, and marks."""
    if math.isnan(row["q_error"]):
        return MISSING
    return factor(row["q_error"], is_more=is_more(row)) + "!" * severity(row)


def factor(error: float, *, is_more: bool) -> str:
    """A q-error with the sign of its direction, which that of 1 has not."""
    sign = "" if f"{error:.3g}" == "1" else "×" if is_more else "÷"
    return f"{sign}{short(error)}"


def colour_of(row: Row) -> str:
    """The colour of a node whose estimate is marked."""
    return _MORE if is_more(row) else _LESS


def _marked(row: Row) -> str:
    return f";font-weight:bold;border-right:4px solid {colour_of(row)}" if severity(row) else ""


def _estimate(row: Row) -> str:
    # The number of sets of events quickly exceeds the range of a float.
    if row["estimated"] == math.inf:
        return shown_log(row["log_estimated"])
    return short(row["estimated"])
