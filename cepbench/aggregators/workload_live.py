"""Aggregation of the queries of a workload."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from cepbench.aggregators.live import Aggregator
from cepbench.aggregators.opening import task_of
from cepbench.aggregators.protocol import Row
from cepbench.aggregators.tables import check_values, floats_of
from cepbench.aggregators.workload_run import SHARED, WorkloadRun, naming
from cepbench.aggregators.workload_tables import QueryRows, check_columns, frame_of_queries
from cepbench.arguments import kind_of
from cepbench.errors import EvaluationError, PatternError
from cepbench.plans.workload import WorkloadPlan
from cepbench.streams.event_stream import EventStream
from cepbench.workloads.model import Workload

#: By query.
Rows = Mapping[str, Sequence[Row]]


class WorkloadAggregator(Aggregator):
    """Computes the values of all queries of a workload; see :class:`Aggregator`.

    The tables have a first column ``query``, and rows in the order of positions, then of the queries.
    """

    def __init__(
        self,
        pattern: Workload,
        method: str | None = None,
        *,
        sharing: WorkloadPlan | str | None = None,
        emit: str = "trigger",
        scope: str = "window",
        evaluator: str | None = None,
    ) -> None:
        self.workload = pattern
        self.sharing = sharing
        tasks = {}
        for name, query in pattern.patterns.items():
            with naming(name):
                tasks[name] = task_of(query, emit, scope, evaluator)
        check_columns(pattern.patterns)
        windows = [query.window for query in pattern.patterns.values()]
        if len({window.is_datetime for window in windows}) > 1:
            raise PatternError(
                "the windows of a workload are all durations or all numbers of units, because they are "
                "over the same stream"
            )
        self._task = next(iter(tasks.values()))
        self._given = method
        self._run: Any = WorkloadRun(tasks, _plan_of(pattern, method, sharing), method)
        self.method = ", ".join(dict.fromkeys(self._run.methods.values()))
        self._begin(
            windows[0], [False for query in pattern.patterns.values() for _ in query.aggregates]
        )

    @property
    def floats_by_query(self) -> list[list[bool]]:
        """Whether the values of each aggregate of each query are floats."""
        rest = iter(self._floats)
        return [[next(rest) for _ in q.aggregates] for q in self.workload.patterns.values()]

    def _arguments(self) -> list[str]:
        task, its = self._task, self.sharing
        text = json.dumps({name: str(query) for name, query in self.workload.patterns.items()})
        sharing = json.dumps(its.to_dict() if isinstance(its, WorkloadPlan) else its)
        return [text, self._given or "", task.emit, task.scope, task.evaluator or "", sharing]

    def _check(self, batch: EventStream) -> None:
        floats = []
        for name, query in self.workload.patterns.items():
            with naming(name):
                check_values(query, batch)
            floats += floats_of(query, batch)
        self._floats = [a or b for a, b in zip(self._floats, floats, strict=True)]

    def _no_rows(self) -> Any:
        return {name: [] for name in self.workload.patterns}

    def _frame(self, rows: Any, *, at: bool = False) -> pd.DataFrame:
        return frame_of_queries(self.rows_by_query(rows), at=at)

    def rows_by_query(self, rows: Rows) -> dict[str, QueryRows]:
        """The rows of each query, in the order of positions."""
        queries = zip(self.workload.patterns.items(), self.floats_by_query, strict=True)
        return {
            name: QueryRows(query, rows[name], floats, [row.position for row in rows[name]])
            for (name, query), floats in queries
        }


def _plan_of(
    workload: Workload, method: str | None, sharing: WorkloadPlan | str | None
) -> WorkloadPlan | None:
    """The plan of shared counters."""
    if sharing is None:
        return None
    if not isinstance(sharing, WorkloadPlan):
        raise EvaluationError(
            f"sharing is a cep.WorkloadPlan, not {kind_of(sharing)}; cep.plan_workload makes one"
        )
    if sharing.workload != workload:
        raise EvaluationError("the plan is of another workload; make one with this workload")
    if method is not None and method.casefold() != SHARED:
        raise EvaluationError(
            f"the counters of a workload plan are those of the method {SHARED}, not {method}; leave out "
            "method, or sharing"
        )
    return sharing
