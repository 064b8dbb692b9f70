"""Statistics of Kleene sets, negation, OR and contiguity against counting one by one."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.patterns.parse import parse
from cepbench.planning.planners.generate import plan
from cepbench.planning.statistics.measure import (
    measure_statistics,
    merge_samples,
    sample_statistics,
    slice_sample,
    slices_of,
)
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream
from tests.drawn_events import drawn_stream, normal

events = st.lists(
    st.tuples(
        st.sampled_from("ABC"), st.integers(0, 3), st.integers(0, 5), st.sampled_from(["p", "q"])
    ),
    min_size=2,
    max_size=25,
)


def stream_of(rows) -> EventStream:
    kinds, gaps, values, texts = zip(*rows, strict=True)
    frame = pd.DataFrame(
        {
            "type": pd.Categorical(kinds, categories=["A", "B", "C"]),
            "time": np.cumsum(gaps),
            "x": np.array(values, dtype=float),
            "s": texts,
        }
    )
    return EventStream.from_pandas(frame, type="type", time="time")


def rows_of(rows, kind):
    """(time, x, s) of the events of one type."""
    times = itertools.accumulate(gap for _, gap, _, _ in rows)
    return [(time, x, s) for (k, _, x, s), time in zip(rows, times, strict=True) if k == kind]


def share(kept) -> float | None:
    kept = list(kept)
    return sum(kept) / len(kept) if kept else None


def assert_selectivity(found: Statistics, pair: tuple[str, str], *shares: float | None) -> None:
    known = [one for one in shares if one is not None]
    assert found.has_selectivity(*pair) == bool(known)
    assert found.selectivity(*pair) == pytest.approx(math.prod(known))


@given(events)
def test_kleene_conditions_are_measured_on_the_events_that_they_mention(rows) -> None:
    pattern = parse(
        "PATTERN SEQ(A a, KL(B b)) WHERE b.x > 1 AND b[i].x > b[i-1].x AND b[1].x < 4 "
        "AND b[last].x > 2 AND b[last].x > b[1].x AND sum(b[].x) > 100 AND b[2..].x < 3 "
        "WITHIN 3 units"
    )
    found = measure_statistics(pattern, stream_of(rows)) if rows else None
    b = rows_of(rows, "B")
    assert_selectivity(
        found,
        ("b", "b"),
        share(x > 1 for _, x, _ in b),
        share(y > x for (t, x, _), (u, y, _) in itertools.pairwise(b) if u - t <= 3),
        share(x < 4 for _, x, _ in b),
        share(x > 2 for _, x, _ in b),
        share(y < 3 for (t, _, _), (u, y, _) in itertools.pairwise(b) if u - t <= 3),
    )


@given(events)
def test_kleene_conditions_over_two_variables(rows) -> None:
    pattern = parse(
        "PATTERN SEQ(A a, KL(B b)) WHERE b.x > a.x AND b[i].x > b[i-1].x + a.x - 2 "
        "AND avg(b[].x) > a.x WITHIN 4 units"
    )
    found = measure_statistics(pattern, stream_of(rows))
    a, b = rows_of(rows, "A"), rows_of(rows, "B")
    pairs = [(i, j) for i in range(len(a)) for j in range(len(b)) if 0 < b[j][0] - a[i][0] <= 4]
    running = [(i, j) for i, j in pairs if j and b[j][0] - b[j - 1][0] <= 4]
    assert_selectivity(
        found,
        ("a", "b"),
        share(b[j][1] > a[i][1] for i, j in pairs),
        share(b[j][1] > b[j - 1][1] + a[i][1] - 2 for i, j in running),
    )


@given(events)
def test_negated_variables_are_measured_as_if_they_were_plain(rows) -> None:
    text = "PATTERN SEQ(A a, {}, C c) WHERE n.x > a.x AND n.x > 2 WITHIN 4 units"
    negated = measure_statistics(parse(text.format("NOT(B n)")), stream_of(rows))
    assert negated == measure_statistics(parse(text.format("B n")), stream_of(rows))


@given(events)
def test_all_branches_are_measured(rows) -> None:
    either = parse(
        "PATTERN OR(SEQ(A a, B b), SEQ(C c, B b, KL(A k)), AND(A a, C c)) "
        "WHERE b.x > a.x AND c.x > a.x AND b.x > c.x WITHIN 4 units"
    )
    found = measure_statistics(either, stream_of(rows))
    assert set(found.names) == {"a", "b", "c", "k"}
    for branch, pair in zip(either.branches(), [("a", "b"), ("b", "c"), ("a", "c")], strict=True):
        alone = measure_statistics(branch, stream_of(rows))
        assert found.has_selectivity(*pair) == alone.has_selectivity(*pair)
        assert found.selectivity(*pair) == alone.selectivity(*pair)
        assert {name: found.rates[name] for name in branch.names} == alone.rates


@given(events)
def test_an_order_that_differs_from_branch_to_branch_is_none(rows) -> None:
    condition = "WHERE a.x > b.x WITHIN 4 units"
    both = parse(f"PATTERN OR(SEQ(A a, B b), SEQ(B b, A a)) {condition}")
    free = parse(f"PATTERN AND(A a, B b) {condition}")
    assert measure_statistics(both, stream_of(rows)) == measure_statistics(free, stream_of(rows))


@given(events)
def test_the_whole_stream_and_its_partitions(rows) -> None:
    pattern = parse(
        "PATTERN SEQ(A a, B b, NOT(C n)) WHERE a.x > b.x "
        "STRATEGY partition_contiguity(s) WITHIN 4 units"
    )
    stream = stream_of(rows)
    sample = sample_statistics(pattern, stream)
    found = sample.to_statistics()
    seconds = max(sample.active, 4)
    assert found.stream_rate == pytest.approx(len(rows) / seconds)
    same = sum(r[3] == q[3] for r in rows for q in rows)
    assert found.partitions == pytest.approx(len(rows) ** 2 / same)
    a, b = rows_of(rows, "A"), rows_of(rows, "B")
    assert_selectivity(
        found,
        ("a", "b"),
        share(x > y and r == s for t, x, r in a for u, y, s in b if 0 < u - t <= 4),
    )
    # Half of the stream twice has the partitions of one half, and the sum of all events.
    twice = merge_samples([sample, sample])
    assert twice.stream_events == 2 * len(rows)
    assert twice.to_statistics().partitions == pytest.approx(found.partitions)
    assert sample_statistics(pattern, stream, stream_events=500).stream_events == 500


def test_events_without_a_partition_are_alone() -> None:
    frame = pd.DataFrame(
        {"type": ["A", "B"] * 3, "time": range(6), "s": ["p", "p", "q", None, None, None]}
    )
    stream = EventStream.from_pandas(frame, type="type", time="time")
    pattern = parse("PATTERN SEQ(A a, B b) STRATEGY partition_contiguity(s) WITHIN 4 units")
    found = measure_statistics(pattern, stream)
    assert found.partitions == pytest.approx(36 / (4 + 1 + 3))
    # Of (0,1) (0,3) (2,3) (2,5) (4,5) the first one.
    assert found.selectivity("a", "b") == pytest.approx(1 / 5)


@pytest.mark.parametrize(
    "text",
    [
        "SEQ(A a, KL(B b), NOT(C n)) WHERE b[i].x > b[i-1].x",
        "OR(SEQ(A a, B b), AND(C c, A a))",
        "SEQ(A a, B b) STRATEGY strict_contiguity",
        "AND(A a, B b, C c) WHERE a.x > c.x STRATEGY partition_contiguity(s)",
        "SEQ(A a, B b, C c) STRATEGY consuming",
    ],
)
def test_what_is_measured_is_enough_to_plan(text) -> None:
    rng = np.random.default_rng(0)
    rows = [
        (
            "ABC"[rng.integers(3)],
            int(rng.integers(2)),
            float(rng.integers(6)),
            "pq"[rng.integers(2)],
        )
        for _ in range(200)
    ]
    pattern = parse(f"PATTERN {text} WITHIN 10 units")
    stats = measure_statistics(pattern, stream_of(rows))
    for name in ("DP-LD", "DP-B", "GREEDY"):
        for part, branch in zip(plan(pattern, stats, name).parts, pattern.branches(), strict=True):
            part.check(branch.positive_names)
    assert Statistics.from_dict(stats.to_dict()) == stats


def test_samples_of_running_conditions_are_unbiased() -> None:
    stream = drawn_stream(2_000, ["A", "B"], seed=4, within=8000, x=normal)
    pattern = parse("PATTERN SEQ(A a, KL(B b)) WHERE b[i].x > b[i-1].x + a.x WITHIN 20 units")
    ((key, exact),) = sample_statistics(pattern, stream, pairs=10**9).sets.items()
    assert key == ("a", "b", "each previous") and exact.variance == 0
    runs = [sample_statistics(pattern, stream, seed=s, pairs=300).sets[key] for s in range(150)]
    for what in ("candidates", "held"):
        found = np.array([getattr(run, what) for run in runs])
        assert abs(found.mean() - getattr(exact, what)) < 4 * found.std() / math.sqrt(len(runs))
    shares = np.array([run.held / run.candidates for run in runs])
    errors = [math.sqrt(run.variance) / run.candidates for run in runs]
    assert np.mean(errors) == pytest.approx(shares.std(), rel=0.2)


@pytest.mark.parametrize("text", ["SEQ(A a, KL(B b), C c)", "AND(A a, KL(B b), ANY c)"])
@pytest.mark.parametrize("window", [2, 3, 40])
def test_slices_sampled_as_one_have_what_they_have_apart(text: str, window: int) -> None:
    rng = np.random.default_rng(window)
    frame = pd.DataFrame(
        {
            "type": rng.choice(list("ABC"), 200),
            "time": np.cumsum(rng.choice([0, 1, 2, 60], 200, p=[0.2, 0.5, 0.29, 0.01])),
            "x": rng.normal(size=200),
        }
    )
    stream = EventStream.from_pandas(frame, type="type", time="time")
    pattern = parse(
        f"PATTERN {text} WHERE a.x < b[i].x AND b[i].x > b[i-1].x AND a.x < c.x AND c.x > 0 "
        f"WITHIN {window} units"
    )
    starts, size = [3, 50, 90, 160], 40
    parts = [stream[start : start + size] for start in starts]
    apart = merge_samples([slice_sample(pattern, part, 0, 10**6) for part in parts])
    part, times = slices_of(stream, starts, size, window)
    assert slice_sample(pattern, part, 0, 10**6, times=times) == apart
