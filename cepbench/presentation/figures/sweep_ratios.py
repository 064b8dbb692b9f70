"""Two sweeps compared: a row a run with its ratio, interval, and a line at 1."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.sweep_comparison import SAME, TOO_FEW, verdict_words
from cepbench.presentation.figures.altair_panels import joined_panels, log_x, row_panels
from cepbench.presentation.figures.matplotlib_panels import (
    log_axis,
    panel_row,
    print_look,
    write_notes,
    write_title,
)
from cepbench.presentation.figures.rows import log_ticks, quantity_of
from cepbench.presentation.figures.styles import style_of
from cepbench.presentation.figures.vega import alt

#: What the marks are.
LEGEND = (
    "filled: a significant difference; lines: 95 % intervals; grey: what most runs have in common"
)

#: Columns that tell runs of one generator apart, where there are several.
_VARIANTS = ("evaluator", "options", "stream", "regime", "window", "strategy", "alpha")


def static_sweep_ratios(ratios: pd.DataFrame, metric: str) -> Figure:
    """A row a plan generator: the ratio of two sweeps with its interval, and a line at 1.

    Parameters
    ----------
    ratios : DataFrame
        As :class:`cepbench.experiments.analysis.sweep_comparison.SweepComparison` has it; a panel a
        pattern set and size, if it was compared by these.
    metric : str

    Raises
    ------
    ExperimentError
        If there are no such rows.
    """
    rows = sweep_ratio_rows(ratios, metric)
    labels = list(dict.fromkeys(rows["label"]))
    place = {label: -rank for rank, label in enumerate(labels)}
    panels = list(dict.fromkeys(rows["panel"]))
    ends = sweep_ratio_ends(rows)
    with print_look():
        figure, grid = panel_row(
            len(panels), 2.6 * len(panels) + 3.0, 0.26 * len(labels) + 1.3, sharex=True
        )
        for axes, panel in zip(grid, panels, strict=True):
            axes.axvline(1.0, color="#333333", linewidth=0.8)
            for row in rows[rows["panel"] == panel].to_dict("records"):
                style = style_of(row["generator"], row["kind"])
                y = place[row["label"]]
                axes.plot(
                    row["common"], y, "|", color="#777777", markersize=14, markeredgewidth=1.6
                )
                axes.plot([row["low"], row["high"]], [y, y], color=style.colour, linewidth=1.4)
                axes.plot(
                    row["value"], y, linestyle="none", marker=style.mark.matplotlib, markersize=7,
                    markeredgecolor=style.colour, markeredgewidth=1.2,
                    markerfacecolor=style.colour if row["significant"] else "white",
                )  # fmt: skip
            log_axis(axes, "x", log_ticks(*ends))
            axes.set_xlim(*ends)
            axes.set_ylim(0.6 - len(labels), 0.6)
            axes.grid(True, axis="x")
            axes.set_title(panel)
        grid[0].set_yticks(list(place.values()), labels)
        write_title(figure, sweep_ratio_title(metric))
        notes = sweep_ratio_notes(ratios, metric)
        write_notes(figure, notes, f"ratio, geometric mean ({LEGEND})")
        return figure


def interactive_sweep_ratios(ratios: pd.DataFrame, metric: str) -> alt.TopLevelMixin:
    """The chart of :func:`static_sweep_ratios`, with tooltips."""
    rows = sweep_ratio_rows(ratios, metric)
    named = rows.drop_duplicates("label")[["label", "generator", "kind"]]
    styles = {label: style_of(name, kind) for label, name, kind in named.itertuples(index=False)}
    colours = {label: style.colour for label, style in styles.items()}
    shapes = [style.mark.vega for style in styles.values()]
    shape = alt.Shape("label:N", legend=None, scale=alt.Scale(domain=list(styles), range=shapes))
    ends = sweep_ratio_ends(rows)
    x = log_x(ends, log_ticks(*ends))
    tooltip = [
        alt.Tooltip("label:N", title="plan generator"),
        alt.Tooltip("value:Q", title="second / first", format=".3f"),
        alt.Tooltip("low:Q", title="95 % from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
        alt.Tooltip("common:Q", title="common to most runs", format=".3f"),
        alt.Tooltip("pairs:Q", title="patterns"),
        alt.Tooltip("left_out:Q", title="patterns left out"),
        alt.Tooltip("verdict:N"),
    ]
    one = alt.Chart(pd.DataFrame({"value": [1.0]})).mark_rule(color="#333333")

    def layers(base: alt.Chart) -> list[alt.Chart]:
        marks = base.mark_point(size=80, opacity=1, strokeWidth=1.5)
        colour = base.encoding.color
        fill = alt.condition("datum.significant", colour, alt.value("white"))
        return [
            one.encode(x=x("value")),
            base.mark_tick(thickness=2, size=16).encode(x=x("common"), color=alt.value("#777777")),
            base.mark_rule(strokeWidth=2).encode(x=x("low"), x2="high:Q"),
            marks.encode(x=x("value"), shape=shape, fill=fill),
        ]

    parts = {str(panel): part for panel, part in rows.groupby("panel", sort=False)}
    height = max(60, 22 * len(styles))
    panels = row_panels(parts, "label", colours, tooltip, layers, width=260, height=height)
    subtitle, notes = f"ratio, geometric mean; {LEGEND}", sweep_ratio_notes(ratios, metric)
    return joined_panels(panels, sweep_ratio_title(metric), subtitle, notes)


def sweep_ratio_rows(ratios: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Rows of one metric that have an interval, in the order of ``ratios``.

    ``panel`` is pattern set and size, empty where nothing is grouped, ``label`` the run, and ``verdict`` in
    words.

    Raises
    ------
    ExperimentError
        If there are no such rows.
    """
    chosen = ratios[(ratios["metric"] == metric) & ratios["value"].notna()]
    if chosen.empty:
        known = ", ".join(map(str, ratios["metric"].unique()))
        raise ExperimentError(f"no ratios of {metric!r} to draw; the comparison has {known}")
    label, panel = _names(chosen)
    return pd.DataFrame(
        {
            "panel": panel,
            "label": label,
            "generator": chosen["generator"],
            "kind": chosen["plan_kind"],
            **{name: chosen[name].astype(float) for name in ("value", "low", "high", "common")},
            "pairs": chosen["pairs"].astype(int),
            "left_out": chosen["left_out"].astype(int),
            "significant": ~chosen["verdict"].isin([SAME, TOO_FEW]),
            "verdict": [verdict_words(metric, verdict) for verdict in chosen["verdict"]],
        }
    ).reset_index(drop=True)


