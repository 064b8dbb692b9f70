"""Output of commands: lines, tables and JSON to standard output; progress to standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from threading import Event, Thread
from typing import Any

import typer

#: Line width if that of the terminal is unknown.
WIDTH = 100


def write_line(line: str = "") -> None:
    """Write a line to standard output."""
    typer.echo(line)


def write_text(text: str) -> None:
    """Write text to standard output, wrapped to the terminal."""
    for line in wrap(text, width()):
        write_line(line)


def log(line: str) -> None:
    """Write a line to standard error."""
    typer.echo(line, err=True)


def log_state(what: str, state: str) -> None:
    """Write the state of something that runs to standard error."""
    log(f"{what}: {state}")


def write_json(value: Any) -> None:
    """Write a JSON document to standard output.

    Parameters
    ----------
    value : object
        Mappings, sequences, DataFrames (as a list of rows), NumPy numbers, dates and paths. NaN and
        infinities become ``null``, since JSON has neither.
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
    if hasattr(value, "tolist"):  # NumPy
        return _plain(value.tolist())
    if isinstance(value, Iterable):
        return [_plain(item) for item in value]
    return str(value)


def width() -> int:
    """Line width: that of the terminal, between 80 and 160."""
    return min(max(shutil.get_terminal_size((WIDTH, 24)).columns, 80), 160)


def share_bar(share: float, room: int = 8) -> str:
    """A bar for a share of 1, up to ``room`` characters long."""
    eighths = round(min(max(share, 0.0), 1.0) * room * 8)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def write_table(
    rows: Iterable[Sequence[object]],
    heads: Sequence[str],
    *,
    right: Sequence[str] = (),
    shrink: int | None = None,
    less: Sequence[str] = (),
) -> None:
    """Write a table to standard output, numbers right-aligned.

    Parameters
    ----------
    rows : iterable of sequence
        Texts, or numbers, which get thousands separators; None is empty.
    heads : sequence of str
    right : sequence of str
        Headings of further right-aligned columns.
    shrink : int, optional
        The column that is truncated if the terminal is too narrow.
    less : sequence of str
        Headings of columns to drop, in this order, if that is not enough. Output to a file or pipe
        is complete.
    """
    table = [list(row) for row in rows]
    texts = [list(map(_shown, row)) for row in table]
    to_the_right = [
        head in right or any(_is_number(row[k]) for row in table) for k, head in enumerate(heads)
    ]
    widths = [max(len(line[k]) for line in [list(heads), *texts]) for k in range(len(heads))]
    kept = list(range(len(heads)))
    if sys.stdout.isatty():
        least = widths.copy()
        if shrink is not None:
            least[shrink] = max(len(heads[shrink]), 8)
        for head in less:
            if sum(least[k] + 2 for k in kept) - 2 > width():
                kept.remove(list(heads).index(head))
        if shrink is not None:
            others = sum(widths[k] + 2 for k in kept if k != shrink)
            widths[shrink] = min(widths[shrink], max(width() - others, least[shrink]))
    for number, line in enumerate([list(heads), *texts]):
        cells = [
            f"{_cut(line[k], widths[k]):{'>' if to_the_right[k] else '<'}{widths[k]}}" for k in kept
        ]
        shown = "  ".join(cells).rstrip()
        write_line(typer.style(shown, bold=True) if number == 0 else shown)


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


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: room - 1] + "…"


@contextmanager
def progress(
    doing: str, total: int | None = None, unit: str = "", *, scaled: bool = False
) -> Iterator[Any]:
    """A progress bar on standard error, if it is a terminal, after one second.

    Parameters
    ----------
    doing : str
        Such as ``measuring statistics``.
    total : int, optional
        Steps; without it only the elapsed time is shown.
    unit : str
        Name of a step.
    scaled : bool
        Whether numbers are abbreviated (k, M).

    Yields
    ------
    tqdm
        Call ``update(n)`` after ``n`` more steps.
    """
    from tqdm import tqdm

    began = time.monotonic()
    if not sys.stderr.isatty():
        with tqdm(disable=True) as bar:
            yield bar
        return
    form = "{desc}: {elapsed}" if total is None else None
    with tqdm(
        desc=doing, total=total, unit=unit, unit_scale=scaled, leave=False, delay=1.0,
        dynamic_ncols=True, bar_format=form, file=sys.stderr,
    ) as bar:  # fmt: skip
        ended = Event()

        def tick() -> None:
            # Updates the elapsed time during long steps.
            while not ended.wait(1.0):
                bar.refresh()

        ticking = Thread(target=tick, daemon=True)
        ticking.start()
        try:
            yield bar
        finally:
            ended.set()
            ticking.join()
            if time.monotonic() - began > 1.0:
                bar.clear()  # tqdm does so only after an update
