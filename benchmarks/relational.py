"""The patterns of ``bench_detection.py`` as queries for DuckDB and Polars, the best that we found.

Both engines get one table a symbol, sorted by time: ``position`` (of 32 bits), ``ts`` in
milliseconds, and ``d``. A join on time alone compares all pairs. In SQL, dividing time into buckets
as long as the window makes it a hash join of neighbouring buckets. Polars has a join for a value
between two others, which it takes if both are columns of their own. Where the last event of a match
is compared with nothing but time, running counts tell how many there are without listing them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

os.environ["POLARS_MAX_THREADS"] = "1"  # it is read when Polars is imported

import polars as pl
from polars import col

import cepbench as cep

#: A symbol's table.
Tables = Mapping[str, pl.LazyFrame]


@dataclass(frozen=True)
class Query:
    """A query with ``{shown}`` for what it shows: the number of rows, or the positions."""

    text: str
    positions: str = ""

    @property
    def counting(self) -> str:
        """The query for the number of matches."""
        return self.text.format(shown="count(*)")

    @property
    def listing(self) -> str | None:
        """The query for positions; None if it can only count."""
        return self.text.format(shown=self.positions) if self.positions else None


@dataclass(frozen=True)
class Task:
    """A pattern, and ways to find its matches.

    Attributes
    ----------
    name, text : str
    queries : dict of str to Query
        For DuckDB, by name.
    frame : callable
        For Polars: from the tables, and whether positions are asked for, to the matches.
    """

    name: str
    text: str
    queries: dict[str, Query]
    frame: Callable[[Tables, bool], pl.LazyFrame]

    @cached_property
    def pattern(self) -> cep.Pattern:
        """The parsed pattern."""
        return cep.parse(self.text)


def _of(tables: Tables, symbol: str, name: str) -> pl.LazyFrame:
    """A symbol's events as the variable ``name``: its position, and the columns t… and d…"""
    return tables[symbol].select(
        col("position").alias(name), col("ts").alias(f"t{name}"), col("d").alias(f"d{name}")
    )


def _p3(tables: Tables, positions: bool) -> pl.LazyFrame:
    a, b, c = (_of(tables, s, n) for s, n in (("s3", "a"), ("s6", "b"), ("s9", "c")))
    kept = ["a", "b"] if positions else []
    ab = (
        a.with_columns(end=col("ta") + 300_000)
        .join_where(b, col("ta") < col("tb"), col("end") >= col("tb"), col("da") < col("db"))
        .select("tb", "end", *kept)
    )
    return ab.join_where(c, col("tb") < col("tc"), col("end") >= col("tc"))


def _p4(tables: Tables, positions: bool) -> pl.LazyFrame:
    window = 120_000

    def pairs(first: str, second: str, x: str, y: str) -> pl.LazyFrame:
        one, other = _of(tables, first, x), _of(tables, second, y)
        return (
            one.with_columns(begin=col(f"t{x}") - window, end=col(f"t{x}") + window)
            .join_where(
                other,
                col("begin") <= col(f"t{y}"),
                col("end") >= col(f"t{y}"),
                col(f"d{x}") < col(f"d{y}"),
            )
            .select(
                pl.min_horizontal(f"t{x}", f"t{y}").alias(f"low {x}"),
                pl.max_horizontal(f"t{x}", f"t{y}").alias(f"high {x}"),
                *([x, y] if positions else []),
            )
        )

    ac = pairs("s1", "s5", "a", "c").with_columns(
        begin=col("high a") - window, end=col("low a") + window
    )
    return ac.join_where(
        pairs("s3", "s7", "b", "d"),
        col("begin") <= col("low b"),
        col("end") >= col("low b"),
        col("high b") <= col("end"),
    )


def _p5(tables: Tables, positions: bool) -> pl.LazyFrame:
    a, b, c, d, e = (_of(tables, s, n) for s, n in zip(SYMBOLS_OF_P5, "abcde", strict=True))
    kept = "abcd" if positions else ""
    found = (
        a.with_columns(end=col("ta") + 60_000)
        .join_where(b, col("ta") < col("tb"), col("end") >= col("tb"), col("da") < col("db"))
        .select("end", "tb", *kept[:2])
        .join_where(c, col("tb") < col("tc"), col("end") >= col("tc"))
        .select("end", "tc", "dc", *kept[:3])
        .join_where(d, col("tc") < col("td"), col("end") >= col("td"))
        .select("end", "td", "dc", *kept)
    )
    return found.join_where(
        e, col("td") < col("te"), col("end") >= col("te"), col("dc") < col("de")
    )


SYMBOLS_OF_P5 = ("s0", "s2", "s4", "s6", "s8")

#: Pairs of a and c, and of b and d, of P4.
_PAIRS = """
    a AS (SELECT *, ts // 120000 k FROM s1),
    b AS (SELECT *, ts // 120000 k FROM s3),
    c AS (SELECT *, unnest([ts // 120000 - 1, ts // 120000, ts // 120000 + 1]) k FROM s5),
    d AS (SELECT *, unnest([ts // 120000 - 1, ts // 120000, ts // 120000 + 1]) k FROM s7),
    ac AS (SELECT a.position pa, c.position pc, k, least(a.ts, c.ts) low, greatest(a.ts, c.ts) high
           FROM a JOIN c USING (k)
           WHERE c.ts BETWEEN a.ts - 120000 AND a.ts + 120000 AND a.d < c.d)"""

