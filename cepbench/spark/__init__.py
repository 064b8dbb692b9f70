"""Spark jobs: ``cep.spark``. Importing it starts nothing; names are loaded on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cepbench.spark.aggregation import aggregate as aggregate
    from cepbench.spark.detection import detect as detect
    from cepbench.spark.detection import slices as slices
    from cepbench.spark.jobs import watched as watched
    from cepbench.spark.live import detect_stream as detect_stream
    from cepbench.spark.planning import measure_statistics as measure_statistics
    from cepbench.spark.planning import plan as plan
    from cepbench.spark.scale_out import scaling as scaling
    from cepbench.spark.session import spark_session as spark_session

_HOMES = {
    "aggregate": "cepbench.spark.aggregation",
    "detect": "cepbench.spark.detection",
    "detect_stream": "cepbench.spark.live",
    "measure_statistics": "cepbench.spark.planning",
    "plan": "cepbench.spark.planning",
    "scaling": "cepbench.spark.scale_out",
    "slices": "cepbench.spark.detection",
    "spark_session": "cepbench.spark.session",
    "watched": "cepbench.spark.jobs",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'cepbench.spark' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
