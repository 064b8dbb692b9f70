"""The registry of outside engines: adapters from a case to the matches that an engine finds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.errors import (
    CannotSayError,
    ExperimentError,
    MissingTypeWarning,
    NotInstalledError,
)
from cepbench.experiments.conformance.cases import Case, Match
from cepbench.patterns.row_pattern import RowPattern
from cepbench.registry import Registry


class NotInstalled(str):
    """That an engine is not installed, and the line that installs it."""


#: Its matches, or why it cannot say them.
Answer = Sequence[Match] | str

_F = TypeVar("_F", bound=Callable[..., Any])


@dataclass(frozen=True)
class OutsideEngine:
    """An adapter of an engine."""

    name: str
    #: From a case to its matches; with ``together`` from a list of cases to an answer for each.
    function: Callable[..., Any]
    together: bool = False
    is_builtin: bool = False

    def answers(self, cases: Sequence[Case]) -> list[Answer]:
        """What the engine says of each case; whatever it raises is a reason."""
        try:
            if self.together:
                return list(self.function(cases))
        except NotInstalledError as error:
            return [NotInstalled(error)] * len(cases)
        except CannotSayError as error:
            return [str(error)] * len(cases)
        return [self._answer(case) for case in cases]

    def _answer(self, case: Case) -> Answer:
        own = replace(case, events=case.events.copy())  # which other engines and cases read, too
        try:
            return [tuple(map(known, match)) for match in self.function(own)]
        except NotInstalledError as error:
            return NotInstalled(error)
        except ModuleNotFoundError as error:
            return NotInstalled(f"{error}; pip install {error.name}")
        except CannotSayError as error:
            return str(error)
        except (Exception, SystemExit) as error:  # whatever it is, it is what the engine says
            return f"{type(error).__name__}: {error}"


#: The registry of adapters.
OUTSIDE_ENGINES: Registry[OutsideEngine] = Registry(
    OutsideEngine,
    "outside engine",
    ExperimentError,
    example='@outside_engine("my-engine")',
    wanted="an outside engine is a function of a case, and {} is none",
)


def outside_engine(name: str) -> Callable[[_F], _F]:
    """Register a function as the adapter of an engine.

    It takes a case and returns its matches: for each variable of the pattern in written order the id of its
    event, a tuple of ids of a set, or None for a variable that a branch lacks; for a query with
    MATCH_RECOGNIZE the value of each measure. ``case.events`` is the stream, a DataFrame with ``id``, ``type``,
    ``ts`` and attributes; ``case.text`` the pattern, and ``case.text_in(language)`` the same for ``sql``,
    ``match_recognize``, ``flink_cep`` and ``ceql``. What it cannot say it raises as ``CannotSayError``.

    Raises
    ------
    ExperimentError
        If the name is none or that of a built-in adapter, or what is decorated is no function.

    Examples
    --------
    >>> import cepbench as cep
    >>> @cep.outside_engine("last-of-all")
    ... def last_of_all(case):
    ...     return cep.evaluate(case.pattern, case.stream).matches.tail(1).itertuples(index=False)
    """
    return OUTSIDE_ENGINES.decorator(name, lambda function: OutsideEngine(name, function))


def _own(case: Case) -> list[Match]:
    """The matches of the evaluator that cepbench chooses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MissingTypeWarning)  # the case is about it
        table = evaluate(case.pattern, case.stream).matches
    return [tuple(map(known, row)) for row in table[columns_of(case)].itertuples(index=False)]


def columns_of(case: Case) -> list[str]:
    """The names of what a match has in this order: variables, or measures."""
    if isinstance(case.pattern, RowPattern):
        return [measure.name for measure in case.pattern.measures]
    return list(case.pattern.positive_names)


def known(value: Any) -> int | tuple[int, ...] | None:
    """A cell of a table of matches."""
    if isinstance(value, tuple | list):
        return tuple(map(int, value))
    return None if value is None or value is pd.NA or math.isnan(value) else int(value)


OUTSIDE_ENGINES.add(OutsideEngine("cepbench", _own, is_builtin=True))