def sweep_ratio_notes(ratios: pd.DataFrame, metric: str) -> list[str]:
    """Numbers of patterns per run that did not end well in both sweeps; none if all did.

    Every ratio is over the patterns of its run, so it compares with 1 and not with other ratios.
    """
    chosen = ratios[ratios["metric"] == metric]
    label, panel = _names(chosen)
    texts = [
        f"{name} {count:,}" + (f" ({where})" if where else "")
        for name, where, count in zip(label, panel, chosen["left_out"], strict=True)
        if count
    ]
    return [f"Patterns left out, not ended well in both: {', '.join(texts)}."] * bool(texts)


def sweep_ratio_title(metric: str) -> str:
    """Heading of the chart, with the better direction."""
    quantity = quantity_of(metric)
    return f"{quantity.title}, second sweep / first ({quantity.better} is better)"


def sweep_ratio_ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of the logarithmic axis: 1 in the middle, so that gains and losses are seen alike."""
    ends = rows[["low", "high", "common"]].stack()
    far = max(float(ends.max()), 1 / float(ends.min()), 1.05) ** 1.1
    return 1 / far, far


def _names(chosen: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Label and panel of each row of a comparison."""
    label = chosen["generator"].astype(str)
    for name in _VARIANTS:
        if name in chosen and (chosen.groupby("generator")[name].nunique() > 1).any():
            shown = chosen[name].astype(str)
            if name == "alpha":
                shown = chosen[name].map("α={:g}".format)
            label = label + " " + shown
    panel = pd.Series("", index=chosen.index)
    if "pattern_set" in chosen:
        panel = chosen["pattern_set"].str.replace("_", " ")
    if "size" in chosen:
        sizes = chosen["size"].map(
            lambda size: "all sizes" if pd.isna(size) else f"size {int(size)}"
        )
        panel = (panel + " " + sizes.astype(str)).str.strip()
    return label, panel
