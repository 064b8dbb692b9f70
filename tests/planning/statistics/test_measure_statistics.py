"""Measured statistics against counting all pairs, and their standard errors against repetition."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import StatisticsError, StreamError
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import parse
from cepbench.planning.statistics.measure import (
    LONGEST_PAUSE,
    StatisticsSample,
    measure_statistics,
    merge_samples,
    sample_statistics,
)
from cepbench.planning.statistics.sampling import PairSample
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from tests.drawn_events import drawn_stream, uniform
from tests.engines.detection.strategies import Case, cases, stream_of
from tests.naive.matcher import naive_matches


def counted(case: Case) -> dict[tuple[str, str], tuple[int, int]]:
    """For each pair with conditions (or filter): candidates, and those that hold, one by one."""

    def part(names: set[str], *, conditions: bool) -> Pattern:
        def kept(item):
            if not hasattr(item, "items"):
                return item if item.name in names else None
            items = tuple(part for part in map(kept, item.items) if part is not None)
            return type(item)(item.operator, items) if items else None

        clauses = tuple(c for c in case.pattern.conditions if set(c.variables) == names)
        return Pattern(
            kept(case.pattern.structure), clauses if conditions else (), case.pattern.window
        )

    found = {}
    for clause in case.pattern.conditions:
        names = tuple(sorted(clause.variables))
        if names:
            possible = naive_matches(part(set(names), conditions=False), case.events)
            held = naive_matches(part(set(names), conditions=True), case.events)
            found[names[0], names[-1]] = (len(possible), len(held))
    return found


@given(cases(sizes=(1, 4)) | cases(sizes=(3, 4), nested=True))
def test_with_enough_samples_every_pair_is_counted(case: Case) -> None:
    """Ties in time, repeated types, missing values, texts, SEQ, AND and nested ones alike."""
    sample = sample_statistics(case.pattern, case.stream)
    assert sample.events == {
        variable.name: int((case.events["type"] == (variable.type or case.events["type"])).sum())
        for variable in case.pattern.variables
    }
    seen = {
        tuple(sorted(pair)): (pair_sample.candidates, pair_sample.held)
        for pair, pair_sample in sample.pairs.items()
    }
    assert seen == counted(case)
    assert all(pair_sample.variance == 0 for pair_sample in sample.pairs.values())
    if sample.active or sample.shortest:
        stats = sample.to_statistics()
        expected = {pair: held / n for pair, (n, held) in counted(case).items() if n}
        assert stats.selectivities == expected
        assert all(stats.standard_errors[pair] == 0 for pair in expected)


@given(st.data(), cases(sizes=(2, 3)))
def test_slices_without_pairs_across_add_up_to_the_whole(data: st.DataObject, case: Case) -> None:
    """A stream after itself, a long pause between them: all counts twice, in any order."""
    stream = case.stream
    one = sample_statistics(case.pattern, stream)
    if len(stream):
        far = (LONGEST_PAUSE + 1) * (case.pattern.window.length + 1)
        shift = int(stream.timestamps[-1] - stream.timestamps[0]) + far
        later = case.events.assign(time=case.events["time"] + shift)
        both = stream_of(
            pd.concat([case.events, later], ignore_index=True),
            is_datetime=case.pattern.window.is_datetime,
        )
        whole = sample_statistics(case.pattern, both)
        merged = merge_samples([one, one])
        assert (merged.events, merged.pairs) == (whole.events, whole.pairs)
        # The pause counts as one window.
        assert whole.active == pytest.approx(merged.active + case.pattern.window.seconds)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
    slices = [
        sample_statistics(case.pattern, stream[i:j])
        for i, j in itertools.pairwise([0, *cuts, len(stream)])
    ]
    merged = merge_samples(slices)
    assert merge_samples(data.draw(st.permutations(slices))) == merged
    assert merged.events == one.events
    assert all(merged.pairs[p].candidates <= one.pairs[p].candidates for p in one.pairs)


def random_stream(
    count: int, seed: int, *, kinds: str = "AB", is_datetime: bool = False
) -> EventStream:
    rng = np.random.default_rng(seed)
    events = pd.DataFrame(
        {
            "type": pd.Categorical(rng.choice(list(kinds), count), categories=list(kinds)),
            "time": np.sort(rng.integers(0, 4 * count, count)) * (10**9 if is_datetime else 1),
            "x": rng.normal(size=count),
            "s": rng.choice(["p", "q", "r"], count),
        }
    )
    return stream_of(events, is_datetime=is_datetime)


LARGE = {
    "SEQ": "SEQ(A a, B b) WHERE a.x < b.x + 0.5",
    "AND": "AND(A a, B b) WHERE a.x < b.x + 0.5",
    "AND of one type": "AND(A a, A b) WHERE a.x < b.x - 1",
    "SEQ of one type": "SEQ(A a, A b) WHERE a.x < b.x - 1",
    "texts": "AND(B b, A a) WHERE a.s != b.s",
}


@pytest.mark.parametrize("structure", LARGE)
def test_samples_are_unbiased_and_their_standard_errors_right(structure: str) -> None:
    stream = random_stream(2_000, 7)
    pattern = parse(f"PATTERN {LARGE[structure]} WITHIN 60 units")
    (exact,) = sample_statistics(pattern, stream, pairs=10**9).pairs.values()
    assert exact.candidates > 7_000 and exact.variance == 0
    truth = exact.held / exact.candidates
    runs = [measure_statistics(pattern, stream, seed=seed, pairs=400) for seed in range(200)]
    found = np.array([run.selectivities["a", "b"] for run in runs])
    errors = np.array([run.standard_errors["a", "b"] for run in runs])
    assert len(np.unique(found)) > 20
    # The mean of 200 runs is within four of its own standard errors.
    assert abs(found.mean() - truth) < 4 * found.std() / math.sqrt(len(found))
    assert errors.mean() == pytest.approx(found.std(), rel=0.2)
    within = np.abs(found - truth) < 2 * errors
    assert 0.9 < within.mean() < 0.99
    sampled = sample_statistics(pattern, stream, pairs=400).pairs
    assert {pair.candidates for pair in sampled.values()} == {exact.candidates}


def test_standard_errors_of_rates() -> None:
    """As for a Poisson count: over many streams the rates scatter as one of them says."""
    rng = np.random.default_rng(3)
    pattern = parse("PATTERN SEQ(A a, B b) WITHIN 50 units")
    found, errors = [], []
    for _ in range(200):
        times = np.cumsum(rng.exponential(10, 600)).astype(np.int64)
        kinds = rng.choice(["A", "B", "C"], 600, p=[0.1, 0.3, 0.6])
        frame = pd.DataFrame({"type": pd.Categorical(kinds, categories=list("ABC")), "time": times})
        stats = measure_statistics(pattern, stream_of(frame))
        found.append([stats.rates["a"], stats.rates["b"]])
        errors.append([stats.standard_errors["a"], stats.standard_errors["b"]])
    assert np.mean(found, axis=0) == pytest.approx([0.01, 0.03], rel=0.02)
    assert np.mean(errors, axis=0) == pytest.approx(np.std(found, axis=0), rel=0.2)


def rates(times: list[int], window: str = "WITHIN 5 units") -> dict[str, float]:
    kinds = ["A" if index % 2 == 0 else "B" for index in range(len(times))]
    frame = pd.DataFrame({"type": kinds, "time": np.array(times, np.int64)})
    stream = stream_of(frame, is_datetime="units" not in window)
    return dict(measure_statistics(parse(f"PATTERN AND(A a, B b) {window}"), stream).rates)


def test_rates_are_events_per_tick_or_second() -> None:
    assert rates([0, 10, 20, 40]) == {"a": 2 / 40, "b": 2 / 40}
    assert rates([0, 10**9, 2 * 10**9, 4 * 10**9], "WITHIN 1 minutes") == {"a": 2 / 60, "b": 2 / 60}
    seconds = [0, 30 * 10**9, 60 * 10**9, 80 * 10**9]
    assert rates(seconds, "WITHIN 500 milliseconds") == {"a": 2 / 1.5, "b": 2 / 1.5}
    assert rates(seconds, "WITHIN 8 seconds") == {"a": 2 / 80, "b": 2 / 80}


def test_a_pause_of_more_than_ten_windows_counts_as_one() -> None:
    assert LONGEST_PAUSE == 10
    assert rates([0, 20, 70, 90]) == {"a": 2 / 90, "b": 2 / 90}
    assert rates([0, 20, 71, 91]) == {"a": 2 / 45, "b": 2 / 45}


def test_a_stream_shorter_than_the_window_counts_as_one_window() -> None:
    assert rates([3, 3, 3]) == {"a": 2 / 5, "b": 1 / 5}
    assert rates([0, 2, 4, 4]) == {"a": 2 / 5, "b": 2 / 5}


def test_no_candidates_is_no_selectivity() -> None:
    frame = pd.DataFrame({"type": ["A", "B"], "time": [0, 100], "x": [1.0, 2.0]})
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x AND a.x > 5 WITHIN 20 units")
    stats = measure_statistics(pattern, stream_of(frame))
    assert stats.selectivities == {("a", "a"): 0.0}
    assert stats.selectivity("a", "b") == 1.0
    assert set(stats.standard_errors) == {"a", "b", ("a", "a")}


def test_types_without_events_here_have_rate_zero() -> None:
    frame = pd.DataFrame({"type": ["A", "A"], "time": [0, 10], "x": [1.0, 2.0]})
    frame["type"] = pd.Categorical(frame["type"], categories=["A", "B"])
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20 units")
    stats = measure_statistics(pattern, stream_of(frame))
    assert stats.rates == {"a": 0.1, "b": 0.0} and stats.selectivities == {}


def test_the_seed_decides_and_other_conditions_do_not() -> None:
    stream = random_stream(2_000, 1)
    pattern = parse("PATTERN AND(A a, B b) WHERE a.x < b.x WITHIN 60 units")
    more = parse("PATTERN AND(A a, B b, A c) WHERE c.x < b.x AND a.x < b.x WITHIN 60 units")
    first = measure_statistics(pattern, stream, seed=3, pairs=100)
    assert measure_statistics(pattern, stream, seed=3, pairs=100) == first
    assert measure_statistics(pattern, stream, seed=4, pairs=100) != first
    among_more = measure_statistics(more, stream, seed=3, pairs=100)
    assert among_more.selectivities["a", "b"] == first.selectivities["a", "b"]


def test_the_unit_of_time_changes_nothing_but_its_name() -> None:
    pattern = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AND a.s = 'p' WITHIN 60 {}"
    ticks = measure_statistics(parse(pattern.format("units")), random_stream(500, 2))
    seconds = measure_statistics(
        parse(pattern.format("seconds")), random_stream(500, 2, is_datetime=True)
    )
    assert ticks.selectivities == seconds.selectivities
    assert ticks.rates == pytest.approx(seconds.rates)


def test_samples_of_slices_are_as_good_as_one_of_the_whole() -> None:
    stream = random_stream(4_000, 5)
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x + 0.5 WITHIN 60 units")
    whole = measure_statistics(pattern, stream, pairs=10**9)
    slices = [sample_statistics(pattern, batch, pairs=500) for batch in stream.batches(1_000)]
    stats = merge_samples([pickle.loads(pickle.dumps(part)) for part in slices]).to_statistics()
    error = stats.standard_errors["a", "b"]
    share = whole.selectivities["a", "b"]
    # 2,000 pairs were looked at in four slices of about equally many candidates.
    assert error == pytest.approx(math.sqrt(share * (1 - share) / 2_000), rel=0.1)
    assert abs(stats.selectivities["a", "b"] - share) < 4 * error
    assert stats.rates == pytest.approx(whole.rates, rel=0.01)


def test_errors_of_conditions_on_several_events_of_a_set_add_up() -> None:
    # Taken as independent: the relative errors of the factors add up in squares.
    both = PairSample(1_000.0, 400.0, 500.0), PairSample(2_000.0, 500.0, 3_000.0)
    keys = [("a", "b", "first"), ("a", "b", "last")]
    for pair, sets in [(None, both), (both[0], both[1:])]:
        sample = StatisticsSample(
            active=10.0,
            shortest=1.0,
            events={"a": 5, "b": 5},
            pairs={} if pair is None else {("a", "b"): pair},
            sets=dict(zip(keys[-len(sets) :], sets, strict=True)),
        )
        stats = sample.to_statistics()
        assert stats.selectivities["a", "b"] == pytest.approx(0.4 * 0.25)
        relative = math.hypot(math.sqrt(500) / 400, math.sqrt(3_000) / 500)
        assert stats.standard_errors["a", "b"] == pytest.approx(0.1 * relative)


def test_what_holds_for_each_event_of_a_set_is_told_from_what_holds_for_the_set() -> None:
    table = pd.DataFrame({"type": ["B"] * 10, "time": range(10), "x": range(10)})
    stream = EventStream.from_pandas(table, type="type", time="time")
    where = "b.x < 8 AND b[1].x < 5 AND b[i].x > b[i-1].x AND b[last].x > 3"
    pattern = f"PATTERN SEQ(KL(B b), B c) WHERE {where} AND c.x < b[1].x + 3 WITHIN 100 units"
    found = measure_statistics(pattern, stream)
    assert found.selectivity_of_events("b", "b") == pytest.approx(0.8)
    assert found.selectivity("b", "b") == pytest.approx(0.8 * 0.5 * 0.6)
    assert found.selectivity("b", "c") < 1.0 == found.selectivity_of_events("b", "c")
    assert cep.Statistics.from_dict(found.to_dict()) == found
    plain = measure_statistics(pattern.replace("[1]", "").replace("[last]", ""), stream)
    assert not plain.event_selectivities
    assert plain.selectivity_of_events("b", "b") == plain.selectivity("b", "b")


def test_a_window_of_length_0_has_the_events_of_a_moment() -> None:
    stream = EventStream.from_pandas(
        pd.DataFrame({"ts": [1, 1, 1, 7, 7, 9], "type": list("ABBABB")}), type="type", time="ts"
    )
    pattern = parse("PATTERN AND(A a, B b) WITHIN 0 units")
    found = measure_statistics(pattern, stream)
    assert found.cardinalities == {"a": 2 / 3, "b": 4 / 3} and found.stream_rate == 2
    parts = [sample_statistics(pattern, part) for part in (stream[:3], stream[3:])]
    assert merge_samples(parts).to_statistics() == found
    explained = cep.explain(pattern, cep.plan(pattern, found), found, stream)
    assert explained.nodes["q_error"].iloc[:2].tolist() == [1, 1]
    compared = cep.compare(pattern, stream, seconds=0)
    assert {*compared["matches"]} == {3}


def test_what_cannot_be_measured() -> None:
    pattern = parse("PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 units")
    stream = random_stream(10, 0)
    with pytest.raises(StatisticsError, match="pairs must be at least 1, not 0"):
        measure_statistics(pattern, stream, pairs=0)
    with pytest.raises(StatisticsError, match="seed must be at least 0, not -1"):
        measure_statistics(pattern, stream, seed=-1)
    lacking = parse("PATTERN SEQ(A a, C b) WITHIN 5 units")
    with pytest.raises(StreamError, match="no event of type 'C'"):
        measure_statistics(lacking, stream, missing_types="error")
    with pytest.raises(StreamError, match="no attribute 'y'"):
        measure_statistics(parse("PATTERN SEQ(A a, B b) WHERE a.y < b.x WITHIN 5 units"), stream)
    with pytest.raises(StreamError, match="WITHIN 5 seconds needs a datetime"):
        measure_statistics(parse("PATTERN SEQ(A a, B b) WITHIN 5 seconds"), stream)


def test_what_cannot_be_merged() -> None:
    with pytest.raises(StatisticsError, match="no samples"):
        merge_samples([])
    samples = [
        sample_statistics(parse(f"PATTERN SEQ(A a, B b) WITHIN {n} units"), random_stream(10, 0))
        for n in (5, 6)
    ]
    assert isinstance(samples[0], StatisticsSample)
    with pytest.raises(StatisticsError, match="different patterns"):
        merge_samples(samples)


def test_statistics_of_a_workload_are_those_of_its_queries() -> None:
    events = pd.DataFrame({"type": list("ABABCA"), "at": range(6), "x": [1, 5, 2, 4, 0, 3]})
    stream = EventStream.from_pandas(events, type="type", time="at")
    texts = {
        "P": "PATTERN SEQ(A a, B b) WHERE [x] AND a.x > 1 AGG COUNT WITHIN 3 units",
        "Q": "PATTERN SEQ(A a, NOT(B n), C c) GROUP BY x AGG SUM(c.x) WITHIN 5 units",
    }
    workload = Workload(texts)
    found = measure_statistics(workload, stream, seed=2)
    assert found == {
        query: measure_statistics(pattern.without_aggregate(), stream, seed=2)
        for query, pattern in workload.patterns.items()
    }
    assert found["P"].selectivity("a", "a") == 2 / 3 and "n" in found["Q"].names


def test_what_queries_have_in_common_is_sampled_once_and_the_rest_apart() -> None:
    """Queries that differ in one thing each, and are the same in all others."""
    stream = drawn_stream(300, "ABC", within=200, x=uniform, y=uniform)
    texts = {
        "first": "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 9 units",
        "again": "PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x WITHIN 9 units",
        "type": "PATTERN SEQ(A a, C b) WHERE a.x < b.x WITHIN 9 units",
        "window": "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 20 units",
        "order": "PATTERN SEQ(B b, A a) WHERE a.x < b.x WITHIN 9 units",
        "and": "PATTERN AND(A a, B b) WHERE a.x < b.x WITHIN 9 units",
        "arrival": "PATTERN SEQ(A a, B b) WHERE a.x < b.x ORDER BY arrival WITHIN 9 units",
        "condition": "PATTERN SEQ(A a, B b) WHERE a.x < b.y WITHIN 9 units",
    }
    by_order = [{q: t for q, t in texts.items() if ("arrival" in t) == is_so} for is_so in (0, 1)]
    for its in by_order:
        for pairs in (50, 20_000):
            found = measure_statistics(Workload(its), stream, pairs=pairs)
            alone = {q: measure_statistics(t, stream, pairs=pairs) for q, t in its.items()}
            assert found == alone
    shares = {q: measure_statistics(t, stream).selectivities["a", "b"] for q, t in texts.items()}
    assert shares.pop("again") == shares["first"] and len({*shares.values()}) == len(shares)
