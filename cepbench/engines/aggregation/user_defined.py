"""User-defined aggregation methods: the checked rows of an object as a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np

from cepbench.arguments import is_real, kind_of, shown
from cepbench.engines.aggregation.protocol import AggregateMetrics, AggregationTask, Row
from cepbench.errors import EvaluationError, failures_of
from cepbench.streams.event_stream import EventStream


class UserRun:
    """An object of a user-defined class as a run.

    It has ``push``, and perhaps the other methods of
    :class:`~cepbench.engines.aggregation.protocol.AggregationRun`.
    """

    def __init__(
        self, name: str, made: Callable[[AggregationTask], Any], task: AggregationTask
    ) -> None:
        self._name = name
        self._task = task
        self._position = 0
        with self._named():
            self._run = made(task)

    def push(self, batch: EventStream) -> list[Row]:
        """The rows of the object, checked."""
        first, self._position = self._position, self._position + len(batch)
        rows = self._rows(self._asked("push", batch))
        last = first
        for row in rows:
            returned = f"the method {self._name} returned a row of position {row.position}"
            if row.position not in range(first, self._position):
                raise EvaluationError(
                    f"{returned}, and the batch has {first} to {self._position - 1}; count positions over "
                    "all batches"
                )
            time = batch.timestamps[row.position - first]
            if row.time != time:
                raise EvaluationError(f"{returned} at {row.time}, and this event is at {time}")
            if row.position < last:
                raise EvaluationError(
                    f"{returned} after {last}; return rows in the order of positions"
                )
            last = row.position
        return rows

    def value(self, time: int) -> list[Row]:
        """The rows of the object at a time."""
        return self._rows(self._asked("value", time))

    def metrics(self) -> AggregateMetrics:
        """The metrics of the object, or none."""
        if not hasattr(self._run, "metrics"):
            return AggregateMetrics()
        found = self._asked("metrics")
        if not isinstance(found, AggregateMetrics):
            raise EvaluationError(
                f"the method {self._name} gave {kind_of(found)} as its metrics; metrics() returns cep.AggregateMetrics"
            )
        return found

    def snapshot(self) -> dict[str, np.ndarray]:
        """The arrays of the object."""
        given = self._asked("snapshot")
        with self._named():
            return {**given, "position": np.array(self._position)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a snapshot."""
        given = dict(state)
        self._position = int(given.pop("position"))
        self._asked("restore", given)

    def _named(self) -> AbstractContextManager[None]:
        return failures_of(f"the method {self._name}", EvaluationError)

    def _asked(self, method: str, *arguments: Any) -> Any:
        """What a method of the object returns."""
        if not hasattr(self._run, method):
            raise EvaluationError(
                f"the method {self._name} has no {method}; add it to "
                f"{type(self._run).__name__}, see cepbench.engines.aggregation.protocol.AggregationRun"
            )
        with self._named():
            return getattr(self._run, method)(*arguments)

    def _rows(self, returned: Any) -> list[Row]:
        try:
            return [self._row(*row) for row in returned]
        except (TypeError, ValueError, OverflowError) as error:
            raise EvaluationError(
                f"the method {self._name} returned {shown(returned)}; it has to return a list of "
                "rows (position, time, key, values), where key and values are tuples"
            ) from error

    def _row(self, position: Any, time: Any, key: Iterable[Any], values: Iterable[Any]) -> Row:
        pattern = self._task.pattern
        row = Row(
            _whole(position), _whole(time), tuple(map(_plain, key)), tuple(map(_plain, values))
        )
        if (len(row.key), len(row.values)) != (len(pattern.group_by), len(pattern.aggregates)):
            raise EvaluationError(
                f"the method {self._name} returned a row with {len(row.key)} keys and "
                f"{len(row.values)} values; the pattern has {len(pattern.group_by)} keys and "
                f"{len(pattern.aggregates)} aggregates"
            )
        for aggregate, value in zip(pattern.aggregates, row.values, strict=True):
            if aggregate.function == "COUNT":
                fits, due = isinstance(value, int) and value >= 0, "an int of at least 0"
            else:
                fits = isinstance(value, int | float | None)
                due = "an int, a float, or None if it is missing"
            if not fits:
                raise EvaluationError(
                    f"the method {self._name} returned {shown(value)} for {aggregate}; a value is {due}"
                )
        return row


def _whole(number: Any) -> int:
    """A whole number of any type; a ValueError for another one."""
    if not is_real(number) or number != int(number):
        raise ValueError(f"{number!r} is no whole number")
    return int(number)


def _plain(value: Any) -> Any:
    """A Python number for one of NumPy; None for NaN."""
    if not is_real(value) or isinstance(value, Decimal):
        return value
    if isinstance(value, Integral):
        return int(value)
    return None if value != value else float(value)
