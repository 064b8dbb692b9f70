"""Matches as Arrow tables of positions, and their join with events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.arguments import kind_of, texts
from cepbench.engines.runs.matches import BranchMatches, Column, SetColumn
from cepbench.errors import EvaluationError, StreamError
from cepbench.patterns.model import Pattern
from cepbench.streams.columns import Booleans, CodedStrings, numbers_of
from cepbench.streams.event_stream import EventStream
from cepbench.streams.given import stream_from

#: Metadata of a column ``branch`` that is a variable's.
_VARIABLE = {b"cepbench": b"variable"}

#: Metadata of a column of RETURN that has no positions.
VALUE = {b"cepbench": b"value"}


def match_schema(pattern: Pattern) -> pa.Schema:
    """One column per positive variable: int64 positions, or lists of them for a Kleene variable.

    A pattern with OR has also ``branch``, the number of the branch in
    ``pattern.branches()``; variables that a match's branch does not have are null.
    """
    fields = []
    for variable in pattern.positive:
        kind = pa.large_list(pa.int64()) if variable.is_set else pa.int64()
        noted = _VARIABLE if variable.name == "branch" else None
        fields.append(pa.field(variable.name, kind, metadata=noted))
    if len(pattern.branches()) > 1:
        fields.append(pa.field("branch", pa.int64()))
    return pa.schema(fields)


def arrow_table(pattern: Pattern, found: Sequence[BranchMatches]) -> pa.Table:
    """The matches of all branches, branch by branch, each in the order found.

    Positions are not copied: the table has the chunks in which the matches were found.
    """
    schema = match_schema(pattern)
    batches = []
    for number, matches in enumerate(found):
        for chunk in matches.chunks:
            columns = dict(zip(matches.names, map(_array, chunk), strict=True))
            rows = len(chunk[0])
            if "branch" in schema.names and "branch" not in columns:
                columns["branch"] = pa.array(np.full(rows, number, np.int64))
            batches.append(
                pa.record_batch(
                    [columns.get(f.name, pa.nulls(rows, f.type)) for f in schema], schema=schema
                )
            )
    return pa.Table.from_batches(batches, schema=schema)


def _array(column: Column) -> pa.Array:
    if isinstance(column, SetColumn):
        return pa.LargeListArray.from_arrays(pa.array(column.offsets), pa.array(column.positions))
    return pa.array(column)


def with_events(
    matches: pa.Table,
    stream: EventStream,
    attributes: Iterable[str] | None = None,
    *,
    whole: bool = False,
) -> pa.Table:
    """Matches joined back to their events.

    Parameters
    ----------
    matches : pyarrow.Table
        Positions, as ``Result.arrow`` and
        :func:`cepbench.engines.detection.match_batches.match_batches` return them.
    stream : EventStream
        The stream in which the matches were found.
    attributes : iterable of str, optional
        Attributes to add, including ``"time"`` and ``"type"``; by default the time and all
        attributes. If the stream has an attribute with such a name, this is the attribute, and
        ``"event time"`` and ``"event type"`` are those of the events.
    whole : bool
        Whether to convert positions to those in the whole stream of which ``stream`` is a part:
        ``stream.positions``.

    Returns
    -------
    pyarrow.Table
        ``matches`` with columns ``variable.attribute``; for a Kleene variable lists in the order of
        its events.

    Raises
    ------
    StreamError
        If the stream has no such attribute, or has no positions in a whole stream.
    EvaluationError
        If ``matches`` is not a table of matches, or a position is not in the stream.
    """
    stream = stream_from(stream)
    if not isinstance(matches, pa.Table):
        raise EvaluationError(
            f"matches must be a pyarrow.Table, not {kind_of(matches)}; Result.arrow is one"
        )
    places = pa.array(stream.whole_positions()) if whole else None
    wanted = [event_time(stream), *stream.attributes]
    if attributes is not None:
        wanted = texts(attributes, "attributes", StreamError)
    values = {name: event_values(stream, name) for name in dict.fromkeys(wanted)}
    columns = {}
    for field in matches.schema:
        column = matches.column(field.name).combine_chunks()
        columns[field.name] = column
        last = field.name == matches.schema.names[-1]
        if field.name == "branch" and last and field.metadata != _VARIABLE:
            continue
        positions = column.values if pa.types.is_large_list(field.type) else column
        if not pa.types.is_integer(positions.type) or field.metadata == VALUE:
            raise EvaluationError(
                f"the column {field.name!r} of the matches, of type {field.type}, holds no positions; "
                "give them as Result.arrow has them, and without RETURN or with variables alone in it"
            )
        _check_positions(positions, field.name, len(stream))
        if places is not None:
            columns[field.name] = taken(places, column)
        for name, events in values.items():
            if f"{field.name}.{name}" in matches.schema.names:
                raise EvaluationError(
                    f"two columns would be named '{field.name}.{name}'; rename the variable"
                )
            columns[f"{field.name}.{name}"] = taken(events, column)
    return pa.table(columns)


def taken(events: pa.Array, column: pa.Array) -> pa.Array:
    """The values of events at a column of rows, or of lists of rows."""
    if not pa.types.is_large_list(column.type):
        return events.take(column)
    taken = events.take(column.values)
    return pa.LargeListArray.from_arrays(column.offsets, taken, mask=column.is_null())


def _check_positions(positions: pa.Array, name: str, events: int) -> None:
    if len(positions) == positions.null_count:
        return
    least, most = (pc.min_max(positions)[end].as_py() for end in ("min", "max"))
    if least < 0 or most >= events:
        raise EvaluationError(
            f"{name!r} has positions from {least} to {most}, but the stream has {events:,} events; "
            "give the stream that the matches were found in"
        )


def event_time(stream: EventStream) -> str:
    """The name by which :func:`with_events` adds the time of events."""
    return own_name("time", stream)


def own_name(name: str, stream: EventStream) -> str:
    """The name of the ``time`` or the ``type`` of events themselves, which no attribute has."""
    while name in stream.attributes:
        name = f"event {name}"
    return name


def event_values(stream: EventStream, name: str) -> pa.Array:
    """An attribute of all events; their time and type if no attribute has that name."""
    if name in (own_name("type", stream), own_name("event type", stream)):
        return _texts(CodedStrings(stream.type_codes, stream.type_names))
    if name in (own_name("time", stream), own_name("event time", stream)) or stream.is_time(name):
        times = pa.array(stream.timestamps)
        return times.cast(pa.timestamp("ns")) if stream.is_datetime else times
    column = stream.column(name)
    if isinstance(column, CodedStrings):
        return _texts(column)
    if isinstance(column, Booleans):
        return pa.array(column.codes > 0, mask=column.codes < 0)
    return pa.array(numbers_of(column), from_pandas=True)


def _texts(column: CodedStrings) -> pa.Array:
    codes = pa.array(column.codes, mask=column.codes < 0)
    return pa.DictionaryArray.from_arrays(codes, pa.array(column.values, pa.string()))
