"""Planning in commands."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cepbench.commands.output import progress
from cepbench.errors import CepbenchError, PlanningRefusedError, StatisticsError

if TYPE_CHECKING:
    from cepbench.patterns.model import Pattern
    from cepbench.plans.model import AnyPlan
    from cepbench.statistics.model import Statistics
    from cepbench.streams.event_stream import EventStream

Last = str | list[str | None] | None


@dataclass(frozen=True)
class PlannedRow:
    """A generator's plan, or the reason why there is none.

    Attributes
    ----------
    generator : str
    kind : str
        ``order`` or ``tree``.
    plan : OrderPlan, TreePlan, UnionPlan or None
    text : str
        The plan on one line; empty if there is none.
    seconds : float or None
        Planning time, without compilation.
    status : str
        ``ok``, ``refused`` or ``error``.
    reason : str or None
        Why there is no plan.
    """

    generator: str
    kind: str
    plan: AnyPlan | None
    text: str = ""
    seconds: float | None = None
    status: str = "ok"
    reason: str | None = None

    @property
    def log_cost(self) -> float | None:
        """Natural logarithm of the estimated cost; None if there is no plan."""
        return self.plan.log_cost if self.plan is not None else None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-serializable dict."""
        plan = self.plan
        return {
            "generator": self.generator,
            "kind": self.kind,
            "plan": self.text or None,
            "cost": plan.cost if plan else None,
            "log_cost": plan.log_cost if plan else None,
            "cost_model": plan.cost_model if plan else None,
            "log_latency": plan.log_latency if plan else None,
            "seconds": self.seconds,
            "status": self.status,
            "reason": self.reason,
        }


def plan_with(
    name: str,
    pattern: Pattern,
    statistics: Statistics,
    *,
    seed: int,
    alpha: float = 0.0,
    last: Last = None,
    cost: str = "throughput",
) -> PlannedRow:
    """Plan with one generator; a refusal or error is a row too.

    Raises
    ------
    PlanGeneratorError
        If the generator is unknown.
    StatisticsError
        If statistics are missing or invalid, for any generator.
    """
    from cepbench.planners.generate import plan
    from cepbench.planners.registry import find_generator
    from cepbench.sweeps.measure import load_kernels

    entry = find_generator(name)
    with progress(f"planning with {entry.name}"):
        load_kernels(entry)
        began = time.perf_counter()
        try:
            found = plan(pattern, statistics, entry, seed=seed, alpha=alpha, last=last, cost=cost)
        except StatisticsError:
            raise
        except PlanningRefusedError as error:
            return PlannedRow(entry.name, entry.kind, None, status="refused", reason=str(error))
        except CepbenchError as error:
            return PlannedRow(entry.name, entry.kind, None, status="error", reason=str(error))
        seconds = time.perf_counter() - began
    return PlannedRow(entry.name, entry.kind, found, found.text, seconds)


def last_of(pattern: Pattern, stream: EventStream | None, statistics: Statistics) -> Last:
    """The variable whose event comes last, determined on the data unless the pattern implies it.

    Raises
    ------
    StatisticsError
        If the data is needed and missing.
    """
    from cepbench.costs.temporal import TemporalOrder

    if all(len(TemporalOrder(branch).latest()) == 1 for branch in pattern.branches()):
        return None
    if stream is None:
        raise StatisticsError(
            "--alpha weighs latency, which depends on the variable whose event comes last, and the "
            "pattern does not determine it; give --last, or --data to determine it there"
        )
    from cepbench.sweeps.profiler import expected_last

    with progress("finding which event comes last"):
        return expected_last(pattern, stream, statistics)
