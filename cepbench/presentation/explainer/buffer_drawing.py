"""A shared versioned buffer as an SVG drawing, in the style of Figure 4d of [agrawal2008]_."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from cepbench.markup import element, picture, shortened

_COLUMN, _ROW, _WIDE, _HIGH = 170.0, 46.0, 54.0, 24.0
_LONGEST = 12  # letters of a stack's name that are shown


def buffer_svg(stacks: Sequence[str], pointers: Sequence[Mapping[Any, Any]]) -> str:
    """Draw stacks side by side, their events by position, and pointers with their versions.

    Parameters
    ----------
    stacks : sequence of str
        Names, in the order of the states.
    pointers : sequence of mapping
        The rows of :meth:`cepbench.presentation.explainer.trace.Trace.pointers`.

    Returns
    -------
    str
        An ``<svg>`` element without ids, styles or scripts, in the colour of the text around it.
    """
    rows = {event: k for k, event in enumerate(sorted({p["event"] for p in pointers}))}

    def at(stack: str, event: int) -> tuple[float, float]:
        return 60.0 + _COLUMN * stacks.index(stack), 62.0 + _ROW * rows[event]

    parts: list[str] = []
    for number, name in enumerate(stacks):
        x = 60.0 + _COLUMN * number
        shown = element("text", shortened(name, _LONGEST), x=x, y=22, font_weight=600)
        parts.append(element("g", element("title", name), shown))
    for pointer in pointers:
        parts += _pointer(pointer, at)
    for stack, event in dict.fromkeys((p["stack"], p["event"]) for p in pointers):
        x, y = at(stack, event)
        box = element(
            "rect", x=x - _WIDE / 2, y=y - _HIGH / 2, width=_WIDE, height=_HIGH, rx=4,
            fill="none", stroke="currentColor",
        )  # fmt: skip
        parts.append(element("g", box, element("text", str(event), x=x, y=y + 4)))
    width = 60.0 + _COLUMN * (len(stacks) - 1) + 90
    return picture("shared versioned buffer", width, 62.0 + _ROW * max(len(rows), 1), *parts)


def _pointer(
    pointer: Mapping[Any, Any], at: Callable[[str, int], tuple[float, float]]
) -> Iterator[str]:
    """The line of a pointer, if it points to an event, and its version."""
    x, y = at(pointer["stack"], pointer["event"])
    version = {"font_size": 10, "opacity": "0.85"}
    if pointer["previous"] < 0:
        yield element(
            "text", pointer["version"], x=x - _WIDE / 2 - 6, y=y + 4, text_anchor="end", **version
        )
        return
    to_x, to_y = at(pointer["previous_stack"], pointer["previous"])
    line = {"stroke": "currentColor", "opacity": "0.5", "fill": "none"}
    if x != to_x:
        x, to_x = x - _WIDE / 2, to_x + _WIDE / 2
        yield element("line", x1=x, y1=y, x2=to_x, y2=to_y, **line)
        # Nearer to the earlier event: several pointers may leave the later one.
        yield element(
            "text", pointer["version"], x=(2 * to_x + x) / 3, y=(2 * to_y + y) / 3 - 4, **version
        )
    elif y - to_y <= _ROW:
        yield element("line", x1=x, y1=y - _HIGH / 2, x2=x, y2=to_y + _HIGH / 2, **line)
        yield element(
            "text",
            pointer["version"],
            x=x + 6,
            y=(y + to_y) / 2 + 4,
            text_anchor="start",
            **version,
        )
    else:
        # Around the events between.
        x = x - _WIDE / 2
        beside = x - 18 - 6 * (y - to_y) / _ROW
        yield element(
            "path",
            d=f"M {x:.1f},{y:.1f} Q {beside:.1f},{(y + to_y) / 2:.1f} {x:.1f},{to_y:.1f}",
            **line,
        )
        yield element(
            "text", pointer["version"], x=(x + beside) / 2 - 4, y=(y + to_y) / 2 + 4,
            text_anchor="end", **version,
        )  # fmt: skip
