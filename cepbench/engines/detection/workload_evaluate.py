"""Evaluation of a workload on a finite stream."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import numpy as np

from cepbench.arguments import choice, kind_of
from cepbench.engines.detection.chosen import Chosen, chosen, chosen_queries
from cepbench.engines.detection.counted import results_of
from cepbench.engines.detection.planned import Known, generator_for, sampled_queries
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import OUTPUTS, evaluator_without_plan, runs_some, task_for
from cepbench.engines.reuse.events import Events, ReuseWork
from cepbench.engines.reuse.queries import Query, query_of
from cepbench.engines.reuse.reuse import warm_up
from cepbench.engines.reuse.sets import Sized, Way, as_matches, kept_of, number_of
from cepbench.engines.runs.protocol import Arguments, Evaluator, Task
from cepbench.engines.runs.result import Metrics, Result
from cepbench.engines.runs.work import Work
from cepbench.engines.runs.workload_result import Step, WorkloadMatches
from cepbench.errors import EvaluationError, PlanError, errors_naming
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.engine_work import opening_seconds
from cepbench.planning.costs.reuse import reuse_cost
from cepbench.planning.planners.sharing.generate import is_worth_running, plan_workload
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS, WorkloadPlanner
from cepbench.planning.plans.model import AnyPlan, OrderPlan, Plan, TreePlan, UnionPlan
from cepbench.planning.plans.reuse import Reuse, can_be_reused, candidates_of
from cepbench.planning.plans.tree import left_deep
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, check_types, under_one_hierarchy
from cepbench.streams.numeric import NumericReader

#: Seconds that planning takes for each query, and those of a query by itself, whatever the stream and for each of its
#: events.
PLANNING, OPENED, SCANNED = 6e-4, 1.3e-3, 4e-8

#: Seconds from which on joins of a query may take much longer than choosing another engine.
WORTH = 2e-3

#: The share of the time without a plan that planning may take.
LEAST = 0.04


def evaluate_workload(
    workload: Workload,
    stream: EventStream,
    plan: WorkloadPlan | Mapping[str, AnyPlan] | str | None,
    asked: Arguments,
) -> WorkloadMatches:
    """Find the matches of every query of a workload; see :func:`cepbench.evaluate`."""
    chooses = plan is None or isinstance(plan, str)
    output = choice(asked.output, "output", OUTPUTS, EvaluationError)
    asked = replace(asked, output=output)
    engines: dict[str, Chosen] = {}
    known: Known = {}

    def choose(
        patterns: Mapping[str, Pattern], query: str, given: AnyPlan | None, its: Arguments
    ) -> Chosen:
        with errors_naming(query):
            return chosen(
                patterns[query],
                stream,
                its,
                whole_stream=True,
                plan=given,
                known=known,
                least=WORTH,
            )

    if isinstance(plan, str):
        planner = WORKLOAD_PLANNERS.find(plan)
        if planner.shares != "matches":
            raise EvaluationError(
                f"the planner {planner.name} shares counts; choose one that reuses matches, such as CHASE, "
                "or compute values of AGG by cep.aggregate"
            )
        workload, stream = under_one_hierarchy(workload, stream)
        patterns = workload.patterns
        _check(patterns, stream)
        if output == "count" and asked.evaluator is None:
            engines = {query: choose(patterns, query, None, asked) for query in patterns}
        if engines and _counts_faster(workload, stream, engines, known):
            plan = None
        else:
            plan = _planned(workload, stream, planner, asked.evaluator)
    if plan is not None:
        engines = {}
    plan = workload_plan(workload, plan)
    ways = [plan.reuse(query) for query in plan.order]
    workload, stream = under_one_hierarchy(workload, stream)
    patterns = {
        query: its.with_hierarchy(stream.hierarchy) for query, its in plan.computed.patterns.items()
    }
    _check(patterns, stream)
    run = _Run(patterns, stream, ways, output, asked.partial_match_limit)
    if chooses and not engines:
        engines = chosen_queries(plan, asked, partial(choose, patterns))
    tasks = {}
    for query in (way.query for way in ways if way.source is None):
        with errors_naming(query):
            its = engines.get(query) or Chosen(plan.plans.get(query), asked.evaluator, None)
            engine, given = chosen_for(patterns[query], its.plan, its.evaluator)
            of_query = "matches" if query in run.sources else output
            task = replace(asked, evaluator=engine, output=of_query)
            tasks[query] = task_for(patterns[query], given, task, whole_stream=True)
    found = _from_scratch(tasks, stream)
    found |= {q: replace(found[q], choice=its.choice) for q, its in engines.items()}
    for way in ways:
        with errors_naming(way.query):
            if way.source is None:
                run.add(way, found[way.query], 0, from_events(found[way.query].metrics))
            else:
                run.reuse(way)
    results = {query: run.results[query] for query in workload.patterns}
    computed = [its.metrics for its in run.results.values()]
    metrics = Metrics(
        seconds=sum(its.seconds for its in computed),
        events=len(stream),
        matches=sum(its.metrics.matches for its in results.values()),
        peak_bytes=run.peak_bytes(),
        work=Work.total(its.work for its in computed),
    )
    return WorkloadMatches(results, run.taken, metrics, stream)


def _check(patterns: Mapping[str, Pattern], stream: EventStream) -> None:
    for query, pattern in patterns.items():
        with errors_naming(query):
            check_types(pattern, stream)
            check_fit(pattern, stream)


def _planned(
    workload: Workload,
    stream: EventStream,
    entry: WorkloadPlanner,
    evaluator: str | Evaluator | None,
) -> WorkloadPlan | None:
    """The plan of a planner, by a sample of a stream that all queries fit.

    None, each query by itself, where planning would take longer than it may save, or is expected to save no
    more than estimates err.
    """
    number = len(workload.patterns)
    apart = OPENED + SCANNED * len(stream)
    # Of most queries, the time of one that reuses matches is seldom less than half of that alone.
    if (LEAST + max(0.0, (number - 1) / number - 0.5)) * apart < PLANNING:
        return None
    derived = {way.query for way in candidates_of(workload) if not entry.virtual}
    share = 1.0 if entry.virtual else len(derived) / number
    if (LEAST + max(0.0, share - 0.5)) * apart < PLANNING or not share:
        return None
    statistics, _ = sampled_queries(workload.patterns, stream)
    generator = None if evaluator else generator_for(workload.patterns.values()).name
    found = plan_workload(
        workload, statistics, entry.name, generator=generator,
        evaluator=evaluator_for(evaluator).name if evaluator else None,
    )  # fmt: skip
    alone = sum(
        its.cost
        for its in found.candidates
        if its.source is None and its.query in workload.patterns and its.cost is not None
    )
    return found if found.cost is None or is_worth_running(found.cost, alone) else None


def _counts_faster(
    workload: Workload, stream: EventStream, engines: Mapping[str, Chosen], known: Known
) -> bool:
    """Whether the engines count each query by itself in less time than sharing could save.

    Of the queries that share matches one at least lists all of its own, and the others are opened.
    """
    alone = 0.0
    for its in engines.values():
        if its.choice is None:
            return False
        alone += its.choice.seconds[its.choice.evaluator]
    statistics, active = sampled_queries(workload.patterns, stream, known)
    cost = reuse_cost("calibrated", workload, statistics, {})
    least = 1e-9 * active * min(map(cost.scratch, workload.patterns))
    return not is_worth_running(least + (len(engines) - 1) * opening_seconds(), alone)


class _Run:
    """The queries computed so far."""

    def __init__(
        self,
        patterns: Mapping[str, Pattern],
        stream: EventStream,
        ways: Sequence[Reuse],
        output: str,
        limit: int,
    ) -> None:
        self.patterns, self.stream, self.output, self.limit = patterns, stream, output, limit
        self.sources = {source for way in ways for source in way.sources}
        self.results: dict[str, Result] = {}
        self.taken: list[Step] = []
        self._kept: dict[str, Sized] = {}
        if self.sources:
            if output == "compressed":
                raise EvaluationError(
                    'matches that are reused are listed; evaluate with output="arrow", or without '
                    "sources"
                )
            if next(iter(patterns.values())).order == "arrival":
                clock = ArrivalClock.of(stream, patterns.values())
                patterns = {query: clock.pattern(its) for query, its in patterns.items()}
                stream = clock.stamped(stream)[0]
            self._queries = queries_of(patterns, ways)
            self._events = Events(stream, NumericReader(), self._queries.values())
            warm_up()

    def add(self, way: Reuse, found: Result, reused: int, work: ReuseWork) -> None:
        """Note the result of a query."""
        if way.query in self.sources and way.query not in self._kept:
            assert found.found is not None
            self._kept[way.query] = kept_of(self._queries[way.query], found.found[0])
        metrics = found.metrics
        step = Step(
            way.query, way.source, metrics.matches, reused, metrics.matches - reused,
            metrics.seconds, **asdict(work),
        )  # fmt: skip
        self.taken.append(step)
        words = words_of(work, metrics.matches, reused)
        found = replace(found, metrics=replace(metrics, work=Work({**metrics.work, **words})))
        self.results[way.query] = replace(found, found=None) if self.output == "count" else found

    def reuse(self, way: Reuse) -> None:
        """Compute a query from its sources."""
        pattern = self.patterns[way.query]
        work = self._events.work = ReuseWork()
        began = time.perf_counter()
        kept = [self._kept[source] for source in way.sources]
        edges, query = Way.of(way, self._queries), self._queries[way.query]
        found: Sized | None = None
        if way.method != "down":
            found, reused = edges.up(kept, self._events, self.limit)
            number = number_of(found)
        elif self.output == "count" and way.query not in self.sources:
            number = reused = edges.number_down(kept[0], self._events, self.limit)
        else:
            found = edges.down(kept[0], self._events, self.limit)
            number = reused = number_of(found)
        metrics = Metrics(
            seconds=time.perf_counter() - began,
            events=len(self.stream),
            matches=number,
            peak_bytes=0 if found is None else sum(its.nbytes for its in found.values()),
        )
        if found is not None and way.query in self.sources:
            self._kept[way.query] = found
        result = Result(
            pattern=pattern,
            plan=None,
            evaluator=way.method,
            metrics=metrics,
            node_table=None,
            found=None if found is None else (as_matches(query, found),),
            events=self.stream,
        )
        self.add(way, result, reused, work)

    def peak_bytes(self) -> float:
        """Of the largest state of an evaluator, and all matches that are kept for reuse or made by it."""
        reused = {step.query for step in self.taken if step.source is not None}
        state = [
            its.metrics.peak_bytes for query, its in self.results.items() if query not in reused
        ]
        made = [self.results[query].metrics.peak_bytes for query in reused - self._kept.keys()]
        kept = sum(its.nbytes for sized in self._kept.values() for its in sized.values())
        return float(np.max(state) + sum(made) + kept)


def from_events(metrics: Metrics) -> ReuseWork:
    """The work of a query from scratch."""
    return ReuseWork(assembled=metrics.partial_matches_created + metrics.matches)


def words_of(work: ReuseWork, matches: int, reused: int) -> dict[str, int]:
    """What a query did for its matches; not all evaluators count what is assembled from scratch."""
    words = asdict(work) | {"reused": reused, "delta": matches - reused}
    return {word: int(number) for word, number in words.items() if number == number}


def queries_of(patterns: Mapping[str, Pattern], ways: Iterable[Reuse]) -> dict[str, Query]:
    """The queries that take part in reuse; an EvaluationError if one has min or max over a set."""
    found = {}
    for way in ways:
        for query in (*way.sources, way.query) if way.source is not None else ():
            pattern = patterns[query]
            if not can_be_reused(pattern):
                raise EvaluationError(
                    f"query {query!r} has min or max over a set, which matches that are reused are not "
                    "tested for; compute it, and all that are computed from it, from scratch, with the "
                    "source None"
                )
            found[query] = query_of(pattern)
    return found


def _from_scratch(tasks: Mapping[str, Task], stream: EventStream) -> dict[str, Result]:
    """The results of queries; those of an evaluator whose runs can share state are run together."""
    found: dict[str, Result] = {}
    together: dict[str, list[str]] = {}
    for query, task in tasks.items():
        shares = task.evaluator.together is not None
        together.setdefault(task.evaluator.name if shares else f"of {query}", []).append(query)
    for queries in together.values():
        with errors_naming(queries[0] if len(queries) == 1 else ""):
            results = results_of([tasks[query] for query in queries], stream)
        found |= zip(queries, results, strict=True)
    return found


def engine_of(given: Any, query: str) -> str | Evaluator | None:
    """The evaluator of a query, of one for all or of those chosen for each."""
    return given.get(query) if isinstance(given, Mapping) else given


def chosen_for(
    pattern: Pattern, plan: AnyPlan | None, evaluator: str | Evaluator | None
) -> tuple[str | Evaluator | None, AnyPlan | None]:
    """Evaluator and plan of one query: ``tree`` and the written order if there is neither.

    With an evaluator alone, the query runs without a plan if it can, else by one in written order.
    """
    if plan is None:
        if evaluator is None:
            evaluator = evaluator_without_plan(pattern.strategy.name) or "tree"
        plan = written_plan(pattern, evaluator_for(evaluator))
    return evaluator, plan


def written_plan(pattern: Pattern, evaluator: Evaluator) -> AnyPlan | None:
    """A plan in written order for an evaluator; None for one that runs without."""
    kinds = [kind for kind in ("tree", "order") if runs_some(evaluator, kind)]
    return None if evaluator.without_plan or not kinds else in_written_order(pattern, kinds[0])


def in_written_order(pattern: Pattern, kind: str) -> AnyPlan:
    """A plan of a kind, ``"tree"`` or ``"order"``, in written order."""
    plans: list[Plan] = [
        TreePlan(left_deep(branch.planned_names))
        if kind == "tree"
        else OrderPlan(branch.planned_names)
        for branch in pattern.branches()
    ]
    return plans[0] if len(plans) == 1 else UnionPlan(plans)


def workload_plan(workload: Workload, given: Any) -> WorkloadPlan:
    """The argument as a plan of sources; plans of single queries are of queries from scratch.

    A PlanError if it is neither, or of another workload.
    """
    for query, pattern in workload.patterns.items():
        if pattern.aggregates:
            raise EvaluationError(
                f"query {query!r}: evaluate finds matches; cep.aggregate(workload, stream) computes the "
                "values of AGG"
            )
    if isinstance(given, WorkloadPlan):
        if given.workload != workload:
            raise PlanError("the plan is of another workload; make one of this workload")
        if given.sources is None:
            raise PlanError(
                "the plan has cuts, by which cep.aggregate shares counts; to reuse matches, make "
                "cep.WorkloadPlan(workload, sources={...})"
            )
        return given
    if given is not None and not isinstance(given, Mapping):
        raise PlanError(
            f"the plan of a workload is a cep.WorkloadPlan, not {kind_of(given)}; write "
            "cep.WorkloadPlan(workload, sources={...}), or a mapping of queries to plans such as "
            '{"q1": cep.plan(pattern, statistics)}'
        )
    sources = dict.fromkeys(workload.patterns)
    return WorkloadPlan(workload, sources=sources, plans=given or {})


def given_plan(queries: Pattern | Workload | str, given: Any) -> Any:
    """The plan of a pattern as it is, and of a workload as :func:`workload_plan`.

    None or a word, which stands for a plan to be made, stays.
    """
    if isinstance(queries, str) or not queries.by_query:
        return given
    is_made = given is None or isinstance(given, str)
    plan = workload_plan(queries, None if is_made else given)
    return given if is_made else plan
