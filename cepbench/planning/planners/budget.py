"""Budgets of plan searches, and their results."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.arguments import number, whole
from cepbench.errors import PlanGeneratorError

#: Deadline and number of steps of a search without limits.
UNLIMITED = 2**63 - 1


@dataclass(frozen=True)
class Budget:
    """Limits of a search: ``Budget(seconds=2)``, ``Budget(steps=10_000)`` or both.

    A search that reaches either limit returns the best plan so far. A limit of steps makes it
    reproducible on every machine. Each generator documents its step.

    Raises PlanGeneratorError unless seconds are more than 0, and steps at least 1.
    """

    seconds: float = math.inf
    steps: float = math.inf

    def __post_init__(self) -> None:
        for key in ("seconds", "steps"):
            given = getattr(self, key)
            if isinstance(given, float | np.floating) and given == math.inf:
                limit = math.inf
            elif key == "seconds":
                limit = number(given, "a budget's seconds", PlanGeneratorError, above=0.0)
            else:
                limit = whole(given, "a budget's steps", PlanGeneratorError, least=1, most=None)
            object.__setattr__(self, key, limit)

    @property
    def is_limited(self) -> bool:
        """Whether there is any limit."""
        return min(self.seconds, self.steps) < math.inf

    @property
    def most_steps(self) -> int:
        """The steps as an integer, for kernels; :data:`UNLIMITED` for no limit."""
        return UNLIMITED if self.steps == math.inf else min(int(self.steps), UNLIMITED)

    def deadline(self) -> int:
        """The deadline of a search that begins now, in nanoseconds of the monotonic clock.

        It is the clock of :func:`cepbench.kernels.clock.now`; :data:`UNLIMITED` for no limit.
        """
        if self.seconds > 1e9:
            return UNLIMITED
        return time.monotonic_ns() + int(self.seconds * 1e9)

    def share(self, parts: int) -> Budget:
        """An equal share of the seconds; steps are counted per search, so they stay."""
        return Budget(self.seconds / parts, self.steps)


def budget_from(given: Any) -> Budget:
    """The budget of an argument: a Budget, a number of seconds, or None for no limit.

    Raises PlanGeneratorError if it is none of these.
    """
    if given is None:
        return Budget()
    return given if isinstance(given, Budget) else Budget(seconds=given)


@dataclass(frozen=True)
class Found:
    """The result of a search: a plan and how the search ended."""

    plan: Any
    #: Natural logarithm of a proven lower bound of the cost over the generator's space.
    log_bound: float | None = None
    #: Whether the search completed; False if its budget ended it.
    complete: bool = True
    steps: int | None = None
