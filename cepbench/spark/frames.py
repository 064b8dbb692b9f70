"""DataFrames of events: their columns, times and types."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import IntegralType, StructType, TimestampNTZType, TimestampType

from cepbench.arguments import kind_of, text
from cepbench.errors import DatasetError, StreamError, did_you_mean
from cepbench.files import user_path
from cepbench.patterns.times import read_columns
from cepbench.streams.arrow import FARTHEST
from cepbench.streams.dataset_folder import read_declaration
from cepbench.streams.event_stream import EventStream


@dataclass(frozen=True)
class Columns:
    """The columns of a DataFrame that are read; the ``id`` is reported, and orders those of one time."""

    time: str
    type: str
    attributes: tuple[str, ...]
    id: str | None = None

    @classmethod
    def of(
        cls,
        df: DataFrame | Sequence[str],
        time: str,
        type: str,
        attributes: tuple[str, ...],
        id: str | None,
    ) -> Columns:
        """Columns that are among those of a DataFrame or of files, or else a StreamError."""
        columns = cls(
            text(time, "time", StreamError),
            text(type, "type", StreamError),
            read_columns(attributes),
            id,
        )
        there, known = (
            ("the DataFrame", df.columns) if isinstance(df, DataFrame) else ("the files", df)
        )
        for name in columns.all_names:
            if name not in known:
                raise StreamError(
                    f"no column {name!r} in {there}; there are {', '.join(known)}"
                    f"{did_you_mean(name, known)}"
                )
        if isinstance(df, DataFrame):
            _check_case(df, columns.all_names)
            _check_time(df, columns.time)
        return columns

    @property
    def names(self) -> list[str]:
        """Without duplicates: the type may be an attribute too."""
        return list(dict.fromkeys((self.time, self.type, *self.attributes)))

    @property
    def all_names(self) -> list[str]:
        """These names and that of the identifier, without duplicates."""
        return list(dict.fromkeys([*self.names, *filter(None, [self.id])]))

    def of_type(self, types: Sequence[str] | None) -> Column | None:
        """Which events are of these types; None for all."""
        return None if types is None else column(self.type).cast("string").isin(*types)

    def stream(self, table: pa.Table | pa.RecordBatch, *, sort: bool = False) -> EventStream:
        """The events of a table."""
        return EventStream.from_arrow(
            table, type=self.type, time=self.time, attributes=self.attributes, sort=sort
        )


@dataclass(frozen=True)
class SlicedEvents:
    """Events of which tasks get slices, and which columns are read."""

    #: A DataFrame or a path.
    source: Any
    columns: Columns
    #: Those of the events that are read; None for all.
    types: list[str] | None = None
    #: Whether events are reported by their positions in the whole stream.
    numbered: bool = False


def _check_case(df: DataFrame, names: Sequence[str]) -> None:
    """Check that Spark tells columns that are read from all others of a DataFrame."""
    if df.sparkSession.conf.get("spark.sql.caseSensitive") == "true":
        return
    for name in names:
        alike = [its for its in df.columns if its.lower() == name.lower()]
        if len(alike) > 1:
            raise StreamError(
                f"Spark does not tell the columns {' and '.join(map(repr, alike))} apart; set "
                "spark.sql.caseSensitive to true, or rename one of them"
            )


def _check_time(df: DataFrame, time: str) -> None:
    """Check that times are timestamps or integers."""
    kind = df.schema[time].dataType
    if not isinstance(kind, TimestampType | TimestampNTZType | IntegralType):
        raise StreamError(
            f"time column {time!r} has type {kind.simpleString()}; use timestamps or integers: "
            f'df.withColumn({time!r}, df[{time!r}].cast("timestamp"))'
        )


def opened(df: DataFrame | str | Path) -> DataFrame | Path:
    """A DataFrame, or the path of Parquet files.

    A StreamError or DatasetError if it is neither, there is no such path, or a data set there is
    incomplete.
    """
    if isinstance(df, str | os.PathLike):
        path = _local(os.fspath(df))
        read_declaration(path)
        return path
    if not isinstance(df, DataFrame):
        raise StreamError(
            f"df must be a Spark DataFrame or the path of Parquet files, not {kind_of(df)}"
        )
    return df


def _local(path: str) -> Path:
    """A path of this machine, or of a file system that all machines share, as Path."""
    scheme, separator, rest = path.partition("://")
    if separator and scheme == "file":
        path = unquote(rest.removeprefix("localhost"))
    elif separator:
        raise DatasetError(
            f"{path} is not a path of a file system that all workers share; read it by "
            "spark.read.parquet, and give the DataFrame"
        )
    return user_path(path).resolve()


def column(name: str) -> Column:
    """The column of this very name, with dots or not."""
    return F.col("`" + name.replace("`", "``") + "`")


def ticks_of(df: DataFrame, time: str) -> Column:
    """Times in ticks; of those beyond all that a stream may have, which its making refuses, the farthest."""
    micros = microseconds(df, time)
    its, factor = (column(time).cast("bigint"), 1) if micros is None else (micros, 1000)
    most = FARTHEST // factor
    return F.when(its > most, most).when(its < -most, -most).otherwise(its) * factor


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


def arrow_schema(df: DataFrame, names: Sequence[str]) -> pa.Schema:
    """The schema of some columns in Arrow, in workers.

    A StreamError if Arrow has no type for one.
    """
    fields = []
    for name in names:
        its = df.schema[name]
        try:
            fields.append(to_arrow_schema(StructType([its]), timezone="UTC").field(0))
        except PySparkTypeError as error:
            raise StreamError(
                f"Arrow has no type for column {name!r}, {its.dataType.simpleString()}; cast it to a "
                "number or a text"
            ) from error
    return pa.schema(fields)


#: Types that Spark does not have, and those that hold their values.
_HELD = {
    pa.null(): pa.string(),
    pa.string_view(): pa.string(),
    pa.float16(): pa.float32(),
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def plain(schema: pa.Schema) -> pa.Schema:
    """A schema without the types that Spark does not take.

    A StreamError if there is no type for a column.
    """
    found = pa.schema([(field.name, _plain_type(field.type)) for field in schema])
    for field in found:
        try:
            from_arrow_schema(pa.schema([field]))
        except PySparkTypeError as error:
            raise StreamError(
                f"Spark has no type for column {field.name!r}, {field.type}"
            ) from error
    return found


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain_type(field.type)) for field in kind])
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return _HELD.get(kind, kind)
