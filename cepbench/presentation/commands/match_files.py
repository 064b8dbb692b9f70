"""Matches written batch by batch to Parquet, CSV or Arrow, by the extension of the file.

CSV has no lists. The positions of a Kleene variable or a group are written as integers with blanks
between them, ``0 3 7``; lists of values as JSON arrays, ``["New York", null]``, in which a missing
value is ``null``, a time a text and infinity ``1e999``. An empty list is ``[]``, a missing one an
empty cell.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cepbench.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa


@contextmanager
def match_writer(
    file: Path, schema: pa.Schema, positions: Container[str] = ()
) -> Iterator[Callable[[pa.Table], None]]:
    """Open a file for tables of one schema, some of whose columns are positions; it is replaced at the end.

    Yields what appends a table. An OSError has the name of the file.
    """
    with whole_file(file) as part, _opened(part, file.suffix, schema, positions) as write:
        yield write


@contextmanager
def _opened(
    part: Path, ending: str, schema: pa.Schema, positions: Container[str]
) -> Iterator[Callable[[pa.Table], None]]:
    writer: Any
    if ending == ".csv":
        from pyarrow.csv import CSVWriter

        flat = with_lists_as_text(schema.empty_table(), positions).schema
        with CSVWriter(part, flat) as writer:
            yield lambda table: writer.write_table(with_lists_as_text(table, positions))
        return
    from pyarrow.ipc import new_file
    from pyarrow.parquet import ParquetWriter

    with (ParquetWriter if ending == ".parquet" else new_file)(part, schema) as writer:
        yield writer.write_table


def with_lists_as_text(table: pa.Table, positions: Container[str]) -> pa.Table:
    """A table as CSV holds it: lists, of which some are positions, as texts, codes as what they stand for."""
    import pyarrow as pa

    columns = {}
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_large_list(field.type) or pa.types.is_list(field.type):
            column = _joined(column, is_positions=field.name in positions)
        elif pa.types.is_dictionary(field.type):
            column = column.cast(pa.string())
        columns[field.name] = column
    return pa.table(columns)


def _joined(column: Any, *, is_positions: bool) -> Any:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    # Offsets from 0: the values of a slice are those of the whole.
    sizes = pc.fill_null(pc.list_value_length(column), 0).to_numpy()
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    values = pc.list_flatten(column)
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    texts = pc.cast(values, pa.string()) if is_positions else _json(values)
    joined = pc.binary_join(
        pa.LargeListArray.from_arrays(pa.array(offsets), texts), " " if is_positions else ", "
    )
    if is_positions:
        joined = pc.if_else(pa.array(sizes == 0), "[]", joined)
    else:
        joined = pc.binary_join_element_wise("[", joined, "]", "")
    missing = column.is_null().combine_chunks()
    return pc.if_else(missing, pa.scalar(None, pa.string()), joined)


def _json(values: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = values.type
    if pa.types.is_dictionary(kind):
        return pc.fill_null(_json(values.dictionary).take(values.indices), "null")
    if pa.types.is_floating(kind):
        values = pc.if_else(pc.is_nan(values), pa.scalar(None, kind), values)
    texts = pc.cast(values, pa.string())
    if pa.types.is_floating(kind):
        texts = pc.replace_substring(texts, "inf", "1e999")
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_temporal(kind):
        written = [json.dumps(text, ensure_ascii=False) for text in texts.to_pylist()]
        texts = pa.array(written, pa.string())
    return pc.fill_null(texts, "null")
