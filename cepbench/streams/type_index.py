"""The rows of a stream by type, which are kept once they are asked for again, and columns in their order."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from cepbench.kernels.arrays import read_only
from cepbench.streams.columns import AttributeColumn


class Indexed(Protocol):
    """A stream whose rows by type are known."""

    def rows_of_codes(self, codes: Sequence[int]) -> list[np.ndarray] | None: ...

    def column_of_code(self, name: str, code: int) -> AttributeColumn: ...

    def times_of_code(self, code: int) -> np.ndarray: ...


class Part(NamedTuple):
    """The rows of such a stream that a slice of it has."""

    stream: Indexed
    first: int
    last: int  #: before which they end
    #: By type, the places that these have among all rows of the type, as far as they were asked for.
    places: dict[int, slice]

    def rows(self, code: int) -> np.ndarray:
        """The rows of the slice that are of a type."""
        return self._all(code)[self.places_of(code)] - self.first

    def places_of(self, code: int) -> slice:
        """The places of a type."""
        if code not in self.places:
            places = self._all(code).searchsorted((self.first, self.last)).tolist()
            self.places[code] = slice(*places)
        return self.places[code]

    def _all(self, code: int) -> np.ndarray:
        parts = self.stream.rows_of_codes([code])
        assert parts is not None
        return parts[0]


class TypeIndex:
    """The rows of one stream by type, found when they are asked for a second time.

    A single query, or a batch of a live stream, takes neither the time nor the memory for them.

    Attributes
    ----------
    columns : dict of (str or None, int) to column
        Attribute, None for the time, and code of a type → the values in the order of that type's rows: those that
        were asked for, in all at most as many bytes as the columns of the stream.
    samples : dict
        What is sampled of the stream to choose a plan, see :mod:`cepbench.engines.detection.planned`.
    part : Part, optional
        Which part of a stream with known rows it is.
    """

    __slots__ = ("_asked", "_known", "columns", "part", "samples")

    def __init__(self) -> None:
        self._asked = False
        self.part: Part | None = None
        self._known: tuple[np.ndarray, np.ndarray] | None = None
        self.columns: dict[tuple[str | None, int], AttributeColumn] = {}
        self.samples: dict[Hashable, Any] = {}

    def of(
        self, codes: np.ndarray, types: int, *, at_once: bool = False
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """The rows of all events by type, in order within each; None when it is asked for the first time, unless
        they are needed at once.

        Parameters
        ----------
        codes : int32 (events,)
            The code of each event's type; always the same.
        types : int
            How many there are.

        Returns
        -------
        tuple of ndarray of int64, or None
            The rows, shape (events,), and where those of each type begin, shape (types + 1,).
        """
        if self._known is None and (self._asked or at_once):
            from cepbench.kernels.sorting import sorted_by

            self._known = sorted_by(read_only(np.ascontiguousarray(codes)), 0, types)
        self._asked = True
        return self._known

    def cut(self, stream: Indexed, first: int, last: int) -> Part | None:
        """The part of this index' stream that some of its rows are; None while its rows are not known."""
        if self.part is not None:
            return Part(self.part.stream, self.part.first + first, self.part.first + last, {})
        return None if self._known is None else Part(stream, first, last, {})

    def __reduce__(self) -> tuple[type[TypeIndex], tuple[()]]:
        return TypeIndex, ()
