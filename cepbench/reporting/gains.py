"""How many times better each plan generator is than the native one of its kind, pattern by pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cepbench.experiments.summary import paired_ratios, per_pattern

#: Kind of plan -> what ratios are taken to: the native algorithms of [kolchinsky2018]_, section 6.
BASELINES: Mapping[str, str] = {"order": "EFREQ", "tree": "ZSTREAM"}


def gains_over_native(
    results: pd.DataFrame,
    metric: str,
    by: Sequence[str] = ("pattern_set", "size"),
    *,
    baselines: Mapping[str, str] = BASELINES,
    seed: int = 0,
) -> pd.DataFrame:
    """Ratios of every generator to the native one of its kind, paired per pattern.

    Parameters
    ----------
    results : DataFrame
        As :func:`cepbench.experiments.store.read_results` returns it.
    metric : str
    by : sequence of str
        As in :func:`cepbench.experiments.summary.paired_ratios`.
    baselines : mapping of str to str
        Kind of plan -> generator; a kind whose baseline did not run is left out.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        In the shape that charts take: ``by``, ``algorithm``, ``plans``, ``evaluator``, ``metric``,
        ``statistic`` (``ratio``: a geometric mean over patterns), ``value``, ``low``, ``high``,
        ``patterns``, ``left_out``.
    """
    runs = results[["algorithm", "plans", "evaluator"]].drop_duplicates()
    tables = []
    for algorithm, plans, evaluator in runs.itertuples(index=False):
        baseline = baselines.get(plans)
        if baseline is None or baseline not in set(runs["algorithm"]) or baseline == algorithm:
            continue
        ran_in = list(runs.loc[runs["algorithm"] == baseline, "evaluator"])
        ratios = paired_ratios(
            results, metric, algorithm, baseline, by, evaluator=evaluator,
            baseline_evaluator=evaluator if evaluator in ran_in else ran_in[0], seed=seed,
        )  # fmt: skip
        ratios = ratios[ratios["statistic"] == "geometric mean"]
        tables.append(ratios.assign(plans=plans, evaluator=evaluator, statistic="ratio"))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def gains_by_weight(
    results: pd.DataFrame,
    metric: str,
    algorithm: str,
    baseline: str,
    *,
    parts: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """The ratio of two generators among light and among heavy patterns.

    Parameters
    ----------
    results : DataFrame
        As :func:`cepbench.experiments.store.read_results` returns it.
    metric : str
    algorithm, baseline : str
    parts : int
        How many parts of equal size. A pattern's weight is the time per event, the geometric mean
        of both generators: a run that was slow by chance would draw its pattern to one side
        otherwise.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        One row a part, lightest first: ``part``, ``microseconds_per_event`` (median
        weight), ``algorithm``, ``baseline``, ``metric``, ``value``, ``low``, ``high``,
        ``patterns``, ``left_out``. Parts are fewer where there are fewer patterns.
    """
    own = per_pattern(results, ["events_per_second"])
    both = own[own["algorithm"].isin([algorithm, baseline])]
    rates = both.pivot(index="pattern_id", columns="algorithm", values="events_per_second").dropna()
    weight = (1e6 / (rates[algorithm] * rates[baseline]) ** 0.5).sort_values()
    rows = []
    for number, members in enumerate(np.array_split(np.arange(len(weight)), parts), start=1):
        names = weight.index[members]
        if not len(names):
            continue
        part = results[results["pattern_id"].isin(names)]
        ratios = paired_ratios(part, metric, algorithm, baseline, [], seed=seed)
        row = ratios[ratios["statistic"] == "geometric mean"].iloc[0]
        rows.append(
            {
                "part": f"{number} of {parts}",
                "microseconds_per_event": float(weight.iloc[members].median()),
                **row.drop("statistic").to_dict(),
            }
        )
    return pd.DataFrame(rows)
