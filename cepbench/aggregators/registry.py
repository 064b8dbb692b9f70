"""The registry of aggregation methods."""

from __future__ import annotations

from cepbench.aggregators.a_seq import A_SEQ
from cepbench.aggregators.dpc import DPC
from cepbench.aggregators.protocol import AggregationMethod
from cepbench.aggregators.two_step import TWO_STEP
from cepbench.aggregators.window_product import WINDOW_PRODUCT
from cepbench.errors import EvaluationError
from cepbench.registry import Registry

#: The methods; the default is the first one that runs a pattern.
AGGREGATORS: Registry[AggregationMethod] = Registry(
    "aggregation method", EvaluationError, (WINDOW_PRODUCT, A_SEQ, TWO_STEP, DPC)
)
