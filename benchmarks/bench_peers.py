"""Against engines that nobody here wrote: ``make bench-peers``, or ``python benchmarks/bench_peers.py [--out rows.parquet]``.

Seven patterns over ten types of events, one a second, at windows of 5, 20 and 50 minutes; all matches are made.
Cepbench chooses plan and engine by itself. DuckDB, ClickHouse (chDB), Polars and NumPy run the queries of
``peer_queries.py``, each the best that we found, and DuckDB also that of ``cep.to_sql``; Flink's CEP and CORE run the pattern
in their own language, where that says it. Everything is in memory before the clock starts, with its program
compiled; times are of CPU, those of processes of their own measured inside. Before anything is timed, the matches
have to be equal, event by event. Who takes longer than the limit is not asked for more events or a longer window. Each
finished cell is kept: ``--resume`` goes on with a run that was ended, at the same commit and on the same machine.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import duckdb
import matplotlib
import numpy as np
import pandas as pd
import pyarrow as pa
from bench_history import commit, processor
from command_line import parser_of, write
from peer_queries import TASKS, Task, in_numpy, in_polars, in_sql, pl

import cepbench as cep
from cepbench.experiments.conformance.adapters import OUTSIDE_ENGINES, Timing
from cepbench.experiments.conformance.cases import Case
from cepbench.experiments.conformance.translation import texts_of
from cepbench.presentation.figures.chart import Axis, Chart, Marks, Panel
from cepbench.presentation.figures.matplotlib_panels import static_chart
from cepbench.presentation.figures.styles import style_of

OURS = "cepbench"
WINDOWS = (300, 1_200, 3_000)

#: Peers in processes of their own, and the language in which they are asked.
PROCESSES = {"chDB": "sql", "CORE": "ceql", "Flink CEP": "flink_cep"}

#: More events are not sent to a process.
MOST_SENT = 1_000_000

#: What is asked of all.
CELL = ["events", "window", "task"]

#: Said of who was ended after so long.
_TOO_SLOW = "took more than"

#: Said of who was too slow before.
LATER = "took too long for less"

_PAGE = """\
# Peers

![How many times as long as cepbench the peers take, by task and number of events](peers.svg)

{found}

The [numbers](peers.txt) are of seven patterns over one event a second of ten types, in windows of 5, 20 and 50 minutes. All matches
are made, and equal event by event before anything is timed. Times are CPU time in one thread, with everything in memory before.
cepbench reads one stream of all types, whose rows and columns by type it keeps from the second query on, and chooses a plan and an
engine each time; the others have a table for each type, and the best queries that we could write by hand
(`benchmarks/peer_queries.py`). Measured at {commit} on {processor}.

```sh
make peers          # chDB, CORE and Flink, each in an environment of its own
make bench-peers BENCH_ARGS="--page docs/peers.md"
```
"""

#: Characters of a line that fits the page.
_WIDTH = 90

#: Seconds of so many runs, and the matches if there is none: a column a variable.
Run = Callable[[int], tuple[list[float], pd.DataFrame]]


class TooSlow(Exception):
    """A process was ended after the limit."""


@dataclass(frozen=True)
class Data:
    """The same events for all."""

    events: pd.DataFrame
    stream: cep.EventStream
    connection: duckdb.DuckDBPyConnection
    frames: dict[str, pl.DataFrame]
    arrays: dict[str, dict[str, np.ndarray]]


def data_of(events: int, seed: int) -> Data:
    """Events of ten types, one a second, ``x`` between 0 and 1, 100 values of ``k``."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "id": np.arange(events),
            "type": rng.choice(list("ABCDEFGHIJ"), events),
            "ts": np.arange(1, events + 1),
            "x": rng.random(events),
            "k": rng.integers(0, 100, events),
        }
    )
    connection = duckdb.connect(config={"threads": 1})
    connection.register("frame", table)
    connection.execute("CREATE TABLE events AS SELECT * FROM frame")
    frames = {"events": pl.from_pandas(table)}
    for kind in "ABC":
        connection.execute(f"CREATE TABLE {kind} AS SELECT * FROM events WHERE type = '{kind}'")
        frames[kind] = frames["events"].filter(pl.col("type") == kind).drop("type").set_sorted("ts")
    arrays = {
        kind: {name: its[name].to_numpy() for name in ("id", "ts", "x", "k")}
        for kind, its in frames.items()
    }
    stream = cep.EventStream.from_pandas(table, type="type", time="ts")
    return Data(table, stream, connection, frames, arrays)


