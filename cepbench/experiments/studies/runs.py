"""Runs by setting and series, as the summaries, charts and ledgers of studies without plans read them.

A setting, what a figure has on its horizontal axis, takes the place of a pattern set; a series, one
of its curves or bars, that of a plan generator; and a run that of a pattern, so that intervals are
over runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from cepbench.arguments import choice
from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.averages import MEDIAN, RESAMPLES, averages
from cepbench.experiments.analysis.cost_fit import cost_fit
from cepbench.experiments.analysis.summary import groups_of
from cepbench.experiments.studies.profiles import sizes_in
from cepbench.experiments.sweeps.cells import OK
from cepbench.text_table import with_prefix


def sized(
    profiles: Mapping[str, Mapping[str, Any]],
    profile: str,
    changes: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """The sizes of a profile; those in ``changes`` that are neither 0 nor empty replace its own.

    Raises ExperimentError if there is no such profile.
    """
    own = profiles[choice(sizes_in(profile), "profile", profiles, ExperimentError)]
    return {**own, **{name: value for name, value in changes.items() if value}}


#: Columns of runs that differ in no kind of plan, strategy or weight of latency.
OF_ONE_KIND: Mapping[str, Any] = {"plan_kind": "tree", "strategy": "any", "alpha": 0.0}

_USUAL = {"regime": "", "status": OK}


def figure_runs(runs: pd.DataFrame, setting: str, series: str) -> pd.DataFrame:
    """Runs as summaries and the ledger read them, with a setting and a series for each.

    They have ``repetition``, the number of a run, and the columns of a sweep's results; without
    ``status`` all ended well, and without ``regime`` there is none. The column
    of what the horizontal axis of a figure has becomes ``pattern_set``, that of its curves or bars
    ``generator``; ``pattern_id`` is the setting and the number of the run.
    """
    return in_settings(runs, runs[setting].astype(str)).assign(
        generator=runs[series].astype(str),
        **{name: its for name, its in _USUAL.items() if name not in runs},
        **OF_ONE_KIND,
        **dict.fromkeys(("evaluator", "stream", "window", "output"), ""),
    )


def in_settings(runs: pd.DataFrame, settings: pd.Series) -> pd.DataFrame:
    """Runs with the setting of each as ``pattern_set``, and with its number as ``pattern_id``."""
    named = settings + ", run " + runs["repetition"].astype(str)
    return runs.assign(pattern_set=settings, pattern_id=named)


def by_seed(results: pd.DataFrame) -> pd.DataFrame:
    """Results in which streams that differ in their seeds alone are one; ``repetition`` is ``seed.run``."""
    stream = results["stream"].str.extract(r"^(?P<name>.*?)(?:-seed(?P<seed>\d+))?$")
    repetition = stream["seed"].fillna("0") + "." + results["repetition"].astype(str)
    return results.assign(stream=stream["name"], repetition=repetition)


def details_of(results: pd.DataFrame) -> pd.DataFrame:
    """Metrics of evaluators alone, a column each; missing in runs without them."""
    texts = results.get("details", [None] * len(results))
    found = [json.loads(text) if isinstance(text, str) else {} for text in texts]
    return pd.DataFrame(found, results.index)


def summary_of(
    runs: pd.DataFrame, metrics: Sequence[str], *, seed: int = 0, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Medians of numeric columns over runs with their intervals, as charts by setting read them.

    As :func:`cepbench.experiments.analysis.summary.summarize` returns it, for any column; regimes
    have panels of their own.
    """
    found = averages(
        groups_of(runs, ["regime", "pattern_set"]),
        ["generator", "plan_kind"],
        {metric: {"median": MEDIAN} for metric in metrics},
        seed=seed,
        resamples=resamples,
    )
    return found.assign(size=pd.array([pd.NA] * len(found), "Int64"), engine=found["regime"])


_WORDS = {
    "merged_percent": "runs merged (%)",
    "matching_percent": "matching (%)",
    "construction_percent": "construction (%)",
    "seconds_buffer": "updates of the buffer (s)",
    "reprocessed_per_event": "times that an event is read again",
    "output_complexity": "events in all matches",
    "microseconds_per_slide": "time per slide (µs)",
    "updates_per_slide": "updates of counters per slide",
    "results_per_ms": "results per millisecond",
    "plan_seconds": "planning time (s)",
    "plan_cost": "calibrated cost",
    "e_cube": "cost by the paper's model",
    "reusing": "queries with a source",
}


def table_of(
    runs: pd.DataFrame,
    *metrics: str,
    printed: Mapping[str, Mapping[str, Sequence[float]]] = MappingProxyType({}),
) -> Styler:
    """Medians over runs: metrics and series in rows, settings in columns, in the order of the runs.

    A single series is not named. ``printed`` has by metric and series the paper's numbers, a
    setting each; they stand below those measured.
    """
    cells = runs.groupby(["generator", "pattern_set"])
    settings, series = (list(runs[name].unique()) for name in ("pattern_set", "generator"))
    rows: dict[str, Any] = {}
    for metric in metrics:
        words = _WORDS.get(metric, metric.replace("_", " "))
        for name in series:
            label = f"{words}, {name}" if len(series) > 1 else words
            rows[label] = cells[metric].median().loc[name].reindex(settings).to_numpy()
            if name in printed.get(metric, {}):
                rows[f"{label}, in the paper"] = printed[metric][name]
    return pd.DataFrame.from_dict(rows, orient="index", columns=settings).style.format(number)


def number(value: Any) -> str:
    """A number of a table: whole from a hundred to a million, else with three digits."""
    if value >= 1e6:
        return with_prefix(value)
    return "–" if math.isnan(value) else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def factors(runs: pd.DataFrame, metric: str, over: str, under: str) -> pd.DataFrame:
    """How many times the metric of one series another one has: ratios of medians over runs.

    Regimes in rows, settings in columns, where both series were measured.
    """
    keys = ["regime", "pattern_set"]
    own, other = (
        runs[runs["generator"] == name].groupby(keys, sort=False)[metric].median()
        for name in (over, under)
    )
    found = (own / other).dropna().unstack()
    settings = [name for name in runs["pattern_set"].unique() if name in found]
    return found.reindex(
        index=[name for name in runs["regime"].unique() if name in found.index], columns=settings
    ).rename_axis(index=None, columns=None)


def span(ratios: pd.DataFrame) -> str:
    """The least and the greatest of a table of :func:`factors`, with setting and regime where they vary."""
    ordered = pd.Series(ratios.stack()).sort_values()
    varied = [level for level in (1, 0) if ordered.index.get_level_values(level).nunique() > 1]
    ends = dict.fromkeys((0, len(ordered) - 1))
    return " to ".join(
        number(ordered.iloc[at])
        + f" ({', '.join(str(ordered.index[at][level]) for level in varied)})" * bool(varied)
        for at in ends
    )


def with_regimes(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with series apart by regime, for tables of all of them."""
    return runs.assign(generator=runs["generator"] + ", " + runs["regime"])


def exponents(runs: pd.DataFrame, x: str, y: str, *, seed: int = 0) -> pd.DataFrame:
    """The power of one column that another follows, by series, with a 95 % interval.

    Both have positive numbers. Series in rows; ``exponent``, ``from``, ``to``.
    """
    fitted = cost_fit(
        runs.assign(log_cost=np.log(runs[x].astype(float))),
        y,
        ["generator"],
        fixed="pattern_set",
        seed=seed,
    ).set_index("generator")
    shown = fitted[["exponent", "exponent_low", "exponent_high"]]
    return shown.set_axis(["exponent", "from", "to"], axis="columns").rename_axis(None)
