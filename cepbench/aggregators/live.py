"""Aggregation of a stream that arrives in batches."""

from __future__ import annotations

import time as clock
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd

from cepbench.aggregators.protocol import (
    EMITS,
    SCOPES,
    AggregateMetrics,
    AggregationMethod,
    AggregationRun,
    AggregationTask,
    Row,
)
from cepbench.aggregators.registry import AGGREGATORS
from cepbench.aggregators.tables import check_names, check_values, floats_of, frame_of
from cepbench.arguments import choice, shown
from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    PatternError,
    SnapshotError,
    StreamError,
    UnsupportedPatternError,
)
from cepbench.evaluators.snapshot import arrays_under, digest_of, verified
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.patterns.parse import reread
from cepbench.streams.event_stream import EventStream
from cepbench.streams.given import stream_from

_RUN = "run "


def aggregation(
    pattern: Pattern | str, method: str | None, emit: str, scope: str, evaluator: str | None
) -> tuple[AggregationMethod, AggregationTask, AggregationRun]:
    """Check the arguments of :class:`Aggregator`, and open a run.

    Raises
    ------
    PatternError, EvaluationError
        If one is invalid.
    UnsupportedPatternError
        If the method cannot run the pattern.
    """
    pattern = pattern_from(pattern, aggregates=True)
    if not pattern.aggregates:
        raise PatternError(
            "the pattern has no AGG; write AGG COUNT before WITHIN, or use cep.evaluate for its "
            "matches"
        )
    check_names(pattern)
    task = AggregationTask(
        pattern,
        choice(emit, "emit", EMITS, EvaluationError),
        choice(scope, "scope", SCOPES, EvaluationError),
        evaluator,
    )
    if method is not None:
        chosen = AGGREGATORS.find(method)
        if evaluator is not None and not chosen.lists_matches:
            raise EvaluationError(f"the method {chosen.name} uses no evaluator; leave it out")
        return chosen, task, chosen.open(task)
    for entry in (entry for entry in AGGREGATORS.values() if entry.expires):
        if entry.lists_matches:  # which runs all patterns
            return entry, task, entry.open(task)
        if evaluator is None:
            with suppress(UnsupportedPatternError):
                return entry, task, entry.open(task)
    raise AssertionError(pattern)  # pragma: no cover


