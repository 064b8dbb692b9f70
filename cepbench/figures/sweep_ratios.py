"""Two sweeps compared: rows of their chart. Chooses and labels; computes nothing."""

from __future__ import annotations

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.sweep_comparison import SAME, TOO_FEW, verdict_words
from cepbench.figures.rows import quantity_of

#: What the marks are.
LEGEND = "filled: a real difference; lines: 95 % intervals; grey: what most runs have in common"

#: Columns that tell runs of one generator apart, where there are several.
_VARIANTS = ("evaluator", "strategy", "alpha")


def sweep_ratio_rows(ratios: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Rows of one metric that have an interval.

    Parameters
    ----------
    ratios : DataFrame
        As :class:`cepbench.experiments.sweep_comparison.SweepComparison` has it.
    metric : str

    Returns
    -------
    DataFrame
        Columns ``panel`` (pattern set and size; empty where nothing is grouped), ``label`` (the
        run), ``algorithm``, ``kind``, ``value``, ``low``, ``high``, ``common``, ``pairs``, ``real`` and
        ``verdict`` in words; in the order of ``ratios``.

    Raises
    ------
    ExperimentError
        If there are no such rows.
    """
    chosen = ratios[(ratios["metric"] == metric) & ratios["value"].notna()]
    if chosen.empty:
        known = ", ".join(map(str, ratios["metric"].unique()))
        raise ExperimentError(f"no ratios of {metric!r} to draw; the comparison has {known}")
    label = chosen["algorithm"].astype(str)
    for name in _VARIANTS:
        if (chosen.groupby("algorithm")[name].nunique() > 1).any():
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
    return pd.DataFrame(
        {
            "panel": panel,
            "label": label,
            "algorithm": chosen["algorithm"],
            "kind": chosen["plans"],
            **{name: chosen[name].astype(float) for name in ("value", "low", "high", "common")},
            "pairs": chosen["pairs"].astype(int),
            "real": ~chosen["verdict"].isin([SAME, TOO_FEW]),
            "verdict": [verdict_words(metric, verdict) for verdict in chosen["verdict"]],
        }
    ).reset_index(drop=True)


def sweep_ratio_title(metric: str) -> str:
    """Heading of the chart, which says what is better."""
    quantity = quantity_of(metric)
    return f"{quantity.title}, second sweep / first ({quantity.better} is better)"


def sweep_ratio_ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Ends of the logarithmic axis: 1 in the middle, so that gains and losses are seen alike."""
    ends = rows[["low", "high", "common"]].stack()
    far = max(float(ends.max()), 1 / float(ends.min()), 1.05) ** 1.1
    return 1 / far, far
