"""Neighbours by rank, at growing windows: ``python benchmarks/bench_contiguity.py [--out rows.parquet]``.

Three rising events of one symbol, each the next one of its symbol, which SQL finds by ``lead`` and Polars
by ``shift``: over the whole stream, and live in pushes. So runs of rising events, and two events in any
order, of our engines alone. What is adjacent does not depend on the window, so that nobody should need more
time for a longer one. All run in turns, in one thread.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence

import duckdb
import pandas as pd
from command_line import parser_of, write
from polars_frames import col, pl  # first of all: it keeps Polars to one thread

import cepbench as cep
from cepbench.streams.ten_symbols import ten_symbols

PATTERN = """PATTERN SEQ(ANY a, ANY b, ANY c)
WHERE a.difference < b.difference AND b.difference < c.difference
STRATEGY partition_contiguity(stock) WITHIN {} minutes"""

#: Of those that SQL and Polars cannot say, or not as directly.
OTHERS = {
    "run": """PATTERN SEQ(ANY a, KL(ANY b), ANY c)
WHERE b[i].difference > b[i-1].difference AND c.difference < a.difference
STRATEGY partition_contiguity(stock) WITHIN {} minutes""",
    "AND": """PATTERN AND(ANY a, ANY b) WHERE a.difference < b.difference
STRATEGY partition_contiguity(stock) WITHIN {} minutes""",
}

MINUTES = (1, 10, 100)

#: Events of a push; and of one event only so many pushes.
PUSHES = (1, 256)
FEW = 5_000

QUERY = """SELECT a, b, c FROM (
    SELECT position AS a, ts AS ta, difference AS da,
        lead(position) OVER w AS b, lead(ts) OVER w AS tb, lead(difference) OVER w AS db,
        lead(position, 2) OVER w AS c, lead(ts, 2) OVER w AS tc, lead(difference, 2) OVER w AS dc
    FROM events WINDOW w AS (PARTITION BY stock ORDER BY position)
) WHERE da < db AND db < dc AND ta < tb AND tb < tc AND tc - ta <= {}"""


def contestants(table: pd.DataFrame, minutes: int) -> Iterator[tuple[str, int, Callable[[], int]]]:
    """Each way to list the matches: its name, of how many events, and a run that counts what it lists."""
    typed = table.assign(ts=pd.to_datetime(table["ts"], unit="ms"))
    stream = cep.EventStream.from_pandas(typed, type="symbol", time="ts")
    pattern = cep.parse(PATTERN.format(minutes))
    plan = cep.OrderPlan(pattern.names)
    for name in ("tree", "lazy-nfa", "sase"):
        its = None if cep.EVALUATORS[name].without_plan else plan

        def whole(name: str = name, its: cep.OrderPlan | None = its) -> int:
            return len(cep.evaluate(pattern, stream, its, evaluator=name, output="arrow").arrow)

        yield name, len(stream), whole
        for size in PUSHES:
            part = stream[: FEW if size == 1 else len(stream)]

            def live(
                name: str = name,
                its: cep.OrderPlan | None = its,
                part: cep.EventStream = part,
                size: int = size,
            ) -> int:
                detector = cep.Detector(pattern, its, evaluator=name, output="count")
                return sum(map(detector.push, part.batches(size))) + detector.flush()

            yield f"{name}, pushes of {size}", len(part), live
    for kind, text in OTHERS.items():
        other = cep.parse(text.format(minutes))
        for name in ("tree", "sase-basic")[: 2 if kind == "run" else 1]:
            its = None if cep.EVALUATORS[name].without_plan else cep.OrderPlan(other.names)

            def besides(
                name: str = name, its: cep.OrderPlan | None = its, other: cep.Pattern = other
            ) -> int:
                return cep.evaluate(
                    other, stream, its, evaluator=name, output="count"
                ).metrics.matches

            yield f"{kind}: {name}", len(stream), besides
    frame = pl.from_pandas(table)
    yield "Polars shift", len(frame), lambda: len(shifted(frame, minutes * 60_000).collect())
    connection = duckdb.connect(config={"threads": 1})
    connection.register("frame", table.assign(stock=table["stock"].astype(str)))
    connection.execute("CREATE TABLE events AS SELECT * FROM frame")
    query = QUERY.format(minutes * 60_000)
    yield "DuckDB lead", len(table), lambda: len(connection.sql(query).to_arrow_table())


def shifted(frame: pl.DataFrame, window: int) -> pl.LazyFrame:
    """The matches by columns shifted within each symbol."""
    names = {"position": "", "ts": "t", "difference": "d"}
    later = {
        f"{short}{variable}": col(name).shift(-places).over("stock")
        for places, variable in ((1, "b"), (2, "c"))
        for name, short in names.items()
    }
    events = frame.lazy().with_columns(a="position", ta="ts", da="difference", **later)
    rises = (col("da") < col("db")) & (col("db") < col("dc"))
    later_each = (col("ta") < col("tb")) & (col("tb") < col("tc"))
    return events.filter(rises & later_each & (col("tc") - col("ta") <= window)).select(
        "a", "b", "c"
    )


def measure(events: int, repetitions: int, seed: int) -> pd.DataFrame:
    """One row a window, contestant and repetition."""
    table = ten_symbols(events, seed)
    table = table.assign(stock=table["symbol"], position=range(len(table)))
    rows = []
    for minutes in MINUTES:
        runs = list(contestants(table, minutes))
        kinds = [name.partition(":")[0] in OTHERS and name[:3] for name, *_ in runs]
        # This loads the kernels.
        found = {(kind, number, run()) for kind, (_, number, run) in zip(kinds, runs, strict=True)}
        if len(found) != len({its[:2] for its in found}):
            raise SystemExit(f"{minutes} minutes: the numbers of matches differ: {found}")
        for repetition in range(repetitions):
            for name, number, run in runs:
                before = time.perf_counter()
                matches = run()
                seconds = time.perf_counter() - before
                rows.append(
                    {
                        "minutes": minutes,
                        "contestant": name,
                        "repetition": repetition,
                        "events": number,
                        "seed": seed,
                        "matches": matches,
                        "seconds": seconds,
                        "events_per_second": number / seconds,
                    }
                )
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> str:
    """Millions of events per second by window: the median, and the most in brackets."""
    rates = rows.groupby(["contestant", "minutes"], sort=False)["events_per_second"]
    shown = (rates.median() / 1e6).map("{:.3f}".format) + (rates.max() / 1e6).map(
        " [{:.3f}]".format
    )
    return f"million events/s, WITHIN minutes\n{shown.unstack().to_string()}"


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("Contiguity at growing windows.", events=100_000, repetitions=5)
    given = parser.parse_args(arguments)
    rows = measure(given.events, given.repetitions, given.seed)
    print(
        f"contiguity, {given.events:,} events, {given.repetitions} repetitions, seed {given.seed}"
    )
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
