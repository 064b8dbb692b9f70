"""What the ledger's checks measure: one number each, with an interval over patterns.

Everything is computed on logarithms of values per pattern, so a ratio is a geometric mean of
ratios on single patterns, and a cost far beyond the largest float still counts. A pattern on which
one of the runs in question did not end well is left out of the check, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cepbench.analysis.cost_fit import cost_fit
from cepbench.analysis.summary import CONFIDENCE, RESAMPLES
from cepbench.sweeps.cells import OK

#: Resampling fewer patterns than this says nothing about others.
FEWEST = 5

#: Two plans whose logarithmic costs differ by less than this cost the same.
_SAME_COST = 1e-9

#: Kinds that read a table of plans, as Figure 6 shows them, and not one of runs.
_OF_PLANS = ("exponent", "rank_correlation")

_KEY = ["pattern_set", "size", "pattern_id"]
_VARIANT = ["generator", "strategy", "alpha"]
_TAKE: dict[str, Callable[..., Any]] = {
    "lowest": np.nanmin,
    "median": np.nanmedian,
    "highest": np.nanmax,
}


def _log(table: pd.DataFrame, column: str) -> np.ndarray:
    values = pd.to_numeric(table[column]).astype("Float64").to_numpy(float, na_value=np.nan)
    return np.log(values, out=np.full(len(values), np.nan), where=values > 0)


def _log_cost(table: pd.DataFrame) -> np.ndarray:
    return pd.to_numeric(table["plan_log_cost"]).to_numpy(float)


#: Metrics that are no column: name -> columns needed, and the logarithm of the metric.
DERIVED: dict[str, tuple[tuple[str, ...], Callable[[pd.DataFrame], np.ndarray]]] = {
    # Of the whole stream, whose length all patterns share: only the time is left.
    "stream_throughput": (("seconds",), lambda table: -_log(table, "seconds")),
    "plan_cost": (("plan_log_cost",), _log_cost),
    "plan_cost_times_seconds": (
        ("plan_log_cost", "plan_seconds"),
        lambda table: _log_cost(table) + _log(table, "plan_seconds"),
    ),
    "events_per_second_by_latency": (
        ("events_per_second", "latency_mean"),
        lambda table: _log(table, "events_per_second") - _log(table, "latency_mean"),
    ),
}


@dataclass(frozen=True, slots=True)
class Selection:
    """Which runs are one side of a ratio; None takes whatever there is."""

    generators: tuple[str, ...]
    alpha: float | None = None
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """How a claim is measured.

    Attributes
    ----------
    kind : str
        A key of :data:`KINDS`.
    metric : str
        A numeric column of the results or a key of :data:`DERIVED`.
    over, under : Selection
        The two sides of a ratio; ``under`` is None where there is only one side.
    than : (Selection, Selection) or None
        A second ratio, by which the first is divided.
    pattern_sets, sizes : tuple
        Empty: all that were measured. Every named set must be there, and one of the sizes.
    needed_sizes : tuple of int
        Sizes that must all be there.
    across : str
        ``pattern_set``, ``size`` or ``generator``: one number for each, and ``take`` says which
        one counts. Empty: one number for all together.
    take : str
        ``lowest``, ``median`` or ``highest``.
    """

    kind: str
    metric: str
    over: Selection
    under: Selection | None = None
    than: tuple[Selection, Selection] | None = None
    pattern_sets: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    needed_sizes: tuple[int, ...] = ()
    across: str = ""
    take: str = "median"


@dataclass(frozen=True, slots=True)
class Measured:
    """The outcome of a check.

    Attributes
    ----------
    value, low, high : float
        NaN if ``problem`` says why there are none.
    patterns : int
        How many went into the number.
    left_out : int
        How many did not, because a run on them did not end well.
    problem : str
        Why nothing was measured; empty otherwise.
    """

    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    patterns: int = 0
    left_out: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Bootstrap:
    """How an interval is made."""

    seed: int
    resamples: int


@dataclass(frozen=True, slots=True)
class _Sample:
    """Patterns in rows: their sizes and sets, and the columns that a check averages."""

    columns: np.ndarray
    sizes: np.ndarray
    sets: np.ndarray
    left_out: int = 0


def measure(
    check: Check, table: pd.DataFrame | None, *, seed: int = 0, resamples: int = RESAMPLES
) -> Measured:
    """Measure one number.

    Parameters
    ----------
    check : Check
    table : DataFrame or None
        Columns ``size``, ``pattern_id``, ``generator`` and the metric's; ``pattern_set``,
        ``strategy``, ``alpha``, ``status`` and repetitions where there are any. For a fit, as
        :func:`cepbench.studies.kolchinsky2018.figure_data.cost_points` returns it. None: not measured.
    seed : int
        Of the bootstrap.
    resamples : int
        Of the bootstrap.
    """
    if table is None:
        return Measured(problem="its notebook did not run")
    missing = [name for name in _columns_of(check) if name not in table]
    if missing:
        return Measured(problem=f"the results have no column {missing[0]}")
    how = _Bootstrap(seed, resamples)
    if check.kind in _OF_PLANS:
        return KINDS[check.kind](check, table, how)
    logs = _logs(table, check)
    problem = _what_is_missing(logs, check)
    return Measured(problem=problem) if problem else KINDS[check.kind](check, logs, how)


def _columns_of(check: Check) -> tuple[str, ...]:
    own = DERIVED[check.metric][0] if check.metric in DERIVED else (check.metric,)
    return (*own, "log_cost") if check.kind in _OF_PLANS else own


def _logs(table: pd.DataFrame, check: Check) -> pd.DataFrame:
    """One row a pattern and variant: medians of the logarithm over repetitions."""
    plain = pd.DataFrame({"size": table["size"].astype(int), "pattern_id": table["pattern_id"]})
    plain["generator"] = table["generator"]
    for name, default in (("pattern_set", ""), ("strategy", "any"), ("alpha", 0.0)):
        plain[name] = table.get(name, default)
    if check.metric in DERIVED:
        plain["log"] = DERIVED[check.metric][1](table)
    else:
        plain["log"] = _log(table, check.metric)
    if check.pattern_sets:
        plain = plain[plain["pattern_set"].isin(check.pattern_sets)]
    if check.sizes:
        plain = plain[plain["size"].isin(check.sizes)]
    if "status" in table:
        plain = plain.assign(log=plain["log"].where(table["status"] == OK))
    # One repetition that did not end well makes the whole cell one that did not.
    cells = plain.groupby([*_KEY, *_VARIANT], sort=False)
    medians = cells["log"].median().where(cells["log"].count() == cells.size())
    return medians.rename("log").reset_index()


def _what_is_missing(logs: pd.DataFrame, check: Check) -> str:
    if logs.empty:
        return "no such patterns were measured"
    for name in check.pattern_sets:
        if name not in set(logs["pattern_set"]):
            return f"pattern set {name} was not measured"
    for selection in (check.over, check.under, *(check.than or ())):
        if selection is None:
            continue
        own = _selected(logs, selection)
        for generator in selection.generators:
            if generator not in set(own["generator"]):
                with_what = "" if selection.alpha is None else f" with α = {selection.alpha:g}"
                under = "" if selection.strategy is None else f" under {selection.strategy}"
                return f"{generator} was not measured{with_what}{under}"
        there = set(own.loc[own["log"].notna(), "size"])
        for size in check.needed_sizes:
            if size not in there:
                return f"size {size} was not measured with {' and '.join(selection.generators)}"
    return ""


def _selected(logs: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    own = logs[logs["generator"].isin(selection.generators)]
    if selection.alpha is not None:
        own = own[own["alpha"] == selection.alpha]
    if selection.strategy is not None:
        own = own[own["strategy"] == selection.strategy]
    return own


def _wide(logs: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    """Patterns in rows; a column an algorithm, its mean over strategies and α that were not fixed."""
    own = _selected(logs, selection)
    wide = own.set_index([*_KEY, *_VARIANT])["log"].unstack(_VARIANT)
    names = wide.columns.get_level_values("generator")
    return pd.DataFrame(
        {
            name: wide.loc[:, names == name].mean(axis=1, skipna=False)
            for name in selection.generators
        }
    )


def _sample(check: Check, logs: pd.DataFrame) -> _Sample:
    """The logarithmic ratio of every pattern; several columns if it is taken across algorithms."""
    columns = _ratio(logs, check.over, check.under, each=check.across == "generator")
    if check.than is not None:
        other = _ratio(logs, *check.than, each=False).reindex(columns.index)
        columns = columns.sub(other.iloc[:, 0], axis="index")
    return _usable(columns)


def _ratio(
    logs: pd.DataFrame, over: Selection, under: Selection | None, *, each: bool
) -> pd.DataFrame:
    above = _wide(logs, over)
    if under is None:
        return above if each else above.mean(axis="columns", skipna=False).to_frame()
    below = _wide(logs, under).reindex(above.index)
    if each and over.generators == under.generators:
        return above - below
    mean = above.mean(axis="columns", skipna=False)
    if each:
        return -below.sub(mean, axis="index")
    return (mean - below.mean(axis="columns", skipna=False)).to_frame()


def _usable(columns: pd.DataFrame) -> _Sample:
    whole = columns.dropna()
    return _Sample(
        columns=whole.to_numpy(float),
        sizes=whole.index.get_level_values("size").to_numpy(int),
        sets=pd.factorize(whole.index.get_level_values("pattern_set"))[0],
        left_out=len(columns) - len(whole),
    )


def _estimated(
    sample: _Sample, estimate: Callable[[np.ndarray], float], how: _Bootstrap
) -> Measured:
    """The estimate on all rows, and its percentile bootstrap over rows."""
    count = len(sample.columns)
    if count < FEWEST:
        return _too_few(count, sample.left_out)
    if sample.left_out > count:
        return Measured(
            patterns=count, left_out=sample.left_out,
            problem=f"{sample.left_out} patterns were left out, more than the {count} that count",
        )  # fmt: skip
    rng = np.random.default_rng(how.seed)
    everything = np.arange(count)
    value = estimate(everything)
    resampled = [estimate(rng.integers(count, size=count)) for _ in range(how.resamples)]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(resampled, [tail, 1 - tail])
    return Measured(float(value), float(low), float(high), count, sample.left_out)


def _ratio_check(check: Check, logs: pd.DataFrame, how: _Bootstrap) -> Measured:
    """Geometric mean over patterns of one metric's ratio between two groups of runs."""
    sample = _sample(check, logs)
    groups = {"pattern_set": sample.sets, "size": sample.sizes}.get(check.across)
    take = _TAKE[check.take]

    def estimate(rows: np.ndarray) -> float:
        values = sample.columns[rows]
        if groups is None:
            return float(np.exp(take(values.mean(axis=0))))
        own = groups[rows]
        means = [values[own == group].mean() for group in np.unique(own)]
        return float(np.exp(take(means)))

    return _estimated(sample, estimate, how)


