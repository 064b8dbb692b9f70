"""A-Seq: a row of prefix counters for each active first event (START).

SEM of the paper for windows, recounting for NOT, and a set of counters for each value of
``[attribute]`` and GROUP BY (HPC). See :mod:`cepbench.engines.sequence_counts.kernels.starts`.

Source: [qi2014]_, sections 3.2 to 3.4.

Differs from the paper: counters stand in columns, so that an update is one vector addition; conditions
between the first item and another one choose the rows; sums and extreme values are those of the
matches, which the paper's section 5 misses; without GROUP BY the value falls when a START of any
partition expires.
"""

from __future__ import annotations

from cepbench.engines.aggregation.counting import CountingRun, warmed
from cepbench.engines.aggregation.protocol import AggregationMethod, AggregationTask


def _open(task: AggregationTask) -> CountingRun:
    return warmed(CountingRun(task, "a-seq", by_start=True))


A_SEQ = AggregationMethod("a-seq", _open, source="[qi2014]_, section 3")
