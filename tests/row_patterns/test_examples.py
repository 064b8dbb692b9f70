"""Queries as the manuals of Oracle, Flink, Snowflake and Trino have them, with the rows that they return."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import EvaluationError, PartialMatchLimitError, StreamError
from tests.budgets import only_compiled

pytestmark = pytest.mark.kernel


def rows(query: str, frame: pd.DataFrame, **how: Any) -> list[tuple[Any, ...]]:
    pattern = cep.parse(query, dialect="match_recognize")
    found = cep.evaluate(pattern, frame, type="symbol", time="ts", **how)
    return [tuple(row) for row in found.matches.itertuples(index=False)]


def ticks(
    prices: list[float], times: list[int] | None = None, symbol: str = "ACME"
) -> pd.DataFrame:
    count = len(prices)
    return pd.DataFrame(
        {"symbol": [symbol] * count, "ts": times or range(1, count + 1), "price": prices}
    )


#: Oracle Database Data Warehousing Guide, SQL for Pattern Matching, the table Ticker: ACME by day.
ACME = ticks([12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19, 15, 25, 25, 14, 12, 14, 24, 23, 22])
V_SHAPE = """
SELECT * FROM Ticker MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY ts
  MEASURES STRT.ts AS start_tstamp, LAST(DOWN.ts) AS bottom_tstamp, LAST(UP.ts) AS end_tstamp
  {rows}
  AFTER MATCH SKIP TO LAST UP
  PATTERN (STRT DOWN+ UP+)
  DEFINE DOWN AS DOWN.price < PREV(DOWN.price), UP AS UP.price > PREV(UP.price)
) MR
"""


def test_v_shapes() -> None:
    assert rows(V_SHAPE.format(rows="ONE ROW PER MATCH"), ACME) == [
        ("ACME", 5, 6, 10),
        ("ACME", 10, 12, 13),
        ("ACME", 14, 16, 18),
    ]


def test_v_shapes_row_by_row() -> None:
    query = V_SHAPE.replace("LAST(UP.ts) AS", "FINAL LAST(UP.ts) AS").replace(
        "end_tstamp", "end_tstamp, CLASSIFIER() AS var, MATCH_NUMBER() AS number"
    )
    found = rows(query.format(rows="ALL ROWS PER MATCH"), ACME)
    assert [(row[1], row[4], row[5], row[6]) for row in found[:7]] == [
        (5, 10, "STRT", 1),
        (6, 10, "DOWN", 1),
        (7, 10, "UP", 1),
        (8, 10, "UP", 1),
        (9, 10, "UP", 1),
        (10, 10, "UP", 1),
        (10, 13, "STRT", 2),
    ]
    assert [row[3] for row in found[:3]] == pytest.approx([None, 6, 6], nan_ok=True) or pd.isna(
        found[0][3]
    )


def test_several_partitions_come_in_the_order_of_their_first_rows() -> None:
    both = pd.concat([ACME, ACME.assign(symbol="ABC", ts=ACME.ts)]).sort_values("ts", kind="stable")
    found = rows(V_SHAPE.format(rows=""), both)
    assert [row[0] for row in found] == ["ACME"] * 3 + ["ABC"] * 3


def test_equal_keys_are_one_partition() -> None:
    frame = pd.DataFrame({"type": "A", "ts": range(6), "k": [0.0, None, -0.0, 2.0, None, 0.0]})
    query = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k MEASURES COUNT(*) AS n PATTERN (A+))"
    found = cep.evaluate(cep.parse(query, dialect="match_recognize"), frame, type="type", time="ts")
    assert found.matches["n"].tolist() == [3, 2, 1]


def test_rows_in_the_order_of_the_query() -> None:
    query = V_SHAPE.format(rows="") + "ORDER BY MR.symbol, MR.start_tstamp DESC"
    assert [row[1] for row in rows(query, ACME)] == [14, 10, 5]
    query = (
        V_SHAPE.replace("*", "start_tstamp AS start", 1).format(rows="")
        + "ORDER BY end_tstamp DESC"
    )
    assert rows(query, ACME) == [(14,), (10,), (5,)]
    with pytest.raises(
        StreamError, match="line 10, column 10: top: MATCH_RECOGNIZE returns symbol"
    ):
        rows(V_SHAPE.format(rows="") + "ORDER BY top", ACME)


def test_average_over_the_rows_so_far() -> None:
    """Flink, Detecting Patterns in Tables, on aggregations."""
    prices = [12.0, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30]
    query = """
    SELECT * FROM Ticker MATCH_RECOGNIZE (
      PARTITION BY symbol ORDER BY ts
      MEASURES FIRST(A.ts) AS start_tstamp, LAST(A.ts) AS end_tstamp, AVG(A.price) AS avgPrice
      ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
      PATTERN (A+ B) DEFINE A AS AVG(A.price) < 15) MR
    """
    found = rows(query, ticks(prices, [*range(12)]))
    assert found == [("ACME", 0, 3, 14.5), ("ACME", 5, 10, 13.5)]


def test_rows_of_two_variables_by_subset() -> None:
    """Trino, MATCH_RECOGNIZE: a fall, and a rise in two parts."""
    query = """
    SELECT m.symbol, starting_price, bottom_price, top_price AS top FROM orders MATCH_RECOGNIZE(
      PARTITION BY symbol ORDER BY ts
      MEASURES A.price AS starting_price, LAST(B.price) AS bottom_price, LAST(U.price) AS top_price
      ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
      PATTERN (A B+ C+ D+)
      SUBSET U = (C, D)
      DEFINE B AS price < PREV(price),
             C AS price > PREV(price) AND price <= A.price,
             D AS price > PREV(price)) AS m
    """
    found = rows(query, ticks([100, 80, 70, 90, 100, 120, 110]))
    assert found == [("ACME", 100, 70, 120)]


def test_lag_and_lead_are_previous_and_next() -> None:
    """Snowflake, Identifying Sequences of Rows: a fall and a rise, by LAG."""
    query = """
    SELECT * FROM stock_price_history MATCH_RECOGNIZE(
      PARTITION BY symbol ORDER BY ts
      MEASURES MATCH_NUMBER() AS match_number, FIRST(ts) AS start_date, LAST(ts) AS end_date,
        COUNT(*) AS rows_in_sequence, COUNT(row_with_price_decrease.*) AS num_decreases
      ONE ROW PER MATCH AFTER MATCH SKIP TO LAST row_with_price_increase
      PATTERN(row_before_decrease row_with_price_decrease+ row_with_price_increase+)
      DEFINE row_with_price_decrease AS price < LAG(price), row_with_price_increase AS price > LAG(price)
    ) ORDER BY symbol, match_number;
    """
    expected = [("ACME", 1, 5, 10, 6, 1), ("ACME", 2, 10, 13, 4, 2), ("ACME", 3, 14, 18, 5, 2)]
    assert rows(query, ACME) == expected
    two = query.replace("price < LAG(price)", "price < LAG(price, 1) AND LEAD(price, 2) > 0")
    assert rows(two, ACME) == rows(two.replace("LAG", "PREV").replace("LEAD", "NEXT"), ACME) != []


def test_sessions() -> None:
    """Rows at most ten apart, as Oracle's guide divides clicks into sessions."""
    query = """
    SELECT session, clicks, length FROM Events MATCH_RECOGNIZE (
      PARTITION BY symbol ORDER BY ts
      MEASURES MATCH_NUMBER() AS session, COUNT(*) AS clicks, LAST(ts) - FIRST(ts) AS length
      PATTERN (b s*) DEFINE s AS s.ts - PREV(ts) <= 10)
    """
    assert rows(query, ticks([0] * 6, [1, 11, 12, 23, 33, 50])) == [
        (1, 3, 11),
        (2, 2, 10),
        (3, 1, 0),
    ]