def _trend_check(check: Check, logs: pd.DataFrame, how: _Bootstrap) -> Measured:
    """Factor by which a metric, or a ratio, changes with every further event of the pattern."""
    sample = _sample(check, logs)
    if len(np.unique(sample.sizes)) < 2:
        return Measured(left_out=sample.left_out, problem="fewer than two sizes were measured")
    take = _TAKE[check.take]

    def estimate(rows: np.ndarray) -> float:
        sizes, sets = sample.sizes[rows].astype(float), sample.sets[rows]
        values = sample.columns[rows]
        for which in np.unique(sets):  # a set's level is no trend
            own = sets == which
            sizes[own] -= sizes[own].mean()
            values[own] -= values[own].mean(axis=0)
        spread = sizes @ sizes
        return float(np.exp(take(sizes @ values / spread))) if spread else float("nan")

    return _estimated(sample, estimate, how)


def _share_check(check: Check, logs: pd.DataFrame, how: _Bootstrap) -> Measured:
    """Share of plans in ``over`` whose metric is that of the plan in ``under``."""
    assert check.under is not None
    above, below = _wide(logs, check.over), _wide(logs, check.under)
    apart = above.sub(below.reindex(above.index).iloc[:, 0], axis="index")
    sample = _usable(apart)
    equal = np.abs(sample.columns) < _SAME_COST
    return _estimated(sample, lambda rows: float(equal[rows].mean()), how)


