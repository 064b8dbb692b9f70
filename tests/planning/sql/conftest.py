"""One DuckDB for all queries of a test module."""

from __future__ import annotations

import duckdb
import pytest


@pytest.fixture(scope="module")
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect(config={"threads": 1})
