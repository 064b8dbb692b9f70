"""The examples of [qi2014], by every method that runs them, and by the naive values."""

from __future__ import annotations

import pytest

import cepbench as cep
from tests.engines.aggregation.test_naive_values import events_of
from tests.naive.aggregates import naive_rows

pytestmark = pytest.mark.kernel

#: But the one that takes no NOT, sets or sums.
METHODS = [
    "naive",
    *(
        entry.name
        for entry in cep.AGGREGATORS.values()
        if entry.is_builtin and entry.name != "order-statistics"
    ),
]
#: Those that go on when events expire.
WINDOWED = [name for name in METHODS if name == "naive" or cep.AGGREGATORS[name].expires]


def values(method: str, query: str, text: str, **options: str | dict) -> list[tuple]:
    """Time, key of the group and values of each row; events are written as ``a@1 b@2``."""
    columns = options.pop("columns", {})
    events, pattern = events_of(text, **columns), cep.parse(query, dialect="a-seq")
    if method == "naive":
        found = sorted(naive_rows(pattern, events, **options))
    else:
        stream = cep.EventStream.from_pandas(events, type="type", time="time")
        found = cep.aggregate(pattern, stream, method, **options).rows
    return [(row.time, *row.key, *row.values) for row in found]


@pytest.mark.parametrize("method", WINDOWED)
def test_example_1(method: str) -> None:
    """Figure 1: at 6 the first event leaves the window, and with it both matches."""
    query = "SEQ(A a, B b, C c) AGG COUNT WITHIN 5 units"
    text = "a@1 b@2 c@3 c@4 b@6"
    assert values(method, query, text, emit="change") == [(3, 1), (4, 2), (6, 0)]
    assert values(method, query, text) == [(3, 1), (4, 2)]


@pytest.mark.parametrize("method", METHODS)
def test_figure_2(method: str) -> None:
    text = "a@1 b@2 c@3 a@4 b@5 c@6"
    assert values(method, "(A, B, C) AGG COUNT WITHIN 9 units", text) == [(3, 1), (6, 4)]


@pytest.mark.parametrize("method", METHODS)
def test_example_2(method: str) -> None:
    """Figure 4: with (A) = 3 and (A, B) = 2, b makes (A, B) = 5."""
    text = "a@1 a@2 b@3 a@4 b@5 c@6 d@7"
    assert values(method, "(A) AGG COUNT WITHIN 9 units", text)[-1] == (4, 3)
    assert values(method, "(A, B) AGG COUNT WITHIN 9 units", text) == [(3, 2), (5, 5)]
    assert values(method, "(A, B, C, D) AGG COUNT WITHIN 9 units", text) == [(7, 5)]


@pytest.mark.parametrize("method", WINDOWED)
def test_example_3(method: str) -> None:
    """Figure 6: the first event expires at 8, exactly a window later."""
    text = "a@1 b@2 c@3 a@4 c@5 b@6 d@7 c@8 a@9 d@10"
    query = "(A, B, C, D) AGG COUNT WITHIN 7 units"
    assert values(method, query, text) == [(7, 2), (10, 1)]
    assert values(method, query, text, emit="change") == [(7, 2), (8, 0), (10, 1)]
    assert values(method, query, text, scope="stream") == [(7, 2), (10, 3)]
    assert values(method, query, text, scope="trigger") == [(7, 2), (10, 1)]


@pytest.mark.parametrize("method", METHODS)
def test_example_4(method: str) -> None:
    """Figure 7: c clears (A, B), and keeps (A) and (A, B, D)."""
    text = "a@1 b@2 c@3 a@4 b@5 d@6"
    assert values(method, "(A, B, !C, D) AGG COUNT WITHIN 9 units", text) == [(6, 2)]
    text = "a@1 b@2 d@3 c@4 d@5 b@6 d@7"
    assert values(method, "(A, B, !C, D) AGG COUNT WITHIN 9 units", text) == [
        (3, 1), (5, 1), (7, 2)
    ]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_example_5(method: str) -> None:
    """Figure 8: counters by id; a1 and a4 are in the same partition."""
    text = "a@1 a@2 a@3 a@4 b@5 b@6 b@7 c@8 c@9 d@10 d@11 d@12"
    columns = {"id": [1, 2, 3, 1, 1, 2, 1, 1, 2, 1, 2, 3]}
    query = "(A a, B b, C c, D d) WHERE [id] {} AGG COUNT WITHIN 99 units"
    whole = values(method, query.format(""), text, columns=columns)
    assert whole == [(10, 4), (11, 5), (12, 5)]
    by_id = values(method, query.format("GROUP BY id"), text, columns=columns)
    assert by_id == [(10, 1, 4), (11, 2, 1), (12, 3, 0)]


@pytest.mark.parametrize("method", METHODS)
def test_section_5(method: str) -> None:
    """The sketches of sums and maxima give 16.5 and 9."""
    query = "(A a, B b, C c, D d) AGG SUM(c.w), AVG(c.w), MAX(c.w), MIN(c.w) WITHIN 9 units"
    text, w = "a@1 b@2 c@3 d@4 c@5 d@6", [0, 0, 1, 0, 10, 0]
    assert values(method, query, text, columns={"w": w}) == [(4, 1, 1.0, 1, 1), (6, 12, 4.0, 10, 1)]
    query = "(A a, B b, C c, D d) AGG MAX(c.w) WITHIN 9 units"
    text, w = "a@1 b@2 c@3 d@4 c@5", [0, 0, 5, 0, 9]
    assert values(method, query, text, columns={"w": w}, emit="change") == [(4, 5)]
