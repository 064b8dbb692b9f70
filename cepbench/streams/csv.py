"""Tables of text: CSV files as Arrow tables, for :meth:`EventStream.from_csv`."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from cepbench.arguments import kind_of, text
from cepbench.errors import DatasetError, StreamError
from cepbench.files import user_path
from cepbench.streams.arrow import check_columns
from cepbench.streams.columns import EXACT

#: Ending of a file, without ``.gz`` → what separates its columns.
SEPARATORS = {".csv": ",", ".tsv": "\t"}

_QUOTE = ord('"')


def separator_of(path: str | Path) -> str | None:
    """What separates the columns of a file; None if its name does not say that it is such a table."""
    return SEPARATORS.get(Path(str(path).lower().removesuffix(".gz")).suffix)


def table_of_csv(path: str | Path, type: str, time: str) -> pa.Table:
    """The rows of a file whose first line names the columns, in UTF-8; gzip is unpacked.

    Arrow infers the types of columns: integers, floats, ISO 8601 dates with times, booleans, else text.
    The column of event types is text as it stands. An empty field is a missing value.

    A DatasetError if the file cannot be read; a StreamError with the line if a row has another number
    of fields or a field ends after its closing quote, and if one of the two columns is missing or there
    are no rows.
    """
    if not isinstance(path, str | os.PathLike):
        raise DatasetError(f"from_csv takes the path of a file, not {kind_of(path)}")
    text(type, "type", StreamError)
    text(time, "time", StreamError)
    file = user_path(path)
    if not file.is_file():
        raise DatasetError(f"there is no file {path}")
    separator = separator_of(file) or ","
    ragged: list[pa_csv.InvalidRow] = []

    def note(row: pa_csv.InvalidRow) -> str:
        ragged.append(row)
        return "error"

    def read(types: dict[str, pa.DataType], *names: str) -> pa.Table:
        return pa_csv.read_csv(
            pa.BufferReader(content),
            # One thread: rows have numbers then.
            read_options=pa_csv.ReadOptions(use_threads=False),
            parse_options=pa_csv.ParseOptions(
                delimiter=separator, newlines_in_values=True, invalid_row_handler=note
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
                include_columns=names,
            ),
        )

    try:
        content = _content(file)
        table = read({type: pa.string()})
        names = table.column_names
    except (OSError, UnicodeError, pa.ArrowException) as error:
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
    _check_quotes(content, separator, path)
    if len(names) == 1 and (others := re.findall("[;|\t,]", names[0])):
        raise StreamError(
            f"{path}: fields are separated by commas, in a .tsv file by tabs, and its first line has "
            f"{others[0]!r}; write it so, or give pandas.read_csv(…, sep={others[0]!r}) to from_pandas"
        )
    check_columns([type, time], names, f"{path}: ")
    if not len(table):
        raise StreamError(f"{path} has no rows below the names, so that nothing says what they are")
    times = table.column(time)
    if pa.types.is_string(times.type):
        try:
            times.cast(pa.timestamp("ns"))
        except pa.ArrowInvalid as error:
            raise StreamError(
                f"{path}: times in {time!r} are all as in ISO 8601, 2024-01-31 09:30:00, or integers: {error}"
            ) from None
    for place, name in enumerate(names):
        if _has_large_floats(table.column(name)):
            written = read({name: pa.string()}, name).column(name)
            table = table.set_column(place, name, _exact(table.column(name), written))
    return table


def _content(file: Path) -> pa.Buffer:
    """The bytes of a file, unpacked; an OSError if it is text of another encoding by its first bytes."""
    with file.open("rb") as opened:
        begin = opened.read(2)
    if begin in (b"\xff\xfe", b"\xfe\xff"):
        raise OSError("it is UTF-16")
    packed = "gzip" if begin == b"\x1f\x8b" else "detect"
    with pa.input_stream(str(file), compression=packed) as content:
        return content.read_buffer()


def _check_quotes(content: pa.Buffer, separator: str, path: str | Path) -> None:
    """Raise a StreamError if a field begins with a quote, and does not end with one.

    Readers take what follows for a part of the field, up to the end of the file.
    """
    data = np.frombuffer(content, np.uint8)
    quotes = np.flatnonzero(data == _QUOTE)
    beside = np.zeros(256, bool)
    beside[[*separator.encode(), *b'\r\n"']] = True
    before = data[np.maximum(quotes[::2] - 1, 0)]
    after = data[np.minimum(quotes[1::2] + 1, len(data) - 1)]
    if len(quotes) % 2 == 0 and beside[before].all() and beside[after].all():
        return  # which takes less time than to find where it is not so
    ends = rf"[^{separator}\r\n]"
    field = rf'(?<!{ends})"(?:[^"]++|"")*+" *(?!{ends})'
    # Within a field that does not begin with one, a quote is a character as others.
    sound = re.compile(rf'(?:[^"]++|{field}|(?<={ends})")*+'.encode())
    found = sound.match(content)
    if found is not None and found.end() < len(content):
        head = content[: found.end()].to_pybytes()
        rest = content[found.end() : found.end() + 80].to_pybytes().decode(errors="replace")
        raise StreamError(
            f"{path}, line {head.count(10) + 1}: the quote of this field is not closed at its end: "
            f"{rest!r}; a quote within a field is written twice"
        )


def _has_large_floats(column: pa.ChunkedArray) -> bool:
    """Whether a column has floats of a size at which integers are rounded."""
    if not pa.types.is_floating(column.type):
        return False
    largest = pc.max(pc.abs(column)).as_py()
    return largest is not None and largest >= EXACT


def _exact(numbers: pa.ChunkedArray, written: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats, or where they round integers that are written, these, as decimals."""
    long = pc.match_substring_regex(written, r"^[+-]?\d{16,76}$")
    pairs = zip(numbers.filter(long).to_pylist(), written.filter(long).to_pylist(), strict=True)
    if all(number == int(its) for number, its in pairs):
        return numbers
    digits = pc.utf8_ltrim(pc.if_else(long, written, None), "+")
    return digits.cast(pa.decimal256(76, 0))
