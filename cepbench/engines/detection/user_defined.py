"""User-defined evaluators: a function as a run, and the conversion of its DataFrame of matches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import is_real, shown
from cepbench.engines.runs.matches import BranchMatches, Column, Found, SetColumn
from cepbench.engines.runs.protocol import Given, Task
from cepbench.engines.runs.result import Metrics
from cepbench.errors import EvaluationError
from cepbench.patterns.model import Pattern
from cepbench.streams.event_stream import EventStream

#: The column with the branch of a match, for a pattern with OR.
BRANCH = "branch"


class FunctionRun:
    """A function of (pattern, stream, plan) as a run; it takes the stream as a single batch."""

    def __init__(self, function: Callable[..., Any], task: Task) -> None:
        self._function = function
        self._task = task

    def push(self, batch: EventStream) -> Any:
        """The result of the function."""
        return self._function(self._task.pattern, batch, self._task.plan, **self._task.options)

    def finish(self) -> Given:
        """No further matches."""
        return 0

    def metrics(self) -> Metrics:
        """No metrics."""
        return Metrics()


def found_from(name: str, returned: Any, task: Task, positions: range) -> Found:
    """What a user-defined evaluator ``returned`` for a batch, a DataFrame or a number, as matches.

    ``positions`` are those of the events so far. An EvaluationError names an invalid column or value.
    """
    branches = task.pattern.branches()
    number = int(returned) if is_real(returned) and isinstance(returned, Integral) else -1
    if number == 0 or (number > 0 and task.output == "count"):
        return Found(number, tuple(None for _ in branches))
    parts = _checked(name, returned, branches, positions)
    return Found(sum(map(len, parts)), tuple(parts))


def _checked(
    name: str, returned: Any, branches: Sequence[Pattern], positions: range
) -> list[BranchMatches]:
    several = len(branches) > 1
    wanted = list(dict.fromkeys(v for branch in branches for v in branch.positive_names))
    wanted += [BRANCH] * several
    if not isinstance(returned, pd.DataFrame):
        raise EvaluationError(
            f"the evaluator {name} returned {shown(returned)}; it has to return a "
            f"DataFrame of the columns {', '.join(wanted)}, a row a match"
        )
    named = list(returned.columns)
    missing = [column for column in wanted if column not in named]
    if missing:
        raise EvaluationError(
            f"the matches of the evaluator {name} lack the column {', '.join(missing)}; there are "
            f"{', '.join(map(str, returned.columns)) or 'none'}. A column holds the positions of a "
            "variable's events in the stream"
            + (", and branch the number of the branch in pattern.branches()" if several else "")
        )
    twice = [column for column in wanted if named.count(column) > 1]
    if twice:
        raise EvaluationError(
            f"the matches of the evaluator {name} have the column {', '.join(twice)} twice; rename one"
        )
    numbers = returned[BRANCH] if several else pd.Series(dtype=int)
    unknown = numbers[~numbers.isin(range(len(branches)))]
    if len(unknown):
        raise EvaluationError(
            f"the evaluator {name} returned a match of branch {unknown.iloc[0]!r}; branches are numbered "
            f"from 0 to {len(branches) - 1}, as in pattern.branches()"
        )
    parts = []
    for number, branch in enumerate(branches):
        own = returned[returned[BRANCH] == number] if several else returned
        columns = [
            _column(name, variable.name, own[variable.name], positions, is_set=variable.is_set)
            for variable in branch.positive
        ]
        parts.append(BranchMatches(branch.positive_names, [columns]))
    return parts


def _column(name: str, variable: str, values: pd.Series, events: range, *, is_set: bool) -> Column:
    try:
        if is_set:
            sets = [sorted(one) for one in values]
            _integers([position for one in sets for position in one])
            if any(len(set(one)) < len(one) for one in sets):
                raise ValueError("an event is in a set once")
            column: Column = SetColumn.of_sets(sets)
        else:
            column = _integers(values.tolist() if values.dtype == object else values)
    except (TypeError, ValueError) as error:
        what = "tuples of different positions" if is_set else "positions"
        raise EvaluationError(
            f"the evaluator {name} returned a column {variable} that does not hold {what}, "
            f"such as {values.iloc[0]!r}"
        ) from error
    positions = column.positions if isinstance(column, SetColumn) else column
    if len(positions) and not (positions.min() in events and positions.max() in events):
        raise EvaluationError(
            f"the evaluator {name} returned a position of {variable} that is not in the stream, "
            f"which has {len(events):,} events so far; positions count from {events.start:,} in "
            "the order of the stream"
        )
    return column


def _integers(given: Any) -> np.ndarray:
    """Whole numbers of any type as integers; a ValueError for others."""
    values = np.asarray(given)
    with np.errstate(invalid="ignore"):  # NaN
        found = values.astype(np.int64) if values.dtype.kind in "iuf" else None
    if found is None or values.ndim != 1 or (found != values).any():
        raise ValueError("these are no whole numbers")
    return found
