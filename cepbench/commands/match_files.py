"""Matches written batch by batch to Parquet, CSV or Arrow, by the extension of the file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cepbench.files import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

#: Supported file extensions.
ENDINGS = (".parquet", ".csv", ".arrow")


def check_ending(file: Path | None) -> Path | None:
    """Check the file extension before anything is run."""
    if file is not None and file.is_dir():
        raise typer.BadParameter(f"{file} is a folder that is there already; give another name")
    if file is not None and file.suffix not in ENDINGS:
        raise typer.BadParameter(f"{file} should end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    return file


@contextmanager
def match_writer(file: Path, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    """Open a file for tables of one schema; it is replaced atomically at the end.

    Yields
    ------
    callable
        Appends a table.

    Raises
    ------
    OSError
        With the name of the file, if it cannot be written.
    """
    try:
        with whole_file(file) as part, _opened(part, file.suffix, schema) as write:
            yield write
    except OSError as error:
        if error.errno is None or Path(error.filename or file).parent != file.parent:
            raise
        # Arrow's error has neither the file name nor the system's message.
        raise OSError(error.errno, os.strerror(error.errno), str(file)) from error


@contextmanager
def _opened(part: Path, ending: str, schema: pa.Schema) -> Iterator[Callable[[pa.Table], None]]:
    writer: Any
    if ending == ".parquet":
        import pyarrow.parquet as pq

        with pq.ParquetWriter(part, schema) as writer:
            yield writer.write_table
    elif ending == ".csv":
        import pyarrow.csv as pc

        with pc.CSVWriter(part, _flat(schema.empty_table()).schema) as writer:
            yield lambda table: writer.write_table(_flat(table))
    else:
        import pyarrow.ipc as ipc

        with ipc.new_file(part, schema) as writer:
            yield writer.write_table


def _flat(table: pa.Table) -> pa.Table:
    """Lists as space-separated texts, since CSV has no lists; codes as texts."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = {}
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_large_list(field.type):
            values = column.combine_chunks()
            texts = pa.LargeListArray.from_arrays(
                values.offsets, pc.cast(_plain(values.values), pa.string()), mask=values.is_null()
            )
            column = pc.binary_join(texts, " ")
        columns[field.name] = _plain(column)
    return pa.table(columns)


def _plain(column: Any) -> Any:
    import pyarrow as pa

    return column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
