"""Queries that ``to_sql`` writes find in DuckDB what evaluators find, in the same order."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.evaluate import evaluate
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Kind, Operator, Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import AnyPlan, OrderPlan, TreePlan, UnionPlan
from cepbench.planning.sql.to_sql import to_sql
from cepbench.streams.event_stream import EventStream
from tests.budgets import examples
from tests.engines.detection.constructs import (
    GROUP_FAMILIES,
    Family,
    able,
    branch_plans,
    construct_cases,
)
from tests.engines.detection.returns import plain, returns, rows_of
from tests.engines.detection.strategies import Case, cases, plan_for, stream_of
from tests.naive.matcher import labelled_matches
from tests.naive.plans import all_trees
from tests.planning.sql.examples import CONDITIONS, CONSTRUCTS, construct_events, values_events
from tests.planning.sql.in_duckdb import arrow_table, load, queried, table_of

_NOT = (Kind.PLAIN, Kind.NEGATED)
_SEVERAL = ("any", "any", "strict_contiguity", "partition_contiguity")

#: What SQL can say, one kind of pattern after the other and all together.
FAMILIES = {
    "negation": Family(_NOT),
    "nested negation": Family(_NOT, nested=True),
    "disjunction": Family(_NOT, operators=(Operator.OR, *Operator), nested=True),
    "contiguity": Family(_NOT, nested=True, strategies=_SEVERAL[2:], types=(2, 1)),
    "everything": Family(_NOT, tuple(Operator), nested=True, strategies=_SEVERAL),
}


def query_of_groups(pattern: Pattern, plan: AnyPlan | None) -> str | None:
    """The query; None for what is refused of groups by name."""
    try:
        return to_sql(pattern, plan)
    except UnsupportedPatternError as error:
        if re.search("with a negated item or with another group|may share an event", str(error)):
            return None
        raise


def agree(connection: duckdb.DuckDBPyConnection, case: Case, data: st.DataObject) -> None:
    """The query without a plan, and along the plan of an evaluator, finds what that finds."""
    load(connection, arrow_table(case.events, is_datetime=case.pattern.window.is_datetime))
    evaluator = data.draw(st.sampled_from(able(case.pattern)))
    plan = data.draw(branch_plans(evaluator, case.pattern))
    result = evaluate(case.pattern, case.stream, plan, evaluator=evaluator)
    expected = table_of(result.matches)
    for joins in (None, plan):
        assert queried(connection, to_sql(case.pattern, joins)) == expected
        counted = queried(connection, to_sql(case.pattern, joins, output="count"))
        assert counted == (["matches"], [(len(expected[1]),)])


@given(data=st.data())
@examples(4)
def test_conditions_of_all_kinds(connection, data: st.DataObject) -> None:
    case = data.draw(cases(nested=True))
    agree(connection, case, data)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
@examples(3)
def test_constructs(family: str, connection, data: st.DataObject) -> None:
    case = data.draw(construct_cases(FAMILIES[family]))
    agree(connection, case, data)


@pytest.mark.parametrize("family", ["nested negation", "everything"])
@given(data=st.data())
@examples(3)
def test_under_a_concept_hierarchy(connection, family: str, data: st.DataObject) -> None:
    hierarchy = ConceptHierarchy({"A": ["B", "C"], "E": ["D"]})
    drawn = replace(FAMILIES[family], types=(3, 4, 2))
    case = data.draw(construct_cases(drawn, hierarchy=hierarchy))
    agree(connection, case, data)


@pytest.mark.parametrize("family", list(GROUP_FAMILIES)[:3])
@given(data=st.data())
@examples(5)
def test_groups_by_aggregation(family: str, connection, data: st.DataObject) -> None:
    """The naive twin's matches, in the order of the evaluators."""
    case = data.draw(construct_cases(GROUP_FAMILIES[family]))
    query = query_of_groups(case.pattern, data.draw(st.none() | branch_plans("tree", case.pattern)))
    if query is None:
        return
    load(connection, arrow_table(case.events, is_datetime=case.pattern.window.is_datetime))
    names, rows = queried(connection, query)
    found = [tuple(tuple(v) if isinstance(v, list) else v for v in row) for row in rows]
    several = "branch" in names
    expected = labelled_matches(case.pattern, case.events)
    assert {(row[-1], row[:-1]) if several else (0, row) for row in found} == expected
    plan = data.draw(branch_plans("tree", case.pattern))
    assert (names, found) == table_of(evaluate(case.pattern, case.stream, plan).matches)
    counted = to_sql(case.pattern, output="count")
    assert queried(connection, counted) == (["matches"], [(len(expected),)])


