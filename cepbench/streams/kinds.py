"""Values that a batch may not have: of another kind than before, and integers that floats round."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from cepbench.errors import StreamError
from cepbench.patterns.model import Pattern
from cepbench.streams.columns import EXACT, declared_kind, kind_of_column
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


@dataclass(frozen=True, slots=True)
class KnownKinds:
    """The kinds of attributes in the batches so far.

    Attributes
    ----------
    attributes : tuple of str
        Those that are read.
    kinds : mapping of str to str
        ``number``, ``text`` or ``boolean``; without those that had no value yet.
    """

    attributes: tuple[str, ...]
    kinds: Mapping[str, str] = field(default_factory=dict)

    def after(self, batch: EventStream, position: int) -> KnownKinds:
        """The kinds after another batch; these do not change.

        Parameters
        ----------
        batch : EventStream
        position : int
            Of its first event.

        Raises
        ------
        StreamError
            If an attribute has values of another kind than before.
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

    Parameters
    ----------
    patterns : iterable of Pattern
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        #: Attributes with the type of the events that are read; None for all.
        self._read = {pair for pattern in patterns for pair in _compared(pattern)}

    def check(self, batch: EventStream) -> None:
        """Check that no event has a larger integer.

        Raises
        ------
        StreamError
        """
        for name, type_name in self._read:
            column = batch.column(name)
            if not isinstance(column, np.ndarray) or column.dtype != np.int64 or not len(column):
                continue
            # Of one event, as on a live stream, Python is faster.
            values = column.tolist() if len(column) < 8 else (column.min(), column.max())
            if min(values) < -EXACT or max(values) > EXACT:
                rows = batch.rows_of(type_name)
                NumericReader().read(batch, name, rows)


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
