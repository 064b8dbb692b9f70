"""Rounds of a stream: samples, and changes of the plan [mei2009]_, section 5.3, [liu2011]_, section 6.

A switch opens a new detector, which takes over what does not depend on the plan. If the evaluator's runs
can, the new one takes over the state of the old one. Otherwise it is given the events of the last windows
again, from which it rebuilds its partial matches, the ones that wait for a negated event included. When an
engine reports a match does not depend on the plan, so what it finds in these events was reported before. Of
a workload only what both plans do not have is rebuilt.

Under ``STRATEGY consuming`` the new run must not bind the events of matches reported before, but
such an event still negates. So the pattern is run with the additional condition on each positive
variable that its event is not taken; the attribute is added to the batches.

A policy that amortizes is asked where sampling and planning take a small share of the run. All of these times are
by work, of the run by its counters, priced as an installation measured it: the same stream is planned for at the
same events, whatever else the machine does.

Differs from [mei2009]_: a switch rebuilds the state at once, not in the next assembly round, and
events are kept once, not in the leaf buffers of each engine, so that any engine can switch. From
[liu2011]_: there all intermediate results are discarded and rebuilt; taking over those that both plans have
is its future work.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from math import nan
from typing import Any

import numpy as np

from cepbench.engines.adaptation.averages import EVENTS, Averaged, Averages, averaged, rounds_of
from cepbench.engines.adaptation.policies import AdaptationPolicy, Situation, relative_gain
from cepbench.engines.detection.detector import Detector
from cepbench.engines.runs.matches import Found, SetColumn
from cepbench.engines.runs.protocol import Arguments
from cepbench.engines.runs.result import Metrics
from cepbench.patterns.model import Kind, Pattern
from cepbench.planning.costs.engine_work import opening_seconds
from cepbench.planning.plans.kinds import plan_from_json, plan_to_json
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents

#: For how many windows events are kept: a match may wait for one window after its last event, so its
#: first one is up to two windows old, and a negated item may look back one window from the last one.
_WINDOWS_KEPT = 3

#: The share of a run's time that adapting may take under a policy that amortizes it, and its samples.
SHARE, SAMPLES = 0.025, 0.015

#: The share that the first plan may take where a run begins without one.
FIRST = 0.05

#: Another plan may also take this share of what the run took more than at the pace just after the last one was made.
RISK = 0.25

#: The most plans that came back of which each doubles how often a change has to be seen.
MOST_RETURNS = 5

#: How many times as long as opening a run a round's sample for a query takes.
SAMPLING = 0.5

#: Seconds that a run has to take by its counted work, at its pace so far, for its counters to be read again: a
#: hundred times as long as reading them takes.
_READ = 2e-2

#: Attribute that is 1 for the events of matches reported before, under the consuming strategy.
TAKEN = "cepbench_taken"


@dataclass(frozen=True, kw_only=True, eq=False)
class Plans(ABC):
    """How to adapt: when, and what makes, compares and runs the plans of a pattern or a workload."""

    queries: Pattern | Workload
    asked: Arguments
    policy: AdaptationPolicy
    threshold: float
    gain: float
    batch_size: int
    seed: int
    planned: bool  #: whether to begin with a plan for the first events instead of the given one

    @property
    def consumes(self) -> bool:
        """Whether events of matches are taken; the detectors of a workload take those of each query."""
        return isinstance(self.queries, Pattern) and self.queries.strategy.name == "consuming"

    def packed(self) -> dict[str, Any]:
        """The arguments of :class:`cepbench.AdaptiveDetector`; JSON-serializable."""
        names = ("threshold", "gain", "batch_size", "seed")
        return {"policy": self.policy.name} | {name: getattr(self, name) for name in names}

    @property
    def span(self) -> int:
        """How long before the last event those that rebuild the state of a run may be, in ticks."""
        return max(map(_span_kept, self.queries.queries.values()))

    @abstractmethod
    def attributes(self, plan: Any) -> Iterable[str]:
        """Those that a run by a plan reads."""

    @abstractmethod
    def opened(self, plan: Any, position: int) -> Any:
        """A detector with a plan, that begins at a position."""

    @abstractmethod
    def checked(self, plan: Any, running: Any, kept: Iterable[str]) -> Any:
        """A requested plan as it can follow the running one, where values of some attributes are kept; or an error."""

    def following(self, plan: Any, running: Any) -> Any:
        """A plan as it can follow the running one."""
        return plan

    def problem(self, statistics: Any) -> Any:
        """What plans are made for under some statistics."""
        return statistics

    @abstractmethod
    def plan(self, problem: Any) -> Any:
        """A plan for a problem."""

    @abstractmethod
    def noted_cost(self, plan: Any) -> float:
        """ln of the cost of a plan under the statistics that it was made for."""

    @abstractmethod
    def log_cost(self, plan: Any, problem: Any) -> float:
        """ln of the cost of any plan."""

    @abstractmethod
    def log_bound(self, plan: Any, problem: Any) -> float:
        """ln of a lower bound of the cost of all plans of this kind."""

    @property
    @abstractmethod
    def planning_seconds(self) -> float:
        """What a plan and a change to it are expected to take, but for what the change rebuilds."""

    @abstractmethod
    def counted_seconds(self, metrics: Metrics) -> float:
        """What a run is expected to have taken for the work that it counted."""

    @abstractmethod
    def expected_seconds(self, plan: Any, statistics: Any) -> float:
        """What a run by a plan is expected to take for each event of the stream."""

    @abstractmethod
    def text(self, plan: Any) -> str:
        """What tells a plan from others."""


def plan_to_dict(plan: Any) -> dict[str, Any]:
    """A plan of a pattern or a workload, JSON-serializable."""
    return plan.to_dict() if isinstance(plan, WorkloadPlan) else plan_to_json(plan)


def plan_from_dict(described: Mapping[str, Any]) -> Any:
    """The inverse of :func:`plan_to_dict`."""
    is_workload = "workload" in described
    return WorkloadPlan.from_dict(described) if is_workload else plan_from_json(described)


@dataclass(frozen=True)
class Switch:
    """A change of the plan."""

    position: int  #: of the first event that the new plan processes as a new one
    time: int  #: the timestamp of the last event before it
    old: str
    new: str
    #: How much more the old plan would cost, relative to the new one; NaN if it was not predicted.
    predicted_gain: float
    reason: str
    seconds: float  #: for planning and rebuilding


class Rounds(Stateful):
    """A run by several plans in turn."""

    SAVED = (
        "_position", "_time", "_averages", "_planned_for", "_seen_before", "_looked", "_sampled", "_spent", "_seconds", "_counted", "_pace", "_usual", "_excess",
        "_switched", "_recent", "_taken",
        "_running", "inner",
    )  # fmt: skip

    def __init__(self, plans: Plans, plan: Any, opened: Any = None) -> None:
        """With what a detector with the first plan is, if one was opened."""
        self.plans = plans
        self._position = plans.asked.position
        self._averages = {
            query: Averages(its, plans.seed, plans.batch_size)
            for query, its in plans.queries.queries.items()
        }
        self._attributes = tuple(plans.attributes(plan))
        self._recent = RecentEvents(self._attributes, plans.span, self._position, EVENTS)
        #: The averages of each query with which a plan was last made.
        self._made_for: Mapping[str, Averaged] | None = None
        #: The averages that a policy that amortizes was last shown.
        self._seen: list[Mapping[str, Averaged]] = []
        #: Seconds that samples, and plans and changes, are expected to have taken.
        self._sampled = self._spent = 0.0
        #: The rounds up to the last one whose samples the policy was shown.
        self._looked = 0
        #: What so many events took by their counted work.
        self._seconds, self._counted = 0.0, 0
        #: What an event took when the counters were last read, and just after a plan was last made if they were; and
        #: how much more than that the run took since.
        self._pace = self._excess = 0.0
        self._usual: float | None = None
        self._time: int | None = None
        #: Positions of the events of matches reported before.
        self._taken = np.empty(0, np.int64)
        self.first = self.plan = plan
        self.inner: Detector = plans.opened(plan, self._position) if opened is None else opened
        self.switches: list[Switch] = []

    @property
    def averages(self) -> Any:
        """The averages of the last rounds; None before the first one ends."""
        known = {query: its.current() for query, its in self._averages.items()}
        found = {query: its for query, its in known.items() if its is not None}
        return averaged(found) if found else None

    def pieces(self, batch: EventStream) -> Iterator[EventStream]:
        """The parts of a batch by round, to be processed one by one; the plan may change before the last."""
        size = self.plans.batch_size
        begin = 0
        while begin < len(batch):
            number, known = divmod(self._position - self.plans.asked.position, size)
            events = batch[begin : begin + size - known]
            begin += len(events)
            self._recent.push(events)
            if self._time is None and self.plans.planned:
                self._made_for = {query: its.of(events) for query, its in self._averages.items()}
                statistics = averaged(self._made_for).statistics
                self.plan = self.plans.plan(self.plans.problem(statistics))
                self.inner = self._opened(self.plan, self._position)
            if known + len(events) == size:
                self._adapt(number, self._recent.stream[-size:] if known else events)
            yield events
            self._time = int(events.timestamps[-1])
            self._position += len(events)
            if known + len(events) == size and self._is_due(number + 1):
                self._count(number + 1)

    def finish(self) -> Any:
        """What waited for the end of the stream."""
        return self.inner.finish()

    def checked(self, plan: Any) -> Any:
        """A requested plan as the run can go on with it, or an error; nothing changes."""
        plan = self.plans.checked(plan, self.plan, self._attributes)
        self.plans.opened(plan, self._position)
        return plan

    def switch(self, plan: Any, reason: str) -> None:
        """Go on with another plan."""
        self._install(plan, reason, nan, time.perf_counter())

    def marked(self, events: EventStream, first: int) -> EventStream:
        """Some events, with the attribute of the consuming strategy if it is that."""
        if not self.plans.consumes:
            return events
        taken = np.zeros(len(events), np.int64)
        within = (self._taken >= first) & (self._taken < first + len(events))
        taken[self._taken[within] - first] = 1
        return replace(events, attributes={**events.attributes, TAKEN: taken}, positions=None)

    def note(self, found: Found) -> None:
        """Note the events of new matches, if they cannot be in another one."""
        if self.plans.consumes:
            columns = [c for part in found.matches if part is not None for c in part.columns]
            bound = [c.positions if isinstance(c, SetColumn) else c for c in columns]
            kept = self._taken[self._taken >= self._recent.first]
            self._taken = np.concatenate((kept, *bound)).astype(np.int64)

    def _adapt(self, number: int, events: EventStream) -> None:
        """Note a round's events, and change the plan if the policy and the costs say so."""
        plans = self.plans
        began = time.perf_counter()
        for its in self._averages.values():
            its.add(events)
        if plans.policy.amortizes:
            # Whoever else asked for them, or took a snapshot.
            samples = len(self._averages) * min(number + 1 - self._looked, rounds_of(len(events)))
            sampling = SAMPLING * opening_seconds() * samples
            if self._sampled + sampling > SAMPLES * self._expected(number + 1):
                return
            self._sampled += sampling
            self._looked = number + 1
        measured: dict[str, Any] = {
            query: its.of_all(events) if plans.policy.foresees else its.current()
            for query, its in self._averages.items()
        }
        patience = self._patience
        situation = Situation(
            plans=plans,
            plan=self.plan,
            averages=averaged(measured),
            planned=None if self._made_for is None else averaged(self._made_for),
            threshold=plans.threshold,
            gain=plans.gain,
            round=number,
            before=[averaged(its) for its in self._seen] if len(self._seen) == patience else (),
        )
        self._seen = [*self._seen, measured][-patience:] if plans.policy.amortizes else []
        reason = plans.policy.reason(situation)
        if reason is None:
            return
        if plans.policy.amortizes:
            self._count(number)
            if not self._affords_plan(number + 1):
                return
        plan = plans.following(plans.plan(situation.problems), self.plan)
        self._made_for, self._usual, self._excess = measured, self._pace, 0.0
        self._spent += plans.planning_seconds
        if plans.text(plan) == plans.text(self.plan):
            return
        gain = relative_gain(situation.log_cost, plans.noted_cost(plan))
        if gain > plans.gain and (not plans.policy.amortizes or self._is_faster(plan, situation)):
            self._install(plan, reason, gain, began)

    @property
    def _patience(self) -> int:
        """How often a change has to be seen before: twice as often for each plan that came back."""
        left: set[str] = set()
        returns = 0
        for its in self.switches:
            returns += its.new in left
            left.add(its.old)
        return int(1 << min(returns, MOST_RETURNS))

    def _affords_plan(self, rounds: int) -> bool:
        """Whether another plan takes a small share of so many rounds, or of what the run now takes more than usual."""
        planning, seconds = self.plans.planning_seconds, self._expected(rounds)
        share = FIRST if self._made_for is None else SHARE
        return (
            self._sampled + self._spent + planning <= share * seconds
            or planning <= RISK * self._excess
        )

    def _expected(self, rounds: int) -> float:
        """What the run is expected to take for so many rounds at its pace so far, by its counted work."""
        events = rounds * self.plans.batch_size
        return events * self._seconds / self._counted if self._counted else 0.0

    def _is_faster(self, plan: Any, situation: Situation) -> bool:
        """Whether the running plan is expected to take longer, by the gain, than another one."""
        old, new = (
            self.plans.expected_seconds(its, situation.statistics) for its in (self.plan, plan)
        )
        return old > (1 + self.plans.gain) * new

    def _is_due(self, rounds: int) -> bool:
        """Whether the run took long enough, at its pace so far, for its counters to be read again after so many rounds."""
        if not self.plans.policy.amortizes:
            return False
        return not self._counted or self._expected(rounds) - self._seconds >= _READ

    def _count(self, rounds: int) -> None:
        """Read the counters after so many rounds."""
        since = rounds * self.plans.batch_size - self._counted
        if not since:
            return
        seconds = self.plans.counted_seconds(self.inner.metrics())
        self._pace = (seconds - self._seconds) / since
        self._seconds, self._counted = seconds, self._counted + since
        if self._usual is None:
            self._usual = self._pace
        self._excess = max(0.0, self._excess + since * (self._pace - self._usual))

    def _install(self, plan: Any, reason: str, gain: float, began: float) -> None:
        self._go_on(plan)
        old, self.plan, self._usual, self._excess = self.plan, plan, None, 0.0
        seconds = time.perf_counter() - began
        now = 0 if self._time is None else self._time
        texts = self.plans.text(old), self.plans.text(plan)
        self.switches.append(Switch(self._position, now, *texts, gain, reason, seconds))

    def _go_on(self, plan: Any) -> None:
        """Go on with the state of the running run, or with one that has seen the events kept."""
        new = self._opened(plan, self._position)
        if self._time is not None and not new.adopt(self.inner):
            events, first = self._replayed(self._time - self.plans.span)
            new = self._opened(plan, first)
            before = self.plans.counted_seconds(self.inner.metrics())
            new.resume(self.inner, self.marked(events, first))
            self._spent += self.plans.counted_seconds(new.metrics()) - before
        self.inner = new

    def _opened(self, plan: Any, position: int) -> Any:
        inner = self.plans.opened(plan, position)
        inner.stamp_by(self.inner.clock)
        return inner

    def _replayed(self, since: int) -> tuple[EventStream, int]:
        """The events from a time on before those about to be processed, and the position of the first."""
        kept, first = self._recent.stream, self._recent.first
        kept = kept[: self._position - first]
        stale = int(np.searchsorted(kept.timestamps, since))
        return kept[stale:], first + stale

    @property
    def _running(self) -> Any:
        return plan_to_dict(self.plan)

    @_running.setter
    def _running(self, described: Mapping[str, Any]) -> None:
        self.plan = plan_from_dict(described)
        self.inner = self.plans.opened(self.plan, self._position)

    @property
    def _planned_for(self) -> Any:
        if self._made_for is None:
            return None
        return _packed(self._made_for)

    @_planned_for.setter
    def _planned_for(self, packed: Any) -> None:
        if packed is not None:
            self._made_for = self._unpacked(packed)

    @property
    def _seen_before(self) -> Any:
        return [*map(_packed, self._seen)]

    @_seen_before.setter
    def _seen_before(self, packed: Any) -> None:
        self._seen = [*map(self._unpacked, packed)]

    def _unpacked(self, packed: Mapping[str, Any]) -> Mapping[str, Averaged]:
        return {query: self._averages[query].unpacked(its) for query, its in packed.items()}

    @property
    def _switched(self) -> list[tuple[Any, ...]]:
        return [*map(astuple, self.switches)]

    @_switched.setter
    def _switched(self, switches: list[tuple[Any, ...]]) -> None:
        self.switches = [Switch(*its) for its in switches]


def _packed(measured: Mapping[str, Averaged]) -> dict[str, Any]:
    return {query: its.packed for query, its in measured.items()}


def _span_kept(pattern: Pattern) -> int:
    bare = {Kind.PLAIN, Kind.KLEENE}.issuperset(v.kind for v in pattern.variables)
    windows = 1 if bare and pattern.strategy.name != "consuming" else _WINDOWS_KEPT
    return windows * pattern.window.length
