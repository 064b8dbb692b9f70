"""Aggregation of a workload from matches that its queries reuse: E-Cube [liu2011]_, section 4.G.

Each query's matches come from scratch, or from those of a more general or more specific query, as a
:class:`~cepbench.planning.plans.workload.WorkloadPlan` with sources says, and are folded as ``two-step`` does.

Differs from the paper: values after every event instead of one for each window, and matches are folded
into totals as they come, so that only those are kept that a query yet to be computed reuses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cepbench.engines.aggregation.protocol import AggregateMetrics, AggregationTask, Row
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.two_step import TwoStepRun, matching
from cepbench.engines.detection.rounds import Rounds
from cepbench.engines.detection.workload_detector import WorkloadDetector
from cepbench.errors import EvaluationError
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream

#: The name of the method, which is of workloads only.
E_CUBE = "e-cube"

#: Events of the first round, and the matches that a round should have: a round costs time of its own,
#: and matches take memory.
_ROUND, _MATCHES = 1 << 12, 1 << 21


class ReuseRun(Stateful):
    """A run of ``e-cube``, by a plan with sources; ``methods`` are by query.

    An EvaluationError if matches of the plan may come late.
    """

    SAVED = ("_updates", "_detector", "_runs")

    def __init__(self, tasks: Mapping[str, AggregationTask], plan: WorkloadPlan) -> None:
        if plan.delays:
            raise EvaluationError(
                "by a plan with delays some matches come after the event whose value counts them; plan "
                "with delays=False"
            )
        self.methods = dict.fromkeys(tasks, E_CUBE)
        workload = plan.workload.without_aggregates()
        evaluator = next(iter(tasks.values())).evaluator
        if evaluator is None and not plan.plans:
            scratch = [q for q in plan.order if plan.reuse(q).source is None]
            chosen = {matching(plan.computed.patterns[query], None)[1] for query in scratch}
            evaluator = chosen.pop() if len(chosen) == 1 else None
        self._detector = WorkloadDetector(
            workload, replace(plan, workload=workload), evaluator=evaluator
        )
        self._runs = {name: TwoStepRun(task, finds=False) for name, task in tasks.items()}
        self._rounds = Rounds(_ROUND, _MATCHES)
        self._updates = 0

    def prepare(self, batch: EventStream) -> None:
        """Check that the detector takes the next events."""
        self._detector.prepare(batch)

    def push(self, batch: EventStream) -> dict[str, Sequence[Row]]:
        """Process the next events; returns the rows to report of each query."""
        rows: dict[str, list[Rows]] = {name: [] for name in self._runs}
        for part in self._rounds.parts(batch, lambda: self._updates):
            found = self._detector.take(part)
            self._updates += sum(its.number for its in found.values())
            for name, run in self._runs.items():
                rows[name].append(run.folded(part, found[name]))
        return {name: Rows.joined(its) for name, its in rows.items()}

    def value(self, time: int) -> dict[str, Sequence[Row]]:
        """The value of each query and group at a time; changes nothing."""
        return {name: run.value(time) for name, run in self._runs.items()}

    def metrics(self) -> AggregateMetrics:
        """Metrics so far, summed over the queries; the maxima may be of different times."""
        found = AggregateMetrics.of_runs([run.metrics() for run in self._runs.values()])
        return replace(found, updates=self._updates, work=self._detector.metrics().work)
