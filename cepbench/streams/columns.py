"""The columns of a stream, as read from Arrow and Parquet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cepbench.patterns.concepts import ConceptHierarchy


@dataclass(frozen=True, slots=True)
class CodedStrings:
    """A text column as codes into a table of values; code -1 is a missing value.

    Attributes
    ----------
    codes : ndarray of int32, shape (n,)
    values : tuple of str
    """

    codes: np.ndarray
    values: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> CodedStrings:
        return CodedStrings(self.codes[rows], self.values)


AttributeColumn = np.ndarray | CodedStrings


class StreamColumns(NamedTuple):
    """The validated fields of an :class:`~cepbench.streams.event_stream.EventStream`."""

    type_codes: np.ndarray
    type_names: tuple[str, ...]
    timestamps: np.ndarray
    is_datetime: bool
    attributes: Mapping[str, AttributeColumn]
    unusable: Mapping[str, str]
    positions: range | np.ndarray | None
    hierarchy: ConceptHierarchy | None = None
    time_name: str = ""
