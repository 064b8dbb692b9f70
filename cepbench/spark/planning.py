"""Statistics and plans of a pattern for a Spark DataFrame, from a sample of its events."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame

from cepbench.costs.model import CostModel
from cepbench.errors import StatisticsError
from cepbench.patterns.model import Pattern
from cepbench.planners import generate
from cepbench.plans.model import AnyPlan
from cepbench.spark.balance import sampled_statistics
from cepbench.spark.detection import DetectionJob
from cepbench.statistics.model import Statistics


def measure_statistics(
    df: DataFrame | str | Path, pattern: Pattern | str, *, time: str, type: str, seed: int = 0
) -> Statistics:
    """Arrival rates and selectivities of a pattern's variables in a DataFrame or Parquet files.

    Parameters
    ----------
    df, time, type
        See :func:`cepbench.spark.detect`.
    pattern : Pattern or str
    seed : int
        Of the sampled pairs.

    Returns
    -------
    Statistics
        As :func:`cepbench.measure_statistics`, from four parts of the stream of about 10,000 events
        each; shares of the types are those of all events.

    Raises
    ------
    CepbenchError
        As :func:`cepbench.spark.detect`.
    StatisticsError
        If there are no events of the pattern's types, or its window has no length.
    """
    job = DetectionJob.of(df, pattern, time, type, None, None, None, "count")
    found = sampled_statistics(job.pattern, *job.sample(), seed=seed)
    if found is None:
        raise StatisticsError(
            "no statistics without events of the pattern's types, or of a window without length"
        )
    return found


def plan(
    df: DataFrame | str | Path,
    pattern: Pattern | str,
    generator: str = "DP-B",
    *,
    time: str,
    type: str,
    seed: int = 0,
    cost: str | CostModel = "throughput",
) -> AnyPlan:
    """Find an evaluation plan for the events of a DataFrame or Parquet files.

    Parameters
    ----------
    df, pattern, time, type
        See :func:`measure_statistics`, by which they are measured.
    generator, seed, cost
        See :func:`cepbench.plan`.

    Returns
    -------
    OrderPlan, TreePlan or UnionPlan

    Raises
    ------
    CepbenchError
        As :func:`measure_statistics` and :func:`cepbench.plan`.
    """
    statistics = measure_statistics(df, pattern, time=time, type=type, seed=seed)
    return generate.plan(pattern, statistics, generator, seed=seed, cost=cost)
