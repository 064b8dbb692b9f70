"""Tables and verdicts of the study's pages, from runs whose numbers are known."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from cepbench.experiments.studies.qi2014.printed import GAIN_AT_LENGTH_5
from cepbench.experiments.studies.qi2014.runs import (
    across_rates,
    active_for,
    connect_arithmetic,
    connect_factor,
    extremes,
    gain_at_length_5,
    gain_of_workload,
    gains_by_sharing,
    in_work,
    prefix_arithmetic,
    prefix_factor,
    reached,
    runs_of,
    saved,
    workload_runs,
)
from cepbench.experiments.studies.runs import (
    factors,
    figure_runs,
    span,
    summary_of,
    table_of,
    with_regimes,
)
from cepbench.presentation.reporting.verdicts import ledger

TICKERS = ("A a", "B b", "C c", "D d", "E e", "F f", "G g", "H h", "I i", "J j")

#: Method, rate, length and window → microseconds of an event.
Micros = Callable[[str, int, int, int], float]


def text(length: int, window: int) -> str:
    return f"PATTERN SEQ({', '.join(TICKERS[:length])}) AGG COUNT WITHIN < {window} milliseconds"


def row(rate: int, pattern: str, method: str, repetition: int, micros: float) -> dict[str, object]:
    counted = method == "sase"
    return {
        "pattern_set": "user", "size": 0, "pattern_id": "user-l", "pattern": pattern,
        "generator": "none" if counted else method, "plan_kind": "none",
        "evaluator": method if counted else "none", "method": "" if counted else method,
        "sharing": "" if counted else "none", "options": "{}", "stream": f"r{rate}", "window": "",
        "regime": "", "strategy": "any", "alpha": 0.0, "repetition": repetition,
        "output": "values", "status": "ok", "events": 1000,
        "seconds": micros / 1000, "updates": 500 * rate,
        "peak_objects": None if counted else 100 * rate, "plan_log_cost": None,
    }  # fmt: skip


def results(
    methods: tuple[str, ...], lengths: tuple[int, ...], windows: tuple[int, ...], micros: Micros
) -> pd.DataFrame:
    """Rows as a sweep has them at three rates, five runs each, in the order of the names."""
    return pd.DataFrame(
        row(rate, text(length, window), method, repetition, micros(method, rate, length, window))
        for rate in (10, 100, 20)
        for length in sorted(lengths, key=str)
        for window in windows
        for repetition in range(5)
        for method in methods
    )


def polynomial(method: str, rate: int, length: int, window: int) -> float:
    """Microseconds: of two-step a power of the active events, of A-Seq as many as there are."""
    active = rate * window / 1000
    return 0.5 * active ** (length - 1) if method == "two-step" else active


def test_runs_have_what_the_figures_have_on_their_axes() -> None:
    counted = results(("sase",), (5,), (1000,), lambda *_: 4.0)
    counted["pattern"] = counted["pattern"].str.replace("AGG COUNT ", "")
    methods = results(("two-step", "a-seq"), (2, 10), (100, 1000), polynomial)
    runs = runs_of(methods, counted)
    assert list(runs["regime"].unique()) == ["10 per second", "20 per second", "100 per second"]
    first = runs[runs["regime"] == "10 per second"]
    assert list(first["size"].unique()) == [2, 5, 10]
    assert list(first[first["size"] == 2]["window_size"].unique()) == [100, 1000]
    assert set(runs["series"]) == {"two-step", "a-seq", "sase"}
    one = runs[(runs["series"] == "a-seq") & (runs["size"] == 10) & (runs["window_size"] == 1000)]
    assert list(one["active"].unique()) == [10.0, 20.0, 100.0]
    assert one["microseconds_per_slide"].to_numpy() == pytest.approx(one["active"].to_numpy())
    assert one["updates_per_slide"].iloc[0] == 5.0
    assert set(runs.loc[runs["series"] == "sase", "microseconds_per_slide"]) == {4.0}


def test_runs_on_streams_of_several_seeds_are_repetitions() -> None:
    rows = results(("a-seq",), (2,), (1000,), polynomial)
    seeds = [rows.assign(stream=rows["stream"] + f"-seed{seed}") for seed in (0, 12)]
    runs = runs_of(*seeds)
    assert list(runs["regime"].unique()) == ["10 per second", "20 per second", "100 per second"]
    named = set(runs.loc[runs["regime"] == "20 per second", "repetition"])
    assert named == {f"{seed}.{repetition}" for seed in (0, 12) for repetition in range(5)}
    assert not runs["projected"].any()


def test_a_run_that_was_stopped_early_takes_the_time_of_its_matches_for_all() -> None:
    """Of 20 trades of each of 5 tickers in a window; 250 slides are 2.5 windows, 2,500 are 25."""
    stopped = results(("two-step",), (5,), (1000,), lambda *_: 40.0)
    stopped = stopped[stopped["stream"] == "r20"].assign(status="partial_match_limit")
    stopped["events"], stopped["updates"], stopped["seconds"] = 250, 100_000, 0.004
    counted = results(("sase",), (5,), (1000,), lambda *_: 0.1).assign(
        events=8_000, matches=16_000_000
    )
    counted["pattern"] = counted["pattern"].str.replace("AGG COUNT ", "")
    early = runs_of(stopped, counted)
    early = early[early["series"] == "two-step"]
    assert early["projected"].all() and set(early["status"]) == {"ok"}
    # 40 ns a match, and 2,000 matches a slide.
    assert early["seconds_per_slide"].to_numpy() == pytest.approx(8e-5)
    assert early["microseconds_per_slide"].to_numpy() == pytest.approx(80)
    assert set(early["updates_per_slide"]) == {2_000.0}
    assert early["peak_objects"].to_numpy() == pytest.approx(5 * 20 + 20**5 / 120)
    for late in (stopped.assign(events=2_500), stopped.assign(events=2_500, matches=None)):
        runs = runs_of(late, counted)
        runs = runs[runs["series"] == "two-step"]
        assert set(runs["status"]) == {"ok"} and not runs["projected"].any()
        assert runs["seconds_per_slide"].to_numpy() == pytest.approx(0.004 / 2_500)
    # Without a count of its stream it has a bound, as elsewhere.
    alone = runs_of(stopped)
    assert set(alone["status"]) == {"partial_match_limit"} and not alone["projected"].any()


def test_factors_are_by_regime_and_setting() -> None:
    runs = figure_runs(
        runs_of(results(("two-step", "a-seq"), (2, 3, 4, 5), (1000,), polynomial)), "size", "series"
    )
    ahead = factors(runs, "seconds_per_slide", "two-step", "a-seq")
    assert list(ahead.index) == ["10 per second", "20 per second", "100 per second"]
    assert list(ahead) == ["2", "3", "4", "5"]
    assert ahead.loc["20 per second"].tolist() == pytest.approx([0.5, 10.0, 200.0, 4000.0])
    assert span(ahead) == "0.5 (2, 10 per second) to 500,000 (5, 100 per second)"
    assert span(ahead[["2"]]) == "0.5 (10 per second) to 0.5 (100 per second)"
    assert span(ahead.iloc[:1, :1]) == "0.5"
    summary = summary_of(runs, ["seconds_per_slide"], resamples=50)
    assert list(summary["engine"].unique()) == list(ahead.index)
    table = table_of(with_regimes(runs), "microseconds_per_slide").data
    assert table.loc["time per slide (µs), a-seq, 20 per second"].tolist() == pytest.approx(
        [20] * 4
    )


def test_the_papers_factor_is_reached_with_so_many_active_events() -> None:
    runs = figure_runs(
        runs_of(results(("two-step", "a-seq"), (5,), (1000,), polynomial)), "size", "series"
    )
    exact = (2 * GAIN_AT_LENGTH_5) ** (1 / 3)  # half of its third power
    for few in (runs, runs[runs["active"] < 100]):
        found, low, high = active_for(few, GAIN_AT_LENGTH_5, "two-step", "a-seq")
        assert (found, low, high) == pytest.approx((exact, exact, exact))
    assert gain_at_length_5(runs) == (
        "At length 5 A-Seq is 500 times (at 10 per second) and 4,000 times (at 20 per second) and "
        "500,000 times (at 100 per second) as fast as two-step; the paper's factor, 16,736, is "
        "reached with 32.2 active events of each ticker (95 %: 32.2 to 32.2)."
    )
    assert "by extrapolation with 32.2" in gain_at_length_5(runs[runs["active"] < 100])


def test_factors_are_reached_at_a_rate_by_every_run() -> None:
    every = runs_of(results(("two-step", "a-seq"), (5,), (1000,), polynomial))
    every["updates_per_slide"] = every["seconds_per_slide"] ** 2
    runs = figure_runs(every, "size", "series")
    found = reached(runs, GAIN_AT_LENGTH_5, 500.0, over="two-step", under="a-seq")
    assert set(found["regime"]) == {"all rates"} and set(found["generator"]) == {"two-step / a-seq"}
    by_factor = found.groupby("pattern_set")["active"]
    assert set(by_factor.size()) == {5}
    exact = {
        "16,736 in time": (2 * GAIN_AT_LENGTH_5) ** (1 / 3),
        "16,736 in work": (2 * GAIN_AT_LENGTH_5**0.5) ** (1 / 3),
        "500 in time": 10.0,
        "500 in work": (2 * 500**0.5) ** (1 / 3),
    }
    assert by_factor.median().to_dict() == pytest.approx(exact)
    assert in_work(found) == (
        "In work, matches listed over counters updated, it is reached with 6.37 (6.37 to 6.37 on the "
        "streams)."
    )
    rates = across_rates(every)
    assert set(rates["generator"]) == {"two-step, length 5", "a-seq, length 5"}
    assert list(rates["pattern_set"].unique()) == ["10 active", "20 active", "100 active"]
    tables = {"figure_12": pd.concat([runs, rates, found])}
    judged = last_tests(tables)
    one = judged.loc[("gain-at-length-5", "all rates")]
    assert one["value"] == pytest.approx(exact["16,736 in time"]) and one["verdict"] == "holds"
    assert judged.loc[("gain-at-length-5-work", "all rates"), "verdict"] == "does not hold"
    assert judged.loc[("equation-3-time", "all rates"), "value"] == pytest.approx(4.0)


@pytest.mark.parametrize(
    ("queries", "common", "expected"), [(3, 2, 21 / 19), (3, 6, 21 / 11), (6, 3, 42 / 32)]
)
def test_a_prefix_tree_saves_what_arithmetic_says(
    queries: int, common: int, expected: float
) -> None:
    assert prefix_factor(queries, common) == pytest.approx(expected)
    assert prefix_factor(queries, common) < queries


def test_chop_connect_needs_more_products_than_it_saves_updates() -> None:
    for common in range(2, 7):
        assert connect_factor(3, common, 4) < 1
    assert connect_factor(3, 6, 3) > 1
    assert "a factor of 1.11 of the updates, one of 6 a factor of 1.91" in prefix_arithmetic()
    assert "14.8 to 15.2 times with 100 of them" in connect_arithmetic(100)


def last_tests(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """What each claim is about, by its id and rate, without the work beside it."""
    judged = ledger("qi2014", tables).drop_duplicates(["id", "regime"], keep="last")
    return judged.set_index(["id", "regime"])


def test_claims_of_single_queries_are_judged_at_every_rate() -> None:
    both = ("two-step", "a-seq")
    figure_12 = figure_runs(
        runs_of(results(both, (2, 3, 4, 5), (1000,), polynomial)), "size", "series"
    )
    windows = tuple(range(100, 1001, 100))
    every = runs_of(results(both, (3,), windows, polynomial))
    figure_13 = figure_runs(every, "window_size", "series")
    long = runs_of(results(("a-seq",), (6, 10), (1000, 2000), lambda *_: 2.0))
    short = runs_of(results(("two-step",), (2,), (100,), lambda *_: 2.2))
    both_ends = extremes(long, short)
    assert set(both_ends["pattern_set"]) == {"extremes"} and len(both_ends) == 2 * 3 * 5
    tables = {"figure_12": figure_12, "figure_13": figure_13, "figure_14": both_ends}
    judged = last_tests(tables)
    for rate, value, verdict in (
        (10, 500.0, "does not hold"), (20, 4000.0, "does not hold"), (100, 500_000.0, "holds"),
    ):  # fmt: skip
        one = judged.loc[("four-orders", f"{rate} per second")]
        assert one["value"] == pytest.approx(value) and one["verdict"] == verdict
    for name, value, verdict in (
        ("a-seq-by-length", 1.0, "holds"), ("two-step-by-length", 10.0**3, "holds"),
        ("a-seq-linear", 1.0, "holds"), ("two-step-polynomial", 2.0, "holds"),
        ("two-step-degrades", 10.0, "holds"), ("extremes", 2 / 2.2, "holds"),
        ("extreme-time", 2e-6, "not testable"), ("a-seq-objects-linear", 0.0, "does not hold"),
    ):  # fmt: skip
        one = judged.loc[(name, "10 per second")]
        assert one["value"] == pytest.approx(value, abs=1e-9) and one["verdict"] == verdict, name


def shared_results() -> pd.DataFrame:
    """Two and three queries at one rate: a prefix tree halves the time, and saves a third of updates."""
    rows = []
    for queries, common in ((2, 3), (3, 6)):
        pattern = "\n".join(f"Q{n} = {text(8, 1000)}" for n in range(queries))
        for sharing, micros, updates in (("none", 4.0, 900), ("PRETREE", 2.0, 600)):
            for repetition in range(5):
                its = row(10, pattern, "a-seq", repetition, queries * micros)
                its |= {"pattern_id": f"workload-q{queries}_prefix{common}", "sharing": sharing}
                rows.append(its | {"updates": updates})
    return pd.DataFrame(rows)


def test_workloads_have_what_they_share() -> None:
    every = workload_runs(runs_of(shared_results()))
    assert set(every["workload"]) == {"2 queries, prefix 3", "3 queries, prefix 6"}
    assert set(every["series"]) == {"a-seq", "PRETREE"} and set(every["size"]) == {8}
    runs = figure_runs(every, "workload", "series")
    gained = gains_by_sharing(runs, "PRETREE")
    assert gained.loc["time, PRETREE, 10 per second"].tolist() == pytest.approx([2.0, 2.0])
    assert gained.loc["updates, PRETREE, 10 per second"].tolist() == pytest.approx([1.5, 1.5])
    assert gain_of_workload(runs, "3 queries, prefix 6", "PRETREE") == (
        "PRETREE, 3 queries, prefix 6: 2 times as fast and 1.5 times fewer updates (10 per second) "
        "than A-Seq on each query."
    )
    less = saved(runs, "PRETREE")
    assert set(less["generator"]) == {"saved by PRETREE"}
    micros = less.groupby("pattern_set")["seconds_per_slide"].median() * 1e6
    assert micros.tolist() == pytest.approx([4.0, 6.0])
