"""Events as the reuse of matches reads them: by type and by value, for all queries at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from cepbench.engines.plan_runs.by_type import TypeRows
from cepbench.engines.reuse.queries import Query
from cepbench.kernels.arrays import read_only
from cepbench.patterns.arrays import clause_holds, expression_values
from cepbench.patterns.expressions import of_any_variable, with_terms
from cepbench.patterns.model import Attribute, Clause, Expression, Variable
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


class ByKey(NamedTuple):
    """Candidates in the order of a value, see :class:`~cepbench.engines.reuse.kernels.extend.Probe`."""

    positions: np.ndarray
    times: np.ndarray
    keys: np.ndarray
    starts: np.ndarray


class Candidates:
    """Events to which a variable may be bound, at ascending positions."""

    def __init__(self, positions: np.ndarray, times: np.ndarray) -> None:
        self.positions = read_only(positions)
        self._times = times
        self._by_key: dict[int, ByKey] = {}

    def between(self, begin: int, end: int) -> Candidates:
        """Those at positions from ``begin`` to ``end`` - 1."""
        first, last = np.searchsorted(self.positions, [begin, end])
        return Candidates(self.positions[first:last], self._times)

    def by_key(self, number: int, values: np.ndarray) -> ByKey:
        """Those with a value, in its order, then in their own; a number has the same values at each call."""
        if number not in self._by_key:
            its = values[self.positions]
            order = np.argsort(its, kind="stable")[: len(its) - np.count_nonzero(np.isnan(its))]
            positions = self.positions[order]
            keys, starts = np.unique(its[order], return_index=True)
            self._by_key[number] = ByKey(
                read_only(positions),
                read_only(self._times[positions]),
                read_only(keys),
                read_only(np.append(starts, len(positions)).astype(np.int64)),
            )
        return self._by_key[number]

    @cached_property
    def times(self) -> np.ndarray:
        """Their timestamps, int64, shape (candidates,)."""
        return read_only(self._times[self.positions])


@dataclass(slots=True)
class ReuseWork:
    """What reuse has done, in the terms of [liu2011]_, section IV."""

    #: Partial and complete matches of two events or more that were assembled, equation (5).
    assembled: float = 0
    #: Tests of the type of an event of a match, equation (13).
    types_tested: int = 0
    #: Matches of sources that were joined with events, tested for negated ones, or projected to
    #: fewer items, equations (7) and (16).
    source_matches: int = 0


class Events:
    """The events of a stream, and what queries ask of single ones, computed once where asked for."""

    def __init__(
        self, stream: EventStream, reader: NumericReader, queries: Iterable[Query]
    ) -> None:
        self.stream = stream
        self.reader = reader
        self.times = read_only(np.ascontiguousarray(stream.timestamps))
        variables = (its for query in queries for its in query.pattern.variables)
        self._of_type = TypeRows({its.type for its in variables}).by_type(stream)
        self.work = ReuseWork()
        self._candidates: dict[tuple[str | None, tuple[Clause, ...]], Candidates] = {}
        self._rows: dict[Expression, int] = {}
        self._used = 0
        self._values = np.empty((2, len(stream)))

    def candidates(self, variable: Variable, filters: Sequence[Clause]) -> Candidates:
        """The events of a variable's type that satisfy conditions on it alone."""
        key = (variable.type, tuple(clause.with_terms(of_any_variable) for clause in filters))
        if key not in self._candidates:
            found = self._of_type[variable.type]
            for clause in filters:
                found = found[self.holds(clause, {variable.name: found})]
            self._candidates[key] = Candidates(found, self.times)
        return self._candidates[key]

    def forget(self) -> None:
        """Drop what is known of candidates."""
        self._candidates.clear()

    def are_of(self, type: str | None, positions: np.ndarray) -> np.ndarray:
        """Which of some events are of a type, as bools."""
        self.work.types_tested += len(positions)
        flags = np.zeros(len(self.stream), bool)
        flags[self._of_type[type]] = True
        return flags[positions]

    def holds(self, clause: Clause, positions: Mapping[str, np.ndarray]) -> np.ndarray:
        """Where a condition holds, for arrays of the positions of its variables' events."""

        def read(attribute: Attribute) -> np.ndarray:
            return self.reader.read(self.stream, attribute.name, positions[attribute.variable])

        shape = next(iter(positions.values())).shape
        with np.errstate(all="ignore"):
            return np.broadcast_to(clause_holds(clause, read, self.reader.code), shape)

    def value(self, expression: Expression) -> int:
        """The row of :attr:`values` with an expression over one variable."""
        if expression not in self._rows:
            self._rows[expression] = self._row(with_terms(expression, of_any_variable))
        return self._rows[expression]

    def _row(self, expression: Expression) -> int:
        """The row of an expression over any variable."""
        if expression in self._rows:
            return self._rows[expression]
        row = self._rows[expression] = self._used
        self._used += 1
        if row == len(self._values):
            larger = np.empty((2 * row, len(self.stream)))
            larger[:row] = self._values
            self._values = larger
        read = self.reader.reading(self.stream, slice(None))
        with np.errstate(all="ignore"):
            self._values[row] = expression_values(expression, read, self.reader.code)
        return row

    @property
    def values(self) -> np.ndarray:
        """Values of expressions, float64, shape (at least those asked for, events)."""
        return self._values
