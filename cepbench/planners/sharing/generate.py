"""The front end: from a workload and its statistics to a plan, by any planner."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cepbench.arguments import flag, shown
from cepbench.arguments import seed as seed_from
from cepbench.costs.reuse import ReuseProblem, Sources
from cepbench.costs.sharing import SharingProblem
from cepbench.errors import CepbenchError, PlanError, PlanGeneratorError, PlanningRefusedError
from cepbench.planners.generate import plan
from cepbench.planners.registry import find_generator
from cepbench.planners.sharing.registry import WORKLOAD_PLANNERS, WorkloadPlanner
from cepbench.plans.reuse import Reuse, Source, in_order, waits_on_stream
from cepbench.plans.workload import WorkloadPlan
from cepbench.statistics.given import workload_statistics
from cepbench.statistics.model import Statistics
from cepbench.workloads.model import Workload


def plan_workload(
    workload: Workload,
    statistics: Mapping[str, Statistics],
    planner: str | None = None,
    *,
    cost: str = "calibrated",
    generator: str | None = None,
    delays: bool = False,
    seed: int = 0,
) -> WorkloadPlan:
    """Choose what the queries of a workload share.

    Parameters
    ----------
    workload : Workload
    statistics : mapping of str to Statistics
        Of every query, as :func:`cepbench.measure_statistics` gives them for a workload.
    planner : str, optional
        A name in ``WORKLOAD_PLANNERS``, in any case; by default SHARON, which shares counts, if every
        query has AGG, else CHASE, which reuses matches.
    cost : str
        The cost of reused matches: ``calibrated``, of our engines, or ``e-cube``, the paper's.
    generator : str, optional
        The plan generator for the queries that reuse none; without it they are joined in written order,
        or by an evaluator that needs no plan.
    delays : bool
        Whether a query may reuse one that goes on after its last item, whose matches come late. A query
        that would come after the end of its window, since its source does, is computed from scratch.
    seed : int
        Seed of randomized planners and generators.

    Returns
    -------
    WorkloadPlan
        With the planner and its estimated cost.

    Raises
    ------
    PlanGeneratorError
        If the planner, cost or generator is unknown, a planner fails or returns no plan, or ``seed`` is
        invalid.
    PlanningRefusedError
        If the workload is beyond the limits of the planner.
    StatisticsError
        If the statistics of a query are missing or insufficient.
    PlanError
        If it is not a workload.
    """
    if planner is None:
        patterns = workload.patterns.values() if isinstance(workload, Workload) else ()
        planner = "SHARON" if all(its.aggregates for its in patterns) else "CHASE"
    entry = WORKLOAD_PLANNERS.find(planner)
    rng = np.random.default_rng(seed_from(seed, PlanGeneratorError))
    flag(delays, "delays", PlanGeneratorError)
    if entry.shares == "aggregates":
        return _plan_of_cuts(workload, statistics, entry, rng)
    known = workload_statistics(workload, statistics)
    plans = {}
    if generator is not None:
        its_generator = find_generator(generator)
        plans = {
            query: plan(pattern.without_aggregate(), known[query], its_generator, seed=seed)
            for query, pattern in workload.patterns.items()
        }
    matches = workload.without_aggregates()
    problem = ReuseProblem.of(matches, known, cost, plans=plans, delays=delays)
    sources = planned_sources(entry, problem, rng)
    if delays:
        sources = _in_time(workload, problem, sources)
    chosen = [
        problem.edge(source, query) for query, source in sources.items() if source is not None
    ]
    scratch = [Reuse(query, cost=its) for query, its in problem.scratch.items()]
    return WorkloadPlan(
        workload,
        sources=sources,
        delays=delays,
        embeddings={its.query: its.embedding for its in chosen if its is not None},
        plans={query: its for query, its in plans.items() if sources[query] is None},
        planner=entry.name,
        cost=problem.cost(sources),
        candidates=(*scratch, *problem.edges),
    )


def planned_sources(
    entry: WorkloadPlanner, problem: ReuseProblem, rng: np.random.Generator
) -> Sources:
    """The sources that a planner chooses, checked.

    Raises
    ------
    PlanGeneratorError
        If it fails, or returns something else than a source for each query: None, or one that has an
        edge to the query, without circles.
    PlanningRefusedError
        If it refuses the problem.
    """
    try:
        found = entry.plan(problem, rng)
    except PlanningRefusedError:
        raise
    except Exception as error:
        detail = str(error) if isinstance(error, CepbenchError) else repr(error)
        raise PlanGeneratorError(f"planner {entry.name} failed: {detail}") from error
    returned = f"planner {entry.name} returned"
    if not isinstance(found, Mapping) or found.keys() != problem.scratch.keys():
        raise PlanGeneratorError(
            f"{returned} {shown(found)}; a plan is a mapping of every query to its source, or None"
        )
    for query, source in found.items():
        if source is not None and problem.edge(source, query) is None:
            raise PlanGeneratorError(
                f"{returned} {shown(source)} as the source of {query!r}; there is no such edge in "
                "problem.edges"
            )
    try:
        in_order(found)
    except PlanError as error:
        raise PlanGeneratorError(f"{returned} a plan that cannot be run: {error}") from None
    return {query: found[query] for query in problem.scratch}


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
    workload: Workload,
    statistics: Mapping[str, Statistics],
    entry: WorkloadPlanner,
    rng: np.random.Generator,
) -> WorkloadPlan:
    problem = SharingProblem(workload, statistics)
    cuts, shares_prefixes = entry.plan(problem, rng)
    cost = problem.cost(cuts, shares_prefixes=shares_prefixes).total
    return WorkloadPlan(workload, cuts, shares_prefixes, planner=entry.name, cost=cost)
