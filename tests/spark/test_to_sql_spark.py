"""Queries that ``to_sql`` writes for Spark find what the evaluators and DuckDB find."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from cepbench.engines.detection.evaluate import evaluate
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import AnyPlan, OrderPlan, TreePlan, UnionPlan
from cepbench.planning.sql.conditions import ConditionWriter
from cepbench.planning.sql.dialects import DIALECTS
from cepbench.planning.sql.to_sql import to_sql
from cepbench.streams.event_stream import EventStream
from tests.engines.detection.strategies import MORNING, stream_of
from tests.planning.sql.examples import CONDITIONS, CONSTRUCTS, construct_events, values_events
from tests.planning.sql.in_duckdb import arrow_table, table_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def queried(spark: SparkSession, query: str) -> tuple[list[str], list[tuple]]:
    frame = spark.sql(query)
    return frame.columns, [tuple(row) for row in frame.collect()]


def some_plan(pattern: Pattern) -> AnyPlan:
    plans = [OrderPlan(branch.positive_names[::-1]) for branch in pattern.branches()]
    return plans[0] if len(plans) == 1 else UnionPlan(plans)


@pytest.fixture(scope="module", autouse=True)
def quick_queries(spark: SparkSession) -> Iterator[None]:
    """Nothing here is worth to be planned again while it runs."""
    name = "spark.sql.adaptive.enabled"
    spark.conf.set(name, "false")
    yield
    spark.conf.unset(name)


@pytest.fixture(scope="module")
def constructs(spark: SparkSession) -> EventStream:
    events = construct_events(600)
    spark.createDataFrame(arrow_table(events)).createOrReplaceTempView("events")
    return stream_of(events)


#: Of each construct one, beside those whose order is looked at.
OTHERS = (
    "sequence",
    "inner negation",
    "trailing negation",
    "negation on both sides",
    "negation of a bound type",
    "nested disjunction",
    "neighbours",
    "partitions",
)


@pytest.mark.parametrize("example", ["nested", "the same twice", "one in a partition"])
def test_rows_and_columns_in_their_order(example: str, spark, constructs) -> None:
    pattern = parse(f"PATTERN {CONSTRUCTS[example]}")
    plan = some_plan(pattern)
    expected = table_of(evaluate(pattern, constructs, plan).matches)
    assert expected[1]
    assert queried(spark, to_sql(pattern, plan, "spark")) == expected


def test_other_constructs(spark, constructs) -> None:
    expected, queries = {}, []
    for number, example in enumerate(OTHERS):
        pattern = parse(f"PATTERN {CONSTRUCTS[example]}")
        plan = some_plan(pattern)
        names, rows = table_of(evaluate(pattern, constructs, plan).matches)
        expected[example] = {frozenset(zip(names, row, strict=True)) for row in rows}
        assert rows
        # Every second one along the plan: it is the same text with other joins.
        query = to_sql(pattern, plan if number % 2 else None, "spark")
        queries.append(f"SELECT '{example}' AS example, to_json(struct(*)) AS row FROM ({query})")
    # All in one, as each takes Spark a second of its own. An order is not kept here.
    found: dict[str, list[frozenset]] = {example: [] for example in OTHERS}
    written = " UNION ALL ".join(queries)
    spark.conf.set("spark.sql.jsonGenerator.ignoreNullFields", "false")
    try:
        for example, row in spark.sql(written).collect():
            found[example].append(frozenset(json.loads(row).items()))
    finally:
        spark.conf.unset("spark.sql.jsonGenerator.ignoreNullFields")
    for example, rows in found.items():
        assert len(rows) == len(expected[example])
        assert set(rows) == expected[example]


def test_values_compare_as_in_the_evaluators(spark) -> None:
    table = arrow_table(values_events())
    spark.createDataFrame(table).createOrReplaceTempView("values_of_events")
    stream = EventStream.from_arrow(table.drop_columns("position"), type="type", time="time")
    columns, expected = [], []
    for condition in CONDITIONS:
        pattern = parse(f"PATTERN AND(A a, B b) WHERE {condition} WITHIN 20 units")
        result = evaluate(pattern, stream, OrderPlan(["a", "b"]), output="count")
        expected.append(result.metrics.matches)
        writer = ConditionWriter(pattern, DIALECTS["spark"], "time")
        texts = (writer.clause(c, lambda *key: ".".join(key)) for c in pattern.conditions)
        columns.append(f"count_if({' AND '.join(texts)}) AS c{len(columns)}")
    # All in one join, which takes Spark longer than the conditions do.
    (found,) = spark.sql(
        f"SELECT {', '.join(columns)} FROM values_of_events AS a, values_of_events AS b "
        "WHERE a.type = 'A' AND b.type = 'B'"
    ).collect()
    assert dict(zip(CONDITIONS, found, strict=True)) == dict(zip(CONDITIONS, expected, strict=True))


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_NTZ"])
def test_timestamps(kind: str, spark) -> None:
    events = construct_events(120)
    events["time"] = MORNING + events["time"] * 10**9
    table = arrow_table(events, is_datetime=True)
    spark.createDataFrame(table).createOrReplaceTempView("timed")
    pattern = parse("PATTERN SEQ(A a, AND(B b, C c), NOT(D n)) WHERE a.x < c.x WITHIN 3 seconds")
    stream = EventStream.from_arrow(table.drop_columns("position"), type="type", time="time")
    plan = TreePlan(("a", ("c", "b")))
    expected = table_of(evaluate(pattern, stream, plan).matches)
    assert expected[1]
    query = to_sql(pattern, plan, "spark", table="typed")
    typed = f"SELECT * EXCEPT (time), CAST(time AS {kind}) AS time FROM timed"
    spark.sql(typed).createOrReplaceTempView("typed")
    assert queried(spark, query) == expected


def test_windows_shorter_than_a_second(spark) -> None:
    """And those of a second and a part; all in one query, as each takes Spark a second."""
    rng = np.random.default_rng(4)
    steps = rng.choice([0, 1, 250_000, 500_000, 999_999, 1_000_000, 1_500_000], 80)
    events = pd.DataFrame(
        {"type": rng.choice(["A", "B"], 80), "time": MORNING + np.cumsum(steps) * 1_000}
    )
    table = arrow_table(events, is_datetime=True)
    spark.createDataFrame(table).createOrReplaceTempView("fine")
    stream = EventStream.from_arrow(table.drop_columns("position"), type="type", time="time")
    windows = (
        "1 milliseconds",
        "0.5 seconds",
        "999.999 milliseconds",
        "1.5 seconds",
        "2.500001 seconds",
    )
    expected, queries = [], []
    for window in windows:
        pattern = parse(f"PATTERN SEQ(A a, B b) WITHIN {window}")
        counted = evaluate(pattern, stream, OrderPlan(["a", "b"]), output="count")
        expected.append(counted.metrics.matches)
        for plan in (None, OrderPlan(["b", "a"])):
            queries.append(to_sql(pattern, plan, "spark", table="fine", output="count"))
    assert len(set(expected)) == len(expected)
    columns = ", ".join(f"({query}) AS c{number}" for number, query in enumerate(queries))
    (found,) = spark.sql(f"SELECT {columns}").collect()
    assert list(found) == [count for count in expected for _ in range(2)]


def test_windows_of_days_are_of_hours_where_clocks_change(spark) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        spark.sql(
            "SELECT * FROM VALUES (0L, 'A', timestamp_seconds(1774695600L)), "
            "(1L, 'B', timestamp_seconds(1774695600L + 86400)), "
            "(2L, 'B', timestamp_seconds(1774695600L + 86401)) AS t(position, type, time)"
        ).createOrReplaceTempView("clocks")
        for window, found in (("1 days", 1), ("86400.0005 seconds", 1), ("86401 seconds", 2)):
            pattern = parse(f"PATTERN SEQ(A a, B b) WITHIN {window}")
            assert len(queried(spark, to_sql(pattern, dialect="spark", table="clocks"))[1]) == found
        # Times without a zone have no hour that is missing, in buckets neither.
        spark.sql(
            "SELECT * FROM VALUES (0L, 'A', TIMESTAMP_NTZ '2026-03-29 01:50:00'), "
            "(1L, 'B', TIMESTAMP_NTZ '2026-03-29 02:10:00') AS t(position, type, time)"
        ).createOrReplaceTempView("clocks")
        pattern = parse("PATTERN SEQ(A a, B b) WITHIN 30 minutes")
        query = to_sql(pattern, OrderPlan(["a", "b"]), "spark", table="clocks")
        assert queried(spark, query)[1] == [(0, 1)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def test_names_are_quoted(spark) -> None:
    spark.sql(
        "SELECT * FROM VALUES (1, 'A', 3, 1e0), (2, 'B', 4, 2e0) "
        "AS t(`order`, `from`, `a``b`, `x.y`)"
    ).createOrReplaceTempView("select")
    pattern = parse(
        'PATTERN SEQ(A "group by", B b) WHERE "group by"."x.y" < b."x.y" WITHIN 1 units'
    )
    query = to_sql(
        pattern,
        dialect="spark",
        table="select",
        type_column="from",
        time_column="a`b",
        position_column="order",
    )
    assert queried(spark, query) == (["group by", "b"], [(1, 2)])


def test_the_order_of_a_plan_is_kept(spark) -> None:
    spark.sql(
        "SELECT id AS position, id AS time, chr(65 + id % 3) AS type FROM range(90)"
    ).createOrReplaceTempView("ranged")
    pattern = parse("PATTERN SEQ(A a, B b, C c) WITHIN 4 units")
    for order in (["a", "b", "c"], ["c", "a", "b"], ["b", "c", "a"]):
        query = to_sql(pattern, OrderPlan(order), "spark", table="ranged", output="count")
        (explained,) = spark.sql(f"EXPLAIN EXTENDED {query}").first()
        plan = explained.split("== Optimized Logical Plan ==")[1].split("== Physical")[0]
        # A join's left side stands before its right one, and the first join is the deepest.
        assert re.findall(r"= ([ABC])\)", plan) == [name.upper() for name in order]
