"""Checks of a ledger: one number each, with an interval over patterns.

A kind of check is registered by :func:`check_kind`, also those that only one study needs.
Everything is computed on logarithms of values per pattern, so a ratio is a geometric mean of
ratios on single patterns, and a cost beyond the largest float still counts.

A run at the limit of partial matches is known to be at least so slow: its ratio to one that ended
well is a bound, which counts, since leaving it out drops the patterns on which plans differ most.
A pattern on which both sides are at the limit, or a run failed, is left out and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.averages import CONFIDENCE, RESAMPLES, median, resampled
from cepbench.experiments.analysis.cost_fit import cost_fit
from cepbench.experiments.sweeps.cells import LIMIT, METRICS, OK

#: Resampling fewer patterns than this says nothing about others.
FEWEST = 5

#: Resamples whose values are in memory at the same time.
_BATCH = 200

#: Two plans whose logarithmic costs differ by less than this cost the same.
_SAME_COST = 1e-9

_KEY = ["pattern_set", "size", "pattern_id"]
_VARIANT = ["generator", "strategy", "alpha"]
_TAKE: dict[str, Callable[..., Any]] = {
    "lowest": np.nanmin,
    "median": np.nanmedian,
    "highest": np.nanmax,
}


def _column(table: pd.DataFrame, name: str) -> np.ndarray:
    return table[name].to_numpy(float, na_value=np.nan)


def _log(table: pd.DataFrame, column: str) -> np.ndarray:
    values = _column(table, column)
    return np.log(values, out=np.full(len(values), np.nan), where=values > 0)


def _log_normalized_cost(table: pd.DataFrame) -> np.ndarray:
    baseline = table[table["generator"] == "EFREQ"].groupby("pattern_id")["tree_log_cost"].median()
    return table["pattern_id"].map(baseline).to_numpy(float) - _column(table, "tree_log_cost")


def _log_partial_matches_per_event(table: pd.DataFrame) -> np.ndarray:
    created, events = _column(table, "partial_matches_created"), _column(table, "events")
    with np.errstate(divide="ignore"):  # a median counts those without any as 0
        return np.log(created) - np.log(events)


#: Metrics that are no column: name -> columns needed, and the logarithm of the metric.
DERIVED: dict[str, tuple[tuple[str, ...], Callable[[pd.DataFrame], np.ndarray]]] = {
    # A ratio of it says by what factor fewer are created. One more is counted in every run, so
    # that two plans that create none are equal.
    "fewer_partial_matches": (
        ("partial_matches_created",),
        lambda table: -np.log1p(_column(table, "partial_matches_created")),
    ),
    # The same of all records of a plan that is evaluated as given, the matches' too.
    "fewer_records": (("records_made",), lambda table: -np.log1p(_column(table, "records_made"))),
    "partial_matches_per_event": (
        ("partial_matches_created", "events"), _log_partial_matches_per_event
    ),
    "plan_cost": (("plan_log_cost",), lambda table: _column(table, "plan_log_cost")),
    # An order costs as much as its left-deep tree, so that all plans are on one scale.
    "tree_cost": (("tree_log_cost",), lambda table: _column(table, "tree_log_cost")),
    # [kolchinsky2018], section 6.3: the cost of EFREQ's plan divided by the plan's.
    "normalized_cost": (("tree_log_cost",), _log_normalized_cost),
    "tree_cost_times_seconds": (
        ("tree_log_cost", "plan_seconds"),
        lambda table: _column(table, "tree_log_cost") + _log(table, "plan_seconds"),
    ),
    "events_per_second_by_latency": (
        ("events_per_second", "latency_mean"),
        lambda table: _log(table, "events_per_second") - _log(table, "latency_mean"),
    ),
}  # fmt: skip

#: Columns that a clock gives, beside those named ``seconds…``.
CLOCKED = {
    "events_per_second", "plan_seconds", "latency_mean", "results_per_ms", "load", "over_best",
    "search_seconds", "k",
    "matching", "matching_and_construction", "matching_percent", "construction_percent",
}  # fmt: skip

#: Columns that a study has of runs of plans as given, beside their metrics.
WORK = {"records_made", "work"}

#: Why a check measures nothing: its runs are not there; there are too few patterns; or no pattern
#: is of the kind that the claim is about.
NO_DATA, TOO_FEW, NO_CASE = "no data", "too few patterns", "no such case"


@dataclass(frozen=True, slots=True)
class Selection:
    """The runs on one side of a ratio; None takes every α or strategy."""

    generators: tuple[str, ...]
    alpha: float | None = None
    strategy: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimCheck:
    """Definition of a check."""

    kind: str  #: A key of :data:`CHECK_KINDS`
    metric: str  #: A numeric column of the results or a key of :data:`DERIVED`.
    #: ``over``, ``under``: the two sides of a ratio; ``under`` is None where there is only one
    #: side.
    over: Selection
    under: Selection | None = None
    #: A second ratio: that by which the first is divided, or one beside it, of which both ``take``
    #: chooses (``ratio_of_averages``).
    than: tuple[Selection, Selection] | None = None
    #: ``pattern_sets``, ``sizes``: empty: all that were measured. Every named set must be there,
    #: and one of the sizes.
    pattern_sets: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    needed_sizes: tuple[int, ...] = ()  #: Sizes that must all be there
    alphas: tuple[float, ...] = ()  #: Empty: every weight of latency that was measured.
    with_matches: bool = False  #: Only patterns that have a match
    #: Whether resamples have as many patterns of each set as were measured: where a set is a
    #: setting that was chosen, and a pattern is a run in it.
    fixed_sets: bool = False
    apart: str = ""  #: Pattern set that ``set_contrast`` compares with the others.
    #: ``pattern_set``, ``size`` or ``generator``: one number for each, and ``take`` says which one
    #: counts. Empty: one number for all together.
    across: str = ""
    take: str = "median"  #: ``lowest``, ``median`` or ``highest``


@dataclass(frozen=True, slots=True)
class Measured:
    """Outcome of a check."""

    value: float = float("nan")  #: ``value``, ``low``, ``high``: NaN if there is a ``lack``.
    low: float = float("nan")
    high: float = float("nan")
    patterns: int = 0  #: Number of patterns measured
    left_out: int = 0  #: Number of those left out, because a run on them did not end well.
    bounds: int = 0  #: Number of those measured whose ratio is a bound.
    #: :data:`NO_DATA`, :data:`TOO_FEW` or :data:`NO_CASE` if nothing was measured; empty otherwise.
    lack: str = ""
    problem: str = ""  #: The same in detail


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Seed and size of a bootstrap."""

    seed: int
    resamples: int


