"""Contenders measured in turns: whose turn it is, what fails, and whether all find the same."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any, TypeVar

import pandas as pd

from cepbench.errors import (
    ExperimentError,
    PartialMatchLimitError,
    UnsupportedPatternError,
    UnsupportedTaskError,
)
from cepbench.experiments.sweeps.cells import ERROR, LIMIT, OK, REFUSED

_Key = TypeVar("_Key", bound=Hashable)


def outcome_of(
    error: BaseException, *refusals: type[BaseException], named: bool | None = None
) -> dict[str, Any]:
    """The columns ``status`` and ``reason`` of a run, or of planning, that raised an error.

    Parameters
    ----------
    error : BaseException
    *refusals : type
        Errors that are refusals.
    named : bool, optional
        Whether the reason begins with the type of the error; by default that of an ``error`` only.
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


@dataclass(eq=False)
class Contender:
    """A row of a comparison, and the runs that it is about.

    Parameters
    ----------
    row : dict
        Its columns, to which those of its runs are added.
    run : callable
        Of whether it is the first run → its seconds and further columns. It raises an ExperimentError if
        the run does not agree with those of other contenders; any other error is the row's outcome.
    """

    row: dict[str, Any]
    run: Callable[[bool], tuple[float, dict[str, Any]]]
    seconds: list[float] = field(default_factory=list)

    def take(self, *, first: bool = False) -> float:
        """Run once; the seconds, infinite after a failure."""
        try:
            seconds, columns = self.run(first)
        except (KeyboardInterrupt, ExperimentError):
            raise
        except BaseException as error:  # any failure is a row
            columns = outcome_of(error, UnsupportedPatternError, UnsupportedTaskError)
            seconds = math.inf
        self.row |= {"status": OK, "reason": None} | columns
        if self.row["status"] != OK:
            return math.inf
        if not first:
            self.seconds.append(seconds)
        return seconds


def take_turns(
    contenders: Sequence[Contender],
    *,
    rows: int,
    repetitions: int,
    seconds: float,
    on_progress: Callable[[int, int], object] | None,
) -> list[Contender]:
    """Run contenders in turns; those without a failure.

    The first run of each, which may compile, is not measured. The others are interleaved, so that a drift
    of the machine's speed affects all alike: so many ``repetitions``, then more of the contender with the
    least time until each has run for so many ``seconds``.

    Parameters
    ----------
    contenders : sequence of Contender
    rows : int
        Of the comparison; those without a contender count as finished.
    repetitions, seconds, on_progress
        See :func:`cepbench.compare`.
    """
    progress = Progress(on_progress, rows * (1 + repetitions))
    progress.add((rows - len(contenders)) * (1 + repetitions))
    for contender in contenders:
        failed = math.isinf(contender.take(first=True))
        progress.add(1 + repetitions * failed)
    spent = {its: 0.0 for its in contenders if its.row["status"] == OK}
    for contender in chain(*repeat(list(spent), repetitions), longer(spent, seconds)):
        if math.isfinite(spent[contender]):
            spent[contender] += contender.take()
        progress.add(1)
    return [contender for contender, took in spent.items() if math.isfinite(took)]


def throughput(speeds: Sequence[float] | pd.Series) -> dict[str, Any]:
    """The columns of the throughputs of several runs: median, quartiles and number."""
    its = pd.Series(speeds)
    return {
        "events_per_second": its.median(),
        "events_per_second_q1": its.quantile(0.25),
        "events_per_second_q3": its.quantile(0.75),
        "runs": len(its),
    }
