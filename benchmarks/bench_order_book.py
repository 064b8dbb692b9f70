"""Detection on real order-book messages: ``python benchmarks/bench_order_book.py --hour FILE``.

FILE is an hour of messages as LOBSTER gives them away as samples (lobsterdata.com), whose name
tells the day. It belongs to others and is no part of this repository; without one nothing is
measured. Three patterns of what traders do are detected by cepbench, DuckDB and Polars as in
``bench_detection.py``. Prices and sizes are those of the messages; a message's type is what happened
to an order, and the order's side.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa
from bench_detection import Data, measure, report
from command_line import parser_of
from polars_frames import Tables, col, each_between, pl, rows_until, ways
from relational import Query, Task

import cepbench as cep
from cepbench.streams.sources import LOBSTER, lobster_day, read_rows

_SECOND = 10**9


def _of(tables: Tables, symbol: str, name: str, *attributes: str) -> pl.LazyFrame:
    """Messages of a type as the variable ``name``: position, ``t…``, and attributes."""
    return (
        tables[symbol]
        .lazy()
        .select(
            col("position").alias(name),
            col("ts").alias(f"t{name}"),
            *(col(attribute).alias(f"{attribute} {name}") for attribute in attributes),
        )
    )


def _withdrawn_joined(tables: Tables, positions: bool) -> pl.LazyFrame:
    s = _of(tables, "submission_buy", "s", "order_id", "price")
    d = _of(tables, "deletion_buy", "d", "order_id")
    e = _of(tables, "execution_sell", "e", "price")
    both = s.join(d, left_on="order_id s", right_on="order_id d").filter(
        col("ts") < col("td"), col("td") <= col("ts") + 2 * _SECOND
    )
    kept = ["s", "d"] if positions else []
    return both.select("ts", "td", "price s", *kept).join_where(
        e, col("ts") < col("te"), col("td") > col("te"), col("price e") > col("price s")
    )


def _withdrawn_ranges(tables: Tables, positions: bool) -> pl.LazyFrame:
    s = _of(tables, "submission_buy", "s", "order_id", "price")
    d = _of(tables, "deletion_buy", "d", "order_id")
    e = tables["execution_sell"]
    both = s.join(d, left_on="order_id s", right_on="order_id d").filter(
        col("ts") < col("td"), col("td") <= col("ts") + 2 * _SECOND
    )
    begin = rows_until(e, col("ts"), including=True)
    end = rows_until(e, col("td"), including=False)
    found = each_between(both, e, begin, end, **{"e": e["position"], "price e": e["price"]})
    return found.filter(col("price e") > col("price s"))


def _climbing_joined(tables: Tables, positions: bool) -> pl.LazyFrame:
    a, b, c = (_of(tables, "execution_sell", name, "price") for name in "abc")
    kept = ["a", "b"] if positions else []
    ab = a.with_columns(end=col("ta") + 5 * _SECOND).join_where(
        b, col("ta") < col("tb"), col("end") >= col("tb"), col("price a") < col("price b")
    )
    return ab.select("end", "tb", "price b", *kept).join_where(
        c, col("tb") < col("tc"), col("end") >= col("tc"), col("price b") < col("price c")
    )


def _climbing_ranges(tables: Tables, positions: bool) -> pl.LazyFrame:
    table = tables["execution_sell"]

    def higher(rows: pl.LazyFrame, x: str, y: str) -> pl.LazyFrame:
        """The rows with every later message of the table at a higher price."""
        begin = rows_until(table, col(f"t{x}"), including=True)
        end = rows_until(table, col("until"), including=True)
        columns = {y: table["position"], f"t{y}": table["ts"], f"price {y}": table["price"]}
        found = each_between(rows, table, begin, end, **columns)
        return found.filter(col(f"price {x}") < col(f"price {y}"))

    a = _of(tables, "execution_sell", "a", "price").with_columns(until=col("ta") + 5 * _SECOND)
    return higher(higher(a, "a", "b"), "b", "c")


def _squeezed_joined(tables: Tables, positions: bool) -> pl.LazyFrame:
    window = _SECOND // 2
    x = _of(tables, "execution_buy", "x", "price", "size").with_columns(
        begin=col("tx") - window, end=col("tx") + window
    )
    b = _of(tables, "deletion_buy", "b", "price")
    s = _of(tables, "submission_sell", "s", "price", "size")
    xb = x.join_where(
        b, col("begin") <= col("tb"), col("end") >= col("tb"), col("price b") < col("price x")
    ).select(
        "size x",
        "price x",
        *(["x", "b"] if positions else []),
        begin=pl.max_horizontal("tx", "tb") - window,
        end=pl.min_horizontal("tx", "tb") + window,
    )
    return xb.join_where(
        s,
        col("begin") <= col("ts"),
        col("end") >= col("ts"),
        col("price s") <= col("price x") + 0.05,
        col("size s") > col("size x"),
    )


def _squeezed_ranges(tables: Tables, positions: bool) -> pl.LazyFrame:
    window = _SECOND // 2
    b, s = tables["deletion_buy"], tables["submission_sell"]

    def near(rows: pl.LazyFrame, table: pl.DataFrame, **columns: pl.Series) -> pl.LazyFrame:
        """The rows with every message of the table within the window of both their times."""
        begin = rows_until(table, col("high") - window, including=False)
        end = rows_until(table, col("low") + window, including=True)
        return each_between(rows, table, begin, end, **columns)

    x = _of(tables, "execution_buy", "x", "price", "size").with_columns(
        low=col("tx"), high=col("tx")
    )
    columns = {"b": b["position"], "tb": b["ts"], "price b": b["price"]}
    xb = near(x, b, **columns).filter(col("price b") < col("price x"))
    xb = xb.with_columns(low=pl.min_horizontal("tx", "tb"), high=pl.max_horizontal("tx", "tb"))
    columns = {"s": s["position"], "price s": s["price"], "size s": s["size"]}
    return near(xb, s, **columns).filter(
        col("price s") <= col("price x") + 0.05, col("size s") > col("size x")
    )


TASKS = (
    Task(
        "withdrawn",
        # Somebody else pays more than was bid, and so the bid is taken back.
        "PATTERN SEQ(submission_buy s, execution_sell e, deletion_buy d) "
        "WHERE e.price > s.price AND d.order_id = s.order_id WITHIN 2 seconds",
        {
            "joins": Query(
                """
                SELECT {shown} FROM submission_buy s JOIN deletion_buy d USING (order_id)
                JOIN execution_sell e ON e.ts > s.ts AND e.ts < d.ts AND e.price > s.price
                WHERE d.ts > s.ts AND d.ts <= s.ts + 2000000000""",
                "s.position AS s, e.position AS e, d.position AS d",
            )
        },
        ways(_withdrawn_joined, _withdrawn_ranges, running_counts=False),
    ),
    Task(
        "climbing",
        # Three trades, each at a higher price.
        "PATTERN SEQ(execution_sell a, execution_sell b, execution_sell c) "
        "WHERE a.price < b.price AND b.price < c.price WITHIN 5 seconds",
        {
            "buckets": Query(
                """
                WITH a AS (SELECT *, unnest([ts // 5000000000, ts // 5000000000 + 1]) k
                           FROM execution_sell),
                     b AS (SELECT *, ts // 5000000000 k FROM execution_sell),
                     ab AS (SELECT a.position pa, b.position pb, a.ts ta, b.ts tb, b.price,
                                   unnest([k, k + 1]) k
                            FROM a JOIN b USING (k)
                            WHERE b.ts > a.ts AND b.ts <= a.ts + 5000000000 AND a.price < b.price)
                SELECT {shown} FROM ab JOIN b c USING (k)
                WHERE c.ts > tb AND c.ts <= ta + 5000000000 AND ab.price < c.price""",
                "pa AS a, pb AS b, c.position AS c",
            )
        },
        ways(_climbing_joined, _climbing_ranges, running_counts=False),
    ),
    Task(
        "squeezed",
        # Within half a second: a bid is hit, another one below is taken back, a larger offer comes.
        "PATTERN AND(execution_buy x, deletion_buy b, submission_sell s) WHERE b.price < x.price "
        "AND s.price <= x.price + 0.05 AND s.size > x.size WITHIN 0.5 seconds",
        {},
        ways(_squeezed_joined, _squeezed_ranges, running_counts=False),
    ),
)


def prepared(file: Path) -> Data:
    """The messages as a stream, as tables of DuckDB, and as frames of Polars."""
    pieces = list(read_rows(file, LOBSTER, day=lobster_day(file)))
    events = pa.concat_tables(piece.events for piece in pieces).drop_columns("row")
    bad = sum(len(piece.bad) for piece in pieces)
    print(f"{file.name}: {len(events):,} messages, {bad} rows that cannot be read")
    connection = duckdb.connect(config={"threads": 1})
    connection.register("arrow", events)
    connection.execute(
        "CREATE TABLE events AS SELECT (row_number() OVER () - 1)::INTEGER AS position, * "
        "FROM arrow"
    )
    tables = {}
    for symbol in events["symbol"].unique().to_pylist():
        query = (
            "SELECT * EXCLUDE (symbol) REPLACE (epoch_ns(ts) AS ts) FROM events "
            f"WHERE symbol = '{symbol}' ORDER BY position"
        )
        connection.execute(f"CREATE TABLE {symbol} AS {query}")
        tables[symbol] = connection.sql(query).pl().set_sorted("ts")
    stream = cep.EventStream.from_arrow(events, type="symbol", time="ts")
    return Data(stream, connection, tables)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = parser_of(
        "Detection on real order-book messages, against columnar engines.", repetitions=7
    )
    parser.add_argument("--hour", type=Path, help="lobster_…_YYYY-MM-DD_…_message.csv")
    given = parser.parse_args(arguments)
    if given.hour is None:
        print("no file given; see --help and the top of this file")
        return
    rows = measure(TASKS, prepared(given.hour), given.repetitions, file=given.hour.name)
    report(rows, TASKS, f"detection, {given.repetitions} repetitions", given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
