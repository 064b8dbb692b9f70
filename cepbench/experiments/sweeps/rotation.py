"""Runs in turns: whose turn it is, what fails, and whether all find the same."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar

import pandas as pd

from cepbench.errors import PartialMatchLimitError
from cepbench.experiments.sweeps.cells import ERROR, LIMIT, REFUSED

_Key = TypeVar("_Key", bound=Hashable)


def outcome_of(
    error: BaseException, *refusals: type[BaseException], named: bool | None = None
) -> dict[str, Any]:
    """The columns ``status`` and ``reason`` of a run, or of planning, that raised an error.

    ``*refusals``: errors that are refusals. ``named``: whether the reason begins with the type of
    the error; by default that of an ``error`` only.
    """
    is_limit = isinstance(error, PartialMatchLimitError)
    status = REFUSED if isinstance(error, refusals) else LIMIT if is_limit else ERROR
    if named is None:
        named = status == ERROR
    return {"status": status, "reason": f"{type(error).__name__}: {error}" if named else str(error)}


def longer(spent: Mapping[_Key, float], seconds: float) -> Iterator[_Key]:
    """The contender with the least time, again and again, until all have spent so many seconds.

    The caller keeps ``spent`` up to date; infinite is the time of one that failed.
    """
    while spent and spent[least := min(spent, key=spent.__getitem__)] < seconds:
        yield least


class Agreement:
    """What the first run found; all others must find the same.

    ``difference`` of what a run found and what the first one did is a false value if they agree.
    """

    def __init__(self, difference: Callable[[Any, Any], Any] = operator.ne) -> None:
        self._difference = difference
        self._first: dict[Hashable, tuple[str, Any]] = {}

    def violated(self, run: str, found: Any, question: Hashable = None) -> tuple[str, Any] | None:
        """The first run with the same question, and the difference from it; None if they agree."""
        first, expected = self._first.setdefault(question, (run, found))
        wrong = found is not expected and self._difference(found, expected)
        return (first, wrong) if wrong else None


class Progress:
    """Reports the numbers of finished and of all runs, first 0; runs beyond the total raise it."""

    def __init__(self, on_progress: Callable[[int, int], object] | None, total: int) -> None:
        self._on_progress, self._done, self._total = on_progress, 0, total
        self.add(0)

    def add(self, runs: int) -> None:
        """Report further runs, or runs that there is no need for."""
        self._done += runs
        if self._on_progress is not None:
            self._on_progress(self._done, max(self._done, self._total))

    def finish(self) -> None:
        """Report that there is no need for the runs that are left."""
        if self._done < self._total:
            self.add(self._total - self._done)


def throughput(speeds: pd.Series) -> dict[str, Any]:
    """The columns of the throughputs of several runs: median, quartiles and number."""
    return {
        "events_per_second": speeds.median(),
        "events_per_second_q1": speeds.quantile(0.25),
        "events_per_second_q3": speeds.quantile(0.75),
        "runs": len(speeds),
    }
