"""Events as a table of DuckDB, and rows that can be compared with a result's."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa


def arrow_table(events: pd.DataFrame, *, is_datetime: bool = False) -> pa.Table:
    """Events with their positions. NaN stays NaN, which pandas and Arrow would turn into NULL."""
    columns = {"position": pa.array(np.arange(len(events)))}
    for name in events:
        values = events[name]
        if isinstance(values.dtype, pd.CategoricalDtype) or values.dtype == object:
            columns[name] = pa.array(values.astype(object), pa.string())
        else:
            missing = None if values.dtype == float else values.isna().to_numpy()
            columns[name] = pa.array(
                values.to_numpy(values.dtype.type if missing is None else None), mask=missing
            )
    if is_datetime:
        columns["time"] = columns["time"].cast(pa.timestamp("ns"))
    return pa.table(columns)


def load(connection: duckdb.DuckDBPyConnection, table: pa.Table) -> None:
    """The table as ``events``."""
    connection.register("arrow", table)
    connection.execute("CREATE OR REPLACE TABLE events AS SELECT * FROM arrow")


def queried(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[list[str], list[tuple]]:
    """The columns and rows of a query."""
    done = connection.execute(query)
    return [column[0] for column in done.description], done.fetchall()


def table_of(matches: pd.DataFrame) -> tuple[list[str], list[tuple]]:
    """The columns and rows of a result's matches."""
    rows = matches.astype(object).where(matches.notna(), None)
    return list(matches.columns), [tuple(row) for row in rows.to_numpy().tolist()]
