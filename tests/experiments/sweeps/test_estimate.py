"""Estimates of duration: the sample, its weights, extrapolation, and what is told."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import ExperimentError, PartialMatchLimitError
from cepbench.experiments.sweeps.configuration import SweepConfig
from cepbench.experiments.sweeps.estimate import (
    RANKS,
    Sampled,
    Timing,
    choose_sample,
    describe_estimate,
    estimate_table,
    expected_log_work,
    read_estimate,
    time_pattern,
    write_estimate,
)
from cepbench.experiments.sweeps.measure import Plans
from cepbench.experiments.sweeps.workload import PatternSpec, draw_workload
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream
from tests.drawn_events import drawn_stream, normal
from tests.engines.detection.dummy_engine import EveryCombination

CARDINALITIES = {f"S{k:02d}": 1.0 + 44 * (k / 29) ** 3 for k in range(30)}
NAMES = ["EFREQ", "GREEDY", "DP-LD", "DP-B"]


def spec(text: str) -> PatternSpec:
    return PatternSpec("x-3-0000", "x", 3, text, 0)


@cache
def drawn() -> tuple[PatternSpec, ...]:
    sets = ["conjunction", "kleene"]
    return tuple(draw_workload(CARDINALITIES, pattern_sets=sets, sizes=[3, 5], patterns=40))


@pytest.fixture
def seen() -> list[int]:
    """How many events each run of the evaluator ``steady`` got, at thirty microseconds an event."""
    found: list[int] = []

    @cep.plan_evaluator("steady", latency=True)
    class Steady(EveryCombination):
        def push(self, batch: EventStream) -> pd.DataFrame:
            found.append(len(batch))
            work(3e-5 * len(batch))
            return pd.DataFrame(columns=["a", "b", "c"])

    return found


def work(seconds: float) -> None:
    """Keep the processor busy; sleeping would not count."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_expected_work_is_the_product_of_what_variables_stand_for() -> None:
    rates = {"A": 2.0, "B": 3.0, "C": 5.0}
    for text, work in (
        ("PATTERN AND(A a, B b, C c) WITHIN 9 units", 30),
        ("PATTERN SEQ(A a, B b, C c) WITHIN 9 units", 30 / 6),
        ("PATTERN SEQ(A a, NOT(B b), C c) WITHIN 9 units", 10 / 2),
        ("PATTERN SEQ(A a, KL(B b), C c) WITHIN 9 units", 10 * math.exp(3) / 6),
        ("PATTERN OR(SEQ(A a, B b), SEQ(B d, C c)) WITHIN 9 units", 6 / 2 + 15 / 2),
    ):
        assert expected_log_work(spec(text), rates) == pytest.approx(math.log(work))


def test_the_sample_stands_for_every_stratum() -> None:
    sample = choose_sample(drawn(), CARDINALITIES, seed=4)
    assert len({each.spec.pattern_id for each in sample}) == len(sample)
    weights: Counter[tuple[str, int]] = Counter()
    for each in sample:
        weights[each.spec.pattern_set, each.spec.size] += each.weight
    assert len(weights) == 2 * 2 and all(w == pytest.approx(40) for w in weights.values())
    assert len(sample) == 4 * sum(number for _, number in RANKS)
    # Ranks rise with the expected work.
    for pattern_set in ("kleene", "conjunction"):
        mine = [s for s in sample if (s.spec.pattern_set, s.spec.size) == (pattern_set, 5)]
        works = [
            expected_log_work(s.spec, CARDINALITIES) for s in sorted(mine, key=lambda s: s.rank)
        ]
        by_rank = [works[0], works[1], *sorted(works[2:4]), *sorted(works[4:])]
        assert by_rank == sorted(works)
    assert sample == choose_sample(drawn(), CARDINALITIES, seed=4)
    assert sample != choose_sample(drawn(), CARDINALITIES, seed=5)


def test_small_workloads_are_sampled_whole_or_nearly() -> None:
    specs = draw_workload(CARDINALITIES, pattern_sets=["sequence"], sizes=[3], patterns=2)
    sample = choose_sample(specs, CARDINALITIES)
    assert sum(each.weight for each in sample) == pytest.approx(2)


@pytest.fixture(scope="module")
def stream() -> EventStream:
    return drawn_stream(
        8_000, "AABCCCC", seed=7, seconds=30_000, names=("symbol", "ts"), difference=normal
    )


