"""A run of a workload that changes its plan between rounds [liu2011]_, section 6.

A switch opens a new detector. What both plans compute from scratch, and matches that both keep for events
yet to come, it takes over from the old one; the rest it rebuilds from the events of the last windows,
without reporting matches. Each push reports of every query what a detector of it alone reports, so
nothing depends on when the plan changes.

Differs from [liu2011]_: there all intermediate results are discarded and rebuilt; taking over those
that both plans have is its future work.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cepbench.engines.adaptation.averages import EVENTS
from cepbench.engines.adaptation.policies import WorkloadSituation
from cepbench.engines.adaptation.rounds import Rounds, Settings, span_kept
from cepbench.engines.adaptation.workload_averages import AveragedQueries, QueryAverages
from cepbench.engines.detection.workload_detector import WorkloadDetector
from cepbench.engines.runs.protocol import Arguments
from cepbench.errors import AdaptationError
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload
from cepbench.state import arrays_under
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents

_RUN = "inner/"


@dataclass(frozen=True, kw_only=True)
class WorkloadSettings(Settings):
    """How to adapt to a workload.

    Attributes
    ----------
    planner, cost : str
    generator, evaluator : str or None
    """

    planner: str
    cost: str
    generator: str | None
    evaluator: str | None

    def plan(self, workload: Workload, statistics: Mapping[str, Statistics]) -> WorkloadPlan:
        """The planner's plan."""
        return plan_workload(
            workload,
            statistics,
            self.planner,
            cost=self.cost,
            generator=self.generator,
            seed=self.seed,
            evaluator=self.evaluator,
        )


class WorkloadRun(Rounds):
    """A run of the queries of a workload by several plans in turn.

    Parameters
    ----------
    plan : WorkloadPlan
        The first one.
    settings : WorkloadSettings
    asked : Arguments
        Those of :class:`~cepbench.engines.detection.workload_detector.WorkloadDetector`.

    Attributes
    ----------
    inner : WorkloadDetector
        The detector with the running plan.
    """

    def __init__(self, plan: WorkloadPlan, settings: WorkloadSettings, asked: Arguments) -> None:
        patterns = plan.workload.patterns
        self._attributes = _attributes(plan)
        self._span = max(map(span_kept, patterns.values()))
        super().__init__(
            settings,
            QueryAverages(plan.workload, settings.seed, settings.batch_size),
            RecentEvents(self._attributes, self._span, asked.position, EVENTS),
            plan,
            asked.position,
        )
        self._asked = asked
        #: Queries whose matches depend on all earlier ones: their plan is not changed.
        self._lasting = [query for query, its in patterns.items() if its.selects]
        self.inner = self._opened(plan, asked.position)

    def prepare(self, batch: EventStream) -> None:
        """See :meth:`cepbench.Detector.prepare`."""
        self.inner.prepare(batch)

    def check(self, plan: WorkloadPlan) -> None:
        """Check that a run can go on with another plan; nothing changes.

        Raises
        ------
        AdaptationError
            If virtual queries read attributes whose values are not kept.
        CepbenchError
            If it cannot be opened.
        """
        lacking = [name for name in _attributes(plan) if name not in self._attributes]
        if lacking:
            raise AdaptationError(
                f"virtual queries of the plan read {', '.join(lacking)}, of which no values are kept; give "
                "it as initial=, or leave these queries out"
            )
        super().check(self._with_lasting(plan))

    def switch(self, plan: WorkloadPlan, reason: str) -> None:
        """Go on with another plan, but for queries whose matches depend on all earlier ones."""
        super().switch(self._with_lasting(plan), reason)

    def _begun(self, averages: AveragedQueries) -> WorkloadPlan:
        plan: WorkloadPlan = self._settings.plan(self.plan.workload, averages.statistics)
        inner = self._opened(plan, self._position)
        inner.follow(self.inner)
        self.inner = inner
        return plan

    def _situation(self, **known: Any) -> WorkloadSituation:
        return WorkloadSituation(
            workload=self.plan.workload,
            cost=self._settings.cost,
            evaluator=self._settings.evaluator,
            **known,
        )

    def _planned(self, situation: WorkloadSituation) -> tuple[WorkloadPlan, float]:
        plan = self._settings.plan(situation.workload, situation.statistics)
        return self._with_lasting(plan), math.log(plan.cost)

    def _with_lasting(self, plan: WorkloadPlan) -> WorkloadPlan:
        if not self._lasting:
            return plan
        plans = {query: its for query, its in plan.plans.items() if query not in self._lasting}
        plans |= {query: its for query, its in self.plan.plans.items() if query in self._lasting}
        return replace(plan, plans=plans)

    def _text(self, plan: WorkloadPlan) -> str:
        """The sources of the queries, the plans and orders of joins, and the virtual queries."""
        ways = map(plan.reuse, plan.order)
        parts = [
            *(f"{way.query} from {' and '.join(way.sources)}" for way in ways if way.sources),
            *(f"{query} by {its.text}" for query, its in plan.plans.items()),
            *(f"{query} in the order {', '.join(its)}" for query, its in plan.orders.items()),
            *(f"{query} = {its}" for query, its in plan.virtual.items()),
        ]
        return ", ".join(parts) or "each query from scratch"

    def _go_on(self, plan: WorkloadPlan) -> None:
        if self._time is None:
            self.inner = self._opened(plan, self._position)
            return
        events, first = self._replayed(self._span)
        new = self._opened(plan, first)
        new.resume(self.inner, events)
        self.inner = new

    def _opened(self, plan: WorkloadPlan, position: int) -> WorkloadDetector:
        return WorkloadDetector.of_plan(plan, replace(self._asked, position=position))

    def snapshot(self) -> dict[str, np.ndarray]:
        """The state as plain arrays, and the snapshot of the running detector."""
        inner = {f"{_RUN}{name}": its for name, its in self.inner.snapshot().items()}
        return super().snapshot() | inner

    def restore(
        self, arrays: Mapping[str, np.ndarray], inner: WorkloadDetector | None = None
    ) -> None:
        """Resume from what :meth:`snapshot` returned; ``inner`` is what :meth:`inner_of` made of it."""
        super().restore(arrays)
        self.inner = self.inner_of(arrays) if inner is None else inner
        self.plan = self.inner.plan

    @staticmethod
    def inner_of(state: Mapping[str, np.ndarray]) -> WorkloadDetector:
        """The detector with the running plan, from what :meth:`snapshot` returned."""
        return WorkloadDetector.restore(arrays_under(_RUN, state))


def _attributes(plan: WorkloadPlan) -> tuple[str, ...]:
    """The attributes that the queries read, virtual ones included."""
    patterns = plan.computed.patterns.values()
    return tuple(dict.fromkeys(name for its in patterns for name in its.attributes))
