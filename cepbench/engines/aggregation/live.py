"""Aggregation of a stream that arrives in batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import pandas as pd

from cepbench.arguments import shown
from cepbench.engines.aggregation.arrival import ArrivalAggregation
from cepbench.engines.aggregation.e_cube import E_CUBE
from cepbench.engines.aggregation.opening import opened, task_of
from cepbench.engines.aggregation.protocol import AggregateMetrics, Key, Row
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.slack import LateEvents
from cepbench.engines.aggregation.tables import check_values, floats_of, frame_of
from cepbench.engines.aggregation.workload_run import naming, run_of
from cepbench.engines.aggregation.workload_tables import QueryRows, check_columns, frame_of_queries
from cepbench.engines.detection.live import Live
from cepbench.engines.detection.pushes import Progress
from cepbench.errors import EvaluationError, PatternError
from cepbench.patterns.durations import slack_of
from cepbench.patterns.model import Pattern, Window
from cepbench.planning.plans.workload import WorkloadPlan
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
        ``a-seq``, ``greta`` and ``two-step`` that runs the pattern, or ``two-step`` with an evaluator.
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
    method : str

    Raises
    ------
    PatternError, EvaluationError
        If an argument is invalid.
    UnsupportedPatternError
        If the method, or the evaluator, cannot run the pattern.
    """

    KIND = "aggregator"

    CALLED = "aggregator"

    SAVED = ("_last", "_floats", "_late", "_run")

    _queries: Pattern | Workload

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
        assert not isinstance(pattern, Workload)
        if sharing is not None:
            raise EvaluationError(
                "a single pattern shares nothing; leave out sharing, or give a cep.Workload"
            )
        if isinstance(method, str) and method.lower() == E_CUBE:
            raise EvaluationError(
                f"the method {E_CUBE} is for workloads, whose queries reuse each other's matches; use "
                "two-step, or give a cep.Workload"
            )
        self._task = task_of(pattern, emit, scope, evaluator)
        chosen, self._run = opened(self._task, method)
        self.pattern = self._queries = self._task.pattern
        self.method = chosen.name
        self._begin([self.pattern], slack)

    def _begin(self, patterns: Sequence[Pattern], slack: float | str | Window) -> None:
        """The state before the first event, for patterns with windows of the same kind."""
        self.window = patterns[0].window
        self._start()
        # User-defined methods may compare integers exactly.
        methods = [AGGREGATORS[name] for name in self._methods() if name in AGGREGATORS]
        self._read(patterns, exact=not all(method.is_builtin for method in methods))
        self._late = LateEvents(slack_of(slack, self.window), self._progress.kinds.attributes)
        #: What :meth:`prepare` made of the next batch: whether values are floats, and of its events and
        #: those held back the ones to process, and to hold back.
        self._next: tuple[list[bool], EventStream, EventStream] | None = None
        #: The time of the last event that was processed.
        self._last: int | None = None
        #: Whether the values of each aggregate are floats, as far as the batches tell.
        self._floats = [False for pattern in patterns for _ in pattern.aggregates]

    def _methods(self) -> Iterable[str]:
        return [self.method]

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
            ``position``, ``time``, the keys of GROUP BY, and a column for each aggregate.

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
            self._prepare(events)
        self._next = self._floats_with(batch), events, held

    def _prepare(self, events: EventStream) -> None:
        """Check that a run under ORDER BY arrival takes the next events; an error changes nothing."""
        if isinstance(self._run, ArrivalAggregation):
            self._run.prepare(events)

    def _process(self, batch: EventStream, progress: Progress, *, shows: bool) -> Any:
        assert self._next is not None
        self._floats, events, held = self._next
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

    def _processed(self, events: EventStream) -> Rows:
        if not len(events):
            return self._no_rows()
        rows = self._in_columns(self._run.push(events))
        self._last = int(events.timestamps[-1])
        return rows

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
        return self._frame(self.rows_at(ticks), at=True)

    def rows_at(self, ticks: int) -> Rows:
        """As :meth:`value`, but return the rows as they are."""
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
            return [row.key for row in self._run.value(self._last)]

    @property
    def metrics(self) -> AggregateMetrics:
        """Metrics so far."""
        with self._state.changing("reading metrics"):
            return replace(self._run.metrics(), seconds=self._seconds, events=self._progress.events)

    @property
    def floats(self) -> list[bool]:
        """Whether the values of each aggregate are floats, as far as the batches tell."""
        return self._floats

    def _header(self) -> dict[str, Any]:
        return {"arguments": self._arguments()}

    def _arguments(self) -> dict[str, Any]:
        """What :meth:`_of_header` makes an aggregator with; JSON-serializable."""
        task = self._task
        return {
            **queries_to_json(self._queries),
            "method": self.method,
            "emit": task.emit,
            "scope": task.scope,
            "evaluator": task.evaluator,
        }

    @classmethod
    def _of_header(cls, header: Mapping[str, Any]) -> Self:
        arguments = dict(header["arguments"])
        queries = queries_from_json(arguments)
        del arguments["pattern"], arguments["hierarchy"]
        return cls(queries, **arguments)

    def _check_fit(self, batch: EventStream) -> None:
        check_fit(self.pattern, batch)
        check_values(self.pattern, batch)

    def _floats_with(self, batch: EventStream) -> list[bool]:
        """Whether the values of each aggregate are floats from a batch on."""
        return [a or b for a, b in zip(self._floats, floats_of(self.pattern, batch), strict=True)]

    def _no_rows(self) -> Rows:
        return Rows.of([], self._floats)

    def _in_columns(self, rows: Any) -> Rows:
        return Rows.of(rows, self._floats)

    def _shown(self, rows: Any) -> pd.DataFrame:
        return self._frame(rows)

    def _frame(self, rows: Rows, *, at: bool = False) -> pd.DataFrame:
        return frame_of(self.pattern, rows, is_datetime=self.pattern.window.is_datetime, at=at)


