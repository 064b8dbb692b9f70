"""Which files, columns and partitions a path of Parquet has.

Partitions in the names of folders (``symbol=A/year=2024/…``, as Hive, Spark, pandas and Polars write
them) are columns like those in the files. The months into which cepbench divides its own data sets
are not: they only say which times a file can have, and only in folders with a declaration.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq

from cepbench.errors import DatasetError
from cepbench.files import user_path
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.streams.dataset_folder import MONTH, is_declared
from cepbench.streams.parquet_files import hierarchy_of_schema

#: Name endings of Parquet files. Others are read if their content is Parquet.
_ENDINGS = (".parquet", ".parq", ".pq")

#: The first bytes of every Parquet file.
_MAGIC = b"PAR1"

#: A missing value in the name of a folder.
_MISSING = "__HIVE_DEFAULT_PARTITION__"

_INTEGER = re.compile(r"-?\d{1,18}")

#: Types that are read as others: those that Polars gives to Arrow, which does not filter them, and dates, which are times.
_READ_AS = {
    pa.string_view(): pa.string(),
    pa.binary_view(): pa.binary(),
    pa.date32(): pa.timestamp("ms"),
    pa.date64(): pa.timestamp("ms"),
}


def begins_as_parquet(file: Path) -> bool:
    """Whether the content of a file is Parquet, by its first bytes."""
    with file.open("rb") as content:
        return content.read(len(_MAGIC)) == _MAGIC


def parquet_files(path: str | Path) -> list[Path]:
    """The Parquet files of a path: the file itself, or those below the folder, by name.

    Files of another kind (``README.md``), and hidden ones and those of a writer's own (names that
    begin with ``.`` or ``_``), are not events.
    """
    path = user_path(path)
    return [path] if path.is_file() else sorted(_files_below(path), key=str)


def _files_below(folder: Path) -> Iterator[Path]:
    seen = set()
    for place, folders, names in os.walk(folder, followlinks=True):
        its = os.path.realpath(place)
        # A link to a folder above it would be followed for ever.
        folders[:] = [] if its in seen else [name for name in folders if not _is_aside(name)]
        if its in seen:
            continue
        seen.add(its)
        for name in names:
            file = Path(place, name)
            if _is_aside(name) or not file.is_file():
                continue
            if name.lower().endswith(_ENDINGS) or begins_as_parquet(file):
                yield file


def _is_aside(name: str) -> bool:
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def open_parquet(path: str | Path, type: str | None = None) -> ds.Dataset:
    """The Parquet files of a path as one dataset, with a column for each partition.

    It has the columns of all files, in the widest of their types. A partition is a column of integers
    if all its values are, else of texts; ``__HIVE_DEFAULT_PARTITION__`` is a missing value. The types
    of events are texts and read as codes, and a column in the files takes precedence. A DatasetError
    if there is no Parquet file, or files have columns of one name and different types.
    """
    path = user_path(path)
    files = parquet_files(path)
    if not files:
        raise DatasetError(f"there is no Parquet file below {path}")
    read = ds.ParquetReadOptions(dictionary_columns=set() if type is None else {type})
    form = ds.ParquetFileFormat(read_options=read)
    local = fs.LocalFileSystem()
    if is_declared(path):
        schema = form.inspect(str(files[0]), local)
        known = [_times_in(file, schema) for file in files]
    else:
        schemas = [form.inspect(str(file), local) for file in files]
        schema, known = _with_partitions(_united(schemas, files), schemas, path, files, type)
    return ds.FileSystemDataset.from_paths(
        list(map(str, files)), schema=schema, format=form, filesystem=local, partitions=known
    )


def hierarchy_of_parquet(path: str | Path) -> ConceptHierarchy | None:
    """The hierarchy that the Parquet files of a path state; None without one."""
    return hierarchy_of_schema(open_parquet(path).schema)


def months_of(path: Path) -> list[Path]:
    """The folders of months of a data set of cepbench, earliest first; of other Parquet the path."""
    months = sorted(path.glob(f"{MONTH}=*")) if is_declared(path) else []
    return months or [path]


def leaf_of(metadata: pq.FileMetaData, name: str) -> int | None:
    """The number of a column in a file's statistics; None if it is nested or in a folder's name."""
    schema = metadata.schema
    if name in schema.names:
        for number in range(len(schema)):
            # The names of nested columns are those of their innermost fields.
            if schema.column(number).name == schema.column(number).path == name:
                return number
    return None


def _times_in(file: Path, schema: pa.Schema) -> ds.Expression:
    """That the times of a file are of its folder's month."""
    month = file.parent.name.removeprefix(f"{MONTH}=")
    if month == file.parent.name:
        return ds.scalar(True)
    kind = schema.field("ts").type
    first = np.datetime64(month, "M")
    start, end = (pa.scalar(its.astype("datetime64[ns]")).cast(kind) for its in (first, first + 1))
    return (ds.field("ts") >= start) & (ds.field("ts") < end)


