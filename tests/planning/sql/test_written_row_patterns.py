"""MATCH_RECOGNIZE as it is written for Trino and Flink, read and run again, has the pattern's matches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Kind, Operator, Pattern
from tests.budgets import examples
from tests.engines.detection.constructs import Family, branch_plans, construct_cases
from tests.engines.detection.returns import returns
from tests.engines.detection.strategies import Case, stream_of
from tests.naive.automaton import automaton_matches
from tests.naive.matcher import naive_matches
from tests.planning.sql.in_duckdb import arrow_table, load, queried, table_of

pytestmark = pytest.mark.kernel

FAMILIES = {
    "contiguity": Family(
        operators=(Operator.SEQ,),
        nested=True,
        strategies=("strict_contiguity", "partition_contiguity"),
        types=(2, 1),
    ),
    "next": Family(operators=(Operator.SEQ,), nested=True, strategies=("next",), types=(2, 1, 3)),
}
JOINS = Family(
    (Kind.PLAIN, Kind.NEGATED),
    tuple(Operator),
    nested=True,
    strategies=("any", "any", "strict_contiguity", "partition_contiguity"),
)
HIERARCHY = ConceptHierarchy({"A": ["B", "C"]})


def query_of(case: Case, dialect: str) -> str:
    return cep.to_sql(case.pattern, dialect=dialect, position_column="row")


def rows_of(query: str, case: Case) -> pd.DataFrame:
    """The rows of a query that is read again, on the events as a table."""
    pattern = cep.parse(query, dialect="match_recognize")
    numbered = case.events.assign(row=range(len(case.events)))
    stream = stream_of(numbered, is_datetime=case.pattern.window.is_datetime)
    return cep.evaluate(pattern, stream).matches


def expected(case: Case) -> list[tuple[int, ...]]:
    """The positions of all matches, in order."""
    if case.pattern.strategy.name == "next":
        found = {positions for _, positions in automaton_matches(case.pattern, case.events)}
    else:
        found = naive_matches(case.pattern, case.events)
    return sorted(found, key=lambda its: (its[-1], its))


def drawn_case(data: st.DataObject, family: str, dialect: str) -> Case:
    hierarchy = data.draw(st.sampled_from([None, None, HIERARCHY]))
    case = data.draw(construct_cases(FAMILIES[family], hierarchy=hierarchy))
    if dialect == "flink" and not case.pattern.window.is_datetime:
        # Units of time as seconds, for Flink has no integer time.
        window = replace(case.pattern.window, unit="seconds")
        events = case.events.assign(time=case.events["time"] * 10**9)
        case = Case(replace(case.pattern, window=window), events)
    if not case.pattern.equivalences and family == "contiguity" and data.draw(st.booleans()):
        case = Case(replace(case.pattern, output="non_overlap"), case.events)
    return case


@pytest.mark.parametrize("dialect", ["trino", "flink"])
@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
@examples(20)
def test_what_is_written_has_the_matches_of_the_naive_twin(
    family: str, dialect: str, data: st.DataObject
) -> None:
    case = drawn_case(data, family, dialect)
    if dialect == "flink" and "%" in str(case.pattern):
        return  # refused, see below
    query = query_of(case, dialect)
    assert "MATCH_RECOGNIZE" in query
    found = [tuple(row) for row in rows_of(query, case).itertuples(index=False)]
    assert (found if dialect == "trino" else sorted(found, key=lambda its: (its[-1], its))) == (
        expected(case)
    )


@given(data=st.data())
def test_joins_for_trino(connection, data: st.DataObject) -> None:
    """As DuckDB runs them, which has no MATCH_RECOGNIZE and other rules for NaN."""
    case = data.draw(construct_cases(JOINS, division=False))
    events = case.events.assign(x=case.events.x.astype("Float64"))
    load(connection, arrow_table(events, is_datetime=case.pattern.window.is_datetime))
    plan = data.draw(st.sampled_from([None, data.draw(branch_plans("tree", case.pattern))]))
    query = cep.to_sql(case.pattern, plan, dialect="trino")
    if "MATCH_RECOGNIZE" not in query:
        (query,) = sqlglot.transpile(query, read="trino", write="duckdb")
        assert queried(connection, query) == table_of(
            cep.evaluate(case.pattern, case.stream).matches
        )


@pytest.mark.parametrize("family", FAMILIES)
@given(data=st.data())
def test_columns_of_return(family: str, data: st.DataObject) -> None:
    case = drawn_case(data, family, "trino")
    case = Case(replace(case.pattern, returns=data.draw(returns(case.pattern))), case.events)
    result = cep.evaluate(case.pattern, case.stream).matches
    found = rows_of(query_of(case, "trino"), case)
    assert list(found.columns) == list(result.columns)
    assert found.isna().to_numpy().tolist() == result.isna().to_numpy().tolist()
    pairs = zip(found.to_numpy().ravel(), result.to_numpy().ravel(), strict=True)
    for its, other in pairs:
        assert pd.isna(its) or its == other


def pattern(text: str) -> Pattern:
    return cep.parse(f"PATTERN {text}")


def test_lengths_of_time_are_intervals() -> None:
    text = "SEQ(A a, B b) WHERE b.ts - a.ts > 1.5 s STRATEGY strict_contiguity WITHIN < 120 days"
    written = cep.to_sql(pattern(text), dialect="flink", time_column="ts")
    assert "`b`.`ts` > `a`.`ts` + INTERVAL '1.5' SECOND" in written
    assert "`b`.`ts` < `a`.`ts` + INTERVAL '120' DAY(3)" in written
    assert "WITHIN INTERVAL '120' DAY(3)\n" in written
    events = pd.DataFrame({"type": ["A", "B"] * 3, "ts": [0, 1500, 2000, 3501, 4000, 4100]})
    events = events.assign(position=range(6), ts=pd.to_datetime(events.ts, unit="ms"))
    stream = cep.EventStream.from_pandas(events, type="type", time="ts")
    found = cep.evaluate(cep.parse(written, dialect="match_recognize"), stream).matches
    assert found.to_numpy().tolist() == [[2, 3]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SEQ(A a, KL(B b)) STRATEGY strict_contiguity WITHIN 5 s", r"KL\(B b\) binds sets"),
        ("SEQ(A a, NOT(B b), C c) STRATEGY next WITHIN 5 s", "plain items, not for NOT"),
        ("OR(A a, B b) STRATEGY next WITHIN 5 s", "OR those of all"),
        ("SEQ(A a, B b) STRATEGY consuming WITHIN 5 s", "STRATEGY consuming several"),
        ("AND(A a, B b) STRATEGY strict_contiguity OUTPUT non_overlap WITHIN 5 s", "not for AND"),
        ("SEQ(A a, B b) STRATEGY next OUTPUT non_overlap WITHIN 5 s", "takes the first match"),
        ("SEQ(A a, B b) STRATEGY next WITHIN 5 units", "flink orders the rows .* by a timestamp"),
        ("SEQ(A a, B b) WHERE a.x % b.x > 1 WITHIN 5 s", "Flink's % is for exact numbers"),
        ("OR(A a, B b) WITHIN 5 s", "Flink has no NULL without a type"),
        ("SEQ(A a, B b) WITHIN 5 microseconds", "flink's intervals have milliseconds"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(UnsupportedPatternError, match=words):
        cep.to_sql(pattern(text), dialect="flink")


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, B b) WITHIN 5 s",
        "AND(A a, B b) STRATEGY strict_contiguity WITHIN 5 s",
        "SEQ(A a, NOT(B b), C c) STRATEGY partition_contiguity(k) WITHIN 5 s",
    ],
)
def test_elsewhere_there_are_joins(text: str) -> None:
    assert "MATCH_RECOGNIZE" not in cep.to_sql(pattern(text), dialect="trino")


def test_a_plan_is_joins() -> None:
    text = pattern("SEQ(A a, B b) STRATEGY strict_contiguity WITHIN 5 s")
    assert "MATCH_RECOGNIZE" in cep.to_sql(text, dialect="trino")
    assert "MATCH_RECOGNIZE" not in cep.to_sql(text, cep.OrderPlan(["b", "a"]), dialect="trino")


def test_a_run_ignores_an_event_with_a_missing_value() -> None:
    text = pattern("SEQ(A a, B b) WHERE a.x < b.x STRATEGY next WITHIN 9 units")
    events = pd.DataFrame({"type": list("ABB"), "time": range(3), "x": [1, None, 2]})
    assert rows_of(
        query_of(Case(text, events), "trino"), Case(text, events)
    ).to_numpy().tolist() == [[0, 2]]


def test_the_number_of_matches() -> None:
    text = pattern("SEQ(A a, B b) STRATEGY next WITHIN 5 s")
    written: Any = cep.to_sql(text, dialect="trino", output="count")
    assert written.startswith("SELECT count(*) AS matches\nFROM") and 'ORDER BY "b' not in written
