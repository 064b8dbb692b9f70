"""How many times better each plan generator is than the native one of its kind, pattern by pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cepbench.analysis.averages import Statistic, averages
from cepbench.analysis.summary import (
    groups_of,
    in_order_of,
    log_ratios,
    paired_ratios,
    per_pattern,
    typed,
)

#: Kind of plan -> what ratios are taken to: the native methods of [kolchinsky2018]_, section 6.
BASELINES: Mapping[str, str] = {"order": "EFREQ", "tree": "ZSTREAM"}

_RATIO = {"ratio": Statistic(np.mean, of_logs=True)}
_RUN = ["generator", "plan_kind", "evaluator"]
_PATTERN = ["pattern_set", "size", "pattern_id"]


def gains_over_native(
    results: pd.DataFrame,
    metric: str,
    by: Sequence[str] = ("pattern_set", "size"),
    *,
    baselines: Mapping[str, str] = BASELINES,
    seed: int = 0,
) -> pd.DataFrame:
    """Ratios of every generator to the native one of its kind, paired per pattern.

    All generators of a group are averaged over the same patterns, as in
    :func:`cepbench.analysis.summary.summarize`.

    Parameters
    ----------
    results : DataFrame
        As :func:`cepbench.sweeps.store.read_results` returns it.
    metric : str
    by : sequence of str
        As in :func:`cepbench.analysis.summary.paired_ratios`.
    baselines : mapping of str to str
        Kind of plan -> generator; a kind whose baseline did not run is left out.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        In the shape that charts take: ``by``, ``generator``, ``plan_kind``, ``evaluator``, ``metric``,
        ``statistic`` (``ratio``: a geometric mean over patterns), ``value``, ``low``, ``high``,
        ``patterns``, ``left_out``, ``missing``.
    """
    runs = results[["generator", "plan_kind", "evaluator"]].drop_duplicates()
    tables = []
    for generator, plans, evaluator in runs.itertuples(index=False):
        baseline = baselines.get(plans)
        if baseline is None or baseline not in set(runs["generator"]) or baseline == generator:
            continue
        ran_in = list(runs.loc[runs["generator"] == baseline, "evaluator"])
        pairs = log_ratios(
            results, metric, generator, baseline, by, evaluator=evaluator,
            baseline_evaluator=evaluator if evaluator in ran_in else ran_in[0],
        )  # fmt: skip
        named = {"generator": generator, "baseline": baseline, "plan_kind": plans}
        tables.append(pairs.assign(**named, evaluator=evaluator))
    if not tables:
        return pd.DataFrame()
    # Strategies and weights of latency stand side by side in a chart, as generators do.
    side_by_side = [*_RUN, *(name for name in by if name in ("strategy", "alpha"))]
    apart = [name for name in by if name not in side_by_side]
    seeded = [*(name for name in by if name != "size"), *(name for name in by if name == "size")]
    rows = []
    for key, group in groups_of(pd.concat(tables, ignore_index=True), apart):
        rows += averages(
            group.rename(columns={"log_ratio": metric}), [*side_by_side, "baseline"],
            {metric: _RATIO}, group=key, pattern=_PATTERN, seeded_by=seeded, seed=seed,
        )  # fmt: skip
    columns = [*by, "metric", "generator", "baseline", "statistic", "value", "low", "high"]
    found = typed(rows, [*columns, "patterns", "left_out", "missing", "plan_kind", "evaluator"])
    for name in reversed(side_by_side):
        found = in_order_of(results[name].unique(), found, name)
    return found.reset_index(drop=True)


def gains_by_weight(
    results: pd.DataFrame,
    metric: str,
    generator: str,
    baseline: str,
    *,
    parts: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """The ratio of two generators among light and among heavy patterns.

    Parameters
    ----------
    results : DataFrame
        As :func:`cepbench.sweeps.store.read_results` returns it.
    metric : str
    generator, baseline : str
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
        weight), ``generator``, ``baseline``, ``metric``, ``value``, ``low``, ``high``,
        ``patterns``, ``left_out``. Parts are fewer where there are fewer patterns. Patterns that
        one of the two did not end well on have no weight; if there are any, a last row without a
        ratio counts them.
    """
    own = per_pattern(results, ["events_per_second"])
    both = own[own["generator"].isin([generator, baseline])]
    every = both.pivot(index="pattern_id", columns="generator", values="events_per_second")
    rates = every.dropna()
    weight = (1e6 / (rates[generator] * rates[baseline]) ** 0.5).sort_values()
    rows = []
    for number, members in enumerate(np.array_split(np.arange(len(weight)), parts), start=1):
        names = weight.index[members]
        if not len(names):
            continue
        part = results[results["pattern_id"].isin(names)]
        ratios = paired_ratios(part, metric, generator, baseline, [], seed=seed)
        row = ratios[ratios["statistic"] == "geometric mean"].iloc[0]
        rows.append(
            {
                "part": f"{number} of {parts}",
                "microseconds_per_event": float(weight.iloc[members].median()),
                **row.drop("statistic").to_dict(),
            }
        )
    if len(every) > len(rates):
        rows.append(
            {
                "part": "of unknown weight",
                "metric": metric,
                "generator": generator,
                "baseline": baseline,
                "patterns": 0,
                "left_out": len(every) - len(rates),
            }
        )
    return pd.DataFrame(rows)
