"""How long a search for a plan may go on, and what it says of where it ended."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.arguments import number, shown, whole
from cepbench.errors import PlanGeneratorError

#: The deadline, and the number of steps, of a search without a limit.
UNLIMITED = 2**63 - 1


@dataclass(frozen=True)
class Budget:
    """What a search may spend: ``Budget(seconds=2)``, ``Budget(steps=10_000)`` or both.

    A search that reaches either limit ends with the best plan that it has met. Steps make that
    plan the same on every machine, seconds do not. What a step is says each generator.

    Parameters
    ----------
    seconds : float
        More than 0.
    steps : int
        At least 1.

    Raises
    ------
    PlanGeneratorError
        If one of them is no such number.
    """

    seconds: float = math.inf
    steps: float = math.inf

    def __post_init__(self) -> None:
        for key, wanted in (
            ("seconds", "a number of more than 0"),
            ("steps", "an integer of at least 1"),
        ):
            given = getattr(self, key)
            try:
                found = _limit(given, key)
            except PlanGeneratorError:
                raise PlanGeneratorError(
                    f"a budget of {shown(given)} {key}; give {wanted}"
                ) from None
            object.__setattr__(self, key, found)

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return min(self.seconds, self.steps) < math.inf

    @property
    def most_steps(self) -> int:
        """The steps as an integer, for kernels; :data:`UNLIMITED` for no limit."""
        return UNLIMITED if self.steps == math.inf else min(int(self.steps), UNLIMITED)

    def deadline(self) -> int:
        """When a search that begins now has to end, in nanoseconds of the monotonic clock.

        It is the clock of :func:`cepbench.kernels.clock.now`; :data:`UNLIMITED` for no limit.
        """
        if self.seconds > 1e9:
            return UNLIMITED
        return time.monotonic_ns() + int(self.seconds * 1e9)

    def share(self, parts: int) -> Budget:
        """An equal part of the seconds; the steps stay, for they are counted part by part."""
        return Budget(self.seconds / parts, self.steps)


def _limit(given: Any, key: str) -> float:
    if isinstance(given, float | np.floating) and given == math.inf:
        return math.inf
    if key == "steps":
        return whole(given, key, PlanGeneratorError, least=1, most=None)
    return number(given, key, PlanGeneratorError, above=0.0)


def budget_from(given: Any) -> Budget:
    """A budget as users give it: one, a number of seconds, or None for no limit.

    Raises
    ------
    PlanGeneratorError
        If it is none of these.
    """
    if given is None:
        return Budget()
    return given if isinstance(given, Budget) else Budget(seconds=given)


@dataclass(frozen=True)
class Found:
    """What a search returns that can say more than its plan.

    Attributes
    ----------
    plan : list of int or nested pairs of int
    log_bound : float or None
        Natural logarithm of a cost that no plan of its space can be below, if one was proven.
    complete : bool
        Whether the search came to its natural end, not to that of its budget.
    steps : int or None
        How many it took.
    """

    plan: Any
    log_bound: float | None = None
    complete: bool = True
    steps: int | None = None