class WorkloadAggregator(Aggregator):
    """Computes the values of all queries of a workload; see :class:`Aggregator`.

    The tables have a first column ``query``, and rows in the order of positions, then of the queries.
    """

    KIND = "aggregator of a workload"

    def __init__(
        self,
        pattern: Workload,
        method: str | None = None,
        *,
        sharing: WorkloadPlan | str | None = None,
        emit: str = "trigger",
        scope: str = "window",
        evaluator: str | None = None,
        slack: float | str | Window = 0,
    ) -> None:
        self.workload = self._queries = pattern
        self.sharing = sharing
        tasks = {}
        for name, query in pattern.patterns.items():
            with naming(name):
                tasks[name] = task_of(query, emit, scope, evaluator)
        check_columns(pattern.patterns)
        windows = [query.window for query in pattern.patterns.values()]
        if len({window.is_datetime for window in windows}) > 1:
            raise PatternError(
                "the windows of a workload are all durations or all numbers of units, because they are "
                "over the same stream"
            )
        self._task = next(iter(tasks.values()))
        self._asked = method
        self._run: Any = run_of(pattern, tasks, method, sharing)
        self.method = ", ".join(dict.fromkeys(self._run.methods.values()))
        self._begin([*pattern.patterns.values()], slack)

    def _prepare(self, events: EventStream) -> None:
        self._run.prepare(events)

    def _methods(self) -> Iterable[str]:
        methods: Iterable[str] = self._run.methods.values()
        return methods

    @property
    def floats_by_query(self) -> list[list[bool]]:
        """Whether the values of each aggregate of each query are floats."""
        rest = iter(self._floats)
        return [[next(rest) for _ in q.aggregates] for q in self.workload.patterns.values()]

    def _arguments(self) -> dict[str, Any]:
        its = self.sharing
        return super()._arguments() | {
            "method": self._asked,
            "sharing": its.to_dict() if isinstance(its, WorkloadPlan) else its,
        }

    @classmethod
    def _of_header(cls, header: Mapping[str, Any]) -> Self:
        arguments = dict(header["arguments"])
        if isinstance(arguments["sharing"], dict):
            arguments["sharing"] = WorkloadPlan.from_dict(arguments["sharing"])
        return super()._of_header({"arguments": arguments})

    def _check_fit(self, batch: EventStream) -> None:
        for name, query in self.workload.patterns.items():
            with naming(name):
                check_fit(query, batch)
                check_values(query, batch)

    def _floats_with(self, batch: EventStream) -> list[bool]:
        queries = self.workload.patterns.values()
        floats = [its for query in queries for its in floats_of(query, batch)]
        return [a or b for a, b in zip(self._floats, floats, strict=True)]

    def _no_rows(self) -> Any:
        return self._in_columns({name: [] for name in self.workload.patterns})

    def _in_columns(self, rows: Any) -> Any:
        queries = zip(self.workload.patterns, self.floats_by_query, strict=True)
        return {name: Rows.of(rows[name], floats) for name, floats in queries}

    def _frame(self, rows: Any, *, at: bool = False) -> pd.DataFrame:
        return frame_of_queries(self.rows_by_query(rows), at=at)

    def rows_by_query(self, rows: Mapping[str, Sequence[Row]]) -> dict[str, QueryRows]:
        """The rows of each query, in the order of positions."""
        return {
            name: QueryRows(self.workload.patterns[name], its, its.positions)
            for name, its in self._in_columns(rows).items()
        }


Aggregator.of_workloads = WorkloadAggregator


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


def ticks_of(time: Any, window: Window) -> int:
    """A time in ticks of the stream: an integer, or nanoseconds since 1970.

    Raises
    ------
    EvaluationError
        If it is not of the kind of the window.
    """
    if not window.is_datetime:
        is_whole = isinstance(time, int | np.integer) and not isinstance(time, bool)
        if is_whole and -(2**62) <= time <= 2**62:
            return int(time)
    elif not isinstance(time, int | float | str | np.integer | np.floating):
        try:
            if not pd.isna(time):
                return nanoseconds(time)
        except (TypeError, ValueError, OverflowError):
            pass
    due = "a datetime" if window.is_datetime else "an integer"
    raise EvaluationError(
        f"the time of a value is {due}, as the window WITHIN {window} is, not {shown(time)}"
    )
