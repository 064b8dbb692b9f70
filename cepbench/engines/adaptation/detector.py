"""Incremental detection by plans that follow the stream's statistics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from math import nan
from typing import Any, NoReturn, Self

import pandas as pd
import pyarrow as pa

from cepbench.arguments import number, text, whole
from cepbench.arguments import seed as checked_seed
from cepbench.engines.adaptation.pattern_plans import PatternPlans
from cepbench.engines.adaptation.policies import ADAPTATION_POLICIES
from cepbench.engines.adaptation.rounds import Plans, Rounds, Switch, plan_from_dict, plan_to_dict
from cepbench.engines.adaptation.workload_plans import WorkloadPlans
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.pushes import Progress
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.matches import Found, joined
from cepbench.engines.runs.protocol import Arguments, Evaluator
from cepbench.engines.runs.result import Metrics
from cepbench.errors import AdaptationError, UnsupportedTaskError
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.model import CostModel
from cepbench.planning.planners.registry import PlanGenerator
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload, queries_from_json, queries_to_json
from cepbench.streams.event_stream import EventStream

#: Events in a round, by default.
BATCH_SIZE = 65_536

#: By how much a statistic may change, and a plan may be worse, relative to the smaller value.
THRESHOLD, GAIN = 0.5, 0.1

#: The default policy.
POLICY = "amortized"

#: Why there are no metrics by node.
NO_NODES = (
    "an adaptive evaluation has no metrics by node, as its plans have different ones; use cep.evaluate "
    "or cep.Detector with one of the plans"
)


class AdaptiveDetector(Detector):
    """Finds the matches of a pattern or a workload in batches, by plans that follow the stream's statistics.

    The matches are those of a :class:`cepbench.Detector` with any one plan, and so are the pushes that
    report them. Events are processed in rounds of ``batch_size``, counted from the first one on, and
    plans are changed before the last piece of a round that is pushed is processed. So how the stream is
    divided matters only to the first plan, which is made for what the first push has of the first
    round, and to a policy that amortizes, by work that is not the same in other batches. Under such a policy a
    workload begins without a plan, each query by itself.

    Parameters
    ----------
    pattern : Pattern, str or Workload
        A pattern or its text; or a workload, for every query of which each push gives what a detector
        of this query alone gives.
    generator, planner, evaluator, options, cost, threshold, gain, policy, initial, batch_size, seed
        See :func:`cepbench.adapt`.
    output : {"matches", "arrow", "count"}
        The result of :meth:`push`: a DataFrame or an Arrow table of the matches, or their number.
    partial_match_limit : int
        Maximum number of stored partial matches; a run that exceeds it is an error.
    position : int
        Position of the first event to be pushed; see :class:`cepbench.Detector`.

    Raises
    ------
    AdaptationError
        If an argument is invalid, a policy is unknown, a window has no length, the evaluator or the first
        plan does not fit the generator's kind of plan, the planner shares counts, or the first plan
        delays matches.
    PatternError, PlanError, EvaluationError, PlanGeneratorError, StatisticsError
        As for :class:`cepbench.Detector`, :func:`cepbench.plan` and :func:`cepbench.plan_workload`.
    UnsupportedPatternError, UnsupportedTaskError
        If the evaluator does not declare a requested capability; the message names those that do.

    Notes
    -----
    The plan of a query of a workload with ``STRATEGY consuming`` or ``OUTPUT non_overlap`` is not changed,
    as its matches depend on all events so far.
    """

    KIND = "adaptive detector"

    _run: Rounds

    def __init__(
        self,
        pattern: Pattern | str | Workload,
        *,
        generator: str | PlanGenerator | None = None,
        planner: str | None = None,
        evaluator: str | Evaluator | None = None,
        options: Mapping[str, Any] | None = None,
        cost: str | CostModel | None = None,
        threshold: float = THRESHOLD,
        gain: float = GAIN,
        policy: str = POLICY,
        initial: AnyPlan | WorkloadPlan | None = None,
        batch_size: int = BATCH_SIZE,
        output: str = "matches",
        partial_match_limit: int = PARTIAL_MATCH_LIMIT,
        position: int = 0,
        seed: int = 0,
    ) -> None:
        asked = Arguments(
            evaluator=evaluator,
            options=options,
            output=output,
            partial_match_limit=partial_match_limit,
            position=position,
        )
        how: dict[str, Any] = {
            "generator": generator,
            "planner": planner,
            "cost": cost,
            "initial": initial,
            "policy": ADAPTATION_POLICIES.find(policy),
            "threshold": number(threshold, "threshold", AdaptationError, least=0.0),
            "gain": number(gain, "gain", AdaptationError, least=0.0),
            "batch_size": whole(batch_size, "batch_size", AdaptationError, least=1),
            "seed": checked_seed(seed, AdaptationError),
        }
        self._plans: Plans
        plan: Any
        opened: Any = None
        queries = queries_from(pattern)
        if queries.by_query:
            self._plans, plan, opened = WorkloadPlans.of(queries, asked, **how)
        else:
            self._plans, plan = PatternPlans.of(queries, asked, **how)
        self.output, self.partial_match_limit = output, partial_match_limit
        self.options = dict(options or {})
        self._start(position)
        self._run = Rounds(self._plans, plan, opened)
        if not queries.by_query:
            self.pattern, self.evaluator = queries, self._run.inner.evaluator

    @property
    def plan(self) -> Any:  # type: ignore[override]
        """The running plan."""
        return self._run.plan

    @property
    def batch_size(self) -> int:
        """Events in a round."""
        return self._plans.batch_size

    @property
    def switches(self) -> pd.DataFrame:
        """One row per change of the plan; see :class:`cepbench.engines.adaptation.adapt.AdaptiveResult`."""
        names = [field.name for field in fields(Switch)]
        return pd.DataFrame([vars(switch) for switch in self._run.switches], columns=names)

    @property
    def averages(self) -> Any:
        """The windowed averages and their errors; None before the first round ends."""
        return self._run.averages

    @property
    def statistics(self) -> Any:
        """The windowed averages as plan generators take them, of a workload by query; None before the first round ends."""
        return None if self.averages is None else self.averages.statistics

    def evaluator_of(self, query: str) -> str:
        """What computes a query of a workload at present: an evaluator, or the way of reuse."""
        return self._run.inner.evaluator_of(query)

    def checked(self, batch: EventStream) -> tuple[EventStream, Progress]:
        """See :meth:`cepbench.engines.detection.live.Live.checked`; by the running detector."""
        return self._run.inner.checked(self._run.marked(batch, self.position))

    def _process(self, batch: EventStream, progress: Progress, *, shows: bool) -> Any:
        run, found = self._run, []
        # One of the parts at least, for what is shown of no event.
        for part in run.pieces(batch) if len(batch) else [batch]:
            its = run.inner.take(part)
            run.note(its)
            if shows:  # before its events are no longer kept
                self._note_time()
                its = self._shown(its)
                self._began = time.perf_counter()
            found.append(its)
        self._progress = progress
        self._note_time()
        return _together(found)

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        # The running detector names a user-defined evaluator's failures.
        return function(*arguments)

    def _counted(self, given: Any, *, ended: bool) -> Any:
        return given

    def _shown(self, found: Any) -> Any:
        return self._run.inner._shown(found)

    def switch(self, plan: AnyPlan | WorkloadPlan, reason: str = "requested") -> None:
        """Go on with another plan, whatever the policy.

        Parameters
        ----------
        plan : OrderPlan, TreePlan, UnionPlan or WorkloadPlan
            Of a workload, plans of queries with ``STRATEGY consuming`` or ``OUTPUT non_overlap`` stay as
            they are.
        reason : str
            For the table of :attr:`switches`.

        Raises
        ------
        PlanError, EvaluationError, UnsupportedTaskError, AdaptationError
            If the plan does not fit the pattern, the evaluator or the generator's kind of plan, is of
            another workload, delays matches, or cannot be run.
        """
        self._state.check()
        plan = self._run.checked(plan)
        reason = text(reason, "reason", AdaptationError)
        with self._state.changing("a change of the plan"):
            self._run.switch(plan, reason)

    def metrics(self) -> Metrics:
        """Metrics of the detection so far, summed over plans, and over the queries of a workload."""
        self._state.check_whole()
        found = replace(self._run.inner.metrics(), seconds=self._seconds)
        return replace(found, mean_partial_matches=nan) if self._run.switches else found

    def latency(self) -> Latency | None:
        """Not measured."""
        return self._run.inner.latency()

    def node_metrics(self) -> NoReturn:
        """Not available, as plans have different nodes.

        Raises
        ------
        UnsupportedTaskError
            Always.
        """
        raise UnsupportedTaskError(NO_NODES)

    def node_table(self) -> None:
        """None, as plans have different nodes."""

    def check_saves(self) -> None:
        """See :meth:`cepbench.Detector.check_saves`."""
        self._run.inner.check_saves()

    def _header(self) -> dict[str, Any]:
        plans, first = self._plans, self._run.first
        return {
            **queries_to_json(plans.queries),
            **plans.asked.packed(),
            "adaptation": plans.packed(),
            "initial": None if plans.planned else plan_to_dict(first),
        }

    @classmethod
    def _of_header(cls, header: Mapping[str, Any]) -> Self:
        initial, asked = header["initial"], Arguments.unpacked(header)
        names = ("evaluator", "options", "output", "partial_match_limit", "position")
        return cls(
            queries_from_json(header),
            initial=None if initial is None else plan_from_dict(initial),
            **{name: getattr(asked, name) for name in names},
            **header["adaptation"],
        )


def _together(parts: Sequence[Any]) -> Any:
    """The results of several parts of a batch together, by query if they are."""
    first = parts[0]
    if len(parts) == 1:
        return first
    if isinstance(first, Mapping):
        return {query: _together([its[query] for its in parts]) for query in first}
    if isinstance(first, int):
        return sum(parts)
    if isinstance(first, Found):
        some = [its for its in parts if its.number] or [first]
        branches = zip(*(its.matches for its in some), strict=True)
        listed = (None if None in its else joined(its) for its in branches)
        return Found(sum(its.number for its in some), tuple(listed))
    if isinstance(first, pa.Table):
        return pa.concat_tables(parts)
    return pd.concat([its for its in parts if len(its)] or [first], ignore_index=True)