def contestants(task: Task, window: int, data: Data, longest: float) -> Iterator[tuple[str, Run]]:
    """Their names and what finds the matches."""
    pattern = cep.parse(task.text.format(window))

    def ours() -> Any:
        return cep.evaluate(pattern, data.stream, output="arrow").arrow

    yield OURS, _timed(ours, pa.Table.to_pandas)
    yield from _tables(task, window, data)
    kinds = {"x": "number", "k": "number"}
    texts = texts_of(pattern, kinds)
    if query := in_sql(task, window, "clickhouse"):
        texts["sql"] = query
    elif task.name != "Kleene":
        raise AssertionError(task.name)
    if len(data.events) > MOST_SENT:
        return
    case = Case(f"peers/{task.name}", "", data.events, str(pattern), (), texts)
    for name, language in PROCESSES.items():
        if not texts[language].startswith("cannot say"):
            yield name, _elsewhere(name, case, longest)


def _tables(task: Task, window: int, data: Data) -> Iterator[tuple[str, Run]]:
    queries = {"DuckDB": in_sql(task, window, "duckdb")}
    if task.steps:
        pattern = cep.parse(task.text.format(window))
        names = {"type_column": "type", "time_column": "ts", "position_column": "id"}
        plan = cep.plan(pattern, cep.measure_statistics(pattern, data.stream, seed=0), "DP-B")
        # Nobody else sorts the matches.
        queries["DuckDB to_sql"] = cep.to_sql(pattern, plan, **names).partition("\nORDER BY")[0]
    for name, query in queries.items():
        if query:

            def asked(query: str = query) -> Any:
                return data.connection.sql(query).to_arrow_table()

            yield name, _timed(asked, pa.Table.to_pandas)
    for name, frame in in_polars(task, window, data.frames):

        def collected(frame: pl.LazyFrame = frame) -> Any:
            return frame.collect(engine="streaming")

        yield f"Polars {name}", _timed(collected, pl.DataFrame.to_pandas)
    if task.name == "neighbours" or (task.steps and not task.key):

        def by_hand() -> Any:
            return in_numpy(task, window, data.arrays)

        yield "NumPy", _timed(by_hand, lambda found: pd.DataFrame(found.T))


def _timed(run: Callable[[], Any], matches: Callable[[Any], pd.DataFrame]) -> Run:
    """A run in this process."""

    def its(times: int) -> tuple[list[float], pd.DataFrame]:
        if not times:
            return [], matches(run())
        before = time.process_time()
        run()
        return [time.process_time() - before], pd.DataFrame()

    return its


def _elsewhere(name: str, case: Case, longest: float) -> Run:
    """A run in a process of its own, which also makes the matches to compare."""

    def its(times: int) -> tuple[list[float], pd.DataFrame]:
        timing = Timing(times, longest)
        try:
            (answer,) = OUTSIDE_ENGINES[name].function([case], timing)
        except subprocess.TimeoutExpired as error:
            raise TooSlow(f"{_TOO_SLOW} {longest:g} s") from error
        if isinstance(answer, str):
            raise cep.errors.CannotSayError(answer)
        return timing.seconds, pd.DataFrame(answer)

    return its


def _in_order(matches: pd.DataFrame) -> pd.DataFrame:
    """The matches sorted, for :meth:`~pandas.DataFrame.equals`; sets of events as texts."""
    columns = {
        place: its.map(lambda ids: " ".join(map(str, np.atleast_1d(ids))))
        if its.dtype == object
        else its.astype("int64")
        for place, (_, its) in enumerate(matches.items())
    }
    return pd.DataFrame(columns).sort_values([*columns], ignore_index=True)


def measure(
    sizes: Sequence[int],
    windows: Sequence[int],
    tasks: Sequence[Task],
    repetitions: int,
    seed: int,
    limit: float,
    kept: Path | None = None,
) -> pd.DataFrame:
    """One row a task, number of events, window, contestant and repetition.

    Parameters
    ----------
    sizes, windows : sequence of int
        Events, and seconds; the shortest first.
    tasks : sequence of Task
    repetitions, seed : int
    limit : float
        Seconds after which a contestant is not asked for more.
    kept : Path, optional
        A file to which finished cells are written, and whose cells are not measured again.

    Returns
    -------
    DataFrame
        ``task``, ``events``, ``window``, ``contestant``, ``repetition``, ``seed``, ``matches``, ``seconds``; without
        seconds who was too slow, or is not installed, which ``note`` says.
    """
    rows: list[dict[str, Any]] = []
    slow: dict[tuple[str, str], tuple[int, int]] = {}
    if kept is not None and kept.exists():
        rows = pd.read_json(kept, lines=True).to_dict("records")
        for row in rows:
            if row["seconds"] > limit or row["note"].startswith(_TOO_SLOW):
                slow.setdefault((row["task"], row["contestant"]), (row["events"], row["window"]))
    finished = {(row["events"], row["window"], row["task"]) for row in rows}
    for events in sizes:
        data = data_of(events, seed)
        for window in windows:
            for task in tasks:
                if (events, window, task.name) in finished:
                    continue
                print(f"{events:,} events, {window} s, {task.name}", file=sys.stderr)
                cell = {"task": task.name, "events": events, "window": window, "seed": seed}
                rows += (found := _cell(cell, task, data, repetitions, limit, slow))
                if kept is not None:
                    pd.DataFrame(found).to_json(kept, orient="records", lines=True, mode="a")
    return pd.DataFrame(rows)


