"""A finite, columnar event stream, validated once on construction."""

from __future__ import annotations

import html
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cepbench.arguments import shown, text, texts, whole
from cepbench.errors import StreamError, did_you_mean
from cepbench.patterns.concepts import ConceptHierarchy, hierarchy_from
from cepbench.patterns.event_columns import attribute_column
from cepbench.patterns.expressions import whole_time
from cepbench.patterns.times import in_order, part_of_times
from cepbench.streams.columns import AttributeColumn, Booleans, CodedStrings, Decimals
from cepbench.streams.type_index import TypeIndex

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa


@dataclass(frozen=True, slots=True, eq=False)
class EventStream:
    """Events in arrival order; an event's position in this stream is its row number.

    Use :meth:`from_pandas`, :meth:`from_arrow` or :meth:`from_parquet`, which validate and make arrays
    that are read-only; the constructor does not.

    Attributes
    ----------
    type_codes : ndarray of int32, shape (n,)
        Index into ``type_names`` of each event's type.
    type_names : tuple of str
    timestamps : ndarray of int64, shape (n,)
        Non-decreasing; nanoseconds since 1970 if ``is_datetime``, else ticks.
    is_datetime : bool
        Whether times are datetimes; otherwise integers.
    attributes : mapping of str to ndarray (float64, int64), Decimals, CodedStrings or Booleans
        Each of n values.
    unusable : mapping of str to str
        Columns that cannot be compared → name of their type; for error messages.
    positions : range or ndarray of int64, shape (n,), or None
        Positions of the events in the stream from which they were selected by slice, type or time, or
        rows of the file or table, which ``sort=True`` may have put in another order. None if unknown,
        because a part of Parquet was read without ``positions=True``. Matches have positions in this
        stream; ``result.in_whole_stream(stream)`` gives them in these.
    hierarchy : ConceptHierarchy or None
        The concepts above the types; without it an event is of its own type only.
    time_name : str
        The name of the time column, by which conditions read the time; empty if unknown.
    type_column : str
        The name of the column of event types, by which row patterns read them; empty if unknown.
    """

    type_codes: np.ndarray
    type_names: tuple[str, ...]
    timestamps: np.ndarray
    is_datetime: bool
    attributes: Mapping[str, AttributeColumn]
    unusable: Mapping[str, str]
    positions: range | np.ndarray | None
    hierarchy: ConceptHierarchy | None = None
    time_name: str = ""
    type_column: str = ""
    _index: TypeIndex = field(default_factory=TypeIndex, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.timestamps)

    def __getitem__(self, rows: slice) -> EventStream:
        """The events of a slice (step 1); columns are views, not copies.

        Rows are numbered from 0 again; ``positions`` keeps the original ones.
        """
        try:
            first, last, step = rows.indices(len(self))
        except (AttributeError, TypeError, ValueError):
            step = 0
        if step != 1:
            raise StreamError(
                f"an EventStream takes slices such as stream[10:20], not {shown(rows)}"
            )
        if first == 0 and last == len(self):
            return self
        kept = slice(first, max(first, last))
        found = self.with_rows(kept, None if self.positions is None else self.positions[kept])
        found._index.part = self._index.cut(self, kept.start, kept.stop)
        return found

    def __repr__(self) -> str:
        return f"EventStream({self.describe()})"

    def describe(self) -> str:
        """The number of events, types, attributes and the time span, in one line."""
        span = ""
        if len(self):
            first, last = self.timestamps[0], self.timestamps[-1]
            if self.is_datetime:
                shown = np.array([first, last]).view("datetime64[ns]").astype("datetime64[ms]")
                span = f", {shown[0]} to {shown[1]}"
            else:
                span = f", time {first} to {last}"
        names = ", ".join(self.attributes)
        order = ", sorted by time (positions has the rows before)" if self.was_sorted else ""
        return (
            f"{len(self):,} events, {len(self.type_names)} types, attributes {names}{span}{order}"
        )

    @property
    def was_sorted(self) -> bool:
        """Whether the events had another order in their source, as far as ``positions`` tell."""
        places = self.positions
        return isinstance(places, np.ndarray) and bool(np.any(places[1:] < places[:-1]))

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.describe())}</p>{self.to_pandas(rows=5).to_html(escape=True)}"

    def with_rows(self, rows: Any, positions: range | np.ndarray | None = None) -> EventStream:
        """The events of some rows in the order of time, unchecked, and their positions."""
        return EventStream(
            self.type_codes[rows],
            self.type_names,
            self.timestamps[rows],
            self.is_datetime,
            {name: column[rows] for name, column in self.attributes.items()},
            self.unusable,
            positions,
            self.hierarchy,
            self.time_name,
            self.type_column,
        )

    def with_hierarchy(self, hierarchy: ConceptHierarchy | None) -> EventStream:
        """The same events under a concept hierarchy, or under none.

        Its names may be types without events, and event types may be missing in it.
        """
        return replace(self, hierarchy=hierarchy_from(hierarchy))

    def batches(self, size: int) -> Iterator[EventStream]:
        """Consecutive batches of ``size`` events; the last one may be shorter."""
        size = whole(size, "size", StreamError, least=1)
        return (self[start : start + size] for start in range(0, len(self), size))

    def of_types(self, types: Iterable[str]) -> EventStream:
        """The sub-stream of events that are of any of the given types.

        Rows are numbered from 0 again; ``positions`` keeps the original ones.
        """
        if not self.type_names:
            return self
        wanted = texts(types, "types", StreamError)
        rows = self._rows_with(np.concatenate([*map(self.codes_of, wanted), np.empty(0, np.int64)]))
        if isinstance(self.positions, range):  # without materializing it
            return self.with_rows(rows, self.positions.start + rows)
        return self.with_rows(rows, None if self.positions is None else self.positions[rows])

    def without_unused_types(self) -> EventStream:
        """The same events without the names of types that none of them has."""
        used = CodedStrings(self.type_codes, self.type_names).compacted()
        return replace(self, type_codes=used.codes, type_names=used.values)

    def rows_of(self, type: str | None) -> np.ndarray:
        """Ascending row numbers of the events of a type, none if it is unknown; None: of all."""
        if type is None:
            return np.arange(len(self))
        codes = self.codes_of(type)
        if len(codes) == 1:
            return np.flatnonzero(self.type_codes == codes[0])
        return self._rows_with(codes)

    def rows_of_codes(self, codes: Sequence[int]) -> list[np.ndarray] | None:
        """Ascending row numbers of the events of each of some codes; None when rows by type are first asked for."""
        part = self._index.part
        if part is not None:
            return [*map(part.rows, codes)]
        index = self._index.of(self.type_codes, len(self.type_names))
        if index is None:
            return None
        rows, begins = index
        return [rows[begins[code] : begins[code + 1]] for code in codes]

    def column_of_code(self, name: str, code: int) -> AttributeColumn:
        """The attribute ``name`` of the events of a type, in their order, which is kept beside their rows.

        Errors as of :meth:`column`.
        """
        return self._of_code(name, code)

    def times_of_code(self, code: int) -> np.ndarray:
        """The timestamps of the events of a type, in their order, which are kept beside their rows."""
        found = self._of_code(None, code)
        assert isinstance(found, np.ndarray)
        return found

    def _of_code(self, name: str | None, code: int) -> AttributeColumn:
        part, kept = self._index.part, self._index.columns
        if part is not None:
            whole = part.stream
            its = whole.times_of_code(code) if name is None else whole.column_of_code(name, code)
            return its[part.places_of(code)]
        found = kept.get((name, code))
        if found is None:
            parts = self.indexed().rows_of_codes([code])
            assert parts is not None
            column = self.timestamps if name is None else self.column(name)
            found = kept[name, code] = column[parts[0]]
        return found

    @property
    def samples(self) -> dict[Hashable, Any]:
        """What is kept of samples of the stream; whoever adds to it keeps it small."""
        return self._index.samples

    def indexed(self) -> EventStream:
        """This stream, whose rows by type are known from now on, so that one run takes no longer than the next."""
        if self._index.part is None:
            self._index.of(self.type_codes, len(self.type_names), at_once=True)
        return self

    def codes_of(self, type: str | None) -> np.ndarray:
        """The codes of the event types that are of a type, ascending, shape (some,); None: all."""
        names, hierarchy = self.type_names, self.hierarchy
        if type is None:
            return np.arange(len(names))
        if hierarchy is None or type not in hierarchy:
            found = [names.index(type)] if type in names else []
        else:
            found = [code for code, name in enumerate(names) if hierarchy.is_a(name, type)]
        return np.array(found, np.int64)

    def _rows_with(self, codes: np.ndarray) -> np.ndarray:
        wanted = np.zeros(len(self.type_names), bool)
        wanted[codes] = True
        return np.flatnonzero(wanted[self.type_codes])

    def whole_positions(self) -> np.ndarray:
        """``positions`` as an array of int64, shape (n,).

        Raises
        ------
        StreamError
            If they are unknown.
        """
        if self.positions is None:
            raise StreamError(
                "this stream is a part of another one, and the positions of its events there are "
                "unknown; read it with positions=True"
            )
        if isinstance(self.positions, range):  # which asarray goes through one by one
            return np.arange(self.positions.start, self.positions.stop, dtype=np.int64)
        return np.asarray(self.positions, np.int64)

    def counts_by_type(self) -> dict[str, int]:
        """The number of events of each type."""
        counts = np.bincount(self.type_codes, minlength=len(self.type_names))
        return dict(zip(self.type_names, counts.tolist(), strict=True))

    def types_at(self, level: int | None = None) -> CodedStrings:
        """The type of each event, or the concept that it is of at a level.

        See :meth:`cepbench.patterns.concepts.ConceptHierarchy.at_level`.
        """
        names, hierarchy = self.type_names, self.hierarchy
        if hierarchy is not None:
            names = tuple(hierarchy.at_level(name, level) for name in names)
        known = {name: code for code, name in enumerate(dict.fromkeys(names))}
        codes = np.array([known[name] for name in names], np.int32)
        return CodedStrings(codes[self.type_codes], tuple(known))

    def is_time(self, name: str) -> bool:
        """Whether a name is that of the time column, and of no attribute."""
        return name == self.time_name and name not in self.attributes

    def column(self, name: str) -> AttributeColumn:
        """The attribute ``name``; of the time column floats in its order, or ticks.

        Raises
        ------
        StreamError
            If there is no such attribute, or it cannot be compared.
        """
        text(name, "the name of an attribute", StreamError)
        if name in self.attributes:
            return self.attributes[name]
        if self.is_time(name):
            return in_order(self.timestamps) if self.is_datetime else self.timestamps
        time = whole_time(name)
        if time is not None and self.is_time(time):
            return part_of_times(name, self.timestamps)
        if time is not None:
            raise StreamError(
                f"{time!r} is not the time of the stream, which a length of time is compared with"
                + (f"; that is {self.time_name!r}" if self.time_name else "")
            )
        if name in self.unusable:
            raise StreamError(
                f"attribute {name!r} has type {self.unusable[name]}, which cannot be compared; "
                "convert it to a number or a text before making the stream"
            )
        known = ", ".join(self.attributes) or "none"
        hint = did_you_mean(name, self.attributes)
        raise StreamError(f"the stream has no attribute {shown(name)}; it has {known}{hint}")

    def to_pandas(self, rows: int | None = None) -> pd.DataFrame:
        """A DataFrame with the position as index, columns ``type``, ``time`` and the attributes.

        An attribute named ``type``, ``time`` or ``position``, whatever the case, which SQL ignores,
        becomes ``attribute type``, …; :func:`cepbench.to_sql` reads it there. Texts are categories,
        decimals the nearest floats, booleans ``bool``, with missing values ``boolean``.
        """
        import pandas as pd

        part = self if rows is None else self[: whole(rows, "rows", StreamError, least=0)]
        time = part.timestamps.view("datetime64[ns]") if self.is_datetime else part.timestamps
        table: dict[str, Any] = {
            "type": _categorical(CodedStrings(part.type_codes, part.type_names)),
            "time": time,
        }
        for name, column in part.attributes.items():
            table[attribute_column(name)] = _series(column)
        return pd.DataFrame(table).rename_axis("position")

    @classmethod
    def from_pandas(
        cls,
        frame: pd.DataFrame,
        *,
        type: str,
        time: str,
        attributes: Iterable[str] | None = None,
        sort: bool = False,
        hierarchy: ConceptHierarchy | None = None,
    ) -> EventStream:
        """A stream from a DataFrame; see :func:`cepbench.streams.arrow.stream_of_table`.

        ``hierarchy`` is that of :meth:`with_hierarchy`.
        """
        from cepbench.streams.arrow import stream_of_table, table_from_frame

        if attributes is not None:
            attributes = texts(attributes, "attributes", StreamError)
        table = table_from_frame(frame, type, time, attributes)
        stream = stream_of_table(cls, table, type=type, time=time, attributes=attributes, sort=sort)
        return stream.with_hierarchy(hierarchy)

    @classmethod
    def from_arrow(
        cls,
        table: pa.Table,
        *,
        type: str,
        time: str,
        attributes: Iterable[str] | None = None,
        sort: bool = False,
    ) -> EventStream:
        """A stream from an Arrow table; see :func:`cepbench.streams.arrow.stream_of_table`."""
        from cepbench.streams.arrow import stream_of_table

        return stream_of_table(cls, table, type=type, time=time, attributes=attributes, sort=sort)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        type: str,
        time: str,
        attributes: Iterable[str] | None = None,
        sort: bool = False,
        hierarchy: ConceptHierarchy | None = None,
    ) -> EventStream:
        """A stream from a CSV file, see :func:`cepbench.streams.csv.table_of_csv`; else as :meth:`from_pandas`."""
        from cepbench.streams.csv import table_of_csv

        table = table_of_csv(path, type, time)
        stream = cls.from_arrow(table, type=type, time=time, attributes=attributes, sort=sort)
        return stream.with_hierarchy(hierarchy)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        *,
        type: str | None = None,
        time: str = "ts",
        attributes: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        start: datetime | int | None = None,
        end: datetime | int | None = None,
        sort: bool = False,
        positions: bool = False,
        hierarchy: ConceptHierarchy | None = None,
    ) -> EventStream:
        """The events of some types in a time range, in order of arrival.

        Parameters
        ----------
        path
            A data set that cepbench generated or ingested, or any Parquet file or folder of them,
            whose partitions in the names of folders (``symbol=A/…``) are columns.
        type, time
            Columns of each event's type and timestamp. By default the type is in ``symbol``, or
            where the kind of a cepbench data set has it.
        attributes
            Columns to read as attributes; by default all others.
        types
            Only events of these types, or below these concepts of a hierarchy in the files; by
            default all.
        start, end
            Only events with ``start <= timestamp < end``; datetimes are in UTC, integers are for an
            integer time column.
        sort
            Sort by time, for unordered Parquet; ``positions`` are then rows as the files have them.
            A cepbench data set is always returned in order, with equal times as in its source.
        positions
            Whether to determine the positions of the selected events among all events: rows of the
            file, or of the files of a folder one after the other by name; in a cepbench data set,
            the places in order of arrival, for which the times of all events are read.
        hierarchy
            The concepts above the types; by default those that the files state.

        Returns
        -------
        EventStream
            ``type_names`` are the requested types, also those without an event in the range.
            ``positions`` are those among all events, also of a stream that was sorted; None for a
            selection without ``positions=True``. ``hierarchy`` is the given one, or that of the
            files.

        Raises
        ------
        DatasetError
            If the data set does not exist, is incomplete, cannot be read, or lacks one of the
            types.
        StreamError
            If the files state another hierarchy; see also
            :func:`cepbench.streams.arrow.stream_of_table`.
        """
        from cepbench.streams.parquet import stream_of_parquet

        stream: EventStream = stream_of_parquet(
            cls, path, type, time, attributes, types, start, end, sort, positions, hierarchy
        )
        return stream


def _series(column: AttributeColumn) -> Any:
    import pandas as pd

    match column:
        case CodedStrings():
            return _categorical(column)
        case Booleans(codes):
            missing = codes < 0
            return pd.arrays.BooleanArray(codes > 0, missing) if missing.any() else codes > 0
        case Decimals(numbers):
            return numbers
    return column


def _categorical(column: CodedStrings) -> pd.Categorical:
    import pandas as pd

    codes: Any = column.codes
    return pd.Categorical.from_codes(codes, dtype=pd.CategoricalDtype(list(column.values)))
