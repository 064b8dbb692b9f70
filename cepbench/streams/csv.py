"""Tables of text: CSV files as Arrow tables, for :meth:`EventStream.from_csv`."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv

from cepbench.errors import DatasetError, StreamError
from cepbench.files import user_path
from cepbench.streams.arrow import check_columns

#: Ending of a file, without ``.gz`` → what separates its columns.
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def separator_of(path: str | Path) -> str | None:
    """What separates the columns of a file; None if its name does not say that it is such a table."""
    return SEPARATORS.get(Path(str(path).lower().removesuffix(".gz")).suffix)


def table_of_csv(path: str | Path, type: str, time: str) -> pa.Table:
    """The rows of a file whose first line names the columns, in UTF-8; gzip is unpacked.

    Arrow infers the types of columns: integers, floats, ISO 8601 dates with times, booleans, else text.
    The column of event types is text as it stands. An empty field is a missing value.

    A DatasetError if the file cannot be read; a StreamError with the line if a row has another number
    of fields, and if one of the two columns is missing or there are no rows.
    """
    file = user_path(path)
    if not file.is_file():
        raise DatasetError(f"there is no file {path}")
    convert = pa_csv.ConvertOptions(
        column_types={type: pa.string()}, null_values=[""], strings_can_be_null=True
    )
    ragged: list[pa_csv.InvalidRow] = []

    def note(row: pa_csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    try:
        table = pa_csv.read_csv(
            file,
            # One thread: rows have numbers then.
            read_options=pa_csv.ReadOptions(use_threads=False),
            parse_options=pa_csv.ParseOptions(
                delimiter=separator_of(file) or ",",
                newlines_in_values=True,
                invalid_row_handler=note,
            ),
            convert_options=convert,
        )
    except (OSError, pa.ArrowException) as error:
        if ragged:
            row = ragged[0]
            raise StreamError(
                f"{path}, line {row.number}: the first line names {row.expected_columns} columns, and this "
                f"row has {row.actual_columns}: {row.text[:80]!r}; fields with a comma need quotes"
            ) from None
        why = re.sub(r"\s+", " ", str(error))[:200]
        raise DatasetError(
            f"{path} cannot be read as CSV ({why}); the first line names the columns, the text is UTF-8"
        ) from None
    check_columns([type, time], table.column_names, f"{path}: ")
    if not len(table):
        raise StreamError(f"{path} has no rows below the names, so that nothing says what they are")
    return table
