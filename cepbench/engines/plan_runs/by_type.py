"""Choosing the events of a batch by their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from cepbench.kernels.sorting import any_flagged, rows_by_place, rows_with_flags
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.streams.event_stream import EventStream

_NO_ROWS = np.empty(0, np.int64)

_T = TypeVar("_T")


class ByTypes(Generic[_T]):
    """What follows from the types of a batch alone, found anew only when a batch has other types."""

    def __init__(self, find: Callable[[EventStream], _T]) -> None:
        self._find = find
        self._names: tuple[str, ...] | None = None
        self._hierarchy: ConceptHierarchy | None = None

    def of(self, batch: EventStream) -> _T:
        """What is found for a batch."""
        names, hierarchy = batch.type_names, batch.hierarchy
        if names is not self._names or hierarchy is not self._hierarchy:
            if names != self._names or hierarchy != self._hierarchy:
                self._found = self._find(batch)
            self._names, self._hierarchy = names, hierarchy
        return self._found


class TypeRows:
    """The rows of the events of each of some types, None being any, batch by batch."""

    def __init__(self, types: Sequence[str | None]) -> None:
        self._places = ByTypes(partial(_places_of, tuple(types)))
        self._none = _NO_ROWS, np.zeros(len(types) + 1, np.int64)

    def of(self, batch: EventStream) -> tuple[np.ndarray, np.ndarray]:
        """Ascending rows, those of one type after those of the other, int64.

        And where those of each type begin, int64 (types + 1,). Neither is to be written.
        """
        its, codes = self._places.of(batch), type_codes_of(batch)
        many, chosen = np.empty((2, len(codes)), np.int64)
        number = rows_with_flags(codes, its.sizes, many, chosen)
        if not number:
            return self._none
        starts, rows = self._none[1].copy(), np.empty(number * its.most, np.int64)
        rows_by_place(codes, chosen[:number], its.begins, its.places, starts, rows)
        return rows[: starts[-1]], starts


class _Places(NamedTuple):
    """The types of a sequence that events of each code are of: ``places[begins[code] : begins[code + 1]]``."""

    sizes: np.ndarray  #: int64 (codes,); how many
    most: int  #: of any code
    begins: np.ndarray  #: int64 (codes + 1,)
    places: np.ndarray


def _places_of(types: Sequence[str | None], batch: EventStream) -> _Places:
    of_type = [batch.codes_of(kind) for kind in types]
    codes = np.concatenate([_NO_ROWS, *of_type])
    places = np.repeat(np.arange(len(types)), [*map(len, of_type)])
    sizes = np.bincount(codes, minlength=len(batch.type_names))
    begins = np.concatenate(([0], np.cumsum(sizes)))
    order = np.argsort(codes, kind="stable")
    return _Places(sizes, int(sizes.max(initial=0)), begins, places[order])


class TypeFlags:
    """The flags of the events of batches; each flag is one of the events of a type, None being any."""

    def __init__(self, flags: Iterable[tuple[str | None, int]]) -> None:
        self._table = ByTypes(partial(_flags_of, tuple(flags)))

    def of(self, batch: EventStream) -> tuple[np.ndarray, np.ndarray]:
        """The flags of the events, int64, and the ascending rows of those that have some."""
        codes = type_codes_of(batch)
        found, rows = np.empty((2, len(codes)), np.int64)
        number = rows_with_flags(codes, self._table.of(batch), found, rows)
        return found, rows[:number]

    def any_of(self, batch: EventStream) -> bool:
        """Whether any event of a batch has a flag."""
        return bool(any_flagged(type_codes_of(batch), self._table.of(batch)))


def _flags_of(flags: Iterable[tuple[str | None, int]], batch: EventStream) -> np.ndarray:
    table = np.zeros(len(batch.type_names), np.int64)
    for kind, flag in flags:
        table[batch.codes_of(kind)] |= flag
    return table


def rows_of_types(batch: EventStream, types: set[str | None]) -> dict[str | None, np.ndarray]:
    """The ascending rows of each of these types, None being any; empty for types that the batch
    does not have.
    """
    kinds = [*types]
    rows, starts = TypeRows(kinds).of(batch)
    return {kind: rows[starts[i] : starts[i + 1]] for i, kind in enumerate(kinds)}


def type_codes_of(batch: EventStream) -> np.ndarray:
    """The codes of the events' types, for kernels."""
    return read_only(np.ascontiguousarray(batch.type_codes))


def read_only(array: np.ndarray) -> np.ndarray:
    """A view, since a kernel is compiled separately for writable and read-only arrays."""
    view = array.view()
    view.flags.writeable = False
    return view
