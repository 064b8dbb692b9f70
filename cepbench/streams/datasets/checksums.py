"""A checksum of events, independent of the files and of the library that wrote them."""

from __future__ import annotations

import hashlib

import numpy as np

from cepbench.streams.columns import AttributeColumn, Booleans, CodedStrings, numbers_of
from cepbench.streams.event_stream import EventStream


def stream_checksum(stream: EventStream) -> str:
    """SHA-256 of a stream's content, in hexadecimal.

    Parquet files of the same events differ between versions of Arrow, so the digest is over types,
    timestamps and attributes by name, in order of arrival. Texts are digested by value, not by
    code, and all missing numbers are equal.
    """
    digest = hashlib.sha256(f"{len(stream)} {stream.is_datetime}".encode())
    columns: dict[str, AttributeColumn] = {
        "": CodedStrings(stream.type_codes, stream.type_names),
        "time": stream.timestamps,
    }
    columns |= {f"attribute {name}": column for name, column in stream.attributes.items()}
    for name in sorted(columns):
        digest.update(f"\n{name}\n".encode())
        column = columns[name]
        if isinstance(column, CodedStrings):
            digest.update("\0".join(_used(column)).encode())
            digest.update(_codes_by_value(column).tobytes())
        elif isinstance(column, Booleans):
            digest.update(_little_endian(column.codes).tobytes())
        else:
            digest.update(_little_endian(numbers_of(column)).tobytes())
    return digest.hexdigest()


def _used(column: CodedStrings) -> list[str]:
    """The values that occur, sorted."""
    return sorted(column.values[code] for code in np.unique(column.codes) if code >= 0)


def _codes_by_value(column: CodedStrings) -> np.ndarray:
    place = {value: code for code, value in enumerate(_used(column))}
    # The last entry is for code -1, a missing value.
    codes = np.array([place.get(value, -1) for value in column.values] + [-1], dtype="<i4")
    return codes[column.codes]


def _little_endian(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind == "f":
        return np.where(np.isnan(column), np.nan, column).astype("<f8")
    return column.astype("<i8")
