"""The registry of aggregation methods."""

from __future__ import annotations

from cepbench.aggregators.protocol import AggregationMethod
from cepbench.aggregators.two_step import TWO_STEP
from cepbench.errors import EvaluationError
from cepbench.registry import Registry

#: The methods; the first one is the default.
AGGREGATORS: Registry[AggregationMethod] = Registry(
    "aggregation method", EvaluationError, (TWO_STEP,)
)