@pytest.mark.parametrize("share", [True, False])
def test_times_are_extrapolated_from_a_part(
    stream: EventStream, seen: list[int], share: bool
) -> None:
    """On two parts or more the time of an event can be told."""
    text = (
        "PATTERN SEQ(A a, B b, C c) WHERE a.difference < c.difference "
        "AND b.difference > c.difference WITHIN 60 seconds"
    )
    config = SweepConfig(
        data="", repetitions=3, latency=True, share_equal_plans=share, evaluators=("steady",)
    )
    statistics = measure_statistics(spec(text).pattern, stream)
    grid = config.grid(NAMES)
    timing = time_pattern(spec(text), stream, statistics, grid, reading=1.5, long_enough=0.06)
    plans = Plans(spec(text), stream, statistics, grid, grid.cells())
    different = len({(cell.evaluator, plans.of(cell).plan.text) for cell in grid.cells()})
    assert (timing.reading, timing.limited) == (1.5, 0)
    assert 1 < different < 4
    assert max(seen) < 8_000
    # 240 ms a run, three repetitions, each with a run for latency; 5,000 events of warm-up.
    warm_up = 2 * 0.15
    runs = different if share else 4
    assert timing.running == pytest.approx(runs * 6 * 0.24 + warm_up, rel=0.25)


def test_a_run_at_the_limit_is_not_extrapolated(stream: EventStream) -> None:
    @cep.plan_evaluator("limited")
    def limited(pattern: Any, events: EventStream, plan: Any) -> Any:
        if len(events) > 1_000:
            work(0.005)
            raise PartialMatchLimitError("too many")
        return pd.DataFrame(columns=["a", "b", "c"])

    text = "PATTERN SEQ(A a, B b, C c) WHERE a.difference < c.difference WITHIN 60 seconds"
    statistics = measure_statistics(spec(text).pattern, stream)
    config = SweepConfig(data="", repetitions=1, evaluators=("limited",))
    timing = time_pattern(spec(text), stream, statistics, config.grid(["EFREQ", "DP-B"]))
    assert timing.limited == 2
    assert timing.running < 0.1


def made_up(seconds: Callable[[Sampled], float]) -> tuple[list[Sampled], list[Timing]]:
    sample = choose_sample(drawn(), CARDINALITIES)
    timings = [Timing(each.spec.pattern_id, 1.0, 0.5, seconds(each), 0) for each in sample]
    return sample, timings


def test_sums_over_strata() -> None:
    sample, timings = made_up(lambda each: 2.0)
    table = estimate_table(sample, timings, cores=4, measuring=50.0)
    assert table["pattern_set"].tolist() == ["conjunction"] * 2 + ["kleene"] * 2 + [
        "statistics",
        "all",
    ]
    assert (
        table["size"].tolist()[:4] == [3, 5, 3, 5]
        and table["size"].isna().tolist()[4:] == [True] * 2
    )
    np.testing.assert_allclose(table["core_seconds"], [140, 140, 140, 140, 50, 610])
    np.testing.assert_allclose(table["hours"] * 3600 * 4, table["core_seconds"])
    # All alike: no spread.
    np.testing.assert_allclose(table["low"], table["core_seconds"])
    np.testing.assert_allclose(table["high"], table["core_seconds"])
    np.testing.assert_allclose(table["running"].iloc[:4], 2 / 3.5)
    assert table["patterns"].tolist() == [40] * 4 + [0, 160]


def test_the_spread_shows_patterns_that_differ() -> None:
    rng = np.random.default_rng(3)
    sample, timings = made_up(lambda each: float(10 ** (each.rank + rng.normal() / 3)))
    whole = estimate_table(sample, timings, cores=2).iloc[-1]
    assert whole["low"] < whole["core_seconds"] < whole["high"]
    assert 0.05 < (whole["high"] - whole["low"]) / whole["core_seconds"] < 1.5
    assert whole["longest"] == max(t.reading + t.planning + t.running for t in timings)


def test_estimates_are_kept_and_told(tmp_path: Path) -> None:
    assert read_estimate(tmp_path) is None
    sample, timings = made_up(lambda each: 250.0 * (each.spec.size == 5))
    table = estimate_table(sample, timings, cores=2)
    write_estimate(tmp_path, table)
    found = read_estimate(tmp_path)
    assert found is not None
    pd.testing.assert_frame_equal(found, table, check_dtype=False)
    told = describe_estimate(table, 2)
    assert "about 2.8 h on 2 cores (95 %: 2.8 h to 2.8 h), from 24 of 160 patterns" in told
    costly = estimate_table(sample, timings, cores=2, measuring=10_000.0)
    assert "measuring the statistics of all patterns: 33% of it" in describe_estimate(costly, 2)
    assert "conjunction of size 5: 50% of it, a pattern up to 4 min on one core" in told
    with pytest.raises(ExperimentError, match="no sampled patterns"):
        estimate_table(sample, [], 2)
