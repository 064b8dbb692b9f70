"""Figures 6 and 8: choice of plans, fits against known laws and plain loops, averages."""

from __future__ import annotations

import math
import statistics as plain
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.cost_fit import cost_fit
from cepbench.experiments.studies.kolchinsky2018.figure_data import (
    cost_points,
    joins_after_last_event,
    latency_points,
    with_load,
)
from cepbench.experiments.studies.kolchinsky2018.findings import fall_with_size
from cepbench.experiments.studies.kolchinsky2018.paper_averages import paper_averages
from cepbench.experiments.sweeps.cells import LIMIT, OK, results_frame
from cepbench.presentation.figures.cost_points import plans_left_out
from tests.experiments.made_rows import made_rows

ORDERS = ("TRIVIAL", "GREEDY", "DP-LD")
TREES = ("ZSTREAM", "DP-B")


def made_up_results(
    noise: float = 0.0, alphas: tuple[float, ...] = (0.0,), regime: str = ""
) -> pd.DataFrame:
    """Throughput 1e6/cost², memory 10·cost; GREEDY always finds DP-LD's plan."""
    rng = np.random.default_rng(4)
    own = cache(lambda pattern_id: rng.lognormal(5))
    worse = cache(lambda pattern_id, generator: rng.uniform(1, 9))

    def numbers(run: Any) -> dict[str, Any]:
        is_best = run.generator in ("GREEDY", "DP-LD", "DP-B")
        cost = own(run.pattern_id)
        factor = 1 if is_best else worse(run.pattern_id, run.generator)
        cost *= factor
        return {
            "plan": f"plan of factor {factor:.6f}", "plan_log_cost": math.log(cost),
            "events_per_second": 1e6 / cost**2 * math.exp(noise * rng.normal()),
            "peak_bytes": round(10 * cost * 1e6), "peak_partial_matches": 0 if run.size == 3 else 5,
            "latency_mean": None if run.number == 0 else 1e-6 * cost,
        }  # fmt: skip

    patterns = {"pattern_set": ("sequence", "kleene", "disjunction"), "size": (3, 5)}
    runs = {"generator": (*ORDERS, *TREES), "alpha": alphas, "repetition": range(2)}
    rows = made_rows(numbers, regime=[regime], **patterns, number=range(12), **runs)
    return results_frame(rows)


def test_plans_are_different_and_spread_over_sets_sizes_and_generators() -> None:
    points = cost_points(made_up_results(), plans=60)
    assert points["plan_kind"].value_counts().to_dict() == {"order": 60, "tree": 60}
    assert not points.duplicated(["pattern_id", "plan", "evaluator"]).any()
    per_stratum = points.groupby(["plan_kind", "pattern_set", "size"]).size()
    assert per_stratum.min() == per_stratum.max() == 10
    assert set(points["generator"]) == {*ORDERS, *TREES}
    # One of two equal plans stays, now of the one generator and now of the other.
    assert points["generator"].isin(["GREEDY", "DP-LD"]).sum() > 10
    np.testing.assert_allclose(points["events_per_second"], 1e6 / points["cost"] ** 2)
    pd.testing.assert_frame_equal(points, cost_points(made_up_results(), plans=60))
    other = cost_points(made_up_results(), plans=60, seed=1)
    assert set(other["pattern_id"]) != set(points["pattern_id"])


def test_fewer_plans_than_wanted_are_all_taken() -> None:
    points = cost_points(made_up_results(), plans=1_000)
    assert points["plan_kind"].value_counts().to_dict() == {"order": 72 * 2, "tree": 72 * 2}


def test_only_finished_usual_runs_become_points() -> None:
    results = made_up_results(alphas=(0.0, 1.0))
    results.loc[results["generator"] == "DP-B", "status"] = LIMIT
    extra = results.assign(strategy="consuming")
    points = cost_points(pd.concat([results, extra], ignore_index=True), plans=1_000)
    assert "DP-B" not in set(points["generator"])
    pd.testing.assert_frame_equal(
        points, cost_points(results[results["alpha"] == 0].reset_index(drop=True), plans=1_000)
    )
    with pytest.raises(ExperimentError, match="no finished runs"):
        cost_points(results.assign(status=LIMIT))


