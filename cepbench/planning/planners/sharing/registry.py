"""The registry of planners of workloads, built-in and user-defined.

A planner shares counts of sequences or matches. One of matches is a function ``f(problem, rng)`` of a
:class:`~cepbench.planning.costs.reuse.ReuseProblem` and a seeded NumPy generator, and returns for each query the
query whose matches it reuses, or None. One registered with ``virtual=True`` gets problems with virtual
queries and unions too, and returns the sources of the virtual queries that it uses, and several where it
chooses a union.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from cepbench.errors import PlanGeneratorError
from cepbench.planning.costs.sharing import Cuts, SharingProblem
from cepbench.planning.planners.sharing.chase import bottom_up, chase, naive, top_down
from cepbench.planning.planners.sharing.chop_connect import chop_connect
from cepbench.planning.planners.sharing.exhaustive import exhaustive
from cepbench.planning.planners.sharing.forests import forests
from cepbench.planning.planners.sharing.sharon import sharon
from cepbench.planning.planners.sharing.steiner import steiner
from cepbench.registry import Registry

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class WorkloadPlanner:
    """A planner of workloads."""

    name: str
    #: (problem, seeded NumPy generator) → for counts the cuts of the queries, and whether segments
    #: share prefixes; for matches the source of each query.
    plan: Callable[[Any, np.random.Generator], Any]
    #: {"aggregates", "matches"}. What its plans share: counts of sequences, or matches.
    shares: str = "aggregates"
    source: str = ""
    #: Whether its problems have virtual queries and unions.
    virtual: bool = False
    #: Whether each way of its problems is along the cheapest join order.
    orders: bool = False

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to cepbench."""
        return self.plan.__module__.startswith("cepbench.planning.planners.")


def _no_cuts(problem: SharingProblem, rng: np.random.Generator) -> tuple[Cuts, bool]:
    """NONE: every query by itself [qi2014]_, section 3."""
    return {}, False


def _shared_prefixes(problem: SharingProblem, rng: np.random.Generator) -> tuple[Cuts, bool]:
    """PRETREE: queries that begin with the same items share counts [qi2014]_, section 4.1."""
    return {}, True


#: Name → planner.
WORKLOAD_PLANNERS = Registry(
    WorkloadPlanner,
    "planner of workloads",
    PlanGeneratorError,
    (
        WorkloadPlanner("NONE", _no_cuts),
        WorkloadPlanner("PRETREE", _shared_prefixes, source="[qi2014]_, section 4.1"),
        WorkloadPlanner("CHOP-CONNECT", chop_connect, source="[qi2014]_, section 4.2"),
        WorkloadPlanner("SHARON", sharon, source="[poppe2018]_"),
        WorkloadPlanner("EXHAUSTIVE", exhaustive),
        WorkloadPlanner("NAIVE", naive, "matches", "[liu2011]_, section 7"),
        WorkloadPlanner("TOP-DOWN", top_down, "matches", "[liu2011]_, section 7"),
        WorkloadPlanner("BOTTOM-UP", bottom_up, "matches", "[liu2011]_, section 7"),
        WorkloadPlanner("CHASE", chase, "matches", "[liu2011]_, section 5, Figure 10"),
        WorkloadPlanner("STEINER", steiner, "matches", "[zhang2017]_", virtual=True),
        WorkloadPlanner("FORESTS", forests, "matches", virtual=True, orders=True),
    ),
    example='@workload_planner("MINE")',
    wanted="a planner of workloads is a function, not {}",
)


def workload_planner(name: str, *, source: str = "", virtual: bool = False) -> Callable[[_F], _F]:
    """Register the decorated function as a planner of reused matches; it is returned unchanged.

    Registering a name again, compared without regard to case, ``-`` and ``_``, replaces a
    user-defined planner; built-in ones cannot be replaced. :func:`cepbench.check_workload_planner`
    tests it.

    If ``virtual``, its problems have virtual queries and unions: ``problem.virtual``,
    ``problem.unions``. The source is the paper.

    Raises PlanGeneratorError if the name is that of a built-in planner, or the decorated object is
    not callable.

    Examples
    --------
    >>> @workload_planner("DOWN-IF-CHEAPER")
    ... def down_if_cheaper(problem, rng):
    ...     sources = dict.fromkeys(problem.scratch)
    ...     for edge in problem.edges:
    ...         if edge.method == "down" and edge.cost < problem.scratch[edge.query]:
    ...             sources[edge.query] = edge.source
    ...     return sources
    """
    return WORKLOAD_PLANNERS.decorator(
        name, lambda function: WorkloadPlanner(name, function, "matches", source, virtual)
    )
