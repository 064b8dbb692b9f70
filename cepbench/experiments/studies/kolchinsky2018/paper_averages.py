"""Averages of [kolchinsky2018]_ beside ours: which average is taken decides the size of a gain.

The paper prints ratios of arithmetic means over patterns, in which the patterns of the largest
values count most; here averages are geometric means and medians of the ratios on single patterns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from cepbench.experiments.analysis.summary import PATTERN, RUN, log_quotients, per_pattern

#: The two gains of section 6.3: generator -> the native method that it is compared with.
PAIRS = {"DP-LD": "EFREQ", "DP-B": "ZSTREAM"}

#: Metric, generator and pattern set -> the printed ratio; an empty set stands for all others.
PRINTED: Mapping[tuple[str, str, str], str] = {
    ("events_per_second", "DP-LD", "kleene"): "1.7",
    ("events_per_second", "DP-LD", "conjunction"): "2.7",
    ("events_per_second", "DP-LD", ""): "1.7 to 2.7",
    ("events_per_second", "DP-B", ""): "similar to DP-LD / EFREQ",
    ("peak_bytes", "DP-LD", ""): "0.65 to 0.85",
    ("peak_bytes", "DP-B", ""): "0.25 at the least",
}

#: The same of DP-B over ZSTREAM by the size of sequences, Figure 5.
PRINTED_BY_SIZE = {3: "1.2", 7: "7.6"}


def paper_averages(
    results: pd.DataFrame, metric: str, by: Sequence[str] = ("regime", "pattern_set")
) -> pd.DataFrame:
    """Ratios of DP-LD to EFREQ and of DP-B to ZSTREAM by three averages, and the paper's.

    Of runs of one strategy and weight of latency, by some of ``regime``, ``pattern_set`` and
    ``size``. A run at the limit of partial matches counts with its bound; patterns on which both
    runs of a pair ended there, or either failed, are left out of all three.

    Columns ``by``, ``generator``, ``baseline``, ``evaluator``, ``ratio of means`` (the paper's),
    ``geometric mean of ratios``, ``median of ratios``, ``paper`` (as printed; empty if it is not),
    ``patterns``, ``left_out`` and ``bounds``.

    Source: [kolchinsky2018]_, section 6.3, Figures 3 to 5.
    """
    observed = per_pattern(results, [metric], [*RUN, "regime"], bounds=True)
    rows = []
    for generator, baseline in PAIRS.items():
        of_pair = observed[observed["generator"].isin([generator, baseline])]
        for evaluator, runs in of_pair.groupby("evaluator", sort=False):
            sides = [
                runs[runs["generator"] == name].drop(columns=["generator", "plan_kind"])
                for name in (generator, baseline)
            ]
            pairs = sides[0].merge(sides[1], on=[*PATTERN, "regime"], suffixes=("", "_of_baseline"))
            for key, group in pairs.groupby(list(by), sort=False):
                where = dict(zip(by, key, strict=True))
                named = {"generator": generator, "baseline": baseline, "evaluator": evaluator}
                averages = _averages(group, metric)
                paper = _printed(metric, generator, where)
                rows.append({**where, **named, **averages[0], "paper": paper, **averages[1]})
    return pd.DataFrame(rows)


def _averages(pairs: pd.DataFrame, metric: str) -> tuple[dict[str, float], dict[str, int]]:
    """The three averages over these patterns, and how many there are."""
    over, under = (pairs[name].to_numpy(float) for name in (metric, f"{metric}_of_baseline"))
    bounds = pairs[["bound", "bound_of_baseline"]].to_numpy(bool)
    logs = log_quotients(over, under)
    known = ~np.isnan(logs) & ~bounds.all(axis=1)
    counts = {
        "patterns": int(known.sum()),
        "left_out": int((~known).sum()),
        "bounds": int((known & bounds.any(axis=1)).sum()),
    }
    usable = pd.DataFrame({"over": over, "under": under, "log": logs})[known]
    means = usable.mean()
    found = {
        "ratio of means": float(means["over"] / means["under"]),
        "geometric mean of ratios": float(np.exp(means["log"])),
        "median of ratios": float(np.exp(usable["log"].median())),
    }
    return found, counts


def _printed(metric: str, generator: str, where: Mapping[str, object]) -> str:
    if "size" in where:
        of_size = metric == "events_per_second" and generator == "DP-B"
        sequences = where.get("pattern_set", "sequence") == "sequence"
        return PRINTED_BY_SIZE.get(int(str(where["size"])), "") if of_size and sequences else ""
    own = PRINTED.get((metric, generator, str(where.get("pattern_set", ""))))
    return PRINTED.get((metric, generator, ""), "") if own is None else own
