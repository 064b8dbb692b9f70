"""Incremental detection by plans that follow the stream's statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
import pandas as pd

from cepbench.arguments import number, seed, text, whole
from cepbench.engines.adaptation.averages import Averaged
from cepbench.engines.adaptation.policies import ADAPTATION_POLICIES
from cepbench.engines.adaptation.rounds import Switch
from cepbench.engines.adaptation.run import AdaptiveRun, PatternSettings
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.planned import generator_for
from cepbench.engines.detection.pushes import Progress
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, task_for, unpacked
from cepbench.engines.runs.protocol import Arguments, Evaluator, Task
from cepbench.errors import AdaptationError, UnsupportedTaskError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.bounds import check_bounded
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.models import cost_from
from cepbench.planning.planners.registry import PlanGenerator, find_generator
from cepbench.planning.plans.given import plan_from
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

#: The default cost of a pattern's plans.
COST = "throughput"

#: Events in a round, by default.
BATCH_SIZE = 65_536

#: By how much a statistic may change, and a plan may be worse, relative to the smaller value.
THRESHOLD, GAIN = 0.5, 0.1

#: Why there are no metrics by node.
NO_NODES = (
    "an adaptive evaluation has no metrics by node, as its plans have different ones; use cep.evaluate "
    "or cep.Detector with one of the plans"
)


class AdaptiveDetector(Detector):
    """Finds the matches of a pattern in batches, by plans that follow the stream's statistics.

    The matches are those of a :class:`cepbench.Detector` with any one plan, and so are the pushes that
    report them. Events are processed in rounds of ``batch_size``, counted from the first one on, and
    plans are changed before the last piece of a round that is pushed is processed. So how the stream is
    divided matters only to the first plan, which is made for what the first push has of the first
    round.

    Parameters
    ----------
    pattern : Pattern, str or Workload
        A pattern or its text; or a workload, see
        :class:`~cepbench.engines.adaptation.workload_detector.AdaptiveWorkloadDetector`.
    generator, planner, evaluator, options, cost, threshold, gain, policy, initial, batch_size, seed
        See :func:`cepbench.adapt`.
    output : {"matches", "arrow", "count"}
        The result of :meth:`push`: a DataFrame or an Arrow table of the matches, or their number.
    partial_match_limit : int
        Maximum number of stored partial matches; a run that exceeds it is an error.
    position : int
        Position of the first event to be pushed; see :class:`cepbench.Detector`.

    Attributes
    ----------
    plan : OrderPlan, TreePlan or UnionPlan
        The running plan.

    Raises
    ------
    AdaptationError
        If an argument is invalid, a policy is unknown, the window has no length, or the evaluator or
        the first plan does not fit the generator's kind of plan.
    PatternError, PlanError, EvaluationError, PlanGeneratorError, StatisticsError
        As for :class:`cepbench.Detector` and :func:`cepbench.plan`.
    UnsupportedPatternError, UnsupportedTaskError
        If the evaluator does not declare a requested capability; the message names those that do.
    """

    KIND = "adaptive detector"

    HEADER: ClassVar[Mapping[str, Any]] = {**Detector.HEADER, "adaptation": dict, "planned": bool}

    _run: Any

    def __init__(
        self,
        pattern: Pattern | str,
        *,
        generator: str | PlanGenerator | None = None,
        planner: str | None = None,
        evaluator: str | Evaluator | None = None,
        options: Mapping[str, Any] | None = None,
        cost: str | CostModel | None = None,
        threshold: float = THRESHOLD,
        gain: float = GAIN,
        policy: str = "threshold",
        initial: AnyPlan | None = None,
        batch_size: int = BATCH_SIZE,
        output: str = "matches",
        partial_match_limit: int = PARTIAL_MATCH_LIMIT,
        position: int = 0,
        seed: int = 0,
    ) -> None:
        pattern = pattern_from(pattern)
        if planner is not None:
            raise AdaptationError(
                "planner= is of workloads; the plans of a pattern are made by generator="
            )
        model = cost_from(COST if cost is None else cost)
        how = checked(threshold, gain, policy, batch_size, seed)
        if how["policy"].name == "bound":
            check_bounded(model)
        self._settings = PatternSettings(
            generator=generator_for([pattern], evaluator, model)
            if generator is None
            else find_generator(generator),
            cost=model,
            planned=initial is None,
            **how,
        )
        if not pattern.window.length:
            raise AdaptationError(
                "a window of length 0 has no arrival rates to adapt to; use cep.evaluate or "
                "cep.Detector with a plan"
            )
        # Made without statistics, to check all arguments before the first event.
        problems = branch_problems(pattern, equal_rates(pattern), cost=self._settings.cost)
        plan = self._settings.plan(pattern, problems)
        asked = Arguments(
            evaluator=evaluator,
            options=options,
            output=output,
            partial_match_limit=partial_match_limit,
            position=position,
        )
        task = task_for(pattern, plan if initial is None else plan_from(initial), asked)
        assert task.plan is not None  # given or made above
        self._check_kind(task.plan)
        chosen = task.evaluator
        check_runs(chosen, self._settings.generator)

        def opened(task: Task) -> AdaptiveRun:
            return AdaptiveRun(replace(task, evaluator=chosen), self._settings)

        adaptive = replace(
            chosen, open=opened, implementation=None, node_times=False, adopts=False, arrival=True
        )
        self._open(replace(task, evaluator=adaptive))
        self._read([self.pattern], exact=not chosen.is_builtin)

    @property
    def batch_size(self) -> int:
        """Events in a round."""
        return self._settings.batch_size

    @property
    def switches(self) -> pd.DataFrame:
        """One row per change of the plan; see :class:`cepbench.engines.adaptation.adapt.AdaptiveResult`."""
        return switches_frame(self._run.switches)

    @property
    def averages(self) -> Averaged | None:
        """The windowed averages and their errors; None before the first round ends."""
        return self._run.averages

    @property
    def statistics(self) -> Statistics | None:
        """The windowed averages as plan generators take them; None before the first round ends."""
        return None if self.averages is None else self.averages.statistics

    def _process(self, batch: EventStream, progress: Progress, *, shows: bool) -> Any:
        found = super()._process(batch, progress, shows=shows)
        self.plan = self._run.plan
        return found

    def prepare(self, batch: EventStream) -> None:
        """See :meth:`cepbench.Detector.prepare`."""
        if len(batch):
            self._run.prepare(batch)

    def switch(self, plan: AnyPlan, reason: str = "requested") -> None:
        """Go on with another plan, whatever the policy.

        Parameters
        ----------
        plan : OrderPlan, TreePlan or UnionPlan
        reason : str
            For the table of :attr:`switches`.

        Raises
        ------
        PlanError, EvaluationError, UnsupportedTaskError, AdaptationError
            If the plan does not fit the pattern, the evaluator or the generator's kind of plan.
        """
        self._state.check()
        task_for(self.pattern, plan, self._task)
        self._check_kind(plan)
        reason = text(reason, "reason", AdaptationError)
        self._called(self._run.check, plan)
        with self._state.changing("a change of the plan"):
            self._called(self._run.switch, plan, reason)
            self.plan = plan

    def node_metrics(self) -> NoReturn:
        """Not available, as plans have different nodes.

        Raises
        ------
        UnsupportedTaskError
            Always.
        """
        raise UnsupportedTaskError(NO_NODES)

    def _restore(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        super()._restore(header, arrays)
        self.plan = self._run.plan

    def _check_kind(self, plan: AnyPlan) -> None:
        generator = self._settings.generator
        if plan.kind != generator.kind:
            raise AdaptationError(
                f"{plan.text} is one of the {plan.kind} plans and {generator.name} makes "
                f"{generator.kind} plans, whose costs are not comparable; give one of these, or choose "
                "another generator"
            )

    def _header(self) -> dict[str, Any]:
        settings = self._settings
        adaptation = {"generator": settings.generator.name, "cost": settings.cost.name}
        return {
            **super()._header(),
            "adaptation": adaptation | settings.packed(),
            "planned": settings.planned,
        }

    @classmethod
    def _of_header(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Self:
        task = unpacked(header)
        return cls(
            task.pattern,
            initial=None if header["planned"] else task.plan,
            evaluator=task.evaluator,
            options=task.options,
            output=task.output,
            partial_match_limit=task.partial_match_limit,
            position=task.position,
            **header["adaptation"],
        )


def switches_frame(switches: list[Switch]) -> pd.DataFrame:
    """One row per switch, with the fields of :class:`~cepbench.engines.adaptation.run.Switch`."""
    names = [field.name for field in fields(Switch)]
    return pd.DataFrame([vars(switch) for switch in switches], columns=names)


def check_runs(evaluator: Evaluator, generator: PlanGenerator) -> None:
    """Check that an evaluator runs all plans of a generator.

    Raises
    ------
    AdaptationError
        If it does not; the message names those that do.
    """
    kind = generator.kind
    if kind not in evaluator.kinds:
        able = [each.name for each in EVALUATORS.values() if kind in each.kinds]
        raise AdaptationError(
            f"the evaluator {evaluator.name} does not run all {kind} plans, so it may not run the "
            f"next one of {generator.name}; {', '.join(able)} can"
        )


def checked(
    threshold: float, gain: float, policy: str, batch_size: int, seed_: int
) -> dict[str, Any]:
    """The fields of :class:`~cepbench.engines.adaptation.rounds.Settings` from arguments.

    Raises
    ------
    AdaptationError
        If one is invalid.
    """
    return {
        "policy": ADAPTATION_POLICIES.find(policy),
        "threshold": number(threshold, "threshold", AdaptationError, least=0.0),
        "gain": number(gain, "gain", AdaptationError, least=0.0),
        "batch_size": whole(batch_size, "batch_size", AdaptationError, least=1),
        "seed": seed(seed_, AdaptationError),
    }


def equal_rates(pattern: Pattern) -> Statistics:
    """Statistics with which arguments are checked before the first event."""
    return Statistics(
        cardinalities=dict.fromkeys(pattern.names, 1.0), stream_rate=1.0, partitions=1.0
    )
