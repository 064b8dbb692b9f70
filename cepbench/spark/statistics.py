"""Arrival rates and selectivities of a data set, with standard errors, as Spark jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession, functions
from pyspark.sql.pandas.types import from_arrow_schema

from cepbench.errors import DatasetError, StatisticsError, did_you_mean
from cepbench.files import user_path
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Pattern
from cepbench.patterns.times import read_columns
from cepbench.planning.statistics.arrivals import arrival_table, arrivals_in, arrivals_in_file
from cepbench.planning.statistics.measure import StatisticsSample, merge_samples, sample_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload
from cepbench.spark.frames import plain
from cepbench.spark.jobs import run_job
from cepbench.streams.dataset_folder import MONTH, is_declared, read_declaration, type_column
from cepbench.streams.event_stream import EventStream
from cepbench.streams.parquet_layout import months_of, open_parquet, parquet_files

#: Patterns measured in one scan of the data.
GROUP = 25

_QUANTILES = 200


def measure_statistics(
    spark: SparkSession,
    data_path: str | Path,
    patterns: Mapping[str, Pattern] | Workload,
    *,
    seed: int = 0,
    partitions: int | None = None,
    progress: bool = True,
) -> dict[str, Statistics]:
    """Measure arrival rates and selectivities of many patterns on a data set, by their names.

    Patterns that are under a concept hierarchy are under the same one. The seed is that of the sampled
    pairs, as in :func:`cepbench.planning.statistics.measure.measure_statistics`; pairs across months are
    not sampled. For ``partitions`` and ``progress`` see :func:`cepbench.spark.jobs.run_job`.

    Raises
    ------
    DatasetError
        If the data cannot be read or lacks a pattern's event type.
    StatisticsError
        If there are no events of a pattern, or patterns are under several hierarchies.

    Notes
    -----
    Source: [kolchinsky2018]_, section 6.2.
    """
    path = user_path(data_path).resolve()
    read_declaration(path)
    if not isinstance(patterns, Mapping):
        patterns = patterns.queries
    hierarchies = {its.hierarchy for its in patterns.values()} - {None}
    if len(hierarchies) > 1:
        raise StatisticsError(
            "the patterns are under several concept hierarchies; measure those of each by themselves"
        )
    hierarchy = next(iter(hierarchies), None)
    named = iter(patterns.items())
    groups = list(iter(lambda: tuple(islice(named, GROUP)), ()))
    tasks = [(place, group) for group in groups for place in months_of(path)]
    samples: dict[str, list[StatisticsSample]] = {name: [] for name in patterns}
    for found in run_job(
        spark,
        partial(_sample, path, seed, hierarchy),
        tasks,
        name="statistics",
        partitions=partitions,
        progress=progress,
        one_here=True,
    ):
        for name, sample in found:
            samples[name].append(sample)
    return {name: _statistics(name, slices, path) for name, slices in samples.items()}


def arrival_rates(
    spark: SparkSession,
    data_path: str | Path,
    *,
    partitions: int | None = None,
    progress: bool = True,
) -> pd.DataFrame:
    """The :func:`~cepbench.planning.statistics.arrivals.arrival_table` of a data set.

    For arguments and errors see :func:`measure_statistics`.
    """
    path = user_path(data_path).resolve()
    declaration = read_declaration(path)
    files = parquet_files(path)
    if not files:
        raise DatasetError(f"there is no Parquet file below {path}")
    type = type_column(declaration.kind if declaration else "")
    if type not in pq.read_schema(files[0]).names:  # it is in the names of folders
        stream = EventStream.from_parquet(path, type=type, attributes=[], sort=True)
        return arrival_table([arrivals_in(stream)])
    counted = run_job(
        spark,
        partial(arrivals_in_file, type=type),
        files,
        name="arrival rates",
        partitions=partitions,
        progress=progress,
        one_here=True,
    )
    return arrival_table(counted, declaration.counts if declaration else ())


def attribute_quantiles(
    spark: SparkSession, data_path: str | Path, attribute: str
) -> dict[str, list[float]]:
    """Approximate quantiles of a numeric column for each event type.

    They are at ``(k + 1/2) / 200``, so that each represents equally many events. Missing
    values are ignored, and types without any are omitted. A DatasetError if the data has no such
    column, or it is not numeric.
    """
    path = user_path(data_path).resolve()
    declaration = read_declaration(path)
    type = type_column(declaration.kind if declaration else "")
    schema = open_parquet(path, type).schema
    if attribute not in schema.names or not _is_numeric(schema.field(attribute).type):
        raise DatasetError(
            f"{path} has no numeric column {attribute!r}{did_you_mean(attribute, schema.names)}"
        )
    # Of other columns Spark may not have the types: it has no nanoseconds.
    read = plain(pa.schema([schema.field(type), schema.field(attribute)]))
    data = spark.read.schema(from_arrow_schema(read)).parquet(str(path))
    value = functions.col(attribute).cast("double")
    shares = [(k + 0.5) / _QUANTILES for k in range(_QUANTILES)]
    rows = (
        data.where(value.isNotNull() & ~functions.isnan(value))
        .groupBy(type)
        .agg(functions.percentile_approx(value, shares, 10_000).alias("found"))
        .collect()
    )
    return {str(row[type]): list(row["found"]) for row in rows}


def _is_numeric(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _sample(
    path: Path,
    seed: int,
    hierarchy: ConceptHierarchy | None,
    task: tuple[Path, tuple[tuple[str, Pattern], ...]],
) -> list[tuple[str, StatisticsSample]]:
    """Samples of some patterns on the folder of a month, or on all data; in a Spark worker."""
    place, patterns = task
    attributes = {name for _, its in patterns for name in read_columns(its.attributes)}
    types = [_types(pattern) for _, pattern in patterns]
    first = None if place == path else pd.Period(place.name.removeprefix(f"{MONTH}="), "M")
    stream = EventStream.from_parquet(
        path,
        types=None if None in types else sorted(set(chain.from_iterable(filter(None, types)))),
        attributes=sorted(attributes),
        start=None if first is None else first.to_timestamp(),
        end=None if first is None else (first + 1).to_timestamp(),
        sort=not is_declared(path),
        hierarchy=hierarchy,
    )
    events = sum(pq.read_metadata(file).num_rows for file in parquet_files(place))
    samples = []
    for (name, pattern), own in zip(patterns, types, strict=True):
        # Restricted to its types, so that results do not depend on the group.
        part = stream if own is None else stream.of_types(own)
        sample = sample_statistics(pattern, part, seed=seed, stream_events=events)
        samples.append((name, sample))
    return samples


def _types(pattern: Pattern) -> tuple[str, ...] | None:
    """The types that a pattern's statistics depend on; None for all, as sizes of partitions do."""
    return None if pattern.strategy.attribute else pattern.types


def _statistics(name: str, slices: Sequence[StatisticsSample], path: Path) -> Statistics:
    merged = merge_samples(slices)
    if not any(merged.events.values()):
        raise StatisticsError(
            f"{path} has no events of any type of pattern {name!r}; measure on other data"
        )
    return merged.to_statistics()
