"""Data of [kolchinsky2018]_, Figures 6 and 8, from the results of sweeps.

Figures 3, 4, 5 and 9 show averages as :func:`cepbench.experiments.analysis.summary.summarize` gives them,
Figure 7 those of :mod:`cepbench.experiments.studies.kolchinsky2018.planning`.
"""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.averages import GEOMETRIC_MEAN, MEAN, MEDIAN, RESAMPLES, averages
from cepbench.experiments.analysis.common_patterns import only_finite
from cepbench.experiments.analysis.settings import engines_of
from cepbench.experiments.analysis.summary import RUN, groups_of, in_order_of, per_pattern
from cepbench.experiments.sweeps.cells import OK

#: Kind of plan -> the native method of section 6, which others are compared with.
NATIVE = {"order": "EFREQ", "tree": "ZSTREAM"}

#: Plans of each kind in Figure 6.
PLANS = 60

_POINT_METRICS = [
    "events_per_second", "seconds", "peak_bytes", "peak_partial_matches", "mean_partial_matches",
    "partial_matches_per_event",
]  # fmt: skip


def cost_points(results: pd.DataFrame, plans: int = PLANS, *, seed: int = 0) -> pd.DataFrame:
    """Expected cost and measured performance of plans by various generators.

    Takes plans from the runs of a sweep, of each kind for each evaluator in each regime as many as
    asked for or as there are, evenly over pattern sets and sizes and at random within; a plan that
    several generators found for a pattern counts once, under one of their names. Runs under other
    strategies than any-match, and of plans that weigh latency, are left out.

    One row a plan: ``regime``, ``pattern_set``, ``size``, ``pattern_id``, ``generator``,
    ``plan_kind``, ``evaluator``, ``plan``, ``log_cost``, ``cost``, medians over repetitions of
    ``events_per_second``, ``seconds``, ``peak_bytes``, ``peak_partial_matches``,
    ``mean_partial_matches`` and ``partial_matches_per_event``, and ``missing``: on how many
    patterns the generator's runs did not end well, which are no points.

    Raises ExperimentError if no run ended well.

    Source: [kolchinsky2018]_, section 6.3, Figure 6.
    """
    usual = results[(results["strategy"] == "any") & (results["alpha"] == 0)]
    medians = per_pattern(usual, [*_POINT_METRICS, "plan_log_cost"], [*RUN, "regime"])
    medians = medians.rename(columns={"plan_log_cost": "log_cost"})
    ended_well = medians["events_per_second"].notna()
    runs = ["regime", "generator", "evaluator"]
    medians["missing"] = (~ended_well).groupby([medians[name] for name in runs]).transform("sum")
    medians = medians[ended_well]
    if medians.empty:
        raise ExperimentError("there are no finished runs to take plans from")
    run = ["pattern_id", "generator", "evaluator"]
    texts = usual[usual["status"] == OK].drop_duplicates(run)[[*run, "plan"]]
    found = medians.merge(texts, on=run)
    found["cost"] = np.exp(found["log_cost"])
    rng = np.random.default_rng(seed)
    found = found.iloc[rng.permutation(len(found))]
    found = found.drop_duplicates(["pattern_id", "evaluator", "plan"])
    # The first of every stratum, then the second of every one, …
    kinds = ["regime", "plan_kind", "evaluator"]
    strata = [*kinds, "pattern_set", "size"]
    found = found.assign(turn=found.groupby(strata).cumcount()).sort_values("turn", kind="stable")
    chosen = found.groupby(kinds, sort=False).head(plans)
    chosen = chosen.sort_values([*strata, "pattern_id", "generator"])
    chosen = in_order_of(results["regime"].unique(), chosen, "regime")
    columns = ["regime", "pattern_set", "size", "pattern_id", "generator", "plan_kind", "evaluator", "plan",
               "log_cost", "cost", *_POINT_METRICS, "missing"]  # fmt: skip
    return chosen[columns].reset_index(drop=True)


