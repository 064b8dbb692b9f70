"""What is noted beside a plan: its cost, where it comes from, and how that is said."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from cepbench.errors import PlanError


@dataclass(frozen=True, kw_only=True)
class PlanNotes:
    """What is noted beside a plan; all of it is missing for a plan made by hand.

    Attributes
    ----------
    log_cost : float or None
        Natural logarithm of the estimated cost, ``alpha`` times the latency included.
    cost_model, generator : str or None
        Names of the cost model and of the plan generator.
    seed : int or None
        The seed with which it was generated.
    estimates : tuple of float
        Natural logarithms of the estimated numbers of partial matches: of an order plan's
        prefixes, of a tree plan's nodes in post-order. Empty if there are none.
    alpha : float
        Weight of latency in the cost.
    log_latency : float or None
        Natural logarithm of the estimated latency, if it was asked for.
    log_bound : float or None
        Natural logarithm of a cost that no plan of the generator's space is below, if proven.
    complete : bool
        Whether the generator came to its natural end, not to that of its budget.
    remarks : tuple of str
        Lines for people to read: what the plan does not show of its pattern.
    """

    log_cost: float | None = None
    cost_model: str | None = None
    generator: str | None = None
    seed: int | None = None
    estimates: tuple[float, ...] = ()
    alpha: float = 0.0
    log_latency: float | None = None
    log_bound: float | None = None
    complete: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def gap(self) -> float | None:
        """By how much the cost may be above the least one, as a part of that; 0 if it is least."""
        return gap(self)

    @property
    def cost(self) -> float | None:
        """The estimated cost; infinite where only its logarithm fits a float."""
        return None if self.log_cost is None else from_log(self.log_cost)

    @property
    def log_throughput(self) -> float | None:
        """Natural logarithm of the part of the cost that is not latency."""
        if not self.alpha:
            return self.log_cost
        return log_sum(self.estimates) if self.estimates else None

    def _check_estimates(self, nodes: int) -> None:
        object.__setattr__(self, "estimates", tuple(self.estimates))
        if len(self.estimates) not in (0, nodes):
            raise PlanError(
                f"estimates has {len(self.estimates)} numbers for a plan of {nodes} nodes; "
                "give one for each, or none"
            )

    def _headline(self, kind: str) -> str:
        return f"{kind} plan {made(self)}"

    def _remarks(self) -> list[str]:
        return [f"  {remark}" for remark in self.remarks]


class Noted(Protocol):
    """What plans and unions of plans have in common for those who describe them."""

    @property
    def log_cost(self) -> float | None: ...
    @property
    def log_bound(self) -> float | None: ...
    @property
    def cost_model(self) -> str | None: ...
    @property
    def generator(self) -> str | None: ...
    @property
    def seed(self) -> int | None: ...
    @property
    def complete(self) -> bool: ...
    @property
    def gap(self) -> float | None: ...


def made(plan: Noted) -> str:
    """Who made a plan, and what it costs."""
    by = "by hand" if plan.generator is None else f"by {plan.generator}"
    seed = "" if plan.seed is None else f", seed {plan.seed}"
    cost = costing(plan)
    return f"{by}{seed}{f', {cost}' if cost else ''}{_how_sure(plan)}"


def gap(plan: Noted) -> float | None:
    """By how much the cost may be above the least one, as a part of that."""
    if plan.log_cost is None or plan.log_bound is None:
        return None
    return math.expm1(min(max(plan.log_cost - plan.log_bound, 0.0), 700.0))


def _how_sure(plan: Noted) -> str:
    """What a search that its budget ended can say."""
    if plan.complete:
        return ""
    if plan.gap is None:
        return ", stopped by its budget"
    return f", stopped by its budget, at most {100 * plan.gap:.3g} % above the least"


def costing(plan: Noted) -> str:
    """What a plan costs by which model; empty if that is not known."""
    if plan.log_cost is None:
        return ""
    return f"estimated cost {shown_log(plan.log_cost)} ({plan.cost_model})"


def from_log(logarithm: float) -> float:
    """The number itself; infinite where only its logarithm fits a float."""
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf


def log_sum(logarithms: Sequence[float]) -> float:
    """Logarithm of the sum of numbers that are given by theirs."""
    largest = max(logarithms)
    if math.isinf(largest):
        return largest
    return largest + math.log(math.fsum(math.exp(one - largest) for one in logarithms))


def shown_log(logarithm: float) -> str:
    """The number whose natural logarithm is given, short, and as a power of ten if it is huge."""
    power = logarithm / math.log(10.0)
    if -300 < power < 300:
        return f"{math.exp(logarithm):.4g}"
    return f"10^{power:.1f}"
