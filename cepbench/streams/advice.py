"""Advice for messages: the call that converts another object to a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cepbench.arguments import comes_from, shown

if TYPE_CHECKING:
    import pyarrow as pa

#: Numbers count times from 1970 in a unit that only their source knows; pandas takes nanoseconds.
UNIT_OF_TIMES = "with unit='s', 'ms', 'us' or 'ns' as they count from 1970"


def how_to_make_times(name: str, kind: pa.DataType) -> str:
    """The call that converts a column of this type of Arrow to datetimes."""
    import pyarrow as pa

    if pa.types.is_string_view(kind):  # as Polars exports texts
        return f"frame.with_columns(polars.col({name!r}).str.to_datetime())"
    if str(kind).startswith("extension<pandas.period"):
        return f"frame[{name!r}].dt.to_timestamp()"
    call = f"pandas.to_datetime(frame[{name!r}]"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return f"{call}, unit='s') if the numbers are seconds, {UNIT_OF_TIMES}"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return f"a time needs its day, as in frame['day'] + frame[{name!r}]"
    return f"{call})"


def how_to_make_one(given: Any) -> str:
    """The call that converts ``given`` to a stream."""
    if comes_from(given, "cepbench", "EventStream"):
        return "it is already a stream"
    if isinstance(given, str) or comes_from(given, "pathlib", "PurePath"):
        path = shown(str(given))
        reader = "from_csv" if str(given).endswith((".csv", ".csv.gz")) else "from_parquet"
        return (
            f'make a stream by cep.EventStream.{reader}({path}, type="…", time="…"), or by '
            f"cep.open_dataset({path}).stream()"
        )
    if comes_from(given, "cepbench", "Dataset"):
        return "make a stream by dataset.stream()"
    if comes_from(given, "pandas", "DataFrame"):
        call = "from_pandas(frame"
    elif comes_from(given, "pyarrow", "Table", "RecordBatch", "RecordBatchReader"):
        call = "from_arrow(table"
    elif comes_from(given, "polars", "DataFrame"):
        call = "from_arrow(frame"
    elif comes_from(given, "pyspark", "DataFrame"):
        return "call cep.spark.detect(df, pattern, time=…, type=…) or its other functions"
    elif comes_from(given, "polars", "LazyFrame"):
        return (
            'call collect() first: cep.EventStream.from_arrow(frame.collect(), type="…", time="…")'
        )
    else:
        return (
            "make a stream by cep.EventStream.from_pandas, from_arrow, from_csv or from_parquet, and check "
            "the order of the arguments"
        )
    return (
        f'make a stream by cep.EventStream.{call}, type="…", time="…") with the names of the '
        f"columns of event type and time; it has {columns_of(given)}"
    )


def columns_of(frame: Any) -> str:
    """The names of the first columns of a table, for a message."""
    of_arrow = comes_from(frame, "pyarrow", "Table", "RecordBatch", "RecordBatchReader")
    columns = list(frame.schema.names if of_arrow else getattr(frame, "columns", ()))
    names = ", ".join(str(name)[:40] for name in columns[:8]) or "none"
    return f"{names}{' …' if len(columns) > 8 else ''}"