@given(data=st.data())
@examples(5)
def test_columns_of_return(connection, data: st.DataObject) -> None:
    case = data.draw(construct_cases(FAMILIES["everything"]))
    case = replace(case, pattern=replace(case.pattern, returns=data.draw(returns(case.pattern))))
    load(connection, arrow_table(case.events, is_datetime=case.pattern.window.is_datetime))
    plan = data.draw(branch_plans("tree", case.pattern))
    expected = evaluate(case.pattern, case.stream, plan)
    for joins in (None, plan):
        names, rows = queried(connection, to_sql(case.pattern, joins))
        assert names == list(expected.matches.columns)
        assert [tuple(map(plain, row)) for row in rows] == rows_of(expected.matches)
        counted = to_sql(case.pattern, joins, output="count")
        assert queried(connection, counted)[1] == [(expected.metrics.matches,)]


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("a.x AS v, b.x AS V", "the columns 'v' and 'V', and names in SQL ignore case"),
        ("a.s + 1", "'s' is used as a text and as a number"),
    ],
)
def test_columns_that_sql_cannot_return(columns: str, words: str) -> None:
    text = f"PATTERN SEQ(A a, B b) WHERE a.s = 'p' WITHIN 1 s RETURN {columns}"
    with pytest.raises(UnsupportedPatternError, match=words):
        to_sql(text)


def same_as_evaluated(
    connection: duckdb.DuckDBPyConnection,
    pattern: Pattern,
    stream: EventStream,
    plans: Sequence[AnyPlan],
) -> int:
    """Whatever the joins, the matches are those of every evaluator; how many there are."""
    plan = plans[0]
    results = [
        evaluate(pattern, stream, plan_for(name, plan), evaluator=name).matches
        for name in able(pattern)
    ]
    expected = table_of(results[0])
    assert all(table_of(matches) == expected for matches in results)
    for joins in (None, *plans):
        assert queried(connection, to_sql(pattern, joins)) == expected
    counted = to_sql(pattern, plan, output="count")
    assert queried(connection, counted) == (["matches"], [(len(expected[1]),)])
    return len(expected[1])


@pytest.mark.parametrize("condition", CONDITIONS)
def test_values_compare_as_in_the_evaluators(condition: str, connection) -> None:
    table = arrow_table(values_events())
    assert table["x"].null_count == 0 < table["z"].null_count
    load(connection, table)
    stream = EventStream.from_arrow(table.drop_columns("position"), type="type", time="time")
    pattern = parse(f"PATTERN AND(A a, B b) WHERE {condition} WITHIN 20 units")
    found = same_as_evaluated(connection, pattern, stream, [OrderPlan(["b", "a"])])
    assert 0 < found < 256


def reversed_plan(pattern: Pattern) -> AnyPlan:
    plans = [OrderPlan(branch.positive_names[::-1]) for branch in pattern.branches()]
    return plans[0] if len(plans) == 1 else UnionPlan(plans)


@pytest.mark.parametrize("example", CONSTRUCTS)
def test_on_thousands_of_events(example: str, connection) -> None:
    pattern = parse(f"PATTERN {CONSTRUCTS[example]}")
    events = construct_events(3_000)
    load(connection, arrow_table(events))
    found = same_as_evaluated(connection, pattern, stream_of(events), [reversed_plan(pattern)])
    assert found > 10


def test_every_plan_finds_the_same(connection) -> None:
    events = construct_events(150)
    load(connection, arrow_table(events))
    for text in (
        "SEQ(A a, B b, AND(C c, A d)) WHERE a.x < c.x AND b.y != d.y WITHIN 8 units",
        "SEQ(A a, NOT(B n), AND(C c, D d), NOT(A m)) WHERE n.y = d.y AND m.x > 2 WITHIN 6 units",
        "AND(A a, B b, C c, A d) STRATEGY strict_contiguity WITHIN 9 units",
    ):
        pattern = parse(f"PATTERN {text}")
        trees = [TreePlan(tree) for tree in all_trees(pattern.positive_names)]
        assert len(trees) == {3: 3, 4: 15}[len(pattern.positive)]
        expected = table_of(evaluate(pattern, stream_of(events), trees[0]).matches)
        assert len(expected[1]) > 5
        for tree in trees:
            assert queried(connection, to_sql(pattern, tree)) == expected


def test_nanoseconds_count(connection) -> None:
    times = pd.to_datetime([0, 1_000, 1_001, 1_001, 2_001], unit="ns")
    events = pd.DataFrame({"type": list("AABBB"), "time": times})
    load(connection, arrow_table(events))
    stream = EventStream.from_pandas(events, type="type", time="time")
    pattern = parse("PATTERN SEQ(A a, B b) WITHIN 0.001 milliseconds")
    assert same_as_evaluated(connection, pattern, stream, [OrderPlan(["a", "b"])]) == 2


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMPTZ"])
def test_timestamps_of_every_kind(kind: str, connection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE events AS SELECT * REPLACE "
        f"(CAST(time AS {kind}) AS time) FROM (VALUES (0, 'A', TIMESTAMP '2026-03-29 00:30:00'), "
        "(1, 'B', TIMESTAMP '2026-03-29 02:30:00'), (2, 'B', TIMESTAMP '2026-03-29 02:30:01')) "
        "t(position, type, time)"
    )
    query = to_sql(parse("PATTERN SEQ(A a, B b) WITHIN 2 hours"))
    assert queried(connection, query)[1] == [(0, 1)]


