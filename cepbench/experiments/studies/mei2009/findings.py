"""Sentences on the runs of a query, with their numbers, for the pages and the front page."""

from __future__ import annotations

import pandas as pd
from pandas.io.formats.style import Styler

from cepbench.experiments.analysis.settings import engines_of
from cepbench.experiments.studies.mei2009.runs import WORK

#: A plan with this share of the highest throughput is named beside it.
_CLOSE = 0.95


def medians(runs: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Medians over runs: settings in rows, engines and plans in columns, all in their order.

    Runs are those of :func:`cepbench.experiments.studies.mei2009.runs.runs_on_streams`.
    """
    plain = pd.DataFrame(
        {
            "setting": runs["pattern_set"],
            "engine": engines_of(runs),
            "plan": runs["generator"],
            "value": pd.to_numeric(runs[metric]).astype(float),
        }
    )
    found = plain.groupby(["setting", "engine", "plan"], sort=False)["value"].median()
    columns = plain[["engine", "plan"]].drop_duplicates().itertuples(index=False, name=None)
    wide = found.unstack(["engine", "plan"]).reindex(
        plain["setting"].unique(), columns=pd.MultiIndex.from_tuples(columns)
    )
    return wide[plain["engine"].unique()]


def table_of_medians(runs: pd.DataFrame, *metrics: str) -> Styler:
    """Medians over runs as a table for readers: a row a setting and metric, a column a plan."""
    table = pd.concat(
        {metric.replace("_", " "): medians(runs, metric) for metric in metrics}, names=["median"]
    )
    return table.swaplevel().style.format("{:,.0f}", na_rep="–")


def table_of_work(runs: pd.DataFrame) -> Styler:
    """What plans as given do, medians over runs: a row a setting and count, a column a plan."""
    as_given = runs[runs["work"].notna() & (runs["output"] == "count")]
    return table_of_medians(as_given, *WORK, "work")


def compared(runs: pd.DataFrame, setting: str, over: str, under: str) -> str:
    """How much faster one plan is than another under a setting, and how many partial matches it saves.

    Empty if one of them was not measured.
    """
    speed = medians(runs, "events_per_second")
    created = medians(runs, "partial_matches_created")
    if setting not in speed.index:
        return ""
    engines = [
        engine
        for engine in speed.columns.unique(0)
        if {(engine, over), (engine, under)} <= {*speed.columns}
    ]
    if not engines:
        return ""
    ratios = [float((speed[engine, over] / speed[engine, under])[setting]) for engine in engines]
    faster = [f"{ratio:.2g} ({engine})" for ratio, engine in zip(ratios, engines, strict=True)]
    few, many = (float(created[engines[0], plan][setting]) for plan in (over, under))
    saved = f", and creates {few:,.0f} partial matches instead of {many:,.0f}" if many > 0 else ""
    return f"At {setting} {over} has {' and '.join(faster)} times the throughput of {under}{saved}."


def fastest(runs: pd.DataFrame) -> str:
    """The plans of the highest throughput under each setting, on each engine where there are several."""
    speed = medians(runs, "events_per_second")
    several = speed.columns.unique(0).size > 1
    parts: dict[str, list[str]] = {}
    for setting in speed.index:
        named = []
        for engine in speed.columns.unique(0):
            own = speed[engine].loc[setting].dropna().sort_values(ascending=False)
            best = own.index[own >= _CLOSE * own.iloc[0]]
            named.append(", ".join(best) + f" ({engine})" * several)
        parts.setdefault("; ".join(named), []).append(str(setting))
    fastest_plans = "; ".join(f"{plans} under {', '.join(where)}" for plans, where in parts.items())
    return f"Fastest, or within {1 - _CLOSE:.0%} of it: {fastest_plans}."
