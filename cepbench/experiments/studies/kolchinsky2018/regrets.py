"""Distributions of regrets of plans made from wrong statistics; which generators are robust.

Summarises the tables of :mod:`cepbench.experiments.studies.kolchinsky2018.robustness`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cepbench.experiments.analysis.averages import RESAMPLES, Statistic, averages
from cepbench.experiments.analysis.common_patterns import only_finite

#: The statistics of a distribution, in rising order.
DISTRIBUTION = ("median", "90th percentile", "worst case")

#: A generator is robust against a factor if nine of ten of its plans have at most this regret.
ROBUST = 2.0

#: Means within this ratio are called equally near.
EQUAL = 1.02

#: A mean distance of at most this is that of a generator whose plans all have the least cost.
EXACT = 1 + 1e-9

_SHARE = 0.9

#: Headings of narrow columns.
_SHORT = {"90th percentile": "90 %", "worst case": "worst"}


def regret_summary(
    table: pd.DataFrame,
    metrics: Sequence[str] = ("regret", "distance"),
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """The distribution of columns that hold ratios over patterns and draws, per generator and factor.

    Of ``planning_regrets`` or ``measured_regrets``, by ``generator``, ``plan_kind`` and ``factor``:
    geometric mean and :data:`DISTRIBUTION`. Draws of a pattern stay together.
    """
    return averages(
        [({}, only_finite(table, metrics))], ["generator", "plan_kind", "factor"],
        dict.fromkeys(metrics, _STATISTICS), seeded_by=["factor"], values=_by_pattern, seed=seed,
        resamples=resamples,
    )  # fmt: skip


def regret_table(
    summary: pd.DataFrame,
    metric: str = "regret",
    statistics: Sequence[str] = DISTRIBUTION,
    *,
    least: float = 2.0,
) -> pd.DataFrame:
    """A row a generator, orders first; statistics of each factor from ``least`` on as columns.

    Of :func:`regret_summary`, in which factor 1 is that of the plans from the right numbers. With
    one statistic alone the columns are the factors. Indexed by kind of plan and generator, named
    ``plans`` and ``generator``; column labels are texts, ready to be shown.
    """
    chosen = summary[
        (summary["metric"] == metric)
        & (summary["factor"] >= least)
        & summary["statistic"].isin(list(statistics))
    ]
    wide = chosen.pivot(
        index=["plan_kind", "generator"], columns=["factor", "statistic"], values="value"
    )
    named = (
        chosen[["plan_kind", "generator"]].drop_duplicates().sort_values("plan_kind", kind="stable")
    )
    shown = pd.MultiIndex.from_frame(named, names=["plans", "generator"])
    pairs = [(f, name) for f in sorted(set(chosen["factor"])) for name in statistics]
    table = wide.reindex(index=shown, columns=pairs)
    labels = [(f"{factor:g}", _SHORT.get(name, name)) for factor, name in pairs]
    table.columns = pd.MultiIndex.from_tuples(labels, names=["wrong by up to", ""])
    return table if len(statistics) > 1 else table.droplevel(1, axis=1)


def conclusions(summary: pd.DataFrame) -> list[str]:
    """Sentences in Markdown from the metrics ``regret`` and ``distance``: which generators are robust.

    A generator is called robust against a factor if its regret is at most :data:`ROBUST` for nine
    of ten plans. A robust generator need not be good, so the distance of its plans from the least
    cost is stated, too.
    """
    sentences = []
    for kind, every in summary.groupby("plan_kind", sort=False):
        part, found = _of_common_patterns(every)
        usual = _by_factor(part, "regret", "90th percentile")
        worst = _by_factor(part, "regret", "worst case")
        far = _by_factor(part, "distance", "geometric mean")
        factors = _wrong_factors(part)
        fixed = worst.index[(worst[factors] == 1).all(axis="columns")].tolist()
        if fixed and factors:
            found.append(
                f"{_listed(fixed)}: the same plan whatever the numbers, so nothing to regret, "
                "however far from the best it is."
            )
        for factor in factors:
            regrets = usual[factor].drop(fixed).dropna()
            if len(regrets):
                largest = str(worst[factor][regrets.index].idxmax())
                found.append(
                    f"Numbers wrong by up to {factor:g}: {_robust(regrets)} The most regrettable "
                    f"plan, by {largest}, costs {worst.at[largest, factor]:.3g} times as much."
                )
        found += _nearest(far, factors) + _still_better(far, factors, fixed)
        sentences += [f"**{str(kind).capitalize()} plans.** {each}" for each in found]
    return sentences


def measured_conclusions(summary: pd.DataFrame) -> list[str]:
    """Sentences in Markdown on how plans from wrong statistics ran.

    From the metrics ``regret``, ``slowdown`` and ``more_partial_matches`` of measured regrets.
    """
    sentences = []
    for kind, part in summary.groupby("plan_kind", sort=False):
        metrics = ("regret", "slowdown", "more_partial_matches")
        usual = {metric: _by_factor(part, metric, "90th percentile") for metric in metrics}
        for factor in _wrong_factors(part):
            known = {metric: table[factor].dropna() for metric, table in usual.items()}
            if all(len(values) for values in known.values()):
                at = {metric: (values.idxmax(), values.max()) for metric, values in known.items()}
                sentences.append(
                    f"**{str(kind).capitalize()} plans.** Numbers wrong by up to {factor:g}: at the "
                    "90th percentile and for the generator that it hits most, runs were "
                    f"{at['slowdown'][1]:.3g} times slower ({at['slowdown'][0]}), with "
                    f"{at['more_partial_matches'][1]:.3g} times the partial matches "
                    f"({at['more_partial_matches'][0]}), where costs had a regret of "
                    f"{at['regret'][1]:.3g} ({at['regret'][0]})."
                )
    return sentences


def _by_pattern(group: pd.DataFrame, metric: str) -> np.ndarray:
    """A row a pattern, a column a draw, NaN for what is missing; far quicker than a pivot."""
    row, patterns = pd.factorize(group["pattern_id"], sort=True)
    column, draws = pd.factorize(group["draw"], sort=True)
    values = np.full((len(patterns), len(draws)), np.nan)
    values[row, column] = group[metric].to_numpy(float)
    return values


def _of_common_patterns(part: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """The rows of generators that are compared, and sentences on the patterns left out."""
    own = part[part["metric"] == "regret"].groupby("generator", sort=False)
    counts = own.agg({"patterns": "min", "left_out": "max", "missing": "max"})
    compared = counts[counts["patterns"] > 0]
    found = []
    if counts["missing"].any():
        every = int((counts["patterns"] + counts["left_out"]).max())
        texts = [f"{name} {count}" for name, count in counts["missing"].items() if count]
        found.append(
            f"Over {compared['patterns'].max() if len(compared) else 0} of {every} patterns, those "
            f"that all generators compared have plans for; plans are missing of {_listed(texts)}."
        )
    others = counts.index[counts["patterns"] == 0].tolist()
    if others:
        found.append(f"Not compared, for lack of plans for most patterns: {_listed(others)}.")
    return part[part["generator"].isin(compared.index)], found


def _robust(regrets: pd.Series) -> str:
    rising = regrets.sort_values(kind="stable")
    named = [f"{name} ({value:.3g})" for name, value in rising.items()]
    robust = int((rising <= ROBUST).sum())
    if 0 < robust < len(named):
        return f"robust are {_listed(named[:robust])}, and not {_listed(named[robust:])}."
    lowest, highest = (f"{rising.iloc[end]:.3g} ({rising.index[end]})" for end in (0, -1))
    which = "all generators are robust" if robust else "no generator is robust"
    return f"{which}, with regrets at the 90th percentile of {lowest} to {highest}."


def _nearest(far: pd.DataFrame, factors: Sequence[float]) -> list[str]:
    """Which generators to take when numbers are wrong."""
    chosen = []
    for factor in factors:
        known = far[factor].dropna()
        if len(known):
            equal = known.index[known <= known.min() * EQUAL].tolist()
            chosen.append(f"{factor:g}: {_listed(equal)} ({known.min():.3g})")
    if not chosen:
        return []
    return [
        "Nearest to the least cost, by the geometric mean of the distance and within "
        f"{EQUAL - 1:.0%} of each other, at {'; '.join(chosen)}."
    ]


def _still_better(far: pd.DataFrame, factors: Sequence[float], fixed: Sequence[str]) -> list[str]:
    """Up to which errors an exact search pays, against others that know the right numbers."""
    right = far.get(1.0, pd.Series(dtype=float)).dropna()
    exact = right.index[right <= EXACT].tolist()
    if not exact:
        return []
    name = exact[0]
    others = right.drop(fixed, errors="ignore")
    texts = []
    for factor in factors:
        beaten = others.index[others > far.at[name, factor]].tolist()
        texts.append(f"{factor:g}: {_listed(beaten) if beaten else 'none'}")
    return [
        f"{name}'s plans from wrong numbers still cost less, by the same mean, than those from the "
        f"right numbers of, at {'; '.join(texts)}."
    ]


def _wrong_factors(part: pd.DataFrame) -> list[float]:
    return sorted({float(factor) for factor in part["factor"] if factor > 1})


def _by_factor(part: pd.DataFrame, metric: str, statistic: str) -> pd.DataFrame:
    """Finite values, generators in rows as in the summary, factors in rising columns."""
    chosen = part[(part["metric"] == metric) & (part["statistic"] == statistic)]
    wide = chosen.pivot(index="generator", columns="factor", values="value")
    wide = wide.reindex(index=chosen["generator"].unique(), columns=sorted(set(part["factor"])))
    return wide.where(np.isfinite(wide))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]


def _flat(values: np.ndarray, axis: int | None) -> np.ndarray:
    """Draws of a pattern beside each other; of resamples, shape (resamples, patterns · draws)."""
    return values.ravel() if axis is None else values.reshape(len(values), -1)


def _percentile(share: float) -> Callable[..., Any]:
    def at(values: np.ndarray, axis: int | None = None) -> Any:
        # Several times quicker than np.quantile, which gives the same.
        rising = np.sort(_flat(values, axis), axis=-1)
        last = rising.shape[-1] - 1
        below, part = divmod(share * last, 1)
        low, high = rising[..., int(below)], rising[..., min(int(below) + 1, last)]
        return low + (high - low) * part

    return at


def _geometric_mean(values: np.ndarray, axis: int | None = None) -> Any:
    return np.exp(np.log(_flat(values, axis)).mean(axis=axis))


_STATISTICS = {
    "geometric mean": Statistic(_geometric_mean),
    "median": Statistic(_percentile(0.5)),
    "90th percentile": Statistic(_percentile(_SHARE)),
    "worst case": Statistic(_percentile(1.0), has_interval=False),
}
