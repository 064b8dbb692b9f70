"""Event streams from Arrow tables and pandas DataFrames; all validation of rows is here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.arguments import comes_from, flag, kind_of, shown, text, texts
from cepbench.errors import StreamError, did_you_mean
from cepbench.streams.advice import how_to_make_one, how_to_make_times
from cepbench.streams.columns import (
    AttributeColumn,
    Booleans,
    CodedStrings,
    Decimals,
    numbers_of,
)

if TYPE_CHECKING:
    import pandas as pd

Made = TypeVar("Made")

#: Timestamp differences, and a timestamp plus a window, must fit 64 bits.
FARTHEST = 2**62 - 1

#: Readers that were read. They have no rows any more, and do not say so.
_READ: WeakSet[pa.RecordBatchReader] = WeakSet()

#: Floats tell decimals of so many significant digits apart, and hold powers of ten up to this one.
_DIGITS, _LARGEST_POWER = 15, 22


def table_from_frame(
    frame: pd.DataFrame, type: str, time: str, attributes: list[str] | None
) -> pa.Table:
    """The columns of a stream as an Arrow table, sparse columns made dense.

    A StreamError if it is not a DataFrame, or a column is missing, is the index, or cannot be
    converted.
    """
    if not comes_from(frame, "pandas", "DataFrame"):
        raise StreamError(
            f"from_pandas takes a DataFrame of pandas, not {kind_of(frame)}; {how_to_make_one(frame)}"
        )
    text(type, "type", StreamError)
    text(time, "time", StreamError)
    names = [str(name) for name in frame.columns]
    for name in (type, time, *(attributes or ())):
        if name not in names and name in frame.index.names:
            raise StreamError(f"{name!r} is the DataFrame's index; call reset_index() first")
    check_columns([type, time, *(attributes or ())], names)
    if names != list(frame.columns):
        frame = frame.set_axis(names, axis="columns")
    if attributes is not None:
        names = list(dict.fromkeys((type, time, *attributes)))
        frame = frame[names]
    for name in names:
        column: Any = frame[name]
        if hasattr(column, "sparse"):
            frame = frame.assign(**{name: column.sparse.to_dense()})
        elif name == time and column.dtype == object:
            frame = frame.assign(**{name: _moments(column)})
    try:
        # A copy: Arrow shares numbers, which the caller may change.
        return pa.Table.from_pandas(frame.copy(), preserve_index=False)
    except Exception as error:  # raised by Arrow, pandas or an extension type
        for name in names:
            _refuse_unreadable(frame[[name]], name)
        raise StreamError(f"the DataFrame cannot be converted: {shown(str(error))}") from error


def _moments(column: Any) -> Any:
    """Times that are objects as datetimes: of those Arrow drops the nanoseconds."""
    import pandas as pd

    if pd.api.types.infer_dtype(column) != "datetime":
        return column
    try:
        return pd.to_datetime(column, utc=True)
    except ValueError:  # one is out of range
        return column


def _refuse_unreadable(column: pd.DataFrame, name: str) -> None:
    """Raise if Arrow cannot convert a column."""
    dtype = column.dtypes.iloc[0]
    try:
        pa.Table.from_pandas(column, preserve_index=False)
    except UnicodeEncodeError as error:
        raise StreamError(
            f"column {name!r} has a text that is not valid Unicode (half of a surrogate pair, "
            f"{error.object[error.start : error.end]!r}); replace such characters by "
            f"frame[{name!r}].str.encode('utf-8', 'replace').str.decode('utf-8')"
        ) from error
    except OverflowError as error:
        raise StreamError(
            f"column {name!r} has an integer beyond 64 bits; convert the column to texts, floats "
            "or smaller integers"
        ) from error
    except Exception as error:  # as above
        advice = (
            "give the column a single type"
            if dtype.kind == "O"
            else "convert it to numbers or texts"
        )
        raise StreamError(
            f"column {name!r} of type {dtype} cannot be converted: "
            f"{str((*error.args, error)[0])[:200]}; {advice}, or remove it from attributes="
        ) from error


def stream_of_table(
    made: Callable[..., Made],
    table: pa.Table,
    *,
    type: str,
    time: str,
    attributes: Iterable[str] | None = None,
    sort: bool = False,
) -> Made:
    """Validate a table and make a stream of its columns; rows are events in arrival order.

    A StreamError for a column that is missing, duplicate or of a wrong type; and for a missing type
    or timestamp, or a timestamp that is out of range or smaller than the previous one, with the
    first such row of ``table`` as ``error.row``.

    Parameters
    ----------
    made
        The fields of an EventStream → a stream.
    table
        Or another object that gives its rows to Arrow (``__arrow_c_stream__``): a RecordBatch, a
        RecordBatchReader, a DataFrame of Polars, a relation of DuckDB.
    type, time
        Names of the columns that hold each event's type (text or integer) and timestamp (a
        datetime, taken to be UTC, or an integer).
    attributes
        Columns to keep as attributes, by default all others; may include the type and time
        columns.
    sort
        Sort by time first (stably); ``positions`` are then rows of ``table``.
    """
    table = _table_from(table)
    text(type, "type", StreamError)
    text(time, "time", StreamError)
    sort = flag(sort, "sort", StreamError)
    kept = [name for name in table.column_names if name not in (type, time)]
    names = kept if attributes is None else texts(attributes, "attributes", StreamError)
    check_columns([type, time, *names], table.column_names)
    # Validated before sorting, so that errors name rows of the given table.
    try:
        timestamps, is_datetime = _timestamps(table.column(time), time)
        types = _types(table.column(type), type)
    except pa.ArrowException as error:
        raise StreamError(f"the type and time columns cannot be read: {error}") from error
    columns: dict[str, AttributeColumn] = {}
    unusable: dict[str, str] = {}
    for name in names:
        try:
            column = _attribute(table.column(name))
        except pa.ArrowException:  # types without casts in Arrow
            column = str(table.column(name).type)
        if isinstance(column, str):
            unusable[name] = column
        else:
            columns[name] = column
    order = _arrival_order(timestamps, time, is_datetime=is_datetime, sort=sort)
    if order is not None:
        timestamps, types = timestamps[order], types[order]
        columns = {name: column[order] for name, column in columns.items()}
    # Those of Arrow are so; a stream that an evaluator changes would be another one for the next.
    for its in (types, *columns.values()):
        array = its.codes if isinstance(its, CodedStrings | Booleans) else numbers_of(its)
        array.flags.writeable = False
    timestamps.flags.writeable = False
    return made(
        types.codes,
        types.values,
        timestamps,
        is_datetime,
        columns,
        unusable,
        range(len(timestamps)) if order is None else order,
        time_name=time,
        type_column=type,
    )


def _table_from(given: Any) -> pa.Table:
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatchReader):
        if given in _READ:
            raise StreamError(
                "this RecordBatchReader was read before, and has no more rows; read it once, into a "
                "pyarrow.Table by read_all(), or into a stream by cep.EventStream.from_arrow"
            )
        _READ.add(given)
    # An index of pandas would become a column.
    if hasattr(given, "__arrow_c_stream__") and not comes_from(given, "pandas", "DataFrame"):
        try:
            return pa.table(given)
        except Exception as error:  # raised by Arrow or the library of the object
            raise StreamError(
                f"{kind_of(given)} cannot be read: {shown(str(error))}; convert it to a "
                "pyarrow.Table"
            ) from error
    raise StreamError(
        f"from_arrow takes a pyarrow.Table, not {kind_of(given)}; {how_to_make_one(given)}"
    )


def check_columns(wanted: list[str], known: list[str], where: str = "") -> None:
    """Check the names of the columns to read.

    A StreamError if one is unknown (the nearest is suggested), or two columns have one name.
    """
    for name, count in Counter(known).items():
        if count > 1:
            raise StreamError(f"two columns are named {name!r}; rename one of them")
    for name in wanted:
        if name not in known:
            several = ", ".join(known[:20]) + (" …" if len(known) > 20 else "")
            raise StreamError(
                f"{where}no column {name!r}; there are {several or 'none'}"
                f"{did_you_mean(name, known)}",
                column=name,
            )


def _arrival_order(
    timestamps: np.ndarray, time: str, *, is_datetime: bool, sort: bool
) -> np.ndarray | None:
    """The stable sorting permutation, if one is needed and requested."""
    backward = np.flatnonzero(timestamps[1:] < timestamps[:-1])
    if not len(backward):
        return None
    if sort:
        return np.argsort(timestamps, kind="stable")
    row = int(backward[0]) + 1
    before, found = timestamps[row - 1 : row + 1].view("M8[ns]" if is_datetime else np.int64)
    raise StreamError(
        f"row {row}: timestamp {found} in {time!r} is smaller than {before} "
        "in the previous row; sort the events by time, or make the EventStream with sort=True",
        row=row,
    )


def _timestamps(column: pa.ChunkedArray, name: str) -> tuple[np.ndarray, bool]:
    if column.null_count:
        _refuse_missing(column.is_null().to_numpy(), "timestamp", name)
    if pa.types.is_date(column.type):  # daily data; events of one day are at one time
        column = column.cast(pa.timestamp("ms"))
    if pa.types.is_timestamp(column.type):
        try:
            column = column.cast(pa.timestamp("ns", tz=column.type.tz))
        except pa.ArrowInvalid as error:
            raise StreamError(
                f"a timestamp in {name!r} does not fit nanoseconds (years 1678 to 2262): {error}"
            ) from error
        return _within_range(column.cast(pa.int64()).to_numpy(), name), True
    if pa.types.is_integer(column.type):
        try:
            return _within_range(column.cast(pa.int64()).to_numpy(), name), False
        except pa.ArrowInvalid as error:
            raise StreamError(f"a time in {name!r} does not fit 64 bits: {error}") from error
    raise StreamError(
        f"time column {name!r} has type {column.type}; use datetimes or integers: "
        f"{how_to_make_times(name, column.type)}"
    )


def _within_range(timestamps: np.ndarray, name: str) -> np.ndarray:
    """Check that timestamp arithmetic cannot overflow."""
    far = np.flatnonzero((timestamps > FARTHEST) | (timestamps < -FARTHEST))
    if len(far):
        row = int(far[0])
        raise StreamError(
            f"row {row}: time {timestamps[row]} in {name!r} is beyond 2**62 ticks (for datetimes: "
            "before 1824 or after 2116); subtract a common origin",
            row=row,
        )
    return timestamps


def _types(column: pa.ChunkedArray, name: str) -> CodedStrings:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        column = column.cast(kind).cast(pa.string())
    elif not _is_text(kind):
        raise StreamError(f"type column {name!r} has type {kind}; use texts or integers")
    types = _coded(column)
    _refuse_missing(types.codes < 0, "event type", name)
    return types


def _refuse_missing(missing: np.ndarray, what: str, name: str) -> None:
    if missing.any():
        row = int(missing.argmax())
        raise StreamError(
            f"row {row}: no {what} in column {name!r}; every event needs one", row=row
        )


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _coded(column: pa.ChunkedArray) -> CodedStrings:
    if not pa.types.is_dictionary(column.type):
        # Arrow cannot make an empty dictionary of Polars' texts.
        column = (column if len(column) else pa.chunked_array([], pa.string())).dictionary_encode()
    try:
        array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    except pa.ArrowInvalid:  # a missing value in the dictionary of a chunk
        array = column.cast(column.type.value_type).combine_chunks().dictionary_encode()
    if isinstance(array, pa.ChunkedArray):  # if there are no rows
        array = (
            array.chunk(0) if array.num_chunks else pa.array([], pa.string()).dictionary_encode()
        )
    codes = pc.fill_null(array.indices.cast(pa.int32()), -1).to_numpy(zero_copy_only=False)
    # Arrow allows duplicate and null values in a dictionary; codes must be unique.
    first: dict[str, int] = {}
    try:
        values = array.dictionary.to_pylist()
    except UnicodeDecodeError as error:
        raise StreamError(
            f"a column has a text that is not UTF-8 ({error}); read its file with the encoding "
            "in which it was written"
        ) from error
    table = [-1 if value is None else first.setdefault(value, len(first)) for value in values]
    if len(first) < len(values):
        codes = np.array([*table, -1], dtype=np.int32)[codes]
    return CodedStrings(codes, tuple(first))


def _attribute(column: pa.ChunkedArray) -> AttributeColumn | str:
    """The column as numbers, booleans or coded texts, or the reason why it cannot be compared."""
    kind = column.type
    value = kind.value_type if pa.types.is_dictionary(kind) else kind
    if _is_text(value):
        return _coded(column)
    if pa.types.is_null(value):
        return np.full(len(column), np.nan)
    if pa.types.is_dictionary(kind):
        return _attribute(column.cast(value))
    if pa.types.is_boolean(kind):
        return Booleans(pc.fill_null(column.cast(pa.int8()), -1).to_numpy())
    if pa.types.is_decimal(kind):
        return _decimals(column)
    if pa.types.is_integer(kind):
        return _integers(column)
    if pa.types.is_floating(kind):
        return column.cast(pa.float64()).to_numpy()
    return str(kind)


def _integers(column: pa.ChunkedArray) -> np.ndarray | str:
    """Integers as int64, with nulls as float64 unless that would round them."""
    try:
        whole = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return f"{column.type} with values beyond 64 bits"
    if not column.null_count:
        return whole.to_numpy()
    try:
        return whole.cast(pa.float64()).to_numpy()
    except pa.ArrowInvalid:
        return f"{column.type} with values that a float would round"


def _decimals(column: pa.ChunkedArray) -> Decimals | np.ndarray | str:
    """Decimals as the nearest floats, those without digits after the point as integers."""
    kind = column.type
    if kind.scale <= 0:
        return _integers(column)
    scale, unscaled = kind.scale, _unscaled(column, kind.scale)
    if unscaled is None:
        # Zeros at the end are no significant digits: find the least scale that loses none else.
        least, scale = -1, kind.scale
        while scale - least > 1:
            middle = (least + scale) // 2
            try:
                column.cast(pa.decimal256(76, middle))
                scale = middle
            except pa.ArrowInvalid:
                least = middle
        unscaled = _unscaled(column, scale)
    if unscaled is None:
        return f"{kind} with values of more than {_DIGITS} digits, which a float would round"
    # Both are exact, so that the quotient is the float nearest to the decimal.
    numbers = unscaled / 10.0**scale
    numbers[column.is_null().to_numpy()] = np.nan
    return Decimals(numbers, kind.scale)


def _unscaled(column: pa.ChunkedArray, scale: int) -> np.ndarray | None:
    """Decimals in units of their last digit, as int64; None beyond what floats tell apart."""
    if scale > _LARGEST_POWER:
        return None
    try:
        narrow = column.cast(pa.decimal128(_DIGITS + 1, scale)).combine_chunks()
    except pa.ArrowInvalid:
        return None
    if isinstance(narrow, pa.ChunkedArray):  # if there are no rows
        return np.zeros(0, np.int64)
    # Of the two words of a value, which is small, the first one is all of it.
    words = np.frombuffer(narrow.buffers()[1], np.int64)[::2]
    unscaled = np.where(
        narrow.is_null().to_numpy(zero_copy_only=False),
        0,
        words[narrow.offset : narrow.offset + len(narrow)],
    )
    return unscaled if (np.abs(unscaled) < 10**_DIGITS).all() else None
