"""Runs of workloads by planners, as the tables that charts, pages and the ledger read.

[liu2011]_ varies workload, planner and time; see :mod:`cepbench.experiments.studies.runs`. Regimes are evaluators:
the paper's hierarchical stacks, and trees.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from pandas.io.formats.style import Styler

from cepbench.experiments.studies.measured import StudySweep
from cepbench.experiments.studies.runs import by_seed, figure_runs, number
from cepbench.experiments.sweeps.cells import OK
from cepbench.experiments.sweeps.queries import query_rows, results_over_time
from cepbench.planning.costs.reuse import ReuseProblem, Sources
from cepbench.planning.planners.sharing.chase import chase
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream

#: Streams of the sweep ``pattern`` → DELL's rate, a multiple of the other companies'.
RATES = {
    "dell_001": "0.01", "dell_003": "0.03", "dell_01": "0.1", "dell_03": "0.3", "dell_1": "1",
    "dell_3": "3", "dell_10": "10",
}  # fmt: skip

#: What Chase computes queries of Figure 19 from, as section VII-E has it.
PRINTED_SOURCES = {"q1": None, "q9": "q1", "q2": "q1", "q13": "q1"}

#: Counts of :class:`cepbench.engines.runs.workload_result.Step` that make up the work of a plan.
WORK = ["assembled", "types_tested", "source_matches"]

#: The evaluator on which queries from scratch share stacks.
SHARED_STACKS = "hierarchical-stacks"


def runs_of(sweep: StudySweep) -> pd.DataFrame:
    """The finished runs of a sweep of whole streams, see :func:`with_axes`."""
    return with_axes(sweep.results, sweep.streams)


def with_axes(results: pd.DataFrame, streams: Mapping[str, Path]) -> pd.DataFrame:
    """Finished runs with a setting, a series, their work and their costs; streams are by name.

    As :func:`cepbench.experiments.studies.runs.figure_runs`, with the planner as series, the
    evaluator as ``regime`` and, as settings, DELL's rate if it varies, else the window in ms if
    several were run, else the number of trades. The repetition is ``seed.run``: streams that differ
    in their seed alone are runs of one setting. Besides

    - ``results_per_ms``; ``load``, seconds per second of the stream;
    - ``e_cube``, the cost of the plan by the paper's model, ``inverse_cost``, 10⁶ divided by it, and
      ``plan_log_cost``, the logarithm of the cost per second: the model counts what is done in a
      window;
    - sums over the queries of what :class:`cepbench.engines.runs.workload_result.Step` counts:
      ``reused``, ``delta``, ``assembled``, ``types_tested``, ``source_matches``, and ``work``, the
      sum of the last three, all of which have the unit cost 1 in the paper's model;
      ``work_per_second`` of the stream, and ``results_per_work``;
    - ``reused_per_source_match``: matches reused divided by those of their sources;
    - ``events_inserted`` by queries from scratch: once into stacks that they share, by each query
      on other engines;
    - ``printed_sources``: how many of :data:`PRINTED_SOURCES` the plan has; and the same of Chase's
      plan by the paper's model, ``printed_sources_by_model``.
    """
    results = results[results["status"] == OK].reset_index(drop=True)
    model = _by_model(results, streams)
    results = by_seed(results)
    if model["window_seconds"].nunique() > 1:
        setting = (1000 * model["window_seconds"]).map("{:g}".format)
    elif set(results["stream"]) <= RATES.keys():
        setting = results["stream"].map(RATES)
    else:
        setting = model["trades"].map("{:,.0f}".format)
    seconds = results["seconds"].astype(float)
    counts = _work(results)
    work = counts[WORK].sum(axis="columns")
    runs = results.assign(
        setting=setting,
        regime=results["evaluator"],
        results_per_ms=results["matches"].astype(float) / (1000 * seconds),
        load=seconds / model["stream_seconds"],
        e_cube=model["e_cube"],
        inverse_cost=1e6 / model["e_cube"],
        plan_log_cost=np.log(model["e_cube"] / model["window_seconds"]),
        **counts,
        work=work,
        work_per_second=work / model["stream_seconds"],
        results_per_work=results["matches"].astype(float) / work,
        **model[["events_inserted", "printed_sources", "printed_sources_by_model"]],
    )
    order = setting.str.replace(",", "").astype(float).to_numpy()
    ordered = runs.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)
    return figure_runs(ordered, "setting", "generator")


def _work(results: pd.DataFrame) -> pd.DataFrame:
    """Sums over the queries of each run of what was counted, and the share of sources' matches reused."""
    names = ["reused", "delta", *WORK]
    rows = []
    for text in results["details"]:
        steps = {step["query"]: step for step in json.loads(text)["steps"]}
        of_sources = sum(steps[its["source"]]["results"] for its in steps.values() if its["source"])
        sums = [sum(step[name] for step in steps.values()) for name in names]
        rows.append([*sums, sums[0] / of_sources if of_sources else np.nan])
    return pd.DataFrame(rows, results.index, [*names, "reused_per_source_match"], dtype=float)


