"""Counts, sums and extremes over two or three compared events by trees over the ranks of their values.

See :mod:`cepbench.engines.sequence_counts.kernels.order_statistics`: the time of an event grows with the
logarithm of the number of events in the window, where ``a-seq`` and ``greta`` read all of them. SUM and AVG are
weighted counts (:mod:`cepbench.engines.aggregation.digits`); MIN and MAX come from the latest starts of matches, and
from trees without subtraction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cepbench.engines.aggregation.counting import CountingRun
from cepbench.engines.aggregation.digits import DigitWindow
from cepbench.engines.aggregation.protocol import (
    AggregateMetrics,
    AggregationMethod,
    AggregationTask,
)
from cepbench.engines.aggregation.sequences import ComparedSequence, check_items, counted_task
from cepbench.engines.runs.work import Work
from cepbench.engines.sase.order_statistics import compared_layout
from cepbench.engines.sequence_counts.integers import narrowed
from cepbench.engines.sequence_counts.kernels.tables import Events
from cepbench.engines.sequence_counts.order_statistics import ComparedWindow, warm_up
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import Operator
from cepbench.patterns.neighbours import in_orders

_NAME = "order-statistics"


class ComparedRun(CountingRun):
    """A run of ``order-statistics``."""

    _sequence: ComparedSequence

    def __init__(self, task: AggregationTask) -> None:
        super().__init__(task, _NAME, by_start=False)
        its = self._sequence
        if its.is_ordered and its.closing is None and task.scope != "trigger":
            return
        for total in self.valuation.totals:
            if total.is_maximum:
                raise UnsupportedPatternError(
                    f"{_NAME} cannot aggregate {total.kind}({total.variable}.{total.attribute}) over AND, with NOT "
                    "compared with another item, or in scope trigger; use another method, such as two-step"
                )

    def _compiled(self, name: str, *, by_start: bool) -> ComparedSequence:
        is_ordered = self._task.pattern.structure.operator is not Operator.AND
        pattern = check_items(self._task, name, in_order=is_ordered)
        for its in [pattern] if is_ordered else in_orders(pattern):
            found = compared_layout(counted_task(its, self._reader))
            if found is not None:
                return ComparedSequence(
                    its, found.layout, found.compared, found.closing, self._task.scope, is_ordered
                )
        raise UnsupportedPatternError(
            f"{name} aggregates a SEQ or an AND of two or three plain items, of which neighbours are compared, "
            "once at most and by one value of the middle one, and those beside it in an AND are of different "
            "types; NOT stands between items of a SEQ, and only before the last one it may be compared by <, <=, > "
            "or >=, with the item before it; use another method, such as two-step"
        )

    def _pushed(
        self, windows: list[Any], given: list[Events], samples: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """See :class:`CountingRun`; a further digit begins as the matches were before these events."""
        matches, *sums = windows
        totals = [
            window.push(its, samples)[0]
            if isinstance(window, ComparedWindow)
            else window.push(its, samples, matches)
            for window, its in zip(sums, given[1:], strict=True)
        ]
        found, done = matches.push(given[0], samples)
        for place, window in enumerate(sums):
            if isinstance(window, DigitWindow) and window.is_missing:
                totals[place] = narrowed(found + totals[place])
        return [(its, done) for its in (found, *totals)]

    def _ends_of_matches(self) -> tuple[int, int]:
        if self._sequence.is_ordered:
            return super()._ends_of_matches()
        every = int(self._sequence.layout.items.begins.sum())
        return every, every

    def metrics(self) -> AggregateMetrics:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.metrics`; sums of a tree are no
        counters of the papers, and updates are events that enter.
        """
        return replace(super().metrics(), work=Work())


def _open(task: AggregationTask) -> ComparedRun:
    run = ComparedRun(task)
    warm_up()
    if any(total.is_maximum for total in run.valuation.totals):
        warm_up(is_maximum=True)
    return run


ORDER_STATISTICS = AggregationMethod(_NAME, _open)
