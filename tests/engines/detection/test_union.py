"""Branches of an OR: what is kept of their matches, and how much; events that are in one match only."""

from __future__ import annotations

from collections import deque

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.runs.matches import BranchMatches, SetColumn, matches_of_rows
from cepbench.errors import PartialMatchLimitError
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.plans.model import OrderPlan, UnionPlan
from tests.drawn_events import drawn_events
from tests.engines.detection.strategies import stream_of


def written_order(pattern: Pattern) -> OrderPlan | UnionPlan:
    plans = [OrderPlan(branch.positive_names) for branch in pattern.branches()]
    return plans[0] if len(plans) == 1 else UnionPlan(plans)


def test_very_many_events_at_one_timestamp() -> None:
    """The first A and the first B that are left are a match: no list of all pairs is needed."""
    events = drawn_events(30_000, "AB", seed=2, within=1)
    left: dict[str, deque[int]] = {"A": deque(), "B": deque()}
    expected = []
    for position, kind in enumerate(events["type"]):
        other = left["B" if kind == "A" else "A"]
        if other:
            pair = (other.popleft(), position)
            expected.append(pair if kind == "B" else pair[::-1])
        else:
            left[kind].append(position)
    assert len(expected) > 14_000
    pattern = parse("PATTERN AND(A a, B b) STRATEGY consuming WITHIN 5 units")
    result = evaluate(pattern, stream_of(events), written_order(pattern))
    assert list(result.matches.itertuples(index=False, name=None)) == expected
    # Nowhere near the 225 million pairs that there are.
    assert result.metrics.peak_bytes < 50e6
    twice = parse("PATTERN OR(AND(A a, B b), AND(B b, A a)) STRATEGY consuming WITHIN 5 units")
    result = evaluate(twice, stream_of(events), written_order(twice))
    found = result.matches[["a", "b"]].astype(int)
    assert list(found.itertuples(index=False, name=None)) == expected
    assert set(result.matches["branch"]) == {0}


def test_an_event_that_several_variables_may_take_is_seen_once() -> None:
    """Wherever a step ends, all matches that end with one event are compared with each other."""
    pattern = parse("PATTERN AND(A a, A b, A c) STRATEGY consuming WITHIN 5 units")
    events = pd.DataFrame({"type": ["A"] * 60, "time": [1] * 60})
    found = evaluate(pattern, stream_of(events), written_order(pattern)).matches
    assert found.to_numpy().tolist() == np.arange(60).reshape(-1, 3).tolist()


def test_a_step_that_ends_within_a_timestamp_evicts_nothing_too_early() -> None:
    pattern = parse("PATTERN SEQ(A a, B b) STRATEGY consuming WITHIN 1280 units")
    events = pd.DataFrame({"type": ["A"] * 40 + ["B"] * 40, "time": [3] * 40 + [1283] * 40})
    result = evaluate(pattern, stream_of(events), written_order(pattern))
    assert result.metrics.matches == 40


@pytest.mark.parametrize("strategy", ["", "STRATEGY consuming "])
def test_matches_that_wait_count_as_partial_matches(strategy: str) -> None:
    """They are stored until their window has passed, however many they are."""
    types = ["C"] + ["A"] * 60 + ["B"] * 60
    events = pd.DataFrame({"type": types, "time": [0] + [1] * 60 + [2] * 60})
    pattern = parse(f"PATTERN SEQ(A a, B b, NOT(C n)) {strategy}WITHIN 5 units")
    plan = written_order(pattern)
    number = evaluate(pattern, stream_of(events), plan, output="count").metrics.matches
    assert number == (60 if strategy else 3_600)
    with pytest.raises(PartialMatchLimitError, match=r"1,000 partial matches.*\(a, b\)"):
        evaluate(pattern, stream_of(events), plan, output="count", partial_match_limit=1_000)
    enough = evaluate(pattern, stream_of(events), plan, partial_match_limit=3_600)
    assert enough.metrics.matches == number
    assert not strategy or (enough.matches["a"].is_unique and enough.matches["b"].is_unique)


sets = st.lists(
    st.sets(st.integers(0, 6), min_size=1, max_size=6).map(lambda s: tuple(sorted(s))), max_size=30
)


@given(drawn=sets)
def test_ranks_of_sets_compare_as_their_tuples(drawn: list[tuple[int, ...]]) -> None:
    sizes = [len(positions) for positions in drawn]
    column = SetColumn.of(
        np.cumsum([0, *sizes]), np.array([p for positions in drawn for p in positions], np.int64)
    )
    assert column.tuples() == drawn
    known = sorted(set(drawn))
    assert column.ranks().tolist() == [known.index(positions) + 1 for positions in drawn]


@given(sets=sets)
def test_matches_from_their_rows(sets: list[tuple[int, ...]]) -> None:
    pattern = parse("PATTERN SEQ(A a, KL(B b)) WITHIN 5 units")
    rows = [(number, positions) for number, positions in enumerate(sets)]
    made = matches_of_rows(pattern.positive, rows)
    assert isinstance(made, BranchMatches)
    assert made.rows() == rows
    assert made.in_columns(["b", "a"]).rows() == [row[::-1] for row in rows]
