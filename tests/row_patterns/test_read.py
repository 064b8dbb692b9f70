"""SQL with MATCH_RECOGNIZE is read as it is written, or refused under the word that is wrong."""

from __future__ import annotations

import pytest

import cepbench as cep
from cepbench.errors import (
    PatternError,
    PatternNameError,
    PatternSyntaxError,
    UnsupportedPatternError,
)


def read(query: str) -> cep.RowPattern:
    return cep.parse(query, dialect="match_recognize")


def test_every_clause() -> None:
    query = """
    -- all of it
    SELECT a, T.b AS c FROM ticker MATCH_RECOGNIZE (
      PARTITION BY symbol, "Day" ORDER BY ts ASC, seq
      MEASURES A.price AS a, FINAL  LAST(b.price, 1) - count(*) AS b, RUNNING sum(b.price * 2) AS s,
               PREV(FIRST(A.price - A.tax, 2), 3) AS p, CLASSIFIER(U) AS v, match_number() AS n
      ALL ROWS PER MATCH OMIT EMPTY MATCHES
      AFTER MATCH SKIP TO b
      PATTERN (^ A (b | C)+? {- "d e"{2,3} -} PERMUTE(E, F)?? G{,4} ( ) $ /* to the end */)
      WITHIN INTERVAL '90' SECOND
      SUBSET U = (A, B), V = (c)
      DEFINE b AS b.price BETWEEN 1 AND 2 AND NOT (symbol IN ('x', 'it''s') OR flag),
             C AS C.ts - A.ts < INTERVAL '5' MINUTE AND C.price IS NOT NULL
    ) AS T;
    """
    pattern = read(query)
    assert str(pattern) == (
        "SELECT a, b AS c FROM events MATCH_RECOGNIZE ( PARTITION BY symbol, Day ORDER BY ts, seq MEASURES "
        "A.price AS a, FINAL LAST(B.price, 1) - COUNT(*) AS b, SUM(B.price * 2) AS s, PREV(FIRST(A.price, 2), "
        "3) - PREV(FIRST(A.tax, 2), 3) AS p, CLASSIFIER(U) AS v, MATCH_NUMBER() AS n ALL ROWS PER MATCH OMIT "
        'EMPTY MATCHES AFTER MATCH SKIP TO LAST B PATTERN (^ A (B | C)+? {- "d e"{2,3} -} PERMUTE(E, F)?? '
        "G{0,4} () $) WITHIN INTERVAL '90' SECOND SUBSET U = (A, B), V = (C) DEFINE B AS B.price >= 1 AND "
        "B.price <= 2 AND NOT (symbol = 'x' OR symbol = 'it''s' OR flag = true), C AS C.ts - A.ts < INTERVAL "
        "'5' MINUTE AND NOT (C.price IS NULL))"
    )
    assert read(str(pattern)) == read(pattern.describe()) == pattern
    assert pattern.within is not None
    assert pattern.within.length == 90 * 10**9 - 1


def test_defaults_are_those_of_the_standard() -> None:
    pattern = read("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))")
    assert (pattern.rows, pattern.skip) == ("ONE ROW PER MATCH", "PAST LAST ROW")
    assert pattern.order_by == pattern.define == pattern.measures == ()


def test_an_order_of_the_query_names_columns_of_the_clause() -> None:
    pattern = read(
        "SELECT a AS x, b FROM t MATCH_RECOGNIZE (MEASURES A.x AS a, A.y AS b, A.z AS c PATTERN (A)) AS m "
        "ORDER BY x DESC, m.c"
    )
    assert pattern.sorted_by == (("a", True), ("c", False))
    assert read(str(pattern)) == read(pattern.describe()) == pattern


def test_casts_to_doubles_are_products() -> None:
    cast = read("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS CAST(x AS DOUBLE) > 1)")
    assert cast.define == (
        read("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS 1.0 * x > 1)").define
    )


def test_names_in_backticks() -> None:
    pattern = read(
        "SELECT `x y` FROM `t` MATCH_RECOGNIZE (MEASURES `A`.`p q` AS `x y` PATTERN (`A` B))"
    )
    assert pattern == read(
        'SELECT "x y" FROM t MATCH_RECOGNIZE (MEASURES A."p q" AS "x y" PATTERN (A B))'
    )