def _by_model(results: pd.DataFrame, streams: Mapping[str, Path]) -> pd.DataFrame:
    """Of each run what its plan, its queries and the whole stream say.

    A run itself reads only the trades of the companies that its queries name.
    """
    columns = [
        "e_cube", "window_seconds", "stream_seconds", "trades", "events_inserted",
        "printed_sources", "printed_sources_by_model",
    ]  # fmt: skip
    found = pd.DataFrame(np.nan, results.index, columns)
    for key, rows in results.groupby(["stream", "window", "pattern"], sort=False):
        stream, _, text = map(str, key)
        events = EventStream.from_parquet(streams[stream])
        workload = Workload.parse(text, hierarchy=events.hierarchy)
        statistics = measure_statistics(workload, events)
        problem = ReuseProblem.of(workload, statistics, "e-cube", delays=True)
        window = max(pattern.window.seconds for pattern in workload.patterns.values())
        of_stream = window, seconds_of(events), len(events)
        by_model = printed_sources(chase(problem, np.random.default_rng(0)))
        for row, details, evaluator in rows[["details", "evaluator"]].itertuples():
            sources = sources_of(details)
            found.loc[row] = (
                problem.cost(sources),
                *of_stream,
                events_inserted(workload, sources, events, shared=evaluator == SHARED_STACKS),
                printed_sources(sources),
                by_model,
            )
    return found


def events_inserted(
    workload: Workload, sources: Sources, events: EventStream, *, shared: bool
) -> int:
    """How many events queries from scratch take up, together or each by itself."""
    number = dict(zip(events.type_names, np.bincount(events.type_codes).tolist(), strict=False))
    hierarchy = events.hierarchy
    taken: list[set[str]] = []
    for query, pattern in workload.patterns.items():
        if sources[query] is None:
            names = [variable.type for variable in pattern.variables if variable.type is not None]
            below = (hierarchy.below(n) if hierarchy and n in hierarchy else (n,) for n in names)
            taken.append({name for its in below for name in its})
    if shared:
        taken = [set().union(*taken)]
    return sum(number.get(name, 0) for its in taken for name in its)


def printed_sources(sources: Sources) -> int:
    """How many of :data:`PRINTED_SOURCES` a plan has."""
    return sum(
        query in sources and sources[query] == source for query, source in PRINTED_SOURCES.items()
    )


def seconds_of(stream: EventStream) -> float:
    """The time between the first and the last event."""
    return float(stream.timestamps[-1] - stream.timestamps[0]) / 1e9


def sources_of(details: str) -> Sources:
    """Query → source, from the details of a row of a sweep with planners."""
    return {step["query"]: step["source"] for step in json.loads(details)["steps"]}


def ways_of(results: pd.DataFrame) -> Styler:
    """How each planner computed each query, and how long that took, where there are most results.

    By planner and query, in the order of computation: ``source``, ``results``, ``reused``, and for
    each evaluator the median of its milliseconds.
    """
    most = results.sort_values("matches", kind="stable").iloc[-1]
    same = (results["stream"] == most["stream"]) & (results["window"] == most["window"])
    rows = query_rows(results[same])
    rows = rows.assign(source=rows["source"].fillna("from scratch"))
    by_query = rows.groupby(["generator", "query"], sort=False)
    ways = by_query[["source", "results", "reused"]].first()
    times = 1000 * rows.groupby(["generator", "query", "evaluator"])["seconds"].median().unstack()
    times.columns = [f"ms, {name}" for name in times.columns]
    return ways.join(times).style.format(number, subset=[*times.columns])


def over_time(results: pd.DataFrame, workload: str) -> pd.DataFrame:
    """Seconds of work until each push of a workload, by the matches that it brought the total to.

    Results are of runs in batches. As :func:`cepbench.experiments.studies.runs.figure_runs`, with
    the number of matches as setting, which is the same for all planners, since all find the same.
    The end of the stream is left out.
    """
    curves = results_over_time(results[results["pattern_id"] == f"workload-{workload}"])
    keys = ["generator", "repetition"]
    pushes = curves[curves.groupby(keys).cumcount(ascending=False) > 0]
    runs = pushes.assign(
        setting=pushes["matches"].map("{:,}".format), regime=pushes["evaluator"], size=0, status=OK
    )
    return figure_runs(runs, "setting", "generator")
