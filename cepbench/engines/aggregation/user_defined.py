"""User-defined aggregation methods: the checked rows of an object as a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from cepbench.arguments import shown
from cepbench.engines.aggregation.protocol import AggregateMetrics, AggregationTask, Row
from cepbench.errors import EvaluationError
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
        self._run = made(task)
        self._position = 0

    def push(self, batch: EventStream) -> list[Row]:
        """The rows of the object, checked."""
        first, self._position = self._position, self._position + len(batch)
        rows = self._rows(self._run.push(batch))
        for row in rows:
            if row.position not in range(first, self._position):
                raise EvaluationError(
                    f"the method {self._name} returned a row of position {row.position}, and the "
                    f"batch has {first} to {self._position - 1}; count positions over all batches"
                )
        return rows

    def value(self, time: int) -> list[Row]:
        """The rows of the object at a time."""
        return self._rows(self._asked("value")(time))

    def metrics(self) -> AggregateMetrics:
        """The metrics of the object, or none."""
        found: AggregateMetrics = getattr(self._run, "metrics", AggregateMetrics)()
        return found

    def snapshot(self) -> dict[str, np.ndarray]:
        """The arrays of the object."""
        return {**self._asked("snapshot")(), "position": np.array(self._position)}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Resume from a snapshot."""
        given = dict(state)
        self._position = int(given.pop("position"))
        self._asked("restore")(given)

    def _asked(self, method: str) -> Callable[..., Any]:
        if not hasattr(self._run, method):
            raise EvaluationError(
                f"the method {self._name} has no {method}; add it to "
                f"{type(self._run).__name__}, see cepbench.engines.aggregation.protocol.AggregationRun"
            )
        found: Callable[..., Any] = getattr(self._run, method)
        return found

    def _rows(self, returned: Any) -> list[Row]:
        try:
            return [self._row(*row) for row in returned]
        except (TypeError, ValueError) as error:
            raise EvaluationError(
                f"the method {self._name} returned {shown(returned)}; it has to return a list of "
                "rows (position, time, key, values), where key and values are tuples"
            ) from error

    def _row(self, position: Any, time: Any, key: Iterable[Any], values: Iterable[Any]) -> Row:
        pattern = self._task.pattern
        row = Row(int(position), int(time), tuple(map(_plain, key)), tuple(map(_plain, values)))
        if (len(row.key), len(row.values)) != (len(pattern.group_by), len(pattern.aggregates)):
            raise EvaluationError(
                f"the method {self._name} returned a row with {len(row.key)} keys and "
                f"{len(row.values)} values; the pattern has {len(pattern.group_by)} keys and "
                f"{len(pattern.aggregates)} aggregates"
            )
        for aggregate, value in zip(pattern.aggregates, row.values, strict=True):
            is_count = aggregate.function == "COUNT"
            if not (isinstance(value, int) or (not is_count and isinstance(value, float | None))):
                raise EvaluationError(
                    f"the method {self._name} returned {shown(value)} for {aggregate}; a value is an "
                    f"int{'' if is_count else ', a float, or None if it is missing'}"
                )
        return row


def _plain(value: Any) -> Any:
    """A Python number for one of NumPy; None for NaN."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return None if value != value else float(value)
    return value
