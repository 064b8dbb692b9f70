"""Queries that ``to_sql`` writes find in DuckDB what every evaluator finds, in the same order."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.evaluators.evaluate import evaluate
from cepbench.evaluators.registry import EVALUATORS
from cepbench.patterns.model import Kind, Operator
from cepbench.plans.model import AnyPlan
from cepbench.sql.to_sql import to_sql
from tests.evaluators.constructs import Family, branch_plans, construct_cases
from tests.evaluators.strategies import Case, cases

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


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})


def load(connection: duckdb.DuckDBPyConnection, events: pd.DataFrame, is_datetime: bool) -> None:
    """A table ``events``; NaN stays NaN, which pandas would turn into NULL."""
    time = pa.array(events["time"].to_numpy())
    columns = {
        "position": np.arange(len(events)),
        "type": pa.array(events["type"].astype(object)).cast(pa.string()),
        "time": time.cast(pa.timestamp("ns")) if is_datetime else time,
    }
    for name in [name for name in events if name not in columns]:
        values = events[name]
        is_text = isinstance(values.dtype, pd.CategoricalDtype)
        columns[name] = (
            pa.array(values.astype(object)).cast(pa.string())
            if is_text
            else pa.array(values.to_numpy(), from_pandas=False)
        )
    connection.register("arrow", pa.table(columns))
    connection.execute("CREATE OR REPLACE TABLE events AS SELECT * FROM arrow")


def queried(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[list[str], list[tuple]]:
    done = connection.execute(query)
    return [column[0] for column in done.description], done.fetchall()


def table_of(matches: pd.DataFrame) -> tuple[list[str], list[tuple]]:
    rows = matches.astype(object).where(matches.notna(), None)
    return list(matches.columns), [tuple(row) for row in rows.to_numpy().tolist()]


def agree(connection: duckdb.DuckDBPyConnection, case: Case, plans: dict[str, AnyPlan]) -> None:
    """The query without a plan, and along the plan of each evaluator, finds what that finds."""
    load(connection, case.events, case.pattern.window.is_datetime)
    found, counted = [], []
    for joins in (None, *plans.values()):
        found.append(queried(connection, to_sql(case.pattern, joins)))
        counted.append(queried(connection, to_sql(case.pattern, joins, output="count")))
    for evaluator, plan in plans.items():
        result = evaluate(case.pattern, case.stream, plan, evaluator=evaluator)
        expected = table_of(result.matches)
        assert found == [expected] * len(found)
        assert counted == [(["matches"], [(len(expected[1]),)])] * len(counted)


@given(data=st.data())
def test_conditions_of_all_kinds(connection, data: st.DataObject) -> None:
    case = data.draw(cases(nested=True))
    plans = {name: data.draw(branch_plans(name, case.pattern)) for name in EVALUATORS}
    agree(connection, case, plans)


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_constructs(family: str, connection, data: st.DataObject) -> None:
    case = data.draw(construct_cases(FAMILIES[family]))
    plans = {name: data.draw(branch_plans(name, case.pattern)) for name in EVALUATORS}
    agree(connection, case, plans)
