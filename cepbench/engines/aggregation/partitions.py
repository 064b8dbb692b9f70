"""Numbers of the events that share values of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cepbench.engines.aggregation.protocol import Key
from cepbench.patterns.model import EventType
from cepbench.streams.columns import AttributeColumn, Booleans, CodedStrings, numbers_of
from cepbench.streams.event_stream import EventStream


def numbered(
    batch: EventStream,
    attributes: Sequence[str | EventType],
    rows: np.ndarray | Sequence[np.ndarray],
) -> tuple[np.ndarray, list[Key]]:
    """Number events, or combinations of events (an array of rows for each attribute), by their values.

    Returns the number of each, -1 if it misses a value, and the values of each number.
    """
    by_attribute = [rows] * len(attributes) if isinstance(rows, np.ndarray) else rows
    if not attributes:
        return np.zeros(len(rows), np.int64), [()]
    number = len(by_attribute[0])
    numbers, size = np.zeros(number, np.int64), 1
    present = np.ones(number, bool)
    read: list[Any] = []
    for attribute, its in zip(attributes, by_attribute, strict=True):
        column: AttributeColumn = (
            batch.types_at(attribute.level)
            if isinstance(attribute, EventType)
            else batch.column(attribute)
        )
        if isinstance(column, CodedStrings | Booleans):
            read.append(column)
            own, more = column.codes[its].astype(np.int64), len(column.values)
            present &= own >= 0
        else:
            read.append(numbers_of(column))
            known = read[-1][its]
            values, own = np.unique(known, return_inverse=True)
            more = len(values)
            present &= known == known
        more = max(1, more)  # without any value
        numbers, size = _compact(numbers * more + np.maximum(own, 0), size * more)
    numbers, size = _compact(numbers[present], size)
    examples = np.empty(size, np.int64)
    examples[numbers[::-1]] = np.flatnonzero(present)[::-1]
    found = np.full(number, -1)
    found[present] = numbers
    columns = [
        values[its[examples]].tolist() for values, its in zip(read, by_attribute, strict=True)
    ]
    return found, list(zip(*columns, strict=True))


def _compact(numbers: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """The same with numbers 0, 1, … in the same order, and how many there are."""
    if size > 4 * len(numbers) + 1000:
        found, numbers = np.unique(numbers, return_inverse=True)
        return numbers, len(found)
    places = np.zeros(size, np.int64)
    places[numbers] = 1
    np.cumsum(places, out=places)
    return places[numbers] - 1, int(places[-1]) if size else 0
