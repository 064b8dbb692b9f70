"""The patterns of ``bench_detection.py`` in Polars: by ``join_where``, and by ranges.

Tables are sorted by time, so that the partners of an event in a window are a range of rows: two
binary searches find it, ``int_ranges`` and ``explode`` list it, and columns are gathered by row
number. The number of rows between two times is the difference of two such searches, so that the
events of a variable that is compared with nothing but time are counted without being listed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

os.environ["POLARS_MAX_THREADS"] = "1"  # it is read when Polars is imported

import polars as pl
from polars import col

#: A symbol's table, its times marked as sorted.
Tables = Mapping[str, pl.DataFrame]

SYMBOLS_OF_P5 = ("s0", "s2", "s4", "s6", "s8")


@dataclass(frozen=True)
class Frame:
    """A query of Polars.

    Attributes
    ----------
    build : callable
        From the tables, and whether positions are asked for, to the matches. If not ``lists``, and
        positions are not asked for: to one row with the number of matches.
    lists : bool
        Whether it counts by listing all matches.
    engine : {"streaming", "in-memory"}
    """

    build: Callable[[Tables, bool], pl.LazyFrame]
    lists: bool = True
    engine: str = "streaming"


def _of(tables: Tables, symbol: str, name: str) -> pl.LazyFrame:
    """A symbol's events as the variable ``name``: its position, and the columns t… and d…"""
    return (
        tables[symbol]
        .lazy()
        .select(
            col("position").alias(name), col("ts").alias(f"t{name}"), col("d").alias(f"d{name}")
        )
    )


def rows_until(table: pl.DataFrame, time: pl.Expr, *, including: bool) -> pl.Expr:
    """How many rows of a table come before a time, those at the time included or not."""
    side = "right" if including else "left"
    return pl.lit(table["ts"]).search_sorted(time, side=side).cast(pl.Int64)


def each_between(
    rows: pl.LazyFrame, table: pl.DataFrame, begin: pl.Expr, end: pl.Expr, **columns: pl.Series
) -> pl.LazyFrame:
    """The rows, each once for every row of a table from ``begin`` up to ``end``, with columns."""
    listed = (
        rows.with_columns(begin=begin, end=end)
        .filter(col("begin") < col("end"))
        .with_columns(row=pl.int_ranges("begin", "end", dtype=pl.UInt32))
        .explode("row")
    )
    return listed.with_columns(
        **{name: pl.lit(values).gather(col("row")) for name, values in columns.items()}
    )


def _later(
    rows: pl.LazyFrame, table: pl.DataFrame, name: str, begin: str, end: str
) -> pl.LazyFrame:
    """The rows with every event after the time ``begin`` up to the time ``end``."""
    return each_between(
        rows,
        table,
        rows_until(table, col(begin), including=True),
        rows_until(table, col(end), including=True),
        **{name: table["position"], f"t{name}": table["ts"], f"d{name}": table["d"]},
    )


def _p3_joined(tables: Tables, positions: bool) -> pl.LazyFrame:
    a, b, c = (_of(tables, s, n) for s, n in (("s3", "a"), ("s6", "b"), ("s9", "c")))
    kept = ["a", "b"] if positions else []
    ab = (
        a.with_columns(end=col("ta") + 300_000)
        .join_where(b, col("ta") < col("tb"), col("end") >= col("tb"), col("da") < col("db"))
        .select("tb", "end", *kept)
    )
    return ab.join_where(c, col("tb") < col("tc"), col("end") >= col("tc"))


def _p3_ranges(tables: Tables, positions: bool) -> pl.LazyFrame:
    b, c = tables["s6"], tables["s9"]
    until = col("ta") + 300_000
    a = _of(tables, "s3", "a").with_columns(until=until, after=rows_until(c, until, including=True))
    pairs = _later(a, b, "b", "ta", "until").filter(col("da") < col("db"))
    if positions:
        return _later(pairs, c, "c", "tb", "until")
    before = c["ts"].search_sorted(b["ts"], side="right").cast(pl.Int64)
    return pairs.select((col("after") - pl.lit(before).gather(col("row"))).sum())


def _p4_joined(tables: Tables, positions: bool) -> pl.LazyFrame:
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


