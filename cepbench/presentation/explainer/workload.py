"""A plan of a workload, explained: what each query was expected to cost and to find, and what it did."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cepbench.diagram import Diagram
from cepbench.engines.detection.workload_evaluate import evaluate_workload, workload_plan
from cepbench.engines.runs.protocol import Arguments
from cepbench.engines.runs.result import Metrics
from cepbench.engines.runs.workload_result import WorkloadMatches
from cepbench.errors import PartialMatchLimitError
from cepbench.planning.costs.q_error import q_error
from cepbench.planning.costs.reuse import reuse_cost
from cepbench.planning.costs.reuse_calibrated import Calibrated
from cepbench.planning.planners.sharing.generate import with_virtual
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.reuse import sources_in
from cepbench.planning.plans.reuse_drawing import reuse_diagram
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.given import workload_statistics
from cepbench.planning.statistics.measure import active_time, measure_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload
from cepbench.presentation.explainer.columns import (
    MARKED,
    MISSING,
    Column,
    Row,
    factor,
    numbers,
    percent,
    short,
    texts,
)
from cepbench.presentation.explainer.report import Content, Report
from cepbench.streams.event_stream import EventStream

#: Columns of estimates, of which the first four are those of ``WorkloadPlan.steps``.
_ESTIMATED = ("query", "source", "method", "change", "cost", "scratch_cost", "estimated")

#: Both plans run in turn until this many seconds are spent, at most so many times.
_SECONDS, _MOST_RUNS = 0.5, 15


@dataclass(frozen=True, repr=False)
class WorkloadExplanation(Report):
    """A plan of a workload with estimates and, if it was run, measurements by query.

    ``steps`` has a row for each query in the order of computation: ``query``, ``source``, ``method`` and
    ``change`` as in :attr:`cepbench.WorkloadPlan.steps`;

    - ``cost``, ``scratch_cost``: what the query is expected to cost in the plan, and from scratch;
    - ``estimated``: expected matches, in the whole stream if there is one, else per second (or tick);

    and only for a plan that was run:

    - ``results``, ``reused``, ``delta``: see :class:`~cepbench.engines.runs.workload_result.Step`;
    - ``q_error``: factor between ``estimated`` and ``results``;
    - ``seconds``, ``scratch_seconds``: time of the query in the plan, and from scratch, where NaN is not
      measured;
    - ``cost_q_error``: factor between the query's shares of all ``cost`` and of all ``seconds``; a factor
      common to all queries changes no plan;
    - ``worth_it``: whether a query with a source took less time than from scratch; None without a source.
    """

    plan: WorkloadPlan
    #: Its name; None for the default one of each query.
    evaluator: str | None
    steps: pd.DataFrame
    #: Of the plan's fastest run; None if it was not run.
    metrics: Metrics | None = None
    #: Why a measurement is missing.
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        ran = "not run" if self.metrics is None else f"{self.metrics.matches:,} matches"
        return f"WorkloadExplanation({len(self.steps)} queries, {ran})"

    def sentences(self) -> list[str]:
        """What the reuse was worth, in the whole and by query, and how far the estimates were off."""
        found = [*self.remarks]
        if self.metrics is None:
            return found
        rows = self.steps.to_dict("records")
        took, scratch = self.steps["seconds"].sum(), self.steps["scratch_seconds"].sum(min_count=1)
        if not math.isnan(scratch) and self.steps["source"].notna().any():
            found.append(
                f"All queries took {_time(took)}, from scratch {_time(scratch)}: "
                + _ratio(scratch, took)
            )
        for worth, words in ((True, "Worth it"), (False, "Not worth it")):
            edges = [
                f"{row['query']} from {_named(row)}, {_time(row['seconds'])} instead of "
                f"{_time(row['scratch_seconds'])}"
                + (" (expected otherwise)" * (_pays(row) is not worth))
                for row in rows
                if row["worth_it"] is worth
            ]
            if edges:
                found.append(f"{words}: {'; '.join(edges)}.")
        wrong = [row for row in rows if row["q_error"] >= MARKED[0]]
        if wrong:
            found.append(
                f"Matches off by a factor of {MARKED[0]:g} or more: "
                + ", ".join(f"{row['query']} {_off(row)}" for row in wrong)
                + "; × more, ÷ fewer than expected."
            )
        return found

    def _content(self) -> Content:
        headline = self.plan.describe().splitlines()[0]
        rows = self.steps.to_dict("records")
        return Content([headline], self._columns(), [rows], self._figures())

    def _columns(self) -> list[Column]:
        total = self.steps["cost"].sum() or math.nan
        found = [
            texts("query", "query"),
            Column("computed", _how, is_left=True),
            Column("est. cost", lambda row: percent(row["cost"] / total)),
            Column("of scratch", lambda row: short(row["cost"] / row["scratch_cost"])),
        ]
        if self.metrics is None:
            patterns = self.plan.workload.patterns.values()
            unit = "second" if all(its.window.is_datetime for its in patterns) else "tick"
            return [*found, numbers(f"matches per {unit}", "estimated")]
        spent = self.steps["seconds"].sum() or math.nan
        return [
            *found,
            numbers("est. matches", "estimated"),
            Column("matches", lambda row: f"{row['results']:,}"),
            Column("reused", lambda row: f"{row['reused']:,}"),
            Column("off by", _off),
            Column("of time", lambda row: percent(row["seconds"] / spent)),
            Column("time", lambda row: _time(row["seconds"])),
            Column("from scratch", lambda row: _time(row["scratch_seconds"])),
        ]

    def _figures(self) -> Iterator[tuple[str, Diagram]]:
        rows = self.steps.to_dict("records") if self.metrics is not None else []
        yield (
            "",
            reuse_diagram(
                [self.plan.reuse(query) for query in self.plan.order],
                {query: str(its) for query, its in self.plan.computed.patterns.items()},
                self.plan.virtual,
                notes={
                    row["query"]: f"{short(row['results'])} in {_time(row['seconds'])}"
                    for row in rows
                },
                slower=[row["query"] for row in rows if row["worth_it"] is False],
            ),
        )


def explain_workload(
    workload: Workload,
    plan: WorkloadPlan | Mapping[str, AnyPlan] | None,
    statistics: Mapping[str, Statistics] | None,
    stream: EventStream | None,
    asked: Arguments,
    cost: Any,
) -> WorkloadExplanation:
    """Estimates and measurements by query; see :func:`cepbench.explain`.

    On a stream the plan and the queries from scratch run in turn, and the medians of their times are
    compared.
    """
    plan = workload_plan(workload, plan)
    if statistics is None and stream is not None:
        statistics = measure_statistics(workload, stream)
    computed = plan.computed
    known = workload_statistics(workload, {} if statistics is None else statistics)
    if plan.virtual:
        known |= _of_virtual(plan, statistics, stream)
    name = asked.packed()["evaluator"]
    model = reuse_cost(cost, computed, known, plan.plans, name)
    expected = Calibrated(computed, known, plan.plans)
    rows: list[tuple[Any, ...]] = []
    for query in plan.order:
        way, pattern = plan.reuse(query), computed.patterns[query]
        scratch = model.scratch(query)
        costs = (scratch if way.source is None else model.reused(way), scratch)
        active = (
            1.0 if stream is None else max(active_time(pattern, stream), pattern.window.seconds)
        )
        matches = expected.matches(query) * active
        rows.append((query, way.source, way.method, way.change, *costs, matches))
    steps = pd.DataFrame(rows, columns=list(_ESTIMATED))
    if stream is None:
        return WorkloadExplanation(plan, name, steps)
    runs, alone, remarks = _runs(workload, plan, stream, asked)
    best = min(runs, key=lambda run: run.metrics.seconds)
    measured = best.steps.set_index("query").loc[steps["query"]].reset_index()
    steps = steps.join(measured[["results", "reused", "delta"]])
    steps["q_error"] = q_error(steps["estimated"], steps["results"], 1.0)
    steps["seconds"] = _medians(runs, steps["query"])
    steps["scratch_seconds"] = _medians(alone, steps["query"]) if alone else math.nan
    shares = [steps[name] / (steps[name].sum() or math.nan) for name in ("cost", "seconds")]
    steps["cost_q_error"] = q_error(*shares)
    gains = steps["scratch_seconds"] - steps["seconds"]
    is_known = steps["source"].notna() & gains.notna()
    steps["worth_it"] = np.where(is_known, gains > 0, np.array(None, object))
    return WorkloadExplanation(plan, name, steps, best.metrics, remarks)


def _of_virtual(
    plan: WorkloadPlan, statistics: Mapping[str, Statistics] | None, stream: EventStream | None
) -> dict[str, Statistics]:
    """The statistics of virtual queries: given, measured, or as planners estimate them."""
    virtual = Workload(plan.virtual, hierarchy=plan.workload.hierarchy)
    known = {} if statistics is None else dict(statistics)
    if not plan.virtual.keys() <= known.keys():
        if stream is not None:
            return measure_statistics(virtual, stream)
        computed, estimated = with_virtual(plan.workload, known)
        patterns = computed.patterns
        known |= {q: estimated[q] for q, its in plan.virtual.items() if patterns.get(q) == its}
    return workload_statistics(virtual, known)


def _runs(
    workload: Workload, plan: WorkloadPlan, stream: EventStream, asked: Arguments
) -> tuple[list[WorkloadMatches], list[WorkloadMatches], tuple[str, ...]]:
    """Runs of the plan and of the queries from scratch, in turn; and why there are none of the latter."""
    scratch = WorkloadPlan(workload, sources=dict.fromkeys(workload.patterns), plans=plan.plans)
    runs: list[WorkloadMatches] = []
    alone: list[WorkloadMatches] = []
    reuses = any(plan.reuse(query).source is not None for query in plan.order)
    remarks: tuple[str, ...] = ()
    spent = 0.0
    while not runs or (spent < _SECONDS and len(runs) < _MOST_RUNS):
        runs.append(evaluate_workload(workload, stream, plan, asked))
        spent += runs[-1].metrics.seconds
        if reuses and not remarks:
            try:
                alone.append(evaluate_workload(workload, stream, scratch, asked))
                spent += alone[-1].metrics.seconds
            except PartialMatchLimitError as error:
                remarks = (f"From scratch the workload cannot be run: {error}.",)
    return runs, alone, remarks


def _medians(runs: Sequence[WorkloadMatches], queries: pd.Series) -> list[float]:
    seconds = pd.concat([run.steps.set_index("query")["seconds"] for run in runs], axis=1)
    return [float(its) for its in seconds.median(axis=1).reindex(queries)]


def _how(row: Row) -> str:
    return "from scratch" if row["source"] is None else f"{row['method']} from {_named(row)}"


def _named(row: Row) -> str:
    """The source of a query, or several."""
    return ", ".join(sources_in(row["source"]))


def _pays(row: Row) -> bool:
    """Whether a source was expected to pay."""
    return bool(row["cost"] < row["scratch_cost"])


def _off(row: Row) -> str:
    return factor(row["q_error"], is_more=row["results"] > row["estimated"])


def _time(seconds: float) -> str:
    if math.isnan(seconds):
        return MISSING
    return f"{seconds:,.3g} s" if seconds >= 1.0 else f"{1e3 * seconds:.3g} ms"


def _ratio(scratch: float, took: float) -> str:
    if not took or not scratch:
        return "too short to compare."
    if scratch >= took:
        return f"{short(scratch / took)} times as fast."
    return f"{short(took / scratch)} times as slow."
