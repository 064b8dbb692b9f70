"""Every plan of a small pattern: that all are there, run, and what cost models say of them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.studies.kolchinsky2018.plan_space import (
    all_trees,
    regrets,
    time_every_plan,
)
from cepbench.patterns.parse import parse
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream
from cepbench.streams.ten_symbols import RATES, ten_symbols
from tests.naive import plans as naive

BACKWARDS = parse(
    "PATTERN SEQ(s9 a, s6 b, s3 c) WHERE a.difference < b.difference WITHIN 5 minutes"
)


@pytest.fixture(scope="module")
def stream() -> EventStream:
    events = ten_symbols(6_000, 0)
    events["ts"] = pd.to_datetime(events["ts"], unit="ms")
    return EventStream.from_pandas(events, type="symbol", time="ts")


def test_ten_symbols_arrive_at_their_rates() -> None:
    events = ten_symbols(100_000, 1)
    assert len(events) == 100_000 and events["ts"].is_monotonic_increasing
    minutes = events["ts"].iloc[-1] / 60_000
    counts = events["symbol"].value_counts().reindex([f"s{number}" for number in range(10)])
    assert counts.to_numpy() / minutes == pytest.approx(RATES, rel=0.1)
    assert abs(events["difference"].mean()) < 0.02
    pd.testing.assert_frame_equal(ten_symbols(1_000, 5), ten_symbols(1_000, 5))


@pytest.mark.parametrize("n", range(1, 6))
def test_all_trees_are_there_once(n: int) -> None:
    names = list("abcde"[:n])

    def unordered(tree):
        return tree if isinstance(tree, str) else frozenset(map(unordered, tree))

    found = list(map(unordered, all_trees(names)))
    assert len(found) == len(set(found)) == math.prod(range(1, 2 * n - 2, 2))
    assert set(found) == set(map(unordered, naive.all_trees(names)))


def test_every_plan_is_run_and_costed(stream: EventStream) -> None:
    table = time_every_plan(BACKWARDS, stream, repetitions=2)
    assert table["plan"].tolist() == [
        "a, b, c", "a, c, b", "b, a, c", "b, c, a", "c, a, b", "c, b, a",
        "(a, (b, c))", "((a, b), c)", "((a, c), b)",
    ]  # fmt: skip
    assert table["matches"].nunique() == 1 and table["matches"].iloc[0] > 0
    assert table["times_trivial"].iloc[0] == 1
    assert (table["seconds"] > 0).all() and (table["median_seconds"] >= table["seconds"]).all()
    statistics = measure_statistics(BACKWARDS, stream)
    by_plan = table.set_index("plan")
    for reading in ("adjacent", "exact"):
        problem = CostedProblem.from_pattern(BACKWARDS, statistics, reading)
        assert by_plan[reading]["c, a, b"] == pytest.approx(problem.order_cost([2, 0, 1]))
        assert by_plan[reading]["((a, c), b)"] == pytest.approx(problem.tree_cost(((0, 2), 1)))
    chosen = [name for cell in table["chosen_by"] for name in cell.split(", ") if name]
    assert {"TRIVIAL", "DP-LD", "DP-B"} <= set(chosen) and len(chosen) == len(set(chosen))
    made = plan(BACKWARDS, statistics, "DP-LD")
    assert "DP-LD" in by_plan["chosen_by"][made.text].split(", ")


def test_the_case_that_partial_matches_do_not_explain(stream: EventStream) -> None:
    """The condition is asked early and of few pairs, or late and of many; both find the same."""
    table = time_every_plan(BACKWARDS, stream, repetitions=1, generators=["TRIVIAL", "DP-LD"])
    by_plan = table.set_index("plan")
    assert by_plan["chosen_by"]["c, b, a"] == "DP-LD"
    for cost in ("adjacent", "exact"):
        assert by_plan[cost]["c, b, a"] < by_plan[cost]["a, b, c"]
    assert by_plan["comparisons"]["a, b, c"] < by_plan["comparisons"]["c, b, a"]
    assert by_plan["pairs_compared"]["a, b, c"] < by_plan["pairs_compared"]["c, b, a"]


def test_regrets_are_relative_to_the_quickest_of_the_kind() -> None:
    table = pd.DataFrame(
        {
            "plan_kind": ["order"] * 3,
            "plan": ["a b", "b a", "c"],
            "seconds": [2.0, 1.0, 4.0],
            "adjacent": [1.0, 2.0, 3.0],
            "exact": [3.0, 2.0, 1.0],
            "comparisons": [2.0, 1.0, 3.0],
        }
    )
    found = regrets(table).set_index("model")
    assert found["plan"].to_dict() == {"adjacent": "a b", "exact": "c", "comparisons": "b a"}
    assert found["times_quickest"].to_dict() == {"adjacent": 2, "exact": 4, "comparisons": 1}
    expected = {"adjacent": 0.5, "exact": -0.5, "comparisons": 1}
    assert {k: np.round(v, 9) for k, v in found["rank_correlation"].items()} == expected


def test_patterns_with_too_many_plans(stream: EventStream) -> None:
    for text in ("SEQ(s1 a, s2 b, s3 c, s4 d, s5 e)", "OR(SEQ(s1 a, s2 b), SEQ(s2 c, s3 d))"):
        with pytest.raises(ExperimentError, match="at most 4"):
            time_every_plan(parse(f"PATTERN {text} WITHIN 1 minutes"), stream)
