"""Sentences for the top of the pages that go beyond [kolchinsky2018]_.

Each is empty where the table does not hold what it needs.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from cepbench.experiments.analysis.settings import by_setting, engines_of


def gain_of_dynamic_programming(ratios: pd.DataFrame) -> str:
    """By how much plans of dynamic programming are cheaper than those of heuristics, from ``cost_ratios``."""
    compared = ratios[ratios["cheaper"].isin(["DP-LD", "DP-B"])]
    if compared.empty:
        return ""
    pairs = compared.groupby(["cheaper", "than"], sort=False)["ratio_of_means"]
    named = [
        f"by {row.cheaper} are up to {row.ratio_of_means:.3g} times cheaper than {row.than}'s "
        f"({row.regime}, {row.predicates} predicates, {row.at_size} events)"
        for row in compared.loc[pairs.idxmax()].itertuples()
    ]
    means = compared["geometric_mean"]
    return (
        "On one cost scale, in arithmetic means of normalized costs as the paper has them, plans "
        f"{', '.join(named)}; in geometric means over the patterns of a workload "
        f"{means.min():.3g} to {means.max():.3g} times."
    )


def growth_of_costs(growth: pd.DataFrame) -> str:
    """By which factors plans of DP-B get dearer with each further event, from ``cost_growth``."""
    own = growth[growth["generator"] == "DP-B"]
    if own.empty:
        return ""
    named = [f"{row.factor:.3g} ({row.regime}, {row.predicates})" for row in own.itertuples()]
    return f"With each further event the cost of DP-B's plans grows by {', '.join(named)}."


def greedy_against_zstream(ratios: pd.DataFrame) -> str:
    """In which workloads GREEDY's plans are significantly cheaper or dearer than ZSTREAM's, by
    ``cost_ratios``.
    """
    own = ratios[(ratios["cheaper"] == "GREEDY") & (ratios["than"] == "ZSTREAM")]
    if own.empty:
        return ""
    sides = {
        "cheaper": own[own["low"] > 1],
        "dearer": own[own["high"] < 1],
        "not significantly different": own[(own["low"] <= 1) & (own["high"] >= 1)],
    }
    named = [
        f"{side}: "
        + ", ".join(
            f"{row.regime}, {row.predicates} ({row.geometric_mean:.3g} times)"
            for row in part.itertuples()
        )
        for side, part in sides.items()
        if len(part)
    ]
    return f"GREEDY's plans beside ZSTREAM's, geometric means: {'; '.join(named)}."


def closest_generators(table: pd.DataFrame) -> str:
    """Of the generators that planned the largest patterns the closest of each kind, by ``distance_table``."""
    largest = table["largest"].max()
    every = table.groupby(["plan_kind", "generator"])
    # Those that took the largest patterns of all sets, and are compared in all of them.
    reached = (every["largest"].min() == largest) & (every.size() == table["pattern_set"].nunique())
    worst = every["geometric_mean"].max()[
        reached & every["geometric_mean"].count().eq(every.size())
    ]
    best = [worst[plans].idxmin() for plans in ("order", "tree") if plans in worst]
    named = [
        f"{generator} comes within a factor of {worst[plans][generator]:.3f}"
        for plans, generator in zip(("order", "tree"), best, strict=False)
    ]
    if not named:
        return ""
    return (
        f"For patterns of up to {largest:.0f} events, on average over the patterns, "
        f"{' and '.join(named)} of the cheapest plan known of its kind."
    )


def regret_of_wrong_numbers(table: pd.DataFrame, factor: float = 10.0) -> str:
    """What nine of ten plans of dynamic programming cost, planned from numbers wrong by up to a factor.

    The table is that of :func:`cepbench.experiments.studies.kolchinsky2018.regrets.regret_summary`.
    """
    tail = table[
        (table["metric"] == "regret")
        & (table["statistic"] == "90th percentile")
        & (table["factor"] == factor)
        & table["generator"].isin(["DP-LD", "DP-B"])
    ]
    if tail.empty:
        return ""
    values = zip(tail["value"], tail["generator"], strict=True)
    named = [f"{value:.3g} ({generator})" for value, generator in values]
    return (
        f"Planned from rates and selectivities that are wrong by factors of up to {factor:g}, nine "
        f"of ten plans cost at most {' and '.join(named)} times what they would from the right ones."
    )


def errors_of_estimates(table: pd.DataFrame) -> str:
    """Q-errors of the paper's estimates beside those of the most exact cost model, from ``q_error_summary``."""
    own = table[table["pattern_set"] == "sequence"].set_index("model")
    if not {"adjacent", "joint"} <= set(own.index):
        return ""
    paper: Any = own.loc["adjacent"]
    best: Any = own.loc["joint"]
    return (
        f"Half of the paper's estimates of the partial matches in sequences are off by more than a "
        f"factor of {paper['median']:.3g}, one in twenty by more than "
        f"{paper['p95']:.3g}; with the order in time exact and conditions measured "
        f"together by {best['median']:.3g} and {best['p95']:.3g}."
    )


def fall_with_size(summary: pd.DataFrame, pattern_set: str) -> str:
    """By how much throughput falls from the smallest to the largest patterns, by regime and engine."""
    medians = summary[
        (summary["metric"] == "events_per_second")
        & (summary["statistic"] == "median")
        & (summary["pattern_set"] == pattern_set)
        & summary["size"].notna()
    ]
    if "regime" not in medians or medians["size"].nunique() < 2:
        return ""
    small, large = medians["size"].min(), medians["size"].max()
    sentences = []
    several = len(set(engines_of(medians))) > 1
    for setting, rows in by_setting(medians):
        by_run = rows.pivot_table(index=["generator", "evaluator"], columns="size", values="value")
        falls = (by_run[small] / by_run[large]).dropna()
        if len(falls):
            sentences.append(
                f"In the {setting.regime} regime{f', {setting.engine},' if several else ''} the "
                f"median throughput at size {large} is that at size {small} divided by "
                f"{falls.min():.2g} to {falls.max():.2g}."
            )
    return " ".join(sentences)


def gain_of_choosing(table: pd.DataFrame) -> str:
    """How much more throughput the best order has, where there are few and where many partial matches.

    The table is that of
    :func:`cepbench.experiments.studies.kolchinsky2018.gain_map.gains_by_class`.
    """
    comparison = "DP-LD / EFREQ"
    own = table[(table["metric"] == "events_per_second") & (table["comparison"] == comparison)]
    texts = []
    for engine, part in own.groupby("engine", sort=False):
        named = [
            f"{value:.2g} ({label})"
            for value, label in zip(part["value"], part["class"], strict=True)
        ]
        if len(named) > 1:
            texts.append(f"{', '.join(named[:-1])} and {named[-1]}, {engine}")
    if not texts:
        return ""
    return (
        f"By expected partial matches per event, {comparison} in throughput is {'; '.join(texts)}."
    )
