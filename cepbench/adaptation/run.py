"""A run that changes its plan between rounds [mei2009]_, section 5.3.

A switch discards the old run. If the evaluator's runs can, the new one takes over its state. Otherwise
it is given the events of the last windows again, from which it rebuilds its partial matches, the ones that
wait for a negated event included. When an engine reports a match does not depend on the plan, so what
the new run reports for these events was reported before.

Under ``STRATEGY consuming`` the new run must not bind the events of matches reported before, but such
an event still negates. So the pattern is run with the additional condition on each positive variable
that its event is not taken; the attribute is added to the batches.

Differs from [mei2009]_: a switch rebuilds the state at once, not in the next assembly round, and
events are kept once, not in the leaf buffers of each engine, so that any engine can switch.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from math import nan
from typing import Any

import numpy as np

from cepbench.adaptation.averages import EVENTS, Averaged, Averages
from cepbench.adaptation.policies import AdaptationPolicy, Situation, relative_gain
from cepbench.costs.branches import branch_problems
from cepbench.costs.costed import CostedProblem
from cepbench.costs.model import CostModel
from cepbench.errors import CepbenchError, SnapshotError
from cepbench.evaluators.detector import Detector
from cepbench.evaluators.matches import Found, SetColumn
from cepbench.evaluators.protocol import Evaluator, Task
from cepbench.evaluators.result import Metrics
from cepbench.evaluators.snapshot import arrays_under
from cepbench.patterns.model import (
    Aggregate,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Kind,
    Pattern,
    Variable,
)
from cepbench.planners.generate import plan_branches
from cepbench.planners.registry import PlanGenerator
from cepbench.plans.model import AnyPlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents

#: Attribute that is 1 for the events of matches reported before, under the consuming strategy.
_TAKEN = "cepbench_taken"

#: For how many windows events are kept: a match may wait for one window after its last event, so its
#: first one is up to two windows old, and a negated item may look back one window from the last one.
_WINDOWS_KEPT = 3

_RUN, _RECENT = "inner/", "kept/"


@dataclass(frozen=True)
class Settings:
    """How to adapt.

    Attributes
    ----------
    generator : PlanGenerator
    cost : CostModel
    policy : AdaptationPolicy
    threshold, gain : float
    batch_size : int
        Events in a round.
    seed : int
    planned : bool
        Whether to begin with a plan for the first events instead of the given one.
    """

    generator: PlanGenerator
    cost: CostModel
    policy: AdaptationPolicy
    threshold: float
    gain: float
    batch_size: int
    seed: int
    planned: bool

    def plan(self, pattern: Pattern, problems: Sequence[CostedProblem]) -> AnyPlan:
        """The generator's plan for the problems of a pattern's branches."""
        return plan_branches(pattern, problems, self.generator, seed=self.seed)


@dataclass(frozen=True)
class Switch:
    """A change of the plan.

    Attributes
    ----------
    position : int
        Position of the first event that the new plan processes as a new one.
    time : int
        Timestamp of the last event before it.
    old, new : str
        The plans as texts.
    predicted_gain : float
        How much more the old plan would cost, relative to the new one; NaN if it was not predicted.
    reason : str
    seconds : float
        For planning and rebuilding.
    """

    position: int
    time: int
    old: str
    new: str
    predicted_gain: float
    reason: str
    seconds: float


class AdaptiveRun:
    """A run of one task by one evaluator and several plans in turn.

    Parameters
    ----------
    task : Task
        With the first plan.
    evaluator : Evaluator
    settings : Settings

    Attributes
    ----------
    plan : OrderPlan, TreePlan or UnionPlan
        The running plan.
    switches : list of Switch
    """

    def __init__(self, task: Task, evaluator: Evaluator, settings: Settings) -> None:
        assert task.plan is not None
        pattern = task.pattern
        self._task = task
        self._evaluator = evaluator
        self._settings = settings
        self._consumes = pattern.strategy.name == "consuming"
        #: Matches are asked for where their events are taken.
        self._inner_task = (
            replace(task, patterns=(_free(pattern),), output="matches") if self._consumes else task
        )
        bare = {Kind.PLAIN, Kind.KLEENE}.issuperset(v.kind for v in pattern.variables)
        windows = 1 if bare and not self._consumes else _WINDOWS_KEPT
        self._span = windows * pattern.window.length
        self._recent = RecentEvents(pattern.attributes, self._span, task.position, EVENTS)
        self._averages = Averages(pattern, settings.seed, settings.batch_size)
        self._made_for: Averaged | None = None
        self._position = task.position
        self._time: int | None = None
        self._round = 0
        self._in_round = 0
        #: Positions of the events of matches reported before.
        self._taken = np.empty(0, np.int64)
        self._past = Metrics(partial_matches_created=0, comparisons=0)
        self.plan: AnyPlan = task.plan
        self.switches: list[Switch] = []
        self._inner = self._opened(task.plan, task.position)

    @property
    def averages(self) -> Averaged | None:
        """The averages of the last rounds; None before the first one ends."""
        return self._averages.current()

    def push(self, batch: EventStream) -> Found:
        """See :meth:`cepbench.evaluators.protocol.Run.push`."""
        size = self._settings.batch_size
        found = []
        begin = 0
        while begin < len(batch):
            events = batch[begin : begin + size - self._in_round]
            begin += len(events)
            self._in_round += len(events)
            self._recent.push(events)
            if self._time is None and self._settings.planned:
                self._begin(events)
            if self._in_round == size:
                self._adapt(events if len(events) == size else self._recent.stream[-size:])
                self._in_round = 0
                self._round += 1
            given = self._inner.take(self._marked(events, self._position))
            found.append(given)
            self._note(given)
            self._time = int(events.timestamps[-1])
            self._position += len(events)
        return self._united(found)

    def finish(self) -> Found:
        """See :meth:`cepbench.evaluators.protocol.Run.finish`."""
        return self._united([self._inner.finish()])

    def switch(self, plan: AnyPlan, reason: str) -> None:
        """Go on with another plan."""
        self._install(plan, reason, nan, time.perf_counter())

    def _begin(self, events: EventStream) -> None:
        """Plan for the first events."""
        self._made_for = self._averages.of(events)
        pattern, cost = self._task.pattern, self._settings.cost
        problems = branch_problems(pattern, self._made_for.statistics, cost=cost)
        self.plan = self._settings.plan(pattern, problems)
        self._inner = self._opened(self.plan, self._position)

    def _adapt(self, events: EventStream) -> None:
        """Sample a round's events, and change the plan if the policy and the costs say so."""
        settings, pattern = self._settings, self._task.pattern
        began = time.perf_counter()
        self._averages.add(events)
        current = self._averages.current()
        assert current is not None  # of these events at least
        averages = self._averages.of_all(events) if settings.policy.foresees else current
        situation = Situation(
            pattern,
            self.plan,
            averages,
            self._made_for,
            settings.cost,
            settings.threshold,
            settings.gain,
            self._round,
        )
        reason = settings.policy.reason(situation)
        if reason is None:
            return
        plan = settings.plan(pattern, situation.problems)
        self._made_for = averages
        if plan.text == self.plan.text:
            return
        assert plan.log_cost is not None  # the generator's front end notes it
        gain = relative_gain(situation.log_cost, plan.log_cost)
        if gain > settings.gain:
            self._install(plan, reason, gain, began)

    def _install(self, plan: AnyPlan, reason: str, gain: float, began: float) -> None:
        old, self.plan = self.plan, plan
        self._past = _added(self._past, self._inner.metrics())
        self._inner = self._rebuilt(plan)
        seconds = time.perf_counter() - began
        now = 0 if self._time is None else self._time
        self.switches.append(
            Switch(self._position, now, old.text, plan.text, gain, reason, seconds)
        )

    def _rebuilt(self, plan: AnyPlan) -> Detector:
        """A run that goes on with the buffers of the running one, or has seen the events kept."""
        if self._time is None:
            return self._opened(plan, self._position)
        if self._evaluator.adopts:
            inner = self._opened(plan, self._position)
            if inner.adopt(self._inner):
                return inner
        kept, first = self._recent.stream, self._recent.first
        # Without those that are about to be processed.
        kept = kept[: self._position - first]
        stale = int(np.searchsorted(kept.timestamps, self._time - self._span))
        inner = self._opened(plan, first + stale)
        inner.take(self._marked(kept[stale:], first + stale))
        return inner

    def _opened(self, plan: AnyPlan, position: int) -> Detector:
        task = replace(self._inner_task, plan=plan, position=position)
        return Detector.of_task(self._evaluator, task)

    def _marked(self, events: EventStream, first: int) -> EventStream:
        """The events, with the attribute of the consuming strategy if it is that."""
        if not self._consumes:
            return events
        taken = np.zeros(len(events), np.int64)
        within = (self._taken >= first) & (self._taken < first + len(events))
        taken[self._taken[within] - first] = 1
        return replace(events, attributes={**events.attributes, _TAKEN: taken}, positions=None)

    def _note(self, found: Found) -> None:
        """Note the events of new matches, if they cannot be in another one."""
        if self._consumes:
            columns = [c for part in found.matches if part is not None for c in part.columns]
            bound = [c.positions if isinstance(c, SetColumn) else c for c in columns]
            kept = self._taken[self._taken >= self._recent.first]
            self._taken = np.concatenate((kept, *bound)).astype(np.int64)

    def _united(self, found: Sequence[Found]) -> Found:
        number = sum(one.number for one in found)
        if self._task.output == "count":
            return Found(number, (None,) * len(self._task.pattern.branches()))
        return Found(number, self._inner.in_branches(found))

    def metrics(self) -> Metrics:
        """Metrics of all runs: sums, and maxima of peaks; means of a single run only."""
        own = self._inner.metrics()
        return _added(self._past, own) if self.switches else own

    def snapshot(self) -> dict[str, np.ndarray]:
        """See :meth:`cepbench.evaluators.protocol.Resumable.snapshot`."""
        known = {
            "position": self._position,
            "time": self._time,
            "round": self._round,
            "in_round": self._in_round,
            "averages": self._averages.packed(),
            "made_for": None
            if self._made_for is None
            else [self._made_for.numbers, self._made_for.most],
            "switches": [astuple(switch) for switch in self.switches],
            "past": {name: getattr(self._past, name) for name in (*_SUMMED, *_LARGEST)},
            "details": dict(self._past.details),
        }
        arrays: dict[str, np.ndarray] = {
            "known": np.frombuffer(json.dumps(known, default=float).encode(), np.uint8),
            "taken": self._taken.copy(),
        }
        for prefix, its in ((_RUN, self._inner.snapshot()), (_RECENT, self._recent.packed())):
            arrays |= {f"{prefix}{name}": array for name, array in its.items()}
        return arrays

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """See :meth:`cepbench.evaluators.protocol.Resumable.restore`."""
        try:
            known = json.loads(state["known"].tobytes())
            self._position, self._time = known["position"], known["time"]
            self._round, self._in_round = known["round"], known["in_round"]
            made_for = known["made_for"]
            self._made_for = None if made_for is None else self._averages.unpacked(*made_for)
            self.switches = [Switch(*fields) for fields in known["switches"]]
            self._past = Metrics(**known["past"], details=known["details"])
            self._taken = state["taken"]
            self._averages.restore(known["averages"])
        except (CepbenchError, KeyError, TypeError, ValueError) as error:
            raise SnapshotError(
                f"the snapshot is damaged: no usable adaptation: {error!r}"
            ) from error
        self._recent.restore(arrays_under(_RECENT, state))
        self._inner = Detector.restore(arrays_under(_RUN, state))
        assert self._inner.plan is not None
        self.plan = self._inner.plan


