"""Event streams from Arrow tables and pandas frames: the one place where rows are checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.errors import StreamError
from cepbench.streams.event_stream import CodedStrings, Column, EventStream

if TYPE_CHECKING:
    import pandas as pd


def table_from_frame(frame: pd.DataFrame) -> pa.Table:
    """A DataFrame as an Arrow table, its index left out."""
    duplicated = frame.columns[frame.columns.duplicated()]
    if len(duplicated):
        raise StreamError(f"two columns are called {duplicated[0]!r}; rename one of them")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise StreamError(
            f"a column mixes kinds of values: {error}; give each column a single type"
        ) from error


def stream_from_table(
    table: pa.Table,
    *,
    type: str,
    time: str,
    attributes: Iterable[str] | None = None,
    sort: bool = False,
) -> EventStream:
    """Check a table and make a stream of it, rows being events in arrival order.

    Parameters
    ----------
    table : pyarrow.Table, n rows
    type, time : str
        Names of the columns that hold each event's type (text or integer) and timestamp (a
        datetime, taken to be UTC, or an integer).
    attributes : iterable of str, optional
        Columns to keep as attributes; by default all others. The type and time columns may be
        among them.
    sort : bool
        Sort by time first, keeping the order of rows within a timestamp.

    Raises
    ------
    StreamError
        For a missing column, a missing type or timestamp, or a timestamp smaller than the one
        before it; ``error.row`` is the first offending row.
    """
    kept = [name for name in table.column_names if name not in (type, time)]
    names = kept if attributes is None else list(attributes)
    for name in (type, time, *names):
        if name not in table.column_names:
            raise StreamError(f"no column {name!r}; there are {', '.join(table.column_names)}")
    timestamps, is_datetime = _timestamps(table.column(time), time)
    order = _arrival_order(timestamps, time, sort=sort)
    if order is not None:
        table, timestamps = table.take(pa.array(order)), timestamps[order]
    types = _types(table.column(type), type)
    columns: dict[str, Column] = {}
    unusable: dict[str, str] = {}
    for name in names:
        column = _attribute(table.column(name))
        if column is None:
            unusable[name] = str(table.column(name).type)
        else:
            columns[name] = column
    return EventStream(types.codes, types.values, timestamps, is_datetime, columns, unusable)


def _arrival_order(timestamps: np.ndarray, time: str, *, sort: bool) -> np.ndarray | None:
    """The stable sorting permutation where one is needed and asked for."""
    backward = np.flatnonzero(timestamps[1:] < timestamps[:-1])
    if not len(backward):
        return None
    if sort:
        return np.argsort(timestamps, kind="stable")
    row = int(backward[0]) + 1
    raise StreamError(
        f"row {row}: timestamp {timestamps[row]} in {time!r} is smaller than {timestamps[row - 1]} "
        "in the row before; events must come in time order, or pass sort=True",
        row=row,
    )


def _refuse_missing(column: pa.ChunkedArray, name: str, what: str) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise StreamError(f"row {row}: no {what} in column {name!r}; every event has one", row=row)


def _timestamps(column: pa.ChunkedArray, name: str) -> tuple[np.ndarray, bool]:
    _refuse_missing(column, name, "timestamp")
    if pa.types.is_timestamp(column.type):
        try:
            column = column.cast(pa.timestamp("ns", tz=column.type.tz))
        except pa.ArrowInvalid as error:
            raise StreamError(
                f"a timestamp in {name!r} does not fit nanoseconds (years 1678 to 2262): {error}"
            ) from error
        return column.cast(pa.int64()).to_numpy(), True
    if pa.types.is_integer(column.type):
        try:
            return column.cast(pa.int64()).to_numpy(), False
        except pa.ArrowInvalid as error:
            raise StreamError(f"a time in {name!r} does not fit 64 bits: {error}") from error
    raise StreamError(
        f"time column {name!r} has type {column.type}; use datetimes or integers "
        "(for example pandas.to_datetime)"
    )


def _types(column: pa.ChunkedArray, name: str) -> CodedStrings:
    _refuse_missing(column, name, "event type")
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind):
        column = column.cast(kind).cast(pa.string())
    elif not _is_text(kind) and not (pa.types.is_null(kind) and not len(column)):
        raise StreamError(f"type column {name!r} has type {kind}; use texts or integers")
    return _coded(column)


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _coded(column: pa.ChunkedArray) -> CodedStrings:
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(array, pa.ChunkedArray):  # combine_chunks of no rows at all
        array = array.chunk(0) if array.num_chunks else pa.array([], pa.string()).dictionary_encode()
    codes = pc.fill_null(array.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    return CodedStrings(codes, tuple(map(str, array.dictionary.to_pylist())))


def _attribute(column: pa.ChunkedArray) -> Column | None:
    kind = column.type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if _is_text(value):
        return _coded(column)
    if pa.types.is_dictionary(kind):
        return _attribute(column.cast(value))
    if pa.types.is_boolean(kind):
        return column.cast(pa.float64()).to_numpy()
    if pa.types.is_integer(kind) and not column.null_count and kind != pa.uint64():
        return column.cast(pa.int64()).to_numpy()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        # Integers with gaps become floats; those beyond 2**53 are refused rather than rounded.
        try:
            return column.cast(pa.float64()).to_numpy()
        except pa.ArrowInvalid as error:
            raise StreamError(f"an attribute does not fit a float exactly: {error}") from error
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    return None
