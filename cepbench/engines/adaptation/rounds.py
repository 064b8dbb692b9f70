"""Rounds of a stream: samples, and changes of the plan [mei2009]_, section 5.3, [liu2011]_, section 6."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from math import nan
from typing import Any, ClassVar

import numpy as np

from cepbench.engines.adaptation.policies import AdaptationPolicy, Situation, relative_gain
from cepbench.patterns.model import Kind, Pattern
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents

#: For how many windows events are kept: a match may wait for one window after its last event, so its
#: first one is up to two windows old, and a negated item may look back one window from the last one.
_WINDOWS_KEPT = 3


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to adapt.

    Attributes
    ----------
    policy : AdaptationPolicy
    threshold, gain : float
    batch_size : int
        Events in a round.
    seed : int
    planned : bool
        Whether to begin with a plan for the first events instead of the given one.
    """

    policy: AdaptationPolicy
    threshold: float
    gain: float
    batch_size: int
    seed: int
    planned: bool

    def packed(self) -> dict[str, Any]:
        """The arguments that all adaptive detectors have; JSON-serializable."""
        names = ("threshold", "gain", "batch_size", "seed")
        return {"policy": self.policy.name} | {name: getattr(self, name) for name in names}


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


class Rounds(Stateful, ABC):
    """A run by several plans in turn.

    Parameters
    ----------
    settings : Settings
    averages : Averages or QueryAverages
    recent : RecentEvents
    plan : OrderPlan, TreePlan, UnionPlan or WorkloadPlan
        The first one.
    position : int
        Of the first event.

    Attributes
    ----------
    plan : OrderPlan, TreePlan, UnionPlan or WorkloadPlan
        The running plan.
    switches : list of Switch
    """

    SAVED: ClassVar[tuple[str, ...]] = (
        "_position", "_time", "_round", "_in_round", "_averages", "_planned_for", "_switched", "_recent",
    )  # fmt: skip

    def __init__(
        self, settings: Settings, averages: Any, recent: RecentEvents, plan: Any, position: int
    ) -> None:
        self._averages, self._recent = averages, recent
        self._settings: Any = settings
        self._made_for: Any = None
        self._position = position
        self._time: int | None = None
        self._round = 0
        self._in_round = 0
        self.plan = plan
        self.switches: list[Switch] = []

    @property
    def averages(self) -> Any:
        """The averages of the last rounds; None before the first one ends."""
        return self._averages.current()

    @property
    def position(self) -> int:
        """The position of the next event."""
        return self._position

    def pieces(self, batch: EventStream) -> Iterator[EventStream]:
        """The parts of a batch that belong to one round each, to be processed one by one.

        The plan is changed, where it has to be, before the last part of a round.
        """
        size = self._settings.batch_size
        begin = 0
        while begin < len(batch):
            events = batch[begin : begin + size - self._in_round]
            begin += len(events)
            self._in_round += len(events)
            self._recent.push(events)
            if self._time is None and self._settings.planned:
                self._made_for = self._averages.of(events)
                self.plan = self._begun(self._made_for)
            if self._in_round == size:
                self._adapt(events if len(events) == size else self._recent.stream[-size:])
                self._in_round = 0
                self._round += 1
            yield events
            self._time = int(events.timestamps[-1])
            self._position += len(events)

    def check(self, plan: Any) -> None:
        """Check that a run can go on with another plan; nothing changes.

        Raises
        ------
        CepbenchError
            If it cannot be opened.
        """
        self._opened(plan, self._position)

    def switch(self, plan: Any, reason: str) -> None:
        """Go on with another plan."""
        self._install(plan, reason, nan, time.perf_counter())

    @abstractmethod
    def _opened(self, plan: Any, position: int) -> Any:
        """A detector with a plan, that begins at a position."""

    @abstractmethod
    def _begun(self, averages: Any) -> Any:
        """Open a run by a plan for the first events, which is returned."""

    @abstractmethod
    def _situation(self, **known: Any) -> Situation:
        """What the policy is told."""

    @abstractmethod
    def _planned(self, situation: Any) -> tuple[Any, float]:
        """A plan for the current statistics, and ln of its cost."""

    @abstractmethod
    def _go_on(self, plan: Any) -> None:
        """Have another plan take over from the running one."""

    @abstractmethod
    def _text(self, plan: Any) -> str:
        """What tells a plan from others."""

    def _adapt(self, events: EventStream) -> None:
        """Sample a round's events, and change the plan if the policy and the costs say so."""
        settings = self._settings
        began = time.perf_counter()
        self._averages.add(events)
        foresees = settings.policy.foresees
        averages = self._averages.of_all(events) if foresees else self._averages.current()
        situation = self._situation(
            plan=self.plan,
            averages=averages,
            planned=self._made_for,
            threshold=settings.threshold,
            gain=settings.gain,
            round=self._round,
        )
        reason = settings.policy.reason(situation)
        if reason is None:
            return
        plan, log_cost = self._planned(situation)
        self._made_for = averages
        if self._text(plan) == self._text(self.plan):
            return
        gain = relative_gain(situation.log_cost, log_cost)
        if gain > settings.gain:
            self._install(plan, reason, gain, began)

    def _install(self, plan: Any, reason: str, gain: float, began: float) -> None:
        self._go_on(plan)
        old, self.plan = self.plan, plan
        seconds = time.perf_counter() - began
        now = 0 if self._time is None else self._time
        texts = self._text(old), self._text(plan)
        self.switches.append(Switch(self._position, now, *texts, gain, reason, seconds))

    def _replayed(self, span: int) -> tuple[EventStream, int]:
        """The events of some time before those about to be processed, and the position of the first."""
        assert self._time is not None
        kept, first = self._recent.stream, self._recent.first
        kept = kept[: self._position - first]
        stale = int(np.searchsorted(kept.timestamps, self._time - span))
        return kept[stale:], first + stale

    @property
    def _planned_for(self) -> Any:
        return None if self._made_for is None else self._made_for.packed

    @_planned_for.setter
    def _planned_for(self, packed: Any) -> None:
        self._made_for = None if packed is None else self._averages.unpacked(packed)

    @property
    def _switched(self) -> list[tuple[Any, ...]]:
        return [*map(astuple, self.switches)]

    @_switched.setter
    def _switched(self, switches: list[tuple[Any, ...]]) -> None:
        self.switches = [Switch(*its) for its in switches]


def span_kept(pattern: Pattern) -> int:
    """How long before the last event those that rebuild the state of a run may be, in ticks."""
    bare = {Kind.PLAIN, Kind.KLEENE}.issuperset(v.kind for v in pattern.variables)
    windows = 1 if bare and pattern.strategy.name != "consuming" else _WINDOWS_KEPT
    return windows * pattern.window.length
