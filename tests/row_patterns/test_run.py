"""Row patterns return what the standard says: the naive matcher decides."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import EvaluationError, StreamError
from cepbench.patterns.row_pattern import Measure, Reference, RowPattern, RowTerm
from tests.budgets import examples
from tests.naive.row_patterns import SkipsWrongly, naive_rows
from tests.row_patterns.drawn import Drawn, drawn_frame

pytestmark = pytest.mark.kernel


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with times as integers."""
    columns = {
        name: column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pa.table(columns).to_pylist()


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for row in frame.assign(ts=frame["ts"].astype("int64")).to_dict("records"):
        rows.append({name: None if pd.isna(value) else value for name, value in row.items()})
    return rows


def same(found: Any, expected: Any) -> bool:
    """Floats may differ by rounding."""
    if isinstance(found, float) and isinstance(expected, int | float):
        return math.isclose(found, expected, rel_tol=1e-12)
    return type(found) is type(expected) and found == expected


def check(pattern: RowPattern, frame: pd.DataFrame) -> None:
    stream = cep.EventStream.from_pandas(frame, type="type", time="ts")
    try:
        expected = naive_rows(pattern, rows_of(frame), "ts")
    except SkipsWrongly:
        with pytest.raises(EvaluationError, match="AFTER MATCH SKIP"):
            cep.evaluate(pattern, stream)
        return
    found = plain(cep.evaluate(pattern, stream).arrow)
    assert len(found) == len(expected)
    for number, (row, its) in enumerate(zip(found, expected, strict=True)):
        assert row.keys() == its.keys()
        for name, value in row.items():
            assert same(value, its[name]), f"row {number}, {name}: {value} is not {its[name]}"


@pytest.mark.parametrize("is_datetime", [False, True])
@examples(50)
@given(random=st.randoms(use_true_random=False))
def test_conditions_hold_where_the_standard_says(random: Random, is_datetime: bool) -> None:
    """Of one row, and of the last of three rows before which all are allowed."""
    last = RowTerm("variable", name="A")
    term = random.choice(
        (last, RowTerm("sequence", (RowTerm("variable", name="B"),) * 2 + (last,)))
    )
    drawn = Drawn(random, is_datetime=is_datetime, term=term)
    drawn.is_final = False
    pattern = replace(
        drawn.pattern,
        define=(("A", drawn.condition(3)),),
        measures=(Measure(Reference("y"), "y of A"),),
        skip="TO NEXT ROW",
        skip_to=None,
        within=None,
    )
    check(pattern, drawn_frame(random, is_datetime=is_datetime))


@pytest.mark.parametrize("is_datetime", [False, True])
@examples(50)
@given(random=st.randoms(use_true_random=False))
def test_any_row_pattern_returns_what_the_standard_says(random: Random, is_datetime: bool) -> None:
    pattern = Drawn(random, is_datetime=is_datetime).pattern
    assert cep.parse(str(pattern), dialect="match_recognize") == pattern
    check(pattern, drawn_frame(random, is_datetime=is_datetime))


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("MEASURES A.prize AS x PATTERN (A)", "A.prize"),
        ("PARTITION BY card PATTERN (A)", "PARTITION BY card"),
        ("PATTERN (A) DEFINE A AS name > 'a'", "name > 'a'"),
        ("PATTERN (A) DEFINE A AS name = 1", "name = 1"),
        ("MEASURES SUM(A.name) AS x PATTERN (A)", "SUM(A.name)"),
        ("PATTERN (A) DEFINE A AS XX > 1", "XX"),
        ("PARTITION BY name MEASURES A.y AS name PATTERN (A)", "A.y AS name"),
    ],
)
def test_what_does_not_fit_the_stream_is_under_the_word(query: str, marked: str) -> None:
    frame = pd.DataFrame({"type": "T", "ts": [0], "name": ["a"], "y": [1], "xX": [1], "Xx": [2]})
    rows = cep.parse(f"SELECT * FROM t\nMATCH_RECOGNIZE ({query})", dialect="match_recognize")
    with pytest.raises(StreamError) as raised:
        cep.evaluate(rows, frame, type="type", time="ts")
    place, text, mark = str(raised.value).splitlines()
    assert place.startswith("line 2, column ")
    assert text[mark.index("^") :].startswith(marked)
    assert mark.count("^") == len(marked)
