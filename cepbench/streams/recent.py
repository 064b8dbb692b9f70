"""The latest events of a stream that arrives in batches."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np

from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.state import Stateful
from cepbench.streams.columns import CodedStrings, joined_columns, packed_column, unpacked_column
from cepbench.streams.event_stream import EventStream


class RecentEvents(Stateful):
    """The events of the last batch and of some time before it, with some of their attributes.

    Those of a span in ticks are kept, and the ``least`` last ones even if they are older; ``first`` is
    the position of the first event to come.
    """

    SAVED = ("first", "_kept")

    def __init__(self, attributes: Collection[str], span: int, first: int, least: int = 0) -> None:
        self._attributes = tuple(attributes)
        self._span = span
        self._least = least
        self._pieces: list[EventStream] = []
        self._size = 0
        #: Whether there was any event.
        self.pushed = False
        #: The position of the first event kept.
        self.first = first

    def push(self, batch: EventStream) -> None:
        """Add events; those that were out of date before them are dropped."""
        if self._pieces:
            limit = int(self._pieces[-1].timestamps[-1]) - self._span
            spare = max(0, self._size - self._least)
            dropped = 0
            while (
                dropped + len(self._pieces[0]) <= spare
                and int(self._pieces[0].timestamps[-1]) < limit
            ):
                dropped += len(self._pieces.pop(0))
            old = min(int(np.searchsorted(self._pieces[0].timestamps, limit)), spare - dropped)
            self._pieces[0] = self._pieces[0][old:]
            self.first += dropped + old
            self._size -= dropped + old
        self.pushed = True
        kept = {name: batch.column(name) for name in self._attributes}
        self._pieces.append(replace(batch, attributes=kept, unusable={}, positions=None))
        self._size += len(batch)

    def keep(self, attributes: Collection[str]) -> None:
        """Keep these of the attributes only."""
        self._attributes = tuple(name for name in self._attributes if name in attributes)
        self._pieces = [
            replace(piece, attributes={name: piece.attributes[name] for name in self._attributes})
            for piece in self._pieces
        ]

    @property
    def last(self) -> int | None:
        """The last timestamp; None before the first event."""
        return int(self._pieces[-1].timestamps[-1]) if self._pieces else None

    @property
    def stream(self) -> EventStream:
        """The events kept, from position :attr:`first` on."""
        if not self._pieces:
            nothing = dict.fromkeys(self._attributes, np.empty(0))
            codes, times = np.empty(0, np.int32), np.empty(0, np.int64)
            return EventStream(codes, (), times, False, nothing, {}, None)
        while len(self._pieces) > 1:
            # Of neighbours of similar size, so that an event is copied few times; at once, so that
            # an interrupt loses none.
            self._pieces[-2:] = [_joined(*self._pieces[-2:])]
        return self._pieces[0]

    @property
    def _kept(self) -> tuple[Any, ...] | None:
        """The stream as plain values; None before any event."""
        if not self._pieces:
            return None
        its = self.stream
        columns = {name: packed_column(column) for name, column in its.attributes.items()}
        hierarchy = its.hierarchy and dict(its.hierarchy.mapping)
        return its.type_codes, its.type_names, its.timestamps, its.is_datetime, columns, hierarchy

    @_kept.setter
    def _kept(self, kept: tuple[Any, ...] | None) -> None:
        if kept is None:
            return
        codes, names, times, is_datetime, packed, mapping = kept
        # Others may have been kept too, for a query that was removed.
        columns = {name: unpacked_column(*packed[name]) for name in self._attributes}
        hierarchy = mapping and ConceptHierarchy(mapping)
        self._pieces = [EventStream(codes, names, times, is_datetime, columns, {}, None, hierarchy)]
        self._size = len(self._pieces[0])
        self.pushed = True


def _joined(first: EventStream, second: EventStream) -> EventStream:
    """The events of two streams with the same attributes, one after the other."""
    types = joined_columns(
        "type",
        CodedStrings(first.type_codes, first.type_names),
        CodedStrings(second.type_codes, second.type_names),
    )
    assert isinstance(types, CodedStrings)
    return replace(
        second,
        type_codes=types.codes,
        type_names=types.values,
        timestamps=np.concatenate((first.timestamps, second.timestamps)),
        attributes={
            name: joined_columns(name, column, second.attributes[name])
            for name, column in first.attributes.items()
        },
    )