#: Metrics of several runs that add up, and those of which the largest counts.
_SUMMED = ("partial_matches_created", "comparisons")
_LARGEST = ("peak_partial_matches", "peak_buffered_events", "peak_bytes")


def _added(first: Metrics, second: Metrics) -> Metrics:
    """The metrics of two runs, one after the other."""
    # In this order NaN, which the first run begins with, is not the larger one.
    largest: dict[str, Any] = {
        name: max(getattr(second, name), getattr(first, name)) for name in _LARGEST
    }
    summed = {name: getattr(first, name) + getattr(second, name) for name in _SUMMED}
    names = dict.fromkeys([*first.details, *second.details])
    details = {name: first.details.get(name, 0) + second.details.get(name, 0) for name in names}
    return Metrics(**summed, **largest, details=details)


def _free(pattern: Pattern) -> Pattern:
    """The pattern with the condition on each positive variable that no event of it is taken."""
    clauses = tuple(map(_is_free, pattern.positive))
    return replace(pattern, conditions=pattern.conditions + clauses)


def _is_free(variable: Variable) -> Clause:
    attribute = Attribute(variable.name, _TAKEN)
    if variable.kind is not Kind.GROUP:
        return Clause((Comparison("=", attribute, Constant(0)),))
    # Tested on the finished group, which a condition on single events would change.
    return Clause(
        (
            Comparison("=", Aggregate("count", attribute), Constant(0)),
            Comparison("=", Aggregate("max", attribute), Constant(0)),
        )
    )
