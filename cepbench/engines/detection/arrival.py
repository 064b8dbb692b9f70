"""Runs of patterns with ORDER BY arrival: runs in the order of time, on stamped events.

See :mod:`cepbench.streams.arrival`. Evaluators, also user-defined ones, thus need not know of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import astuple, replace
from functools import partial
from typing import Any

import numpy as np

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.automata.model import Automaton
from cepbench.engines.plan_runs.node_table import NodeCounts, PlanNodeTable
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.protocol import Evaluator, Given, Run, Task
from cepbench.engines.runs.result import Metrics, NodeTable
from cepbench.kernels.counts import CREATED, LIFETIME, lifetime_shift
from cepbench.planning.plans.model import AnyPlan, Plan, UnionPlan
from cepbench.state import Stateful
from cepbench.streams.arrival import ArrivalClock
from cepbench.streams.event_stream import EventStream


class StampedRun(Stateful, ABC):
    """A run by a run in the order of time, on events that a clock stamps."""

    SAVED = ("_stamped_by",)

    _clock: ArrivalClock

    #: The next batch, with stamps, and the clock after it.
    _prepared: tuple[EventStream, EventStream, ArrivalClock] | None = None

    @abstractmethod
    def _begin(self, batch: EventStream) -> None:
        """Choose the clock by the first events."""

    @abstractmethod
    def _resume(self, clock: ArrivalClock) -> None:
        """Go on with a clock."""

    def prepare(self, batch: EventStream) -> None:
        """Stamp the events of the next push, or raise a StreamError, which changes nothing."""
        if self._clock.last is None:
            self._begin(batch)
        self._prepared = batch, *self._clock.stamped(batch)

    def _stamped(self, batch: EventStream) -> tuple[EventStream, ArrivalClock]:
        """The events of a push with stamps, and the clock after them."""
        if self._prepared is None or self._prepared[0] is not batch:
            self.prepare(batch)
        assert self._prepared is not None
        _, stamped, after = self._prepared
        self._prepared = None
        return stamped, after

    @property
    def _stamped_by(self) -> tuple[Any, ...]:
        return astuple(self._clock)

    @_stamped_by.setter
    def _stamped_by(self, clock: tuple[Any, ...]) -> None:
        self._resume(ArrivalClock(*clock))


class ArrivalRun(StampedRun):
    """A run of a task by one in the order of time, to which all other methods belong."""

    SAVED = ("run",)

    def __init__(self, task: Task, opening: Opening) -> None:
        self.task = task
        self._opening = opening
        self._clock = ArrivalClock()
        self.run: Any = None
        #: The clock with which the other run was opened.
        self.opened_by = self._clock

    def __getattr__(self, name: str) -> Any:
        if name == "run" or name.startswith("__"):  # not yet there, when it is copied
            raise AttributeError(name)
        return getattr(self.run, name)

    @property
    def chosen(self) -> ArrivalClock | None:
        """The clock, before any event; None before it is chosen."""
        return self.opened_by if self._opening.has_begun else None

    def start(self, clock: ArrivalClock) -> None:
        """Choose the clock of all runs that share state, before any event; once."""
        self._opening.start(clock)

    def _begin(self, batch: EventStream) -> None:
        self._opening.begin(batch)
        self._clock = self.opened_by

    def push(self, batch: EventStream) -> Given:
        """See :meth:`cepbench.engines.runs.protocol.Run.push`."""
        stamped, after = self._stamped(batch)
        given = self.run.push(stamped)
        self._clock = after
        return self._shown(given)

    def finish(self) -> Given:
        """See :meth:`cepbench.engines.runs.protocol.Run.finish`."""
        self._opening.begin(None)
        return self._shown(self.run.finish())

    def _shown(self, given: Given) -> Given:
        """Matches in graphs have the timestamps of their last events."""
        if not (isinstance(given, Found) and given.graphs):
            return given
        times = self._clock.times
        graphs = [(number, replace(its, times=times(its.times))) for number, its in given.graphs]
        return replace(given, graphs=tuple(graphs))

    def metrics(self) -> Metrics:
        """See :meth:`cepbench.engines.runs.protocol.Run.metrics`."""
        found: Any = self.run.metrics()
        if not isinstance(found, Metrics):  # of a user-defined evaluator
            return found
        rows = found.partial_matches_created
        clock = self._clock
        units = 0 if clock.last is None else (clock.last - clock.origin) // clock.unit
        if not (units and found.mean_partial_matches):  # engines of stacks store none
            return replace(found, mean_partial_matches=0.0)
        # Of the sum of times in stamps, as _in_time.
        stored = found.mean_partial_matches * (units * clock.slots + clock.rank)
        mean = (stored - rows * (clock.slots // 2 - 1)) / (units * clock.slots)
        return replace(found, mean_partial_matches=mean)

    def node_table(self) -> NodeTable:
        """See :class:`cepbench.engines.runs.protocol.Run`."""
        found: NodeTable = self.run.node_table()
        if not isinstance(found, PlanNodeTable):
            return found
        clock = self.opened_by
        return replace(
            found,
            branches=[self._in_time(branch) for branch in found.branches],
            span=found.span // clock.slots * clock.unit,
        )

    def _in_time(self, counted: NodeCounts) -> NodeCounts:
        """The counts with times for stamps, those for which rows are stored to half a unit a row.

        In stamps a row is stored half a unit longer, and by the difference of its events' ranks, which
        is less.
        """
        clock, counts = self.opened_by, counted.counts.copy()
        longer = counts[:, CREATED] * (clock.slots // 2 - 1)
        window = self.task.pattern.window.length
        times = (counted.lifetimes - longer) * float(clock.unit) / clock.slots
        counts[:, LIFETIME] = np.nan_to_num(times / (1 << lifetime_shift(window)), nan=-1.0)
        return replace(counted, counts=counts, window=window)

    def adopt(self, old: ArrivalRun) -> bool:
        """See :class:`cepbench.engines.runs.protocol.Run`."""
        self._resume(old._clock)
        return bool(self.run.adopt(old.run))

    def _resume(self, clock: ArrivalClock) -> None:
        if clock.last is not None:
            self._opening.start(clock)
            if not clock.is_like(self.opened_by):  # it has had other events
                self._opening.open_again(clock)
        self._clock = clock


class Opening:
    """Opens tasks in the order of arrival, with one clock, by the functions that ``opener()`` makes."""

    def __init__(self, opener: Callable[[], Callable[[Task], Run]]) -> None:
        self._opener = opener
        self._open = opener()
        self._runs: list[ArrivalRun] = []
        self.has_begun = False

    def open(self, task: Task) -> ArrivalRun:
        """A run of a task in the order of arrival."""
        run = ArrivalRun(task, self)
        self._runs.append(run)
        # Before the first event, as what is wrong with a task is to be known.
        self._open_run(run, task.clock or ArrivalClock.live([task.pattern]))
        return run

    def _open_run(self, run: ArrivalRun, clock: ArrivalClock) -> None:
        run.run, run.opened_by = self._open(timed(run.task, clock)), clock

    def begin(self, batch: EventStream | None) -> None:
        """Choose the clock by the first events, before any run has them; or by the lack of any."""
        if self.has_begun:
            return
        patterns = [run.task.pattern for run in self._runs]
        self.start(self._runs[0].task.clock or ArrivalClock.live(patterns, batch))

    def start(self, clock: ArrivalClock) -> None:
        """Let a clock be that of all runs, none of which has had an event; once."""
        if self.has_begun:
            return
        if not all(clock.is_like(run.opened_by) for run in self._runs):
            self.open_again(clock)
        for run in self._runs:
            run.opened_by = clock.restarted()
        self.has_begun = True  # last, so that after an interrupt all are opened again

    def open_again(self, clock: ArrivalClock) -> None:
        """Open all runs anew, without any event, by another clock."""
        self._open = self._opener()
        for run in self._runs:
            self._open_run(run, clock.restarted())


def by_arrival(task: Task) -> Run:
    """Open a task, in the order of arrival if its evaluator does not read that by itself."""
    evaluator = task.evaluator
    if task.pattern.order == "time" or evaluator.arrival:
        return evaluator.open(task)
    return Opening(partial(getattr, evaluator, "open")).open(task)


def sharing(evaluator: Evaluator, order: str) -> Evaluator:
    """The evaluator whose runs share state, for tasks of one order; see its ``together``."""
    assert evaluator.together is not None
    if order == "time":
        return replace(evaluator, open=evaluator.together())
    return replace(evaluator, open=Opening(evaluator.together).open, arrival=True)


def with_clock(tasks: Sequence[Task], stream: EventStream) -> list[Task]:
    """Tasks of one order, to be run on a whole stream."""
    patterns = [task.pattern for task in tasks]
    if patterns[0].order == "time":
        return [*tasks]
    clock = ArrivalClock.of(stream, patterns)
    return [replace(task, clock=clock) for task in tasks]


def timed(task: Task, clock: ArrivalClock) -> Task:
    """The task in the order of time, for events that a clock stamps."""
    return replace(task, pattern=clock.pattern(task.pattern), plan=timed_plan(task.plan, clock))


def timed_plan(plan: AnyPlan | None, clock: ArrivalClock) -> AnyPlan | None:
    """The plan of a task that :func:`timed` makes: automata are compiled with their pattern."""
    if isinstance(plan, UnionPlan):
        parts = [timed_plan(part, clock) for part in plan.parts]
        return UnionPlan(part for part in parts if isinstance(part, Plan))
    if not isinstance(plan, Automaton):
        return plan
    return automaton(clock.pattern(plan.pattern), push_window=plan.push_window, peek=plan.peek)