def test_times_of_few_bits_do_not_overflow(connection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE events AS SELECT position, type, time::UTINYINT AS time FROM "
        "(VALUES (0, 'A', 250), (1, 'B', 255)) t(position, type, time)"
    )
    query = to_sql(parse("PATTERN AND(B b, A a) WITHIN 10 units"))
    assert queried(connection, query)[1] == [(1, 0)]


def test_names_are_quoted_and_the_tables_columns_named(connection) -> None:
    connection.execute('CREATE SCHEMA IF NOT EXISTS "my data"')
    connection.execute(
        'CREATE OR REPLACE TABLE "my data"."select" AS SELECT * FROM (VALUES (10, 3, 7, 1e0, 2), '
        '(11, 4, 8, 2e0, 2), (13, 3, 9, 3e0, 2)) t("row ""no""", "group", "order", "a.b", "rank")'
    )
    pattern = parse(
        'PATTERN SEQ("3" "from", "4" "x y", "3" step) WHERE "from"."a.b" < step."a.b" AND '
        '"from"."rank" = step."rank" STRATEGY strict_contiguity WITHIN 5 units'
    )
    names = {
        "table": "my data.select",
        "type_column": "group",
        "time_column": "order",
        "position_column": 'row "no"',
    }
    for plan in (None, TreePlan((("from", "step"), "x y"))):
        found = queried(connection, to_sql(pattern, plan, **names))
        assert found == (["from", "x y", "step"], [(10, 11, 13)])


def test_rowid_is_a_position(connection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE bare AS SELECT * FROM (VALUES ('A', 1), ('B', 2)) t(type, time)"
    )
    query = to_sql(
        parse("PATTERN SEQ(A a, B b) WITHIN 5 units"), table="bare", position_column="rowid"
    )
    assert queried(connection, query)[1] == [(0, 1)]


@pytest.mark.parametrize(
    "name", ["type", "time", "position", "Time", "branch", "attribute time", "bucket", "rank", "ts"]
)
@pytest.mark.parametrize(
    "text",
    [
        'SEQ(A a, B b) WHERE a."{}" < b."{}"',
        'SEQ(A a, NOT(C c), B b) WHERE ["{}"]',
        'SEQ(A a, B b) RETURN a."{}", b."{}" + 1 AS more',
        'OR(SEQ(A a, B b), SEQ(A a, C c)) RETURN a."{}", b."{}" AS its',
        'SEQ(A a, B b) STRATEGY partition_contiguity("{}")',
        'SEQ(A a, GROUP(B b, +), C c) WHERE b."{}" > a."{}"',
    ],
)
def test_attributes_named_as_columns_of_our_own(name: str, text: str) -> None:
    """By the recipe of the documentation: a stream's own table."""
    frame = pd.DataFrame({"kind": list("ABBABC"), "at": range(6), name: [2, 1, 2, 3, 4, 7]})
    stream = EventStream.from_pandas(frame.assign(other=1), type="kind", time="at")
    structure, returned, columns = text.replace("{}", name).partition(" RETURN ")
    pattern = parse(f"PATTERN {structure} WITHIN 9 units{returned}{columns}")
    trees = [TreePlan(("a", "c" if "GROUP" in text else "b")), TreePlan(("a", "c"))]
    plan = UnionPlan(trees) if "OR" in text.split("(")[0] else trees[0]
    due = table_of(evaluate(pattern, stream, plan).matches)
    events = stream.to_pandas().reset_index()
    assert len(set(map(str.lower, events.columns))) == 5
    with duckdb.connect() as connection:
        connection.register("events", events)
        for planned in (plan, None):
            names, rows = queried(connection, to_sql(pattern, planned))
            tuples = [tuple(tuple(x) if isinstance(x, list) else x for x in row) for row in rows]
            assert (names, tuples) == due
    assert len(due[1]) > 0


def test_columns_that_differ_by_case_are_refused() -> None:
    for text in ("a.x < b.X", "a.Kind = b.Kind"):
        pattern = parse(f"PATTERN SEQ(A a, B b) WHERE {text} WITHIN 9 units")
        with pytest.raises(UnsupportedPatternError, match="differ in case only"):
            to_sql(pattern, type_column="kind")
    # The table's own column, as which the stream was told it.
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.kind != b.kind WITHIN 9 units")
    assert '"a"."kind"' in to_sql(pattern, type_column="kind")