FRAUD = """
SELECT * FROM payments MATCH_RECOGNIZE (
  PARTITION BY symbol ORDER BY ts
  MEASURES small.ts AS tested, large.price AS amount, large.ts - small.ts AS waited
  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW
  PATTERN (small other*? large) WITHIN INTERVAL '1' MINUTE
  DEFINE small AS small.price < 1, large AS large.price > 500)
"""


def test_fraud_after_a_small_charge() -> None:
    frame = ticks([0.5, 20, 900, 0.1, 600, 0.2, 700], [0, 10, 59, 100, 160, 200, 259])
    frame["ts"] = pd.to_datetime(frame["ts"], unit="s")
    # From 100 to 160 is a whole minute, which Flink's WITHIN leaves out.
    assert rows(FRAUD, frame) == [
        ("ACME", pd.Timestamp(0), 900, pd.Timedelta("59s")),
        ("ACME", pd.Timestamp(200, unit="s"), 700, pd.Timedelta("59s")),
    ]


def test_a_window_fits_the_time() -> None:
    with pytest.raises(StreamError, match="write a number"):
        rows(FRAUD, ticks([1, 2]))


@only_compiled
@pytest.mark.parametrize("within", ["", "WITHIN 100"])
def test_without_conditions_on_the_match_a_state_is_tried_once_a_row(within: str) -> None:
    query = f"""SELECT * FROM t MATCH_RECOGNIZE (MEASURES COUNT(*) AS n
      PATTERN ((A | B)* (A B | B A)* C) {within} DEFINE C AS price < 0)"""
    result = cep.evaluate(
        cep.parse(query, dialect="match_recognize"), ticks([1.0] * 500), type="symbol", time="ts"
    )
    assert len(result) == 0
    assert result.metrics.details["rows_tried"] <= 500 * 7 * (100 if within else 1)


