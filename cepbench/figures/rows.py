"""Summary table → the rows of one chart. Chooses and labels; computes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.figures.styles import series_labels

_NEEDED = (
    "pattern_set", "size", "algorithm", "plans", "evaluator", "metric", "statistic",
    "value", "low", "high", "patterns", "left_out",
)  # fmt: skip

#: Beyond this ratio of largest to smallest value an axis is logarithmic.
LOG_SPREAD = 30.0

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
    """

    title: str
    axis: str
    better: str


_QUANTITIES = {
    "events_per_second": Quantity("Throughput", "events per second", "higher"),
    "peak_bytes": Quantity("Peak memory", "bytes", "lower"),
    "peak_partial_matches": Quantity("Peak partial matches", "partial matches", "lower"),
    "comparisons": Quantity("Comparisons", "comparisons", "lower"),
    "seconds": Quantity("Time", "seconds", "lower"),
    "plan_seconds": Quantity("Planning time", "seconds", "lower"),
}


def quantity_of(metric: str) -> Quantity:
    """Words for a metric; its own name, if there are no better ones."""
    plain = metric.replace("_", " ")
    return _QUANTITIES.get(metric, Quantity(plain.capitalize(), plain, "lower"))


def chart_title(metric: str, pattern_set: str = "") -> str:
    """Heading of a chart, which says what is better."""
    quantity = quantity_of(metric)
    what = f", {pattern_set} patterns" if pattern_set else ""
    return f"{quantity.title}{what} ({quantity.better} is better)"


def axis_title(metric: str, statistic: str) -> str:
    """Title of the axis of values, with the unit."""
    return f"{statistic} {quantity_of(metric).axis}"


def rows_by_set(summary: pd.DataFrame, metric: str, statistic: str = "mean") -> pd.DataFrame:
    """Rows over all sizes of each pattern set, for Figures 3 and 4.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.summary.summarize` returns it.
    metric, statistic : str

    Returns
    -------
    DataFrame
        The chosen rows with a column ``series``, in the order of ``summary``.

    Raises
    ------
    ExperimentError
        If ``summary`` lacks columns or has no such rows.
    """
    rows = _chosen(summary, metric, statistic)
    return _labelled(rows[rows["size"].isna()], "over all sizes")


def rows_by_size(
    summary: pd.DataFrame, metric: str, pattern_set: str, statistic: str = "mean"
) -> pd.DataFrame:
    """Rows of each size of one pattern set, for Figure 5; see :func:`rows_by_set`."""
    rows = _chosen(summary, metric, statistic)
    rows = rows[rows["size"].notna() & (rows["pattern_set"] == pattern_set)]
    return _labelled(rows, f"of pattern set {pattern_set!r} by size")


def needs_log(rows: pd.DataFrame) -> bool:
    """Whether the spread of the values asks for a logarithmic axis."""
    values = rows["value"].dropna()
    if values.empty or values.min() <= 0:
        return False
    return bool(values.max() / values.min() > LOG_SPREAD)


def panels_of(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Kind of plan -> its rows, for the kinds that there are."""
    return {kind: rows[rows["plans"] == kind] for kind in PANELS if (rows["plans"] == kind).any()}


def series_of(rows: pd.DataFrame) -> Sequence[tuple[str, str, str]]:
    """``(series, algorithm, plans)`` of the rows, each once, in their order."""
    named = rows[["series", "algorithm", "plans"]].drop_duplicates()
    return list(named.itertuples(index=False, name=None))


def _chosen(summary: pd.DataFrame, metric: str, statistic: str) -> pd.DataFrame:
    missing = [column for column in _NEEDED if column not in summary]
    if missing:
        raise ExperimentError(
            f"no column {missing[0]!r}: a chart is drawn from what "
            "cepbench.experiments.summary.summarize returns"
        )
    for column, wanted in (("metric", metric), ("statistic", statistic)):
        known = list(summary[column].unique())
        if wanted not in known:
            raise ExperimentError(
                f"the summary has no {column} {wanted!r}; it has {', '.join(map(str, known))}"
            )
    return summary[(summary["metric"] == metric) & (summary["statistic"] == statistic)]


def _labelled(rows: pd.DataFrame, what: str) -> pd.DataFrame:
    if rows.empty:
        raise ExperimentError(f"the summary has no rows {what}")
    return rows.assign(series=series_labels(rows))
