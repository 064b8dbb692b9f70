"""Statistics and plans of a pattern for a Spark DataFrame, from a sample of its events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from cepbench.errors import StatisticsError
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.model import CostModel
from cepbench.planning.planners import generate
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.workloads.model import Workload
from cepbench.spark.balance import sampled_statistics
from cepbench.spark.detection import DetectionJob


def measure_statistics(
    df: DataFrame | str | Path,
    pattern: Pattern | str | Workload,
    *,
    time: str,
    type: str,
    seed: int = 0,
) -> Any:
    """Arrival rates and selectivities of a pattern's variables in a DataFrame or Parquet files.

    Parameters
    ----------
    df, time, type
        See :func:`cepbench.spark.detect`.
    pattern : Pattern, str or Workload
    seed : int
        Of the sampled pairs.

    Returns
    -------
    Statistics or dict of str to Statistics
        As :func:`cepbench.measure_statistics`, from four parts of the stream of about 10,000 events
        each; shares of the types are those of all events. Of a workload those of each query.

    Raises
    ------
    CepbenchError
        As :func:`cepbench.spark.detect`.
    StatisticsError
        If there are no events of the pattern's types, or its window has no length.
    """
    job = DetectionJob.of(df, pattern, time, type, None, None, None, "count")
    sample = job.sample()
    measured = {}
    for query, its in job.slicer.queries.items():
        found = sampled_statistics(its, *sample, seed=seed)
        if found is None:
            raise StatisticsError(
                f"{f'query {query!r}: ' * bool(query)}no statistics without events of the pattern's "
                "types, or of a window without length"
            )
        measured[query] = found
    return measured.get("", measured)


def plan(
    df: DataFrame | str | Path,
    pattern: Pattern | str | Workload,
    generator: str | None = None,
    *,
    time: str,
    type: str,
    seed: int = 0,
    cost: str | CostModel | None = None,
) -> AnyPlan | WorkloadPlan:
    """Find an evaluation plan for the events of a DataFrame or Parquet files.

    Parameters
    ----------
    df, pattern, time, type
        See :func:`measure_statistics`, by which they are measured.
    generator : str, optional
        A name in ``cep.PLAN_GENERATORS``, by default that of :func:`cepbench.plan`; of a workload in
        ``cep.WORKLOAD_PLANNERS``, by default CHASE.
    seed, cost
        See :func:`cepbench.plan` and :func:`cepbench.plan_workload`.

    Returns
    -------
    OrderPlan, TreePlan, UnionPlan or WorkloadPlan

    Raises
    ------
    CepbenchError
        As :func:`measure_statistics`, :func:`cepbench.plan` and :func:`cepbench.plan_workload`.
    """
    statistics = measure_statistics(df, pattern, time=time, type=type, seed=seed)
    given: dict[str, Any] = {} if cost is None else {"cost": cost}
    its: Any = pattern
    if isinstance(statistics, dict):
        return plan_workload(its, statistics, generator, seed=seed, **given)
    return generate.plan(its, statistics, generator, seed=seed, **given)