class Aggregator:
    """Computes the values of AGG over a stream that arrives in batches.

    The values do not depend on how the stream is divided.

    Parameters
    ----------
    pattern : Pattern or str
        With AGG, or its text.
    method : str, optional
        A name in ``cep.AGGREGATORS``, in any case. By default the first of ``window-product``,
        ``a-seq``, ``greta`` and ``two-step`` that runs the pattern, or ``two-step`` with an evaluator.
    emit : {"trigger", "change"}
        After which events a row is reported: those of the last positive item that satisfy the
        conditions that mention it alone, for their own group; or all after which a group's value
        differs from that after the event before.
    scope : {"window", "trigger", "stream"}
        Which matches count: those whose first event has not expired; those that this event
        completes; or all so far.
    evaluator : str, optional
        How ``two-step`` finds matches, a name in ``cep.EVALUATORS``; by default ``stack-nfa``.

    Attributes
    ----------
    method : str

    Raises
    ------
    PatternError, EvaluationError
        If an argument is invalid.
    UnsupportedPatternError
        If the method, or the evaluator, cannot run the pattern.
    """

    def __init__(
        self,
        pattern: Pattern | str,
        method: str | None = None,
        *,
        emit: str = "trigger",
        scope: str = "window",
        evaluator: str | None = None,
    ) -> None:
        chosen, self._task, self._run = aggregation(pattern, method, emit, scope, evaluator)
        self.pattern = self._task.pattern
        self.method = chosen.name
        self._seconds = 0.0
        self._events = 0
        self._last: int | None = None
        #: Whether the values of each aggregate are floats, as far as the batches tell.
        self._floats = [False] * len(self.pattern.aggregates)
        self._ended = False

    def push(self, batch: EventStream) -> pd.DataFrame:
        """Process the next events and return the rows to report.

        Parameters
        ----------
        batch : EventStream
            The next events; timestamps must not decrease.

        Returns
        -------
        DataFrame
            ``position``, ``time``, the keys of GROUP BY, and a column for each aggregate.

        Raises
        ------
        StreamError
            If the batch does not fit the pattern or starts before the last one ended.
        """
        return self._frame(self.take(batch))

    def take(self, batch: EventStream) -> list[Row]:
        """As :meth:`push`, but return the rows as they are."""
        self._refuse_if_ended()
        batch = stream_from(batch, "the batch")
        began = clock.perf_counter()
        check_values(self.pattern, batch)
        self._floats = [
            a or b for a, b in zip(self._floats, floats_of(self.pattern, batch), strict=True)
        ]
        if not len(batch):
            return []
        if self._last is not None and batch.timestamps[0] < self._last:
            raise StreamError(
                f"row {self._events}: this batch starts at {batch.timestamps[0]}, before the last "
                f"event pushed ({self._last}); push batches in the order of time",
                row=self._events,
            )
        rows = self._run.push(batch)
        self._last = int(batch.timestamps[-1])
        self._events += len(batch)
        self._seconds += clock.perf_counter() - began
        return rows

    def value(self, time: Any = None) -> pd.DataFrame:
        """The value of each group seen so far, at a time; nothing changes by asking.

        Parameters
        ----------
        time : int or datetime, optional
            Not before the last event, whose time is the default.

        Returns
        -------
        DataFrame
            As of :meth:`push`, without ``position``.

        Raises
        ------
        EvaluationError
            If there was no event and no time is given, for a time before the last event, and in
            scope ``trigger``.
        """
        if time is None and self._last is None:
            raise EvaluationError("there was no event yet; give the time of the value")
        ticks = self._last if time is None else ticks_of(time, self.pattern)
        assert ticks is not None
        return self._frame(self.rows_at(ticks), at=True)

    def rows_at(self, ticks: int) -> list[Row]:
        """As :meth:`value`, but return the rows as they are."""
        self._refuse_if_ended()
        check_no_trigger(self._task.scope)
        if self._last is not None and ticks < self._last:
            raise EvaluationError(
                f"a value at {ticks} is asked for after the event at {self._last}; ask before later "
                "events are pushed, or by cep.aggregate(…, at=[…])"
            )
        return self._run.value(ticks)

    def flush(self) -> pd.DataFrame:
        """End the stream; there are no rows, since every value is known with its event."""
        self._refuse_if_ended()
        self._ended = True
        return self._frame([])

    @property
    def metrics(self) -> AggregateMetrics:
        """Metrics so far."""
        return replace(self._run.metrics(), seconds=self._seconds, events=self._events)

    @property
    def floats(self) -> list[bool]:
        """Whether the values of each aggregate are floats, as far as the batches tell."""
        return self._floats

    def snapshot(self) -> dict[str, np.ndarray]:
        """The whole state as plain arrays, with a digest by which :meth:`restore` detects damage."""
        self._refuse_if_ended()
        arrays = {f"{_RUN}{name}": its for name, its in self._run.snapshot().items()}
        numbers = np.array(
            [self._events, self._last is not None, self._last or 0, *self._floats], np.int64
        )
        texts = [str(self.pattern), self.method, self._task.emit, self._task.scope]
        arrays |= {
            "numbers": numbers,
            "seconds": np.array([self._seconds]),
            "arguments": np.array([*texts, self._task.evaluator or ""]),
        }
        return {**arrays, "digest": digest_of(arrays)}

    @classmethod
    def restore(cls, snapshot: Mapping[str, np.ndarray]) -> Self:
        """An aggregator that resumes from a :meth:`snapshot`, in any process.

        Raises
        ------
        SnapshotError
            If it is not a snapshot, or is damaged.
        """
        if not isinstance(snapshot, Mapping) or not all(
            isinstance(name, str) and isinstance(array, np.ndarray)
            for name, array in snapshot.items()
        ):
            raise SnapshotError("this is no snapshot; give what Aggregator.snapshot() returned")
        arrays = verified(snapshot)
        try:
            text, method, emit, scope, evaluator = arrays["arguments"].tolist()
            events, pushed, last, *floats = arrays["numbers"].tolist()
            made = cls(reread(text), method, emit=emit, scope=scope, evaluator=evaluator or None)
        except (CepbenchError, KeyError, ValueError) as error:
            raise SnapshotError(f"the snapshot makes no aggregator: {error}") from error
        made._events, made._last, made._floats = (
            events,
            last if pushed else None,
            list(map(bool, floats)),
        )
        made._seconds = float(arrays["seconds"][0])
        made._run.restore(arrays_under(_RUN, arrays))
        return made

    def _frame(self, rows: list[Row], *, at: bool = False) -> pd.DataFrame:
        return frame_of(
            self.pattern, rows, self._floats, is_datetime=self.pattern.window.is_datetime, at=at
        )

    def _refuse_if_ended(self) -> None:
        if self._ended:
            raise EvaluationError("this aggregator was flushed; make a new one for another stream")


def check_no_trigger(scope: str) -> None:
    """Check that a value at a time has a meaning.

    Raises
    ------
    EvaluationError
        In scope ``trigger``.
    """
    if scope == "trigger":
        raise EvaluationError(
            "a value at a time has no event that completes matches; use scope='window' or 'stream'"
        )


def ticks_of(time: Any, pattern: Pattern) -> int:
    """A time in ticks of the stream: an integer, or nanoseconds since 1970.

    Raises
    ------
    EvaluationError
        If it is not of the kind of the window.
    """
    if not pattern.window.is_datetime:
        is_whole = isinstance(time, int | np.integer) and not isinstance(time, bool)
        if is_whole and -(2**62) <= time <= 2**62:
            return int(time)
    elif not isinstance(time, int | float | str | np.integer | np.floating):
        try:
            moment = pd.Timestamp(time)
            if not pd.isna(moment):
                return int(moment.tz_localize(None).as_unit("ns").value)
        except (TypeError, ValueError, OverflowError):
            pass
    due = "a datetime" if pattern.window.is_datetime else "an integer"
    raise EvaluationError(
        f"the time of a value is {due}, as the window WITHIN {pattern.window} is, not {shown(time)}"
    )
