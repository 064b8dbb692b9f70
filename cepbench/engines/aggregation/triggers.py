"""Triggers [qi2014]_, section 3.1: the events after which a value is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.model import Clause, Kind, Pattern, Variable
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


class _Last(NamedTuple):
    """The last positive item of a branch."""

    variable: Variable
    clauses: tuple[Clause, ...]  #: the conditions on single events of it
    known: tuple[int, ...]  #: the places in GROUP BY of the keys that are known from its events


class Triggers:
    """Finds the triggers of a pattern, and what they say of their groups.

    A trigger is an event of the type of the last positive item that satisfies the conditions that
    mention this item alone; whether it completes a match does not matter. With OR each branch has
    its own. A key that is an attribute of another item is not known from the trigger.
    """

    def __init__(self, pattern: Pattern) -> None:
        self._group_by = pattern.group_by
        self._reader = NumericReader(0)
        found = []
        for branch in pattern.structure.alternatives():
            last = [v for v in branch.variables() if v.kind is not Kind.NEGATED][-1]
            clauses = (c for c in pattern.conditions if c.variables == (last.name,))
            known = [
                place
                for place, key in enumerate(self._group_by)
                if key.variable in (None, last.name)
            ]
            elementwise = tuple(c for c in clauses if c.is_elementwise)
            found.append(_Last(last, elementwise, tuple(known)))
        self._lasts = tuple(dict.fromkeys(found))

    @property
    def knows_all(self) -> bool:
        """Whether each key of GROUP BY is known from every trigger."""
        return all(len(last.known) == len(self._group_by) for last in self._lasts)

    def by_keys(self, batch: EventStream) -> list[tuple[tuple[int, ...], np.ndarray]]:
        """The rows of triggers, and the places in GROUP BY of the keys that these determine.

        Those that determine all keys come first. An event may be a trigger for several reasons.
        """
        found: dict[tuple[int, ...], list[np.ndarray]] = {}
        for last in sorted(self._lasts, key=lambda last: -len(last.known)):
            rows = batch.rows_of(last.variable.type)
            rows = rows_with(last.clauses, self._reader, batch, rows)
            found.setdefault(last.known, []).append(rows)
        return [
            (known, listed[0] if len(listed) == 1 else np.unique(np.concatenate(listed)))
            for known, listed in found.items()
        ]


def rows_with(
    clauses: Sequence[Clause], reader: NumericReader, batch: EventStream, rows: np.ndarray
) -> np.ndarray:
    """The rows whose single events satisfy conditions."""
    for clause in clauses:
        if len(rows):
            rows = rows[clause_holds(clause, reader.reading(batch, rows), reader.code)]
    return rows
