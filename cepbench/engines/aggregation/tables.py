"""Rows of values as tables: DataFrames and Arrow."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.semirings import has_floats
from cepbench.errors import EvaluationError, StreamError
from cepbench.patterns.model import MatchAggregate, Pattern
from cepbench.streams.columns import Decimals, kind_of_column
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_no_time

if TYPE_CHECKING:
    import pyarrow as pa

#: Integers of more digits are not shown in full.
_DIGITS = 15

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def check_names(pattern: Pattern) -> None:
    """Check that no two columns of the table have the same name.

    Raises
    ------
    EvaluationError
    """
    names = ["position", "time", *map(str, pattern.group_by), *map(str, pattern.aggregates)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise EvaluationError(
            f"the table of values would have two columns named {twice!r}; rename the attribute of "
            f"GROUP BY {twice}"
        )


def check_values(pattern: Pattern, stream: EventStream) -> None:
    """Check that a stream has the attributes of GROUP BY and AGG, and numbers where these are due.

    Raises
    ------
    StreamError
    """
    for key in pattern.group_by:
        if isinstance(key.attribute, str):
            _checked(f"GROUP BY {key}", key.attribute, stream)
    for aggregate in pattern.aggregates:
        if aggregate.attribute is None:
            continue
        kind = _checked(f"AGG {aggregate}", aggregate.attribute, stream)
        column = stream.column(aggregate.attribute)
        if kind and isinstance(column, Decimals) and aggregate.function == "SUM":
            raise StreamError(
                f"AGG {aggregate}: {aggregate.attribute} is a decimal, whose sum would be rounded; make "
                f"it an integer of its smallest unit, {10**column.scale} times as large, or a float"
            )
        if kind not in (None, "number") and aggregate.function != "COUNT":
            raise StreamError(
                f"AGG {aggregate}: {aggregate.attribute} is a {kind}, of which there is only a COUNT; "
                "convert it to a number before making the stream"
            )


def _checked(clause: str, attribute: str, stream: EventStream) -> str | None:
    """The kind of an attribute's values; an error names the clause."""
    try:
        check_no_time(attribute, stream)
        return kind_of_column(stream.column(attribute))
    except StreamError as error:
        raise StreamError(f"{clause}: {error}") from None


def floats_of(pattern: Pattern, stream: EventStream) -> list[bool]:
    """Whether the values of each aggregate are floats, rather than integers."""
    return [_is_float(aggregate, stream) for aggregate in pattern.aggregates]


def _is_float(aggregate: MatchAggregate, stream: EventStream) -> bool:
    if aggregate.function == "COUNT":
        return False
    assert aggregate.attribute is not None
    return aggregate.function == "AVG" or has_floats(
        stream.column(aggregate.attribute), before=False
    )


def frame_of(pattern: Pattern, rows: Rows, *, is_datetime: bool, at: bool) -> pd.DataFrame:
    """One row per value.

    Parameters
    ----------
    pattern : Pattern
    rows : Rows
    is_datetime : bool
        Whether times are datetimes.
    at : bool
        Whether the values are at times, and not after events.

    Returns
    -------
    DataFrame
        ``position`` (unless ``at``), ``time``, the keys of GROUP BY, the aggregates. COUNT is int64;
        other integers are Int64 with NA where missing; beyond 64 bits they are Python ints. Floats
        are float64 with NaN where missing.
    """
    table: dict[str, Any] = {}
    if not at:
        table["position"] = rows.positions
    table["time"] = rows.times.view("datetime64[ns]") if is_datetime else rows.times
    for place, key in enumerate(pattern.group_by):
        known = pd.Series([its[place] for its in rows.keys])
        table[str(key)] = known.take(rows.groups).array
    for aggregate, column in zip(pattern.aggregates, rows.columns, strict=True):
        table[str(aggregate)] = _array(column, aggregate)
    return pd.DataFrame(table)


def _array(column: np.ndarray, aggregate: MatchAggregate) -> Any:
    if column.dtype == object:
        # An inferred type would be that of floats, which may be too small.
        return pd.Series([pd.NA if value is None else value for value in column], dtype=object)
    if column.dtype == np.float64 or aggregate.function == "COUNT":
        return column
    return pd.arrays.IntegerArray(np.asarray(column), np.ma.getmaskarray(column))


def arrow_of(pattern: Pattern, rows: Rows, *, is_datetime: bool, at: bool) -> pa.Table:
    """The table of :func:`frame_of` with null where missing; integers beyond 64 bits are texts."""
    import pyarrow as pa

    times = pa.array(rows.times, pa.int64())
    columns: dict[str, Any] = {}
    if not at:
        columns["position"] = pa.array(rows.positions, pa.int64())
    columns["time"] = times.cast(pa.timestamp("ns")) if is_datetime else times
    for place, key in enumerate(pattern.group_by):
        known = pa.array([its[place] for its in rows.keys])
        columns[str(key)] = known.take(pa.array(rows.groups))
    for aggregate, column in zip(pattern.aggregates, rows.columns, strict=True):
        if column.dtype == object:
            # Python itself writes no more than 4300 digits.
            listed = [None if value is None else str(Decimal(value)) for value in column]
            columns[str(aggregate)] = pa.array(listed)
        else:
            missing = np.isnan(column) if column.dtype == np.float64 else np.ma.getmaskarray(column)
            columns[str(aggregate)] = pa.array(np.asarray(column), mask=missing)
    return pa.table(columns)


def shown_number(value: Any) -> str:
    """A value for readers, an integer of many digits as ``1.2677 × 10³⁰``; ``none`` if missing."""
    if pd.isna(value):
        return "none"
    if isinstance(value, float):
        return f"{value:,.6g}"
    if abs(value) < 10**_DIGITS:
        return f"{value:,}"
    # The logarithm of an integer may be beyond floats.
    rest, exponent = math.modf(math.log10(abs(value)))
    return f"{'-' * (value < 0)}{10**rest:.4f} × {power_of_ten(int(exponent))}"


def power_of_ten(exponent: int) -> str:
    """Such as ``1,000`` and ``10⁶``."""
    return f"{10**exponent:,}" if exponent <= 3 else f"10{str(exponent).translate(_SUPERSCRIPTS)}"
