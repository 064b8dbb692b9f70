"""Tables and paragraphs as text."""

from __future__ import annotations

import math
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

#: Line width if that of the terminal is unknown.
WIDTH = 100

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def terminal_width() -> int | None:
    """Line width of a terminal, between 80 and 160; None for a file or pipe, whose lines may be long."""
    return text_width() if sys.stdout.isatty() else None


def text_width() -> int:
    """Line width of texts: that of the terminal, between 80 and 160."""
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 80), 160)


def wrapped(text: str, width: int | None = None) -> str:
    """A paragraph in lines of a width, by default that of the terminal."""
    return fill(text, width or text_width())


def with_prefix(number: float) -> str:
    """A number from a thousand on with three digits: ``118 M``, and from 10¹⁵ on with a power of ten."""
    if math.isinf(number):
        return "∞"
    mantissa, exponent = f"{number:.2e}".split("e+")
    if int(exponent) >= 15:
        return f"{mantissa}·10{exponent.translate(_RAISED)}"
    thousands = int(exponent) // 3
    return f"{float(f'{number:.3g}') / 1000**thousands:.3g} {'kMGT'[thousands - 1]}"


def share_bar(share: float) -> str:
    """A bar for a share of 1, up to eight characters long."""
    eighths = round(min(max(share, 0.0), 1.0) * 64)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def table_text(
    rows: Iterable[Mapping[Any, object]],
    columns: Mapping[str, str] | Sequence[str],
    *,
    right: Sequence[str] = (),
    shrink: str | None = None,
    less: Sequence[str] = (),
    width: int | None = None,
) -> str:
    """A table as text, numbers right-aligned.

    Cells are texts, lists, or numbers, which get thousands separators; None, NaN and a missing key are
    empty. ``columns`` are keys, or headings with their keys; ``right`` the headings of further
    right-aligned columns. If it is wider than ``width``, the column ``shrink`` is truncated, and if
    that is not enough, those of ``less`` are dropped, in this order.
    """
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    keys = columns if isinstance(columns, Mapping) else {head: head for head in columns}
    rows = list(rows)
    cells = {head: [row.get(key) for row in rows] for head, key in keys.items()}
    texts = {head: [head, *map(_shown, column)] for head, column in cells.items()}
    widths = {head: max(map(cell_len, column)) for head, column in texts.items()}
    room = sum(each + 2 for each in widths.values())
    if width is not None:
        least = widths if shrink is None else {**widths, shrink: max(len(shrink), 8)}
        for head in less:
            if sum(least[each] + 2 for each in texts) - 2 > width:
                texts.pop(head, None)
        room = max(width, sum(least[head] + 2 for head in texts) - 2)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in texts:
        numeric = head in right or any(map(_is_number, cells[head]))
        # What may be wrapped is narrowed first; its texts may not. Texts are no markup.
        justify: Any = "right" if numeric else "left"
        table.add_column(Text(head, no_wrap=True), justify=justify, no_wrap=head != shrink)
    for line in zip(*(column for _, *column in texts.values()), strict=True):
        table.add_row(*(Text(text, no_wrap=True, overflow="ellipsis") for text in line))
    console = Console(width=room)
    with console.capture() as drawn:
        console.print(table)
    return "\n".join(line.rstrip() for line in drawn.get().splitlines())


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _shown(cell: object) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else ""
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, list):
        return ", ".join(map(str, cell))
    return f"{cell:,.4g}" if isinstance(cell, float) else str(cell)
