"""Detection against SQL: ``python benchmarks/bench_detection.py [--out rows.parquet]``.

Three patterns over a synthetic stream of ten symbols, detected by cepbench along the plan that
DP-LD or DP-B makes from measured statistics, and found by DuckDB in one thread with each of the
SQL queries below. All of them take turns, so that ratios are of one run; every one is run once
before anything is timed, and all have to agree on the number of matches. The time of cepbench is
that of the whole evaluation of a stream in memory, the time of DuckDB that of a query on tables
in memory, one a symbol, sorted by time.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pandas as pd

import cepbench as cep
from cepbench.streams.ten_symbols import ten_symbols


@dataclass(frozen=True)
class Task:
    """A pattern, and ways to count its matches in SQL over one table a symbol (ts, d)."""

    name: str
    text: str
    queries: dict[str, str]

    @property
    def pattern(self) -> cep.Pattern:
        """The parsed pattern."""
        return cep.parse(self.text)


# A join on time alone compares all pairs. Dividing time into buckets as long as the window makes
# it a hash join of neighbouring buckets; where the last event of a match is compared with nothing
# but time, running counts tell how many there are without listing them.
TASKS = (
    Task(
        "P3",
        "PATTERN SEQ(s3 a, s6 b, s9 c) WHERE a.difference < b.difference WITHIN 5 minutes",
        {
            "joins": """
                SELECT count(*) FROM s3 a
                JOIN s6 b ON b.ts > a.ts AND b.ts <= a.ts + 300000 AND a.d < b.d
                JOIN s9 c ON c.ts > b.ts AND c.ts <= a.ts + 300000""",
            "buckets": """
                WITH a AS (SELECT *, unnest([ts // 300000, ts // 300000 + 1]) k FROM s3),
                     b AS (SELECT *, ts // 300000 k FROM s6),
                     c AS (SELECT *, ts // 300000 k FROM s9),
                     ab AS (SELECT a.ts ta, b.ts tb, unnest([k, k + 1]) k FROM a JOIN b USING (k)
                            WHERE b.ts > a.ts AND b.ts <= a.ts + 300000 AND a.d < b.d)
                SELECT count(*) FROM ab JOIN c USING (k) WHERE c.ts > tb AND c.ts <= ta + 300000""",
            "running counts": """
                WITH c AS (SELECT ts, max(n) n
                           FROM (SELECT ts, row_number() OVER (ORDER BY ts) n FROM s9) GROUP BY ts),
                     a AS (SELECT s3.ts, d, coalesce(n, 0) n,
                                  unnest([s3.ts // 300000, s3.ts // 300000 + 1]) k
                           FROM s3 ASOF LEFT JOIN c ON s3.ts + 300000 >= c.ts),
                     b AS (SELECT s6.ts, d, coalesce(n, 0) n, s6.ts // 300000 k
                           FROM s6 ASOF LEFT JOIN c ON s6.ts >= c.ts)
                SELECT sum(a.n - b.n) FROM a JOIN b USING (k)
                WHERE b.ts > a.ts AND b.ts <= a.ts + 300000 AND a.d < b.d""",
        },
    ),
    Task(
        "P4",
        "PATTERN AND(s1 a, s3 b, s5 c, s7 d) "
        "WHERE a.difference < c.difference AND b.difference < d.difference WITHIN 2 minutes",
        {
            "buckets": """
                WITH a AS (SELECT *, ts // 120000 k FROM s1),
                     b AS (SELECT *, ts // 120000 k FROM s3),
                     c AS (SELECT ts, d, unnest([ts // 120000 - 1, ts // 120000, ts // 120000 + 1])
                           k FROM s5),
                     d AS (SELECT ts, d, unnest([ts // 120000 - 1, ts // 120000, ts // 120000 + 1])
                           k FROM s7),
                     ac AS (SELECT unnest([k - 1, k, k + 1]) k, least(a.ts, c.ts) lo,
                                   greatest(a.ts, c.ts) hi FROM a JOIN c USING (k)
                            WHERE c.ts BETWEEN a.ts - 120000 AND a.ts + 120000 AND a.d < c.d),
                     acb AS (SELECT k, least(lo, ts) lo, greatest(hi, ts) hi, d bd
                             FROM ac JOIN b USING (k)
                             WHERE ts BETWEEN hi - 120000 AND lo + 120000)
                SELECT count(*) FROM acb JOIN d USING (k)
                WHERE d.ts BETWEEN hi - 120000 AND lo + 120000 AND bd < d.d""",
            "pairs of pairs": """
                WITH a AS (SELECT *, ts // 120000 k FROM s1),
                     b AS (SELECT *, ts // 120000 k FROM s3),
                     c AS (SELECT ts, d, unnest([ts // 120000 - 1, ts // 120000, ts // 120000 + 1])
                           k FROM s5),
                     d AS (SELECT ts, d, unnest([ts // 120000 - 1, ts // 120000, ts // 120000 + 1])
                           k FROM s7),
                     ac AS (SELECT least(a.ts, c.ts) lo, greatest(a.ts, c.ts) hi
                            FROM a JOIN c USING (k)
                            WHERE c.ts BETWEEN a.ts - 120000 AND a.ts + 120000 AND a.d < c.d),
                     bd AS (SELECT least(b.ts, d.ts) lo, greatest(b.ts, d.ts) hi
                            FROM b JOIN d USING (k)
                            WHERE d.ts BETWEEN b.ts - 120000 AND b.ts + 120000 AND b.d < d.d),
                     p AS (SELECT *, lo // 120000 k FROM ac),
                     q AS (SELECT *, unnest([lo // 120000 - 1, lo // 120000, lo // 120000 + 1]) k
                           FROM bd)
                SELECT count(*) FROM p JOIN q USING (k)
                WHERE greatest(p.hi, q.hi) - least(p.lo, q.lo) <= 120000""",
        },
    ),
    Task(
        "P5",
        "PATTERN SEQ(s0 a, s2 b, s4 c, s6 d, s8 e) "
        "WHERE a.difference < b.difference AND c.difference < e.difference WITHIN 1 minutes",
        {
            "buckets": """
                WITH a AS (SELECT ts ta, d da, unnest([ts // 60000, ts // 60000 + 1]) k FROM s0),
                     b AS (SELECT ts tb, d db, ts // 60000 k FROM s2),
                     c AS (SELECT ts tc, d dc, ts // 60000 k FROM s4),
                     d AS (SELECT ts td, ts // 60000 k FROM s6),
                     e AS (SELECT ts te, d de, ts // 60000 k FROM s8),
                     ab AS (SELECT ta, tb, unnest([k, k + 1]) k FROM a JOIN b USING (k)
                            WHERE tb > ta AND tb <= ta + 60000 AND da < db),
                     abc AS (SELECT ta, tc, dc, unnest([k, k + 1]) k FROM ab JOIN c USING (k)
                             WHERE tc > tb AND tc <= ta + 60000),
                     abcd AS (SELECT ta, td, dc, unnest([k, k + 1]) k FROM abc JOIN d USING (k)
                              WHERE td > tc AND td <= ta + 60000)
                SELECT count(*) FROM abcd JOIN e USING (k)
                WHERE te > td AND te <= ta + 60000 AND dc < de""",
        },
    ),
)


def contestants(
    task: Task, stream: cep.EventStream, connection: duckdb.DuckDBPyConnection
) -> Iterator[tuple[str, Callable[[], tuple[float, int]]]]:
    """Each way to count or list the matches of a task: seconds and matches of one run."""
    pattern = task.pattern
    measured = cep.measure_statistics(pattern, stream, seed=0)
    for algorithm in ("DP-LD", "DP-B"):
        plan = cep.plan(pattern, measured, algorithm=algorithm)
        for output in ("count", "matches"):

            def detect(plan: cep.OrderPlan | cep.TreePlan = plan, output: str = output):  # type: ignore[no-untyped-def]
                result = cep.evaluate(pattern, stream, plan, output=output)
                return result.metrics.seconds, result.metrics.matches

            yield f"cepbench {algorithm}, {output}", detect
    for name, query in task.queries.items():

        def count(query: str = query):  # type: ignore[no-untyped-def]
            before = time.perf_counter()
            (found,) = connection.execute(query).fetchone() or (None,)
            return time.perf_counter() - before, int(found)

        yield f"DuckDB {name}, count", count


def measure(events: int, repetitions: int, seed: int) -> pd.DataFrame:
    """One row a task, contestant and repetition."""
    table = ten_symbols(events, seed)
    typed = table.assign(ts=pd.to_datetime(table["ts"], unit="ms"))
    stream = cep.EventStream.from_pandas(typed, type="symbol", time="ts")
    connection = duckdb.connect(config={"threads": 1})
    connection.register("events", table)
    for symbol in table["symbol"].cat.categories:
        connection.execute(
            f"CREATE TABLE {symbol} AS SELECT ts, difference d FROM events "
            f"WHERE symbol = '{symbol}' ORDER BY ts"
        )
    rows = []
    for task in TASKS:
        runs = list(contestants(task, stream, connection))
        found = {name: run()[1] for name, run in runs}
        if len(set(found.values())) != 1:
            raise SystemExit(f"{task.name}: the numbers of matches differ: {found}")
        for repetition in range(repetitions):
            for name, run in runs:
                seconds, matches = run()
                rows.append(
                    {
                        "task": task.name,
                        "contestant": name,
                        "repetition": repetition,
                        "events": events,
                        "seed": seed,
                        "matches": matches,
                        "seconds": seconds,
                    }
                )
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> str:
    """Median, least and most time, and the paired ratio of the quickest SQL query's time to it."""
    lines = []
    for task, its in rows.groupby("task", sort=False):
        times = its.pivot(index="repetition", columns="contestant", values="seconds")
        queries = [name for name in times if name.startswith("DuckDB")]
        quickest = times[queries].median().idxmin()
        text = next(known.text for known in TASKS if known.name == task)
        lines += [f"{task}: {text}", f"  {its['matches'].iloc[0]:,} matches"]
        lines.append(f"  {'':<30} {'median':>10} {'least':>10} {'most':>10}   best SQL / this")
        for name in its["contestant"].unique():
            shown = "".join(
                f" {1e3 * x:>7.1f} ms"
                for x in (times[name].median(), times[name].min(), times[name].max())
            )
            ratios = (times[quickest] / times[name]).tolist()
            ratio = f"{statistics.median(ratios):.2f} [{min(ratios):.2f}, {max(ratios):.2f}]"
            lines.append(f"  {name:<30}{shown}   {ratio}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description="Detection against SQL in one thread.")
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="where to write the rows: a .parquet file")
    given = parser.parse_args(arguments)
    if given.out and given.out.suffix != ".parquet":
        parser.error(f"--out {given.out}: the name must end in .parquet")
    rows = measure(given.events, given.repetitions, given.seed)
    print(
        f"detection, {given.events:,} events, seed {given.seed}, {given.repetitions} repetitions, "
        f"DuckDB {duckdb.__version__} in one thread"
    )
    print(summary(rows))
    if given.out:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        rows.to_parquet(given.out, index=False)
        print(f"{len(rows)} rows in {given.out}")


if __name__ == "__main__":
    main(sys.argv[1:])
