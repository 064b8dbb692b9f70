"""Attributes as float64; texts as codes that are stable across batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

import numpy as np

from cepbench.errors import StreamError
from cepbench.state import Stateful
from cepbench.streams.columns import EXACT, Booleans, CodedStrings, Decimals
from cepbench.streams.event_stream import EventStream

#: The numbers of a boolean's codes: false, true and, for code -1, missing.
_BOOLEANS = np.array([0.0, 1.0, np.nan])


class NumericReader(Stateful):
    """Reads a stream's attributes as numbers that compare as the originals do.

    Each batch of a stream may have its own table of texts; the reader maps them to a common one.
    Known texts are given in the order of their codes.
    """

    SAVED = ("texts", "_integers")

    def __init__(self, texts: Iterable[str] = ()) -> None:
        #: Attributes that were read as integers.
        self._integers: set[str] = set()
        self._codes: dict[str, int] = {text: code for code, text in enumerate(texts)}
        # The codes of the texts read last: leaves and slices of a batch share them.
        self._last: tuple[tuple[str, ...], np.ndarray] = ((), np.array([np.nan]))

    @property
    def texts(self) -> list[str]:
        """All texts so far, in the order of their codes."""
        return list(self._codes)

    @texts.setter
    def texts(self, texts: Iterable[str]) -> None:
        for text in texts:
            self.code(text)

    def code(self, text: str) -> float:
        """The code of a text; a new text gets the next code."""
        return float(self._codes.setdefault(text, len(self._codes)))

    def read(self, stream: EventStream, name: str, rows: np.ndarray | slice) -> np.ndarray:
        """The attribute ``name`` at ``rows`` as float64: true as 1, false as 0, missing as NaN.

        A StreamError if there is no such attribute, it cannot be compared, or has an integer beyond
        2**53, which a float would round.
        """
        column = stream.column(name)
        if isinstance(column, CodedStrings):
            if self._last[0] is not column.values:
                # The last entry is for code -1, a missing value.
                self._last = column.values, np.array([*map(self.code, column.values), np.nan])
            return self._last[1][column.codes[rows]]
        if isinstance(column, Booleans):
            return _BOOLEANS[column.codes[rows]]
        if isinstance(column, Decimals):
            return column.numbers[rows]
        picked = column[rows]
        is_integer = picked.dtype == np.int64 and len(picked)
        if is_integer and (picked.max() > EXACT or picked.min() < -EXACT):
            self._refuse_large(stream, name, rows, (picked > EXACT) | (picked < -EXACT))
        if is_integer:
            self._integers.add(name)
        elif name in self._integers and (np.abs(picked) >= EXACT).any():
            # Integers became floats where one is missing, and large ones were rounded.
            self._refuse_large(stream, name, rows, np.abs(picked) >= EXACT)
        return picked.astype(np.float64, copy=False)

    def _refuse_large(
        self, stream: EventStream, name: str, rows: np.ndarray | slice, large: np.ndarray
    ) -> NoReturn:
        row = int(np.arange(len(stream))[rows][large][0])
        raise StreamError(
            f"row {row}: {name!r} is {stream.column(name)[row]}, too large to compare exactly as a "
            "float; convert it to a text, or subtract a common origin",
            row=row,
        )
