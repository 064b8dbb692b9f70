"""A second opinion from another engine: DuckDB's SQL joins the same events."""

from __future__ import annotations

import itertools

import duckdb
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.evaluators.evaluate import evaluate
from cepbench.evaluators.registry import EVALUATORS
from cepbench.patterns.model import Attribute, Operator, Pattern
from tests.evaluators.strategies import Case, cases, plans_for


def sql_of(pattern: Pattern) -> str:
    """The pattern as a join of the table ``events`` with itself."""
    names = pattern.names
    conditions = [f"{v.name}.type = '{v.type}'" for v in pattern.variables]
    for x, y in itertools.combinations(names, 2):
        conditions.append(f"{x}.position <> {y}.position")
        conditions.append(f"abs({x}.time - {y}.time) <= {pattern.window.length}")
    if pattern.operator is Operator.SEQ:
        conditions += [f"{x}.time < {y}.time" for x, y in itertools.pairwise(names)]
    for clause in pattern.conditions:
        # SQL text of its own, and in brackets only: the library's is not what is tested here.
        conditions.append("(" + " OR ".join(_sql(c) for c in clause.comparisons) + ")")
    columns = ", ".join(f"{name}.position" for name in names)
    tables = ", ".join(f"events {name}" for name in names)
    return f"SELECT {columns} FROM {tables} WHERE {' AND '.join(conditions)}"


def _sql(part: object) -> str:
    match part:
        case Attribute(variable, name):
            return f"{variable}.{name}"
        case _ if hasattr(part, "value"):
            return f"({part.value!r})"
        case _ if hasattr(part, "operand"):
            return f"(-{_sql(part.operand)})"
    assert hasattr(part, "operator")
    operator = "<>" if part.operator == "!=" else part.operator
    return f"({_sql(part.left)} {operator} {_sql(part.right)})"


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def matches_in_sql(connection: duckdb.DuckDBPyConnection, case: Case) -> list[tuple[int, ...]]:
    connection.execute(
        "CREATE OR REPLACE TABLE events "
        "(position BIGINT, type TEXT, time BIGINT, x DOUBLE, y BIGINT, s TEXT)"
    )
    events = case.events.reset_index(drop=True).astype(object)
    rows = events.where(pd.notna(events), None)[["type", "time", "x", "y", "s"]]
    if len(rows):
        connection.executemany(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)",
            [[position, *row] for position, row in enumerate(rows.to_numpy().tolist())],
        )
    return connection.execute(sql_of(case.pattern)).fetchall()


@pytest.mark.parametrize("evaluator", EVALUATORS)
@given(data=st.data())
def test_sql_finds_the_same(
    evaluator: str, connection: duckdb.DuckDBPyConnection, data: st.DataObject
) -> None:
    # Division by zero and what is infinite are not the same in SQL everywhere.
    case = data.draw(cases(sizes=(1, 4), division=False))
    plan = data.draw(plans_for(evaluator, case.pattern.names))
    result = evaluate(case.pattern, case.stream, plan, evaluator=evaluator)
    found = [tuple(row) for row in result.matches.to_numpy().tolist()]
    assert sorted(found) == sorted(matches_in_sql(connection, case))
