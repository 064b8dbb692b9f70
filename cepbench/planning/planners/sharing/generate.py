"""The front end: from a workload and its statistics to a plan, by any planner."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

import numpy as np

from cepbench.arguments import choice, flag, number, shown
from cepbench.arguments import seed as seed_from
from cepbench.errors import CepbenchError, PlanError, PlanGeneratorError, PlanningRefusedError
from cepbench.planning.costs.reuse import ReuseProblem, Sources, reuse_cost
from cepbench.planning.costs.sharing import (
    OPENED,
    PREPARING,
    SCANNED,
    SHARE,
    UPDATE,
    WINDOWED,
    SharingProblem,
)
from cepbench.planning.costs.virtual import VirtualStatistics
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import find_generator
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS, WorkloadPlanner
from cepbench.planning.planners.sharing.steiner import without_unused
from cepbench.planning.plans.evaluator_names import known_evaluator
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.reuse import Reuse, Source, in_order, sources_in, waits_on_stream
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.given import workload_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.generalization import common_generalizations
from cepbench.planning.workloads.given import workload_from
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream

#: The method of the counters that are shared.
A_SEQ = "a-seq"

#: By how much estimates of the times of plans err.
ERROR = 0.25


def plan_workload(
    workload: Workload,
    statistics: Mapping[str, Statistics],
    planner: str | None = None,
    *,
    cost: str = "calibrated",
    generator: str | None = None,
    delays: bool = False,
    seed: int = 0,
    evaluator: str | None = None,
    method: str | None = None,
    length: float | None = None,
) -> WorkloadPlan:
    """Choose what the queries of a workload share; a plan with the planner and its estimated cost.

    Parameters
    ----------
    statistics : mapping of str to Statistics
        Of every query, as :func:`cepbench.measure_statistics` gives them for a workload.
    planner : str, optional
        A name in ``WORKLOAD_PLANNERS``, in any case; by default SHARON, which shares counts, if every
        query has AGG, else CHASE, which reuses matches.
    cost : str
        The cost of reused matches: ``calibrated``, of our engines, or ``e-cube``, the paper's.
    generator : str, optional
        The plan generator for the queries that reuse none, in whose order items are joined to reused
        matches too if that is cheaper; without it they are joined in written order, or by an evaluator
        that needs no plan. FORESTS takes its plans where they are cheaper than that.
    delays : bool
        Whether a query may reuse one that goes on after its last item, whose matches come late. A query
        that would come after the end of its window, since its source does, is computed from scratch.
    seed : int
        Seed of randomized planners and generators.
    evaluator : str, optional
        The name of the evaluator that will run the plan, whose work on queries from scratch the cost
        ``calibrated`` counts: by default ``tree``, as which one is priced that shares no work between
        queries.

    method : {"a-seq"}, optional
        The method that counts the queries that share no counts: by default each query's own, as of
        :class:`cepbench.Aggregator`. A plan of counts is returned then if it is expected to be faster by
        more than estimates err, and else the one that shares nothing. With ``a-seq``, by which all queries are
        counted, the plan is the planner's, whatever it gains.
    length : float, optional
        The length of the stream in seconds (or ticks), if it is known: what shares counts is then not
        looked for any longer than that may save.

    Raises
    ------
    PlanGeneratorError
        If the planner, cost, generator, evaluator or method is unknown, a planner fails or returns no plan, or ``seed`` is
        invalid.
    PlanningRefusedError
        If the workload is beyond the limits of the planner.
    StatisticsError, PlanError
        If the statistics of a query are missing or insufficient; if it is not a workload.
    """
    workload = workload_from(workload)
    if planner is None:
        counted = all(its.aggregates for its in workload.queries.values())
        planner = "SHARON" if counted else "CHASE"
    entry = WORKLOAD_PLANNERS.find(planner)
    rng = np.random.default_rng(seed_from(seed, PlanGeneratorError))
    flag(delays, "delays", PlanGeneratorError)
    if evaluator is not None:
        evaluator = known_evaluator(evaluator, PlanGeneratorError)
    if method is not None:
        choice(method, "method", [A_SEQ], PlanGeneratorError)
    if length is not None:
        length = number(length, "length", PlanGeneratorError, least=0.0)
    if entry.shares == "aggregates":
        counts = SharingProblem(workload, statistics, windowed=method is None, length=length)
        return _plan_of_cuts(counts, entry, rng, gains=method is None)
    known = workload_statistics(workload, statistics)
    computed = workload.without_aggregates()
    if entry.virtual:
        computed, known = with_virtual(computed, known)
    plans: dict[str, AnyPlan] = {}
    if generator is not None:
        found = find_generator(generator)
        plans = {q: plan(its, known[q], found, seed=seed) for q, its in computed.patterns.items()}
        if entry.orders:
            written, planned = (
                reuse_cost(cost, computed, known, its, evaluator) for its in ({}, plans)
            )
            plans = {q: its for q, its in plans.items() if planned.scratch(q) < written.scratch(q)}
    problem = ReuseProblem.of(
        computed,
        known,
        cost,
        plans=plans,
        delays=delays,
        virtual=computed.patterns.keys() - workload.patterns.keys(),
        unions=entry.virtual,
        all_orders=entry.orders,
        evaluator=evaluator,
    )
    sources = planned_sources(entry, problem, rng)
    if delays:
        sources = without_unused(_in_time(computed, problem, sources), problem.virtual)
    chosen = {
        query: way
        for query, source in sources.items()
        if source is not None and (way := problem.edge(source, query)) is not None
    }
    ways = [*(Reuse(query, cost=its) for query, its in problem.scratch.items()), *problem.edges]
    return WorkloadPlan(
        workload,
        sources=sources,
        delays=delays,
        embeddings={query: way.embeddings or way.embedding for query, way in chosen.items()},
        plans={query: its for query, its in plans.items() if query in sources.keys() - chosen},
        virtual={query: computed.patterns[query] for query in sources if query in problem.virtual},
        orders={query: way.order for query, way in chosen.items() if way.order},
        planner=entry.name,
        cost=problem.cost(sources),
        candidates=[
            way for way in (*ways, *problem.unions) if {way.query, *way.sources} <= sources.keys()
        ],
    )


def is_worth_planning(workload: Workload, stream: EventStream) -> bool:
    """Whether planning what counts queries share may gain more than it costs."""
    types = [{its.type for its in pattern.variables} for pattern in workload.patterns.values()]
    counts = np.bincount(stream.type_codes, minlength=len(stream.type_names))
    number = dict(zip(stream.type_names, counts.tolist(), strict=True))
    events = sum(number.get(str(type), 0) for its in types for type in its)
    apart = WINDOWED * events + (SCANNED * len(stream) + OPENED) * len(types)
    return PREPARING * len(types) < 2 * SHARE * UPDATE * apart


def is_worth_running(cost: float, alone: float) -> bool:
    """Whether a plan is expected to save more, of what the queries cost by themselves, than estimates err."""
    return cost < (1 - ERROR) * alone


def with_virtual(
    workload: Workload, statistics: Mapping[str, Statistics]
) -> tuple[Workload, dict[str, Statistics]]:
    """The workload with the virtual queries that a plan may use, and the statistics of all."""
    known, patterns = dict(statistics), dict(workload.patterns)
    estimated = VirtualStatistics(workload, statistics)
    names = (name for name in map("v{}".format, count(1)) if name not in workload.patterns)
    for its in common_generalizations(workload):
        found = estimated.of(its)
        if found is not None:
            name = next(names)
            known[name], patterns[name] = found, its.pattern
    return Workload(patterns, hierarchy=workload.hierarchy), known


def planned_sources(
    entry: WorkloadPlanner, problem: ReuseProblem, rng: np.random.Generator
) -> Sources:
    """The sources that a planner chooses, checked.

    Raises PlanGeneratorError if it fails, or returns something else than a source for each query:
    None, or one that has an edge to the query, without circles; PlanningRefusedError if it refuses
    the problem.
    """
    try:
        found = entry.plan(problem, rng)
    except PlanningRefusedError:
        raise
    except (Exception, SystemExit) as error:
        detail = str(error) if isinstance(error, CepbenchError) else repr(error)
        raise PlanGeneratorError(f"planner {entry.name} failed: {detail}") from error
    returned = f"planner {entry.name} returned"
    if not isinstance(found, Mapping) or (
        not problem.scratch.keys() - problem.virtual <= found.keys() <= problem.scratch.keys()
    ):
        raise PlanGeneratorError(
            f"{returned} {shown(found)}; a plan is a mapping of every query to its source, or None"
        )
    for query, source in found.items():
        if source is not None and problem.edge(source, query) is None:
            raise PlanGeneratorError(
                f"{returned} {shown(source)} as the source of {query!r}; there is no such edge in "
                f"problem.edges{' or problem.unions' if problem.unions else ''}"
            )
        if left_out := {*sources_in(source)} - found.keys():
            raise PlanGeneratorError(
                f"{returned} {shown(source)} as the source of {query!r}, and no source of "
                f"{', '.join(sorted(left_out))}; name that of each virtual query that is used"
            )
    try:
        in_order(found)
    except PlanError as error:
        raise PlanGeneratorError(f"{returned} a plan that cannot be run: {error}") from None
    found = {query: found[query] for query in problem.scratch if query in found}
    return without_unused(found, problem.virtual)


def _in_time(workload: Workload, problem: ReuseProblem, sources: Sources) -> Sources:
    """The sources of queries, those that would come after the end of their window from scratch."""
    found: dict[str, Source] = {}
    waits: dict[str, bool] = {}
    for query in in_order(sources):
        source = sources[query]
        way = None if source is None else problem.edge(source, query)
        try:
            waits[query] = waits_on_stream(way or Reuse(query), waits, workload.patterns)
            found[query] = source
        except PlanError:
            waits[query] = waits_on_stream(Reuse(query), waits, workload.patterns)
            found[query] = None
    return {query: found[query] for query in sources}


def _plan_of_cuts(
    problem: SharingProblem, entry: WorkloadPlanner, rng: np.random.Generator, *, gains: bool
) -> WorkloadPlan:
    cuts, shares_prefixes = entry.plan(problem, rng)
    cost = problem.cost(cuts, shares_prefixes=shares_prefixes).total
    if gains and not is_worth_running(cost, problem.unshared):
        cuts, shares_prefixes, cost = {}, False, problem.unshared
    return WorkloadPlan(problem.workload, cuts, shares_prefixes, planner=entry.name, cost=cost)
