"""The front end: evaluation of a finite stream by plans that follow its statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from cepbench.engines.adaptation.averages import Averaged, AveragedQueries
from cepbench.engines.adaptation.detector import (
    BATCH_SIZE,
    GAIN,
    NO_NODES,
    POLICY,
    THRESHOLD,
    AdaptiveDetector,
)
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT
from cepbench.engines.detection.workload_evaluate import workload_plan
from cepbench.engines.runs.matches import Found, matches_by_branch
from cepbench.engines.runs.protocol import Evaluator
from cepbench.engines.runs.result import Metrics, Result
from cepbench.engines.runs.workload_result import WorkloadMatches
from cepbench.errors import UnsupportedTaskError, errors_naming
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.model import CostModel
from cepbench.planning.planners.registry import PlanGenerator
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload, of_queries
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_types, reporting_missing_types, under_one_hierarchy
from cepbench.streams.given import Frame, events_from

#: Columns of averages by round.
_COLUMNS = ["query", "position", "time", "quantity", "variables", "value"]


@dataclass(frozen=True, kw_only=True, repr=False)
class AdaptiveResult(Result):
    """Matches and metrics of an adaptive evaluation; ``plan`` is the last one.

    Peaks of the metrics are the largest of all plans, partial matches and comparisons include those
    for rebuilding, ``mean_partial_matches`` is NaN if the plan was changed.

    Attributes
    ----------
    switches : DataFrame
        One row per change of the plan: ``position`` of the first event that is new to the new plan;
        ``time``, the timestamp of the event before; ``old`` and ``new``, the plans as texts;
        ``predicted_gain``, how much more the old plan would cost, relative to the new one;
        ``reason``; ``seconds`` for planning and rebuilding.
    averages : sequence of (int, int, Averaged)
        Position and timestamp of the last event of each round, and the averages then.
    """

    switches: pd.DataFrame = field(repr=False)
    averages: Sequence[tuple[int, int, Averaged]] = field(repr=False)

    @cached_property
    def statistics(self) -> pd.DataFrame:
        """The windowed averages at the end of each round.

        Columns: ``position`` and ``time`` of its last event, ``quantity``, ``variables`` and
        ``value``, as ``Statistics.rows`` gives them.
        """
        averages = [(at, time, {"": its.statistics}) for at, time, its in self.averages]
        return _statistics_frame(averages).drop(columns="query")

    @property
    def nodes(self) -> NoReturn:
        """Not available, as plans have different nodes.

        Raises
        ------
        UnsupportedTaskError
            Always.
        """
        raise UnsupportedTaskError(NO_NODES)


class AdaptiveWorkloadMatches(WorkloadMatches):
    """The results of a workload's queries by plans that followed the stream.

    Attributes
    ----------
    plan : WorkloadPlan
        The last one.
    switches : DataFrame
        As :class:`cepbench.engines.adaptation.adapt.AdaptiveResult` has them.
    averages : sequence of (int, int, AveragedQueries)
        Position and timestamp of the last event of each round, and the averages then.
    """

    def __init__(
        self,
        results: Mapping[str, Result],
        metrics: Metrics,
        stream: EventStream,
        plan: WorkloadPlan,
        switches: pd.DataFrame,
        averages: Sequence[tuple[int, int, AveragedQueries]],
    ) -> None:
        super().__init__(results, (), metrics, stream)
        self.plan = plan
        self.switches = switches
        self.averages = averages

    @property
    def steps(self) -> pd.DataFrame:
        """Each query, its ``source`` in the last plan, and the number of ``results``."""
        rows = [
            (query, self.plan.reuse(query).source, its.metrics.matches)
            for query, its in self.items()
        ]
        return pd.DataFrame(rows, columns=["query", "source", "results"])

    @cached_property
    def statistics(self) -> pd.DataFrame:
        """The windowed averages at the end of each round.

        Columns: ``query``, ``position`` and ``time`` of its last event, ``quantity``, ``variables`` and
        ``value``, as ``Statistics.rows`` gives them.
        """
        return _statistics_frame([(at, time, its.statistics) for at, time, its in self.averages])


def _statistics_frame(
    averages: Iterable[tuple[int, int, Mapping[str, Statistics]]],
) -> pd.DataFrame:
    """The averages of each query at the end of each round."""
    rows = [
        (query, position, time, *row[:3])
        for position, time, by_query in averages
        for query, its in by_query.items()
        for row in its.rows()
    ]
    types = {"position": np.int64, "time": np.int64, "value": np.float64}
    return pd.DataFrame(rows, columns=_COLUMNS).astype(types)


def adapt(
    pattern: Pattern | str | Workload,
    stream: EventStream | Frame,
    *,
    type: str | None = None,
    time: str | None = None,
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
    seed: int = 0,
    missing_types: str = "warn",
) -> AdaptiveResult | AdaptiveWorkloadMatches:
    """Find all matches of a pattern or a workload in ``stream`` by plans that follow its statistics.

    The stream is processed in rounds of ``batch_size`` events. Before each one the policy compares the
    averages of the arrival rates and selectivities over the last rounds, sampled of their last events, with the
    running plan, and may have the generator or planner make a new one. The
    new plan takes over the state of the old one, or rebuilds it from the events of the last windows. The
    matches are those of :func:`cepbench.evaluate` with any one plan.

    Parameters
    ----------
    pattern : Pattern, str or Workload
        A pattern, its text, or several queries.
    stream, type, time
        See :func:`cepbench.evaluate`.
    generator : str or PlanGenerator, optional
        A name in ``PLAN_GENERATORS``, in any case; by default that of
        :func:`cepbench.plan`, of orders for an evaluator that does not run all trees. Of a workload the generator for
        the queries that reuse none, by default none; see :func:`cepbench.plan_workload`.
    planner : str, optional
        Of a workload: a name in ``WORKLOAD_PLANNERS``, by default CHASE.
    evaluator, options, output, partial_match_limit
        See :func:`cepbench.evaluate`.
    cost : str or CostModel, optional
        The cost that plans minimize, and by which they are compared; by default ``throughput``, of a
        workload ``calibrated``.
    threshold : float
        By how much a statistic may change before the policies ``threshold`` and ``amortized`` plan
        anew: the larger value over the smaller one, minus 1; t in [mei2009]_.
    gain : float
        By how much the running plan has to cost more than a new one, relative to that, for the new
        one to be installed; c in [mei2009]_.
    policy : str
        A name in ``ADAPTATION_POLICIES``, in any case; by default ``amortized``, by which adapting is a
        small share of the run.
    initial : OrderPlan, TreePlan, UnionPlan or WorkloadPlan, optional
        The first plan; by default one is made for the statistics of the first round.
    batch_size : int
        Events in a round.
    seed : int
        Seed of samples and randomized generators.
    missing_types : {"warn", "error"}
        As in :func:`cepbench.evaluate`.

    Raises
    ------
    AdaptationError
        If an argument is invalid, a policy is unknown or fails, or a window has no length; of a
        workload, if the first plan delays matches.
    PatternError, PlanError, EvaluationError, StreamError, PlanGeneratorError, StatisticsError
        As for :func:`cepbench.evaluate`, :func:`cepbench.plan` and :func:`cepbench.plan_workload`.
    UnsupportedPatternError, UnsupportedTaskError
        If the evaluator does not declare a requested capability; the message names those that do.

    Notes
    -----
    Source: [mei2009]_, section 5.3, for any generator, evaluator and cost; of workloads [liu2011]_,
    section 6.

    Differs from the papers: the default policy does not plan at every change that exceeds the threshold, but
    where that pays (``policy="threshold"`` is the papers'); it samples a bounded number of events of each round, and pairs within a
    round only; a rebuilt run sees the events of one window again, or of three if the pattern negates,
    has groups or consumes events.
    """
    given: dict[str, Any] = {
        "generator": generator,
        "planner": planner,
        "evaluator": evaluator,
        "options": options,
        "cost": cost,
        "threshold": threshold,
        "gain": gain,
        "policy": policy,
        "initial": initial,
        "batch_size": batch_size,
        "output": output,
        "partial_match_limit": partial_match_limit,
        "seed": seed,
    }
    queries, stream = under_one_hierarchy(queries_from(pattern), events_from(stream, type, time))
    with reporting_missing_types(missing_types):
        for query, its in queries.queries.items():
            with errors_naming(query):
                check_types(its, stream)
    # What matches return is read from the whole stream.
    bare = {query: replace(its, returns=()) for query, its in queries.queries.items()}
    plain: Any = of_queries(bare, queries.hierarchy)
    if queries.by_query and initial is not None:
        given["initial"] = replace(workload_plan(queries, initial), workload=plain)
    detector = AdaptiveDetector(plain, **given)
    found, rounds = [], []
    for batch in stream.batches(detector.batch_size):
        found.append(detector.take(batch))
        if len(batch) == detector.batch_size and detector.averages is not None:
            rounds.append((detector.position - 1, int(batch.timestamps[-1]), detector.averages))
    found.append(detector.finish())

    def result(kind: Any, query: str, its: Sequence[Found], plan: Any, **more: Any) -> Any:
        asked = queries.queries[query]
        return kind(
            pattern=asked,
            plan=plan,
            node_table=None,
            found=matches_by_branch(asked, its) if output != "count" else None,
            events=stream if asked.returns else None,
            **more,
        )

    if not queries.by_query:
        return result(
            AdaptiveResult, "", found, detector.plan, evaluator=detector.evaluator,
            metrics=detector.metrics(), switches=detector.switches, averages=rounds,
        )  # fmt: skip
    results = {}
    for query in queries.queries:
        own = [one[query] for one in found]
        results[query] = result(
            Result, query, own, detector.plan.plans.get(query),
            evaluator=detector.evaluator_of(query),
            metrics=Metrics(events=len(stream), matches=sum(one.number for one in own)),
        )  # fmt: skip
    plan = replace(detector.plan, workload=queries)
    known = (stream, plan, detector.switches, rounds)
    return AdaptiveWorkloadMatches(results, detector.metrics(), *known)
