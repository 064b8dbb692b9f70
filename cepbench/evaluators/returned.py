"""The columns of a RETURN clause, computed from matches and their events."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cepbench.evaluators.arrow_matches import event_values, taken
from cepbench.patterns.arrays import expression_values, over_sets
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
    """The columns that a pattern returns, one row a match.

    Parameters
    ----------
    matches : pyarrow.Table
        Positions, as :func:`cepbench.evaluators.arrow_matches.match_schema` describes them.
    pattern : Pattern
        With RETURN.
    events : EventStream
        At least the events of the matches.
    first : int
        The position of the first of these.
    places : ndarray of int64, optional
        ``places[position]`` is the position to return.

    Returns
    -------
    pyarrow.Table
        A variable is a position, or a list of positions; an attribute has its type in the stream,
        or is a list; ``count`` is an integer, and all else a float. Null where a branch of OR lacks
        the variable, where a value is missing, and for the first, the last and aggregates other
        than ``count`` of no events.
    """
    rows = _Rows(matches, events, first, places)
    return pa.table({column.name: rows.column(column) for column in pattern.returns})


def frame_of(table: pa.Table) -> pd.DataFrame:
    """A table of matches as a DataFrame: lists as tuples, integers with nulls as ``Int64``."""
    columns = {}
    for field in table.schema:
        column = table.column(field.name)
        if pa.types.is_large_list(field.type):
            listed = [None if one is None else tuple(one) for one in column.to_pylist()]
            columns[field.name] = pd.Series(listed, dtype=object)
        elif pa.types.is_integer(field.type) and column.null_count:
            columns[field.name] = pd.Series(column.to_pylist(), dtype="Int64")
        else:
            columns[field.name] = column.to_pandas()
    return pd.DataFrame(columns)


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
                return pc.list_value_length(self._positions(attribute.variable))
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
        if pa.types.is_floating(values.type):
            values = pa.array(values.to_numpy(), from_pandas=True)
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