def _p4_ranges(tables: Tables, positions: bool) -> pl.LazyFrame:
    window = 120_000

    def near(rows: pl.LazyFrame, symbol: str, name: str) -> pl.LazyFrame:
        """The rows with every event that fits into their window, from ``low`` to ``high``."""
        table = tables[symbol]
        return each_between(
            rows,
            table,
            rows_until(table, col("high") - window, including=False),
            rows_until(table, col("low") + window, including=True),
            **{name: table["position"], f"t{name}": table["ts"], f"d{name}": table["d"]},
        ).with_columns(
            low=pl.min_horizontal("low", f"t{name}"), high=pl.max_horizontal("high", f"t{name}")
        )

    def pairs(first: str, second: str, x: str, y: str) -> pl.LazyFrame:
        one = _of(tables, first, x).with_columns(low=col(f"t{x}"), high=col(f"t{x}"))
        return near(one, second, y).filter(col(f"d{x}") < col(f"d{y}"))

    ac = pairs("s1", "s5", "a", "c")
    if positions:
        return near(near(ac, "s3", "b"), "s7", "d").filter(col("db") < col("dd"))
    # Of the pairs of b and d that end in time those do not fit that begin too early: no pair that
    # begins too early ends too late.
    bd = pairs("s3", "s7", "b", "d")

    def fitting(of_ac: pl.Expr, of_bd: str, *, exactly: bool) -> pl.LazyFrame:
        """Pairs of pairs, of which the second's time comes before the first's, or with it."""
        seen = bd.group_by(t=of_bd).len().sort("t").select("t", seen=col("len").cum_sum())
        times = ac.group_by(t=of_ac).len().sort("t")
        found = times.join_asof(seen, on="t", allow_exact_matches=exactly, check_sortedness=False)
        return found.select(number=(col("len").cast(pl.Int64) * col("seen").cast(pl.Int64)).sum())

    in_time = fitting(col("low") + window, "high", exactly=True)
    too_early = fitting(col("high") - window, "low", exactly=False)
    return pl.concat([in_time, too_early.select(-col("number"))]).sum()


def _p5_joined(tables: Tables, positions: bool) -> pl.LazyFrame:
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


def _p5_ranges(tables: Tables, positions: bool) -> pl.LazyFrame:
    _, b, c, d, e = (tables[symbol] for symbol in SYMBOLS_OF_P5)
    a = _of(tables, "s0", "a").with_columns(until=col("ta") + 60_000)
    ab = _later(a, b, "b", "ta", "until").filter(col("da") < col("db"))
    abc = _later(ab, c, "c", "tb", "until")
    if positions:
        abcd = _later(abc, d, "d", "tc", "until")
        return _later(abcd, e, "e", "td", "until").filter(col("dc") < col("de"))
    abc = abc.with_columns(before=rows_until(d, col("tc"), including=True))
    abce = _later(abc, e, "e", "tc", "until").filter(col("dc") < col("de"))
    until = d["ts"].search_sorted(e["ts"], side="left").cast(pl.Int64)
    return abce.select((pl.lit(until).gather(col("row")) - col("before")).sum())


def ways(
    joined: Callable[[Tables, bool], pl.LazyFrame],
    ranges: Callable[[Tables, bool], pl.LazyFrame],
    *,
    running_counts: bool,
) -> dict[str, Frame]:
    """By ``join_where``, and by ranges in both engines of Polars.

    Parameters
    ----------
    joined, ranges : callable
        As of :class:`Frame`.
    running_counts : bool
        Whether ``ranges`` counts without listing.

    Returns
    -------
    dict of str to Frame
        By name.
    """
    in_order = Frame(ranges, lists=not running_counts)
    return {
        "join_where": Frame(joined),
        "ranges": in_order,
        "ranges in memory": replace(in_order, engine="in-memory"),
    }


#: Task -> name -> query.
FRAMES = {
    "P3": ways(_p3_joined, _p3_ranges, running_counts=True),
    "P4": ways(_p4_joined, _p4_ranges, running_counts=True),
    "P5": ways(_p5_joined, _p5_ranges, running_counts=True),
}
