"""Two sweeps compared: a row a run with its ratio, interval, and a line at 1."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.analysis.sweep_comparison import SAME, TOO_FEW, verdict_words
from cepbench.presentation.figures.chart import Axis, Chart, Marks, Panel, Tip
from cepbench.presentation.figures.rows import log_ticks, quantity_of
from cepbench.presentation.figures.styles import style_of

#: What the marks are.
LEGEND = (
    "filled: a significant difference; lines: 95 % intervals; grey: what most runs have in common"
)

#: Columns that tell runs of one generator apart, where there are several.
_VARIANTS = ("evaluator", "options", "stream", "regime", "window", "strategy", "alpha")


def sweep_ratios(ratios: pd.DataFrame, metric: str) -> Chart:
    """A row a plan generator: the ratio of two sweeps with its interval, and a line at 1.

    The ratios are as :class:`cepbench.experiments.analysis.sweep_comparison.SweepComparison` has them;
    a panel a pattern set and size, if they were compared by these. See :func:`sweep_ratio_rows` for
    errors.
    """
    rows, quantity = sweep_ratio_rows(ratios, metric), quantity_of(metric)
    named = rows.drop_duplicates("label")[["label", "generator", "kind"]]
    looks = {label: style_of(name, kind) for label, name, kind in named.itertuples(index=False)}
    grey = {label: replace(look, colour="#777777") for label, look in looks.items()}
    ends = sweep_ratio_ends(rows)
    tips = [
        Tip("label:N", "plan generator"),
        Tip("value:Q", "second / first", ".3f"),
        Tip("low:Q", "95 % from", ".3f"),
        Tip("high:Q", "to", ".3f"),
        Tip("common:Q", "common to most runs", ".3f"),
        Tip("pairs:Q", "patterns"),
        Tip("left_out:Q", "patterns left out"),
        Tip("verdict:N"),
    ]
    panels = [
        Panel(0, column, [str(panel)], [
            Marks(part, "common", "label", grey, "label", form="tick", size=14, tips=tips),
            Marks(part, "value", "label", looks, "label", x_ends=("low", "high"), size=7,
                  filled="significant", tips=tips),
        ])
        for column, (panel, part) in enumerate(rows.groupby("panel", sort=False))
    ]  # fmt: skip
    return Chart(
        f"{quantity.title}, second sweep / first ({quantity.better} is better)",
        Axis(log=True, ends=ends, ticks=log_ticks(*ends), one=True),
        Axis(names=tuple(looks)), panels, explained=f"ratio, geometric mean; {LEGEND}",
        notes=sweep_ratio_notes(ratios, metric), legend="", size=(260, max(60, 22 * len(looks))),
    )  # fmt: skip


def sweep_ratio_rows(ratios: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Rows of one metric that have an interval, in the order of ``ratios``.

    ``panel`` is pattern set and size, empty where nothing is grouped, ``label`` the run, and ``verdict`` in
    words. An ExperimentError if there are no such rows.
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


def sweep_ratio_ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of the logarithmic axis: 1 in the middle, so that gains and losses are seen alike."""
    ends = rows[["low", "high", "common"]].stack()
    far = max(float(ends.max()), 1 / float(ends.min()), 1.05) ** 1.1
    return 1 / far, far


def _names(chosen: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
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
