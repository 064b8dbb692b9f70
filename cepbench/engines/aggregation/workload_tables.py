"""Rows of values of several queries as one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.tables import arrow_of, frame_of
from cepbench.errors import EvaluationError
from cepbench.patterns.model import Pattern

if TYPE_CHECKING:
    import pyarrow as pa


class QueryRows(NamedTuple):
    """The rows of a query.

    Attributes
    ----------
    pattern : Pattern
    rows : Rows
    places : ndarray of int64
        By which rows are ordered, those of one place by query.
    """

    pattern: Pattern
    rows: Rows
    places: np.ndarray


def check_columns(patterns: Mapping[str, Pattern]) -> None:
    """Check that no keys of GROUP BY are named as other columns of the table of all queries are.

    Raises
    ------
    EvaluationError
    """
    other = {"query"} | {str(each) for p in patterns.values() for each in p.aggregates}
    for name, pattern in patterns.items():
        for key in pattern.group_by:
            if str(key) in other:
                raise EvaluationError(
                    f"the table of values would have two columns named {str(key)!r}; rename the "
                    f"attribute of GROUP BY {key} of query {name!r}"
                )


def frame_of_queries(queries: Mapping[str, QueryRows], *, at: bool) -> pd.DataFrame:
    """The tables of :func:`~cepbench.engines.aggregation.tables.frame_of` as one, in the order of places.

    Integers of which some queries have no column are Int64.
    """

    def column(parts: list[Any], sizes: list[int]) -> Any:
        dtypes = {part.dtype if part is not None else None for part in parts}
        if len(dtypes) > 1:
            kinds = {dtype.kind for dtype in dtypes if dtype is not None}
            missing = np.nan if kinds == {"f"} else pd.NA
            dtype = "object" if "O" in kinds else "float64" if "f" in kinds else "Int64"
            parts = [
                pd.Series([missing] * size, dtype=dtype) if part is None else part.astype(dtype)
                for part, size in zip(parts, sizes, strict=True)
            ]
        return pd.concat(parts, ignore_index=True)

    tables = [
        frame_of(its.pattern, its.rows, is_datetime=_is_datetime(queries), at=at)
        for its in queries.values()
    ]
    columns = _columns(queries, tables, column)
    for name, its in columns.items():
        # Of keys; an inferred type would be that of floats, which are equal for large integers.
        if isinstance(its, list) and {*map(type, its)} == {int, type(None)}:
            columns[name] = pd.array(its, "Int64")
    order = np.argsort(np.concatenate([its.places for its in queries.values()]), kind="stable")
    return pd.DataFrame(columns).iloc[order].reset_index(drop=True)


def arrow_of_queries(queries: Mapping[str, QueryRows], *, at: bool) -> pa.Table:
    """The same with null where missing; a column with integers beyond 64 bits has texts."""
    import pyarrow as pa

    def column(parts: list[Any], sizes: list[int]) -> Any:
        types = {part.type for part in parts if part is not None}
        its = types.pop() if len(types) == 1 else pa.string()
        return pa.chunked_array(
            [
                pa.nulls(size, its) if part is None else part.cast(its).combine_chunks()
                for part, size in zip(parts, sizes, strict=True)
            ],
            its,
        )

    tables = [
        arrow_of(its.pattern, its.rows, is_datetime=_is_datetime(queries), at=at)
        for its in queries.values()
    ]
    columns = _columns(queries, tables, column)
    order = np.argsort(np.concatenate([its.places for its in queries.values()]), kind="stable")
    return pa.table(columns).take(order)


def _is_datetime(queries: Mapping[str, QueryRows]) -> bool:
    return next(iter(queries.values())).pattern.window.is_datetime


def _columns(
    queries: Mapping[str, QueryRows],
    tables: list[Any],
    joined: Callable[[list[Any], list[int]], Any],
) -> dict[str, Any]:
    """The columns of all tables, each joined from those of the queries; None for one without it."""
    sizes = [len(its.rows) for its in queries.values()]
    keys = dict.fromkeys(str(key) for its in queries.values() for key in its.pattern.group_by)
    names = [str(each) for its in queries.values() for each in its.pattern.aggregates]
    columns: dict[str, Any] = {"query": np.repeat(np.array([*queries], object), sizes)}
    for name in ["position", "time"]:
        if name in _names(tables[0]):
            columns[name] = joined([table[name] for table in tables], sizes)
    for key in keys:
        columns[key] = [value for its in queries.values() for value in _values(its, key)]
    for name in dict.fromkeys(names):
        parts = [table[name] if name in _names(table) else None for table in tables]
        columns[name] = joined(parts, sizes)
    return columns


def _names(table: Any) -> list[str]:
    return list(getattr(table, "column_names", table.columns))


def _values(its: QueryRows, key: str) -> list[Any]:
    keys = [*map(str, its.pattern.group_by)]
    if key not in keys:
        return [None] * len(its.rows)
    return [row.key[keys.index(key)] for row in its.rows]
