"""Words for metrics, panels, series, and ends and ticks of axes, as all charts have them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd

from cepbench.experiments.sweeps.cells import NO_PLAN
from cepbench.presentation.figures.styles import place_of, series_labels

#: Beyond this ratio of largest to smallest value an axis is logarithmic.
LOG_SPREAD = 30.0

#: The statistic of a ratio to a baseline.
RATIO = "ratio"

#: Panels of every figure, as (a) and (b) in [kolchinsky2018]_.
PANELS = {"order": "(a) order-based", "tree": "(b) tree-based", NO_PLAN: "without plans"}

#: Headings of panels where (a) and (b) are the metrics.
KINDS = {"order": "order-based", "tree": "tree-based", NO_PLAN: "without plans"}


#: Columns whose values are rows of panels, where they vary: their patterns differ.
APART = ("regime",)


class Panel(NamedTuple):
    """One panel of a chart: the rows of a kind of plan in a row of panels, counted from the top.

    ``apart`` is what this row of panels shows; empty if there is only one.
    """

    row: int
    kind: str
    apart: str
    rows: pd.DataFrame

    @property
    def key(self) -> str:
        """A name that no other panel of the chart has."""
        return f"{self.kind}_{self.row}" if self.row else self.kind

    def heading(self, name: str) -> list[str]:
        """Lines above the panel of plans with this name."""
        return [line for line in (self.apart, name) if line]


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
    "mean_partial_matches": Quantity("Mean partial matches", "partial matches", "lower"),
    "peak_bytes": Quantity("Peak memory", "bytes", "lower", "B"),
    "peak_partial_matches": Quantity("Peak partial matches", "partial matches", "lower"),
    "partial_matches_created": Quantity("Partial matches", "partial matches", "lower"),
    "partial_matches_per_event": Quantity(
        "Partial matches per event", "partial matches per event", "lower"
    ),
    "comparisons": Quantity("Comparisons", "comparisons", "lower"),
    "seconds": Quantity("Time", "seconds", "lower", "s"),
    "seconds_per_slide": Quantity("Time per slide", "seconds per slide", "lower", "s"),
    "peak_objects": Quantity("Peak objects", "objects", "lower"),
    "plan_seconds": Quantity("Planning time", "seconds", "lower", "s"),
    "search_seconds": Quantity("Planning time", "seconds", "lower", "s"),
    "load": Quantity("Load", "seconds per second of the stream", "lower", ""),
    "results_per_ms": Quantity("Results", "results per millisecond", "higher", ""),
    "inverse_cost": Quantity("1 / estimated cost", "1 / cost", "higher"),
    "latency_mean": Quantity("Mean latency", "seconds", "lower", "s"),
    "gain": Quantity("Gain in throughput", "times the throughput", "higher", ""),
    "normalized": Quantity("Normalized plan cost", "cost of EFREQ / cost", "higher", ""),
    "distance": Quantity("Distance from the optimum", "cost / least cost", "lower", ""),
    "regret": Quantity("Regret", "cost / cost of the plan from the right numbers", "lower", ""),
    "slowdown": Quantity("Slowdown", "time / time of the plan from the right numbers", "lower", ""),
    "more_partial_matches": Quantity(
        "Partial matches", "partial matches / those of the plan from the right numbers", "lower", ""
    ),
}


def quantity_of(metric: str) -> Quantity:
    """Words for a metric; its own name, if there are no better ones."""
    plain = metric.replace("_", " ")
    return _QUANTITIES.get(metric, Quantity(plain.capitalize(), plain, "lower"))


def chart_title(rows: pd.DataFrame, what: str = "") -> str:
    """Heading of a chart of these rows, with baselines of ratios and the better direction."""
    quantity = quantity_of(rows["metric"].iloc[0])
    to = ""
    if "baseline" in rows and rows["statistic"].iloc[0] == RATIO:
        pairs = rows.drop_duplicates("plan_kind").sort_values("plan_kind")
        named = pairs["baseline"] + " (" + pairs["plan_kind"] + "s)"
        to = f" relative to {' and '.join(named)}"
    return f"{quantity.title}{to}{f', {what}' if what else ''} ({quantity.better} is better)"


def axis_title(metric: str, statistic: str) -> str:
    """Title of the axis of values, with the unit."""
    if statistic == RATIO:
        return "ratio, geometric mean"
    return f"{statistic} {quantity_of(metric).axis}"


def unit_of(rows: pd.DataFrame) -> str:
    """The unit of :class:`Quantity` for the rows of a chart; ratios have none."""
    metric, statistic = rows.iloc[0][["metric", "statistic"]]
    return "" if statistic == RATIO else quantity_of(metric).unit


def needs_log(rows: pd.DataFrame) -> bool:
    """Whether the values ask for a logarithmic axis: by their spread, or as ratios."""
    values = rows["value"].dropna()
    if values.empty or values.min() <= 0:
        return False
    asked = ("log" in rows and rows["log"].all()) or (rows["statistic"] == RATIO).all()
    return bool(asked) or bool(values.max() / values.min() > LOG_SPREAD)


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


def with_series(rows: pd.DataFrame, apart: Sequence[str]) -> pd.DataFrame:
    """The rows with their ``series`` and ``panel``, the row of panels that they belong to.

    Values of the columns ``apart`` are rows of panels, where the rows have them and they vary.
    """
    varied = [name for name in apart if name in rows and rows[name].nunique() > 1]
    named = [", ".join(map(str, values)) for values in rows[varied].to_numpy()] if varied else ""
    found = rows.assign(panel=named)
    return found.assign(series=series_labels(found))


def panels_of(rows: pd.DataFrame) -> list[Panel]:
    """The panels of rows of :func:`with_series`: a column a kind of plan, a row a ``panel``."""
    return [
        Panel(row, kind, str(apart), part[part["plan_kind"] == kind])
        for row, (apart, part) in enumerate(rows.groupby("panel", sort=False))
        for kind in PANELS
        if (part["plan_kind"] == kind).any()
    ]


def series_of(rows: pd.DataFrame) -> Sequence[tuple[str, str, str]]:
    """``(series, generator, plan kind)`` of the rows, each once.

    Built-in generators are in the same order in all legends, user-defined ones behind them.
    """
    named = rows[["series", "generator", "plan_kind"]].drop_duplicates()
    found: list[tuple[str, str, str]] = list(named.itertuples(index=False, name=None))
    return sorted(found, key=lambda one: place_of(one[1]))