def test_a_power_law_is_found_again() -> None:
    fit = cost_fit(cost_points(made_up_results())).set_index("plan_kind")
    assert list(fit.index) == ["order", "tree"]
    for name, value in (("spearman", -1), ("exponent", -2), ("intercept", math.log(1e6))):
        for column in (name, f"{name}_low", f"{name}_high"):
            np.testing.assert_allclose(fit[column], value, rtol=1e-6)
    memory = cost_fit(cost_points(made_up_results()), "peak_bytes")
    np.testing.assert_allclose(memory[["spearman", "exponent"]], 1.0, rtol=1e-6)


def test_a_noisy_law_lies_in_its_interval_and_equals_loops() -> None:
    points = cost_points(made_up_results(noise=0.8), plans=40)
    fit = cost_fit(points, seed=2).set_index("plan_kind")
    for kind, group in points.groupby("plan_kind"):
        row = fit.loc[kind]
        x, y = group["log_cost"].to_numpy(), np.log(group["events_per_second"].to_numpy(float))
        line = stats.linregress(x, y)
        assert row["exponent"] == pytest.approx(line.slope)
        assert row["intercept"] == pytest.approx(line.intercept)
        assert row["spearman"] == pytest.approx(stats.spearmanr(x, y).statistic)
        # The truth lies in, or a little beside, an interval that misses it once in twenty times.
        assert row["exponent_low"] - 0.1 < -2 < row["exponent_high"] + 0.1
        assert 0.02 < row["exponent_high"] - row["exponent_low"] < 0.6
        assert -1 < row["spearman_low"] < row["spearman"] < row["spearman_high"] < 0
        assert (row["points"], row["left_out"]) == (40, 0)


def test_ranks_of_ties_and_zeros_left_out() -> None:
    points = cost_points(made_up_results())
    fit = cost_fit(points, "peak_partial_matches")
    assert fit["points"].tolist() == [30, 30] and fit["left_out"].tolist() == [30, 30]
    assert fit["spearman"].isna().all()  # all have the same value
    np.testing.assert_allclose(fit["exponent"], 0, atol=1e-12)
    alike = cost_fit(points.assign(log_cost=0.1))  # whose mean is rounded
    assert alike[["spearman", "exponent", "intercept"]].isna().all(axis=None)
    tied = points.assign(events_per_second=np.ceil(points["events_per_second"] * 1e3))
    for kind, group in tied.groupby("plan_kind"):
        expected = stats.spearmanr(group["log_cost"], group["events_per_second"]).statistic
        found = cost_fit(tied).set_index("plan_kind").loc[kind, "spearman"]
        assert found == pytest.approx(expected)


def test_latency_and_throughput_are_averaged_over_the_same_patterns() -> None:
    results = made_up_results(noise=0.3, alphas=(0.0, 0.5))
    failing = (results["pattern_id"] == "kleene-5-3") & (results["generator"] == "TRIVIAL")
    results.loc[failing & (results["alpha"] == 0.5), "status"] = LIMIT
    points = latency_points(results)
    assert len(points) == 5 * 2 * 3
    assert (points["left_out"] == 1).all()
    assert (points["throughput_patterns"] == 71).all()
    assert (points["latency_patterns"] == 71 - 6).all()  # number 0 of each size has no match
    for row in points.to_dict("records"):
        mine = results[
            (results["generator"] == row["generator"])
            & (results["alpha"] == row["alpha"])
            & (results["pattern_id"] != "kleene-5-3")
        ]
        average = {
            "mean": plain.fmean,
            "median": plain.median,
            "geometric mean": plain.geometric_mean,
        }[row["statistic"]]
        for name, metric in (("throughput", "events_per_second"), ("latency", "latency_mean")):
            medians = [
                plain.median(values)
                for _, values in mine.dropna(subset=metric).groupby("pattern_id")[metric]
            ]
            assert row[name] == pytest.approx(average(medians))
            assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]


@pytest.mark.parametrize(
    ("kind", "plan", "joins"),
    [
        ("order", "a, b, c", 1),
        ("order", "c, a, b", 2),
        ("order", "a, c, b", 2),
        ("tree", "((a, b), c)", 1),
        ("tree", "((a, (b, d)), c)", 3),
        ("tree", "((a, b), (d, c))", 2),
    ],
)
def test_joins_after_the_last_event_are_those_on_its_path(kind: str, plan: str, joins: int) -> None:
    run = {"regime": "dense", "generator": "X", "plan_kind": kind, "plan": plan, "alpha": 1.0}
    results = pd.DataFrame([run | {"pattern_id": "p", "status": status} for status in (OK, OK)])
    failed = pd.DataFrame([run | {"pattern_id": "q", "status": LIMIT, "plan": "(x, y)"}])
    table = joins_after_last_event(pd.concat([results, failed]))
    assert table.loc[("dense", "X"), 1.0] == joins and table.size == 1


