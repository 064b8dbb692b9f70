"""Values that a batch may not have: of another kind than before, and integers that floats round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from cepbench.errors import StreamError
from cepbench.patterns.model import Pattern
from cepbench.streams.columns import (
    EXACT,
    AttributeColumn,
    Booleans,
    CodedStrings,
    declared_kind,
    kind_of_column,
)
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: A column of each kind; None: without a value.
_EXAMPLES: dict[str | None, AttributeColumn] = {
    "text": CodedStrings(np.zeros(1, np.int32), ("",)),
    "boolean": Booleans(np.zeros(1, np.int8)),
    "number": np.zeros(1),
    None: np.full(1, np.nan),
}


@dataclass(frozen=True, slots=True)
class KnownKinds:
    """The kinds of attributes in the batches so far."""

    #: Those that are read.
    attributes: tuple[str, ...]
    #: ``number``, ``text`` or ``boolean``; without those that had no value yet.
    kinds: Mapping[str, str] = field(default_factory=dict)

    def are_those_of(self, batch: EventStream) -> bool:
        """Whether all are known, and each column is of its kind or has no values."""
        columns, kinds = batch.attributes, self.kinds
        for name in self.attributes:
            if name not in columns or kinds.get(name) != declared_kind(columns[name]):
                return False
        return True

    def example(self, like: EventStream) -> EventStream:
        """A stream of one event with values of the known kinds, with time and hierarchy of another."""
        columns = {name: _EXAMPLES[self.kinds.get(name)] for name in self.attributes}
        return replace(
            like,
            type_codes=np.zeros(1, np.int32),
            type_names=("",),
            timestamps=np.zeros(1, np.int64),
            attributes=columns,
            positions=None,
        )

    def after(self, batch: EventStream, position: int) -> KnownKinds:
        """The kinds after another batch, from this position on; these do not change.

        A StreamError if an attribute has values of another kind than before.
        """
        new = {}
        for name in self.attributes:
            column = batch.column(name)
            known = self.kinds.get(name)
            # Values are looked at only where they decide.
            if known == declared_kind(column):
                continue
            kind = kind_of_column(column)
            if kind is None:
                continue
            if known is not None:
                raise StreamError(
                    f"row {position}: attribute {name!r} is a {kind} in the batch that begins here, "
                    f"and a {known} in one before; convert it to one of the two in every batch, such "
                    "as by dtype= of pandas.read_csv, and push the batch again",
                    row=position,
                )
            new[name] = kind
        return KnownKinds(self.attributes, {**self.kinds, **new}) if new else self


class ComparedIntegers:
    """The attributes that engines read as floats, so that larger integers are refused.

    Those of an item that is also compared with constants are left to the engines, which do not read
    the events that this excludes.
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        #: Attribute → the types of the events that are read; None for all.
        self._read: dict[str, set[str | None]] = {}
        for pattern in patterns:
            for name, type_name in _compared(pattern):
                self._read.setdefault(name, set()).add(type_name)

    def check(self, batch: EventStream) -> None:
        """Check that no event has a larger integer, or raise a StreamError."""
        for name, types in self._read.items():
            column = batch.column(name)
            if not isinstance(column, np.ndarray) or column.dtype.kind != "i":
                continue
            # Of few events, as on a live stream, Python is faster.
            values = column.tolist() if len(column) < 8 else (column.min(), column.max())
            if values and (min(values) < -EXACT or max(values) > EXACT):
                for type_name in types:
                    NumericReader().read(batch, name, batch.rows_of(type_name))


def _compared(pattern: Pattern) -> Iterator[tuple[str, str | None]]:
    """The attributes of which values are compared, with the type of the events that have them."""
    types = {variable.name: variable.type for variable in pattern.variables}
    clauses = [
        {(attribute.variable, attribute.name) for attribute in clause.attributes()}
        for clause in pattern.expanded.conditions
    ]
    variables = [{variable for variable, _ in pairs} for pairs in clauses]
    chosen = {next(iter(its)) for its in variables if len(its) == 1}
    for variable, name in set().union(*clauses):
        if variable not in chosen:
            yield name, types[variable]
    if pattern.strategy.attribute is not None:
        yield pattern.strategy.attribute, None
