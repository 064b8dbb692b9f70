"""Cost of plans against a metric of their runs, with a fitted power law."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullFormatter

from cepbench.errors import ExperimentError
from cepbench.presentation.figures.altair_panels import (
    PICK,
    colour_of,
    in_rows,
    joined_panels,
    layered_panel,
    picked,
    picker,
    shape_of,
    value_axis,
)
from cepbench.presentation.figures.matplotlib_panels import (
    TEXT,
    empty_panels,
    finish_panels,
    label_values,
    print_look,
    write_notes,
)
from cepbench.presentation.figures.offline import prefixed
from cepbench.presentation.figures.rows import (
    APART,
    KINDS,
    Panel,
    panels_of,
    quantity_of,
    series_of,
    with_series,
)
from cepbench.presentation.figures.styles import style_of
from cepbench.presentation.figures.vega import alt


def static_points_by_cost(
    points: pd.DataFrame, fit: pd.DataFrame, metric: str, *, apart: Sequence[str] = APART
) -> Figure:
    """A point for each plan, its cost against a metric of its run, and the fitted line.

    Parameters
    ----------
    points : DataFrame
        As :func:`cepbench.experiments.studies.kolchinsky2018.figure_data.cost_points` returns it.
    fit : DataFrame
        As :func:`cepbench.experiments.analysis.cost_fit.cost_fit` returns it for the same metric, by the
        columns ``apart`` that vary.
    metric : str
    apart : sequence of str
        Columns whose values are rows of panels, where they vary: ``regime``, ``evaluator``.

    Notes
    -----
    Source: [kolchinsky2018]_, Figure 6. Differs from the paper: both axes are logarithmic, so that
    a power law is a straight line.
    """
    rows = plans_by_cost(points, metric, apart)
    quantity = quantity_of(metric)
    with print_look():
        figure, panels = empty_panels(rows, sharex=True)
        for axes, panel in panels:
            part = panel.rows
            for label, generator, plans in series_of(part):
                own, style = part[part["series"] == label], style_of(generator, plans)
                axes.plot(
                    own["cost"], own["value"], linestyle="none", marker=style.mark.matplotlib,
                    markersize=5.5, color=style.colour, markeredgecolor="white",
                    markeredgewidth=0.4, label=label,
                )  # fmt: skip
            line, note = line_of_fit(fit, panel)
            axes.plot(line["cost"], line["value"], color="#333333", linewidth=1.2)
            axes.set_title(note, loc="right", fontsize=TEXT, color="#333333", linespacing=1.3)
            axes.set_xscale("log")
            axes.set_xlabel("cost of the plan")
            axes.grid(True, axis="x")
            # Powers of ten would be in letters too small to read.
            axes.xaxis.set_major_formatter(EngFormatter(sep=" "))
            axes.xaxis.set_minor_formatter(NullFormatter())
        finish_panels(figure, panels, rows, f"{quantity.title} against plan cost", KINDS)
        write_notes(figure, plans_left_out(points))
        label_values(panels, quantity.axis)
        return figure


def interactive_points_by_cost(
    points: pd.DataFrame, fit: pd.DataFrame, metric: str, *, apart: Sequence[str] = APART
) -> alt.TopLevelMixin:
    """The chart of :func:`static_points_by_cost`, with the plans as tooltips."""
    rows = plans_by_cost(points, metric, apart)
    quantity = quantity_of(metric)
    columns = ["series", "pattern_set", "size", "pattern_id", "plan", "cost", "value"]
    ends = [float(rows["cost"].min()), float(rows["cost"].max())]
    panels, drawn = panels_of(rows), []
    for panel in panels:
        part, pick = panel.rows, picker(panel.key)
        x = alt.X("cost:Q", title="cost of the plan", axis=alt.Axis(labelExpr=prefixed("1"), tickCount=6),
                  scale=alt.Scale(type="log", domain=ends, nice=False, padding=10))  # fmt: skip
        marks = (
            alt.Chart(part[columns])
            .mark_point(filled=True, size=60, opacity=0.9)
            .encode(
                x=x, y=value_axis(rows, quantity.axis), color=colour_of(part), shape=shape_of(part),
                opacity=picked(pick),
                tooltip=[
                    alt.Tooltip("series:N", title="plan generator"),
                    alt.Tooltip("pattern_set:N", title="pattern set"),
                    alt.Tooltip("size:O"),
                    alt.Tooltip("plan:N"),
                    alt.Tooltip("cost:Q", format=",.4~g"),
                    alt.Tooltip("value:Q", title=quantity.axis, format=",.4~g"),
                ],
            )
        )  # fmt: skip
        line, note = line_of_fit(fit, panel)
        fitted = (
            alt.Chart(line)
            .mark_line(color="#333333", strokeWidth=1.5)
            .encode(x=x, y=value_axis(rows, quantity.axis))
        )
        lines = [*panel.heading(KINDS[panel.kind]), *note.split("\n")]
        drawn.append(layered_panel(lines, pick, fitted, marks))
    heading = f"{quantity.title} against plan cost"
    return joined_panels(in_rows(panels, drawn), heading, PICK, plans_left_out(points))


def plans_by_cost(points: pd.DataFrame, metric: str, apart: Sequence[str] = APART) -> pd.DataFrame:
    """The plans that a logarithmic chart can show, with ``series``, ``panel`` and ``value``.

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
    return with_series(rows.assign(low=rows["value"], high=rows["value"]), apart)


def plans_left_out(points: pd.DataFrame) -> list[str]:
    """A sentence that counts plans without a point, since a run failed; none if all have one."""
    own = with_series(points, APART).drop_duplicates(["panel", "series"])
    texts = []
    lacking = own[own["missing"] > 0]
    for panel in lacking["panel"].unique():
        its = lacking.loc[lacking["panel"] == panel, ["series", "missing"]].to_numpy()
        counts = ", ".join(f"{series} {count:,}" for series, count in its)
        texts.append(f"{counts} ({panel!s})" if panel else counts)
    return [f"Patterns without a point, as a run did not end well: {'; '.join(texts)}."] * bool(
        texts
    )


def line_of_fit(fit: pd.DataFrame, panel: Panel) -> tuple[pd.DataFrame, str]:
    """Ends of the fitted line over the points of a panel, and its label."""
    rows = panel.rows
    keys = ["plan_kind", *(name for name in ("regime", "evaluator") if name in fit)]
    found = fit.merge(rows[keys].drop_duplicates(), on=keys).iloc[0]
    ends = [float(rows["cost"].min()), float(rows["cost"].max())]
    values = [math.exp(found["intercept"] + found["exponent"] * math.log(cost)) for cost in ends]
    note = (
        f"exponent {found['exponent']:.2f} "
        f"({found['exponent_low']:.2f} to {found['exponent_high']:.2f})\n"
        f"rank correlation {found['spearman']:.2f} "
        f"({found['spearman_low']:.2f} to {found['spearman_high']:.2f})"
    )
    return pd.DataFrame({"cost": ends, "value": values}), note
