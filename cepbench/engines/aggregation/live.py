"""Aggregation of a stream that arrives in batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd

from cepbench.arguments import is_real, shown
from cepbench.engines.aggregation.opening import run_of, tasks_of
from cepbench.engines.aggregation.protocol import AggregateMetrics, Key, Row
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.slack import LateEvents
from cepbench.engines.aggregation.tables import QueryRows, check_values, floats_of, frame_of
from cepbench.engines.detection.live import Live
from cepbench.engines.detection.pushes import Progress
from cepbench.errors import EvaluationError, errors_naming
from cepbench.patterns.durations import slack_of
from cepbench.patterns.model import Pattern, Window
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload, queries_from_json, queries_to_json
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit
from cepbench.streams.moments import nanoseconds


class Aggregator(Live):
    """Computes the values of AGG over a stream that arrives in batches.

    The values do not depend on how the stream is divided.

    Parameters
    ----------
    pattern : Pattern, str or Workload
        With AGG, or its text; or several queries with AGG.
    method : str, optional
        A name in ``cep.AGGREGATORS``, in any case. By default the first of ``window-product``,
        ``order-statistics``, ``a-seq``, ``greta`` and ``two-step`` that runs the pattern, or ``two-step``
        with an evaluator.
        Of a workload also ``e-cube``, which reuses matches as ``sharing`` says.
    sharing : WorkloadPlan or str, optional
        Which counters the queries of a workload have in common (PreTree and Chop-Connect, [qi2014]_,
        section 4), for the method ``a-seq``; or, by a plan with ``sources``, which queries are computed
        from the matches of which others, for ``e-cube``. By default each query is aggregated by itself.
        :func:`cepbench.aggregate` takes the name of a planner, too, by default CHASE for ``e-cube``.
    emit : {"trigger", "change"}
        After which events a row is reported: those of the last positive item that satisfy the
        conditions that mention it alone, for their own group; or all after which a group's value
        differs from that after the event before.
    scope : {"window", "trigger", "stream"}
        Which matches count: those whose first event has not expired; those that this event
        completes; or all so far.
    evaluator : str, optional
        How ``two-step`` and ``e-cube`` find matches, a name in ``cep.EVALUATORS``; by default
        ``stack-nfa``.
    slack : float, str or Window
        By how much an event may be late: seconds (or ticks), or a text such as ``"5 seconds"``. An
        event is processed when another one is later by the slack, or by :meth:`flush`; values and
        positions are those of the events in order. Events of a batch are in order.

    Attributes
    ----------
    pattern : Pattern or Workload
    method : str
        Of a workload all of its queries', in the order of their first ones.

    Raises
    ------
    PatternError, EvaluationError
        If an argument is invalid.
    UnsupportedPatternError
        If the method, or the evaluator, cannot run the pattern.
    """

    KIND = CALLED = "aggregator"

    SAVED = ("_last", "floats", "_late", "_run")

    # By no more than the slack events may be late.
    _is_ordered = False

    def __init__(
        self,
        pattern: Pattern | Workload | str,
        method: str | None = None,
        *,
        sharing: WorkloadPlan | str | None = None,
        emit: str = "trigger",
        scope: str = "window",
        evaluator: str | None = None,
        slack: float | str | Window = 0,
    ) -> None:
        self.pattern = queries_from(pattern, aggregates=True)
        self.sharing = sharing
        queries = self.pattern.queries
        tasks = tasks_of(self.pattern, emit, scope, evaluator)
        self._method, self._task = method, next(iter(tasks.values()))
        self._run: Any = run_of(self.pattern, tasks, method, sharing)
        methods = dict.fromkeys(self._run.methods[query] for query in queries)
        self.method = ", ".join(methods)
        self.window = next(iter(queries.values())).window
        self._start()
        # User-defined methods may compare integers exactly.
        known = [AGGREGATORS[name] for name in methods if name in AGGREGATORS]
        self._read([*queries.values()], exact=not all(its.is_builtin for its in known))
        self._late = LateEvents(slack_of(slack, self.window), self._progress.kinds.attributes)
        #: What :meth:`prepare` made of the next batch: whether values are floats, and of its events and
        #: those held back the ones to process, and to hold back.
        self._next: tuple[dict[str, list[bool]], EventStream, EventStream] | None = None
        #: The time of the last event that was processed.
        self._last: int | None = None
        #: By query, whether the values of each aggregate are floats, as far as the batches tell.
        self.floats = {query: [False] * len(its.aggregates) for query, its in queries.items()}

    def push(self, batch: EventStream) -> pd.DataFrame:
        """Process the next events and return the rows to report.

        Parameters
        ----------
        batch : EventStream
            The next events; timestamps must not decrease, between batches by no more than the
            slack.

        Returns
        -------
        DataFrame
            ``position``, ``time``, the keys of GROUP BY, and a column for each aggregate. Of a workload
            first ``query``, in the order of positions, then of the queries.

        Raises
        ------
        StreamError
            If the batch does not fit the pattern, is later than the slack, or has texts where there
            were numbers. Nothing has changed; push the corrected batch.
        FailedStateError
            If an earlier push failed, or was interrupted, in the middle; go on from the last
            :meth:`snapshot`.
        """
        shown: pd.DataFrame = self._pushed(batch, shows=True)
        return shown

    def prepare(self, batch: EventStream) -> None:
        """Sort the events of a batch into those held back; an error changes nothing."""
        events = held = batch
        if len(batch):
            events, held = self._late.sorted(batch, self.position)
        if len(events):
            self._run.prepare(events)
        floats = {
            query: [a or b for a, b in zip(before, floats_of(its, batch), strict=True)]
            for (query, before), its in zip(self.floats.items(), self._patterns, strict=True)
        }
        self._next = floats, events, held

    def _process(self, batch: EventStream, progress: Progress, *, shows: bool) -> Any:
        assert self._next is not None
        self.floats, events, held = self._next
        rows = self._processed(events)
        if len(batch):
            self._late.hold(batch, held)
        self._progress, self._next = progress, None
        self._note_time()
        return self._given(rows, shows=shows)

    def _end(self, *, shows: bool) -> Any:
        rows = self._processed(self._late.held)
        self._note_time()
        return self._given(rows, shows=shows)

    def _processed(self, events: EventStream) -> Any:
        if not len(events):
            return self._in_columns(dict.fromkeys(self.floats, ()))
        rows = self._in_columns(self._run.push(events))
        self._last = int(events.timestamps[-1])
        return rows

    def _in_columns(self, found: Mapping[str, Sequence[Row]]) -> Any:
        """The rows of each query; of a pattern its own."""
        rows = {query: Rows.of(found[query], floats) for query, floats in self.floats.items()}
        return rows if self.pattern.by_query else rows[""]

    def by_query(self, found: Any) -> dict[str, QueryRows]:
        """What :meth:`take` returned, by query also of a pattern."""
        rows = found if self.pattern.by_query else {"": found}
        return {
            query: QueryRows(its, rows[query], rows[query].positions)
            for query, its in self.pattern.queries.items()
        }

    def value(self, time: Any = None) -> pd.DataFrame:
        """The value of each group seen so far, at a time; nothing changes by asking.

        Events that the slack holds back do not count.

        Parameters
        ----------
        time : int or datetime, optional
            Not before the last event processed, whose time is the default.

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
        ticks = self._last if time is None else ticks_of(time, self.window)
        assert ticks is not None
        return frame_of(self.by_query(self.rows_at(ticks)), at=True)

    def rows_at(self, ticks: int) -> Any:
        """As :meth:`value`, but return the rows as they are, of a workload by query."""
        self._state.check()
        check_no_trigger(self._task.scope)
        if self._last is not None and ticks < self._last:
            raise EvaluationError(
                f"a value at {ticks} is asked for after the event at {self._last}; ask before later "
                "events are pushed, or by cep.aggregate(…, at=[…])"
            )
        with self._state.changing("asking for a value", reads=True):
            return self._in_columns(self._run.value(ticks))

    def groups(self) -> list[Key]:
        """The groups of a pattern seen so far, in this order."""
        if self._last is None:
            return []
        with self._state.changing("asking for a value", reads=True):
            return [row.key for row in self._run.value(self._last)[""]]

    @property
    def metrics(self) -> AggregateMetrics:
        """Metrics so far."""
        with self._state.changing("reading metrics", reads=True):
            return replace(self._run.metrics(), seconds=self._seconds, events=self._progress.events)

    def _header(self) -> dict[str, Any]:
        its = self.sharing
        arguments = {
            **queries_to_json(self.pattern),
            "method": self._method,
            "sharing": its.to_dict() if isinstance(its, WorkloadPlan) else its,
            "emit": self._task.emit,
            "scope": self._task.scope,
            "evaluator": self._task.evaluator,
        }
        return {"arguments": arguments}

    @classmethod
    def _of_header(cls, header: Mapping[str, Any]) -> Self:
        arguments = dict(header["arguments"])
        if isinstance(arguments["sharing"], dict):
            arguments["sharing"] = WorkloadPlan.from_dict(arguments["sharing"])
        arguments["pattern"] = queries_from_json(arguments)
        del arguments["hierarchy"]
        return cls(**arguments)

    def _check_fit(self, batch: EventStream) -> None:
        for query, pattern in self.pattern.queries.items():
            with errors_naming(query):
                check_fit(pattern, batch)
                check_values(pattern, batch)

    def _shown(self, found: Any) -> pd.DataFrame:
        return frame_of(self.by_query(found), at=False)


def check_no_trigger(scope: str) -> None:
    """Check that a value at a time has a meaning.

    An EvaluationError in scope ``trigger``.
    """
    if scope == "trigger":
        raise EvaluationError(
            "a value at a time has no event that completes matches; use scope='window' or 'stream'"
        )


def ticks_of(time: Any, window: Window) -> int:
    """A time in ticks of the stream: an integer, or nanoseconds since 1970.

    An EvaluationError if it is not of the kind of the window.
    """
    if not window.is_datetime:
        is_whole = is_real(time) and isinstance(time, int | np.integer)
        if is_whole and -(2**62) <= time <= 2**62:
            return int(time)
    elif not isinstance(time, int | float | str | np.integer | np.floating):
        try:
            return nanoseconds(time)
        except pd.errors.OutOfBoundsDatetime as error:
            raise EvaluationError(
                f"the time of a value, {time}, does not fit nanoseconds (years 1678 to 2262)"
            ) from error
        except (TypeError, ValueError, OverflowError):
            pass
    due = "a datetime" if window.is_datetime else "an integer"
    raise EvaluationError(
        f"the time of a value is {due}, as the window WITHIN {window} is, not {shown(time)}"
    )