#: Measures a kind of check: the check, its table and the bootstrap → the outcome.
Measuring = Callable[[ClaimCheck, pd.DataFrame, Bootstrap], Measured]


@dataclass(frozen=True, slots=True)
class CheckKind:
    """A kind of check."""

    measure: Measuring
    words: str  #: Name of its number
    #: Whether it reads the table of plans or runs as it is given; otherwise it gets one row a
    #: pattern and variant, whose ``log`` is the logarithm of the metric.
    of_plans: bool = False


#: Name → kind of check.
CHECK_KINDS: dict[str, CheckKind] = {}


def check_kind(
    name: str, words: str, *, of_plans: bool = False
) -> Callable[[Measuring], Measuring]:
    """Register a :class:`CheckKind` under a name that ledgers use; for a function that measures it."""

    def register(measure: Measuring) -> Measuring:
        if name in CHECK_KINDS:
            raise ExperimentError(f"there is a kind of check {name!r} already; choose another name")
        CHECK_KINDS[name] = CheckKind(measure, words, of_plans)
        return measure

    return register


@dataclass(frozen=True, slots=True)
class Sample:
    """What a check averages, patterns in rows, with their sizes and the names of their sets."""

    columns: np.ndarray
    sizes: np.ndarray
    sets: np.ndarray
    left_out: int = 0
    bounds: int = 0
    fixed_sets: bool = False


def measure(
    check: ClaimCheck, table: pd.DataFrame | None, *, seed: int = 0, resamples: int = RESAMPLES
) -> Measured:
    """Measure one number.

    Parameters
    ----------
    table : DataFrame or None
        Columns ``size``, ``pattern_id``, ``generator`` and the metric's; ``pattern_set``,
        ``strategy``, ``alpha``, ``status`` and repetitions where there are any. For a kind
        of check that reads plans, a row a plan with its ``log_cost``, or a row a run with
        ``plan_log_cost``. None: not measured.
    """
    if table is None:
        return Measured(lack=NO_DATA, problem="its notebook did not run")
    missing = [
        name
        for name in _columns_of(check, table)
        if name not in table or (check.metric in DERIVED and table[name].isna().all())
    ]
    if missing:
        return Measured(lack=NO_DATA, problem=f"the results have no column {missing[0]}")
    resampling = Bootstrap(seed, resamples)
    kind = CHECK_KINDS[check.kind]
    if kind.of_plans:
        return kind.measure(check, table, resampling)
    logs = _logs(table, check)
    if check.with_matches and logs.empty:
        return Measured(lack=NO_CASE, problem="no pattern has a match")
    problem = _what_is_missing(logs, check)
    if problem:
        return Measured(lack=NO_DATA, problem=problem)
    return kind.measure(check, logs, resampling)


