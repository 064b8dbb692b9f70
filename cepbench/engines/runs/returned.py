"""The columns of a RETURN clause, computed from matches and their events."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.engines.runs.arrow_matches import VALUE, event_values, taken
from cepbench.engines.runs.graph_matches import graph_values
from cepbench.engines.runs.kernels.values import MAX, MIN, SUM, Aggregates, Rows
from cepbench.engines.runs.rooted_graph import RootedGraph
from cepbench.patterns.arrays import expression_values, over_sets
from cepbench.patterns.expressions import terms_of
from cepbench.patterns.model import Aggregate, Attribute, Pattern, Returned
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


def returned_table(
    matches: pa.Table,
    pattern: Pattern,
    events: EventStream,
    *,
    first: int = 0,
    places: np.ndarray | None = None,
) -> pa.Table:
    """The columns that a pattern returns, one row a match, from tables of positions.

    ``events`` are at least those of the matches, from the position ``first`` on; ``places[position]``
    is the position to return.

    A variable is a position, or a list of positions; an attribute has its type in the stream, or is
    a list; ``count`` is an integer, and all else a float. Null where a branch of OR lacks the
    variable, where a value is missing, and for the first, the last and aggregates other than
    ``count`` of no events.
    """
    return _table(pattern, _Rows(matches, events, first, places))


def values_suffice(pattern: Pattern) -> bool:
    """Whether RETURN needs no lists of positions, so that a graph of matches gives its columns."""
    sets = {variable.name for variable in pattern.positive if variable.is_set}
    if len(pattern.branches()) > 1:
        return False  # the branches lack variables of each other
    for column in pattern.returns:
        terms = [] if isinstance(column.value, str) else list(terms_of(column.value))
        lists = [
            t for t in terms if isinstance(t, Attribute) and t.element not in ("first", "last")
        ]
        if column.value in sets or any(term.variable in sets for term in lists):
            return False
    return True


def returned_values(
    part: RootedGraph, pattern: Pattern, events: EventStream, *, places: np.ndarray | None = None
) -> pa.Table:
    """As :func:`returned_table`, from a graph of matches, of which no lists are made.

    Sums are from the last event on, and may differ from those of a list by rounding. The pattern is
    one for which :func:`values_suffice`, and ``events`` are the whole stream.
    """
    names, wanted = pattern.positive_names, aggregates_of(pattern.returns)
    reader, everything = NumericReader(), np.arange(len(events))
    columns = np.empty((len(wanted), 2), np.int64)
    read = np.empty((len(wanted), len(events)))
    for place, (function, attribute) in enumerate(wanted):
        columns[place] = names.index(attribute.variable), function
        read[place] = reader.read(events, attribute.name, everything)
    aggregates = Aggregates(columns, read)
    chunks = graph_values(part.graph, part.roots, part.earliest, len(names), aggregates)
    return pa.concat_tables(values_table(chunk, pattern, events, places=places) for chunk in chunks)


def values_table(
    values: Rows,
    pattern: Pattern,
    events: EventStream,
    *,
    first: int = 0,
    places: np.ndarray | None = None,
) -> pa.Table:
    """As :func:`returned_table`, from the values of matches, with the aggregates of
    :func:`aggregates_of`.
    """
    return _table(pattern, _ValueRows(values, pattern, events, first, places))


def _table(pattern: Pattern, rows: _Rows) -> pa.Table:
    """The columns that a pattern returns; those that are no positions say so."""
    columns = [rows.column(column) for column in pattern.returns]
    fields = [
        pa.field(its.name, column.type, metadata=None if isinstance(its.value, str) else VALUE)
        for its, column in zip(pattern.returns, columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def aggregates_of(returns: Sequence[Returned]) -> list[tuple[int, Attribute]]:
    """The aggregates that the values of a match have for RETURN: function and attribute."""
    return list(
        dict.fromkeys(
            (_REDUCED[term.function], term.attribute)
            for column in returns
            if not isinstance(column.value, str)
            for term in terms_of(column.value)
            if isinstance(term, Aggregate) and term.function in _REDUCED
        )
    )


def frame_of(table: pa.Table) -> pd.DataFrame:
    """A table of matches as a DataFrame: lists as tuples, integers and booleans with nulls as pandas' own."""
    columns: dict[str, Any] = {}
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_large_list(field.type):
            columns[field.name] = pd.Series(_tuples(column.combine_chunks()), dtype=object)
        elif pa.types.is_integer(field.type) and column.null_count:
            columns[field.name] = pd.Series(column.to_pylist(), dtype="Int64")
        elif pa.types.is_boolean(field.type) and column.null_count:
            columns[field.name] = pd.Series(column.to_pylist(), dtype="boolean")
        else:
            columns[field.name] = column.to_pandas()
    return pd.DataFrame(columns)


