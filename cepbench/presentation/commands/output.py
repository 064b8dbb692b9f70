"""Output of commands: lines, tables and JSON to standard output; progress to standard error."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import wrap
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from cepbench.engines.runs.result import Metrics

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


def write_named(lines: Mapping[str, str]) -> None:
    """Write texts by name to standard output, one below the other."""
    room = max(map(len, lines)) + 2
    for name, text in lines.items():
        write_line(f"{name + ':':<{room}}{text}")


def write_metrics(metrics: Metrics) -> None:
    """Write matches, throughput and memory of a run to standard output."""
    from cepbench.engines.runs.result import shown_bytes

    lines = {
        "matches": f"{metrics.matches:,}",
        "events": f"{metrics.events:,} in {metrics.seconds:.3g} s",
        "throughput": f"{metrics.events_per_second:,.0f} events per second",
    }
    if not math.isnan(metrics.peak_bytes):  # not reported by user-defined evaluators
        lines |= {
            "memory": f"{shown_bytes(metrics.peak_bytes)} peak, for events and partial matches",
            "partial matches": f"{metrics.partial_matches_created:,} created, "
            f"{metrics.peak_partial_matches:,} stored at peak",
            "comparisons": f"{metrics.comparisons:,}",
        }
    write_named(lines)


def as_dict(metrics: Metrics) -> dict[str, Any]:
    """The metrics of a run in a JSON document; no command measures latency."""
    return {k: v for k, v in metrics.to_dict().items() if not k.startswith("latency")}


def write_json(value: Any) -> None:
    """Write a JSON document to standard output.

    It may have mappings, sequences, DataFrames (as a list of rows), NumPy numbers, dates and paths. NaN and
    infinities become ``null``, since JSON has neither.
    """
    # A pipe of another encoding has escapes, as JSON has them.
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(_plain(value), indent=2, ensure_ascii=not is_utf8, allow_nan=False)
    typer.echo(text)


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


def share_bar(share: float) -> str:
    """A bar for a share of 1, up to eight characters long."""
    eighths = round(min(max(share, 0.0), 1.0) * 64)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def write_table(
    rows: Iterable[Mapping[Any, object]],
    columns: Mapping[str, str] | Sequence[str],
    *,
    right: Sequence[str] = (),
    shrink: str | None = None,
    less: Sequence[str] = (),
) -> None:
    """Write a table to standard output, numbers right-aligned.

    Cells are texts, lists, or numbers, which get thousands separators; None, NaN and a missing key are
    empty. ``columns`` are keys, or headings with their keys; ``right`` the headings of further
    right-aligned columns. If the terminal is too narrow, the column ``shrink`` is truncated, and if
    that is not enough, those of ``less`` are dropped, in this order. Output to a file or pipe is
    complete.
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
    if sys.stdout.isatty():
        least = widths if shrink is None else {**widths, shrink: max(len(shrink), 8)}
        for head in less:
            if sum(least[each] + 2 for each in texts) - 2 > width():
                del texts[head]
        room = max(width(), sum(least[head] + 2 for head in texts) - 2)
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
    for text in drawn.get().splitlines():
        write_line(text.rstrip())


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


@contextmanager
def progress(
    doing: str, total: int | None = None, unit: str = "", *, scaled: bool = False
) -> Iterator[Any]:
    """A progress bar on standard error, if it is a terminal, after one second.

    Call ``update(n)`` after ``n`` more steps; without ``total`` only the elapsed time is shown. Scaled
    numbers are abbreviated (k, M).
    """
    from tqdm import tqdm

    began = time.monotonic()
    form = "{desc}: {elapsed}" if total is None else None
    with tqdm(
        desc=doing, total=total, unit=unit, unit_scale=scaled, leave=False, delay=1.0,
        dynamic_ncols=True, bar_format=form, file=sys.stderr, disable=None,
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


@contextmanager
def progress_of_runs(doing: str) -> Iterator[Callable[[int, int], None]]:
    """As :func:`progress`; call it with the number of runs done and of all, known when the first has ended."""
    with progress(doing, total=1, unit=" runs") as bar:

        def on_progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield on_progress
