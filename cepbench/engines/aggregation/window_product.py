"""Aggregates by the product of the window's matrices.

Each timestamp is an upper triangular matrix over the items of the sequence, and the totals are in
the product over the window, which two stacks keep: the time of an event does not depend on the
number of active first events. See :mod:`cepbench.engines.sequence_counts.kernels.window_product`.

Not in the paper [qi2014]_, whose A-Seq keeps counters for each first event.
"""

from __future__ import annotations

from cepbench.engines.aggregation.counting import CountingRun, warmed
from cepbench.engines.aggregation.protocol import AggregationMethod, AggregationTask


def _open(task: AggregationTask) -> CountingRun:
    return warmed(CountingRun(task, "window-product", by_start=False))


WINDOW_PRODUCT = AggregationMethod("window-product", _open)
