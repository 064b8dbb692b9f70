"""Words for metrics, and panels, series and axes of tables of averages, as all charts have them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from cepbench.experiments.sweeps.cells import NO_PLAN
from cepbench.presentation.figures.chart import Axis, Marks, Panel, around
from cepbench.presentation.figures.styles import Style, place_of, series_labels, style_of

#: Beyond this ratio of largest to smallest value an axis is logarithmic.
LOG_SPREAD = 30.0

#: Panels side by side: as many fit on a page.
COLUMNS = 2

#: The statistic of a ratio to a baseline.
RATIO = "ratio"

#: More numbers than this meet below a narrow panel.
MOST_TICKS = 7

#: Panels of every figure, as (a) and (b) in [kolchinsky2018]_.
PANELS = {"order": "(a) order-based", "tree": "(b) tree-based", NO_PLAN: "without plans"}

#: Headings of panels where (a) and (b) are the metrics.
KINDS = {"order": "order-based", "tree": "tree-based", NO_PLAN: "without plans"}


#: Columns whose values are rows of panels, where they vary: their patterns differ.
APART = ("regime",)


@dataclass(frozen=True, slots=True)
class Quantity:
    """Words for a metric."""

    title: str
    #: Title of its axis, with its unit.
    axis: str
    #: ``higher`` or ``lower``.
    better: str
    #: For prefixes such as ``k`` and ``m`` on the axis: a symbol, ``1`` of what is counted, or
    #: empty for plain numbers without prefixes.
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
    "fewer_records": Quantity("1 / records made", "1 / records made", "higher"),
    "seconds": Quantity("Time", "seconds", "lower", "s"),
    "seconds_per_slide": Quantity("Time per slide", "seconds per slide", "lower", "s"),
    "peak_objects": Quantity("Peak objects", "objects", "lower"),
    "plan_seconds": Quantity("Planning time", "seconds", "lower", "s"),
    "search_seconds": Quantity("Planning time", "seconds", "lower", "s"),
    "work": Quantity("Work", "units of work", "lower"),
    "results_per_work": Quantity("Results per work", "results per unit of work", "higher"),
    "load": Quantity("Load", "seconds per second of the stream", "lower", ""),
    "results_per_ms": Quantity("Results", "results per millisecond", "higher", ""),
    "inverse_cost": Quantity("1 / estimated cost", "1 / cost", "higher"),
    "latency_mean": Quantity("Mean latency", "seconds", "lower", "s"),
    "merged_percent": Quantity("Runs merged", "runs merged", "higher", "%"),
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


def few_ticks(low: float, high: float) -> list[float]:
    """Ticks for a panel so narrow that numbers would meet: powers of ten, or some of the others."""
    ticks = log_ticks(low, high)
    tens = [tick for tick in ticks if round(math.log10(tick), 9) % 1 == 0]
    if len(ticks) > MOST_TICKS and len(tens) > 1:
        return tens
    return ticks[:: math.ceil(len(ticks) / MOST_TICKS) or 1]


def ends_of(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of a logarithmic axis, a little beyond all values and intervals."""
    low = rows[["low", "value"]].where(lambda its: its > 0).min().min()
    high = rows[["high", "value"]].max().max()
    return around(float(low), float(high), log=True)


def value_axis(rows: pd.DataFrame, title: str) -> Axis:
    """The axis of values that all panels share: linear from 0, or logarithmic by the rows.

    A line is at 1 where ratios turn from worse to better, unless all are far from it.
    """
    metric, statistic = rows.iloc[0][["metric", "statistic"]]
    unit = "" if statistic == RATIO else quantity_of(metric).unit
    low, high = ends_of(rows)
    one = not unit and low <= 1 <= high
    if needs_log(rows):
        ticks = log_ticks(low, high)
        return Axis(title, log=True, ends=(low, high), ticks=ticks, unit=unit, one=one)
    return replace(axis_from_zero(title, rows[["high", "value"]], unit), one=one)


def axis_from_zero(title: str, numbers: pd.DataFrame, unit: str) -> Axis:
    """A linear axis from 0 that holds all numbers; of no runs at all it has no end."""
    most = float(numbers.max().max())
    return Axis(title, ends=None if math.isnan(most) else (0.0, most), unit=unit, zero=True)


def axis_around(
    title: str,
    numbers: pd.DataFrame,
    unit: str = "",
    *,
    log: bool = True,
    ticks: Callable[[float, float], list[float]] = few_ticks,
) -> Axis:
    """An axis a little beyond all numbers, of which a logarithmic one shows those above 0."""
    shown = numbers.where(numbers > 0) if log else numbers
    ends = around(float(shown.min().min()), float(shown.max().max()), log=log)
    return Axis(title, log=log, ends=ends, ticks=ticks(*ends) if log else (), unit=unit)


def with_series(rows: pd.DataFrame, apart: Sequence[str]) -> pd.DataFrame:
    """The rows with their ``series`` and ``panel``, the row of panels that they belong to.

    Values of the columns ``apart`` are rows of panels, where the rows have them and they vary.
    """
    varied = [name for name in apart if name in rows and rows[name].nunique() > 1]
    named = [", ".join(map(str, values)) for values in rows[varied].to_numpy()] if varied else ""
    found = rows.assign(panel=named)
    return found.assign(series=series_labels(found))


def panels_of(
    rows: pd.DataFrame, names: Mapping[str, str], marks: Callable[[pd.DataFrame], Sequence[Marks]]
) -> list[Panel]:
    """Panels of rows of :func:`with_series`: a column a kind of plan, a row a ``panel``.

    ``names`` has the heading of each kind of plan, ``marks`` what is drawn of a panel's rows.
    """
    kinds = [kind for kind in PANELS if (rows["plan_kind"] == kind).any()]
    return [
        Panel(row, column, [line for line in (str(apart), names[kind]) if line], marks(own))
        for row, (apart, part) in enumerate(rows.groupby("panel", sort=False))
        for column, kind in enumerate(kinds)
        if not (own := part[part["plan_kind"] == kind]).empty
    ]


def looks_of(rows: pd.DataFrame) -> dict[str, Style]:
    """The look of each series of the rows.

    Built-in generators are in the same order in all legends, user-defined ones behind them.
    """
    named = rows[["series", "generator", "plan_kind"]].drop_duplicates()
    found = sorted(named.itertuples(index=False, name=None), key=lambda one: place_of(one[1]))
    return {label: style_of(generator, kind) for label, generator, kind in found}
