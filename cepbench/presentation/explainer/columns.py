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

_SUFFIXES = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))

Row = Mapping[Any, Any]


class NodeColumn(NamedTuple):
    """A column of numbers about nodes: the two lines of its heading, and a row's text.

    Adjacent columns may share a group, and a group may be empty.
    """

    group: str
    name: str
    shown: Callable[[Row], str]


def columns_of(unit: str, *, measured: bool) -> tuple[NodeColumn, ...]:
    """The columns shown for each node; ``unit`` is that of time in rates, ``second`` or ``tick``."""
    cost = NodeColumn("est.", "cost", lambda row: percent(row["cost_share"]))
    expected = NodeColumn("partial matches", "est.", _estimate)
    if not measured:
        return (
            NodeColumn(f"per {unit}", "arrivals", lambda row: short(row["arrival_rate"])),
            NodeColumn(f"per {unit}", "rows", lambda row: short(row["estimated_rate"])),
            NodeColumn("partial", "matches", _estimate),
            cost,
        )
    return (
        expected,
        NodeColumn("partial matches", "actual", lambda row: short(row["measured"])),
        NodeColumn("rows created", "est.", lambda row: short(row["estimated_created"])),
        NodeColumn("rows created", "actual", lambda row: short(row["created"])),
        NodeColumn("estimate", "off by", off_by),
        NodeColumn("most", "stored", lambda row: short(row["peak_stored"])),
        NodeColumn("pairs", "tested", lambda row: short(row["comparisons"])),
        cost,
        NodeColumn("", "time", lambda row: percent(row["time_share"])),
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
    error = row["q_error"]
    if math.isnan(error):
        return MISSING
    sign = "" if f"{error:.3g}" == "1" else "×" if is_more(row) else "÷"
    return f"{sign}{short(error)}{'!' * severity(row)}"


def _estimate(row: Row) -> str:
    # The number of sets of events quickly exceeds the range of a float.
    if row["estimated"] == math.inf:
        return shown_log(row["log_estimated"])
    return short(row["estimated"])
