"""Summary tables against a plain twin that loops over everything."""

from __future__ import annotations

import itertools
import math
import statistics as plain
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.averages import bootstrap
from cepbench.experiments.analysis.summary import paired_ratios, per_pattern, summarize
from cepbench.experiments.analysis.sweep_comparison import compare_sweeps
from cepbench.experiments.sweeps.cells import ERROR, LIMIT, OK, results_frame
from tests.experiments.made_rows import made_rows

RUNS = ["TRIVIAL", "GREEDY", "DP-B"]


def made_up_results(
    seed: int = 3, patterns: int = 6, failing: set[tuple[str, str]] | None = None
) -> pd.DataFrame:
    """Random figures; ``failing`` are (pattern, generator) whose last repetition does not end well."""
    rng = np.random.default_rng(seed)

    def numbers(run: Any) -> dict[str, Any]:
        if run.repetition == 2 and (run.pattern_id, run.generator) in (failing or ()):
            return {"status": LIMIT if run.pattern_set == "sequence" else ERROR}
        return {
            "events_per_second": float(rng.lognormal(10)), "peak_bytes": int(rng.integers(1, 1000)),
        }  # fmt: skip

    settings = {
        "pattern_set": ("sequence", "conjunction"),
        "size": (4, 3),
        "number": range(patterns),
    }
    return results_frame(made_rows(numbers, **settings, repetition=range(3), generator=RUNS))


def naive_median_per_pattern(
    results: pd.DataFrame, pattern_set: str, size: int | None, generator: str, metric: str
) -> dict[str, float]:
    """Pattern -> median over repetitions; patterns with a failed repetition are missing."""
    values: dict[str, list[float]] = {}
    failed = set()
    rows = results[(results["pattern_set"] == pattern_set) & (results["generator"] == generator)]
    for row in rows.to_dict("records"):
        if size is not None and row["size"] != size:
            continue
        if row["status"] != OK:
            failed.add(row["pattern_id"])
        else:
            values.setdefault(row["pattern_id"], []).append(row[metric])
    return {key: plain.median(some) for key, some in values.items() if key not in failed}


def naive_common(
    medians: Callable[..., dict[str, float]], pattern_set: str, size: int | None, metric: str
) -> dict[str, dict[str, float]]:
    """Generator -> its medians over the patterns of all that have at least half of them."""
    values = {name: medians(pattern_set, size, name, metric) for name in RUNS}
    every = set().union(*values.values())
    compared = [name for name, own in values.items() if own and len(own) >= len(every) / 2]
    shared = every.intersection(*(values[name] for name in compared)) if compared else set()
    return {
        name: {key: value for key, value in own.items() if key in shared and name in compared}
        for name, own in values.items()
    }


FAILING = {("sequence-3-1", "GREEDY"), ("sequence-4-0", "GREEDY"), ("conjunction-3-2", "DP-B")}


#: GREEDY, which is slow on most patterns of size 3, fails on four of six of them.
MOST = {(f"sequence-3-{number}", "GREEDY") for number in range(4)}