def _tuples(lists: pa.LargeListArray) -> list[tuple[Any, ...] | None]:
    values, ends = lists.values, lists.offsets.to_numpy().tolist()
    is_plain = pa.types.is_integer(values.type) and not values.null_count
    # NumPy lists integers in a tenth of the time.
    listed = values.to_numpy().tolist() if is_plain else values.to_pylist()
    return [
        tuple(listed[begin:end]) if known else None
        for (begin, end), known in zip(pairwise(ends), lists.is_valid().to_pylist(), strict=True)
    ]


#: Aggregates as a graph carries them; an average is a sum and a size.
_REDUCED = {"sum": SUM, "avg": SUM, "min": MIN, "max": MAX}


class _Rows:
    """Matches whose columns are computed."""

    def __init__(
        self, matches: pa.Table, events: EventStream, first: int, places: np.ndarray | None
    ) -> None:
        self._matches = matches
        self._events = events
        self._first = first
        self._places = None if places is None else pa.array(places)
        self._reader = NumericReader()

    def column(self, column: Returned) -> pa.Array:
        """The values of a column, in the order of the matches."""
        match column.value:
            case str(variable):
                positions = self._positions(variable)
                return positions if self._places is None else taken(self._places, positions)
            case Attribute() as attribute:
                return self._attribute(attribute)
            case Aggregate("count", attribute):
                return self._sizes(attribute.variable)
            case value:
                found = expression_values(value, self._numbers, self._reader.code, self._over_set)
                return pa.array(found, from_pandas=True)

    def _positions(self, variable: str) -> pa.Array:
        """The positions of a variable's events; lists are without an offset."""
        column = self._matches.column(variable).combine_chunks()
        if not pa.types.is_large_list(column.type):
            return column
        offsets = column.offsets.to_numpy()
        return pa.LargeListArray.from_arrays(
            pa.array(offsets - offsets[0]),
            column.values[offsets[0] : offsets[-1]],
            mask=pa.array(column.is_null().to_numpy(zero_copy_only=False)),
        )

    def _sizes(self, variable: str) -> pa.Array:
        """The number of a variable's events."""
        return pc.list_value_length(self._positions(variable))

    def _events_of(self, attribute: Attribute) -> pa.Array:
        """The rows of the events that an attribute is read from."""
        found = self._positions(attribute.variable)
        if not pa.types.is_large_list(found.type):
            return pc.subtract(found, self._first)
        rows = pc.subtract(found.values, self._first)
        if attribute.element == "each":
            return pa.LargeListArray.from_arrays(found.offsets, rows, mask=found.is_null())
        offsets = found.offsets.to_numpy()
        ends = offsets[1:] - 1 if attribute.element == "last" else offsets[:-1]
        return rows.take(pa.array(ends, mask=np.diff(offsets) == 0))

    def _attribute(self, attribute: Attribute) -> pa.Array:
        values = event_values(self._events, attribute.name)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        return taken(values, self._events_of(attribute))

    def _numbers(self, attribute: Attribute) -> np.ndarray:
        """The values of an attribute, one a match; NaN where missing."""
        rows = self._events_of(attribute)
        found = np.full(len(rows), np.nan)
        present = rows.is_valid().to_numpy(zero_copy_only=False)
        found[present] = self._reader.read(
            self._events, attribute.name, rows.drop_null().to_numpy()
        )
        return found

    def _over_set(self, aggregate: Aggregate) -> np.ndarray:
        """The values of an aggregate, one a match; NaN where missing."""
        rows = self._events_of(aggregate.attribute)
        values = self._reader.read(self._events, aggregate.attribute.name, rows.values.to_numpy())
        found = over_sets(aggregate.function, values, rows.offsets.to_numpy())
        found[rows.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return found


class _ValueRows(_Rows):
    """Matches of which only values are known."""

    def __init__(
        self,
        chunk: Rows,
        pattern: Pattern,
        events: EventStream,
        first: int,
        places: np.ndarray | None,
    ) -> None:
        super().__init__(pa.table({}), events, first, places)
        self._chunk = chunk
        self._wanted = aggregates_of(pattern.returns)
        self._names = pattern.positive_names

    def _positions(self, variable: str) -> pa.Array:
        return pa.array(self._chunk.lasts[self._names.index(variable)])

    def _sizes(self, variable: str) -> pa.Array:
        return pa.array(self._chunk.sizes[self._names.index(variable)])

    def _events_of(self, attribute: Attribute) -> pa.Array:
        its = self._chunk.firsts if attribute.element == "first" else self._chunk.lasts
        return pa.array(its[self._names.index(attribute.variable)] - self._first)

    def _over_set(self, aggregate: Aggregate) -> np.ndarray:
        sizes = self._chunk.sizes[self._names.index(aggregate.attribute.variable)]
        if aggregate.function == "count":
            return sizes.astype(np.float64)
        place = self._wanted.index((_REDUCED[aggregate.function], aggregate.attribute))
        found: np.ndarray = self._chunk.aggregates[place]
        return found / sizes if aggregate.function == "avg" else found
