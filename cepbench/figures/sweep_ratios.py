"""Two sweeps compared: rows of their chart. Chooses and labels; computes nothing."""

from __future__ import annotations

import pandas as pd

from cepbench.analysis.sweep_comparison import SAME, TOO_FEW, verdict_words
from cepbench.errors import ExperimentError
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
        As :class:`cepbench.analysis.sweep_comparison.SweepComparison` has it.
    metric : str

    Returns
    -------
    DataFrame
        Columns ``panel`` (pattern set and size; empty where nothing is grouped), ``label`` (the
        run), ``generator``, ``kind``, ``value``, ``low``, ``high``, ``common``, ``pairs``,
        ``left_out``, ``real`` and ``verdict`` in words; in the order of ``ratios``.

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
            "real": ~chosen["verdict"].isin([SAME, TOO_FEW]),
            "verdict": [verdict_words(metric, verdict) for verdict in chosen["verdict"]],
        }
    ).reset_index(drop=True)


def sweep_ratio_notes(ratios: pd.DataFrame, metric: str) -> list[str]:
    """How many patterns of which run did not end well in both sweeps; none if all did.

    Every ratio is over the patterns of its own run: it is compared with 1, and not with others.
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
    """Heading of the chart, which says what is better."""
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
        if (chosen.groupby("generator")[name].nunique() > 1).any():
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