#: Each fails on another third, so that no pattern is left that all have.
THIRDS = {(f"sequence-3-{number}", RUNS[number // 2]) for number in range(6)}


@pytest.mark.parametrize(
    "failing", [set(), FAILING, MOST, THIRDS], ids=["all-ok", "some-fail", "most", "thirds"]
)
def test_summaries_equal_the_naive_twin(failing: set[tuple[str, str]]) -> None:
    results = made_up_results(failing=failing)
    if failing:  # a pattern that was not run is one that is missing
        gone = (results["generator"] == "DP-B") & (results["pattern_id"] == "conjunction-4-1")
        results = results[~gone]
    summary = summarize(results, ["events_per_second", "peak_bytes"])
    assert len(summary) == 2 * 3 * len(RUNS) * 2 * 2
    medians = cache(partial(naive_median_per_pattern, results))
    common = cache(partial(naive_common, medians))
    for row in summary.to_dict("records"):
        size = None if pd.isna(row["size"]) else row["size"]
        values = common(row["pattern_set"], size, row["metric"])[row["generator"]]
        own = medians(row["pattern_set"], size, row["generator"], row["metric"])
        every = 12 if size is None else 6
        assert row["patterns"] == len(values)
        assert (row["left_out"], row["missing"]) == (every - len(values), every - len(own))
        if not values:
            assert math.isnan(row["value"]) and math.isnan(row["low"])
            continue
        average = {"mean": plain.fmean, "median": plain.median}[row["statistic"]]
        assert row["value"] == pytest.approx(average(values.values()))
        assert row["low"] <= row["value"] <= row["high"]
        assert row["low"] < row["high"]
    assert (summary["left_out"].sum() > 0) == bool(failing)


def test_what_no_run_has_is_left_out_and_missing_of_none() -> None:
    results = made_up_results()
    results.loc[results["pattern_id"] == "sequence-4-2", "latency_mean"] = None
    results.loc[results["pattern_id"] != "sequence-4-2", "latency_mean"] = 0.5
    found = summarize(results, ["latency_mean"])
    part = found[(found["pattern_set"] == "sequence") & (found["size"] == 4)]
    assert set(part["left_out"]) == {1} and set(part["missing"]) == {0}


def test_intervals_depend_on_the_seed_and_on_nothing_else() -> None:
    results = made_up_results()
    one, same, other = (
        summarize(results, ["peak_bytes"], seed=seed, resamples=50) for seed in (1, 1, 2)
    )
    pd.testing.assert_frame_equal(one, same)
    assert (one["value"] == other["value"]).all()
    assert (one["low"] != other["low"]).mean() > 0.5 and (one["high"] != other["high"]).mean() > 0.5
    ratios = [paired_ratios(results, "peak_bytes", "DP-B", "GREEDY", seed=seed) for seed in (1, 2)]
    assert (ratios[0]["low"] != ratios[1]["low"]).any()


def test_order_of_summaries_is_that_of_the_results() -> None:
    summary = summarize(made_up_results(), ["peak_bytes"])
    assert list(summary["pattern_set"].unique()) == ["sequence", "conjunction"]
    assert list(summary["generator"].unique()) == RUNS
    sizes = list(summary["size"].unique())
    assert sizes[:2] == [3, 4] and sizes[2] is pd.NA


@pytest.mark.parametrize("failing", [set(), FAILING], ids=["all-ok", "some-fail"])
def test_ratios_equal_the_naive_twin(failing: set[tuple[str, str]]) -> None:
    results = made_up_results(failing=failing)
    ratios = paired_ratios(results, "peak_bytes", "DP-B", "GREEDY")
    assert len(ratios) == 2 * 3 * 2
    for row in ratios.to_dict("records"):
        size = None if pd.isna(row["size"]) else row["size"]
        over, under = (
            naive_median_per_pattern(results, row["pattern_set"], size, name, "peak_bytes")
            for name in ("DP-B", "GREEDY")
        )
        each = [over[key] / under[key] for key in over if key in under]
        if row["statistic"] == "median":
            # The median of an even number of ratios is taken between their logarithms.
            expected = math.exp(plain.median(map(math.log, each)))
        else:
            expected = math.prod(each) ** (1 / len(each))
        assert row["value"] == pytest.approx(expected)
        assert row["low"] <= row["value"] <= row["high"]
        assert (row["patterns"], row["left_out"]) == (
            len(each),
            (12 if size is None else 6) - len(each),
        )


def test_runs_at_the_limit_are_bounds_of_ratios() -> None:
    """A pattern with a limited baseline counts with what is known; with two limited runs, not."""
    failing = {
        ("sequence-3-0", "TRIVIAL"), ("sequence-3-1", "DP-B"), ("sequence-3-2", "TRIVIAL"),
        ("sequence-3-2", "DP-B"),
    }  # fmt: skip
    results = made_up_results(failing={(p, g) for p, g in failing})
    of_failing = pd.Series(
        [pair in failing for pair in zip(results["pattern_id"], results["generator"], strict=True)]
    )
    results.loc[of_failing, "status"] = LIMIT
    results.loc[of_failing, "events_per_second"] = 7.0
    sequences = results[(results["pattern_set"] == "sequence") & (results["size"] == 3)]
    ratios = paired_ratios(sequences, "events_per_second", "DP-B", "TRIVIAL").iloc[0]
    assert (ratios["patterns"], ratios["left_out"], ratios["bounds"]) == (5, 1, 2)
    speeds = sequences.groupby(["pattern_id", "generator"])["events_per_second"].median().unstack()
    kept = speeds.drop(index="sequence-3-2").astype(float)
    assert kept.loc["sequence-3-0", "TRIVIAL"] == kept.loc["sequence-3-1", "DP-B"] == 7.0
    expected = np.exp(np.log(kept["DP-B"] / kept["TRIVIAL"]).mean())
    assert ratios["value"] == pytest.approx(expected)
    # Of bytes a run at the limit tells nothing.
    of_bytes = paired_ratios(sequences, "peak_bytes", "DP-B", "TRIVIAL").iloc[0]
    assert (of_bytes["patterns"], of_bytes["bounds"]) == (3, 0)


def test_regimes_are_averaged_apart() -> None:
    one, other = made_up_results(seed=3), made_up_results(seed=4)
    both = pd.concat(
        [
            table.assign(regime=regime, pattern_id=regime + "-" + table["pattern_id"])
            for regime, table in (("sparse", one), ("dense", other))
        ],
        ignore_index=True,
    )
    together = summarize(both)
    for regime, table in (("sparse", one), ("dense", other)):
        alone = summarize(table)
        its = together[together["regime"] == regime].reset_index(drop=True)
        for column in ("pattern_set", "size", "generator", "metric", "value", "patterns"):
            pd.testing.assert_series_equal(its[column], alone[column])
    ratios = paired_ratios(both, "peak_bytes", "DP-B", "TRIVIAL", ["regime"])
    assert ratios["regime"].tolist() == ["sparse"] * 2 + ["dense"] * 2
    alone = paired_ratios(other, "peak_bytes", "DP-B", "TRIVIAL", [])
    assert ratios["value"].tolist()[2:] == pytest.approx(alone["value"].tolist())
    chosen = paired_ratios(both, "peak_bytes", "DP-B", "TRIVIAL", [], run={"regime": "dense"})
    assert chosen["value"].tolist() == pytest.approx(alone["value"].tolist())
    with pytest.raises(ExperimentError, match="choose one regime"):
        paired_ratios(both, "peak_bytes", "DP-B", "TRIVIAL")


def test_ratios_by_fewer_columns() -> None:
    results = made_up_results()
    by_set = paired_ratios(results, "peak_bytes", "DP-B", "TRIVIAL", ["pattern_set"])
    assert list(by_set["pattern_set"]) == ["sequence", "sequence", "conjunction", "conjunction"]
    assert "size" not in by_set and (by_set["patterns"] == 12).all()
    by_size = paired_ratios(results, "peak_bytes", "DP-B", "TRIVIAL", ["size"])
    assert by_size["patterns"].tolist() == [12, 12, 12, 12, 24, 24]
    overall = paired_ratios(results, "peak_bytes", "DP-B", "TRIVIAL", [])
    assert overall["patterns"].tolist() == [24, 24]


def test_zeros_are_left_out_of_ratios() -> None:
    results = made_up_results()
    zero = (results["pattern_id"] == "sequence-3-0") & (results["generator"] == "TRIVIAL")
    results.loc[zero, "peak_bytes"] = 0
    ratios = paired_ratios(results, "peak_bytes", "DP-B", "TRIVIAL")
    first = ratios.iloc[0]
    assert (first["size"], first["patterns"], first["left_out"]) == (3, 5, 1)


def test_ratio_of_one_generator_in_two_evaluators() -> None:
    results = made_up_results()
    twice = results[results["generator"] == "GREEDY"].assign(evaluator="tree")
    twice["peak_bytes"] = twice["peak_bytes"] * 2
    both = pd.concat([results, twice], ignore_index=True)
    with pytest.raises(ExperimentError, match="ran in lazy-nfa and tree"):
        paired_ratios(both, "peak_bytes", "GREEDY", "GREEDY")
    runs = {"run": {"evaluator": "tree"}, "baseline_run": {"evaluator": "lazy-nfa"}}
    ratios = paired_ratios(both, "peak_bytes", "GREEDY", "GREEDY", **runs)
    np.testing.assert_allclose(ratios[["value", "low", "high"]], 2.0)


def several_strategies() -> pd.DataFrame:
    """The made-up results under two strategies and two weights; the values differ by factors."""
    parts = []
    for strategy, factor in (("any", 1), ("consuming", 3)):
        for alpha, more in ((0.0, 1), (0.5, 7)):
            part = made_up_results(failing=FAILING).assign(strategy=strategy, alpha=alpha)
            part["peak_bytes"] = part["peak_bytes"] * factor * more
            parts.append(part)
    return pd.concat(parts, ignore_index=True)


def test_strategies_and_weights_are_apart_in_summaries() -> None:
    together = summarize(several_strategies(), ["peak_bytes"])
    alone = summarize(made_up_results(failing=FAILING), ["peak_bytes"])
    assert len(together) == 4 * len(alone)
    for strategy, factor in (("any", 1), ("consuming", 3)):
        for alpha, more in ((0.0, 1), (0.5, 7)):
            part = together[(together["strategy"] == strategy) & (together["alpha"] == alpha)]
            numbers = ["value", "low", "high"]
            np.testing.assert_allclose(part[numbers], alone[numbers] * factor * more)
            assert list(part["left_out"]) == list(alone["left_out"])


def test_ratios_between_strategies_and_weights() -> None:
    results = several_strategies()
    run, baseline = {"strategy": "consuming", "alpha": 0.5}, {"strategy": "any", "alpha": 0.0}
    both = paired_ratios(results, "peak_bytes", "DP-B", "GREEDY", run=run)
    plain_ratios = paired_ratios(made_up_results(failing=FAILING), "peak_bytes", "DP-B", "GREEDY")
    pd.testing.assert_frame_equal(both, plain_ratios)
    across = paired_ratios(
        results, "peak_bytes", "DP-B", "DP-B", [], run=run, baseline_run=baseline
    )
    np.testing.assert_allclose(across[["value", "low", "high"]], 21.0)
    assert across["patterns"].tolist() == [23, 23] and across["left_out"].tolist() == [1, 1]


def test_ratios_grouped_by_strategy_and_weight() -> None:
    results = several_strategies()
    results = results[::-1].reset_index(drop=True)  # groups come in the order of the results
    grouped = paired_ratios(results, "peak_bytes", "DP-B", "GREEDY", ["strategy", "alpha"])
    alone = paired_ratios(made_up_results(failing=FAILING), "peak_bytes", "DP-B", "GREEDY", [])
    assert list(grouped.columns[:2]) == ["strategy", "alpha"]
    keys = list(grouped[["strategy", "alpha"]].drop_duplicates().itertuples(index=False, name=None))
    assert keys == [("consuming", 0.5), ("consuming", 0.0), ("any", 0.5), ("any", 0.0)]
    for key in keys:
        part = grouped[(grouped["strategy"] == key[0]) & (grouped["alpha"] == key[1])]
        np.testing.assert_allclose(part["value"], alone["value"])
        assert list(part["patterns"]) == list(alone["patterns"])
    runs = {"run": {"alpha": 0.5}, "baseline_run": {"alpha": 0.0}}
    across = paired_ratios(results, "peak_bytes", "DP-B", "DP-B", ["strategy"], **runs)
    assert list(across["strategy"].unique()) == ["consuming", "any"]
    np.testing.assert_allclose(across["value"], 7.0)


def test_streams_and_windows_are_apart_where_they_vary() -> None:
    parts = []
    for factor, (stream, window) in enumerate(
        itertools.product(("slow", "fast"), ("1 h", "2 h")), 1
    ):
        part = made_up_results(seed=factor).assign(stream=stream, window=window, options="{}")
        parts.append(part)
    both = pd.concat(parts, ignore_index=True)
    table = summarize(both, ["events_per_second"], resamples=20)
    assert "options" not in table
    apart = ["stream", "window"]
    of_greedy = partial(
        paired_ratios, metric="events_per_second", generator="GREEDY", baseline="TRIVIAL"
    )
    ratios = of_greedy(both, by=["pattern_set", *apart])

    def of(found: pd.DataFrame, key: tuple[str, str]) -> pd.DataFrame:
        its = (found["stream"] == key[0]) & (found["window"] == key[1])
        return found[its].drop(columns=apart).reset_index(drop=True)

    for key, part in both.groupby(apart, sort=False):
        alone = summarize(part, ["events_per_second"], resamples=20)
        assert not {*apart} & {*alone.columns}
        pd.testing.assert_frame_equal(of(table, key), alone)
        expected = of_greedy(part, by=["pattern_set"])
        assert of(ratios, key)["value"].tolist() == expected["value"].tolist()
    with pytest.raises(
        ExperimentError, match="GREEDY ran in slow and fast; choose one stream by run="
    ):
        of_greedy(both, by=["window"])
    chosen = of_greedy(both, by=["window"], run={"stream": "slow"})
    alone = of_greedy(both[both["stream"] == "slow"], by=["window"])
    pd.testing.assert_frame_equal(chosen, alone)
    # One sweep against itself: a pair is of one stream and window.
    compared = compare_sweeps(both, both, metrics=["events_per_second"])
    assert len(compared.ratios) == 3 * 4 and (compared.ratios["value"] == 1).all()
    assert "fast 2 h" in compared.describe()


def test_no_pattern_ended_well() -> None:
    results = made_up_results().assign(status=ERROR)
    summary = summarize(results, ["peak_bytes"])
    assert summary["value"].isna().all() and (summary["patterns"] == 0).all()
    ratios = paired_ratios(results, "peak_bytes", "DP-B", "TRIVIAL")
    assert ratios["value"].isna().all() and ratios["left_out"].tolist() == [6, 6, 6, 6, 12, 12] * 2


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({}, "ran in any and consuming; choose one strategy by run="),
        ({"run": {"strategy": "any"}}, r"ran in 0\.0 and 0\.5; choose one alpha by run="),
        ({"run": {"strategy": "any", "alpha": 2.0}}, r"did not run in alpha 2\.0"),
        ({"run": {"evaluator": "nfa"}}, "did not run in evaluator 'nfa'"),
        ({"run": {"size": 3}}, "chooses a run is one of evaluator, strategy, .*, not 'size'"),
        ({"generator": "DPB"}, "the plan generator, of those in the results, .*, not 'DPB'"),
        ({"by": ["seed"]}, "by is one of pattern_set, .*, not 'seed'"),
        ({"metric": "speed"}, "a metric is one of seconds, .*, not 'speed'"),
    ],
    ids=str,
)
def test_what_ratios_cannot_be_of(asked: dict[str, Any], words: str) -> None:
    how = {"metric": "peak_bytes", "generator": "DP-B", "baseline": "GREEDY"} | asked
    with pytest.raises(ExperimentError, match=words):
        paired_ratios(several_strategies(), **how)
    if "metric" in asked:
        with pytest.raises(ExperimentError, match=words):
            summarize(several_strategies(), [asked["metric"]])


@pytest.mark.parametrize(
    ("given", "words"),
    [([1], "a DataFrame, .*, not a list"), (pd.DataFrame({"a": [1]}), "no column 'pattern_set'")],
    ids=["a list", "another table"],
)
def test_what_is_no_table_of_results(given: Any, words: str) -> None:
    with pytest.raises(ExperimentError, match=words):
        summarize(given)
    with pytest.raises(ExperimentError, match=words):
        paired_ratios(given, "peak_bytes", "DP-B", "TRIVIAL")


def test_bootstrap_against_loops_and_theory() -> None:
    values = np.random.default_rng(0).normal(5.0, 2.0, size=400)
    low, high = bootstrap(values, np.mean, np.random.default_rng(1), 4000)
    rng = np.random.default_rng(1)
    means = sorted(
        float(np.mean([values[k] for k in rng.integers(400, size=400)])) for _ in range(4000)
    )
    assert low == pytest.approx(means[100], rel=2e-3)
    assert high == pytest.approx(means[3900], rel=2e-3)
    # The normal approximation of a mean's 95 % interval.
    error = 1.96 * values.std() / 20
    assert low == pytest.approx(values.mean() - error, abs=0.03)
    assert high == pytest.approx(values.mean() + error, abs=0.03)


def test_partial_matches_per_event_are_a_quotient() -> None:
    table = made_up_results().assign(partial_matches_created=6, events=4)
    table.loc[table["size"] == 4, "events"] = 0
    found = per_pattern(table, ["partial_matches_per_event"])
    by_size = found.groupby("size")["partial_matches_per_event"]
    assert by_size.first()[3] == 1.5 and found[found["size"] == 4].iloc[:, -1].isna().all()
