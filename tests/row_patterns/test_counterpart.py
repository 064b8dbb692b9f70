"""Where a pattern says the same as a row pattern, every evaluator finds the rows that SQL returns."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PatternError, UnsatisfiablePatternError, UnsupportedPatternError
from cepbench.patterns.expressions import Constant, Duration
from cepbench.patterns.model import Window
from cepbench.patterns.row_counterpart import nearest
from cepbench.patterns.row_pattern import (
    Measure,
    Operation,
    Reference,
    RowExpression,
    RowPattern,
    RowTerm,
)
from tests.budgets import crossed, examples
from tests.row_patterns.drawn import COMPARISONS, drawn_frame

pytestmark = pytest.mark.kernel

NAMES = ("A", "B", "C")


def drawn(random: Random, *, is_datetime: bool, gaps: bool = False) -> RowPattern:
    """A row pattern of single variables, with gaps or none, which reads rows of the match only."""
    names = NAMES[: random.randint(2, 3)]

    def value(at: int) -> Reference:
        """A column of one of the rows up to a variable's."""
        column, place = random.choice("xy"), random.randint(0, at)
        if gaps and random.randint(0, 9):
            which = random.choice((None, None, names[0], names[place]))
            return Reference(column, which, from_first=which is None and random.random() < 0.5)
        how = random.choice(("plain", "shifted", "any", "first"))
        if how == "plain":
            return Reference(column, names[place])
        if how == "first":
            return Reference(column, from_first=True, offset=place)
        if how == "any":
            return Reference(column, offset=at - place)
        start = random.randint(0, at)
        return Reference(column, names[start], shift=place - start)

    def condition(at: int) -> RowExpression:
        compare = random.choice(COMPARISONS)
        kind = random.choice(("two", "two", "constant", "both", "either", "not", "known", "apart"))
        if kind in ("both", "either"):
            operator = "AND" if kind == "both" else "OR"
            return Operation(
                operator, (condition(at), Operation(compare, (value(at), Constant(1))))
            )
        if kind == "not":
            return Operation("NOT", (Operation(compare, (value(at), value(at))),))
        if kind == "known":
            return Operation("NOT", (Operation("IS NULL", (value(at),)),))
        if kind == "apart":
            times = Reference("ts", names[at]), Reference("ts", names[random.randint(0, at)])
            length = Duration(10**9) if is_datetime else Constant(1)
            if times[0] != times[1]:
                return Operation(compare, (Operation("-", times), length))
        right = Constant(random.randint(0, 3)) if kind == "constant" else value(at)
        return Operation(compare, (value(at), right))

    terms = [RowTerm("variable", name=name) for name in names]
    if gaps:
        gap = RowTerm("quantified", (RowTerm("variable", name="X"),), "", 0, None, True)
        terms = [each for term in terms for each in (gap, term)][1:]
    return RowPattern(
        term=RowTerm("sequence", tuple(terms)),
        define=tuple(
            (name, condition(at)) for at, name in enumerate(names) if random.randint(0, 2)
        ),
        measures=tuple(
            Measure(Reference(column, name), f"{name} {column}")
            for name in names
            for column in (("x", "y") if is_datetime else ("x", "y", "ts"))
        ),
        partition_by=random.choice(((), ("k",))),
        skip="TO NEXT ROW",
        within=Window(random.randint(1, 4), "seconds" if is_datetime else "units", exclusive=True),
    )


def listed(frame: Any) -> list[tuple[str, ...]]:
    return sorted(tuple(map(str, row)) for row in frame.astype(object).itertuples(index=False))


@pytest.mark.parametrize(
    ("evaluator", "is_datetime"),
    crossed(["lazy-nfa", "tree", "sase"], [False, True]),
)
@given(random=st.randoms(use_true_random=False))
def test_the_counterpart_has_the_same_rows(
    random: Random, evaluator: str, is_datetime: bool
) -> None:
    check_same(drawn(random, is_datetime=is_datetime), random, evaluator, is_datetime=is_datetime)


