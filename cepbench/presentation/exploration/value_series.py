"""The chart of a value series: aggregates over time, with tooltips."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cepbench.arguments import kind_of
from cepbench.engines.aggregation.aggregate import AggregateResult, WorkloadResult
from cepbench.engines.aggregation.tables import power_of_ten, shown_number
from cepbench.errors import EvaluationError
from cepbench.presentation.exploration.open_time import OpenTime, without_pauses

if TYPE_CHECKING:
    import altair as alt

#: Points of a chart; altair refuses more than 5000.
_MOST_POINTS = 4500

#: Shorter times without any value, in nanoseconds, are no pauses of the stream.
_PAUSE = 4 * 3600 * 10**9

#: An axis of more decades is logarithmic.
_DECADES = 4

#: Most labels of a logarithmic axis, and their possible distances in decades.
_LABELS, _STEPS = 5, [step * 10**power for power in range(20) for step in (1, 2, 5)]


def value_series(result: AggregateResult | WorkloadResult) -> alt.TopLevelMixin:
    """Draw the values of AGG over time, one panel per aggregate and one step line per group.

    The altair chart has at most 4500 points and eight groups, and no long pauses of the stream; its subtitle
    lists what was left out. The axis of values that are never negative and span more than four decades is
    logarithmic, also beyond the range of floats.

    Raises
    ------
    EvaluationError
        If there is no value, or it is no result of :func:`cepbench.aggregate`.
    """
    if not isinstance(result, AggregateResult | WorkloadResult):
        raise EvaluationError(
            f"result must be the values of AGG, as cep.aggregate returns them, not {kind_of(result)}"
        )
    from cepbench.presentation.exploration.rates_chart import TYPE_COLOURS
    from cepbench.presentation.exploration.time_axis import WIDTH, TimeAxis, nanoseconds
    from cepbench.presentation.figures.offline import offline
    from cepbench.presentation.figures.vega import alt  # takes seconds

    values = result.values
    if values.empty:
        raise EvaluationError("there is no value to draw: no event is a trigger")
    keys, queries_of = _columns(result)
    names = list(queries_of)
    labels = [
        ", ".join(_unambiguous(str(value)) for value in row if not pd.isna(value))
        for row in values[keys].itertuples(index=False, name=None)
    ]
    data = pd.DataFrame({"time": values["time"]}).assign(group=labels or "")
    largest = set(data["group"].value_counts().index[: len(TYPE_COLOURS)])
    groups = [group for group in dict.fromkeys(data["group"]) if group in largest]
    remarks = ["pick groups in the legend"] if keys else []
    if len(groups) < (many := data["group"].nunique()):
        remarks.append(f"the {len(groups)} of {many:,} groups with most values")
    datetimes = pd.api.types.is_datetime64_any_dtype(data["time"])
    hours = OpenTime(0, 0, ())
    if datetimes:
        hours = without_pauses(np.unique(nanoseconds(data["time"])), _PAUSE)
    axis = TimeAxis(hours, datetimes)
    data = axis.placed(data)
    group = [alt.Tooltip("group:N", title=", ".join(keys))] if keys else []
    if hours.pauses:
        remarks.append("dashed: time without any value left out")
    pick = alt.selection_point(name="pick_group", fields=["group"], bind="legend")
    colours = alt.Color(
        "group:N", sort=groups, title=", ".join(keys), legend=alt.Legend() if keys else None,
        scale=alt.Scale(domain=groups, range=TYPE_COLOURS[: len(groups)]),
    )  # fmt: skip
    most = _MOST_POINTS // (len(names) * len(groups))
    panels: list[Any] = []
    for name in names:
        heights, y = _heights(values[name], name)
        whole = data.assign(height=heights, value=values[name].astype(object))
        if "query" in keys:
            whole = whole[values["query"].isin(queries_of[name])]
        drawn = pd.concat([_thinned(whole[whole["group"] == group], most) for group in groups])
        drawn["value"] = [*map(shown_number, drawn["value"])]
        if len(drawn) < whole["group"].isin(groups).sum():
            remarks.append("of many values the least and the greatest")
        encoded = alt.Chart(drawn).encode(
            x=axis.x(data["time"], labels=name == names[-1]), y=y, color=colours,
            opacity=alt.when(pick).then(alt.value(1.0)).otherwise(alt.value(0.12)),
            tooltip=[*group, axis.tooltip(), alt.Tooltip("value:N", title=name)],
        )  # fmt: skip
        lines = encoded.mark_line(interpolate="step-after", strokeWidth=1.5)
        # All panels refer to the selection in the first one.
        lines = lines if panels else lines.add_params(pick)
        panels.append(alt.layer(lines, *axis.pauses(), width=WIDTH, height=110))
    title = alt.TitleParams(
        "Values over time", subtitle="; ".join(dict.fromkeys(remarks)), anchor="start"
    )
    return offline(alt.vconcat(*panels, spacing=8, title=title))


def _unambiguous(text: str) -> str:
    """A text of a label, in quotes where it looks like several."""
    return json.dumps(text, ensure_ascii=False) if ", " in text else text


def _columns(result: AggregateResult | WorkloadResult) -> tuple[list[str], dict[str, list[str]]]:
    """The columns that tell lines apart, and those of values with the queries that have them."""
    asked = result.workload if isinstance(result, WorkloadResult) else result.pattern
    keys = {"query": None} if asked.by_query else {}
    found: dict[str, list[str]] = {}
    for query, pattern in asked.queries.items():
        keys |= dict.fromkeys(map(str, pattern.group_by))
        for aggregate in pattern.aggregates:
            found.setdefault(str(aggregate), []).append(query)
    return [*keys], found


def _heights(values: pd.Series, name: str) -> tuple[np.ndarray, alt.Y]:
    """The values on their axis, NaN where there is none, and the axis."""
    from cepbench.presentation.figures.offline import prefixed
    from cepbench.presentation.figures.vega import alt

    logarithms, heights = _logarithms(values), _floats(values)
    known = logarithms[np.isfinite(logarithms)]
    has_negative = (values.dropna() < 0).any()
    if has_negative or not len(known) or known.max() - known.min() <= _DECADES:
        axis = alt.Axis(labelExpr=prefixed(), tickCount=4)
        scale = alt.Scale(zero=name.startswith(("COUNT", "SUM")))
        return heights, alt.Y("height:Q", title=name, axis=axis, scale=scale)
    least, most = math.floor(known.min()), math.ceil(known.max())
    step = next(each for each in _STEPS if each * _LABELS >= most - least)
    least = least // step * step
    texts = {exponent: _label(exponent) for exponent in range(least, most + 1, step)}
    if (logarithms == -np.inf).any():
        least -= step
        texts[least] = "0"
        logarithms = np.maximum(logarithms, least)
    axis = alt.Axis(values=[*texts], labelExpr=f"{json.dumps(texts)}[datum.value]")
    scale = alt.Scale(domain=[least, most], nice=False)
    return logarithms, alt.Y("height:Q", title=name, axis=axis, scale=scale)


def _logarithms(values: pd.Series) -> np.ndarray:
    """Of integers of any size, too; of 0 minus infinity, NaN of what has none."""
    if values.dtype == object:
        return np.array([_logarithm(value) for value in values])
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.log10(_floats(values))


def _logarithm(value: Any) -> float:
    if pd.isna(value) or value < 0:
        return math.nan
    return math.log10(value) if value else -math.inf


def _floats(values: pd.Series) -> np.ndarray:
    """NaN for a missing value, and for one beyond the range of floats."""
    if values.dtype == object:
        return np.array([_float(value) for value in values])
    floats = values.to_numpy(np.float64, na_value=np.nan)
    return np.where(np.isinf(floats), np.nan, floats)


def _float(value: Any) -> float:
    try:
        return math.nan if pd.isna(value) else float(value)
    except OverflowError:
        return math.nan


def _label(exponent: int) -> str:
    return f"{10.0**exponent:g}" if exponent < 0 else power_of_ten(exponent)


def _thinned(rows: pd.DataFrame, most: int) -> pd.DataFrame:
    """The rows of one line; of too many the least and the greatest of each part.

    A step ends at the next value, and before a missing one in a row of its own.
    """
    before = rows["height"].shift()
    ends = rows.assign(height=before)[rows["height"].isna() & before.notna()]
    rows = pd.concat([ends, rows]).sort_index(kind="stable", ignore_index=True)
    if len(rows) <= most:
        return rows
    size = -(-2 * len(rows) // most)
    heights = rows["height"].to_numpy()
    kept: set[int] = set()
    for begin in range(0, len(rows), size):
        known = begin + np.flatnonzero(~np.isnan(heights[begin : begin + size]))
        if len(known):
            kept |= {int(known[heights[known].argmin()]), int(known[heights[known].argmax()])}
        else:
            kept.add(begin)
    return rows.iloc[sorted(kept)]
