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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cepbench.engines.adaptation.averages import EVENTS, Averaged, Averages
from cepbench.engines.adaptation.policies import PatternSituation
from cepbench.engines.adaptation.rounds import Rounds, Settings, span_kept
from cepbench.engines.detection.detector import Detector
from cepbench.engines.runs.matches import Found, SetColumn
from cepbench.engines.runs.protocol import Task
from cepbench.engines.runs.result import Metrics
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
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.model import CostModel
from cepbench.planning.planners.generate import plan_branches
from cepbench.planning.planners.registry import PlanGenerator
from cepbench.planning.plans.model import AnyPlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents

#: Attribute that is 1 for the events of matches reported before, under the consuming strategy.
_TAKEN = "cepbench_taken"


@dataclass(frozen=True, kw_only=True)
class PatternSettings(Settings):
    """How to adapt to one pattern.

    Attributes
    ----------
    generator : PlanGenerator
    cost : CostModel
    """

    generator: PlanGenerator
    cost: CostModel

    def plan(self, pattern: Pattern, problems: Sequence[CostedProblem]) -> AnyPlan:
        """The generator's plan for the problems of a pattern's branches."""
        return plan_branches(pattern, problems, self.generator, seed=self.seed)


class AdaptiveRun(Rounds):
    """A run of one task by several plans in turn.

    Parameters
    ----------
    task : Task
        With the first plan.
    settings : PatternSettings
    """

    SAVED = ("_past_counts", "_taken", "_inner")

    def __init__(self, task: Task, settings: PatternSettings) -> None:
        assert task.plan is not None
        pattern = task.pattern
        self._span = span_kept(pattern)
        super().__init__(
            settings,
            Averages(pattern, settings.seed, settings.batch_size),
            RecentEvents(pattern.attributes, self._span, task.position, EVENTS),
            task.plan,
            task.position,
        )
        self._task = task
        self._consumes = pattern.strategy.name == "consuming"
        #: Matches are asked for where their events are taken.
        self._inner_task = (
            replace(task, patterns=(_free(pattern),), output="matches") if self._consumes else task
        )
        #: Positions of the events of matches reported before.
        self._taken = np.empty(0, np.int64)
        self._past = Metrics(partial_matches_created=0, comparisons=0)
        self._inner = Detector.of_task(self._inner_task)

    def prepare(self, batch: EventStream) -> None:
        """See :meth:`cepbench.Detector.prepare`."""
        self._inner.prepare(batch)

    def push(self, batch: EventStream) -> Found:
        """See :meth:`cepbench.engines.runs.protocol.Run.push`."""
        found = []
        for events in self.pieces(batch):
            given = self._inner.take(self._marked(events, self._position))
            found.append(given)
            self._note(given)
        return self._united(found)

    def finish(self) -> Found:
        """See :meth:`cepbench.engines.runs.protocol.Run.finish`."""
        return self._united([self._inner.finish()])

    def _begun(self, averages: Averaged) -> AnyPlan:
        pattern, cost = self._task.pattern, self._settings.cost
        problems = branch_problems(pattern, averages.statistics, cost=cost)
        plan: AnyPlan = self._settings.plan(pattern, problems)
        self._inner = self._opened(plan, self._position)
        return plan

    def _situation(self, **known: Any) -> PatternSituation:
        return PatternSituation(pattern=self._task.pattern, cost=self._settings.cost, **known)

    def _planned(self, situation: PatternSituation) -> tuple[AnyPlan, float]:
        plan = self._settings.plan(situation.pattern, situation.problems)
        assert plan.log_cost is not None  # the generator's front end notes it
        return plan, plan.log_cost

    def _text(self, plan: AnyPlan) -> str:
        return plan.text

    def _go_on(self, plan: AnyPlan) -> None:
        """Go on with the buffers of the running run, or with one that has seen the events kept."""
        past = _added(self._past, self._inner.metrics())
        self._inner = self._resumed(plan)
        self._past = past

    def _resumed(self, plan: AnyPlan) -> Detector:
        if self._time is None:
            return self._opened(plan, self._position)
        if self._task.evaluator.adopts:
            inner = self._opened(plan, self._position)
            if inner.adopt(self._inner):
                return inner
        kept, first = self._replayed(self._span)
        inner = self._opened(plan, first)
        inner.take(self._marked(kept, first))
        return inner

    def _opened(self, plan: AnyPlan, position: int) -> Detector:
        inner = Detector.of_task(replace(self._inner_task, plan=plan, position=position))
        inner.stamp_by(self._inner.clock)
        return inner

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

    @property
    def _past_counts(self) -> dict[str, Any]:
        return {name: getattr(self._past, name) for name in (*_SUMMED, *_LARGEST, "details")}

    @_past_counts.setter
    def _past_counts(self, counts: dict[str, Any]) -> None:
        self._past = Metrics(**counts)

    def resumed(self) -> None:
        """The plan is that of the detector."""
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
