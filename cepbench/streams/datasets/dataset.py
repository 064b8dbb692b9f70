"""An open data set: its events as streams, its patterns, and its description."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from markupsafe import Markup

from cepbench.arguments import shown, texts, whole
from cepbench.errors import DatasetError, did_you_mean
from cepbench.markup import Html
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Pattern
from cepbench.streams.dataset_folder import QUARANTINE, SEQUENCE, Declaration, type_column
from cepbench.streams.datasets.declaration import ColumnDeclaration, Entry, Variant
from cepbench.streams.datasets.library import PatternLibrary, read_library
from cepbench.streams.event_stream import EventStream
from cepbench.streams.parquet_layout import hierarchy_of_parquet, months_of, open_parquet
from cepbench.streams.sources import FORMATS, read_source

if TYPE_CHECKING:
    import pandas as pd

#: Columns of every event of a source file.
TYPE, TIME = "symbol", "ts"

_SHOWN_TYPES = 8

_SHOWN = Html(
    """<div class="cep-dataset"><p><b>{{ name }}</b> {{ title }}</p>
<table class="dataframe" style="text-align:left"><tbody>{% for name, value in facts %}
<tr><th style="text-align:left">{{ name }}</th><td style="text-align:left">{{ value }}</td></tr>
{% endfor %}</tbody></table>{% for name, table in folded.items() %}
<details><summary>{{ name }}</summary>{{ table }}</details>{% endfor %}</div>"""
)


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set, as returned by :func:`cepbench.open_dataset`.

    Attributes
    ----------
    name : str
        Its name in the catalogue, such as ``nasdaq-style/quick``, or its path.
    path : Path
        Its folder or file.
    kind : str
        Such as ``nasdaq-style``.
    declaration : Declaration or None
        The folder's description: parameters, events of each type, versions; None for a single
        file.
    entry : Entry or None
        The data set of the catalogue that it belongs to.
    variant : Variant or None
        Its size; None if the catalogue does not declare it.
    """

    name: str
    path: Path
    kind: str
    declaration: Declaration | None
    entry: Entry | None
    variant: Variant | None

    def stream(
        self,
        types: Iterable[str] | Pattern | None = None,
        attributes: Iterable[str] | None = None,
        *,
        first: int | None = None,
        days: int | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        positions: bool = False,
    ) -> EventStream:
        """The events, or a selection, in order of arrival.

        Parameters
        ----------
        types : iterable of str, or Pattern, optional
            Only events of these types or concepts, or of those of a pattern; by default all. A contiguity
            strategy then applies to the selected events.
        attributes : iterable of str, optional
            Columns to read; by default all.
        first : int, optional
            Only the first ``first`` events. The others are read, too; select types or days of a
            large data set.
        days : int, optional
            Only the first ``days`` days on which there are events of any type.
        start, end : datetime, optional
            Only events with ``start <= timestamp < end``, in UTC.
        positions : bool
            Whether to determine the positions of the events in the whole data set
            (``EventStream.positions``), which reads the times of all events.

        Raises
        ------
        DatasetError
            If a type is unknown, the data cannot be read, ``first`` or ``days`` is below 1, or
            ``days`` and ``end`` are both given.
        StreamError
            If a column is unknown.
        """
        wanted = self._types(types)
        if first is not None:
            first = whole(first, "first", DatasetError, least=1)
        if days is not None:
            days = whole(days, "days", DatasetError, least=1)
            if end is not None:
                raise DatasetError("days and end exclude each other; give one of them")
            end = self._end_after(days)
        return self._read(wanted, attributes, start, end, positions)[:first]

    @cached_property
    def hierarchy(self) -> ConceptHierarchy | None:
        """The concepts above its types; its streams have it, too."""
        return None if self._is_source else hierarchy_of_parquet(self.path)

    @cached_property
    def patterns(self) -> PatternLibrary:
        """The library of patterns for this data: name → pattern, with notes."""
        if self.entry is None:
            return PatternLibrary(self.name)
        return read_library(self.entry.folder, self.entry.name)

    @cached_property
    def counts(self) -> pd.Series:
        """Events of each type; the index is the type."""
        import pandas as pd

        if self.declaration is not None:
            counts = dict(self.declaration.counts)
        else:
            counts = self._read(None, [], None, None).counts_by_type()
        index = pd.Index(list(counts), name=TYPE, dtype=object)
        return pd.Series(list(counts.values()), index=index, name="events", dtype="int64")

    @property
    def events(self) -> int:
        """The number of events."""
        return int(self.counts.sum())

    @property
    def schema(self) -> pd.DataFrame:
        """The columns, one per row: ``type``, ``unit``, ``meaning``; the name is the index."""
        import pandas as pd

        rows = [(column.type, column.unit, column.meaning) for column in self._columns()]
        names = pd.Index([c.name for c in self._columns()], name="column", dtype=object)
        return pd.DataFrame(rows, index=names, columns=["type", "unit", "meaning"])

    def quarantine(self) -> pd.DataFrame:
        """The malformed rows of its source files: file, row (from 1), text, reason."""
        import pandas as pd
        import pyarrow.dataset as ds

        if self._is_source:
            return read_source(self.path, self.kind)[1].copy()
        if (self.path / QUARANTINE).is_dir():
            rows = ds.dataset(self.path / QUARANTINE, format="parquet").to_table()
            return cast("pd.DataFrame", rows.to_pandas())
        return pd.DataFrame(columns=["file", "row", "text", "reason"])

    def describe(self) -> str:
        """Origin, size, columns, path and patterns, as text."""
        lines = [f"{self.name}: {self._title}"]
        lines += [f"  {name}: {value}" for name, value in self._facts()]
        lines.append(f"  path: {self.path}")
        if self.patterns:
            lines.append(f"  patterns: {', '.join(self.patterns)}")
        return "\n".join(lines)

    __str__ = describe

    def __repr__(self) -> str:
        return f"Dataset({self.name!r}: {self.events:,} events of {len(self.counts)} types)"

    def _repr_html_(self) -> str:
        folded = {"Columns": Markup(self.schema.to_html())}
        if self.patterns:
            folded[f"{len(self.patterns)} patterns"] = Markup(self.patterns._repr_html_())
        return str(_SHOWN(name=self.name, title=self._title, facts=self._facts(), folded=folded))

    @property
    def _title(self) -> str:
        return self.entry.title if self.entry else f"a data set of kind {self.kind}"

    @property
    def _is_source(self) -> bool:
        return self.kind in FORMATS and self.path.is_file() and self.path.suffix != ".parquet"

    def _facts(self) -> list[tuple[str, str]]:
        """Facts to show; without the path, since notebooks are published."""
        counts = self.counts.sort_values(ascending=False, kind="stable")
        shown = ", ".join(f"{name} {count:,}" for name, count in counts[:_SHOWN_TYPES].items())
        more = len(counts) - _SHOWN_TYPES
        malformed = len(self.quarantine())
        named = (type_column(self.kind), TIME)
        facts = {
            "variant": self.variant.about if self.variant else "",
            "events": f"{self.events:,}",
            "types": f"{len(counts)}: {shown}" + (f" and {more} more" if more > 0 else ""),
            "concepts": ", ".join(self.hierarchy.mapping) if self.hierarchy else "",
            "time": " to ".join(self._span()),
            "attributes": ", ".join(c.name for c in self._columns() if c.name not in named),
            "source": self.entry.source if self.entry else "",
            "licence": self.entry.licence if self.entry else "",
            "quarantine": f"{malformed:,} malformed rows" if malformed else "",
        }
        return [(name, value) for name, value in facts.items() if value]

    def _columns(self) -> list[ColumnDeclaration]:
        """The stored columns, with the catalogue's description where there is one."""
        declared = {column.name: column for column in (self.entry.columns if self.entry else ())}
        if self.declaration is None:
            return list(declared.values())
        stored = self.declaration.columns
        plain = {
            name: "text" if kind.startswith(("dictionary", "string")) else kind
            for name, kind in stored.items()
            if name != SEQUENCE
        }
        return [
            declared.get(name, ColumnDeclaration(name, kind, "")) for name, kind in plain.items()
        ]

    def _types(self, types: Iterable[str] | Pattern | None) -> list[str] | None:
        if isinstance(types, Pattern):
            types = types.types
        if types is None:
            return None
        wanted = [types] if isinstance(types, str) else texts(types, "types", DatasetError)
        for name in wanted:
            if name not in self.counts.index and name not in (self.hierarchy or ()):
                hint = did_you_mean(name, self.counts.index) or "; dataset.counts lists the types"
                raise DatasetError(f"{self.name} has no events of type {shown(name)}{hint}")
        return wanted

    def _read(
        self,
        types: list[str] | None,
        attributes: Iterable[str] | None,
        start: datetime | None,
        end: datetime | None,
        positions: bool = False,
    ) -> EventStream:
        if not self._is_source:
            return EventStream.from_parquet(
                self.path,
                type=type_column(self.kind),
                types=types,
                attributes=attributes,
                start=start,
                end=end,
                positions=positions,
            )
        table, _ = read_source(self.path, self.kind)
        stream = EventStream.from_arrow(table, type=TYPE, time=TIME, attributes=attributes)
        if start is not None or end is not None:
            from cepbench.streams.row_groups import TICKS, bound

            kind = table.schema.field(TIME).type
            low, high = (
                None
                if its is None
                else np.searchsorted(
                    stream.timestamps, bound(its, kind, TIME).value * TICKS[kind.unit]
                )
                for its in (start, end)
            )
            stream = stream[low:high]
        return stream if types is None else stream.of_types(types)

    def _times(self, place: Path) -> np.ndarray:
        """All timestamps below one folder or file; datetime64, in any order."""
        if self._is_source:
            column = read_source(place, self.kind)[0].column(TIME)
        else:
            column = open_parquet(place).to_table(columns=[TIME]).column(TIME)
        times = column.to_numpy()
        if times.dtype.kind != "M":
            raise DatasetError(
                f"the times of {self.name} are integers without a unit, so there are no days; use "
                "first= to read a part of it"
            )
        return np.asarray(times)

    def _end_after(self, days: int) -> datetime | None:
        """The midnight after the first ``days`` days with events; None if there are no more."""
        seen: set[np.datetime64] = set()
        for place in months_of(self.path):
            seen |= set(np.unique(self._times(place).astype("M8[D]")))
            if len(seen) >= days:
                last: datetime = sorted(seen)[days - 1].astype("M8[us]").item()
                return last + timedelta(days=1)
        return None

    def _span(self) -> list[str]:
        """First and last time to the second, from the first and last month; empty if unknown."""
        places = months_of(self.path)
        if not self.events:
            return []
        try:
            ends = self._times(places[0]).min(), self._times(places[-1]).max()
        except DatasetError:
            return []
        return [str(end.astype("M8[s]")).replace("T", " ") for end in ends]