def _united(schemas: Sequence[pa.Schema], files: Sequence[Path]) -> pa.Schema:
    """The columns of all files."""
    first = schemas[0]
    found: dict[str, tuple[pa.Field, Path]] = {}
    for schema, file in zip(schemas, files, strict=True):
        if schema is not first and schema.equals(first):
            continue
        for name, number in Counter(schema.names).items():
            if number > 1:
                raise DatasetError(f"two columns of {file} are named {name!r}; rename one of them")
        for field in schema:
            its = field.with_type(_READ_AS.get(field.type, field.type))
            before, where = found.get(field.name, (its, file))
            found[field.name] = _merged(before, its, where, file), where
    return pa.schema([field for field, _ in found.values()], first.metadata)


def _merged(one: pa.Field, other: pa.Field, where: Path, elsewhere: Path) -> pa.Field:
    """A column that two files have, in a type that holds the values of both."""
    if one.equals(other):
        return one
    for pair in ((one, other), (_plain(one), _plain(other))):
        with suppress(pa.ArrowException):
            merged = pa.unify_schemas(
                [pa.schema([its]) for its in pair], promote_options="permissive"
            )
            return _wide(merged.field(0))
    raise DatasetError(
        f"column {one.name!r} has type {one.type} in {where} and {other.type} in {elsewhere}; write it "
        "with one type in all files"
    )


def _plain(field: pa.Field) -> pa.Field:
    """A column of codes as one of what they stand for; of times in a zone as one in UTC."""
    kind = field.type
    if pa.types.is_dictionary(kind):
        return field.with_type(kind.value_type)
    is_zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    return field.with_type(pa.timestamp(kind.unit, "UTC")) if is_zoned else field


def _wide(field: pa.Field) -> pa.Field:
    """A column of decimals as one that has room for integers too, which Arrow does not see to."""
    is_decimal = pa.types.is_decimal(field.type)
    return field.with_type(pa.decimal256(76, field.type.scale)) if is_decimal else field


def _with_partitions(
    schema: pa.Schema,
    schemas: Sequence[pa.Schema],
    path: Path,
    files: Sequence[Path],
    type: str | None,
) -> tuple[pa.Schema, list[ds.Expression]]:
    """The columns with those of partitions, and what the folders say of files without the column."""
    values = [_partition_of(file.relative_to(path)) if file != path else {} for file in files]
    known = [ds.scalar(True)] * len(files)
    for key in dict.fromkeys(key for its in values for key in its):
        texts = [its.get(key) for its in values]
        if key not in schema.names:
            kind = pa.dictionary(pa.int32(), pa.string()) if key == type else _kind_of(texts)
            schema = schema.append(pa.field(key, kind))
        kind = _plain(schema.field(key)).type
        for place, text in enumerate(texts):
            if key not in schemas[place].names:
                said = None if text is None else _said(text, kind, key, files[place])
                is_said = ds.field(key).is_null() if said is None else ds.field(key) == said
                known[place] &= is_said
    return schema, known


def _said(text: str, kind: pa.DataType, key: str, file: Path) -> pa.Scalar:
    """The value in the name of a folder, as the other files have it."""
    try:
        return pa.scalar(text).cast(kind)
    except pa.ArrowException as error:
        raise DatasetError(
            f"{key!r} is {text!r} in the name of a folder of {file}, and {kind} in other files; write it "
            "in one type"
        ) from error


def _partition_of(file: Path) -> dict[str, str | None]:
    """The values in the names of a file's folders."""
    found: dict[str, str | None] = {}
    for name in file.parts[:-1]:
        key, equals, value = name.partition("=")
        if key and equals:
            found[unquote(key)] = None if value == _MISSING else unquote(value)
    return found


def _kind_of(texts: Sequence[str | None]) -> pa.DataType:
    """Integers, if all values are and none is written in two ways; else texts."""
    some = {text for text in texts if text is not None}
    are_integers = some and all(_INTEGER.fullmatch(text) for text in some)
    return pa.int64() if are_integers and len(set(map(int, some))) == len(some) else pa.string()
