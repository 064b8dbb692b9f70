"""Detection against columnar engines: ``python benchmarks/bench_detection.py [--out rows.parquet]``.

Three patterns over a synthetic stream of ten symbols, detected by cepbench along the plans that
DP-LD and DP-B make from measured statistics, and found by DuckDB, Polars and NumPy, each in one
thread, with the queries of ``relational.py``, ``polars_frames.py`` and ``numpy_counts.py``, and by
DuckDB with those of ``cep.to_sql`` along the plan of DP-B. Matches are counted, and materialised as
a table of positions (for DuckDB an Arrow table).

Cepbench counts without listing matches, so the others do as well, by running counts; what they take
when they list all matches stands beside. All contestants take turns, so that ratios are of one run;
every one is run once before anything is timed, and all have to agree on the number of matches.

The time of cepbench is that of the whole evaluation of a stream in memory, all symbols mixed, with
its measurements. The others have tables in memory that are split by symbol and sorted before the
clock starts, and queries written by hand for the pattern (but for ``cep.to_sql``), with no plan to
choose.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
from command_line import parser_of, write
from numpy_counts import Arrays
from polars_frames import Frame, Tables, pl  # first of all: it keeps Polars to one thread
from relational import TASKS, Task

import cepbench as cep
from cepbench.streams.ten_symbols import ten_symbols


@dataclass(frozen=True)
class Contestant:
    """A way to find the matches of a task.

    Attributes
    ----------
    name : str
    output : {"count", "positions"}
    ours : bool
        Whether it is an evaluator of cepbench.
    lists : bool
        Whether it lists the matches, be it for counting them.
    run : callable
        Finds them once: seconds, and how many there are.
    """

    name: str
    output: str
    ours: bool
    lists: bool
    run: Callable[[], tuple[float, int]]


@dataclass(frozen=True)
class Data:
    """The same events for all engines."""

    stream: cep.EventStream
    connection: duckdb.DuckDBPyConnection
    tables: Tables


def prepared(events: int, seed: int) -> Data:
    """Ten symbols for all engines."""
    return data_of(ten_symbols(events, seed))


def data_of(table: pd.DataFrame) -> Data:
    """The events as a stream, as tables of DuckDB, and as frames of Polars."""
    typed = table.assign(ts=pd.to_datetime(table["ts"], unit="ms"))
    connection = duckdb.connect(config={"threads": 1})
    connection.register("frame", typed.assign(milliseconds=table["ts"]))
    connection.execute(
        "CREATE TABLE events AS SELECT (row_number() OVER () - 1)::INTEGER AS position, "
        "symbol::TEXT AS symbol, ts, milliseconds, difference FROM frame"
    )
    tables = {}
    for symbol in table["symbol"].cat.categories:
        query = (
            "SELECT position, milliseconds AS ts, difference AS d FROM events "
            f"WHERE symbol = '{symbol}' ORDER BY position"
        )
        connection.execute(f"CREATE TABLE {symbol} AS {query}")
        tables[symbol] = connection.sql(query).pl().set_sorted("ts")
    stream = cep.EventStream.from_pandas(typed, type="symbol", time="ts")
    return Data(stream, connection, tables)


def contestants(task: Task, data: Data) -> Iterator[Contestant]:
    """All ways to find the matches of a task."""
    pattern = task.pattern
    measured = cep.measure_statistics(pattern, data.stream, seed=0)
    for generator in ("DP-LD", "DP-B"):
        plan = cep.plan(pattern, measured, generator=generator)
        yield from detections(f"cepbench {generator}", pattern, data.stream, plan)
    names = {"type_column": "symbol", "time_column": "ts"}
    counting = cep.to_sql(pattern, plan, output="count", **names)
    # Nobody else sorts the matches.
    listing = cep.to_sql(pattern, plan, **names).partition("\nORDER BY")[0]
    queries = {name: (query.counting, query.listing) for name, query in task.queries.items()}
    for name, (count, positions) in (queries | {"cep.to_sql DP-B": (counting, listing)}).items():
        lists = positions is not None
        run = _asked(data.connection, count, counted=True)
        yield Contestant(f"DuckDB {name}", "count", False, lists, run)
        if lists:
            run = _asked(data.connection, positions, counted=False)
            yield Contestant(f"DuckDB {name}", "positions", False, True, run)
    for name, frame in task.frames.items():
        for output in ("count", "positions"):
            lists = frame.lists or output == "positions"
            run = _collected(frame, data.tables, pattern.names, output)
            yield Contestant(f"Polars {name}", output, False, lists, run)
    if task.counts is not None:
        arrays = {
            symbol: (table["ts"].to_numpy(), table["d"].to_numpy())
            for symbol, table in data.tables.items()
        }
        yield Contestant("NumPy ranges", "count", False, False, _counted(task.counts, arrays))


def detections(
    name: str, pattern: cep.Pattern, stream: cep.EventStream, plan: cep.OrderPlan | cep.TreePlan
) -> Iterator[Contestant]:
    """Counting and materialising with cepbench."""
    for output, kept in (("count", "count"), ("positions", "arrow")):

        def detect(kept: str = kept) -> tuple[float, int]:
            before = time.perf_counter()
            result = cep.evaluate(pattern, stream, plan, output=kept)
            found = result.arrow.num_rows if kept == "arrow" else result.metrics.matches
            return time.perf_counter() - before, found

        yield Contestant(name, output, True, output == "positions", detect)


def _collected(
    frame: Frame, tables: Tables, names: Sequence[str], output: str
) -> Callable[[], tuple[float, int]]:
    shown = frame.build(tables, output == "positions")
    if output == "positions":
        shown = shown.select(*names)
    elif frame.lists:
        shown = shown.select(pl.len())

    def run() -> tuple[float, int]:
        before = time.perf_counter()
        found = shown.collect(engine=frame.engine)
        seconds = time.perf_counter() - before
        return seconds, len(found) if output == "positions" else found.item()

    return run


def _counted(counts: Callable[[Arrays], int], arrays: Arrays) -> Callable[[], tuple[float, int]]:
    def run() -> tuple[float, int]:
        before = time.perf_counter()
        found = counts(arrays)
        return time.perf_counter() - before, found

    return run


def _asked(
    connection: duckdb.DuckDBPyConnection, query: str, *, counted: bool
) -> Callable[[], tuple[float, int]]:
    def run() -> tuple[float, int]:
        before = time.perf_counter()
        found = connection.sql(query).to_arrow_table()
        seconds = time.perf_counter() - before
        return seconds, int(found[0][0].as_py()) if counted else len(found)

    return run


def measure(
    tasks: Sequence[Task], data: Data, repetitions: int, **notes: int | str
) -> pd.DataFrame:
    """One row a task, contestant and repetition, with the notes as further columns."""
    rows = []
    for task in tasks:
        runs = list(contestants(task, data))
        found = {(run.name, run.output): run.run()[1] for run in runs}
        if len(set(found.values())) != 1:
            raise SystemExit(f"{task.name}: the numbers of matches differ: {found}")
        for repetition in range(repetitions):
            for run in runs:
                seconds, matches = run.run()
                rows.append(
                    {
                        "task": task.name,
                        "output": run.output,
                        "contestant": run.name,
                        "ours": run.ours,
                        "lists": run.lists,
                        "repetition": repetition,
                        **notes,
                        "matches": matches,
                        "seconds": seconds,
                    }
                )
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame, tasks: Sequence[Task]) -> str:
    """Median, least and most time; how often the time of cepbench's quickest plan; and in words.

    Ratios are of the same repetition: their median, least and most.

    Parameters
    ----------
    rows : DataFrame
        ``task``, ``output``, ``contestant``, ``ours``, ``lists``, ``repetition``, ``matches``,
        ``seconds``.
    tasks : sequence of Task
        Those that the rows are of.
    """
    texts = {task.name: task.text for task in tasks}
    lines = []
    for (task, output), its in rows.groupby(["task", "output"], sort=False):
        if output == "count":
            lines.append(f"{task}: {texts[task]}")
        lines.append(f"  {output}, {its['matches'].iloc[0]:,} matches")
        times = its.pivot(index="repetition", columns="contestant", values="seconds")
        known = its.drop_duplicates("contestant").set_index("contestant")
        medians = times.median()[known.index]
        ours = medians[known["ours"]].idxmin()
        ratios = {name: _spread(times[name] / times[ours]) for name in known.index}
        lines.append(f"  {'':<26} {'median':>10} {'least':>10} {'most':>10}   / {ours}")
        for name in known.index:
            shown = "".join(
                f" {1e3 * x:>7.1f} ms"
                for x in (medians[name], times[name].min(), times[name].max())
            )
            listing = "   lists all" if output == "count" and known["lists"][name] else ""
            lines.append(f"  {name:<26}{shown}   {ratios[name]:<20}{listing}".rstrip())
        others = medians[~known["ours"]]
        quickest = others.idxmin()
        lines.append(f"  The quickest other, {quickest}, takes {ratios[quickest]} times as long.")
        if not known["lists"][quickest]:
            quickest = others[known["lists"]].idxmin()
            lines.append(f"  Of those that list all matches, {quickest}: {ratios[quickest]} times.")
    return "\n".join(lines)


def _spread(ratios: pd.Series[float]) -> str:
    return f"{ratios.median():.2f} [{ratios.min():.2f}, {ratios.max():.2f}]"


def report(rows: pd.DataFrame, tasks: Sequence[Task], title: str, out: Path | None) -> None:
    """Print the rows' summary, and write them if asked to."""
    engines = f"DuckDB {duckdb.__version__}, Polars {pl.__version__}, NumPy {np.__version__}"
    load = ", ".join(f"{minutes:.1f}" for minutes in os.getloadavg())
    print(f"{title}; {engines}, in one thread each; load of the machine {load}")
    print(summary(rows, tasks))
    write(rows, out)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = parser_of(
        "Detection against columnar engines in one thread.", events=200_000, repetitions=7
    )
    known = [task.name for task in TASKS]
    parser.add_argument("--tasks", nargs="+", choices=known, default=known)
    given = parser.parse_args(arguments)
    tasks = [task for task in TASKS if task.name in given.tasks]
    data = prepared(given.events, given.seed)
    rows = measure(tasks, data, given.repetitions, events=given.events, seed=given.seed)
    title = f"{given.events:,} events, seed {given.seed}, {given.repetitions} repetitions"
    report(rows, tasks, f"detection, {title}", given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