def _cell(
    cell: dict[str, Any],
    task: Task,
    data: Data,
    repetitions: int,
    limit: float,
    slow: dict[tuple[str, str], tuple[int, int]],
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    runs: dict[str, Run] = {}
    expected: pd.DataFrame | None = None

    def note(name: str, text: str, seconds: float = float("nan")) -> None:
        rows.append(cell | {"contestant": name, "repetition": -1, "seconds": seconds, "note": text})

    for name, run in contestants(task, cell["window"], data, 4 * limit):
        at = slow.get((task.name, name))
        if at and cell["events"] >= at[0] and cell["window"] >= at[1]:
            note(name, LATER)
            continue
        before = time.perf_counter()
        try:
            seconds, matches = run(repetitions if name in PROCESSES else 0)
        except TooSlow as error:
            slow[task.name, name] = (cell["events"], cell["window"])
            note(name, str(error))
            continue
        except cep.errors.NotInstalledError as error:
            note(name, f"not installed; {error}")
            continue
        except Exception as error:  # what an engine says for want of memory, or of a word
            note(name, str(error).splitlines()[0][:80])
            continue
        took = time.perf_counter() - before
        found = _in_order(matches)
        expected = found if expected is None else expected
        if len(found) + len(expected) and not found.equals(expected):
            sides = expected.merge(found, how="outer", indicator="side")["side"].value_counts()
            raise SystemExit(
                f"{cell} {name}: {sides['left_only']} matches are lacking, {sides['right_only']} beyond, or "
                "some come twice"
            )
        if took > limit:
            slow[task.name, name] = (cell["events"], cell["window"])
        if name not in PROCESSES:
            runs[name] = run
        for repetition, its in enumerate(seconds):
            rows.append(cell | {"contestant": name, "repetition": repetition, "seconds": its})
    for repetition in range(repetitions):
        for name, run in runs.items():
            if repetition and (task.name, name) in slow:
                continue
            ((its,), _) = run(1)
            rows.append(cell | {"contestant": name, "repetition": repetition, "seconds": its})
    number = 0 if expected is None else len(expected)
    return [{"note": "", "matches": number} | row for row in rows]


def best_of(rows: pd.DataFrame) -> pd.DataFrame:
    """Seconds of each peer's best way, a median, in columns; by ``events``, ``window`` and ``task``."""
    timed = rows[rows["seconds"].notna()]
    peer = timed["contestant"].str.replace(r"^(DuckDB|Polars) .*", r"\1", regex=True)
    by_way = timed.assign(peer=peer).groupby([*CELL, "peer", "contestant"], sort=False)["seconds"]
    best = by_way.median().groupby([*CELL, "peer"], sort=False).min().unstack("peer")
    return best.reindex(columns=[OURS, *best.columns.drop(OURS, errors="ignore")])


def found_of(best: pd.DataFrame) -> str:
    """In how many cells who is fastest, and where others are."""
    first = best.idxmin(axis=1)
    number = first.value_counts()
    lines = [
        f"Of {len(best)} cells (a task, a number of events, a window) {OURS} is the fastest in "
        f"{number.get(OURS, 0)}"
        + "".join(f", {name} in {its}" for name, its in number.drop(OURS, errors="ignore").items())
        + ". Others are ahead of it:"
    ]
    ahead = best.drop(columns=OURS).rdiv(best[OURS], axis=0).stack()
    ahead = ahead[ahead >= 1.05]  # less may be noise
    for task, its in sorted(ahead.groupby("task"), key=lambda group: -group[1].max()):
        names = [
            f"{name} up to {times.max():.1f} times ({len(times)} of {best[name].xs(task, level='task').notna().sum()} cells)"
            for name, times in sorted(its.groupby("peer"), key=lambda group: -group[1].max())
        ]
        lines.append(f"- **{task}**: {', '.join(names)}")
    lines[1:1] = [""]
    return "\n".join(lines) if len(lines) > 2 else lines[0].replace(" Others are ahead of it:", "")


def chart_of(best: pd.DataFrame) -> Chart:
    """How many times as long as cepbench each peer takes: a panel a number of events, a mark a window."""
    ratios = best.drop(columns=OURS).div(best[OURS], axis=0)
    rows = ratios.stack().rename("times").reset_index()
    looks = {
        name: style_of(generator, "order")
        for name, generator in zip(ratios, cep.PLAN_GENERATORS, strict=False)
    }
    panels = [
        Panel(
            0,
            place,
            [f"{events:,} events"],
            [Marks(its, "times", "task", looks, "peer", opacity=0.8)],
        )
        for place, (events, its) in enumerate(rows.groupby("events"))
    ]
    tasks = tuple(dict.fromkeys(best.index.get_level_values("task")))
    return Chart(
        f"Peers beside {OURS}: CPU time for the same matches",
        Axis(f"times as long as {OURS}", log=True, one=True),
        Axis(names=tasks),
        panels,
        explained=f"Right of the line {OURS} is faster. A mark for each window: 5, 20 and 50 minutes.",
        size=(300, 300),
    )


def summary(rows: pd.DataFrame) -> str:
    """Millions of events a second by cell, ours and how many times as long as it others take, each by its best way."""
    best = best_of(rows)
    spread = rows[rows["contestant"] == OURS].groupby(CELL, sort=False)["seconds"]
    events = best.index.get_level_values("events").to_numpy()
    ratios = best.drop(columns=OURS).div(best[OURS], axis=0)
    rate, low, high = (
        (events / its.reindex(best.index) / 1e6).map("{:.1f}".format)
        for its in (best[OURS], spread.max(), spread.min())
    )
    shown = ratios.map(lambda ratio: "" if np.isnan(ratio) else f"{ratio:.3g}")
    matches = rows[rows["seconds"].notna()].groupby(CELL, sort=False)["matches"].first()
    ours = rate + " [" + low + ", " + high + "]"
    shown.insert(0, OURS, ours.where(best[OURS].notna(), "too slow"))
    shown.insert(0, "matches", matches.map("{:,}".format))
    counted = (
        f"By number of events, window in seconds and task: {OURS} in million events/s [least, most]; of "
        "the others how many times as long they take, nothing where one cannot say the pattern, or took "
        "too long for less"
    )
    tables: list[str] = []
    for number, its in shown.groupby(level="events", sort=False):
        its = its.droplevel("events").loc[:, its.ne("").any()].rename_axis(columns=None)
        tables += [f"{number:,} events", *its.to_string(index_names=False).splitlines()]
    unknown = rows[~rows["note"].isin(["", LATER])]
    reasons = unknown.drop_duplicates(["contestant", "note"])
    notes = [f"{row.contestant}, {row.task}: {row.note}" for row in reasons.itertuples()]
    lines = [*wrap(counted, _WIDTH), *tables, *notes]
    return "\n".join(map(str.rstrip, lines))


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("Against engines that nobody here wrote.", repetitions=3)
    parser.add_argument("--events", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--windows", nargs="+", type=int, default=list(WINDOWS), help="seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--limit", type=float, default=30.0, help="seconds, for more who took longer"
    )
    known = [task.name for task in TASKS]
    parser.add_argument("--tasks", nargs="+", choices=known, default=known)
    parser.add_argument(
        "--page",
        type=Path,
        help="where to write a page of the documentation, with its numbers and its picture beside it",
    )
    parser.add_argument("--resume", action="store_true", help="go on with a run that was ended")
    given = parser.parse_args(arguments)
    kept = None
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        kept = given.out.with_suffix(".jsonl")
        if not given.resume:
            kept.unlink(missing_ok=True)
    tasks = [task for task in TASKS if task.name in given.tasks]
    rows = measure(
        sorted(given.events),
        sorted(given.windows),
        tasks,
        given.repetitions,
        given.seed,
        given.limit,
        kept,
    )
    if kept:
        kept.unlink(missing_ok=True)
    load = ", ".join(f"{minutes:.1f}" for minutes in os.getloadavg())
    first = (
        f"peers, seed {given.seed}, {given.repetitions} repetitions, CPU time; cepbench "
        f"{cep.__version__}, DuckDB {duckdb.__version__}, Polars {pl.__version__}, NumPy "
        f"{np.__version__}, one thread each; load of the machine {load}"
    )
    best = best_of(rows)
    found, printed = found_of(best), "\n".join([*wrap(first, _WIDTH), summary(rows)])
    print(found, printed, sep="\n\n")
    if given.page:
        page = _PAGE.format(found=found, commit=commit(), processor=processor())
        given.page.write_text(page, encoding="utf-8")
        given.page.with_suffix(".txt").write_text(f"{printed}\n", encoding="utf-8")
        with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "cepbench"}):
            picture = static_chart(chart_of(best))
            picture.savefig(given.page.with_suffix(".svg"), metadata={"Date": None})
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
