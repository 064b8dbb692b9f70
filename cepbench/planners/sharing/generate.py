"""The front end: from a workload and its statistics to a plan, by any planner."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cepbench.arguments import seed as seed_from
from cepbench.costs.sharing import SharingProblem
from cepbench.errors import PlanGeneratorError
from cepbench.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.plans.workload import WorkloadPlan
from cepbench.statistics.model import Statistics
from cepbench.workloads.model import Workload


def plan_workload(
    workload: Workload,
    statistics: Mapping[str, Statistics],
    planner: str = "SHARON",
    *,
    seed: int = 0,
) -> WorkloadPlan:
    """Choose what the queries of a workload share.

    Parameters
    ----------
    workload : Workload
    statistics : mapping of str to Statistics
        Of every query, as :func:`cepbench.measure_statistics` gives them for a workload.
    planner : str
        A name in ``WORKLOAD_PLANNERS``, in any case.
    seed : int
        Seed of randomized planners.

    Returns
    -------
    WorkloadPlan
        With the planner and its estimated cost.

    Raises
    ------
    PlanGeneratorError
        If the planner is unknown, or ``seed`` is invalid.
    PlanningRefusedError
        If the workload is beyond the limits of the planner.
    StatisticsError
        If the statistics of a query are missing or insufficient.
    PlanError
        If it is not a workload.
    """
    entry = WORKLOAD_PLANNERS.find(planner)
    problem = SharingProblem(workload, statistics)
    rng = np.random.default_rng(seed_from(seed, PlanGeneratorError))
    cuts, shares_prefixes = entry.plan(problem, rng)
    cost = problem.cost(cuts, shares_prefixes=shares_prefixes).total
    return WorkloadPlan(workload, cuts, shares_prefixes, planner=entry.name, cost=cost)
