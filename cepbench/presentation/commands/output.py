"""Output of commands: lines, tables and JSON to standard output; progress to standard error."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import typer

from cepbench.text_table import table_text, terminal_width, wrapped

if TYPE_CHECKING:
    from cepbench.engines.runs.result import Metrics


def write_line(line: str = "") -> None:
    """Write a line to standard output."""
    typer.echo(line)


def write_text(text: str) -> None:
    """Write text to standard output, wrapped to the terminal."""
    write_line(wrapped(text))


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


def write_table(
    rows: Iterable[Mapping[Any, object]], columns: Mapping[str, str] | Sequence[str], **look: Any
) -> None:
    """Write a :func:`~cepbench.text_table.table_text` to standard output, as wide as a terminal."""
    write_line(table_text(rows, columns, **look, width=terminal_width()))


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
