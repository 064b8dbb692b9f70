"""Rows of values as tables: DataFrames and Arrow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cepbench.aggregators.protocol import Row
from cepbench.errors import EvaluationError, StreamError
from cepbench.patterns.model import MatchAggregate, Pattern
from cepbench.streams.columns import CodedStrings
from cepbench.streams.event_stream import EventStream

if TYPE_CHECKING:
    import pyarrow as pa

#: Integers of more digits are not shown in full.
_DIGITS = 15

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")

_INT64 = range(-(2**63), 2**63)


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
        _checked(f"GROUP BY {key}", key.attribute, stream)
    for aggregate in pattern.aggregates:
        if aggregate.attribute is None:
            continue
        is_text = _checked(f"AGG {aggregate}", aggregate.attribute, stream)
        if is_text and aggregate.function != "COUNT":
            raise StreamError(
                f"AGG {aggregate}: {aggregate.attribute} is a text, of which there is only a COUNT; "
                "convert it to a number before making the stream"
            )


def _checked(clause: str, attribute: str, stream: EventStream) -> bool:
    """Whether an attribute is a text; an error names the clause."""
    try:
        return isinstance(stream.column(attribute), CodedStrings)
    except StreamError as error:
        raise StreamError(f"{clause}: {error}") from None


def floats_of(pattern: Pattern, stream: EventStream) -> list[bool]:
    """Whether the values of each aggregate are floats, rather than integers."""
    return [_is_float(aggregate, stream) for aggregate in pattern.aggregates]


def _is_float(aggregate: MatchAggregate, stream: EventStream) -> bool:
    if aggregate.function == "COUNT":
        return False
    assert aggregate.attribute is not None
    return aggregate.function == "AVG" or stream.column(aggregate.attribute).dtype.kind == "f"  # type: ignore[union-attr]


def frame_of(
    pattern: Pattern, rows: Sequence[Row], floats: Sequence[bool], *, is_datetime: bool, at: bool
) -> pd.DataFrame:
    """One row per value.

    Parameters
    ----------
    pattern : Pattern
    rows : sequence of Row
    floats : sequence of bool
        As :func:`floats_of` returns them.
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
    times = np.array([row.time for row in rows], np.int64)
    table: dict[str, Any] = {}
    if not at:
        table["position"] = np.array([row.position for row in rows], np.int64)
    table["time"] = times.view("datetime64[ns]") if is_datetime else times
    for place, key in enumerate(pattern.group_by):
        table[str(key)] = [row.key[place] for row in rows]
    for place, aggregate in enumerate(pattern.aggregates):
        values = [row.values[place] for row in rows]
        table[str(aggregate)] = _array(values, aggregate, is_float=floats[place])
    return pd.DataFrame(table)


def _array(values: list[Any], aggregate: MatchAggregate, *, is_float: bool) -> Any:
    if is_float:
        return np.array([np.nan if value is None else value for value in values], np.float64)
    if not _fit(values):
        # An inferred type would be that of floats, which may be too small.
        return pd.Series([pd.NA if value is None else value for value in values], dtype=object)
    if aggregate.function == "COUNT":
        return np.array(values, np.int64)
    return pd.array(values, dtype="Int64")


def _fit(values: Sequence[int | None]) -> bool:
    return all(value is None or value in _INT64 for value in values)


def arrow_of(
    pattern: Pattern, rows: Sequence[Row], floats: Sequence[bool], *, is_datetime: bool, at: bool
) -> pa.Table:
    """The table of :func:`frame_of` with null where missing; integers beyond 64 bits are texts."""
    import pyarrow as pa

    times = pa.array([row.time for row in rows], pa.int64())
    columns: dict[str, Any] = {}
    if not at:
        columns["position"] = pa.array([row.position for row in rows], pa.int64())
    columns["time"] = times.cast(pa.timestamp("ns")) if is_datetime else times
    for place, key in enumerate(pattern.group_by):
        columns[str(key)] = pa.array([row.key[place] for row in rows])
    for place, aggregate in enumerate(pattern.aggregates):
        values = [row.values[place] for row in rows]
        if floats[place]:
            column = pa.array(values, pa.float64())
        elif _fit(values):
            column = pa.array(values, pa.int64())
        else:
            # Python itself writes no more than 4300 digits.
            column = pa.array([None if value is None else str(Decimal(value)) for value in values])
        columns[str(aggregate)] = column
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