def test_what_failed_by_the_window_is_tried_again_from_later_rows() -> None:
    query = """SELECT * FROM t MATCH_RECOGNIZE (MEASURES FIRST(ts) AS since, COUNT(*) AS n
      PATTERN (A+ C) WITHIN 3 DEFINE C AS price < 0)"""
    assert rows(query, ticks([1, 1, 1, -1], [0, 2, 3, 4])) == [(2, 3)]


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("FIRST(price, 1) = 2", True),
        ("FIRST(price, 2) = C.price", True),
        ("FIRST(price, 3) = C.price", False),
        ("LAST(price, 2) = A.price", True),
        ("LAST(price, 3) = A.price", False),
        ("NEXT(FIRST(A.price), 3) = 9", True),
        ("PREV(A.price) IS NULL AND NEXT(C.price) = 9", True),
        (
            "AVG(price) = 2 AND COUNT(*) = 3 AND SUM(B.price) = 2 AND MAX(price) - MIN(price) = 2",
            True,
        ),
    ],
)
def test_conditions_on_other_rows(condition: str, is_met: bool) -> None:
    query = f"""SELECT * FROM t MATCH_RECOGNIZE (MEASURES A.ts AS since PATTERN (^ A B C)
      DEFINE C AS {condition})"""
    assert rows(query, ticks([1, 2, 3, 9])) == [(1,)] * is_met


BACKTRACKING = """SELECT * FROM t MATCH_RECOGNIZE (
  PATTERN ((A | B)* C) DEFINE A AS A.price = FIRST(price), C AS price < 0)"""


def test_backtracking_is_bounded() -> None:
    with pytest.raises(PartialMatchLimitError, match=r"row 0: .* more than 10,000 rows"):
        rows(BACKTRACKING, ticks([1.0] * 60), partial_match_limit=10_000)


