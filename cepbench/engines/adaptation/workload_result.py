"""Evaluation of a workload on a finite stream by plans that follow its statistics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from cepbench.engines.adaptation.workload_averages import AveragedQueries
from cepbench.engines.adaptation.workload_detector import AdaptiveWorkloadDetector
from cepbench.engines.detection.workload_evaluate import workload_plan
from cepbench.engines.runs.matches import Found, matches_by_branch
from cepbench.engines.runs.result import Metrics, Result
from cepbench.engines.runs.workload_result import WorkloadMatches
from cepbench.errors import errors_naming
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_types

#: Columns of averages by round.
_COLUMNS = ["position", "time", "quantity", "variables", "value"]


class AdaptiveWorkloadMatches(WorkloadMatches):
    """The results of a workload's queries by plans that followed the stream.

    Parameters
    ----------
    results : mapping of str to Result
    metrics : Metrics
    stream : EventStream
    plan : WorkloadPlan
    switches : DataFrame
    averages : sequence of (int, int, AveragedQueries)

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
        rows = [
            (query, position, time, *row[:3])
            for position, time, averages in self.averages
            for query, its in averages.by_query.items()
            for row in its.statistics.rows()
        ]
        table = statistics_frame(row[1:] for row in rows)
        table.insert(0, "query", [row[0] for row in rows])
        return table


def statistics_frame(rows: Iterable[Sequence[Any]]) -> pd.DataFrame:
    """Averages by round as a table.

    Parameters
    ----------
    rows : iterable of (int, int, str, str, float)
        Position and timestamp, quantity, variables and value.
    """
    types = {"position": np.int64, "time": np.int64, "value": np.float64}
    return pd.DataFrame(list(rows), columns=_COLUMNS).astype(types)


def adapt_workload(
    workload: Workload, stream: EventStream, **given: Any
) -> AdaptiveWorkloadMatches:
    """Find the matches of every query of a workload; see :func:`cepbench.adapt`."""
    if workload.hierarchy is None and stream.hierarchy is not None:
        workload = Workload(workload.patterns, hierarchy=stream.hierarchy)
    elif stream.hierarchy is None:
        stream = stream.with_hierarchy(workload.hierarchy)
    for query, pattern in workload.patterns.items():
        with errors_naming(query):
            check_types(pattern, stream)
    # What matches return is read from the whole stream.
    patterns = {query: replace(its, returns=()) for query, its in workload.patterns.items()}
    bare = Workload(patterns, hierarchy=workload.hierarchy)
    if given["initial"] is not None:
        given["initial"] = replace(workload_plan(workload, given["initial"]), workload=bare)
    detector = AdaptiveWorkloadDetector(bare, **given)
    found: list[Mapping[str, Found]] = []
    rounds = []
    for batch in stream.batches(detector.batch_size):
        found += detector.take(batch)
        if len(batch) == detector.batch_size and detector.averages is not None:
            rounds.append((detector.position - 1, int(batch.timestamps[-1]), detector.averages))
    found.append(detector.finish())
    results = {}
    for query, pattern in workload.patterns.items():
        its = [one[query] for one in found]
        number = sum(one.number for one in its)
        results[query] = Result(
            pattern=pattern,
            plan=detector.plan.plans.get(query),
            evaluator=detector.evaluator_of(query),
            metrics=Metrics(events=len(stream), matches=number),
            node_table=None,
            found=matches_by_branch(pattern, its) if detector.output != "count" else None,
            events=stream if pattern.returns else None,
        )
    plan = replace(detector.plan, workload=workload)
    known = (stream, plan, detector.switches, rounds)
    return AdaptiveWorkloadMatches(results, detector.metrics(), *known)
