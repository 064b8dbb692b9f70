"""What the paper found, beside what a sweep measured.

The paper compares averages over the patterns of a set. Here a claim is measured by the geometric
mean of the ratios of single patterns, with a bootstrap interval: one pattern of a thousand times
the others' throughput then counts as much as any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from pandas.io.formats.style import Styler

from cepbench.experiments.summary import paired_ratios

#: How far from 1 a ratio may be that still counts as "comparable", up and down.
COMPARABLE = 1.25


#: Resampling fewer patterns than this says nothing about others.
FEWEST = 5


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of [kolchinsky2018]_, section 6.3, as a ratio that can be measured.

    Attributes
    ----------
    figure : str
    metric, algorithm, baseline : str
        The ratio: the metric with ``algorithm`` over that with ``baseline``.
    paper : str
        The paper's words and figures, in short.
    low, high : float or None
        The range that the paper gives; None on both sides: it gives a direction only.
    expects : str
        ``more``, ``less`` or ``same``.
    pattern_sets : tuple of str
    size : int or None
        None: all sizes together.
    """

    figure: str
    metric: str
    algorithm: str
    baseline: str
    paper: str
    expects: str
    low: float | None = None
    high: float | None = None
    pattern_sets: tuple[str, ...] = ("sequence", "conjunction")
    size: int | None = None


_BOTH_GAINS = "1.7 to 2.7 over the five pattern sets"
_MEMORY = "0.65 to 0.85"

CLAIMS: tuple[Claim, ...] = (
    Claim("3", "events_per_second", "DP-LD", "EFREQ", "2.7 for conjunctions", "more", 2.7, 2.7,
          ("conjunction",)),
    Claim("3", "events_per_second", "DP-LD", "EFREQ", _BOTH_GAINS, "more", 1.7, 2.7, ("sequence",)),
    Claim("3", "events_per_second", "DP-B", "ZSTREAM", f"similar to that: {_BOTH_GAINS}", "more",
          1.7, 2.7),
    Claim("3", "events_per_second", "DP-LD", "GREEDY", "comparable", "same"),
    Claim("3", "events_per_second", "DP-LD", "II-GREEDY", "comparable", "same"),
    Claim("3", "events_per_second", "DP-B", "ZSTREAM-ORD", "a convincing advantage", "more"),
    Claim("3", "events_per_second", "DP-B", "DP-LD", "trees far ahead of orders", "more"),
    Claim("4", "peak_bytes", "GREEDY", "EFREQ", _MEMORY, "less", 0.65, 0.85),
    Claim("4", "peak_bytes", "II-RANDOM", "EFREQ", _MEMORY, "less", 0.65, 0.85),
    Claim("4", "peak_bytes", "II-GREEDY", "EFREQ", _MEMORY, "less", 0.65, 0.85),
    Claim("4", "peak_bytes", "DP-LD", "EFREQ", _MEMORY, "less", 0.65, 0.85),
    Claim("4", "peak_bytes", "II-GREEDY", "DP-LD", "slightly less", "less"),
    Claim("4", "peak_bytes", "DP-B", "ZSTREAM", "down to almost a quarter", "less", 0.25, 1.0),
    Claim("4", "peak_bytes", "DP-B", "DP-LD", "trees far ahead of orders", "less"),
    Claim("5", "events_per_second", "DP-B", "ZSTREAM", "1.2 at size 3", "more", 1.2, 1.2,
          ("sequence",), 3),
    Claim("5", "events_per_second", "DP-B", "ZSTREAM", "7.6 at size 7", "more", 7.6, 7.6,
          ("sequence",), 7),
)  # fmt: skip

_NAMES = {"events_per_second": "throughput", "peak_bytes": "peak memory"}


def compare_with_paper(results: pd.DataFrame, figure: str, *, seed: int = 0) -> pd.DataFrame:
    """The paper's claims about one of its figures, each beside what was measured.

    Parameters
    ----------
    results : DataFrame
        As :func:`cepbench.experiments.store.read_results` returns it.
    figure : str
        ``3``, ``4`` or ``5``.
    seed : int
        Of the bootstrap.

    Returns
    -------
    DataFrame
        One row a claim and pattern set: ``figure``, ``ratio``, ``pattern_set``, ``size``,
        ``paper``, ``value``, ``low``, ``high`` (geometric mean over patterns and its 95 %
        interval), ``patterns``, ``left_out`` and ``verdict``. Claims about what was not run are
        there with the verdict "not measured".
    """
    rows = []
    for claim in CLAIMS:
        if claim.figure != figure:
            continue
        for pattern_set in claim.pattern_sets:
            found = _measured(results, claim, pattern_set, seed)
            rows.append(
                {
                    "figure": claim.figure,
                    "ratio": f"{_NAMES[claim.metric]}, {claim.algorithm} / {claim.baseline}",
                    "pattern_set": pattern_set,
                    "size": claim.size,
                    "paper": claim.paper,
                    **found,
                    "verdict": _verdict(claim, found),
                }
            )
    return pd.DataFrame(rows).astype({"size": "Int64"})


