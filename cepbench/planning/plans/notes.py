"""Annotations of a plan: its estimated cost, its generator, and their text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cepbench.errors import PlanError


@dataclass(frozen=True, kw_only=True)
class PlanNotes:
    """Annotations of a plan; a plan written by hand has none."""

    #: Natural logarithm of the estimated cost, ``alpha`` times the latency included.
    log_cost: float | None = None
    cost_model: str | None = None
    generator: str | None = None
    seed: int | None = None
    #: Natural logarithms of the estimated numbers of partial matches: of an order plan's prefixes,
    #: of a tree plan's nodes in post-order. Empty if there are none.
    estimates: tuple[float, ...] = ()
    alpha: float = 0.0
    #: Natural logarithm of the estimated latency, if the cost includes it.
    log_latency: float | None = None
    #: Natural logarithm of a proven lower bound of the cost over the generator's space.
    log_bound: float | None = None
    #: Whether the search completed; False if its budget ended it.
    complete: bool = True
    #: Notes on parts of the pattern that the plan does not show.
    remarks: tuple[str, ...] = ()

    @property
    def gap(self) -> float | None:
        """Relative distance to a proven lower bound of the cost; 0 for a plan of least cost."""
        if self.log_cost is None or self.log_bound is None:
            return None
        return math.expm1(min(max(self.log_cost - self.log_bound, 0.0), 700.0))

    @property
    def cost(self) -> float | None:
        """The estimated cost; infinite where only its logarithm fits a float."""
        return None if self.log_cost is None else from_log(self.log_cost)

    @property
    def log_throughput(self) -> float | None:
        """Natural logarithm of the cost without latency."""
        if not self.alpha:
            return self.log_cost
        return log_sum(self.estimates) if self.estimates else None

    def _check_estimates(self, nodes: int) -> None:
        object.__setattr__(self, "estimates", tuple(self.estimates))
        if len(self.estimates) not in (0, nodes):
            raise PlanError(
                f"estimates has {len(self.estimates)} numbers for a plan of {nodes} nodes; "
                "give one per node, or none"
            )

    def _headline(self, what: str) -> str:
        """What is planned, by which generator, at which cost, and whether the search completed."""
        by = "by hand" if self.generator is None else f"by {self.generator}"
        seed = "" if self.seed is None else f"seed {self.seed}"
        stopped = ""
        if not self.complete:
            stopped = "stopped by its budget"
            if self.gap is not None:
                stopped += f", at most {100 * self.gap:.3g} % above the least"
        return f"{what} {', '.join(filter(None, (by, seed, self._costing(), stopped)))}"

    def _costing(self) -> str:
        """The estimated cost and its model; empty if unknown."""
        if self.log_cost is None:
            return ""
        return f"estimated cost {shown_log(self.log_cost)} ({self.cost_model})"


def from_log(logarithm: float) -> float:
    """``exp(logarithm)``; infinite if that does not fit a float."""
    try:
        return math.exp(logarithm)
    except OverflowError:
        return math.inf


def log_sum(logarithms: Sequence[float]) -> float:
    """Logarithm of a sum, from the logarithms of its terms."""
    largest = max(logarithms)
    if math.isinf(largest):
        return largest
    return largest + math.log(math.fsum(math.exp(one - largest) for one in logarithms))


def shown_log(logarithm: float) -> str:
    """``exp(logarithm)`` as a short text; a power of ten if it is huge."""
    if logarithm == -math.inf:
        return "0"
    power = logarithm / math.log(10.0)
    if -300 < power < 300:
        return f"{math.exp(logarithm):.4g}"
    return f"10^{power:.1f}"
