"""How many times better each plan generator is than the native one of its kind, pattern by pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from cepbench.experiments.summary import paired_ratios

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