def in_regimes() -> pd.DataFrame:
    """Sparse ones, and dense ones of ten times the partial matches; 4 events each."""
    parts = [made_up_results(regime=name) for name in ("sparse", "dense")]
    for part, created in zip(parts, (8, 80), strict=True):
        part["partial_matches_created"], part["events"] = created, 4
    return pd.concat(parts, ignore_index=True)


def test_points_and_averages_are_taken_in_each_regime() -> None:
    results = in_regimes()
    points = cost_points(results, plans=30)
    counts = points.groupby(["regime", "plan_kind"], sort=False).size()
    assert [*counts] == [30] * 4 and [*points["regime"].unique()] == ["sparse", "dense"]
    assert set(points["partial_matches_per_event"]) == {2.0, 20.0}
    fits = cost_fit(points, by=["regime", "plan_kind"], resamples=9)
    np.testing.assert_allclose(fits["exponent"], -2.0, rtol=1e-6)
    assert set(latency_points(results, resamples=9)["regime"]) == {"sparse", "dense"}


def test_regimes_and_engines_are_named_with_their_load() -> None:
    results = in_regimes()
    by_event = results["evaluator"] + "-instances"
    both = pd.concat([results, results.assign(evaluator=by_event)])
    named = with_load(both, both)["regime"].unique()
    assert [*named] == [
        "sparse, columnar (72 patterns): 2 PM per event",
        "dense, columnar (72 patterns): 20 PM per event",
        "sparse, event by event (72 patterns): 2 PM per event",
        "dense, event by event (72 patterns): 20 PM per event",
    ]
    alone = with_load(results, results)["regime"].unique()
    assert alone[0] == "sparse (72 patterns): 2 PM per event"
    assert with_load(both.drop(columns="regime"), both).equals(both.drop(columns="regime"))


def test_three_averages_beside_the_paper_s() -> None:
    speeds = {"EFREQ": [1.0, 1.0, 100.0], "DP-LD": [2.0, 4.0, 800.0]}

    def numbers(run: Any) -> dict[str, Any]:
        limited = (run.number, run.generator) == (2, "EFREQ")
        speed = speeds[run.generator][run.number]
        return {"events_per_second": speed, "status": LIMIT if limited else OK}

    classes = {"regime": ["dense"], "pattern_set": ["kleene"]}
    rows = made_rows(numbers, **classes, number=range(3), generator=speeds)
    found = paper_averages(results_frame(rows), "events_per_second").iloc[0]
    assert found["ratio of means"] == pytest.approx(806 / 102)
    assert found["geometric mean of ratios"] == pytest.approx(4.0)
    assert found["median of ratios"] == pytest.approx(4.0)
    assert (found["paper"], found["patterns"], found["bounds"]) == ("1.7", 3, 1)


def test_the_fall_of_throughput_is_stated_for_each_regime() -> None:
    rows = [
        {"metric": "events_per_second", "statistic": "median", "pattern_set": "sequence",
         "regime": regime, "generator": name, "evaluator": "tree", "size": size, "value": value}
        for regime, factor in (("sparse", 1.0), ("dense", 10.0))
        for name, more in (("DP-B", 1.0), ("ZSTREAM", 3.0))
        for size, value in ((3, 60.0), (7, 60.0 / factor / more))
    ]  # fmt: skip
    text = fall_with_size(pd.DataFrame(rows), "sequence")
    assert "sparse regime" in text and "divided by 1 to 3." in text
    assert "dense regime" in text and "divided by 10 to 30." in text
    slower = [{**row, "evaluator": "tree-instances"} for row in rows]
    both = fall_with_size(pd.DataFrame([*rows, *slower]), "sequence")
    assert both.count("divided by") == 4 and "dense regime, event by event, the median" in both


def test_plans_without_a_point_are_counted_by_panel() -> None:
    points = pd.DataFrame(
        {
            "regime": ["sparse", "sparse", "dense"], "generator": ["EFREQ", "DP-LD", "EFREQ"],
            "evaluator": "lazy-nfa", "missing": [2, 0, 1],
        }
    )  # fmt: skip
    because = "Patterns without a point, as a run did not end well: "
    assert plans_left_out(points) == [f"{because}EFREQ 2 (sparse); EFREQ 1 (dense)."]
    assert plans_left_out(points[:2]) == [f"{because}EFREQ 2."]
    assert plans_left_out(points[1:2]) == []
