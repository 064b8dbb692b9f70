"""Comparison of two sweeps with the significance of differences.

A pattern that both sweeps ran is one pair for a plan generator, evaluator, strategy and weight of
latency. A difference is significant if the 95 % bootstrap interval of its geometric mean over the
patterns excludes 1, and a sign-flip test still rejects after the correction of Benjamini and
Hochberg for all rows of one metric: of the significant differences no more than 5 % are
expected to be chance, and between two sweeps of the same thing there is any at all in no more than
5 % of cases.

A machine is faster on one day than on another, which would look very significant. Times are
therefore judged relative to the change that runs share; see :mod:`cepbench.experiments.analysis.common_change`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import choice, shown, texts
from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.averages import (
    RESAMPLES,
    Statistic,
    resampling_from,
    with_interval,
)
from cepbench.experiments.analysis.common_change import LEAST_RUNS, common_change
from cepbench.experiments.analysis.significance import adjusted, sign_flip_p_values
from cepbench.experiments.analysis.summary import (
    VARIED,
    groups_of,
    in_order_of,
    log_quotients,
    per_pattern,
    runs_of,
)
from cepbench.experiments.analysis.sweep_differences import (
    check_counts,
    differences_of,
    name_of,
    pairs_of,
    read_sweep_table,
    same_data_of,
    unequal,
)

#: Metrics that are compared by default.
METRICS = ("events_per_second", "peak_bytes", "plan_cost", "plan_seconds")

#: Metrics of which more is better; of all others less is.
_MORE_IS_BETTER = ("events_per_second",)

#: Metrics that a clock gives, and that the whole machine moves.
_TIMES = ("events_per_second", "seconds", "plan_seconds", "latency_mean", "latency_median",
          "latency_p95", "latency_p99")  # fmt: skip

#: Fewer pairs cannot be significant: with five, every 16th choice of signs is as extreme.
LEAST_PAIRS = 6

#: False discovery rate: share of significant differences that may be chance.
LEVEL = 0.05

#: Differences of times up to this factor are negligible, however significant.
NEGLIGIBLE = 1.05

BETTER, WORSE, SAME, TOO_FEW = "better", "worse", "no significant difference", "too few pairs"
#: Metric -> its words for better and worse.
_WORDS = {
    "events_per_second": ("faster", "slower"),
    "peak_bytes": ("less memory", "more memory"),
    "plan_cost": ("cheaper plans", "costlier plans"),
    "plan_seconds": ("planned faster", "planned slower"),
}

_RATIO = Statistic(np.mean, of_logs=True)


@dataclass(frozen=True, slots=True)
class SweepComparison:
    """Result of :func:`compare_sweeps`."""

    #: Of the first sweep and of the second one.
    names: tuple[str, str]
    #: A row a metric, group and run (plan generator, evaluator, strategy, weight of latency, and
    #: what varies of stream, window and options):
    #: the columns asked for by ``by``, those of the run, ``metric``, ``value`` (geometric mean of
    #: second / first), ``low``, ``high`` (95 % bootstrap over patterns); ``common``, the part of
    #: it that most runs of the same patterns share, and ``beside``, ``beside_low``,
    #: ``beside_high``, what is left, both missing for what no clock gives; ``pairs``,
    #: ``left_out`` (patterns of both that did not end well in one of them), ``p`` (sign-flip
    #: test), ``p_adjusted`` (Benjamini and Hochberg) and ``verdict``.
    ratios: pd.DataFrame
    #: Configuration, data and provenance that differ: ``key``, ``first``, ``second``.
    differences: pd.DataFrame
    #: ``only_first``, ``only_second``: patterns and runs that one sweep alone has rows of.
    only_first: pd.DataFrame
    only_second: pd.DataFrame
    #: Whether both ran on the same data; None if a table does not say.
    same_data: bool | None
    #: Patterns that have other numbers of matches, which only other data allows.
    counts_differ: int
    #: On the same data: runs in common, and how many of them differ in their ``matches``, ``plans`` and
    #: ``work``, which a machine changes only by planning with costs measured on it. Empty on other data.
    unequal: Mapping[str, int]

    def describe(self) -> str:
        """Text: what differs beside the results, then one line per comparison."""
        first, second = self.names
        lines = [f"{second} against {first} (ratios are second / first)", ""]
        if self.differences.empty:
            lines.append("Configuration, data and machine are the same.")
        else:
            lines.append("What differs beside the results:")
            lines += [
                f"  {row['key']}: {_short(row['first'])} in the first, {_short(row['second'])} in "
                "the second"
                for row in self.differences.to_dict("records")
            ]
        if self.same_data is None:
            lines.append("A table does not say which data it was measured on.")
        if self.counts_differ:
            lines.append(
                f"{self.counts_differ} patterns have other numbers of matches: the data differs, "
                "so speed is compared over different work."
            )
        if self.unequal:
            runs, *differ = (f"{number:,} {name}" for name, number in self.unequal.items())
            lines.append(f"In common: {runs}; of these differ {', '.join(differ)}.")
        for name, cells in ((first, self.only_first), (second, self.only_second)):
            if len(cells):
                patterns = cells["pattern_id"].nunique()
                lines.append(
                    f"Only in {name}: {len(cells):,} pairs of a pattern and a run, from "
                    f"{patterns:,} patterns."
                )
        for metric, rows in self.ratios.groupby("metric", sort=False):
            parts = " = common to most runs × beside it" if rows["common"].notna().any() else ""
            lines += ["", f"{str(metric).replace('_', ' ')}{parts}:"]
            heading = ""
            for row in rows.to_dict("records"):
                if _group(row) != heading:
                    heading = _group(row)
                    lines.append(f" {heading}")
                lines.append(_line(row))
        lines += ["", *self.notes()]
        return "\n".join(lines)

    __str__ = describe

    def notes(self) -> list[str]:
        """How to read the verdicts, a sentence each."""
        found = [
            "A difference is significant if its 95 % interval excludes 1, a sign-flip test over "
            "the patterns stays below 5 % after the correction for all rows of its metric "
            f"(Benjamini and Hochberg), and times differ by more than {NEGLIGIBLE - 1:.0%}."
        ]
        times = self.ratios[self.ratios["metric"].isin(_TIMES)]
        if times["common"].notna().any():
            found.append(
                "Times are judged beside what most runs of the same pattern have in common. That "
                "part may be the machine's or the engine's; two sweeps cannot tell."
            )
        if times["common"].isna().any():
            found.append(
                f"With fewer than {LEAST_RUNS} generators a faster machine looks like a faster "
                "run: take such times with care."
            )
        return found


def compare_sweeps(
    first: str | Path | pd.DataFrame,
    second: str | Path | pd.DataFrame,
    *,
    metrics: Sequence[str] = METRICS,
    by: Sequence[str] = (),
    names: tuple[str, str] | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> SweepComparison:
    """Compare two sweeps, paired by pattern × generator × evaluator × strategy × α.

    Two patterns are the same if name and text are. Repetitions are first reduced to their median;
    a pattern on which a run did not end well in one of the sweeps is left out and counted.

    Parameters
    ----------
    first, second : path or DataFrame
        Folders of sweeps, their results tables in Parquet, or what
        :func:`cepbench.experiments.sweeps.store.read_results` returns of them.
    metrics : sequence of str
        Of :data:`cepbench.experiments.analysis.summary.SUMMARY_METRICS`.
    by : sequence of str
        ``pattern_set``, ``size`` or both: compare each of them by itself besides. With ``size``
        there is a row with missing size, over all sizes, as well.
    names : (str, str), optional
        What to call them; by default the names of folders or files.

    Raises
    ------
    ExperimentError
        If a sweep cannot be read, a metric or a column of ``by`` is unknown, the two have no
        pattern and run in common, or a pattern has other numbers of matches in both although the
        data is the same: then one of the engines is wrong, and no speed is worth comparing.
    """
    metrics = texts(metrics, "metrics", ExperimentError)
    by = texts(by, "by", ExperimentError)
    for column in by:
        choice(column, "by", ("pattern_set", "size"), ExperimentError)
    if names is not None:
        two = texts(names, "names", ExperimentError)
        if len(two) != 2:
            raise ExperimentError(f"names are two different texts, not {shown(names)}")
        names = (two[0], two[1])
    seed, resamples = resampling_from(seed, resamples)
    tables = read_sweep_table(first), read_sweep_table(second)
    called = names or _names(first, second)
    same_data = same_data_of(*tables)
    counts_differ = check_counts(*tables, names=called, same_data=same_data)
    # Costs of large patterns are beyond what a float holds; their logarithms are not.
    stored = tuple("plan_log_cost" if name == "plan_cost" else name for name in metrics)
    named_by = runs_of(*tables)
    identity = ["pattern_set", "size", "pattern_id", *named_by]
    one, other = (_observed(table, stored, named_by) for table in tables)
    pairs = one.merge(other, on=[*identity, "pattern"], how="outer", indicator=True,
                      suffixes=("", "_second"), sort=False)  # fmt: skip
    for name in ("generator", "pattern_set"):  # a merge sorts by name
        pairs = in_order_of(pd.concat([table[name] for table in tables]).unique(), pairs, name)
    both = pairs[pairs["_merge"] == "both"]
    if both.empty:
        raise ExperimentError(
            f"{called[0]} and {called[1]} have no pattern and run in common; were they drawn with "
            "other seeds, or on other data?"
        )
    logs = {metric: _log_ratios(both, column)
            for metric, column in zip(metrics, stored, strict=True)}  # fmt: skip
    common = {metric: _common(both, logs[metric], metric, named_by) for metric in metrics}
    rows = []
    for key, group in groups_of(both.assign(row=np.arange(len(both))), by):
        for run, cells in group.groupby(named_by, sort=False):
            named = {**key, **dict(zip(named_by, run, strict=True))}
            at = cells["row"].to_numpy()
            rows += [
                {**named, "metric": metric, "logs": logs[metric][at], "common": common[metric][at]}
                for metric in metrics
            ]
    ratios = _judged(rows, [*by, *named_by], seed, resamples)
    in_common = pairs_of(*tables) if same_data else None
    return SweepComparison(
        names=called,
        ratios=ratios,
        differences=differences_of(*tables),
        only_first=pairs.loc[pairs["_merge"] == "left_only", identity].reset_index(drop=True),
        only_second=pairs.loc[pairs["_merge"] == "right_only", identity].reset_index(drop=True),
        same_data=same_data,
        counts_differ=counts_differ,
        unequal={}
        if in_common is None
        else {
            "runs": len(in_common),
            **{name: len(its) for name, its in unequal(in_common).items()},
        },
    )


def verdict_words(metric: str, verdict: str) -> str:
    """A verdict in the words of its metric, such as ``faster``."""
    better, worse = _WORDS.get(metric, (BETTER, WORSE))
    return {BETTER: better, WORSE: worse}.get(verdict, verdict)


def _names(first: Any, second: Any) -> tuple[str, str]:
    one, other = name_of(first, "the first sweep"), name_of(second, "the second sweep")
    return (f"{one} (first)", f"{other} (second)") if one == other else (one, other)


def _common(
    both: pd.DataFrame, logs: np.ndarray, metric: str, named_by: Sequence[str]
) -> np.ndarray:
    """What each row has in common with others of its pattern; NaN for what no clock gives."""
    if metric not in _TIMES:
        return np.full(len(both), np.nan)
    pattern = both.groupby(["pattern_set", "size", "pattern_id"]).ngroup().to_numpy()
    run = both.groupby(list(named_by)).ngroup().to_numpy()
    return common_change(pattern, run, logs)


def _judged(
    rows: Sequence[Mapping[str, Any]], named: Sequence[str], seed: int, resamples: int
) -> pd.DataFrame:
    """Intervals, p-values corrected within each metric, and verdicts."""
    found = []
    for metric in dict.fromkeys(row["metric"] for row in rows):
        own = [row for row in rows if row["metric"] == metric]
        logs = [_known(row["logs"]) for row in own]
        beside = [_known(row["logs"] - row["common"]) for row in own]
        judged = [left if len(left) else whole for left, whole in zip(beside, logs, strict=True)]
        p = sign_flip_p_values(judged, seed=seed)
        tested = [k for k in range(len(own)) if len(judged[k]) >= LEAST_PAIRS]
        p_adjusted = np.full(len(own), np.nan)
        p_adjusted[tested] = adjusted(p[tested])
        for k, row in enumerate(own):
            group = [str(row[name]) for name in named]
            ratio, left = (
                with_interval(sample, _RATIO, seed, resamples, *group, metric)
                for sample in (logs[k], beside[k])
            )
            found.append(
                {
                    **{name: row[name] for name in named},
                    "metric": metric,
                    **ratio,
                    "common": ratio["value"] / left["value"],
                    "beside": left["value"],
                    "beside_low": left["low"],
                    "beside_high": left["high"],
                    "pairs": len(logs[k]),
                    "left_out": len(row["logs"]) - len(logs[k]),
                    "p": p[k],
                    "p_adjusted": p_adjusted[k],
                    # Judged by the minority that ended well, a run that fails may look faster.
                    "verdict": TOO_FEW if len(row["logs"]) > 2 * len(logs[k]) else _verdict(
                        metric, left if len(beside[k]) else ratio, len(judged[k]), p[k],
                        p_adjusted[k], len(tested),
                    ),
                }
            )  # fmt: skip
    table = pd.DataFrame(found)
    return table.astype({"size": "Int64"}) if "size" in table else table


def _known(values: np.ndarray) -> np.ndarray:
    return np.asarray(values[~np.isnan(values)])


def _verdict(
    metric: str, ratio: Mapping[str, float], pairs: int, p: float, p_adjusted: float, tests: int
) -> str:
    if pairs < LEAST_PAIRS:
        return TOO_FEW
    if p <= LEVEL < p_adjusted and tests * 2.0 ** (1 - pairs) > LEVEL:
        return TOO_FEW  # even if all agree, too few pairs for the number of tests
    negligible = NEGLIGIBLE if metric in _TIMES else 1.0
    beyond = ratio["low"] > 1 or ratio["high"] < 1
    far = max(ratio["value"], 1 / ratio["value"]) > negligible
    if not (p_adjusted <= LEVEL and beyond and far):
        return SAME
    return BETTER if (ratio["value"] > 1) == (metric in _MORE_IS_BETTER) else WORSE


def _observed(
    results: pd.DataFrame, metrics: Sequence[str], named_by: Sequence[str]
) -> pd.DataFrame:
    """Medians of each pattern and run, with the pattern's text under the run's strategy."""
    key = ["pattern_id", *(name for name in named_by if name in ("strategy", "window"))]
    texts = results.drop_duplicates(key)[[*key, "pattern"]]
    return per_pattern(results, metrics, named_by).merge(texts, on=key, how="left")


def _log_ratios(cells: pd.DataFrame, column: str) -> np.ndarray:
    """ln(second / first) of each pattern; NaN where one of them has no value above zero."""
    below, above = cells[column].to_numpy(float), cells[f"{column}_second"].to_numpy(float)
    if column == "plan_log_cost":
        return np.asarray(above - below)
    # Twice nothing is the same nothing: no buffered bytes in both.
    return np.where((below == 0) & (above == 0), 0.0, log_quotients(above, below))


def _short(value: Any) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _group(row: Mapping[Any, Any]) -> str:
    """Pattern set and size of a row, if it has these."""
    group = [str(row["pattern_set"])] if "pattern_set" in row else []
    if "size" in row:
        group.append("all sizes" if pd.isna(row["size"]) else f"size {int(row['size'])}")
    return ", ".join(group)


def _line(row: Mapping[Any, Any]) -> str:
    """One comparison as a line of text."""
    run = f"{row['generator']:<12} {row['evaluator']:<9}"
    run += f" {row['strategy']}" if row["strategy"] != "any" else ""
    run += f" α={row['alpha']:g}" if row["alpha"] else ""
    run += "".join(f" {row[name]}" for name in VARIED if row.get(name))
    value = f"{row['value']:7.3f} ({row['low']:.3f} to {row['high']:.3f})"
    if not math.isnan(row["common"]):
        value += f" = {row['common']:.3f} × {row['beside']:.3f}"
        value += f" ({row['beside_low']:.3f} to {row['beside_high']:.3f})"
    left_out = f", {row['left_out']} left out" if row["left_out"] else ""
    words = verdict_words(row["metric"], row["verdict"])
    return f"  {run:<24}{value}  {words}; {row['pairs']} pairs{left_out}"