def latency_points(
    results: pd.DataFrame, *, seed: int = 0, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Throughput and measured latency of each generator at each weight of latency.

    Averages of throughput are over the patterns of a regime on which all runs ended well, of
    latency, which only a match has, over those of them that have matches.

    One row a regime, generator, weight and statistic: ``regime``, ``generator``, ``plan_kind``,
    ``evaluator``, ``alpha``, ``statistic`` (mean, as in the paper; geometric mean; median),
    ``throughput`` (events per second) and ``latency`` (seconds, of a pattern's mean), each with
    ``…_low``, ``…_high`` and ``…_patterns``; and, of throughput, ``patterns``, ``left_out`` and
    ``missing``, see :func:`cepbench.experiments.analysis.averages.averages`.

    Source: [kolchinsky2018]_, section 6.3, Figure 8.
    """
    metrics = {"throughput": "events_per_second", "latency": "latency_mean"}
    observed = per_pattern(results, [*metrics.values()], [*RUN, "regime"])
    observed = only_finite(observed, metrics.values())
    run = ["generator", "plan_kind", "evaluator", "alpha"]
    wanted = dict.fromkeys(metrics.values(), _AVERAGES)
    long = averages(groups_of(observed, ["regime"]), run, wanted, seed=seed, resamples=resamples)
    throughput, latency = (
        long[long["metric"] == metric]
        .drop(columns="metric")
        .rename(columns={"value": name, "low": f"{name}_low", "high": f"{name}_high"})
        .rename(columns={"patterns": f"{name}_patterns"})
        for name, metric in metrics.items()
    )
    found = throughput.merge(
        latency.drop(columns=["left_out", "missing"]), on=["regime", *run, "statistic"], how="left"
    )
    columns = [f"{name}{end}" for name in metrics for end in ("", "_low", "_high", "_patterns")]
    found = found.assign(patterns=found["throughput_patterns"])
    return found[["regime", *run, "statistic", *columns, "patterns", "left_out", "missing"]]


def joins_after_last_event(results: pd.DataFrame) -> pd.DataFrame:
    """Number of joins from the last event of a sequence to the root of its plan.

    Patterns are sequences of plain variables, whose last one is the last of the plan's names in
    alphabetical order. The mean over plans that ran, one row per ``regime`` and ``generator``, one
    column per weight of latency; an order counts as its left-deep tree.
    """
    columns = ["regime", "pattern_id", "generator", "plan_kind", "alpha", "plan"]
    plans = results.loc[results["status"] == OK, columns].drop_duplicates()
    joins = [_joins_above_last(*row) for row in zip(plans["plan_kind"], plans["plan"], strict=True)]
    return plans.assign(joins=joins).pivot_table(
        index=["regime", "generator"], columns="alpha", values="joins", sort=False
    )


def _joins_above_last(kind: str, plan: str) -> int:
    names = re.findall(r"\w+", plan)
    if kind == "order":
        return len(names) - max(1, names.index(max(names)))
    before = plan[: plan.index(max(names))]
    return before.count("(") - before.count(")")


_AVERAGES = {"mean": MEAN, "geometric mean": GEOMETRIC_MEAN, "median": MEDIAN}


def with_load(table: pd.DataFrame, results: pd.DataFrame) -> pd.DataFrame:
    """A table of results whose regimes are named with the work of their plans, for headings of panels.

    ``regime`` is such as ``dense (150 patterns): 12 PM per event``, with the engine if there are
    several: the median over patterns of the median of all plans' partial matches, the bounds of
    runs at the limit included. A table without regimes is returned as it is.
    """
    if "regime" not in table:
        return table
    metric = "partial_matches_per_event"
    plans = per_pattern(results, [metric], [*RUN, "regime"], bounds=True)
    plans = plans.assign(engine=engines_of(plans))
    of_patterns = plans.groupby(["regime", "engine", "pattern_id"], sort=False)[metric].median()
    loads = of_patterns.groupby(["regime", "engine"], sort=False).agg(["median", "size"])
    several = plans["engine"].nunique() > 1
    names = {
        (regime, engine): f"{f'{regime}, {engine}' if several else regime} "
        f"({patterns:.0f} patterns): {load:.2g} PM per event"
        for (regime, engine), (load, patterns) in zip(loads.index, loads.to_numpy(), strict=True)
    }
    keys = zip(table["regime"], engines_of(table), strict=True)
    return table.assign(regime=[names[key] for key in keys])
