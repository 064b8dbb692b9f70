"""How much cheaper some plans of large patterns are than others, and how costs grow with the size.

For [kolchinsky2018]_, Figure 7(a), from the table of
:func:`cepbench.experiments.studies.kolchinsky2018.planning.plan_costs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from cepbench.experiments.analysis.averages import RESAMPLES, bootstrap, interval, resampled
from cepbench.experiments.analysis.summary import groups_of
from cepbench.experiments.studies.kolchinsky2018.planning import BASELINE
from cepbench.experiments.sweeps.cells import OK
from cepbench.seeds import rng_for

#: Columns whose values are workloads of their own.
WORKLOAD = ("regime", "predicates")

#: Generators compared by the text on Figure 7(a), the first against the second.
PAIRS = (
    ("DP-LD", "GREEDY"),
    ("DP-B", "ZSTREAM"),
    ("DP-B", "ZSTREAM-ORD"),
    ("GREEDY", "ZSTREAM"),
)


def cost_ratios(
    costs: pd.DataFrame,
    pairs: Sequence[tuple[str, str]] = PAIRS,
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """How many times cheaper the plans of one generator are than those of another.

    The paper averages normalized costs arithmetically, for each generator and size, before it
    compares: such a ratio of averages follows the few patterns on which EFREQ's plan is worst. The
    geometric mean of the ratios of single patterns weighs all alike.

    Costs are those of ``plan_costs``, with the generators of the pairs, those that have no plans
    left out, and EFREQ. A row a workload and pair: ``regime``, ``predicates``, ``cheaper``,
    ``than``; ``geometric_mean`` of cost of ``than`` / cost of ``cheaper`` over the patterns of all
    sizes that both planned, on one scale (Cost_tree), with ``low`` and ``high`` (95 % percentile
    bootstrap over patterns); ``as_printed``, the same with Cost_ord for orders; ``ratio_of_means``
    of normalized costs on one scale, at the size where it is highest, ``at_size``, and at the size
    where it is lowest, ``lowest_ratio``; ``patterns``.

    Source: [kolchinsky2018]_, section 6.3, Figure 7(a).
    """
    rows = []
    for workload, part in groups_of(costs[costs["status"] == OK], WORKLOAD):
        as_trees, as_printed = (
            part.pivot(index=["size", "pattern_id"], columns="generator", values=column)
            for column in ("tree_log_cost", "plan_log_cost")
        )
        for cheaper, than in pairs:
            if not {cheaper, than, BASELINE} <= set(as_trees):
                continue
            own = as_trees[[*dict.fromkeys((cheaper, than, BASELINE))]].dropna()
            logs = (own[than] - own[cheaper]).to_numpy(float)
            rng = rng_for(seed, *workload.values(), cheaper, than)
            low, high = bootstrap(logs, np.mean, rng)
            by_size = _ratios_of_means(own, cheaper, than)
            printed = (as_printed[than] - as_printed[cheaper]).loc[own.index]
            rows.append(
                {
                    **workload,
                    "cheaper": cheaper,
                    "than": than,
                    "geometric_mean": math.exp(logs.mean()),
                    "low": math.exp(low),
                    "high": math.exp(high),
                    "as_printed": math.exp(printed.mean()),
                    "ratio_of_means": by_size.max(),
                    "at_size": by_size.idxmax(),
                    "lowest_ratio": by_size.min(),
                    "patterns": len(own),
                }
            )
    return pd.DataFrame(rows)


def cost_growth(costs: pd.DataFrame, *, seed: int = 0) -> pd.DataFrame:
    """By which factor plans get dearer with each further event.

    Fits ln(Cost_tree) = a + b · size by least squares, for each workload and generator of
    ``plan_costs`` over the patterns that all of its generators planned. A row each: ``regime``,
    ``predicates``, ``generator``, ``factor`` (e^b) with ``low`` and ``high`` (95 % percentile
    bootstrap over the patterns of each size), ``explained`` (share of the variance of the
    logarithms, R²) and ``patterns``. Workloads of fewer than two sizes are left out.

    Source: [kolchinsky2018]_, section 6.3: "the exponential growth of the cost with the pattern
    size".
    """
    rows = []
    for workload, part in groups_of(costs[costs["status"] == OK], WORKLOAD):
        logs = part.pivot(index=["size", "pattern_id"], columns="generator", values="tree_log_cost")
        logs = logs[[*dict.fromkeys(part["generator"])]].dropna()
        sizes = logs.index.get_level_values("size").to_numpy(float)
        if len(np.unique(sizes)) < 2:
            continue
        # Generators share their resamples.
        chosen = resampled(sizes, rng_for(seed, *workload.values()), RESAMPLES)
        for generator in logs:
            own = logs[generator].to_numpy(float)
            low, high = interval(_slopes(sizes, own[chosen]))
            rows.append(
                {
                    **workload,
                    "generator": generator,
                    "factor": math.exp(float(_slopes(sizes, own))),
                    "low": math.exp(low),
                    "high": math.exp(high),
                    "explained": _explained(sizes, own),
                    "patterns": len(own),
                }
            )
    return pd.DataFrame(rows)


def _ratios_of_means(logs: pd.DataFrame, cheaper: str, than: str) -> pd.Series:
    """Of normalized costs, by size."""
    normalized = logs.rsub(logs[BASELINE], axis=0).transform(np.exp)
    means = normalized.groupby(level="size").mean()
    return means[cheaper] / means[than]


def _explained(sizes: np.ndarray, logs: np.ndarray) -> float:
    """R² of the regression line; NaN for equal logs."""
    return float(np.corrcoef(sizes, logs)[0, 1] ** 2) if np.ptp(logs) else math.nan


def _slopes(sizes: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Slopes of regression lines over sizes, shape (n,), of logs, shape (..., n); shape (...)."""
    centred = sizes - sizes.mean()
    return np.asarray(logs @ centred / (centred @ centred))
