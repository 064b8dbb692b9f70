"""Gains of plan generators over a baseline, paired per pattern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cepbench.experiments.analysis.averages import Statistic, averages
from cepbench.experiments.analysis.summary import (
    ESTIMATE,
    PATTERN,
    groups_of,
    in_order_of,
    log_ratios,
    paired_ratios,
    per_pattern,
    with_columns,
)

_RATIO = {"ratio": Statistic(np.mean, of_logs=True)}
_COUNT = {"count": Statistic(np.sum, has_interval=False)}
_RUN = ["generator", "plan_kind", "evaluator"]


def gains_over(
    results: pd.DataFrame,
    metric: str,
    baselines: Mapping[str, str],
    by: Sequence[str] = ("pattern_set", "size"),
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Ratios of every generator to the baseline of its kind of plan, paired per pattern.

    All generators of a group are averaged over the same patterns, as in
    :func:`cepbench.experiments.analysis.summary.summarize`. ``baselines`` has the generator of each
    kind of plan; a kind whose baseline did not run is left out.

    ``by`` and the table are those of :func:`cepbench.experiments.analysis.summary.paired_ratios`, with
    the statistic ``ratio`` (a geometric mean over patterns), ``missing``, ``plan_kind`` and
    ``evaluator``.
    """
    runs = results[_RUN].drop_duplicates()
    evaluators = runs.groupby("generator")["evaluator"].agg(list)
    tables = []
    for generator, plan_kind, evaluator in runs.itertuples(index=False):
        baseline = baselines.get(plan_kind)
        if baseline is None or baseline == generator or baseline not in evaluators:
            continue
        ran_in = evaluators[baseline]
        pairs = log_ratios(
            results, metric, generator, baseline, by, run={"evaluator": evaluator},
            baseline_run={"evaluator": evaluator if evaluator in ran_in else ran_in[0]},
        )  # fmt: skip
        tables.append(
            pairs.assign(
                generator=generator, baseline=baseline, plan_kind=plan_kind, evaluator=evaluator
            )
        )
    if not tables:
        return pd.DataFrame()
    # Strategies and weights of latency stand side by side in a chart, as generators do.
    side_by_side = [*_RUN, *(name for name in by if name in ("strategy", "alpha"))]
    pairs = pd.concat(tables, ignore_index=True).rename(columns={"log_ratio": metric})
    # Missing where there is no ratio, so that both are averaged over the same patterns.
    pairs["bound"] = pairs["bound"].astype(float).where(pairs[metric].notna())
    both = averages(
        groups_of(pairs, [name for name in by if name not in side_by_side]),
        [*side_by_side, "baseline"], {metric: _RATIO, "bound": _COUNT}, pattern=PATTERN,
        seeded_by=sorted(by, key=lambda name: name == "size"), seed=seed,
    )  # fmt: skip
    found = both[both["metric"] == metric].reset_index(drop=True)
    counts = both.loc[both["metric"] == "bound", "value"]
    found["bounds"] = counts.fillna(0).astype(int).to_numpy()
    columns = [*by, "metric", "generator", "baseline", *ESTIMATE, "bounds", "missing"]
    found = with_columns(found, [*columns, "plan_kind", "evaluator"])
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
    """The ratio of two generators among light and among heavy patterns, in ``parts`` of equal size.

    A pattern's weight is the time per event, the geometric mean of both generators: by one of them
    alone, a run that was slow by chance would bias its part.

    One row a part, lightest first: ``part``, ``microseconds_per_event`` (median weight),
    ``generator``, ``baseline``, ``metric``, ``value``, ``low``, ``high``, ``patterns``, ``left_out``.
    Parts are fewer where there are fewer patterns. Patterns that one of the two did not end well on
    have no weight; if there are any, a last row without a ratio counts them.
    """
    own = per_pattern(results, ["events_per_second"])
    both = own[own["generator"].isin([generator, baseline])]
    every = both.pivot(index="pattern_id", columns="generator", values="events_per_second")
    rates = every.dropna()
    weight = (1e6 / (rates[generator] * rates[baseline]) ** 0.5).sort_values()
    rows = []
    for number, members in enumerate(np.array_split(np.arange(len(weight)), parts), start=1):
        if len(members):
            part = results[results["pattern_id"].isin(weight.index[members])]
            ratios = paired_ratios(part, metric, generator, baseline, [], seed=seed)
            row = ratios[ratios["statistic"] == "geometric mean"].iloc[0].drop("statistic")
            median = float(weight.iloc[members].median())
            part_name = {"part": f"{number} of {parts}", "microseconds_per_event": median}
            rows.append({**part_name, **row})
    if len(every) > len(rates):
        named = {"metric": metric, "generator": generator, "baseline": baseline}
        left_out = {"patterns": 0, "left_out": len(every) - len(rates)}
        rows.append({"part": "of unknown weight", **named, **left_out})
    return pd.DataFrame(rows)
