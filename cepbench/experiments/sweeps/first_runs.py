"""First runs of a comparison, which no clock counts: all contenders find the same."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from cepbench.engines.aggregation.aggregate import aggregate
from cepbench.engines.aggregation.agreement import difference
from cepbench.engines.aggregation.tables import check_values
from cepbench.engines.detection.evaluate import evaluate
from cepbench.errors import ExperimentError, errors_naming
from cepbench.experiments.sweeps.cells import ERROR, OK, Cell
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import run_arguments
from cepbench.experiments.sweeps.rotation import Agreement, Progress
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, check_types


class FirstValues:
    """First runs of aggregation methods; other values than those of the first are an ``error``.

    A StreamError if the stream does not fit the pattern, whatever the method.
    """

    def __init__(self, pattern: Pattern, stream: EventStream, progress: Progress) -> None:
        check_fit(pattern.without_aggregate(), stream)
        check_types(pattern, stream)
        check_values(pattern, stream)
        self._agreement = Agreement(lambda found, first: difference(found, first, pattern))
        self._stream, self._progress = stream, progress

    def __call__(self, cell: Cell, pattern: Pattern, plan: None) -> Mapping[str, Any]:
        self._progress.add(1)
        found = aggregate(pattern, self._stream, cell.generator).values
        if wrong := self._agreement.violated(cell.generator, found):
            return {"status": ERROR, "reason": f"not the values of {wrong[0]}: {wrong[1]}"}
        return {}


class FirstMatches:
    """First runs of workloads; other matches than those of the first are an ExperimentError.

    Their numbers are compared with those of all later runs.

    ``computed``: planner and evaluator → the queries that its plan computes from others.

    An ExperimentError or StreamError for queries that no run could evaluate on the stream.
    """

    def __init__(
        self, workload: Workload, stream: EventStream, grid: Grid, progress: Progress
    ) -> None:
        for query, pattern in workload.patterns.items():
            if pattern.aggregates:
                raise ExperimentError(
                    f"query {query!r} has AGG {pattern.aggregates[0]}; of a workload, matches are "
                    "compared. cep.aggregate(workload, stream, sharing=...) computes its values; for "
                    "matches use pattern.without_aggregate()"
                )
            with errors_naming(query):
                check_types(pattern, stream)
                check_fit(pattern, stream)
        self._workload, self._stream, self._grid, self._progress = workload, stream, grid, progress
        self._agreement = Agreement()
        self.computed: dict[tuple[str, str], str] = {}

    def __call__(self, cell: Cell, workload: Workload, plan: WorkloadPlan) -> Mapping[str, Any]:
        self._progress.add(1)
        ways = map(plan.reuse, plan.order)
        self.computed[cell.generator, cell.evaluator] = "; ".join(
            f"{way.query} {way}" for way in ways if way.source is not None
        )
        how = {**run_arguments(cell, self._grid), "output": "matches"}
        found = evaluate(workload, self._stream, plan, **how)
        for query, result in found.items():
            self._compare(cell.generator, cell.evaluator, query, result.metrics.matches)
            hashed = pd.util.hash_pandas_object(result.matches, index=False).to_numpy(np.uint64)
            # Of the matches in any order.
            its = int(hashed.sum(dtype=np.uint64))
            self._compare(cell.generator, cell.evaluator, query, its, "matches")
        return {}

    def check(self, row: Mapping[str, Any]) -> int:
        """Compare the numbers of matches of a finished run; how many were reused."""
        if row["status"] != OK:
            return 0
        steps = json.loads(row["details"])["steps"]
        for step in steps:
            if step["query"] in self._workload.patterns:
                self._compare(row["generator"], row["evaluator"], step["query"], step["results"])
        return sum(step["reused"] for step in steps)

    def _compare(
        self, planner: str, evaluator: str, query: str, found: int, what: str = "number"
    ) -> None:
        run = f"{planner} on {evaluator}"
        if wrong := self._agreement.violated(run, found, (query, what)):
            raise ExperimentError(
                f"{run} finds other matches of query {query!r} than {wrong[0]}; one of both is wrong. "
                "cep.check_evaluator finds out about a user-defined evaluator"
            )
