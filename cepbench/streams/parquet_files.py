"""Writing Parquet files of events, atomically and in row groups that readers can prune."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cepbench.files import whole_file
from cepbench.patterns.concepts import ConceptHierarchy

#: Small enough that a symbol's events of a month lie in one or two groups.
_ROW_GROUP = 32_768

#: Key of a schema's metadata: the concepts above the types of its events, as JSON.
_HIERARCHY = b"cepbench.hierarchy"


def write_table(table: pa.Table, file: Path) -> None:
    """Write a file of events atomically."""
    with table_writer(file, table.schema) as write:
        write(table)


@contextmanager
def table_writer(file: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Write a Parquet file table by table, atomically.

    Times and increasing numbers are encoded as deltas, the rest by dictionaries.
    """
    growing = [name for name in ("ts", "sequence", "row", "id") if name in schema.names]
    with (
        whole_file(file) as unfinished,
        pq.ParquetWriter(
            unfinished,
            schema,
            compression="zstd",
            use_dictionary=[name for name in schema.names if name not in growing],
            column_encoding=dict.fromkeys(growing, "DELTA_BINARY_PACKED"),
        ) as writer,
    ):
        yield partial(writer.write_table, row_group_size=_ROW_GROUP)


def under_hierarchy(table: pa.Table, hierarchy: ConceptHierarchy) -> pa.Table:
    """A table whose schema, and any Parquet file of it, states the concepts above its types."""
    return table.replace_schema_metadata({_HIERARCHY: json.dumps(hierarchy.mapping)})


def hierarchy_of_schema(schema: pa.Schema) -> ConceptHierarchy | None:
    """The hierarchy that :func:`under_hierarchy` stated; None without one."""
    stated = (schema.metadata or {}).get(_HIERARCHY)
    return None if stated is None else ConceptHierarchy(json.loads(stated))
