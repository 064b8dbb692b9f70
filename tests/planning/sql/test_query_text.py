"""What the queries look like, that DuckDB joins in a plan's order, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import PlanError, QueryError, UnsupportedPatternError
from cepbench.patterns.model import (
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Operator,
    Pattern,
    Structure,
    Variable,
    Window,
)
from tests.naive.plans import all_trees
from tests.planning.sql.examples import construct_events
from tests.planning.sql.in_duckdb import arrow_table, load, queried

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).parents[3] / "docs" / "sql.md"

#: A query in the folder `golden`: pattern, plan, dialect, output.
EXAMPLES = {
    "plan": (
        "SEQ(A a, NOT(B n), AND(C c, D d)) WHERE a.x < d.x AND n.y = c.y AND d.s != 'it''s' "
        "WITHIN 9 units",
        cep.TreePlan((("a", "d"), "c")),
        "duckdb",
        "matches",
    ),
    "disjunction": (
        "OR(SEQ(A a, B b), AND(B b, A a), D d) WHERE a.y / b.y <= 0.5 "
        "STRATEGY partition_contiguity(s) WITHIN 2 minutes",
        None,
        "spark",
        "count",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_queries_are_as_they_were(name: str) -> None:
    text, plan, dialect, output = EXAMPLES[name]
    query = cep.to_sql(cep.parse(f"PATTERN {text}"), plan, dialect, output=output)
    assert f"{query}\n" == (GOLDEN / f"{name}.sql").read_text(encoding="utf-8")


def test_the_page_shows_what_its_example_prints(capsys) -> None:
    example, query, *_ = re.findall(
        r"```(?:python|sql)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    exec(example, {})
    assert capsys.readouterr().out == query


@pytest.mark.parametrize(
    ("window", "spark", "duckdb"),
    [
        ("2 seconds", "timestampadd(SECOND, 2, `a`.`time`)", "+ 2000000000"),
        ("1.5 seconds", "timestampadd(MICROSECOND, 1500000, `a`.`time`)", "+ 1500000000"),
        ("1 milliseconds", "timestampadd(MICROSECOND, 1000, `a`.`time`)", "+ 1000000"),
        ("0.0000015 seconds", "timestampadd(MICROSECOND, 1, `a`.`time`)", "+ 1500"),
    ],
)
def test_windows_that_are_no_whole_seconds(window: str, spark: str, duckdb: str) -> None:
    pattern = cep.parse(f"PATTERN SEQ(A a, B b) WITHIN {window}")
    assert spark in cep.to_sql(pattern, dialect="spark")
    assert f'epoch_ns("b"."time") <= epoch_ns("a"."time") {duckdb}\n' in f"{cep.to_sql(pattern)}\n"


def test_windows_shorter_than_what_spark_can_tell_apart() -> None:
    """No buckets of no length, by which it would divide."""
    pattern = cep.parse("PATTERN SEQ(A a, B b) WITHIN 0.0000005 seconds")
    query = cep.to_sql(pattern, cep.OrderPlan(["a", "b"]), "spark")
    assert " DIV " not in query and "timestampadd(SECOND, 0, " in query
    assert "// 500" in cep.to_sql(pattern, cep.OrderPlan(["a", "b"]))


def test_a_stream_in_a_frame_can_be_queried() -> None:
    frame = construct_events(200)
    frame["time"] = pd.Timestamp("2026-01-05") + pd.to_timedelta(frame["time"], unit="s")
    stream = cep.EventStream.from_pandas(frame, type="type", time="time")
    events = stream.to_pandas().reset_index()
    assert isinstance(events["type"].dtype, pd.CategoricalDtype)  # an ENUM for DuckDB
    pattern = cep.parse("PATTERN SEQ(A a, B b) WHERE a.s = b.s AND a.x < b.x WITHIN 4 seconds")
    found = duckdb.sql(cep.to_sql(pattern)).df()
    expected = cep.evaluate(pattern, stream, cep.OrderPlan(["a", "b"])).matches
    assert len(found) > 5
    pd.testing.assert_frame_equal(found, expected)


def joined_by(connection: duckdb.DuckDBPyConnection, query: str) -> Any:
    """The tree in which DuckDB joins events, named by their types, its sides in any order."""
    (_, text), *_ = connection.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchall()
    steps: dict[str, Any] = {}

    def tree(node: dict[str, Any]) -> Any:
        below, info = node["children"], node["extra_info"]
        if node["name"] == "CTE":
            steps[info["Table Index"]] = tree(below[0])
            return tree(below[1])
        if node["name"] == "CTE_SCAN":
            return steps[info["CTE Index"]]
        if "JOIN" in node["name"]:
            return frozenset(map(tree, below))
        if not below:
            return re.search(r"type = '(\w)'", str(info["Filters"]))[1].lower()
        return tree(below[0])

    return tree(json.loads(text)[0])


def unordered(tree: Any) -> Any:
    return tree if isinstance(tree, str) else frozenset(map(unordered, tree))


def test_duckdb_joins_in_the_order_of_the_plan(connection) -> None:
    load(connection, arrow_table(construct_events(400)))
    pattern = cep.parse("PATTERN SEQ(A a, B b, AND(C c, D d)) WHERE a.x < d.x WITHIN 4 units")
    trees = all_trees(pattern.names)
    for tree in trees:
        query = cep.to_sql(pattern, cep.TreePlan(tree), output="count")
        assert joined_by(connection, query) == unordered(tree)
    left_to_it = joined_by(connection, cep.to_sql(pattern, output="count"))
    assert left_to_it in map(unordered, trees)


def test_an_order_is_joined_as_its_tree() -> None:
    pattern = cep.parse("PATTERN SEQ(A a, B b, C c) WITHIN 4 units")
    order = cep.to_sql(pattern, cep.OrderPlan(["c", "a", "b"]))
    assert order == cep.to_sql(pattern, cep.TreePlan((("c", "a"), "b")))
    assert order.count("AS MATERIALIZED") == 1


def test_steps_get_names_that_nothing_else_has(connection) -> None:
    load(connection, arrow_table(construct_events(60)))
    connection.execute("CREATE OR REPLACE TABLE Step AS SELECT * FROM events")
    pattern = cep.parse(
        "PATTERN OR(SEQ(A STEP_2, B found, C c), SEQ(C c, A STEP_2, B found), D once) "
        "WITHIN 9 units"
    )
    plan = cep.UnionPlan([cep.OrderPlan(branch.positive_names) for branch in pattern.branches()])
    plain = cep.parse(re.sub(r"STEP_2|found|once", lambda m: m[0][0], str(pattern)))
    query = cep.to_sql(pattern, plan, table="Step")
    rows = queried(connection, query)[1]
    assert rows == queried(connection, cep.to_sql(plain, table="Step"))[1]
    assert len(rows) > 10
    for name in ('"step_3"', '"step_4"', '"found_2"', '"once_2"'):
        assert f"{name} AS" in query


def test_labels_of_a_step_differ(connection) -> None:
    connection.execute(
        "CREATE OR REPLACE TABLE events AS SELECT * FROM (VALUES (0, 'A', 1, 5, 6), "
        "(1, 'B', 2, 7, 8), (2, 'C', 3, 6, 9)) t(position, type, time, y, x_y)"
    )
    # a_x.y and a.x_y would both be a_x_y.
    pattern = cep.parse(
        "PATTERN SEQ(A a, B a_x, C c) WHERE a.x_y = c.y AND a_x.y < c.x_y "
        "AND a.y < c.y AND a_x.x_y < c.x_y WITHIN 9 units"
    )
    query = cep.to_sql(pattern, cep.TreePlan((("a", "a_x"), "c")))
    assert queried(connection, query)[1] == [(0, 1, 2)]


def pattern(text: str) -> Pattern:
    return cep.parse(f"PATTERN {text} WITHIN 5 units")


def compared(comparison: Comparison) -> Pattern:
    """A pattern by hand, of what no text can say."""
    structure = Structure(Operator.SEQ, (Variable("a", "A"), Variable("b", "B")))
    return Pattern(structure, (Clause((comparison,)),), Window(5, "units"))


AB = pattern("SEQ(A a, B b)")
A_MORE = Arithmetic("+", Attribute("a", "s"), Constant(1.0))

#: Patterns that cannot be written, and why.
UNSUPPORTED = {
    "SEQ(A a, KL(B b))": r"KL\(B b\) binds sets of events.*use an evaluator",
    "SEQ(A a, B b) STRATEGY consuming": "STRATEGY consuming depends on what was matched before",
    "SEQ(A a, B b) STRATEGY next": "STRATEGY next depends on what was matched before",
    "SEQ(A a, B b) OUTPUT non_overlap": "OUTPUT non_overlap depends on what was matched before",
    "SEQ(A a, B A)": "variable 'A' clashes with variable 'a' in SQL",
    "SEQ(A a, NOT(B A), C c)": "variable 'A' clashes",
    "OR(A Branch, B b)": "variable 'Branch' clashes with the column of branches",
    "SEQ(A a, B b) WHERE a.s = 'p' AND a.t < 3 AND a.s = b.t": (
        "attribute '[st]' is used as a text and as a number"
    ),
    Comparison("<", Attribute("a", "s"), Constant("p")): "a.s < 'p': texts can only be equal",
    Comparison("=", Constant("p"), A_MORE): "texts can only be equal or not",
}


@pytest.mark.parametrize(("asked", "words"), UNSUPPORTED.items(), ids=map(str, UNSUPPORTED))
def test_patterns_that_cannot_be_written(asked: str | Comparison, words: str) -> None:
    its = pattern(asked) if isinstance(asked, str) else compared(asked)
    with pytest.raises(UnsupportedPatternError, match=words):
        cep.to_sql(its)


@pytest.mark.parametrize(
    ("its", "how", "error", "words"),
    [
        (AB, {"dialect": "sqlite"}, QueryError,
         "dialect is one of duckdb, spark, trino, flink, standard, not 'sqlite'"),
        (AB, {"output": "rows"}, QueryError, "one of matches, count, not 'rows'"),
        (AB, {"table": "my..events"}, QueryError, "a name is empty"),
        (AB, {"time_column": ""}, QueryError, "a name is empty"),
        (AB, {"plan": cep.OrderPlan(["a"])}, PlanError, "lacks variable"),
        (AB, {"plan": cep.UnionPlan([cep.OrderPlan(["a", "b"])] * 2)}, PlanError,
         "has 1 branches and the plan 2; give a single plan"),
        (pattern("OR(A a, B b)"), {"plan": cep.OrderPlan(["a"])}, PlanError,
         "has 2 branches and the plan 1; give a UnionPlan"),
    ],
)  # fmt: skip
def test_what_does_not_fit(
    its: Pattern, how: dict[str, Any], error: type[cep.CepbenchError], words: str
) -> None:
    with pytest.raises(error, match=words):
        cep.to_sql(its, **how)


def test_branch_is_a_name_where_there_are_no_branches(connection) -> None:
    load(connection, arrow_table(construct_events(30)))
    columns, rows = queried(connection, cep.to_sql(pattern("SEQ(A branch, B matches)")))
    assert columns == ["branch", "matches"] and rows


def test_constants_by_hand_beyond_the_language(connection) -> None:
    load(connection, arrow_table(construct_events(30)))
    for value, found in ((np.inf, True), (-np.inf, False), (np.nan, False)):
        comparison = Comparison("<", Attribute("a", "y"), Constant(value))
        assert bool(queried(connection, cep.to_sql(compared(comparison)))[1]) == found


def test_a_step_of_a_plan_has_the_equality_that_follows_from_others(connection) -> None:
    text = pattern("SEQ(A a, B b, C c) WHERE [y]")
    query = cep.to_sql(text, cep.OrderPlan(["c", "a", "b"]))
    step, rest = query.split('SELECT "step"', 1)
    assert '"c"."y" = "a"."y"' in step
    assert '"a_y" = "b"."y"' in rest and '"b"."y" = "step"."c_y"' in rest
    load(connection, arrow_table(construct_events(30)))
    found = queried(connection, query)[1]
    assert sorted(found) == sorted(queried(connection, cep.to_sql(text))[1])