@pytest.mark.parametrize(
    ("evaluator", "is_datetime"), crossed(["sase", "sase-backtrack"], [False, True])
)
@examples(20)
@given(random=st.randoms(use_true_random=False))
def test_gaps_end_at_the_first_row_that_fits(
    random: Random, evaluator: str, is_datetime: bool
) -> None:
    rows = drawn(random, is_datetime=is_datetime, gaps=True)
    check_same(rows, random, evaluator, is_datetime=is_datetime)


def check_same(rows: RowPattern, random: Random, evaluator: str, *, is_datetime: bool) -> None:
    frame = drawn_frame(random, is_datetime=is_datetime).dropna(subset=["k"])
    stream = cep.EventStream.from_pandas(frame, type="type", time="ts")
    expected = cep.evaluate(rows, stream).matches
    try:
        pattern = cep.counterpart(rows)
    except UnsatisfiablePatternError:
        assert expected.empty
        return
    except UnsupportedPatternError as error:
        known = (
            "a conjunct may relate at most two",
            "a row of a gap",
            "after a gap",
            "is not mapped",
        )
        if not any(reason in str(error) for reason in known[: 4 if "X" in rows.variables else 1]):
            raise
        return
    found = cep.evaluate(pattern, stream, evaluator=evaluator, missing_types="warn").matches
    assert list(found.columns) == list(expected.columns)
    assert listed(found) == listed(expected)


QUERY = """SELECT {select} FROM t MATCH_RECOGNIZE ({partition} {measures} {rows} AFTER MATCH SKIP {skip}
  PATTERN ({pattern}) {within} DEFINE B AS {b})"""
USUAL = {
    "select": "*", "partition": "", "measures": "", "rows": "", "skip": "TO NEXT ROW",
    "pattern": "A B", "within": "WITHIN 5", "b": "x > 1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("clause", "text", "message"),
    [
        ("select", "x", "SELECT of some columns"),
        ("partition", "PARTITION BY k, y", "PARTITION BY two columns"),
        ("measures", "MEASURES COUNT(*) AS n", r"COUNT\(\*\): values are columns"),
        ("measures", "MEASURES CLASSIFIER() AS n", "CLASSIFIER"),
        ("measures", "MEASURES NEXT(B.x) AS n", r"NEXT\(B.x\): it reads no row of the match"),
        ("rows", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH"),
        ("skip", "PAST LAST ROW", "SKIP PAST LAST ROW: SKIP TO NEXT ROW"),
        ("pattern", "A B+", r"PATTERN \(A B\+\)"),
        ("pattern", "A B A", r"PATTERN \(A B A\)"),
        ("pattern", "A X* B", r"PATTERN \(A X\* B\): of different variables"),
        ("pattern", "A X*? B C", r"PATTERN \(A X\*\? B C\)"),
        ("pattern", "B X*? B", r"PATTERN \(B X\*\? B\)"),
        ("gap", "A.x > PREV(B.x)", r"PREV\(B.x\): it may read a row of a gap"),
        ("gap", "x > X.x", r"X.x: it may read a row of a gap"),
        ("gap", "B.x > A.x", r"the condition of B, B.x > A.x, after a gap: where there are gaps"),
        ("within", "", "without WITHIN"),
        ("b", "PREV(A.x) > 1", "it reads no row"),
        ("b", "x IS NULL", "x IS NULL: conditions are comparisons"),
    ],
)
def test_what_has_no_counterpart_names_its_clause(clause: str, text: str, message: str) -> None:
    usual = cep.parse(QUERY.format(**USUAL), dialect="match_recognize")
    assert str(cep.counterpart(usual)).startswith("PATTERN SEQ(ANY A, ANY B) WHERE B.x > 1")
    clauses = {"pattern": "C X*? A X*? B", "b": text} if clause == "gap" else {clause: text}
    rows = cep.parse(QUERY.format(**{**USUAL, **clauses}), dialect="match_recognize")
    with pytest.raises(UnsupportedPatternError, match=message):
        cep.counterpart(rows)


AUTHOR = """select *
from bars match_recognize (
  partition by symbol order by ts
  measures A.x as low, LAST(B.x) -  A.x as gain {measure}
  {skip}
  pattern (A B) {within}
  define B as B.x > 1 {also}
) {end};"""
USUALLY = {
    "measure": "", "skip": "after match skip to next row", "within": "within 5", "also": "", "end": "",
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "line", "marked"),
    [
        ({"measure": ", count( * ) as n"}, 4, "count( * )"),
        ({"measure": ", 1 as one"}, 4, "1 as one"),
        ({"skip": "after  match skip past last row"}, 5, "after  match skip past last row"),
        ({"skip": ""}, 2, "match_recognize"),
        ({"within": ""}, 6, "pattern (A B)"),
        ({"also": "and next(B.x) > 1"}, 7, "next(B.x)"),
        ({"also": "and B.x is null"}, 7, "B.x"),
        ({"also": "and 1 > 2"}, 7, "B as B.x > 1 and 1 > 2"),
        ({"end": "order by low"}, 8, "low"),
    ],
)
def test_the_clause_is_marked_as_its_author_wrote_it(
    changed: dict[str, str], line: int, marked: str
) -> None:
    rows = cep.parse(AUTHOR.format(**{**USUALLY, **changed}), dialect="match_recognize")
    with pytest.raises(PatternError) as raised:
        cep.counterpart(rows)
    assert (raised.value.line, raised.value.offending) == (line, marked)
    # What asks for a pattern says so too.
    for asks in (cep.Detector, cep.measure_statistics):
        with pytest.raises(PatternError) as again:
            asks(rows, None)  # type: ignore[call-overload, arg-type]
        assert str(again.value) == str(raised.value)