def _maximum_check(check: Check, logs: pd.DataFrame, how: _Bootstrap) -> Measured:
    """The largest value of all; without bound from above where a run did not end."""
    values = _wide(logs, check.over)
    if values.notna().to_numpy().sum() == 0:
        return Measured(left_out=len(values), problem="no run ended")
    largest = float(np.exp(np.nanmax(values.to_numpy())))
    whole = values.notna().all(axis="columns")
    unknown = int((~whole).sum())
    high = float("inf") if unknown else largest
    return Measured(largest, largest, high, int(whole.sum()), unknown)


def _fit_check(check: Check, table: pd.DataFrame, how: _Bootstrap) -> Measured:
    """Power law or rank correlation of the plans' cost and a metric, as Figure 6 has them."""
    points = table[table["generator"].isin(check.over.generators)]
    if points.empty:
        return Measured(problem=f"no plan of {check.over.generators[0]} was measured")
    fit = cost_fit(
        points.assign(plan_kind="all"), check.metric, seed=how.seed, resamples=how.resamples
    ).iloc[0]
    left_out, patterns = int(fit["left_out"]), int(fit["patterns"])
    if patterns < FEWEST:
        return _too_few(patterns, left_out)
    name = "spearman" if check.kind == "rank_correlation" else "exponent"
    value, low, high = (float(fit[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return Measured(value, low, high, patterns, left_out)


def _too_few(patterns: int, left_out: int) -> Measured:
    problem = f"{patterns} patterns, fewer than {FEWEST}"
    return Measured(patterns=patterns, left_out=left_out, problem=problem)


#: Kind of check -> the function that measures it, of logarithms a pattern or, for a fit, of plans.
KINDS: Mapping[str, Callable[[Check, pd.DataFrame, _Bootstrap], Measured]] = {
    "ratio": _ratio_check,
    "ratio_of_ratios": _ratio_check,
    "trend": _trend_check,
    "share_equal": _share_check,
    "maximum": _maximum_check,
    "exponent": _fit_check,
    "rank_correlation": _fit_check,
}

#: Kind of check -> what its number is.
WORDS: Mapping[str, str] = {
    "ratio": "geometric mean of ratios",
    "ratio_of_ratios": "ratio of two ratios",
    "trend": "factor per further event",
    "share_equal": "share of plans",
    "maximum": "largest value",
    "exponent": "fitted exponent",
    "rank_correlation": "rank correlation",
}
