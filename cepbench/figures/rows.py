"""Summary table → the rows of one chart. Chooses and labels; computes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.figures.styles import place_of, series_labels

_NEEDED = (
    "generator", "plan_kind", "metric", "statistic", "value", "low", "high", "patterns",
)  # fmt: skip
#: Columns that some summaries have no use for, and what stands for them.
_DEFAULTS: dict[str, Any] = {
    "pattern_set": "", "size": pd.NA, "strategy": "any", "evaluator": "", "left_out": 0,
    "missing": 0,
}  # fmt: skip

#: Beyond this ratio of largest to smallest value an axis is logarithmic.
LOG_SPREAD = 30.0

#: Beyond this ratio of largest to smallest pattern size their axis is logarithmic.
SIZE_SPREAD = 12.0

#: The statistic of a ratio to the native method, and what that is.
RATIO = "ratio"
_TO = "EFREQ (orders) and ZSTREAM (trees)"

#: Panels of every figure, as (a) and (b) in [kolchinsky2018]_.
PANELS = {"order": "(a) order-based", "tree": "(b) tree-based"}


@dataclass(frozen=True, slots=True)
class Quantity:
    """Words for a metric.

    Attributes
    ----------
    title : str
    axis : str
        Title of its axis, with its unit.
    better : str
        ``higher`` or ``lower``.
    unit : str
        For prefixes such as ``k`` and ``m`` on the axis: a symbol, ``1`` of what is counted, or
        empty for plain numbers without prefixes.
    """

    title: str
    axis: str
    better: str
    unit: str = "1"


_QUANTITIES = {
    "events_per_second": Quantity("Throughput", "events per second", "higher"),
    "stream_events_per_second": Quantity(
        "Throughput of the whole stream", "events per second", "higher"
    ),
    "mean_partial_matches": Quantity("Mean partial matches", "partial matches", "lower"),
    "peak_bytes": Quantity("Peak memory", "bytes", "lower", "B"),
    "peak_partial_matches": Quantity("Peak partial matches", "partial matches", "lower"),
    "partial_matches_created": Quantity("Partial matches", "partial matches", "lower"),
    "comparisons": Quantity("Comparisons", "comparisons", "lower"),
    "seconds": Quantity("Time", "seconds", "lower", "s"),
    "plan_seconds": Quantity("Planning time", "seconds", "lower", "s"),
    "search_seconds": Quantity("Planning time", "seconds", "lower", "s"),
    "normalized": Quantity("Normalized plan cost", "cost of EFREQ / cost", "higher", ""),
    "distance": Quantity("Distance from the optimum", "cost / least cost", "lower", ""),
    "regret": Quantity("Regret", "cost / cost of the plan from the right numbers", "lower", ""),
    "slowdown": Quantity("Slowdown", "time / time of the plan from the right numbers", "lower", ""),
    "more_partial_matches": Quantity(
        "Partial matches", "partial matches / those of the plan from the right numbers", "lower", ""
    ),
}

#: Always on a logarithmic axis: twice as much lies as far from 1 as half as much.
_TIMES_AS_MUCH = ("distance", "regret")


def quantity_of(metric: str) -> Quantity:
    """Words for a metric; its own name, if there are no better ones."""
    plain = metric.replace("_", " ")
    return _QUANTITIES.get(metric, Quantity(plain.capitalize(), plain, "lower"))


def chart_title(metric: str, what: str = "", statistic: str = "") -> str:
    """Heading of a chart, which says what is better."""
    quantity = quantity_of(metric)
    of = f", {what}" if what else ""
    if statistic == RATIO:
        return f"{quantity.title} relative to {_TO}{of} ({quantity.better} is better)"
    return f"{quantity.title}{of} ({quantity.better} is better)"


def axis_title(metric: str, statistic: str) -> str:
    """Title of the axis of values, with the unit."""
    if statistic == RATIO:
        return "ratio, geometric mean"
    return f"{statistic} {quantity_of(metric).axis}"


def unit_of(rows: pd.DataFrame) -> str:
    """The unit of :class:`Quantity` for the rows of a chart; ratios have none."""
    metric, statistic = rows.iloc[0][["metric", "statistic"]]
    return "" if statistic == RATIO else quantity_of(metric).unit


def rows_by_group(
    summary: pd.DataFrame,
    metric: str,
    statistic: str = "median",
    group: str = "pattern_set",
    log: bool = False,
) -> pd.DataFrame:
    """Rows over all sizes of each group, for Figures 3, 4 and 9.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.analysis.summary.summarize` returns it.
    metric, statistic : str
    group : str
        ``pattern_set`` or ``strategy``.
    log : bool
        Whether the axis is logarithmic whatever the values.

    Returns
    -------
    DataFrame
        The chosen rows with columns ``series`` and ``group``, in the order of ``summary``.

    Raises
    ------
    ExperimentError
        If ``summary`` lacks columns or has no such rows.
    """
    rows = _chosen(summary, metric, statistic)
    rows = _labelled(rows[rows["size"].isna()], "over all sizes")
    return rows.assign(group=rows[group].str.replace("_", " "), log=log)


def rows_by_size(
    summary: pd.DataFrame, metric: str, pattern_set: str = "", statistic: str = "median"
) -> pd.DataFrame:
    """Rows of each size of one pattern set, for Figures 5 and 7; see :func:`rows_by_group`."""
    rows = _chosen(summary, metric, statistic)
    rows = rows[rows["size"].notna() & (rows["pattern_set"] == pattern_set)]
    what = f"of pattern set {pattern_set!r} by size" if pattern_set else "by size"
    return _labelled(rows, what).assign(log=metric in _TIMES_AS_MUCH)


def on_one_line(rows: pd.DataFrame) -> list[str]:
    """A sentence on the series of a panel whose lines hide each other; none where none do.

    Two lines are one if their values differ by less than a hundredth of the axis everywhere.

    Parameters
    ----------
    rows : DataFrame
        As :func:`rows_by_size` returns it.
    """
    log = needs_log(rows)
    low, high = ends_of(rows) if log else (0.0, float(rows[["value", "high"]].max().max()))
    length = math.log(high / low) if log else high
    found = []
    for part in panels_of(rows).values():
        groups: list[tuple[list[str], pd.Series]] = []
        for label, _, _ in series_of(part):
            own = part[part["series"] == label].set_index("size")["value"].dropna().astype(float)
            line = own.map(math.log) if log else own
            for names, other in groups:
                same = line.index.equals(other.index) and len(line) > 1
                if same and ((line - other).abs() < 0.01 * length).all():
                    names.append(label)
                    break
            else:
                groups.append(([label], line))
        found += [names for names, _ in groups if len(names) > 1]
    return [f"On one line: {'; '.join(', '.join(names) for names in found)}."] * bool(found)


def needs_log(rows: pd.DataFrame) -> bool:
    """Whether the values ask for a logarithmic axis: by their spread, or as ratios."""
    values = rows["value"].dropna()
    if values.empty or values.min() <= 0:
        return False
    asked = ("log" in rows and rows["log"].all()) or (rows["statistic"] == RATIO).all()
    return bool(asked) or bool(values.max() / values.min() > LOG_SPREAD)


def needs_log_sizes(sizes: Sequence[int]) -> bool:
    """Whether pattern sizes are so far apart that their axis is logarithmic."""
    return max(sizes) / min(sizes) > SIZE_SPREAD


def size_ticks(sizes: Sequence[int]) -> list[int]:
    """The sizes that a logarithmic axis names, so that their numbers do not meet."""
    chosen: list[int] = []
    for size in sorted(sizes):
        if not chosen or size / chosen[-1] > 1.3:
            chosen.append(int(size))
    return chosen


def log_ticks(low: float, high: float) -> list[float]:
    """Round numbers for a logarithmic axis, from three to a dozen where the range has them."""
    if high / low < 1.8:
        # Hardly bent: the steps of a linear axis.
        power = math.floor(math.log10((high - low) / 3))
        step = max(n for n in (1, 2, 5) if n * 10.0**power <= (high - low) / 3) * 10.0**power
        first, end = math.ceil(low / step), math.floor(high / step)
        return [round(number * step, 12) for number in range(first, end + 1)]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if high / low < 6:
        steps: tuple[float, ...] = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    else:
        steps = (1, 2, 5) if high / low < 2e3 else (1,)
    every = max(1, math.ceil(len(decades) / 10))
    ticks = [
        float(f"{step}e{decade}") for decade in decades if decade % every == 0 for step in steps
    ]
    return [tick for tick in ticks if low <= tick <= high]


def ends_of(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of a logarithmic axis, a little beyond all values and intervals."""
    low = min(rows["low"].where(rows["low"] > 0).min(), rows["value"].min())
    high = max(rows["high"].max(), rows["value"].max())
    beyond = max((high / low) ** 0.06, 1.03)
    return float(low / beyond), float(high * beyond)


def panels_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Kind of plan -> its rows, for the kinds that there are."""
    return {
        kind: rows[rows["plan_kind"] == kind]
        for kind in PANELS
        if (rows["plan_kind"] == kind).any()
    }


def series_of(rows: pd.DataFrame) -> Sequence[tuple[str, str, str]]:
    """``(series, algorithm, plans)`` of the rows, each once.

    Built-in generators are in the same order in all legends, user-defined ones behind them.
    """
    named = rows[["series", "generator", "plan_kind"]].drop_duplicates()
    found: list[tuple[str, str, str]] = list(named.itertuples(index=False, name=None))
    return sorted(found, key=lambda one: place_of(one[1]))


def _chosen(summary: pd.DataFrame, metric: str, statistic: str) -> pd.DataFrame:
    missing = [column for column in _NEEDED if column not in summary]
    if missing:
        raise ExperimentError(
            f"no column {missing[0]!r}: a chart is drawn from what "
            "cepbench.analysis.summary.summarize returns"
        )
    for column, wanted in (("metric", metric), ("statistic", statistic)):
        known = list(summary[column].unique())
        if wanted not in known:
            raise ExperimentError(
                f"the summary has no {column} {wanted!r}; it has {', '.join(map(str, known))}"
            )
    chosen = (summary["metric"] == metric) & (summary["statistic"] == statistic)
    rows = summary[chosen].copy()
    for name, value in _DEFAULTS.items():
        if name not in rows:
            rows[name] = value
    return rows


def _labelled(rows: pd.DataFrame, what: str) -> pd.DataFrame:
    if rows.empty:
        raise ExperimentError(f"the summary has no rows {what}")
    return rows.assign(series=series_labels(rows))
