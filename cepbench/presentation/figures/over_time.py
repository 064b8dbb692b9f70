"""How many results each plan had found after how long."""

from __future__ import annotations

import pandas as pd

from cepbench.presentation.figures.averages import rows_by_group
from cepbench.presentation.figures.chart import WHISKERS, Axis, Chart, Marks, Panel, Tip
from cepbench.presentation.figures.rows import looks_of

#: Beyond this multiple of the longest median time whiskers are cut.
WHISKERS_END = 1.25

_TIPS = [
    Tip("series:N", "plan"),
    Tip("results:Q", "results", ","),
    Tip("value:Q", "ms, median", ",.4~g"),
    Tip("low:Q", "95 % from", ",.4~g"),
    Tip("high:Q", "to", ",.4~g"),
]


def results_over_time(summary: pd.DataFrame) -> Chart:
    """A line for each plan: the time on the horizontal axis, the results found until then on the other.

    Parameters
    ----------
    summary : DataFrame
        As :func:`cepbench.experiments.studies.runs.summary_of` returns it for ``seconds``, of runs whose
        setting is a number of results, such as ``1,204``. Medians are drawn, with their intervals.

    Raises
    ------
    ExperimentError
        If the summary has no such rows.

    Notes
    -----
    Source: [liu2011]_, Figures 15 to 19. Differs from the paper: the axis is as long as the medians ask
    for, whatever the longest whisker.
    """
    rows = rows_by_group(summary, "seconds", apart=("engine",))
    results = rows["group"].str.replace(",", "").astype(float)
    times = rows[["value", "low", "high"]].astype(float) * 1000
    end = WHISKERS_END * float(times["value"].max())
    cut = bool((times["high"] > end).any())
    drawn = times[["low", "high"]].clip(upper=end).add_suffix("_drawn")
    rows = rows.assign(results=results, **times, **drawn)
    columns = ["series", "results", "value", "low", "high", *drawn]
    marks = Marks(
        rows[columns], "value", "results", looks_of(rows), x_ends=("low_drawn", "high_drawn"), size=4, joined=True,
        order="results", tips=_TIPS,
    )  # fmt: skip
    note = f"Whiskers end at {WHISKERS_END:g} times the longest median time."
    return Chart(
        "Results over time (further left is better)",
        Axis("execution time (ms), median", ends=(0.0, end), zero=True),
        Axis("number of results", ends=(0.0, float(results.max())), zero=True),
        [Panel(0, 0, [], [marks])],
        explained=WHISKERS.replace("patterns", "runs"),
        notes=[note] * cut,
    )
