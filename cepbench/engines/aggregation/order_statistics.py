"""Counts of two or three compared events by trees over the ranks of their values.

See :mod:`cepbench.engines.sequence_counts.kernels.order_statistics`: the time of an event grows with the
logarithm of the number of events in the window, where ``a-seq`` and ``greta`` read all of them.
"""

from __future__ import annotations

from dataclasses import replace

from cepbench.engines.aggregation.counting import CountingRun
from cepbench.engines.aggregation.protocol import (
    AggregateMetrics,
    AggregationMethod,
    AggregationTask,
)
from cepbench.engines.aggregation.sequences import ComparedSequence, check_items, counted_task
from cepbench.engines.runs.work import Work
from cepbench.engines.sase.order_statistics import compared_layout
from cepbench.engines.sequence_counts.order_statistics import warm_up
from cepbench.errors import UnsupportedPatternError

_NAME = "order-statistics"


class ComparedRun(CountingRun):
    """A run of ``order-statistics``."""

    def __init__(self, task: AggregationTask) -> None:
        super().__init__(task, _NAME, by_start=False)
        for total in self.valuation.totals:
            if total.kind != "COUNT":
                raise UnsupportedPatternError(
                    f"{_NAME} only counts, and cannot aggregate {total.kind}"
                    f"({total.variable}.{total.attribute}); use the method greta or two-step"
                )

    def _compiled(self, name: str, *, by_start: bool) -> ComparedSequence:
        pattern = check_items(self._task, name)
        found = compared_layout(counted_task(pattern, self._reader))
        if found is None:
            raise UnsupportedPatternError(
                f"{name} aggregates a SEQ of two or three plain items without NOT, of which neighbours are "
                "compared, once at most and by one value of the middle one; use another method, such as "
                "two-step"
            )
        return ComparedSequence(pattern, found.layout, found.compared, self._task.scope)

    def metrics(self) -> AggregateMetrics:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.metrics`; sums of a tree are no
        counters of the papers, and updates are events that enter.
        """
        return replace(super().metrics(), work=Work())


def _open(task: AggregationTask) -> ComparedRun:
    run = ComparedRun(task)
    warm_up()
    return run


ORDER_STATISTICS = AggregationMethod(_NAME, _open)
