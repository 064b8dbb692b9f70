"""The engine that was chosen by the time that it is expected to take, and the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any

import pandas as pd

_YEAR = 3.2e7  #: In seconds.


class Choice:
    """The engine that was chosen, ``evaluator``, and the expected times of all that can do the task.

    ``find`` gives these times when somebody asks for them.
    """

    def __init__(self, evaluator: str, find: Callable[[], Mapping[str, float]]) -> None:
        self.evaluator = evaluator
        self._find = find

    @cached_property
    def seconds(self) -> Mapping[str, float]:
        """Engine → expected seconds, the least first."""
        return self._find()

    def __reduce__(self) -> tuple[Any, ...]:
        return Choice, (self.evaluator, partial(dict, self.seconds))

    def frame(self) -> pd.DataFrame:
        """One row per engine, the fastest first: ``evaluator``, ``expected_seconds`` and ``times_best``."""
        found = pd.DataFrame(self.seconds.items(), columns=["evaluator", "expected_seconds"])
        return found.assign(times_best=found["expected_seconds"] / found["expected_seconds"].min())

    @property
    def text(self) -> str:
        """All engines and times in one line."""
        return ", ".join(f"{name} {_shown(seconds)}" for name, seconds in self.seconds.items())

    def __str__(self) -> str:
        (engine, seconds), *others = self.seconds.items()
        line = f"{engine} was chosen, {_shown(seconds)} expected"
        return line + "".join(f"; {name} {_shown(its)}" for name, its in others[:1])

    __repr__ = __str__


def _shown(seconds: float) -> str:
    if seconds > _YEAR:
        return "over a year"
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"
