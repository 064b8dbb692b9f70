"""Sentences for the front page from the notebooks that go beyond [kolchinsky2018]_.

Each is empty where the table does not hold what it needs.
"""

from __future__ import annotations

from typing import Any

import pandas as pd


def closest_generators(table: pd.DataFrame) -> str:
    """Of the generators that planned the largest patterns the closest one of each kind.

    Parameters
    ----------
    table : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.distances.distance_table` returns it.
    """
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
    """What nine of ten plans of dynamic programming cost, planned from wrong numbers.

    Parameters
    ----------
    table : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.regrets.regret_summary` returns it.
    factor : float
        By up to which the numbers are wrong.
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
    """Q-errors of the paper's estimates beside those of the most exact cost model.

    Parameters
    ----------
    table : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.q_error_tables.q_error_summary` returns it.
    """
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


def gain_of_choosing(table: pd.DataFrame, comparison: str = "DP-LD / EFREQ") -> str:
    """How much more throughput the best order has, where there are few and where many partial matches.

    Parameters
    ----------
    table : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.gain_map.gains_by_class` returns it.
    comparison : str
    """
    own = table[(table["metric"] == "events_per_second") & (table["comparison"] == comparison)]
    own = own[own["engine"] == own["engine"].iloc[0]] if len(own) else own
    if len(own) < 2:
        return ""
    named = [
        f"{value:.2g} ({label})" for value, label in zip(own["value"], own["class"], strict=True)
    ]
    return (
        f"By expected partial matches per event, {comparison} in throughput is "
        f"{', '.join(named[:-1])} and {named[-1]}."
    )