def is_of_runs(check: ClaimCheck) -> bool:
    """Whether a check reads what runs of plans measured, rather than plans alone."""
    return not (METRICS.keys() | WORK).isdisjoint(_read(check.metric))


def is_timed(check: ClaimCheck) -> bool:
    """Whether a check reads a clock."""
    return any(name in CLOCKED or name.startswith("seconds") for name in _read(check.metric))


def _columns_of(check: ClaimCheck, table: pd.DataFrame) -> tuple[str, ...]:
    own = _read(check.metric)
    if CHECK_KINDS[check.kind].of_plans:
        own = (*own, "log_cost" if "status" not in table else "plan_log_cost")
    return (*own, "matches") if check.with_matches else own


def _read(metric: str) -> tuple[str, ...]:
    return DERIVED[metric][0] if metric in DERIVED else (metric,)


def _logs(table: pd.DataFrame, check: ClaimCheck) -> pd.DataFrame:
    """One row a pattern and variant: medians of the logarithm over repetitions."""
    table = table.reset_index(drop=True)
    plain = pd.DataFrame({"size": table["size"].astype(int), "pattern_id": table["pattern_id"]})
    plain["generator"] = table["generator"]
    for name, default in (("pattern_set", ""), ("strategy", "any"), ("alpha", 0.0)):
        plain[name] = table.get(name, default)
    if check.metric in DERIVED:
        plain["log"] = DERIVED[check.metric][1](table)
    else:
        plain["log"] = _log(table, check.metric)
    sides = (check.over, check.under, *(check.than or ()))
    plain = plain[plain["generator"].isin({name for s in sides if s for name in s.generators})]
    if check.pattern_sets:
        plain = plain[plain["pattern_set"].isin(check.pattern_sets)]
    if check.sizes:
        plain = plain[plain["size"].isin(check.sizes)]
    if check.alphas:
        plain = plain[plain["alpha"].isin(check.alphas)]
    if check.with_matches:
        plain = plain[table["matches"].loc[plain.index] > 0]
    plain = plain.assign(bound=False)
    if "status" in table:
        status = table["status"].loc[plain.index]
        plain["log"] = plain["log"].where(status.isin([OK, LIMIT]))
        if is_of_runs(check):  # a plan's cost is known anyway
            plain["bound"] = status == LIMIT
    if check.under is None:  # beside no other run a bound says nothing
        plain["log"] = plain["log"].mask(plain["bound"])
    # One repetition that did not end well makes the whole cell one that did not.
    cells = plain.groupby([*_KEY, *_VARIANT], sort=False)
    medians = cells["log"].median().where(cells["log"].count() == cells.size())
    return pd.DataFrame({"log": medians, "bound": cells["bound"].any()}).reset_index()


def _what_is_missing(logs: pd.DataFrame, check: ClaimCheck) -> str:
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


