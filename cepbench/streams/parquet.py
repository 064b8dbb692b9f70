"""Event streams from Parquet; only the selected types and times are read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds

from cepbench.arguments import kind_of, text, texts
from cepbench.errors import DatasetError, StreamError, did_you_mean
from cepbench.patterns.concepts import ConceptHierarchy, hierarchy_from
from cepbench.streams.arrow import check_columns, stream_of_table
from cepbench.streams.dataset_folder import SEQUENCE, read_declaration, type_column
from cepbench.streams.parquet_files import hierarchy_of_schema
from cepbench.streams.parquet_layout import open_parquet
from cepbench.streams.row_groups import arrival_order, row_groups, rows_of, with_row_groups_of


def stream_of_parquet(
    made: Callable[..., Any],
    path: str | Path,
    type: str | None,
    time: str,
    attributes: Iterable[str] | None,
    types: Iterable[str] | None,
    start: datetime | int | None,
    end: datetime | int | None,
    sort: bool,
    positions: bool,
    hierarchy: ConceptHierarchy | None,
) -> Any:
    """What :meth:`cepbench.streams.event_stream.EventStream.from_parquet` says.

    ``made`` is as :func:`cepbench.streams.arrow.stream_of_table` takes it.
    """
    hierarchy = hierarchy_from(hierarchy)
    if not isinstance(path, str | os.PathLike) or path == "":
        raise DatasetError(f"from_parquet takes the path of a file or folder, not {kind_of(path)}")
    if type is not None:
        text(type, "type", StreamError)
    text(time, "time", StreamError)
    if attributes is not None:
        attributes = texts(attributes, "attributes", StreamError)
    declaration = read_declaration(path)
    own = type_column(declaration.kind if declaration else "")
    type = own if type is None else type
    keep = None if types is None else texts(types, "types", StreamError)
    try:
        dataset = open_parquet(path, type)
        stated = hierarchy_of_schema(dataset.schema)
        if None not in (hierarchy, stated) and hierarchy != stated:
            raise StreamError(f"{path} states another concept hierarchy; leave out the given one")
        hierarchy = hierarchy or stated
        if keep is not None and hierarchy is not None:
            below = [hierarchy.below(name) if name in hierarchy else (name,) for name in keep]
            keep = list(dict.fromkeys(name for names in below for name in names))
        wanted = keep
        if declaration is not None and type == own:
            wanted = list(declaration.counts) if keep is None else keep
            refuse_unknown(wanted, declaration.counts, hierarchy, path)
        ordered = declaration is not None and SEQUENCE in dataset.schema.names
        hidden = {type, time, SEQUENCE} if ordered else {type, time}
        names = [name for name in dataset.schema.names if name not in hidden]
        names = names if attributes is None else attributes
        columns = list(dict.fromkeys([type, time, *names, *([SEQUENCE] if ordered else [])]))
        missing = [name for name in columns if name not in dataset.schema.names]
        check_columns(missing, [n for n in dataset.schema.names if n not in hidden], f"{path}: ")
        wanted_rows = rows_of(dataset.schema, type, time, keep, start, end)
        pruned = dataset
        if keep is not None:
            pruned = with_row_groups_of(dataset, type, keep, wanted_rows)
        try:
            table = pruned.to_table(columns=columns, filter=wanted_rows)
        except pa.ArrowInvalid:
            _refuse_column(pruned, columns, wanted_rows, path)
            raise
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DatasetError(f"{path} cannot be read as Parquet: {error}") from error
    if ordered:
        table = _in_order(table, time)
    stream = stream_of_table(made, table, type=type, time=time, attributes=attributes, sort=sort)
    if wanted_rows is not None:
        places = None
        if positions:
            tie_breaker = SEQUENCE if ordered else None
            groups = row_groups(dataset, type, time)
            places = groups.positions(stream.timestamps, keep, tie_breaker)
            if isinstance(stream.positions, np.ndarray):
                places = places[stream.positions]
        stream = replace(stream, positions=places)
    stream = replace(stream, hierarchy=hierarchy)
    return stream if wanted is None else _with_type_names(stream, wanted)


def _refuse_column(
    dataset: ds.Dataset, columns: list[str], rows: ds.Expression | None, path: Any
) -> None:
    """Raise a DatasetError if a column has a value that the type of all files together does not hold."""
    for name in columns:
        try:
            dataset.to_table(columns=[name], filter=rows)
        except pa.ArrowInvalid as error:
            raise DatasetError(
                f"column {name!r} of {path} cannot be read as {dataset.schema.field(name).type}, the "
                f"type for all its files: {error}; write it with one type in all files, or leave it out "
                "by attributes="
            ) from error


def _in_order(table: pa.Table, time: str) -> pa.Table:
    """The rows ordered by time, then sequence, which is dropped."""
    order = arrival_order(table, [time, SEQUENCE])
    return table.drop_columns([SEQUENCE]).unify_dictionaries().take(pa.array(order))


def _with_type_names(stream: Any, names: list[str]) -> Any:
    """The same stream with exactly these type names."""
    place = {name: code for code, name in enumerate(names)}
    codes = np.array([place.get(name, -1) for name in stream.type_names], dtype=np.int32)
    return replace(stream, type_codes=codes[stream.type_codes], type_names=tuple(names))


def refuse_unknown(
    types: Iterable[str], known: Iterable[str], hierarchy: ConceptHierarchy | None, path: Any
) -> None:
    """Raise a DatasetError for a type that a data set does not have, with the nearest one."""
    names = list(known)
    missing = sorted(set(types).difference(names, hierarchy.names if hierarchy else ()))
    if missing:
        hint = did_you_mean(missing[0], names) or f"; it has {', '.join(names[:8])} …"
        raise DatasetError(f"the data set {path} has no events of type {missing[0]!r}{hint}")
