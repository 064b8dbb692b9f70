"""Writing Parquet files of events, atomically and in row groups that readers can prune."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

#: Small enough that a symbol's events of a month lie in one or two groups.
ROW_GROUP = 32_768


def write_table(table: pa.Table, file: Path) -> None:
    """Write a file of events atomically."""
    write_in_one_step(file, lambda unfinished: _write(table, unfinished))


def write_in_one_step(file: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` create a hidden file, then rename it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    try:
        write(unfinished)
        os.replace(unfinished, file)
    finally:
        unfinished.unlink(missing_ok=True)


def parquet_options(schema: pa.Schema) -> dict[str, Any]:
    """Encodings: deltas for times and increasing numbers, dictionaries for the rest."""
    growing = [name for name in ("ts", "sequence", "row") if name in schema.names]
    return {
        "compression": "zstd",
        "use_dictionary": [name for name in schema.names if name not in growing],
        "column_encoding": dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
    }


def _write(table: pa.Table, file: Path) -> None:
    pq.write_table(table, file, row_group_size=ROW_GROUP, **parquet_options(table.schema))
