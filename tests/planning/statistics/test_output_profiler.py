"""The output profiler against counting orders one by one."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import StatisticsError
from cepbench.patterns.model import Kind, Operator, Pattern, Structure, Variable, Window
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.statistics.output_profiler import OutputProfiler


def pattern(operator: str, *items) -> Pattern:
    made = tuple(Variable(one, one.upper()) if isinstance(one, str) else one for one in items)
    return Pattern(Structure(Operator(operator), made), (), Window(10, "units"))


THREE = pattern("AND", "a", "b", "c")
UNION = Pattern(
    Structure(
        Operator.OR,
        (pattern("AND", "a", "b").structure, pattern("AND", "b", "c", "d").structure),
    ),
    (),
    Window(10, "units"),
)


@given(st.lists(st.permutations([0, 1, 2]), min_size=1, max_size=30), st.lists(st.integers(0, 30)))
def test_every_order_is_counted_in_any_batches(positions, cuts) -> None:
    frame = pd.DataFrame(np.array(positions) * 3, columns=["a", "b", "c"])
    profiler = OutputProfiler(THREE)
    ends = sorted({0, len(frame), *(cut for cut in cuts if cut < len(frame))})
    for start, end in itertools.pairwise(ends):
        assert profiler.add(frame[start:end]) is profiler
    counted = Counter(
        tuple(sorted("abc", key=lambda name: row["abc".index(name)])) for row in positions
    )
    assert profiler.matches_seen == len(positions)
    table = profiler.orders()
    assert dict(zip(table["order"], table["matches"], strict=True)) == dict(counted)
    assert list(table["matches"]) == sorted(counted.values(), reverse=True)
    assert table["share"].sum() == pytest.approx(1)
    most = max(counted.values())
    assert profiler.most_frequent_order == min(o for o, n in counted.items() if n == most)
    assert profiler.last_variable == profiler.most_frequent_order[-1]


def test_a_kleene_set_arrives_with_its_last_event() -> None:
    with_set = pattern("AND", "a", Variable("b", "B", Kind.KLEENE))
    frame = pd.DataFrame({"a": [3, 3, 9], "b": [(1, 2), (1, 5), (4,)]})
    profiler = OutputProfiler(with_set).add(frame)
    table = profiler.orders()
    assert dict(zip(table["order"], table["matches"], strict=True)) == {
        ("b", "a"): 2,
        ("a", "b"): 1,
    }
    assert profiler.last_variable == "a"


def test_negated_variables_never_arrive() -> None:
    negated = pattern("AND", "a", Variable("n", "N", Kind.NEGATED), "b")
    profiler = OutputProfiler(negated).add(pd.DataFrame({"a": [4], "b": [1]}))
    assert profiler.most_frequent_order == ("b", "a")


def test_branches_are_counted_apart() -> None:
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None, 7, None], "Int64"),
            "b": pd.array([2, 5, 3, 9], "Int64"),
            "c": pd.array([None, 4, None, 1], "Int64"),
            "d": pd.array([None, 1, None, 5], "Int64"),
            "branch": [0, 1, 0, 1],
        }
    )
    profiler = OutputProfiler(UNION)
    profiler.add(frame[:1])
    assert profiler.last_variable == ("b", None)
    profiler.add(frame[1:])
    assert profiler.most_frequent_order == (("a", "b"), ("c", "d", "b"))
    assert profiler.last_variable == ("b", "b")
    assert "branch 1: 2 matches" in profiler.describe()
    assert list(profiler.orders()["branch"]) == [0, 0, 1, 1]
    stats = Statistics(cardinalities=dict.fromkeys("abcd", 2.0))
    made = plan(UNION, stats, "DP-LD", alpha=1000, last=profiler.last_variable)
    assert [part.order[-1] for part in made.parts] == ["b", "b"]


def test_what_is_found_is_what_plans_want() -> None:
    frame = pd.DataFrame({"a": [9, 9, 1], "b": [1, 2, 2], "c": [2, 1, 3]})
    profiler = OutputProfiler(THREE).add(frame)
    stats = Statistics(cardinalities={"a": 1, "b": 5, "c": 9})
    assert profiler.most_frequent_order == ("a", "b", "c")
    made = plan(THREE, stats, "DP-LD", alpha=1000, last=profiler.last_variable)
    assert made.order[-1] == profiler.last_variable == "c"
    assert made.cost_model == "order-throughput + 1000 order-latency"


def test_it_is_shown() -> None:
    frame = pd.DataFrame({"a": [1, 1, 5], "b": [2, 2, 2], "c": [3, 3, 3]})
    profiler = OutputProfiler(THREE).add(frame)
    assert profiler.describe().splitlines() == [
        "arrival orders of 3 matches",
        "   66.7%  a, b, c",
        "   33.3%  b, c, a",
    ]
    assert profiler.describe(most=1).endswith("and 1 more orders")
    assert "<td>a, b, c</td><td>2</td><td>66.7%</td>" in profiler._repr_html_()
    hostile = pattern("AND", Variable("<script>", "A"), "b")
    shown = OutputProfiler(hostile).add(pd.DataFrame({"<script>": [1], "b": [2]}))._repr_html_()
    assert "<script>" not in shown


def test_what_cannot_be_profiled() -> None:
    profiler = OutputProfiler(THREE)
    for empty in (profiler, OutputProfiler(THREE).add(pd.DataFrame(columns=["a", "b", "c"]))):
        with pytest.raises(StatisticsError, match="no matches yet"):
            _ = empty.last_variable
    assert profiler.describe() == "arrival orders of 0 matches"
    with pytest.raises(StatisticsError, match="no column 'c'; they have a, b"):
        profiler.add(pd.DataFrame({"a": [1], "b": [2]}))
    with pytest.raises(StatisticsError, match="no column 'a'; they have none"):
        profiler.add(pd.DataFrame())
    with pytest.raises(StatisticsError, match="column 'branch'"):
        OutputProfiler(UNION).add(pd.DataFrame({"a": [1], "b": [2]}))


def test_of_equally_frequent_orders_the_first_in_the_alphabet_counts() -> None:
    profiler = OutputProfiler(THREE)
    for positions in ([3, 2, 1], [1, 3, 2], [1, 2, 3]):  # the last in the alphabet is seen first
        profiler.add(pd.DataFrame([positions], columns=["a", "b", "c"]))
    assert profiler.orders()["order"].tolist() == [
        ("a", "b", "c"),
        ("a", "c", "b"),
        ("c", "b", "a"),
    ]
    assert profiler.most_frequent_order == ("a", "b", "c")
