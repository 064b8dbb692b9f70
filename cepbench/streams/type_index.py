"""The rows of a stream by type, which are kept once they are asked for again, and columns in their order."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from cepbench.kernels.arrays import read_only
from cepbench.streams.columns import AttributeColumn


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
    """

    __slots__ = ("_asked", "_known", "columns", "samples")

    def __init__(self) -> None:
        self._asked = False
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

    def __reduce__(self) -> tuple[type[TypeIndex], tuple[()]]:
        return TypeIndex, ()
