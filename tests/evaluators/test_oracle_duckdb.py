"""A second opinion from another engine: DuckDB's SQL joins the same events."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.evaluators.evaluate import evaluate
from cepbench.evaluators.registry import EVALUATORS
from cepbench.patterns.model import Attribute, Clause, Kind, Operator, Pattern, Structure, Variable
from cepbench.patterns.parse import parse
from cepbench.plans.model import OrderPlan, UnionPlan
from tests.evaluators.checks import found_in
from tests.evaluators.constructs import FAMILIES, branch_plans, construct_cases
from tests.evaluators.strategies import cases, plans_for, stream_of


def sql_of(pattern: Pattern) -> str:
    """One operator as a join of ``events`` with itself, an OR of such as their union."""
    if pattern.operator is not Operator.OR:
        columns = ", ".join(f"{name}.position" for name in pattern.positive_names)
        return f"SELECT {columns} {_joined(pattern, pattern.structure.items)}"
    columns = ", ".join(pattern.positive_names)
    branches = []
    for number, item in enumerate(pattern.structure.items):
        items = item.items if isinstance(item, Structure) else (item,)
        inside = Pattern(Structure(_operator(item), items), (), pattern.window)
        mine = ", ".join(
            f"{name}.position AS {name}" if name in inside.positive_names else f"NULL AS {name}"
            for name in pattern.positive_names
        )
        known = [c for c in pattern.conditions if set(c.variables) <= set(inside.names)]
        inside = Pattern(inside.structure, tuple(known), pattern.window)
        branches.append(f"SELECT {number} AS branch, {mine} {_joined(inside, items)}")
    union = " UNION ALL ".join(branches)
    return f"SELECT min(branch), {columns} FROM ({union}) GROUP BY ALL"


def _operator(item: Variable | Structure) -> Operator:
    return item.operator if isinstance(item, Structure) else Operator.AND


def _joined(pattern: Pattern, items: Sequence[Variable | Structure]) -> str:
    variables = [item for item in items if isinstance(item, Variable)]
    assert len(variables) == len(items), "SQL for nested operators is not written here"
    positive = [v for v in variables if v.kind is Kind.PLAIN]
    names = [v.name for v in positive]
    conditions = _conditions(pattern, positive, names)
    for negated in variables:
        if negated.kind is Kind.NEGATED:
            among = [v for v in variables if v.kind is Kind.PLAIN or v == negated]
            inner = _conditions(pattern, among, [negated.name])
            conditions.append(
                f"NOT EXISTS (SELECT 1 FROM events {negated.name} WHERE {' AND '.join(inner)})"
            )
    tables = ", ".join(f"events {name}" for name in names)
    return f"FROM {tables} WHERE {' AND '.join(conditions)}"


def _conditions(pattern: Pattern, variables: list[Variable], about: list[str]) -> list[str]:
    """What must hold of some variables beside others: those about which nothing is known yet."""
    names = [v.name for v in variables]
    conditions = [f"{v.name}.type = '{v.type}'" for v in variables if v.name in about]
    for x, y in itertools.combinations(names, 2):
        if x in about or y in about:
            conditions.append(f"{x}.position <> {y}.position")
            conditions.append(f"abs({x}.time - {y}.time) <= {pattern.window.length}")
            if pattern.operator is Operator.SEQ:
                conditions.append(f"{x}.time < {y}.time")
    for clause in pattern.conditions:
        if set(clause.variables) <= set(names) and set(clause.variables) & set(about):
            conditions.append(_sql_clause(clause))
    return conditions


def _sql_clause(clause: Clause) -> str:
    # SQL text of its own, and in brackets only: the library's is not what is tested here.
    return "(" + " OR ".join(_sql(c) for c in clause.comparisons) + ")"


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


def load(connection: duckdb.DuckDBPyConnection, events: pd.DataFrame) -> None:
    frame = events.astype({"type": str, "s": object}).reset_index(drop=True)
    connection.register("frame", frame.rename_axis("position").reset_index())
    # What is missing in pandas is a number to SQL.
    connection.execute(
        "CREATE OR REPLACE TABLE events AS SELECT "
        "position, type, time, nullif(x, 'nan') AS x, y, s::TEXT AS s FROM frame"
    )


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
    load(connection, case.events)
    assert sorted(found) == sorted(connection.execute(sql_of(case.pattern)).fetchall())


@pytest.mark.parametrize("evaluator", EVALUATORS)
@given(data=st.data())
def test_negation_is_not_exists(
    evaluator: str, connection: duckdb.DuckDBPyConnection, data: st.DataObject
) -> None:
    case = data.draw(construct_cases(FAMILIES["negation"], division=False))
    plan = data.draw(branch_plans(evaluator, case.pattern))
    result = evaluate(case.pattern, case.stream, plan, evaluator=evaluator)
    load(connection, case.events)
    expected = connection.execute(sql_of(case.pattern)).fetchall()
    assert sorted(row for _, row in found_in(case.pattern, result.matches)) == sorted(expected)


#: On thousands of events, with what each is meant to try.
LARGER = {
    "inner": "SEQ(A a, NOT(B n), C c) WHERE n.x > a.x WITHIN 60 units",
    "leading": "SEQ(NOT(B n), A a, C c) WHERE n.y = c.y AND a.x < c.x WITHIN 20 units",
    "trailing": "SEQ(A a, C c, NOT(B n)) WHERE n.x > 1 AND a.s = c.s WITHIN 40 units",
    "under AND": "AND(A a, NOT(B n), C c) WHERE n.y = a.y AND n.x > c.x WITHIN 12 units",
    "two": "SEQ(A a, NOT(B n), C c, NOT(D m)) WHERE m.x < a.x AND n.s = c.s WITHIN 30 units",
    "of a bound type": "AND(A a, NOT(A n), B b) WHERE n.x > b.x WITHIN 9 units",
    "disjunction": "OR(SEQ(A a, B b), SEQ(C c, D d), AND(A a, D d)) WHERE a.x < d.x WITHIN 9 units",
    "overlapping": "OR(SEQ(A a, B b), AND(A a, B b), SEQ(B b, A a)) WHERE a.x < b.x WITHIN 9 units",
    "negation in a disjunct": "OR(SEQ(A a, NOT(C n), B b), SEQ(A a, B b, NOT(D m))) WITHIN 9 units",
}


@pytest.fixture(scope="module")
def many_events() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    count = 3_000
    return pd.DataFrame(
        {
            "type": pd.Categorical(rng.choice(list("ABCD"), count), categories=list("ABCD")),
            "time": np.cumsum(rng.integers(0, 4, count)),
            "x": np.where(rng.random(count) < 0.05, np.nan, rng.normal(size=count)),
            "y": rng.integers(0, 6, count),
            "s": pd.Categorical(rng.choice(["p", "q", None], count), categories=["p", "q"]),
        }
    )


@pytest.mark.parametrize("example", LARGER)
def test_on_thousands_of_events(
    example: str, connection: duckdb.DuckDBPyConnection, many_events: pd.DataFrame
) -> None:
    pattern = parse(f"PATTERN {LARGER[example]}")
    load(connection, many_events)
    expected = connection.execute(sql_of(pattern)).fetchall()
    if pattern.operator is not Operator.OR:
        expected = [(0, *row) for row in expected]
    assert len(expected) > 200
    for evaluator in EVALUATORS:
        plans = [OrderPlan(branch.positive_names[::-1]) for branch in pattern.branches()]
        plan = plans[0] if len(plans) == 1 else UnionPlan(tuple(plans))
        result = evaluate(pattern, stream_of(many_events), plan, evaluator=evaluator)
        found = [(label, *row) for label, row in found_in(pattern, result.matches)]
        assert set(found) == set(expected)
        assert len(found) == len(expected)


#: Sets grow by later events; what is said of neighbours is tested as they grow, the rest at last.
SETS = """
WITH RECURSIVE grown(a, last, members) AS (
    SELECT a.position, b.position, [b.position] FROM events a JOIN events b
    ON a.type = 'A' AND b.type = 'B' AND a.time < b.time AND b.time <= a.time + 40 AND b.x > a.x
    UNION ALL
    SELECT g.a, b.position, list_append(g.members, b.position)
    FROM grown g JOIN events a ON a.position = g.a JOIN events before ON before.position = g.last
    JOIN events b ON b.type = 'B' AND b.position > g.last AND b.time <= a.time + 40
    WHERE b.x > a.x {neighbours}
)
SELECT g.a, g.members, c.position
FROM grown g JOIN events a ON a.position = g.a JOIN events l ON l.position = g.last
JOIN events f ON f.position = g.members[1] JOIN events c
ON c.type = 'C' AND c.time > l.time AND c.time <= a.time + 40
WHERE {whole}
"""
_SUM = "(SELECT {} FROM events e WHERE list_contains(g.members, e.position))"

KLEENE = {
    "plain": ("", "", "TRUE"),
    "rising": ("AND b[i].x > b[i-1].x", "AND b.x > before.x", "TRUE"),
    "first and last": ("AND b[1].y = b[last].y", "", "f.y = l.y"),
    "sum": ("AND sum(b.y) < c.y", "", f"{_SUM.format('sum(e.y)')} < c.y"),
    "average": ("AND avg(b.y) = 2", "", f"{_SUM.format('avg(e.y)')} = 2"),
    "count": ("AND count(b.y) >= 3", "", "len(g.members) >= 3"),
}


@pytest.mark.parametrize("example", KLEENE)
def test_sets_are_enumerated_by_a_recursive_query(
    example: str, connection: duckdb.DuckDBPyConnection, many_events: pd.DataFrame
) -> None:
    condition, neighbours, whole = KLEENE[example]
    events = many_events.iloc[:1_200]
    pattern = parse(f"PATTERN SEQ(A a, KL(B b), C c) WHERE b.x > a.x {condition} WITHIN 40 units")
    load(connection, events)
    rows = connection.execute(SETS.format(neighbours=neighbours, whole=whole)).fetchall()
    expected = {(a, tuple(members), c) for a, members, c in rows}
    assert len(expected) == len(rows) > 200
    for evaluator in EVALUATORS:
        for order in (["a", "b", "c"], ["c", "a", "b"]):
            plan = OrderPlan(order)
            matches = evaluate(pattern, stream_of(events), plan, evaluator=evaluator).matches
            assert {row for _, row in found_in(pattern, matches)} == expected
