"""The columns of events in tables of Spark."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from cepbench.streams.event_stream import EventStream


@dataclass(frozen=True)
class Columns:
    """The columns of a DataFrame that detection reads.

    Attributes
    ----------
    time, type : str
    attributes : tuple of str
    """

    time: str
    type: str
    attributes: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """Without duplicates: the type may be an attribute too."""
        return list(dict.fromkeys((self.time, self.type, *self.attributes)))

    def stream(self, table: pa.Table | pa.RecordBatch, *, sort: bool = False) -> EventStream:
        """The events of a table."""
        return EventStream.from_arrow(
            table, type=self.type, time=self.time, attributes=self.attributes, sort=sort
        )
