"""Incremental detection of the matches of a workload by plans that follow the stream's statistics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NoReturn, Self, TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.arguments import choice, text
from cepbench.engines.adaptation.detector import (
    BATCH_SIZE,
    GAIN,
    NO_NODES,
    THRESHOLD,
    AdaptiveDetector,
    check_runs,
    checked,
    equal_rates,
)
from cepbench.engines.adaptation.workload_averages import AveragedQueries
from cepbench.engines.adaptation.workload_run import WorkloadRun, WorkloadSettings
from cepbench.engines.detection.pushes import Progress
from cepbench.engines.detection.registry import evaluator_for
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT
from cepbench.engines.detection.workload_detector import WorkloadDetector
from cepbench.engines.detection.workload_evaluate import workload_plan
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.protocol import Arguments, Evaluator
from cepbench.engines.runs.result import Metrics, NodeTable
from cepbench.errors import (
    AdaptationError,
    StatisticsError,
    UnsupportedTaskError,
)
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.reuse import REUSE_COSTS, plan_cost
from cepbench.planning.planners.registry import PlanGenerator, find_generator
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream

__all__ = ["AdaptiveDetector", "AdaptiveWorkloadDetector"]

#: The default planner and cost.
PLANNER, COST = "CHASE", "calibrated"

_RUN = "run/"

_T = TypeVar("_T")
_Joined = TypeVar("_Joined")


class AdaptiveWorkloadDetector(AdaptiveDetector):
    """Finds the matches of a workload in batches, by plans that follow the stream's statistics.

    ``cep.AdaptiveDetector(workload)`` makes one. Each push gives for every query exactly what a detector
    of this query alone gives. Rounds are those of :class:`cepbench.AdaptiveDetector`.

    Parameters
    ----------
    workload : Workload
    planner, generator, evaluator, options, cost, threshold, gain, policy, initial, batch_size, seed
        See :func:`cepbench.adapt`.
    output, partial_match_limit, position
        As of :class:`cepbench.Detector`; ``output`` is ``matches``, ``arrow`` or ``count``.

    Attributes
    ----------
    plan : WorkloadPlan
        The running plan.

    Raises
    ------
    AdaptationError
        If an argument is invalid, a policy is unknown, a window has no length, the planner shares
        counts, the first plan delays matches, or the evaluator does not fit the generator.
    PatternError, PlanError, EvaluationError, PlanGeneratorError, StatisticsError
        As for :class:`cepbench.Detector` and :func:`cepbench.plan_workload`.

    Notes
    -----
    The plan of a query with ``STRATEGY consuming`` or ``OUTPUT non_overlap`` is not changed, as its
    matches depend on all events so far.
    """

    KIND = "adaptive detector of a workload"

    HEADER: ClassVar[Mapping[str, Any]] = {"adaptation": dict, "planned": bool}

    plan: WorkloadPlan  # type: ignore[assignment]

    def __init__(
        self,
        workload: Workload,
        *,
        planner: str | None = None,
        generator: str | PlanGenerator | None = None,
        evaluator: str | Evaluator | None = None,
        options: Mapping[str, Any] | None = None,
        cost: str | CostModel | None = None,
        threshold: float = THRESHOLD,
        gain: float = GAIN,
        policy: str = "threshold",
        initial: WorkloadPlan | None = None,
        batch_size: int = BATCH_SIZE,
        output: str = "matches",
        partial_match_limit: int = PARTIAL_MATCH_LIMIT,
        position: int = 0,
        seed: int = 0,
    ) -> None:
        entry = WORKLOAD_PLANNERS.find(PLANNER if planner is None else planner)
        if entry.shares != "matches":
            able = [its.name for its in WORKLOAD_PLANNERS.values() if its.shares == "matches"]
            raise AdaptationError(
                f"the planner {entry.name} shares counts, and an adaptive run finds matches; choose one "
                f"of {', '.join(able)}"
            )
        self._settings: Any = WorkloadSettings(
            planner=entry.name,
            cost=choice(COST if cost is None else cost, "cost", REUSE_COSTS, AdaptationError),
            generator=None if generator is None else find_generator(generator).name,
            evaluator=None if evaluator is None else evaluator_for(evaluator).name,
            planned=initial is None,
            **checked(threshold, gain, policy, batch_size, seed),
        )
        for query, pattern in workload.patterns.items():
            if not pattern.window.length:
                raise AdaptationError(
                    f"query {query!r}: a window of length 0 has no arrival rates to adapt to; use "
                    "cep.evaluate or cep.Detector with a plan"
                )
        if generator is not None and evaluator is not None:
            check_runs(evaluator_for(evaluator), find_generator(generator))
        if self._settings.policy.name == "bound" and (generator is not None or entry.virtual):
            raise AdaptationError(
                "with virtual queries or plans of a generator there is no lower bound of the cost of a "
                'workload; choose policy="threshold", or another planner without generator='
            )
        # Made without statistics, to check all arguments before the first event.
        statistics = {query: equal_rates(its) for query, its in workload.patterns.items()}
        plan = self._settings.plan(workload, statistics)
        if initial is not None:
            plan = checked_plan(workload, initial)
            try:
                plan_cost(plan, statistics, self._settings.cost, self._settings.evaluator)
            except StatisticsError as error:
                raise AdaptationError(
                    f"of a virtual query of initial= ({', '.join(plan.virtual)}) nothing can be estimated, "
                    "as it is more specific than all queries; leave it out, or run the plan by cep.Detector"
                ) from error
        # A later plan may compute any query from scratch.
        alone = replace(self._settings, planner="NAIVE").plan(workload, statistics)
        asked = Arguments(
            evaluator=evaluator,
            options=options,
            output=output,
            partial_match_limit=partial_match_limit,
            position=position,
        )
        WorkloadDetector.of_plan(alone, asked)
        self.output = output
        self.options = dict(options or {})
        self.partial_match_limit = partial_match_limit
        self._start(position)
        self._run = WorkloadRun(plan, self._settings, asked)
        self.plan = self._run.plan

    def evaluator_of(self, query: str) -> str:
        """What computes a query at present: an evaluator, or the way of reuse."""
        return self._run.inner.evaluator_of(query)

    def push(self, batch: EventStream) -> dict[str, Any]:
        """Process the next events and return the matches that they complete.

        Parameters
        ----------
        batch : EventStream
            The next events; timestamps must not decrease.

        Returns
        -------
        dict of str to DataFrame, pyarrow.Table or int
            For every query what :meth:`cepbench.Detector.push` of a detector of it alone returns.

        Raises
        ------
        StreamError, PartialMatchLimitError, FailedStateError
            As by :meth:`cepbench.Detector.push`.
        AdaptationError
            If the policy fails.
        """
        shown: dict[str, Any] = self._pushed(batch, shows=True)
        return shown

    def checked(self, batch: EventStream) -> tuple[EventStream, Progress]:
        """See :meth:`cepbench.engines.detection.live.Live.checked`; by the running detector."""
        checked: tuple[EventStream, Progress] = self._run.inner.checked(batch)
        return checked

    def _process(self, batch: EventStream, progress: Progress, *, shows: bool) -> Any:
        run = self._run
        # One of the parts at least, for what is shown of no event.
        parts = run.pieces(batch) if len(batch) else [batch]
        found = [run.inner.push(part) if shows else run.inner.take(part) for part in parts]
        self._progress, self.plan = progress, run.plan
        self._note_time()
        return _together(found) if shows else found

    def _end(self, *, shows: bool) -> Any:
        inner = self._run.inner
        found = inner.flush() if shows else inner.finish()
        self._note_time()
        return found

    def switch(self, plan: WorkloadPlan, reason: str = "requested") -> None:  # type: ignore[override]
        """Go on with another plan, whatever the policy.

        Parameters
        ----------
        plan : WorkloadPlan
            Plans of queries with ``STRATEGY consuming`` or ``OUTPUT non_overlap`` stay as they are.
        reason : str
            For the table of :attr:`switches`.

        Raises
        ------
        PlanError, EvaluationError, UnsupportedTaskError, AdaptationError
            If the plan is of another workload, delays matches, or cannot be run.
        """
        self._state.check()
        plan = checked_plan(self.plan.workload, plan)
        reason = text(reason, "reason", AdaptationError)
        self._run.check(plan)
        with self._state.changing("a change of the plan"):
            self._run.switch(plan, reason)
            self.plan = self._run.plan

    @property
    def averages(self) -> AveragedQueries | None:  # type: ignore[override]
        """The windowed averages and their errors; None before the first round ends."""
        found: AveragedQueries | None = self._run.averages
        return found

    @property
    def statistics(self) -> dict[str, Statistics] | None:  # type: ignore[override]
        """The windowed averages of each query; None before the first round ends."""
        return None if self.averages is None else self.averages.statistics

    def metrics(self) -> Metrics:
        """Metrics of the detection so far, summed over queries and plans."""
        self._state.check_whole()
        return replace(self._run.inner.metrics(), seconds=self._seconds)

    def latency(self) -> Latency | None:
        """Not measured."""
        return self._run.inner.latency()

    def node_metrics(self) -> NoReturn:
        """Not measured."""
        raise UnsupportedTaskError(NO_NODES)

    def node_table(self) -> NodeTable | None:
        """Not measured."""
        return self._run.inner.node_table()

    def _header(self) -> dict[str, Any]:
        settings = self._settings
        names = ("planner", "generator", "cost")
        adaptation = {name: getattr(settings, name) for name in names}
        return {"adaptation": adaptation | settings.packed(), "planned": settings.planned}

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays: dict[str, np.ndarray] = self._run.snapshot()
        return arrays

    @classmethod
    def _of_header(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        inner = WorkloadRun.inner_of(arrays)
        detector = cls(
            inner.plan.workload,
            initial=None if header["planned"] else inner.plan,
            evaluator=inner.asked,
            options=inner.options,
            output=inner.output,
            partial_match_limit=inner.partial_match_limit,
            **header["adaptation"],
        )
        detector._run.inner = inner
        return detector

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        self._run.restore(arrays, self._run.inner)
        self.plan = self._run.plan


def checked_plan(workload: Workload, given: Any) -> WorkloadPlan:
    """A plan of this workload that reports in time.

    Raises
    ------
    PlanError
        If it is none, or of another workload.
    AdaptationError
        If it delays matches.
    """
    plan = workload_plan(workload, given)
    late = [query for query in plan.order if plan.reuse(query).waits]
    if late:
        raise AdaptationError(
            f"the plan reports matches of {', '.join(late)} late, so a change of the plan would lose or "
            "double some; choose a plan without delays"
        )
    return plan


def _together(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The results of several parts of a batch together, by query."""
    return {query: _joined([its[query] for its in parts]) for query in parts[0]}


def _joined(parts: Sequence[Any]) -> Any:
    """The results of several parts of a batch together."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], int):
        return sum(parts)
    if isinstance(parts[0], pa.Table):
        return pa.concat_tables(parts)
    return pd.concat(parts, ignore_index=True)


AdaptiveDetector.of_workloads = AdaptiveWorkloadDetector
