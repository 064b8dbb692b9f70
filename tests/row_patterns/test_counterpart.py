"""Where a pattern says the same as a row pattern, every evaluator finds the rows that SQL returns."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import UnsatisfiablePatternError, UnsupportedPatternError
from cepbench.patterns.expressions import Constant, Duration
from cepbench.patterns.model import Window
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
@examples(20)
@given(random=st.randoms(use_true_random=False))
def test_the_counterpart_has_the_same_rows(
    random: Random, evaluator: str, is_datetime: bool
) -> None:
    check_same(drawn(random, is_datetime=is_datetime), random, evaluator, is_datetime=is_datetime)


@pytest.mark.parametrize(
    ("evaluator", "is_datetime"), crossed(["sase", "sase-backtrack"], [False, True])
)
@examples(40)
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
