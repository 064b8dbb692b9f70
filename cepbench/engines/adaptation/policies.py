"""The registry of adaptation policies, built-in and user-defined: when to plan anew.

A policy is a function ``f(situation)``, called for each round before its last events are processed,
which are all of them if a round is pushed as a whole. It returns the reason
to plan anew as a text, or None to keep the running plan. A new plan is installed if the cost model
predicts an improvement of more than ``gain``.

No policy checks again the comparisons by which a plan generator chose its steps: that method is
patented (US 11,693,862).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

from cepbench.arguments import flag, shown
from cepbench.errors import AdaptationError, failures_of
from cepbench.registry import Registry

_F = TypeVar("_F", bound=Callable[..., str | None])


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What a policy knows when the last events of a round have come."""

    #: Makes and compares plans.
    plans: Any
    #: The running plan: an OrderPlan, a TreePlan, a UnionPlan, or a WorkloadPlan.
    plan: Any
    #: The windowed averages, Averaged or of a workload AveragedQueries; for a policy that foresees, those of this round alone, measured in full.
    averages: Any
    #: Those with which a plan was last made; None before that.
    planned: Any
    #: As for :func:`cepbench.adapt`, and the gain.
    threshold: float
    gain: float
    #: The number of the round, from 0.
    round: int
    #: The averages when a policy that amortizes was last asked, as often as a change has to be seen before; empty until then.
    before: Sequence[Any] = ()

    @property
    def statistics(self) -> Any:
        """The averages as plan generators take them; of a workload a mapping of its queries."""
        return self.averages.statistics

    @property
    def pattern(self) -> Any:
        """The pattern, or the workload."""
        return self.plans.queries

    workload = pattern

    @property
    def cost(self) -> Any:
        """The cost model of plans, of a workload its name."""
        return self.plans.cost

    @property
    def evaluator(self) -> Any:
        """The evaluator that was asked for; None for the default one."""
        return self.plans.asked.evaluator

    @cached_property
    def problems(self) -> Any:
        """What plans are made for under the current statistics: the problem of each branch of a pattern."""
        return self.plans.problem(self.statistics)

    @cached_property
    def log_cost(self) -> float:
        """ln of the cost of the running plan under the current statistics."""
        found: float = self.plans.log_cost(self.plan, self.problems)
        return found

    @cached_property
    def log_bound(self) -> float:
        """ln of a lower bound of the cost of all plans of this kind."""
        found: float = self.plans.log_bound(self.plan, self.problems)
        return found

    def changes(self) -> Iterator[tuple[str, float, float]]:
        """Name, previous and current value of each statistic that differs by more than its error."""
        return iter(()) if self.planned is None else self.averages.changes(self.planned)


@dataclass(frozen=True)
class AdaptationPolicy:
    """A registered policy."""

    name: str
    #: Situation → the reason to plan anew, or None.
    function: Callable[[Situation], str | None]
    #: Whether it sees this round's own statistics, measured in full.
    foresees: bool = False
    #: Whether it is asked only where adapting is a small share of the run, and a plan has to be expected to take less time.
    amortizes: bool = False
    description: str = ""

    @property
    def is_builtin(self) -> bool:
        """Whether it belongs to cepbench."""
        return self.function.__module__.startswith("cepbench.engines.adaptation.")

    def reason(self, situation: Situation) -> str | None:
        """The function's answer; an AdaptationError if it fails or gives neither a text nor None."""
        with (
            nullcontext()
            if self.is_builtin
            else failures_of(f"the policy {self.name}", AdaptationError)
        ):
            found = self.function(situation)
        if found is not None and not isinstance(found, str):
            raise AdaptationError(
                f"the policy {self.name} returned {shown(found)}; it returns the reason to plan anew "
                "as a text, or None"
            )
        return found


#: Name → adaptation policy, in the order of registration.
ADAPTATION_POLICIES = Registry(
    AdaptationPolicy,
    "adaptation policy",
    AdaptationError,
    example='@adaptation_policy("every-tenth")',
    wanted="an adaptation policy is a function, not {}",
)


def adaptation_policy(
    name: str, *, foresees: bool = False, amortizes: bool = False
) -> Callable[[_F], _F]:
    """Register the decorated function as an adaptation policy; it is returned unchanged.

    Registering a name again, compared without regard to case, ``-`` and ``_``, replaces a
    user-defined policy; built-in ones cannot be replaced. One that ``foresees`` sees each round's
    own statistics, measured in full, instead of sampled averages: for comparison, as that takes
    time. One that ``amortizes`` is asked in rounds up to which samples, plans and changes together, another
    plan included, are a small share of what the run takes by its counted work; and a plan is installed only
    if it is expected to take less time, by the gain, besides costing less.

    Raises AdaptationError if the name is that of a built-in policy, or the decorated object is not
    callable.

    Examples
    --------
    >>> import cepbench as cep
    >>> @cep.adaptation_policy("every-tenth")
    ... def every_tenth(situation):
    ...     return "the tenth round" if situation.round % 10 == 0 else None
    """
    ADAPTATION_POLICIES.check_name(name)
    foresees = flag(foresees, f"{name}: foresees", AdaptationError)
    amortizes = flag(amortizes, f"{name}: amortizes", AdaptationError)

    def entry(function: Callable[[Situation], str | None]) -> AdaptationPolicy:
        about = (function.__doc__ or "").strip().partition("\n")[0]
        return AdaptationPolicy(name, function, foresees, amortizes, about)

    return ADAPTATION_POLICIES.decorator(name, entry)


@adaptation_policy("threshold")
def threshold(situation: Situation) -> str | None:
    """Plan anew when a statistic has changed by more than a threshold [mei2009]_, section 5.3.

    A change is the larger of the two values over the smaller one, minus 1.

    Differs from the paper: changes within three standard errors of the samples do not count.
    """
    if situation.planned is None:
        return "the running plan was made without statistics"
    most, reason = situation.threshold, None
    for name, before, now in situation.changes():
        change = max(before, now) / min(before, now) - 1
        if change > most:
            most, reason = change, f"{name}: {before:.3g}, now {now:.3g}"
    return reason


@adaptation_policy("amortized", amortizes=True)
def amortized(situation: Situation) -> str | None:
    """As ``threshold``, for a change that lasts, while adapting is a small share of what the run takes; the default.

    Both are times by work, not by a clock, so that an installation plans for the same stream at the same events.
    """
    reason = threshold(situation)
    if situation.planned is None or reason is None:
        return reason
    differ = (threshold(replace(situation, planned=its)) for its in situation.before)
    return reason if situation.before and not any(differ) else None


@adaptation_policy("bound")
def bound(situation: Situation) -> str | None:
    """Plan anew when the running plan costs more than a lower bound of the best one by the gain.

    Neither is computed while no statistic has changed by more than its error since the last plan.
    """
    if situation.planned is not None and next(situation.changes(), None) is None:
        return None
    excess = relative_gain(situation.log_cost, situation.log_bound)
    if excess <= situation.gain:
        return None
    return f"cost up to {excess:.3g} above the least"


@adaptation_policy("static")
def static(situation: Situation) -> str | None:
    """Never plan anew."""
    return None


@adaptation_policy("clairvoyant", foresees=True)
def clairvoyant(situation: Situation) -> str | None:
    """Plan every round anew for its own statistics, measured in full: what no sample can exceed."""
    return "its own statistics"


def relative_gain(log_before: float, log_after: float) -> float:
    """How much more a cost is than another one, relative to that."""
    return math.expm1(min(log_before - log_after, 700.0))
