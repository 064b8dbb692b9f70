"""Attributes as float64; texts as codes that are stable across batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import numpy as np

from cepbench.errors import StreamError
from cepbench.patterns.model import Attribute
from cepbench.state import Stateful
from cepbench.streams.columns import EXACT, Booleans, CodedStrings, Decimals
from cepbench.streams.event_stream import EventStream

#: The numbers of a boolean's codes: false, true and, for code -1, missing.
_BOOLEANS = np.array([0.0, 1.0, np.nan])

#: The float of the largest integer of 64 bits, with or without a sign.
_LARGEST = 2.0**64


def _may_be_rounded(floats: np.ndarray) -> np.ndarray:
    """Which floats may be those of other integers of 64 bits."""
    sizes = np.abs(floats)
    return (sizes >= EXACT) & (sizes <= _LARGEST)


class NumericReader(Stateful):
    """Reads a stream's attributes as numbers that compare as the originals do.

    Each batch of a stream may have its own table of texts; the reader maps them to a common one.
    """

    SAVED = ("_codes", "_older", "_given", "_began", "_integers")

    def __init__(self, span: int | None = None) -> None:
        #: How long, in the unit of timestamps, numbers that were read may be kept: a text that was not read
        #: for one to two of it is evicted, and would have another code. None: for ever.
        self.span = span
        #: Attributes that were read as integers.
        self._integers: set[str] = set()
        #: Codes of the texts read since a time, and of those read in the span before it.
        self._codes: dict[str, int] = {}
        self._older: dict[str, int] = {}
        self._began: int | None = None
        #: How many codes were given.
        self._given = 0
        self._constants: dict[str, int] = {}
        # The codes of the texts read last: leaves and slices of a batch share them.
        self._last: tuple[tuple[str, ...], np.ndarray] = ((), np.array([np.nan]))

    @property
    def texts(self) -> list[str]:
        """The texts that are known, in the order of their codes."""
        known = {**self._older, **self._codes}
        return sorted(known, key=known.__getitem__)

    def code(self, text: str) -> float:
        """The code of a constant, which is never evicted."""
        found = self._constants.get(text)
        if found is None:
            found = self._constants[text] = self._code(text)
        return float(found)

    def adopt(self, other: NumericReader) -> bool:
        """Continue with the codes of another reader, if both have the same for all constants."""
        if self._constants != other._constants:
            return False
        self._codes, self._older = dict(other._codes), dict(other._older)
        self._given, self._began, self._last = other._given, other._began, other._last
        return True

    def _code(self, text: str) -> int:
        found = self._codes.get(text)
        if found is None:
            found = self._older.pop(text, None)
            if found is None:
                found = self._given
                self._given += 1
            self._codes[text] = found
        return found

    def _evict(self, now: int) -> None:
        """Forget texts that were not read for a span, before new ones are."""
        if self._began is None:
            self._began = now
        elif self.span is not None and now - self._began > self.span:
            texts, codes = self._last
            self._older = self._codes
            # Those read last may have been read until now, by the codes that were kept.
            last = zip(texts, codes[:-1].astype(int).tolist(), strict=True)
            self._codes = {**dict(last), **self._constants}
            self._began = now

    def read(
        self, stream: EventStream, name: str, rows: np.ndarray | slice, code: int | None = None
    ) -> np.ndarray:
        """The attribute ``name`` at ``rows`` as float64: true as 1, false as 0, missing as NaN.

        ``code``: of a type whose rows the stream keeps; ``rows`` are then places among these.

        A StreamError if there is no such attribute, it cannot be compared, or has an integer beyond
        2**53, which a float would round.
        """
        column = stream.column(name) if code is None else stream.column_of_code(name, code)
        if isinstance(column, CodedStrings):
            if self._last[0] is not column.values:
                if len(stream):
                    self._evict(int(stream.timestamps[0]))
                # The last entry is for code -1, a missing value.
                self._last = column.values, np.array([*map(self._code, column.values), np.nan])
            return self._last[1][column.codes[rows]]
        if isinstance(column, Booleans):
            return _BOOLEANS[column.codes[rows]]
        if isinstance(column, Decimals):
            return column.numbers[rows]
        picked = column[rows]
        is_integer = picked.dtype == np.int64 and len(picked)
        if is_integer and (picked.max() > EXACT or picked.min() < -EXACT):
            self._refuse_large(stream, name, rows, code, (picked > EXACT) | (picked < -EXACT))
        if is_integer:
            self._integers.add(name)
        elif name in self._integers and (large := _may_be_rounded(picked)).any():
            # Integers became floats where one is missing, and large ones were rounded.
            self._refuse_large(stream, name, rows, code, large)
        return picked.astype(np.float64, copy=False)

    def reading(
        self, stream: EventStream, rows: np.ndarray | slice, code: int | None = None
    ) -> Callable[[Attribute], np.ndarray]:
        """What conditions read at ``rows``, whatever the variable; see :meth:`read`."""
        return lambda attribute: self.read(stream, attribute.name, rows, code)

    def _refuse_large(
        self,
        stream: EventStream,
        name: str,
        rows: np.ndarray | slice,
        code: int | None,
        large: np.ndarray,
    ) -> NoReturn:
        of_type = None if code is None else stream.rows_of_codes([code])
        among = np.arange(len(stream)) if of_type is None else of_type[0]
        row = int(among[rows][large][0])
        # That of the source: engines read parts of a stream.
        place = row if stream.positions is None else int(stream.positions[row])
        raise StreamError(
            f"row {place}: {name!r} is {stream.column(name)[row]}, too large to compare exactly as a "
            "float; convert it to a text, or subtract a common origin",
            row=place,
        )
