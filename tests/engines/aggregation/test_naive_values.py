"""The naive values of AGG: examples of [qi2014] and of SEMANTICS, worked out by hand."""

import pandas as pd
import pytest

from cepbench.patterns.parse import parse
from tests.naive.aggregates import naive_rows, naive_values


def events_of(text: str, **columns: list) -> pd.DataFrame:
    """Events written as ``a@1 b@2``, of the types A, B."""
    pairs = [word.split("@") for word in text.split()]
    return pd.DataFrame(
        {"type": [pair[0].upper() for pair in pairs], "time": [int(pair[1]) for pair in pairs]}
    ).assign(**columns)


def counts(pattern: str, events: pd.DataFrame, **options: str) -> list[tuple[int, int]]:
    """Time and first value of each row."""
    found = naive_rows(parse(pattern, dialect="a-seq"), events, **options)
    return [(row.time, row.values[0]) for row in sorted(found)]


def test_example_1() -> None:
    events = events_of("a@1 b@2 c@3 c@4 b@6")
    query = "SEQ(A a, B b, C c) AGG COUNT WITHIN 5 units"
    assert counts(query, events, emit="change") == [(3, 1), (4, 2), (6, 0)]
    assert counts(query, events) == [(3, 1), (4, 2)]


def test_figure_2() -> None:
    events = events_of("a@1 b@2 c@3 a@4 b@5 c@6")
    assert counts("(A, B, C) AGG COUNT WITHIN 9 units", events) == [(3, 1), (6, 4)]


def test_example_3() -> None:
    events = events_of("a@1 b@2 c@3 a@4 c@5 b@6 d@7 c@8 a@9 d@10")
    query = "(A, B, C, D) AGG COUNT WITHIN 7 units"
    assert counts(query, events) == [(7, 2), (10, 1)]
    assert counts(query, events, emit="change") == [(7, 2), (8, 0), (10, 1)]
    assert counts(query, events, scope="stream") == [(7, 2), (10, 3)]
    assert counts(query, events, scope="trigger") == [(7, 2), (10, 1)]


def test_example_4() -> None:
    events = events_of("a@1 b@2 c@3 b@4 d@5")
    assert counts("(A, B, !C, D) AGG COUNT WITHIN 9 units", events) == [(5, 1)]


@pytest.mark.parametrize(
    ("stream", "values", "query", "expected"),
    [
        ("a@1 b@2 c@3 d@4 c@5 d@6", [0, 0, 1, 0, 10, 0], "SUM(c.w)", [(4, 1), (6, 12)]),
        ("a@1 b@2 c@3 d@4 c@5", [0, 0, 5, 0, 9], "MAX(c.w)", [(4, 5)]),
        ("a@1 b@2 c@3 d@4 c@5 d@6", [0, 0, 1, 0, 10, 0], "AVG(c.w)", [(4, 1), (6, 4)]),
    ],
)
def test_section_5_s_sketches_are_wrong(stream, values, query, expected) -> None:
    events = events_of(stream, w=values)
    assert counts(f"(A, B, C, D) AGG {query} WITHIN 9 units", events) == expected


def test_groups_and_missing_values() -> None:
    events = events_of(
        "a@1 a@1 b@2 b@3 b@4", k=["x", "y", "x", None, "y"], v=[1.0, None, 2.0, 3.0, 4.0]
    )
    pattern = parse("PATTERN SEQ(A a, B b) GROUP BY k AGG COUNT, SUM(a.v) WITHIN 9 units")
    assert sorted(naive_rows(pattern, events)) == [
        (2, 2, ("x",), (1, 1)),
        (4, 4, ("y",), (1, None)),
    ]
    labelled = parse("PATTERN SEQ(A a, B b) GROUP BY a.k AGG COUNT WITHIN 9 units")
    # Before the first match of a group a trigger has nothing to label.
    assert sorted(naive_rows(labelled, events, emit="change")) == [
        (2, 2, ("x",), (1,)),
        (2, 2, ("y",), (1,)),
        (3, 3, ("x",), (2,)),
        (3, 3, ("y",), (2,)),
        (4, 4, ("x",), (3,)),
        (4, 4, ("y",), (3,)),
    ]


def test_values_between_events() -> None:
    events = events_of("a@1 b@2 b@2 b@6")
    pattern = parse("PATTERN SEQ(A a, B b) AGG COUNT WITHIN < 4 units")
    at = {time: naive_values(pattern, events, time) for time in range(8)}
    counted = {time: next(iter(rows)).values[0] for time, rows in at.items()}
    assert counted == {0: 0, 1: 0, 2: 2, 3: 2, 4: 2, 5: 0, 6: 0, 7: 0}
    assert next(iter(naive_values(pattern, events, 7, scope="stream"))).values == (2,)


def test_ties() -> None:
    """Of several events of one timestamp each sees only those before it in the stream."""
    events = events_of("a@1 b@2 b@2")
    query = "(A, B) AGG COUNT WITHIN 9 units"
    assert counts(query, events) == [(2, 1), (2, 2)]
