"""The rows of slices, joined, are those of one pass."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.aggregation.slices import SliceAggregation
from cepbench.engines.runs.slices import Slice
from cepbench.errors import EvaluationError, UnsupportedPatternError


def test_groups_of_earlier_slices_have_their_rows() -> None:
    """A trigger gives a value of each group seen so far that agrees with it."""
    frame = pd.DataFrame({"kind": list("ABABB"), "at": [1, 2, 51, 52, 99], "v": list("uwvww")})
    stream = cep.EventStream.from_pandas(frame, type="kind", time="at")
    pattern = cep.parse("PATTERN SEQ(A a, B b) GROUP BY a.v AGG COUNT WITHIN 9 units")
    task = SliceAggregation(pattern, None, "trigger", "window", None)
    slices = [
        task.values(Slice(number, start, None), [(events, None)])
        for number, (start, events) in enumerate(
            [(None, stream[:2]), (50, stream[2:4]), (60, stream[4:])]
        )
    ]
    found = [(row.position, row.key, row.values) for row in task.joined(slices)]
    assert found == [
        (1, ("u",), (1,)), (3, ("u",), (0,)), (3, ("v",), (1,)), (4, ("u",), (0,)), (4, ("v",), (0,)),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "values", ["yyxxyy", [2, 2, 1, 1, 2, 2], [True, True, False, False, True, True]]
)
def test_a_group_is_of_one_part_whatever_values_are_around(values: Any) -> None:
    """In each slice and batch, which may have other values than those before."""
    times = [1, 2, 51, 52, 53, 54]
    frame = pd.DataFrame({"kind": list("ABABAB"), "at": times, "v": list(values), "w": times})
    pattern = cep.parse("PATTERN SEQ(A a, B b) GROUP BY v, a.w AGG COUNT WITHIN 9 units")
    aggregation = SliceAggregation(pattern)
    parts = [frame[:2], frame[2:5], frame[5:]]
    one, *both = [cep.EventStream.from_pandas(its, type="kind", time="at") for its in parts]
    rows = []
    for of_key in range(2):
        first, second = Slice(0, None, 50, None, of_key, 2), Slice(1, 50, None, None, of_key, 2)
        slices = [
            aggregation.values(first, [(one, None)]),
            aggregation.values(second, [(its, None) for its in both]),
        ]
        rows += aggregation.joined(slices)
    stream = cep.EventStream.from_pandas(frame, type="kind", time="at")
    assert sorted(rows, key=lambda row: row.position) == cep.aggregate(pattern, stream).rows
    assert len(rows) == 4


@pytest.mark.parametrize(
    ("text", "options", "kind", "words"),
    [
        ("SEQ(A a, B b) AGG COUNT", {"scope": "stream"}, EvaluationError, "add up the values of scope='trigger'"),
        ("SEQ(A a, B b) STRATEGY consuming AGG COUNT", {}, UnsupportedPatternError, "STRATEGY consuming: a match depends on all earlier"),
        ("SEQ(A a, B b) OUTPUT non_overlap AGG COUNT", {}, UnsupportedPatternError, "OUTPUT non_overlap: a match depends on all"),
        ("SEQ(NOT(N n), A a, B b) GROUP BY a.v AGG COUNT", {}, UnsupportedPatternError, "GROUP BY a.v with a NOT or a group before"),
        ("SEQ(A a, B b) AGG COUNT", {"method": "a-sec"}, EvaluationError, "did you mean 'a-seq'"),
    ],
)  # fmt: skip
def test_what_needs_one_pass_is_refused(text, options, kind, words) -> None:
    given = {"method": None, "emit": "trigger", "scope": "window", "evaluator": None, **options}
    with pytest.raises(kind) as refused:
        SliceAggregation(cep.parse(f"PATTERN {text} WITHIN 9 units"), **given)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("structure", "windows"),
    [
        ("SEQ(A a, NOT(N n), KL(B b), C c)", 1),
        ("SEQ(NOT(N n), A a, C c)", 2),
        ("SEQ(GROUP(B b, +), C c)", 2),
        ("OR(SEQ(A a, C c), SEQ(NOT(N n), B b))", 2),
    ],
)
def test_the_lead_is_one_window_or_two(structure: str, windows: int) -> None:
    pattern = cep.parse(f"PATTERN {structure} AGG COUNT WITHIN < 9 units")
    assert SliceAggregation(pattern, None, "trigger", "window", None).lead == 8 * windows