def test_the_rows_of_all_matches_are_bounded() -> None:
    query = """SELECT * FROM t MATCH_RECOGNIZE (MEASURES COUNT(*) AS n
      AFTER MATCH SKIP TO NEXT ROW PATTERN (A+))"""
    assert rows(query, ticks([1.0] * 3)) == [(3,), (2,), (1,)]
    with pytest.raises(PartialMatchLimitError, match="SKIP"):
        rows(query, ticks([1.0] * 3000), partial_match_limit=10_000)


@pytest.mark.parametrize(
    ("skip", "message"),
    [("FIRST A", "row 0: .*first row of the match"), ("LAST C", "row 0: .*the match has not")],
)
def test_skips_that_lead_nowhere(skip: str, message: str) -> None:
    query = f"""SELECT * FROM t MATCH_RECOGNIZE (AFTER MATCH SKIP TO {skip} PATTERN (A B C?)
      DEFINE C AS price > 5)"""
    with pytest.raises(EvaluationError, match=message):
        rows(query, ticks([1.0] * 3))


@pytest.mark.parametrize(
    ("clause", "message"),
    [
        ("MEASURES A.prise AS x PATTERN (A)", "no column 'prise'.*did you mean 'price'"),
        ("PATTERN (A) DEFINE A AS price = 'x'", "price = 'x' compares a number with a text"),
        ("PATTERN (A) DEFINE A AS symbol < 'x'", "orders a text"),
        ("MEASURES SUM(symbol) AS x PATTERN (A)", "SUM of a text"),
        ("MEASURES symbol + 1 AS x PATTERN (A)", r"\+ of a text and a number"),
        ("PARTITION BY symbol MEASURES A.price AS symbol PATTERN (A)", "another column"),
        ("MEASURES ts AS price ALL ROWS PER MATCH PATTERN (A)", "rename"),
        ("ORDER BY price PATTERN (A)", "row 1: it is not in the order of ORDER BY price"),
        ("ORDER BY symbol PATTERN (A)", "which is a text"),
    ],
)
def test_what_does_not_fit_the_stream(clause: str, message: str) -> None:
    with pytest.raises(StreamError, match=message):
        rows(f"SELECT * FROM t MATCH_RECOGNIZE ({clause})", ticks([2.0, 1.0]))


def test_a_name_is_found_whatever_its_case_if_that_is_clear() -> None:
    frame = ticks([1.0, 2.0]).assign(PRICE=[5.0, 6.0], Volume=[7, 8])
    query = "SELECT * FROM t MATCH_RECOGNIZE (MEASURES A.{} AS x PATTERN (A))"
    assert rows(query.format("PRICE"), frame) == [(5.0,), (6.0,)]
    assert rows(query.format("VOLUME"), frame) == [(7,), (8,)]
    with pytest.raises(StreamError, match="'price' or 'PRICE'"):
        rows(query.format("Price"), frame)


def test_what_is_for_plans_is_refused() -> None:
    pattern = cep.parse("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))", dialect="match_recognize")
    stream = cep.EventStream.from_pandas(ACME, type="symbol", time="ts")
    with pytest.raises(EvaluationError, match="evaluator= is not for row patterns"):
        cep.evaluate(pattern, stream, evaluator="tree")
    with pytest.raises(EvaluationError, match="plan= is not for row patterns"):
        cep.evaluate(pattern, stream, cep.OrderPlan(["a"]))
    with pytest.raises(cep.CepbenchError, match="SKIP TO NEXT ROW has one; "):
        cep.Detector(pattern)  # type: ignore[call-overload]


def test_a_result_prints_as_its_first_rows() -> None:
    pattern = cep.parse(V_SHAPE.format(rows=""), dialect="match_recognize")
    result = cep.evaluate(pattern, ACME, type="symbol", time="ts")
    assert repr(result).startswith("3 matches in 20 events, 3 rows, in ")
    assert "bottom_tstamp" in repr(result)
    assert "<table" in result._repr_html_()
    assert len(result) == 3
