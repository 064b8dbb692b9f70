"""Runs of one query on several streams, as the tables that summaries, charts and ledgers read.

[mei2009]_ varies the stream under one query and averages over runs, where other studies vary the
pattern. Here a stream takes the place of a pattern set, and a run that of a pattern, so that
intervals are over runs; of streams of several seeds, over these.
"""

from __future__ import annotations

import re

import pandas as pd

from cepbench.experiments.analysis.settings import engines_of
from cepbench.experiments.studies.runs import details_of, in_settings
from cepbench.experiments.sweeps.cells import NO_PLAN
from cepbench.planning.costs.zstream import K

#: The evaluator that runs without a plan, and its name in charts and claims.
NFA_EVALUATOR, NFA = "stack-nfa", "NFA"

#: Behind the name of an engine that makes matches instead of counting them.
MAKING = ", making matches"

#: Behind the name of an engine that evaluates plans as given, operator by operator.
AS_GIVEN = ", as given"

#: What such a run counts; making a record costs 1 in Formula 1.
WORK = ("inputs_tried", "conditions_tested", "records_made")

_SEED = re.compile(r"-seed(\d+)$")


def setting_of(stream: str) -> str:
    """What a stream of a sweep of this study varies, in the words of the paper's axes, whatever its seed.

    >>> [setting_of(name) for name in ("sel-1-32", "sel1-1-50", "rates-1-50-50", "Sun-x10", "short")]
    ['1/32', 'sel1 = 1/50', '1:50:50', 'Sun ×10', 'short']
    """
    stream = _SEED.sub("", stream)
    if not stream:
        return "log"  # of the web server: the only single stream that is a setting
    what, _, numbers = stream.partition("-")
    if what == "rates":
        return numbers.replace("-", ":")
    if what.startswith("sel"):
        share = numbers.replace("-", "/")
        return share if what == "sel" else f"{what} = {share}"
    name, _, times = stream.rpartition("x")
    return f"{name.rstrip('-')} ×{times}".lstrip() if times.isdigit() else stream


def runs_on_streams(results: pd.DataFrame) -> pd.DataFrame:
    """A sweep's results of one pattern with a pattern set for each stream, and a pattern for each run on it.

    Runs that make matches instead of counting them have another evaluator, named by the engine and
    :data:`MAKING`, so that they are an engine of their own in summaries and verdicts, and so have those
    of plans as given, by :data:`AS_GIVEN`, which come first. Runs of the
    NFA, which has no plan, stand beside the plans of every engine: each is repeated under its
    evaluator, as the plan ``NFA``, and ``measured_with`` names the evaluator that ran.

    With the same columns; ``pattern_set`` is :func:`setting_of` the stream, which is empty then,
    ``pattern_id`` that and the number of the run, or the seed of the stream, if it has one. Besides,
    :data:`WORK` and ``work``, the cost of Formula 1 as it was, missing unless the plan ran as given; and
    ``partial_matches_per_byte`` and ``seconds_per_byte`` of the peak memory.
    """
    seeds = results["stream"].str.extract(_SEED)[0]
    runs = in_settings(
        results.assign(repetition=seeds.where(seeds.notna(), results["repetition"].astype(str))),
        results["stream"].map(setting_of),
    )
    runs = runs.assign(
        stream="",
        repetition=results["repetition"],
        partial_matches_per_byte=results["partial_matches_created"] / results["peak_bytes"],
        seconds_per_byte=results["seconds"] / results["peak_bytes"],
        **_work_of(results),
    )
    makes, as_given = runs["output"] == "matches", runs["work"].notna()
    for chosen, suffix in ((as_given, AS_GIVEN), (makes, MAKING)):
        named = pd.Series(engines_of(runs), index=runs.index) + suffix
        runs["evaluator"] = runs["evaluator"].where(~chosen, named)
    runs = pd.concat([runs[as_given], runs[~as_given]], ignore_index=True)
    is_nfa = runs["generator"] == NO_PLAN
    nfa = runs[is_nfa].assign(generator=NFA, plan_kind="tree", measured_with=NFA_EVALUATOR)
    engines = runs.loc[~is_nfa, "evaluator"].unique()
    beside = [nfa.assign(evaluator=engine) for engine in engines]
    return pd.concat([runs[~is_nfa], *beside], ignore_index=True)


def _work_of(results: pd.DataFrame) -> pd.DataFrame:
    """The columns of work of a sweep's results, NaN in runs that did not count it."""
    counts = details_of(results).reindex(columns=list(WORK)).astype(float)
    tried, tested, made = (counts[name] for name in WORK)
    return counts.assign(work=tried + K * tested + made)


def inverse_costs(summary: pd.DataFrame) -> pd.DataFrame:
    """1 / estimated cost, as the paper draws it beside throughput, from a summary of ``plan_cost``.

    The summary is that of :func:`cepbench.experiments.analysis.settings.per_engine`; rows of the
    metric ``inverse_cost``, each plan once, whatever runs it.
    """
    costs = summary[(summary["metric"] == "plan_cost") & summary["value"].notna()]
    costs = costs[costs["engine"] == costs["engine"].iloc[0]]
    inverted = {
        "value": 1 / costs["value"], "low": 1 / costs["high"], "high": 1 / costs["low"]
    }  # fmt: skip
    return costs.assign(metric="inverse_cost", engine="", **inverted)
