"""Choosing the events of a batch by their types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Generic, TypeVar

import numpy as np

from cepbench.kernels.arrays import read_only
from cepbench.kernels.sorting import any_flagged, rows_by_place, rows_with_flags
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.streams.event_stream import EventStream

_T = TypeVar("_T")


class ByTypes(Generic[_T]):
    """What follows from the types of a batch alone, found anew only when a batch has other types.

    ``find`` is no method of an object that has this: nothing of it could be freed at once.
    """

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

    def __init__(self, types: Iterable[str | None]) -> None:
        self.types = tuple(types)
        self._places = ByTypes(partial(_places_of, self.types))
        self._codes = ByTypes(partial(_codes_of, self.types))

    def of(self, batch: EventStream) -> tuple[np.ndarray, list[int]]:
        """Ascending rows, int64, those of one type after those of another.

        And where those of each type begin, with the number of all behind.
        """
        kept = self._kept(batch)
        if kept:
            return np.concatenate(kept), [0, *accumulate(map(len, kept))]
        return self._sorted(batch)

    def parts(self, batch: EventStream) -> tuple[list[np.ndarray], list[int] | None]:
        """The ascending rows of each type, and the types' codes where the batch keeps these rows."""
        kept = self._kept(batch)
        if kept:
            return kept, self._codes.of(batch)
        rows, begins = self._sorted(batch)
        return [rows[begin:end] for begin, end in pairwise(begins)], None

    def by_type(self, batch: EventStream) -> dict[str | None, np.ndarray]:
        """The ascending rows of each type; empty for types that the batch does not have."""
        return dict(zip(self.types, self.parts(batch)[0], strict=True))

    def _kept(self, batch: EventStream) -> list[np.ndarray] | None:
        codes = self._codes.of(batch)
        return None if codes is None else batch.rows_of_codes(codes)

    def _sorted(self, batch: EventStream) -> tuple[np.ndarray, list[int]]:
        places, codes = self._places.of(batch), type_codes_of(batch)
        starts = np.zeros(len(self.types) + 1, np.int64)
        ends = np.empty(len(places), np.int64)
        chosen, rows = np.empty((2, len(places) * len(codes) + 1), np.int64)
        number = rows_by_place(codes, places, starts, ends, chosen, rows)
        begins: list[int] = starts.tolist()
        return rows[:number], begins


def _codes_of(types: Sequence[str | None], batch: EventStream) -> list[int] | None:
    """The code of each type; None if one has several, or none."""
    found = [batch.codes_of(kind).tolist() for kind in types]
    return [code for (code,) in found] if all(len(its) == 1 for its in found) else None


def _places_of(types: Sequence[str | None], batch: EventStream) -> np.ndarray:
    """The numbers of the types that events of each code are of; see :func:`rows_by_place`."""
    none = len(types)
    layers = [[none] * len(batch.type_names)]
    for place, kind in enumerate(types):
        codes = batch.codes_of(kind).tolist()
        # In one layer, so that the rows of a type are in order.
        free = (its for its in layers if all(its[code] == none for code in codes))
        layer = next(free, None)
        if layer is None:
            layer = [none] * len(batch.type_names)
            layers.append(layer)
        for code in codes:
            layer[code] = place
    return np.array(layers, np.int64)


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


def type_codes_of(batch: EventStream) -> np.ndarray:
    """The codes of the events' types, for kernels."""
    return read_only(np.ascontiguousarray(batch.type_codes))
