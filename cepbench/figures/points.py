"""Plans as points: rows of the charts of Figures 6 and 8. Chooses and labels; computes no averages."""

from __future__ import annotations

import math

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.figures.rows import LOG_SPREAD
from cepbench.figures.styles import series_labels

#: Headings of panels where (a) and (b) are the metrics.
KINDS = {"order": "order-based", "tree": "tree-based"}

#: Heading of the chart of Figure 8.
TRADE_OFF = "Throughput against latency; numbers are α (up and to the left is better)"


def plans_by_cost(points: pd.DataFrame, metric: str) -> pd.DataFrame:
    """The plans that a logarithmic chart can show, with ``series``, ``value`` and a text.

    Parameters
    ----------
    points : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.figure_data.cost_points` returns it.
    metric : str

    Raises
    ------
    ExperimentError
        If there are none.
    """
    rows = points.assign(
        value=pd.to_numeric(points[metric]).astype(float), metric=metric, statistic="plan"
    )
    rows = rows[(rows["value"] > 0) & (rows["cost"] > 0)]
    if rows.empty:
        raise ExperimentError(f"no plan has both a cost and a {metric} above zero")
    return rows.assign(series=series_labels(rows), low=rows["value"], high=rows["value"])


def plans_left_out(points: pd.DataFrame) -> list[str]:
    """How many plans have no point since a run of theirs did not end well; none if there are none.

    Parameters
    ----------
    points : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.figure_data.cost_points` returns it.
    """
    own = points.assign(series=series_labels(points)).drop_duplicates("series")
    texts = [f"{name} {count:,}" for name, count in own[["series", "missing"]].to_numpy() if count]
    return [f"Patterns without a point, as a run did not end well: {', '.join(texts)}."] * bool(
        texts
    )


def line_of_fit(fit: pd.DataFrame, kind: str, rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Ends of the fitted line over the points of one kind of plan, and what to write beside it."""
    found = fit[fit["plan_kind"] == kind].iloc[0]
    ends = [float(rows["cost"].min()), float(rows["cost"].max())]
    values = [math.exp(found["intercept"] + found["exponent"] * math.log(cost)) for cost in ends]
    note = (
        f"exponent {found['exponent']:.2f} "
        f"({found['exponent_low']:.2f} to {found['exponent_high']:.2f})\n"
        f"rank correlation {found['spearman']:.2f} "
        f"({found['spearman_low']:.2f} to {found['spearman_high']:.2f})"
    )
    return pd.DataFrame({"cost": ends, "value": values}), note


def trade_off(points: pd.DataFrame, statistic: str) -> pd.DataFrame:
    """Throughput and latency in milliseconds for each generator and α, labelled.

    Parameters
    ----------
    points : DataFrame
        As :func:`cepbench.studies.kolchinsky2018.figure_data.latency_points` returns it.
    statistic : str
        ``geometric mean``, ``median``, or ``mean`` as in the paper.

    Raises
    ------
    ExperimentError
        If no latency was measured.
    """
    rows = points[(points["statistic"] == statistic) & points["latency"].notna()]
    if rows.empty:
        raise ExperimentError("no latency was measured; run the sweep with latency=True")
    rows = rows.assign(
        series=series_labels(rows),
        latency_ms=rows["latency"] * 1e3,
        low_ms=rows["latency_low"] * 1e3,
        high_ms=rows["latency_high"] * 1e3,
    ).sort_values("alpha", kind="stable")
    return rows.assign(label=_alphas_at_points(rows)).sort_index()


def _alphas_at_points(rows: pd.DataFrame) -> list[str]:
    """The α of each point; all of them at the first of points that lie on each other."""
    labels: list[str] = []
    first: dict[tuple[str, float, float], int] = {}
    for series, x, y, alpha in rows[["series", "latency_ms", "throughput", "alpha"]].itertuples(
        index=False
    ):
        place = first.setdefault((series, x, y), len(labels))
        if place < len(labels):
            labels[place] += f", {alpha:g}"
            labels.append("")
        else:
            labels.append(f"{alpha:g}")
    return labels


def needs_log_latency(rows: pd.DataFrame) -> bool:
    """Whether the latencies of :func:`trade_off` ask for a logarithmic axis."""
    low = rows["latency_ms"].min()
    return bool(low > 0 and rows["latency_ms"].max() / low > LOG_SPREAD)