@pytest.mark.parametrize(
    ("query", "error", "at", "message"),
    [
        ("SELECT 1", PatternSyntaxError, "SELECT 1", "no MATCH_RECOGNIZE"),
        ("SELECT 'a FROM t MATCH_RECOGNIZE (PATTERN (A))", PatternSyntaxError, "", "no end"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A)", PatternSyntaxError, ")", "not closed"),
        ("(DEFINE A AS 1 = 1)", PatternSyntaxError, "A", "no PATTERN"),
        ("(PATTERN (A) PATTERN (B))", PatternSyntaxError, "PATTERN", "second PATTERN"),
        ("(PATTERN (A & B))", PatternSyntaxError, "&", "PATTERN has variables"),
        ("(PATTERN (A |))", PatternSyntaxError, ")", "PATTERN has variables"),
        ("(PATTERN (A{3,2}))", PatternSyntaxError, "{3,2}", "upper bound"),
        ("(PATTERN (A{0}))", PatternSyntaxError, "{0}", "upper bound"),
        ("(PATTERN ((A{100} B){20}))", UnsupportedPatternError, "PATTERN ((A{100} B){20})", "1000"),
        ("(PATTERN (PERMUTE(A, B, C, D, E, F, G)))", UnsupportedPatternError, "PATTERN", "1000"),
        ("(PATTERN (A (){99999}))", UnsupportedPatternError, "PATTERN (A (){99999})", "1000"),
        ("(PATTERN (A) DEFINE A AS x > 1e999)", PatternError, "1e999", "range of a float"),
        ("(PATTERN (A) DEFINE A AS x > 1e-400)", PatternError, "1e-400", "rounded to 0.0"),
        ("(PATTERN (A) DEFINE A AS x = 0.1234567890123456789)", PatternError, "0.1234567890123456789", "more digits"),
        ("(MEASURES CLASSIFIER(3) AS v PATTERN (A))", PatternSyntaxError, "CLASSIFIER", "a variable"),
        ("(PATTERN (A) DEFINE B AS 1 = 1)", PatternNameError, "B", "unknown variable B; .* A"),
        ("(PATTERN (A) DEFINE A AS C.x = 1)", PatternNameError, "C", "unknown variable C"),
        ("(PATTERN (A) DEFINE A AS x = 1, A AS x = 2)", PatternNameError, "A", "defined twice"),
        ("(PATTERN (A) SUBSET U = (A) DEFINE U AS x = 1)", PatternNameError, "U", "is a subset"),
        ("(PATTERN (A) SUBSET A = (A))", PatternNameError, "A", "variable already"),
        ("(PATTERN (A) SUBSET U = A)", PatternSyntaxError, "U = A", "expected SUBSET"),
        ("(PATTERN (A) DEFINE A AS x + 1)", PatternSyntaxError, "x + 1", "no condition"),
        ("(PATTERN (A) DEFINE A AS x + > 1)", PatternSyntaxError, ">", "unexpected '>'"),
        ("(PATTERN (A) DEFINE A AS x = NULL)", UnsupportedPatternError, "DEFINE", "NULL"),
        ("(PATTERN (A) DEFINE A AS ABS(x) > 1)", PatternNameError, "ABS(x", "unknown function ABS"),
        ("(PATTERN (A) DEFINE A AS PREF(x) > 1)", PatternNameError, "PREF(x", "did you mean 'PREV'"),
        ("(PATTERN (A) DEFINE A AS FINAL LAST(x) > 1)", UnsupportedPatternError, "FINAL", "DEFINE"),
        ("(PATTERN (A) DEFINE A AS MATCH_NUMBER() > 1)", UnsupportedPatternError, "", "DEFINE"),
        ("(PATTERN (A) DEFINE A AS x LIKE 'a')", UnsupportedPatternError, "x LIKE 'a'", "LIKE"),
        ("(PATTERN (A) DEFINE A AS ts > INTERVAL '1' LIGHTYEAR)", UnsupportedPatternError, "'1'", "one unit"),
        ("(MEASURES x > 1 AS y PATTERN (A))", UnsupportedPatternError, "x > 1", "condition"),
        ("(MEASURES PREV(A.x + B.x) AS y PATTERN (A B))", PatternSyntaxError, "PREV(A.x", "two"),
        ("(MEASURES PREV(1) AS y PATTERN (A B))", PatternSyntaxError, "PREV(1", "no column"),
        ("(MEASURES PREV(x, -1) AS y PATTERN (A))", PatternSyntaxError, "1", "whole number"),
        ("(MEASURES PREV(NEXT(x)) AS y PATTERN (A))", PatternSyntaxError, "PREV(NEXT(x", "offsets"),
        ("(MEASURES FIRST(PREV(x)) AS y PATTERN (A))", PatternSyntaxError, "FIRST(", "inside PREV"),
        ("(MEASURES PREV(SUM(x)) AS y PATTERN (A))", PatternSyntaxError, "PREV(SUM(x", "aggregate"),
        ("(MEASURES PREV(CLASSIFIER()) AS y PATTERN (A))", UnsupportedPatternError, "PREV", "FIRST, LAST"),
        ("(MEASURES SUM(A.*) AS y PATTERN (A))", PatternSyntaxError, "SUM(A.*", "takes a column"),
        ("(MEASURES SUM(A.x - B.x) AS y PATTERN (A B))", PatternSyntaxError, "SUM(", "two"),
        ("(MEASURES SUM(PREV(x)) AS y PATTERN (A))", UnsupportedPatternError, "SUM(", "columns"),
        ("(MEASURES COUNT(DISTINCT x) AS y PATTERN (A))", UnsupportedPatternError, "", "DISTINCT"),
        ("(MEASURES A.x AS y, A.z AS Y PATTERN (A))", PatternNameError, "A.z AS Y", "second measure"),
        ("(ORDER BY ts DESC PATTERN (A))", UnsupportedPatternError, "ts", "DESC"),
        ("(PARTITION BY x + 1 PATTERN (A))", UnsupportedPatternError, "x + 1", "only a column"),
        ("(ONE ROW PER MATH PATTERN (A))", PatternSyntaxError, "ONE ROW PER MATH", "ONE ROW PER MATCH"),
        ("(AFTER MATCH SKIP TO FIRST X PATTERN (A))", PatternNameError, "X", "unknown variable X"),
        ("(AFTER MATCH SKIP PAST NEXT ROW PATTERN (A))", PatternSyntaxError, "AFTER", "expected AFTER"),
        ("(PATTERN (A) WITHIN 5 MINUTES)", PatternSyntaxError, "5 MINUTES", "INTERVAL '10' MINUTE"),
        (
            "(ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (A {- B -}))",
            PatternSyntaxError, "ALL ROWS", "excludes",
        ),
        ("(PATTERN (A));\nSELECT 1", PatternSyntaxError, "SELECT", "second statement"),
        ("(PATTERN (A)) UNION ALL SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))", UnsupportedPatternError,
         "MATCH_RECOGNIZE", "a second MATCH_RECOGNIZE"),
        ("(PATTERN (A)) ORDER BY x NULLS FIRST", UnsupportedPatternError, "NULLS FIRST", "are last"),
        ("(PATTERN (A)) ORDER BY x + 1", UnsupportedPatternError, "x + 1", "only a column"),
        ("(PATTERN (A) DEFINE A AS CAST(x AS INT) > 1)", PatternError, "x", "CAST"),
        ("(PATTERN (A)) WHERE x > 1", UnsupportedPatternError, "x > 1", "WHERE around"),
        ("(PATTERN (A)) JOIN u ON 1 = 1", PatternError, "", "JOINS around"),
    ],
)  # fmt: skip
def test_errors_are_under_the_word(
    query: str, error: type[PatternError], at: str, message: str
) -> None:
    whole = query if query.startswith("SELECT") else f"SELECT * FROM t\nMATCH_RECOGNIZE {query}"
    with pytest.raises(error, match=message) as raised:
        read(whole)
    assert raised.value.offending.startswith(at)
    assert raised.value.line == (1 if query.startswith("SELECT") else 2 + query.count("\n"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "the query is empty"),
        ("\n -- later\n", "the query is empty"),
        ("SELECT * FROM t TABLESAMPLE BERNOULLI (10) MATCH_RECOGNIZE (PATTERN (A))", "whole table"),
        ("SELECT x + 1 FROM t MATCH_RECOGNIZE (PATTERN (A))", "SELECT takes columns"),
        ("SELECT * FROM (SELECT 1) MATCH_RECOGNIZE (PATTERN (A))", "names a table"),
        ("SELECT * FROM t, u MATCH_RECOGNIZE (PATTERN (A))", "MATCH_RECOGNIZE"),
        ("SELECT DISTINCT x FROM t MATCH_RECOGNIZE (PATTERN (A))", "DISTINCT around"),
    ],
)
def test_the_query_around_is_plain(query: str, message: str) -> None:
    with pytest.raises(PatternError, match=message):
        read(query)


def test_sql_takes_no_parameters() -> None:
    with pytest.raises(PatternError, match="without parameters"):
        cep.parse(  # type: ignore[call-overload]
            "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A))", {"x": 1}, dialect="match_recognize"
        )
