"""Colours, marks and dashes of plan generators, the same in every chart.

The generators of the default set have colours of Paul Tol's "muted" scheme, which colour-blind
readers can tell apart, a grey, and the orange of his "light" scheme: his rose is that grey to
readers who lack red. The later ones have the colours of his "muted", "vibrant" and "dark" schemes
that lie furthest from them. A chart never relies on colour alone: order plans have solid lines and
round or pointed marks, tree plans dashed lines and angular marks, and no two generators of a kind
share a mark.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass

import pandas as pd

from cepbench.experiments.sweeps.cells import NO_PLAN


@dataclass(frozen=True, slots=True)
class Mark:
    """One shape under its names in both chart libraries."""

    matplotlib: str | tuple[int, int, float] | tuple[tuple[float, float], ...]
    vega: str


@dataclass(frozen=True, slots=True)
class Style:
    """Look of one plan generator; ``dash`` has lengths of ink and gap in points, none of a solid line."""

    colour: str
    mark: Mark
    dash: tuple[int, ...]


def _corners(count: int, *, inner: float | None = None, turned: float = 0.0) -> str:
    """Path of a regular polygon with a corner on top, or of a star with such an inner radius."""
    radii = [1.0] if inner is None else [1.0, inner]
    steps = count * len(radii)
    path = ""
    for step in range(steps):
        radius, angle = radii[step % len(radii)], 2 * math.pi * step / steps + math.radians(turned)
        x, y = radius * math.sin(angle), -radius * math.cos(angle)
        path += f"{'L' if path else 'M'}{x:.3g},{y:.3g}"
    return path + "Z"


_DASHES: dict[str, tuple[int, ...]] = {"order": (), "tree": (6, 3), NO_PLAN: ()}
_MARKS = {
    "order": (
        Mark("o", "circle"),
        Mark("^", "triangle-up"),
        Mark("v", "triangle-down"),
        Mark("<", "triangle-left"),
        Mark(">", "triangle-right"),
        Mark("*", "M0,-1L0.24,-0.32L0.95,-0.31L0.38,0.12L0.59,0.81L0,0.4L-0.59,0.81"
                  "L-0.38,0.12L-0.95,-0.31L-0.24,-0.32Z"),
        Mark("p", _corners(5)),
        Mark((4, 1, 0), _corners(4, inner=0.5)),
        Mark((6, 1, 0), _corners(6, inner=0.5)),
        Mark("d", "M0,-1L0.6,0L0,1L-0.6,0Z"),
        Mark((8, 1, 0), _corners(8, inner=0.5)),
    ),
    "tree": (
        Mark("s", "square"),
        Mark("D", "diamond"),
        Mark("P", "cross"),
        Mark((4, 1, 45), _corners(4, inner=0.5, turned=45)),
        Mark("h", _corners(6)),
        Mark("8", _corners(8, turned=22.5)),
        Mark((5, 0, 180), _corners(5, turned=180)),
        Mark((5, 1, 0), _corners(5, inner=0.5)),
    ),
}  # fmt: skip

_MARKS[NO_PLAN] = _MARKS["order"]


def _polygon(*corners: tuple[float, float]) -> Mark:
    """A shape by its corners, y upwards."""
    path = "L".join(f"{x:g},{-y:g}" for x, y in corners)
    return Mark(corners, f"M{path}Z")


#: Looks of user-defined generators: marks that no built-in one has, and colours that colour-blind
#: readers, too, can tell from all of theirs and from each other; none is paler than they are.
_USER_MARKS = (
    _polygon((-1, 1), (1, 1), (-1, -1), (1, -1)),  # an hourglass
    _polygon((-1, -0.8), (0, 1), (1, -0.8), (0, -0.2)),  # an arrowhead
    _polygon((-1, 0.6), (-0.6, 1), (0, 0.4), (0.6, 1), (1, 0.6), (0.4, 0), (1, -0.6), (0.6, -1),
             (0, -0.4), (-0.6, -1), (-1, -0.6), (-0.4, 0)),  # a cross on its side
    _polygon((-1, 1), (-1, -1), (1, 1), (1, -1)),  # a bow tie
    _polygon((-1, 1), (1, 1), (1, 0.4), (0.3, 0.4), (0.3, -1), (-0.3, -1), (-0.3, 0.4), (-1, 0.4)),
    _polygon((-1, 0.8), (0, -1), (1, 0.8), (0, 0.2)),
)  # fmt: skip
_USER_COLOURS = ("#0000FF", "#552200", "#77AAFF", "#6666FF", "#221144", "#3311BB")

#: User-defined generator -> the number of its look, in the order in which they were drawn first.
_own: dict[str, int] = {}

#: Generator -> colour and the number of its mark among those of its kind of plan.
_KNOWN = {
    "TRIVIAL": ("#777777", 0),
    "EFREQ": ("#EE8866", 1),
    "GREEDY": ("#999933", 2),
    "II-RANDOM": ("#88CCEE", 3),
    "II-GREEDY": ("#44AA99", 4),
    "DP-LD": ("#332288", 5),
    "ZSTREAM": ("#882255", 0),
    "ZSTREAM-ORD": ("#AA4499", 1),
    "DP-B": ("#117733", 2),
    "IKKBZ": ("#CC6677", 6),
    "SA": ("#DDAA33", 7),
    "2PO": ("#0077BB", 8),
    "IDP": ("#222222", 9),
    "GOO": ("#CC3311", 3),
    "DPCCP": ("#663333", 4),
    "QUICKPICK": ("#EE3377", 5),
    "LINDP": ("#225555", 6),
    "FLIPS": ("#66CCEE", 7),
    "EFREQ-SETS": ("#AA5522", 10),
    # The plans that the study of [mei2009] compares; of the generators ZSTREAM alone is beside them.
    "LEFT-DEEP": ("#332288", 1),
    "RIGHT-DEEP": ("#EE8866", 2),
    "BUSHY": ("#44AA99", 3),
    "INNER": ("#DDAA33", 4),
    "NFA": ("#777777", 5),
    "ADAPTIVE": ("#CC3311", 6),
    "ADAPTIVE-LISTED": ("#117733", 5),
    "ADAPTIVE-COUNTED": ("#88CCEE", 7),
    "NSEQ": ("#332288", 1),
    "NEG": ("#EE8866", 2),
    # The engines and the queries of [agrawal2008], which stand in different charts.
    "BASIC": ("#332288", 1),
    "MERGING": ("#EE8866", 2),
    "BACKTRACK": ("#777777", 5),
    "P1S3": ("#332288", 1),
    "P2S2": ("#44AA99", 3),
    "P2S3": ("#117733", 4),
    "P3S2": ("#DDAA33", 5),
    "P3S3": ("#EE8866", 2),
    # The methods of [qi2014], how they share work, and its windows, which stand in different charts.
    "TWO-STEP": ("#777777", 5),
    "A-SEQ": ("#332288", 1),
    "WINDOW-PRODUCT": ("#44AA99", 3),
    "SASE": ("#DDAA33", 4),
    "PRETREE": ("#117733", 5),
    "CHOP-CONNECT": ("#CC3311", 6),
    "SHARON": ("#88CCEE", 7),
    "A-SEQ, 1000 MS": ("#332288", 1),
    "A-SEQ, 2000 MS": ("#88CCEE", 7),
    "WINDOW-PRODUCT, 1000 MS": ("#117733", 3),
    "WINDOW-PRODUCT, 2000 MS": ("#DDAA33", 4),
    # The planners of [liu2011].
    "NAIVE": ("#777777", 5),
    "TOP-DOWN": ("#44AA99", 3),
    "BOTTOM-UP": ("#EE8866", 2),
    "CHASE": ("#332288", 1),
    "STEINER": ("#DDAA33", 4),
    "FORESTS": ("#117733", 6),
    "EACH ALONE": ("#CC3311", 7),
}


def style_of(generator: str, plans: str) -> Style:
    """The look of a plan generator.

    A user-defined generator gets its look from its name, so that it is the same in all charts and
    reports. Where another one has that look, it gets the next: six of them differ from each other
    and from all built-in generators in colour and mark, more in one of the two. The case of a name
    does not matter; ``plans`` is ``order``, ``tree`` or ``none``.
    """
    marks = _MARKS[plans]
    name = generator.upper()
    if name in _KNOWN:
        colour, which = _KNOWN[name]
        return Style(colour, marks[which % len(marks)], _DASHES[plans])
    looks = len(_USER_COLOURS)
    if name not in _own:
        wanted = zlib.crc32(name.encode()) % looks
        by_wish = [*range(wanted, looks), *range(wanted), *range(looks, looks + len(_own) + 1)]
        _own[name] = next(number for number in by_wish if number not in _own.values())
    again, number = divmod(_own[name], looks)
    return Style(_USER_COLOURS[number], _USER_MARKS[(number + again) % looks], _DASHES[plans])


def place_of(generator: str) -> int:
    """The place of a generator in legends; all user-defined ones share the last."""
    name = generator.upper()
    return list(_KNOWN).index(name) if name in _KNOWN else len(_KNOWN)


def series_labels(rows: pd.DataFrame) -> pd.Series:
    """The name of each row's series: the ``generator``, and its ``evaluator`` if it ran in several.

    Where there is a ``panel``, what tells panels apart need not tell their series apart.
    """
    within = ["generator", *(["panel"] if "panel" in rows else [])]
    evaluators = rows.groupby(within)["evaluator"].transform("nunique")
    several = rows["generator"] + " in " + rows["evaluator"]
    return rows["generator"].where(evaluators == 1, several).rename("series")
