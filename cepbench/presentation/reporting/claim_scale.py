"""A claim's number beside what it expects: intervals over a range, in a line of HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

from markupsafe import Markup

#: Room left and right of what is drawn, as a share of it.
_MARGIN = 0.15


def scale_of(
    expected: tuple[float, float],
    measured: Sequence[tuple[float, float, float]],
    among: Sequence[tuple[float, float, float]] = (),
) -> Markup:
    """Marks with their whiskers over the range that a claim expects; empty if nothing was measured.

    ``measured`` are values with the ends of their intervals, one below the other. The scale has room for
    those ``among`` which they stand, too; it is logarithmic unless a number is not positive. An
    infinite end is at the edge. A screen reader passes over it, since its numbers stand beside it.
    """
    if not measured:
        return Markup("")
    finite = [end for end in chain(expected, *measured, *among) if math.isfinite(end)]
    is_log = min(finite) > 0

    def placed(number: float) -> float:
        return math.log(number) if is_log else number

    least, most = placed(min(finite)), placed(max(finite))
    span = most - least or 1.0

    def percent(number: float) -> str:
        if not math.isfinite(number):
            return "0" if number < 0 else "100"
        share = (placed(number) - least + _MARGIN * span) / (span * (1 + 2 * _MARGIN))
        return f"{100 * share:.1f}"

    parts = [_part("band", percent(expected[0]), percent(expected[1]), 0, 1)]
    for row, (value, low, high) in enumerate(measured):
        if math.isfinite(low) and math.isfinite(high):
            parts.append(_part("spread", percent(low), percent(high), row, len(measured)))
        parts.append(_part("mark", percent(value), percent(value), row, len(measured)))
    return Markup('<span class="scale" aria-hidden="true">{}</span>').format(Markup("").join(parts))


def _part(kind: str, left: str, right: str, row: int, rows: int) -> Markup:
    top = "" if kind == "band" else f";top:{100 * (row + 0.5) / rows:.0f}%"
    width = float(right) - float(left)
    return Markup('<i class="{}" style="left:{}%;width:{:.1f}%{}"></i>').format(
        kind, left, width, top
    )