def test_a_pattern_built_by_hand_is_marked_in_its_sql() -> None:
    rows = cep.parse(AUTHOR.format(**{**USUALLY, "within": ""}), dialect="match_recognize")
    by_hand = replace(rows, written=None)
    assert by_hand == rows
    with pytest.raises(UnsupportedPatternError) as raised:
        cep.counterpart(by_hand)
    assert raised.value.offending == "PATTERN (A B)"


@pytest.mark.parametrize(
    ("changed", "pattern", "changes"),
    [
        ({"skip": "", "end": "order by low"}, "A B", ["AFTER MATCH SKIP TO NEXT ROW", "SELECT * without"]),
        ({"within": "", "measure": ", count(*) as n"}, "A B", ["WITHIN, of any", "MEASURES without n"]),
    ],
)  # fmt: skip
def test_the_nearest_query_with_a_counterpart(
    changed: dict[str, str], pattern: str, changes: list[str]
) -> None:
    rows = cep.parse(AUTHOR.format(**{**USUALLY, **changed}), dialect="match_recognize")
    found = nearest(rows)
    assert found is not None
    query, said = found
    assert str(query.term) == pattern
    assert all(any(its.startswith(change) for its in said) for change in changes)
    assert len(said) == len(changes)
    cep.counterpart(query)


def test_repetitions_and_gaps_have_a_nearest_query() -> None:
    for written, near in (("A B+", "A B"), ("A X* B", "A X*? B"), ("A X+ B{2}", "A X*? B")):
        text = AUTHOR.format(**USUALLY).replace("(A B)", f"({written})")
        found = nearest(cep.parse(text, dialect="match_recognize"))
        assert found is not None
        assert str(found[0].term) == near
    text = AUTHOR.format(**USUALLY).replace("(A B)", "(A | B)")
    assert nearest(cep.parse(text, dialect="match_recognize")) is None
