"""The naive values of AGG: examples of SEMANTICS, worked out by hand; those of [qi2014] are in ``test_golden``."""

import pandas as pd

from cepbench.patterns.parse import parse
from tests.naive.aggregates import naive_rows, naive_values


def events_of(text: str, **columns: list) -> pd.DataFrame:
    """Events written as ``a@1 b@2``, of the types A, B."""
    pairs = [word.split("@") for word in text.split()]
    return pd.DataFrame(
        {"type": [pair[0].upper() for pair in pairs], "time": [int(pair[1]) for pair in pairs]}
    ).assign(**columns)


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
    pattern = parse("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 9 units")
    assert [row.values for row in sorted(naive_rows(pattern, events))] == [(1,), (2,)]
