"""DataFrames of events, and how they are divided into slices of time."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import TimestampNTZType, TimestampType

from cepbench.arguments import kind_of, text
from cepbench.errors import StreamError, did_you_mean
from cepbench.patterns.times import read_columns
from cepbench.spark.session import spark_session
from cepbench.streams.dataset_folder import read_declaration
from cepbench.streams.event_stream import EventStream

#: Columns of our own; an attribute does not begin with a space.
SLICE, ORDER = " slice", " order"


@dataclass(frozen=True)
class Columns:
    """The columns of a DataFrame that are read.

    Attributes
    ----------
    time, type : str
    attributes : tuple of str
    """

    time: str
    type: str
    attributes: tuple[str, ...]

    @classmethod
    def of(
        cls, df: DataFrame, time: str, type: str, attributes: tuple[str, ...], id: str | None
    ) -> Columns:
        """Check that a DataFrame has these columns.

        Raises
        ------
        StreamError
        """
        columns = cls(
            text(time, "time", StreamError),
            text(type, "type", StreamError),
            read_columns(attributes),
        )
        for name in [*columns.names, *filter(None, [id])]:
            if name not in df.columns:
                raise StreamError(
                    f"no column {name!r} in the DataFrame; there are {', '.join(df.columns)}"
                    f"{did_you_mean(name, df.columns)}"
                )
        return columns

    @property
    def names(self) -> list[str]:
        """Without duplicates: the type may be an attribute too."""
        return list(dict.fromkeys((self.time, self.type, *self.attributes)))

    def of_type(self, types: Sequence[str] | None) -> Column | None:
        """Which events are of these types; None for all."""
        return None if types is None else column(self.type).cast("string").isin(*types)

    def stream(self, table: pa.Table | pa.RecordBatch, *, sort: bool = False) -> EventStream:
        """The events of a table."""
        return EventStream.from_arrow(
            table, type=self.type, time=self.time, attributes=self.attributes, sort=sort
        )


def opened(df: DataFrame | str | Path) -> tuple[DataFrame, Path | None]:
    """A DataFrame, or that of Parquet files and their path.

    Raises
    ------
    StreamError
        If it is neither.
    DatasetError
        If there is no such path, or a data set there is incomplete.
    """
    if isinstance(df, str | os.PathLike):
        path = Path(df).resolve()
        read_declaration(path)
        return spark_session().read.parquet(str(path)), path
    if not isinstance(df, DataFrame):
        raise StreamError(
            f"df must be a Spark DataFrame or the path of Parquet files, not {kind_of(df)}"
        )
    return df, None


def column(name: str) -> Column:
    """The column of this very name, with dots or not."""
    return F.col("`" + name.replace("`", "``") + "`")


def rank(value: Column, starts: Sequence[int]) -> Column:
    """How many of the ascending starts are not after a value; of a missing one 0.

    A binary search: as nested CASE, thousands of starts make code that Java does not compile.
    """
    if not starts:
        return F.lit(0)
    times = F.lit(list(starts))
    steps = F.lit([1 << bit for bit in reversed(range(len(starts).bit_length()))])
    return F.aggregate(
        steps,
        F.lit(0),
        lambda at, step: F.when(F.get(times, at + step - 1) <= value, at + step).otherwise(at),
    )


def ticks_of(df: DataFrame, time: str) -> Column:
    """Times in ticks."""
    micros = microseconds(df, time)
    return column(time).cast("bigint") if micros is None else micros * 1000


def microseconds(df: DataFrame, time: str) -> Column | None:
    """Times in microseconds since 1970; None if they are numbers."""
    its, kind = column(time), df.schema[time].dataType
    if isinstance(kind, TimestampType):
        return F.unix_micros(its)
    if isinstance(kind, TimestampNTZType):
        epoch = F.expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'")
        return F.timestamp_diff("MICROSECOND", epoch, its)
    return None


def compared(df: DataFrame, key: str) -> Column:
    """The values of an attribute as they are compared: numbers as floats, and −0 is 0."""
    its = column(key)
    if df.schema[key].dataType.typeName() not in ("string", "char", "varchar"):
        its = its.cast("double") + F.lit(0.0)
    return its


def arrow_schema(df: DataFrame) -> pa.Schema:
    """The schema of the rows in Arrow, in workers."""
    return to_arrow_schema(df.schema, timezone="UTC")


def slices_with(ticks: Column, starts: Sequence[int], lead: int, tail: int) -> Column:
    """The number of each slice that needs an event; a row for each.

    Parameters
    ----------
    ticks : Column
    starts : sequence of int
        Of all slices but the first one.
    lead, tail : int
        How long before its start and after its end are events that a slice needs.
    """
    if not starts:
        return F.lit(0)
    return F.explode(F.sequence(rank(ticks - tail, starts), rank(ticks + lead, starts)))


def together(
    events: DataFrame, tasks: int, order: Sequence[str], columns: Sequence[str]
) -> DataFrame:
    """The columns of events, those of a slice in a partition of its number, in order.

    Columns are named by their place: Arrow's side of Spark does not take names with dots.
    """
    return (
        events.repartitionById(tasks, column(SLICE))
        .sortWithinPartitions(*map(column, order))
        .select(*(column(name).alias(f"c{place}") for place, name in enumerate(columns)))
    )


def plain(schema: pa.Schema) -> pa.Schema:
    """A schema without the types that Spark does not take."""
    return pa.schema([(field.name, _plain_type(field.type)) for field in schema])


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain_type(field.type)) for field in kind])
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    return kind