def gains_by_size(
    results: pd.DataFrame,
    metric: str,
    pairs: Sequence[tuple[str, str]] = (("DP-LD", "EFREQ"), ("DP-B", "ZSTREAM")),
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Ratios of pairs of generators at every pattern size; pairs that did not both run are left out.

    Returns
    -------
    DataFrame
        Rows of :func:`cepbench.experiments.summary.paired_ratios`, geometric means only.
    """
    ran = set(results["algorithm"])
    tables = [
        paired_ratios(results, metric, algorithm, baseline, seed=seed)
        for algorithm, baseline in pairs
        if {algorithm, baseline} <= ran
    ]
    if not tables:
        return pd.DataFrame()
    table = pd.concat(tables, ignore_index=True)
    return table[(table["statistic"] == "geometric mean") & table["size"].notna()]


def readable(table: pd.DataFrame) -> pd.DataFrame:
    """A table of ratios for people: ``1.93 (1.61 to 2.30)`` in place of three columns."""
    measured = [
        "–" if pd.isna(value) else f"{value:.2f} ({low:.2f} to {high:.2f})"
        for value, low, high in table[["value", "low", "high"]].itertuples(index=False)
    ]
    shown = table.assign(value=measured).drop(columns=["low", "high"])
    shown = shown.rename(columns={"value": "measured (95 %)"})
    shown.columns = [name.replace("_", " ") for name in shown.columns]
    return shown.astype(object).where(shown.notna(), "all")


def for_readers(table: pd.DataFrame) -> Styler:
    """The table of :func:`readable` for a notebook's cell: texts to the left, names escaped."""
    styler = readable(table).style.hide(axis="index").format(escape="html")
    return styler.set_table_styles([{"selector": "th, td", "props": "text-align: left"}])


def _measured(
    results: pd.DataFrame, claim: Claim, pattern_set: str, seed: int
) -> dict[str, float | int]:
    nothing = {"value": float("nan"), "low": float("nan"), "high": float("nan"), "patterns": 0}
    part = results[results["pattern_set"] == pattern_set]
    if not {claim.algorithm, claim.baseline} <= set(part["algorithm"]):
        return {**nothing, "left_out": 0}
    ratios = paired_ratios(part, claim.metric, claim.algorithm, claim.baseline, seed=seed)
    of_size = ratios["size"].isna() if claim.size is None else ratios["size"] == claim.size
    rows = ratios[of_size & (ratios["statistic"] == "geometric mean")]
    if rows.empty:
        return {**nothing, "left_out": 0}
    row = rows.iloc[0]
    return {
        **{name: float(row[name]) for name in ("value", "low", "high")},
        **{name: int(row[name]) for name in ("patterns", "left_out")},
    }


def _verdict(claim: Claim, found: dict[str, float | int]) -> str:
    low, high = found["low"], found["high"]
    if not found["patterns"]:
        return "not measured"
    if found["patterns"] < FEWEST:
        return f"undecided: fewer than {FEWEST} patterns"
    if claim.expects == "same":
        if low >= 1 / COMPARABLE and high <= COMPARABLE:
            return "as in the paper"
        apart = low > COMPARABLE or high < 1 / COMPARABLE
        return "differs" if apart else "undecided"
    if claim.expects == "more":
        right_way, wrong_way = low > 1, high < 1
    else:
        right_way, wrong_way = high < 1, low > 1
    if wrong_way:
        return "the other way round"
    if not right_way:
        return "undecided: the interval holds 1"
    if claim.low is None or claim.high is None or (low <= claim.high and high >= claim.low):
        return "as in the paper"
    nearer_one = high < claim.low if claim.expects == "more" else low > claim.high
    return "same direction, " + ("smaller" if nearer_one else "larger")
