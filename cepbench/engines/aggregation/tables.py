"""Rows of values of queries as one table: DataFrames and Arrow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from cepbench.engines.aggregation.rows import Column, Rows, joined_columns
from cepbench.engines.aggregation.semirings import has_floats
from cepbench.errors import EvaluationError, StreamError
from cepbench.patterns.model import Pattern
from cepbench.streams.columns import Decimals, kind_of_column
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_no_time

if TYPE_CHECKING:
    import pyarrow as pa

#: Integers of more digits are not shown in full.
_DIGITS = 15

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


class QueryRows(NamedTuple):
    """The rows of a query."""

    pattern: Pattern
    rows: Rows
    places: np.ndarray  #: by which rows are ordered, those of one place by query


class _Known(NamedTuple):
    """A column of few values: ``values[codes]``."""

    values: list[Any]
    codes: np.ndarray


def check_columns(queries: Mapping[str, Pattern]) -> None:
    """Check that no two columns of the table of all queries have the same name.

    An EvaluationError if not.
    """
    others = ["query"] * ("" not in queries)
    others += [str(each) for its in queries.values() for each in its.aggregates]
    for name, pattern in queries.items():
        keys = [*map(str, pattern.group_by)]
        own = ["position", "time", *keys, *map(str, pattern.aggregates)]
        twice = next((its for its in own if own.count(its) > 1), None)
        twice = twice or next((key for key in keys if key in others), None)
        if twice is not None:
            of = f" of query {name!r}" * bool(name)
            raise EvaluationError(
                f"the table of values would have two columns named {twice!r}; rename the attribute "
                f"of GROUP BY {twice}{of}"
            )


def check_values(pattern: Pattern, stream: EventStream) -> None:
    """Check that a stream has the attributes of GROUP BY and AGG, and numbers where these are due.

    A StreamError if not.
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
    return [
        its.function == "AVG"
        or (its.function != "COUNT" and has_floats(stream.column(str(its.attribute)), before=False))
        for its in pattern.aggregates
    ]


def frame_of(queries: Mapping[str, QueryRows], *, at: bool) -> pd.DataFrame:
    """One row per value, in the order of places, as ``AggregateResult.values``.

    There is no position for values at given times (``at``).
    """
    table: dict[str, Any] = {}
    for name, column in _columns(queries, at=at).items():
        if isinstance(column, _Known):
            # Floats would not tell large integers apart.
            is_integer = {*map(type, column.values)} == {int, type(None)}
            known = pd.Series(column.values, dtype="Int64" if is_integer else None)
            table[name] = known.take(column.codes).array
        elif column.dtype == object:
            # An inferred type would be that of floats, which may be too small.
            listed = [pd.NA if value is None else value for value in column]
            table[name] = pd.Series(listed, dtype=object)
        elif name in ("position", "time") or column.dtype == np.float64 or _is_count(name, column):
            table[name] = column
        else:
            missing = np.ma.getmaskarray(column)
            table[name] = pd.arrays.IntegerArray(np.asarray(column), missing)
    frame = pd.DataFrame(table)
    return frame if len(queries) == 1 else frame.iloc[_order(queries)].reset_index(drop=True)


def arrow_of(queries: Mapping[str, QueryRows], *, at: bool) -> pa.Table:
    """The table of :func:`frame_of` with null where missing; integers beyond 64 bits are texts."""
    import pyarrow as pa

    table: dict[str, Any] = {}
    for name, column in _columns(queries, at=at).items():
        if isinstance(column, _Known):
            table[name] = pa.array(column.values).take(pa.array(column.codes))
        elif column.dtype == object:
            # Python itself writes no more than 4300 digits.
            listed = [None if value is None else str(Decimal(value)) for value in column]
            table[name] = pa.array(listed)
        elif column.dtype.kind == "M":
            table[name] = pa.array(column)
        else:
            missing = np.isnan(column) if column.dtype == np.float64 else np.ma.getmaskarray(column)
            table[name] = pa.array(np.asarray(column), mask=missing)
    found = pa.table(table)
    return found if len(queries) == 1 else found.take(_order(queries))


def _order(queries: Mapping[str, QueryRows]) -> np.ndarray:
    return np.argsort(np.concatenate([its.places for its in queries.values()]), kind="stable")


def _is_count(name: str, column: Column) -> bool:
    return name.startswith("COUNT") and not isinstance(column, np.ma.MaskedArray)


def _columns(queries: Mapping[str, QueryRows], *, at: bool) -> dict[str, Column | _Known]:
    """The columns of the table, the rows of each query after those of the one before."""
    listed = [*queries.values()]
    table: dict[str, Column | _Known] = {}
    if "" not in queries:
        sizes = [len(its.rows) for its in listed]
        table["query"] = _Known([*queries], np.repeat(np.arange(len(listed)), sizes))
    if not at:
        table["position"] = joined_columns([its.rows.positions for its in listed])
    times = joined_columns([its.rows.times for its in listed])
    table["time"] = times.view("datetime64[ns]") if listed[0].pattern.window.is_datetime else times
    for key in dict.fromkeys(str(key) for its in listed for key in its.pattern.group_by):
        table[key] = _key(key, listed)
    for name in dict.fromkeys(str(each) for its in listed for each in its.pattern.aggregates):
        table[name] = joined_columns([_aggregate(name, its) for its in listed])
    return table


def _key(name: str, listed: Sequence[QueryRows]) -> _Known:
    """The values of a key of GROUP BY; None in rows of queries without it."""
    values: list[Any] = []
    codes = []
    for its in listed:
        names = [*map(str, its.pattern.group_by)]
        own, groups = [None], np.zeros(len(its.rows), np.int64)
        if name in names:
            place, groups = names.index(name), its.rows.groups
            own = [key[place] for key in its.rows.keys]
        elif not len(groups):
            continue
        codes.append(groups + len(values))
        values += own
    return _Known(values, np.concatenate(codes))


def _aggregate(name: str, its: QueryRows) -> Column:
    """The values of an aggregate; missing in the rows of a query without it."""
    names = [*map(str, its.pattern.aggregates)]
    if name in names:
        return its.rows.columns[names.index(name)]
    return np.ma.MaskedArray(np.zeros(len(its.rows), np.int64), True)


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