TASKS = (
    Task(
        "P3",
        "PATTERN SEQ(s3 a, s6 b, s9 c) WHERE a.difference < b.difference WITHIN 5 minutes",
        {
            "buckets": Query(
                """
                WITH a AS (SELECT *, unnest([ts // 300000, ts // 300000 + 1]) k FROM s3),
                     b AS (SELECT *, ts // 300000 k FROM s6),
                     c AS (SELECT *, ts // 300000 k FROM s9),
                     ab AS (SELECT a.position pa, b.position pb, a.ts ta, b.ts tb,
                                   unnest([k, k + 1]) k
                            FROM a JOIN b USING (k)
                            WHERE b.ts > a.ts AND b.ts <= a.ts + 300000 AND a.d < b.d)
                SELECT {shown} FROM ab JOIN c USING (k)
                WHERE c.ts > tb AND c.ts <= ta + 300000""",
                "pa AS a, pb AS b, c.position AS c",
            ),
            "running counts": Query(
                """
                WITH c AS (SELECT ts, max(n) n
                           FROM (SELECT ts, row_number() OVER (ORDER BY ts) n FROM s9) GROUP BY ts),
                     a AS (SELECT s3.ts, d, coalesce(n, 0) n,
                                  unnest([s3.ts // 300000, s3.ts // 300000 + 1]) k
                           FROM s3 ASOF LEFT JOIN c ON s3.ts + 300000 >= c.ts),
                     b AS (SELECT s6.ts, d, coalesce(n, 0) n, s6.ts // 300000 k
                           FROM s6 ASOF LEFT JOIN c ON s6.ts >= c.ts)
                SELECT sum(a.n - b.n) FROM a JOIN b USING (k)
                WHERE b.ts > a.ts AND b.ts <= a.ts + 300000 AND a.d < b.d"""
            ),
        },
        _p3,
    ),
    Task(
        "P4",
        "PATTERN AND(s1 a, s3 b, s5 c, s7 d) "
        "WHERE a.difference < c.difference AND b.difference < d.difference WITHIN 2 minutes",
        {
            "buckets": Query(
                f"""
                WITH {_PAIRS},
                acb AS (SELECT pa, pc, b.position pb, k, least(low, ts) low,
                               greatest(high, ts) high, d bd
                        FROM (SELECT * REPLACE (unnest([k - 1, k, k + 1]) AS k) FROM ac)
                        JOIN b USING (k)
                        WHERE ts BETWEEN high - 120000 AND low + 120000)
                SELECT {{shown}} FROM acb JOIN d USING (k)
                WHERE d.ts BETWEEN high - 120000 AND low + 120000 AND bd < d.d""",
                "pa AS a, pb AS b, pc AS c, d.position AS d",
            ),
            "pairs of pairs": Query(
                f"""
                WITH {_PAIRS},
                bd AS (SELECT b.position pb, d.position pd, least(b.ts, d.ts) low,
                              greatest(b.ts, d.ts) high
                       FROM b JOIN d USING (k)
                       WHERE d.ts BETWEEN b.ts - 120000 AND b.ts + 120000 AND b.d < d.d),
                p AS (SELECT * REPLACE (low // 120000 AS k) FROM ac),
                q AS (SELECT *, unnest([low // 120000 - 1, low // 120000, low // 120000 + 1]) k
                      FROM bd)
                SELECT {{shown}} FROM p JOIN q USING (k)
                WHERE greatest(p.high, q.high) - least(p.low, q.low) <= 120000""",
                "pa AS a, pb AS b, pc AS c, pd AS d",
            ),
        },
        _p4,
    ),
    Task(
        "P5",
        "PATTERN SEQ(s0 a, s2 b, s4 c, s6 d, s8 e) "
        "WHERE a.difference < b.difference AND c.difference < e.difference WITHIN 1 minutes",
        {
            "buckets": Query(
                """
                WITH a AS (SELECT *, unnest([ts // 60000, ts // 60000 + 1]) k FROM s0),
                     b AS (SELECT *, ts // 60000 k FROM s2),
                     c AS (SELECT *, ts // 60000 k FROM s4),
                     d AS (SELECT *, ts // 60000 k FROM s6),
                     e AS (SELECT *, ts // 60000 k FROM s8),
                     ab AS (SELECT a.position pa, b.position pb, a.ts ta, b.ts tb,
                                   unnest([k, k + 1]) k
                            FROM a JOIN b USING (k)
                            WHERE b.ts > a.ts AND b.ts <= a.ts + 60000 AND a.d < b.d),
                     abc AS (SELECT pa, pb, position pc, ta, ts tc, d dc, unnest([k, k + 1]) k
                             FROM ab JOIN c USING (k) WHERE ts > tb AND ts <= ta + 60000),
                     abcd AS (SELECT pa, pb, pc, position pd, ta, ts td, dc, unnest([k, k + 1]) k
                              FROM abc JOIN d USING (k) WHERE ts > tc AND ts <= ta + 60000)
                SELECT {shown} FROM abcd JOIN e USING (k)
                WHERE ts > td AND ts <= ta + 60000 AND dc < d""",
                "pa AS a, pb AS b, pc AS c, pd AS d, position AS e",
            ),
        },
        _p5,
    ),
)
