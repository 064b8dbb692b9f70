"""The registry of planners of workloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cepbench.costs.sharing import Cuts, SharingProblem
from cepbench.errors import PlanGeneratorError
from cepbench.planners.sharing.chop_connect import chop_connect
from cepbench.planners.sharing.exhaustive import exhaustive
from cepbench.planners.sharing.none import none
from cepbench.planners.sharing.pretree import pretree
from cepbench.planners.sharing.sharon import sharon
from cepbench.registry import Registry


@dataclass(frozen=True)
class WorkloadPlanner:
    """A planner of workloads.

    Attributes
    ----------
    name : str
    plan : callable
        (:class:`~cepbench.costs.sharing.SharingProblem`, seeded NumPy generator) → the cuts of the
        queries, and whether segments share prefixes.
    shares : str
        What its plans share: ``"aggregates"``, the counts of sequences.
    source : str
        Its source in the literature.
    """

    name: str
    plan: Callable[[SharingProblem, np.random.Generator], tuple[Cuts, bool]]
    shares: str = "aggregates"
    source: str = ""

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to cepbench."""
        return self.plan.__module__.startswith("cepbench.planners.")


#: Name → planner.
WORKLOAD_PLANNERS: Registry[WorkloadPlanner] = Registry(
    "planner of workloads",
    PlanGeneratorError,
    (
        WorkloadPlanner("NONE", none),
        WorkloadPlanner("PRETREE", pretree, source="[qi2014]_, section 4.1"),
        WorkloadPlanner("CHOP-CONNECT", chop_connect, source="[qi2014]_, section 4.2"),
        WorkloadPlanner("SHARON", sharon, source="[poppe2018]_"),
        WorkloadPlanner("EXHAUSTIVE", exhaustive),
    ),
)