def wide_table(logs: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    """Logarithms of one side of a check.

    Parameters
    ----------
    logs : DataFrame
        As a kind of check gets it: ``pattern_set``, ``size``, ``pattern_id``, ``generator``,
        ``strategy``, ``alpha``, ``log`` and ``bound``.

    Returns
    -------
    DataFrame
        Patterns in rows; a column a generator, its mean over strategies and α that were not fixed,
        missing where one of the runs did not end well.
    """
    own = _selected(logs, selection)
    varied = [name for name in _VARIANT if name == "generator" or own[name].nunique() > 1]
    wide = own.set_index([*_KEY, *varied])["log"].unstack(varied)
    names = wide.columns.get_level_values("generator")
    return pd.DataFrame(
        {
            name: wide.loc[:, names == name].mean(axis=1, skipna=False)
            for name in selection.generators
        }
    )


def sample_of(check: ClaimCheck, logs: pd.DataFrame) -> Sample:
    """The logarithmic ratio of every pattern that all runs in question have.

    There are several columns if the ratio is taken across generators.
    """
    columns = _ratio(logs, check.over, check.under, each=check.across == "generator")
    if check.than is not None:
        other = _ratio(logs, *check.than, each=False).reindex(columns.index)
        columns = columns.sub(other.iloc[:, 0], axis="index")
    sample = _usable(columns, _any_bounded(check, logs, columns.index))
    return replace(sample, fixed_sets=check.fixed_sets)


def _ratio(
    logs: pd.DataFrame, over: Selection, under: Selection | None, *, each: bool
) -> pd.DataFrame:
    above = wide_table(logs, over)
    if under is None:
        return above if each else above.mean(axis="columns", skipna=False).to_frame()
    below = wide_table(logs, under).reindex(above.index)
    unknown = _bounded(logs, over, above.index) & _bounded(logs, under, above.index)
    above[unknown] = np.nan
    if each and over.generators == under.generators:
        return above - below
    mean = above.mean(axis="columns", skipna=False)
    if each:
        return -below.sub(mean, axis="index")
    return (mean - below.mean(axis="columns", skipna=False)).to_frame()


def _bounded(logs: pd.DataFrame, side: Selection, patterns: pd.Index[Any]) -> np.ndarray:
    """Whether a run of one side came to the limit, bool of shape (patterns,)."""
    if not logs["bound"].any():
        return np.zeros(len(patterns), dtype=bool)
    limited = _selected(logs, side).groupby(_KEY)["bound"].any()
    return np.asarray(limited.reindex(patterns, fill_value=False), dtype=bool)


def _any_bounded(check: ClaimCheck, logs: pd.DataFrame, patterns: pd.Index[Any]) -> np.ndarray:
    """Whether a run of any side came to the limit, bool of shape (patterns,)."""
    sides = [side for side in (check.over, check.under, *(check.than or ())) if side is not None]
    return np.logical_or.reduce([_bounded(logs, side, patterns) for side in sides])


def _usable(columns: pd.DataFrame, bounded: np.ndarray | None = None) -> Sample:
    usable = columns.notna().all(axis="columns")
    whole = columns[usable]
    return Sample(
        columns=whole.to_numpy(float),
        sizes=whole.index.get_level_values("size").to_numpy(int),
        sets=whole.index.get_level_values("pattern_set").to_numpy(str),
        left_out=len(columns) - len(whole),
        bounds=0 if bounded is None else int(bounded[usable.to_numpy()].sum()),
    )


def estimated(
    sample: Sample, estimate: Callable[[np.ndarray], np.ndarray], resampling: Bootstrap
) -> Measured:
    """An estimate over all patterns of a sample, and its percentile bootstrap over patterns.

    Parameters
    ----------
    estimate : callable
        Rows of the sample's columns, ndarray of int of shape (resamples, patterns), → an estimate
        of each resample, ndarray of float of shape (resamples,).

    Returns
    -------
    Measured
        With a ``problem`` for fewer than :data:`FEWEST` patterns, or more left out than counted.
    """
    count = len(sample.columns)
    if count < FEWEST:
        return _too_few(count, sample.left_out)
    if sample.left_out > count:
        return Measured(
            patterns=count, left_out=sample.left_out, lack=TOO_FEW,
            problem=f"{sample.left_out} were left out, more than the {count} that count",
        )  # fmt: skip
    rng = np.random.default_rng(resampling.seed)
    (value,) = estimate(np.arange(count)[None])
    strata = sample.sets if sample.fixed_sets else np.zeros(count)
    estimates = []
    for done in range(0, resampling.resamples, _BATCH):
        times = min(_BATCH, resampling.resamples - done)
        estimates.append(estimate(resampled(strata, rng, times)))
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(np.concatenate(estimates), [tail, 1 - tail])
    ends = (float(value), float(low), float(high))
    return Measured(*ends, count, sample.left_out, sample.bounds)


@check_kind("ratio_of_ratios", "ratio of two ratios")
@check_kind("ratio", "geometric mean of ratios")
def _ratio_check(check: ClaimCheck, logs: pd.DataFrame, resampling: Bootstrap) -> Measured:
    """Geometric mean over patterns of one metric's ratio between two groups of runs."""
    sample = sample_of(check, logs)
    groups = {"pattern_set": sample.sets, "size": sample.sizes}.get(check.across)
    take = _TAKE[check.take]

    def estimate(rows: np.ndarray) -> np.ndarray:
        values = sample.columns[rows]
        if groups is None:
            return np.exp(take(values.mean(axis=1), axis=-1))
        means = [_mean_where(groups[rows] == group, values) for group in np.unique(groups)]
        return np.exp(take([its.mean(axis=-1) for its in means], axis=0))

    return estimated(sample, estimate, resampling)


@check_kind("ratio_of_averages", "ratio of arithmetic means")
def _ratio_of_averages_check(
    check: ClaimCheck, logs: pd.DataFrame, resampling: Bootstrap
) -> Measured:
    """Arithmetic mean over patterns on one side divided by that on the other.

    [kolchinsky2018]_ compares such averages, which the patterns of the largest values dominate.
    """
    assert check.under is not None
    means = []
    for over, under in [(check.over, check.under), *([check.than] if check.than else [])]:
        above, below = (
            wide_table(logs, side).mean(axis="columns", skipna=False) for side in (over, under)
        )
        unknown = _bounded(logs, over, above.index) & _bounded(logs, under, above.index)
        means += [above.mask(unknown), below]
    columns = pd.concat(means, axis="columns")
    sample = _usable(columns, _any_bounded(check, logs, columns.index))
    groups = {"pattern_set": sample.sets, "size": sample.sizes}.get(
        check.across, np.zeros(len(sample.columns))
    )
    take = _TAKE[check.take]
    # Scaled by the largest of their group, so that none overflows; their number cancels.
    count, width = sample.columns.shape
    names = np.unique(groups)
    scaled = np.zeros((len(names), count, width))
    largest = np.zeros((len(names), 1, width))
    for values, most, group in zip(scaled, largest, names, strict=True):
        own = groups == group
        most[0] = sample.columns[own].max(axis=0)
        values[own] = np.exp(sample.columns[own] - most)

    def estimate(rows: np.ndarray) -> np.ndarray:
        drawn = (rows + count * np.arange(len(rows))[:, None]).ravel()
        times = np.bincount(drawn, minlength=len(rows) * count).reshape(len(rows), count)
        sums = times.astype(float) @ scaled  # of shape (groups, resamples, width)
        sums[(sums == 0).any(axis=2)] = np.nan  # a resample without this group
        logs = np.log(sums) + largest
        ratios = np.exp(logs[..., 0::2] - logs[..., 1::2])
        return np.asarray(take(np.concatenate(np.split(ratios, width // 2, axis=2)), axis=0))[:, 0]

    return estimated(sample, estimate, resampling)


@check_kind("set_contrast", "ratio of one pattern set over that of the others")
def _set_contrast_check(check: ClaimCheck, logs: pd.DataFrame, resampling: Bootstrap) -> Measured:
    """A ratio's geometric mean on one pattern set divided by that on the nearest of the others."""
    sample = sample_of(check, logs)
    others = [name for name in np.unique(sample.sets) if name != check.apart]
    if check.apart not in sample.sets or not others:
        problem = f"pattern set {check.apart} or all others were not measured"
        if sample.left_out:  # such as savings of which none is above zero
            problem = f"no run of pattern set {check.apart} or of all others has a value above zero"
        lack = TOO_FEW if sample.left_out else NO_DATA
        return Measured(left_out=sample.left_out, lack=lack, problem=problem)
    take = _TAKE[check.take]

    def estimate(rows: np.ndarray) -> np.ndarray:
        values, sets = sample.columns[rows], sample.sets[rows]
        means = np.stack([_mean_where(sets == name, values)[:, 0] for name in others])
        contrasts = _mean_where(sets == check.apart, values)[:, 0]
        known = ~np.isnan(means).all(axis=0)  # a resample may have none of the others
        contrasts[known] -= take(means[:, known], axis=0)
        return np.exp(np.where(known, contrasts, np.nan))

    return estimated(sample, estimate, resampling)


@check_kind("median", "median")
def _median_check(check: ClaimCheck, logs: pd.DataFrame, resampling: Bootstrap) -> Measured:
    """Median over patterns of one metric."""
    sample = sample_of(check, logs)
    return estimated(
        sample, lambda rows: np.exp(median(sample.columns[rows][..., 0], axis=1)), resampling
    )


@check_kind("trend", "factor per further event")
def _trend_check(check: ClaimCheck, logs: pd.DataFrame, resampling: Bootstrap) -> Measured:
    """Factor by which a metric, or a ratio, changes with every further event of the pattern."""
    sample = sample_of(check, logs)
    if len(np.unique(sample.sizes)) < 2:
        problem = "fewer than two sizes were measured"
        return Measured(left_out=sample.left_out, lack=NO_DATA, problem=problem)
    take = _TAKE[check.take]

    def estimate(rows: np.ndarray) -> np.ndarray:
        sizes, sets = sample.sizes[rows][..., None].astype(float), sample.sets[rows]
        values = sample.columns[rows]
        for which in np.unique(sample.sets):  # a set's level is no trend
            own = sets == which
            for each in (sizes, values):
                each -= np.where(own[..., None], _mean_where(own, each)[:, None], 0.0)
        spread = (sizes**2).sum(axis=1)
        varies = spread[:, 0] > 0  # no trend where all sizes of a resample are equal
        slopes = (sizes * values).sum(axis=1)[varies] / spread[varies]
        trends = np.full(len(rows), np.nan)
        trends[varies] = np.exp(take(slopes, axis=-1))
        return trends

    return estimated(sample, estimate, resampling)


def _mean_where(own: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Means over the chosen rows of each resample; NaN where a resample has none.

    ``own`` is of bool, shape (resamples, patterns), ``values`` of float, shape (resamples,
    patterns, columns), and the result of shape (resamples, columns).
    """
    with np.errstate(invalid="ignore"):
        return np.einsum("rp,rpc->rc", own, values) / own.sum(axis=1)[:, None]


@check_kind("share_equal", "share of plans")
def _share_check(check: ClaimCheck, logs: pd.DataFrame, resampling: Bootstrap) -> Measured:
    """Share of plans in ``over`` whose metric is that of the plan in ``under``."""
    assert check.under is not None
    above, below = wide_table(logs, check.over), wide_table(logs, check.under)
    apart = above.sub(below.reindex(above.index).iloc[:, 0], axis="index")
    sample = _usable(apart)
    equal = np.abs(sample.columns) < _SAME_COST
    return estimated(sample, lambda rows: equal[rows].mean(axis=(1, 2)), resampling)


@check_kind("maximum", "largest value")
def _maximum_check(check: ClaimCheck, logs: pd.DataFrame, resampling: Bootstrap) -> Measured:
    """The largest value of all; without bound from above where a run did not end."""
    values = wide_table(logs, check.over)
    if values.notna().to_numpy().sum() == 0:
        return Measured(left_out=len(values), lack=TOO_FEW, problem="no run ended")
    largest = float(np.exp(np.nanmax(values.to_numpy())))
    whole = values.notna().all(axis="columns")
    unknown = int((~whole).sum())
    high = float("inf") if unknown else largest
    return Measured(largest, largest, high, int(whole.sum()), unknown)


@check_kind("rank_correlation", "rank correlation", of_plans=True)
@check_kind("exponent", "fitted exponent", of_plans=True)
def _fit_check(check: ClaimCheck, table: pd.DataFrame, resampling: Bootstrap) -> Measured:
    """Power law or rank correlation of the plans' cost and a metric."""
    points = table[table["generator"].isin(check.over.generators)]
    if check.over.strategy is not None:
        points = points[points["strategy"] == check.over.strategy]
    if check.with_matches:
        points = points[points["matches"] > 0]
    if points.empty:
        if check.with_matches:
            return Measured(lack=NO_CASE, problem="no pattern has a match")
        problem = f"no plan of {check.over.generators[0]} was measured"
        return Measured(lack=NO_DATA, problem=problem)
    if "status" in points:  # the rows of a sweep, with repetitions
        ended = points[points["status"] == OK]
        named = ["pattern_id", "generator", *(["pattern_set"] if check.fixed_sets else [])]
        cells = ended.groupby(named, sort=False)
        points = cells[["plan_log_cost", check.metric]].median().reset_index()
        points = points.rename(columns={"plan_log_cost": "log_cost"})
    fit = cost_fit(
        points.assign(plan_kind="all"),
        check.metric,
        fixed="pattern_set" if check.fixed_sets else "",
        seed=resampling.seed,
        resamples=resampling.resamples,
    )
    if fit.empty:
        return Measured(lack=NO_DATA, problem="no run ended")
    row = fit.iloc[0]
    left_out, patterns = int(row["left_out"]), int(row["patterns"])
    if patterns < FEWEST:
        return _too_few(patterns, left_out)
    name = "spearman" if check.kind == "rank_correlation" else "exponent"
    value, low, high = (float(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return Measured(value, low, high, patterns, left_out)


def _too_few(patterns: int, left_out: int) -> Measured:
    problem = f"{patterns}, fewer than {FEWEST}"
    return Measured(patterns=patterns, left_out=left_out, lack=TOO_FEW, problem=problem)
