"""What commands write: JSON, tables and lines to standard output; progress to standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

#: Characters of a line where the terminal does not say.
WIDTH = 100


def say(line: str = "") -> None:
    """A line of what was asked for, to standard output."""
    typer.echo(line)


def remark(line: str) -> None:
    """A line about what is going on, to standard error."""
    typer.echo(line, err=True)


def write_json(value: Any) -> None:
    """One JSON document to standard output.

    Parameters
    ----------
    value : object
        Mappings, sequences, DataFrames (as a list of rows), numbers of NumPy, dates and paths.
        What is no number (NaN) or infinite becomes ``null``, since JSON has neither.
    """
    typer.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "to_dict") and hasattr(value, "columns"):
        return [_plain(row) for row in value.to_dict("records")]
    if hasattr(value, "tolist"):  # arrays and numbers of NumPy
        return _plain(value.tolist())
    if isinstance(value, Iterable):
        return [_plain(item) for item in value]
    return str(value)


def write_table(
    rows: Iterable[Sequence[object]], heads: Sequence[str], *, shrink: int | None = None
) -> None:
    """Rows below headings, numbers to the right, to standard output.

    Parameters
    ----------
    rows : iterable of sequence
        Texts, or numbers, which get thousands separators.
    heads : sequence of str
    shrink : int, optional
        The column that is cut where a terminal is too narrow; elsewhere nothing is cut.
    """
    table = [list(row) for row in rows]
    texts = [[_shown(cell) for cell in row] for row in table]
    right = [
        any(_is_number(row[k]) for row in table)
        and all(_is_number(row[k]) or not texts[i][k] for i, row in enumerate(table))
        for k in range(len(heads))
    ]
    widths = [max(len(line[k]) for line in [list(heads), *texts]) for k in range(len(heads))]
    if shrink is not None and sys.stdout.isatty():
        over = sum(widths) + 2 * (len(widths) - 1) - shutil.get_terminal_size((WIDTH, 24)).columns
        widths[shrink] = max(widths[shrink] - max(over, 0), len(heads[shrink]), 8)
    for line in [list(heads), *texts]:
        cells = [
            f"{_cut(text, width):>{width}}" if to_the_right else f"{_cut(text, width):<{width}}"
            for text, width, to_the_right in zip(line, widths, right, strict=True)
        ]
        say("  ".join(cells).rstrip())


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _shown(cell: object) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else ""
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:,.4g}" if isinstance(cell, float) else str(cell)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


@contextmanager
def progress(doing: str, total: int | None = None, unit: str = "it") -> Iterator[Any]:
    """Show on standard error what is being done and how far it is, if that is a terminal.

    Parameters
    ----------
    doing : str
        Such as ``measuring statistics``.
    total : int, optional
        Steps; without it only the time that has passed is shown.
    unit : str
        What a step is.

    Yields
    ------
    tqdm
        ``update(n)`` tells that ``n`` steps are done.
    """
    from tqdm import tqdm

    with tqdm(
        desc=doing,
        total=total,
        unit=unit,
        unit_scale=True,
        leave=False,
        delay=0 if total is None else 1,
        disable=not sys.stderr.isatty(),
        dynamic_ncols=True,
        bar_format=None if total else "{desc} … {elapsed}",
        file=sys.stderr,
    ) as bar:
        yield bar
