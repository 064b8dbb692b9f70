"""Queries as the reuse of matches reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from cepbench.engines.plan_runs.compiled import CompiledBranch
from cepbench.patterns.equivalences import equal_attributes, equated
from cepbench.patterns.model import Clause, Comparison, Pattern
from cepbench.patterns.structure import first_of, last_of


class Relations(NamedTuple):
    """What a variable has to do with others that are bound."""

    #: Those that come next before it, and next after it.
    after: Sequence[str]
    before: Sequence[str]
    #: Those among which the earliest, and the latest, event of a match is, unless the variable is
    #: between two of them.
    first: Sequence[str]
    last: Sequence[str]
    distinct: Sequence[str]  #: those in no order with it
    conditions: Sequence[Clause]  #: between it and them

    @property
    def mentioned(self) -> set[str]:
        """All variables in these relations."""
        found = {*self.after, *self.before, *self.first, *self.last, *self.distinct}
        return found.union(*(clause.variables for clause in self.conditions))


class Query(CompiledBranch):
    """What a query without OR and groups asks of its events.

    The events of variables that are ``ascending`` are each at a later position than that of the one before.
    """

    def __init__(self, pattern: Pattern, ascending: Sequence[Sequence[str]] = ()) -> None:
        super().__init__(*pattern.branches())
        self.names = self.pattern.positive_names  #: its positive variables
        #: The positive variable that precedes, and that follows, all others.
        self.first = self._end(lambda name, other: (name, other) in self.before)
        self.last = self._end(lambda name, other: (other, name) in self.before)
        self.conditions = self.pattern.conditions
        self.window = self.pattern.window.length
        #: Whether it has Kleene variables.
        self.has_sets = any(variable.is_set for variable in self.pattern.positive)
        #: Of each variable those whose events are at earlier, and at later, positions.
        self.siblings = {
            name: (tuple(its[:place]), tuple(its[place + 1 :]))
            for its in ascending
            for place, name in enumerate(its)
        }
        self._equal = equal_attributes(self.conditions, self.names)
        self._relations: dict[tuple[str, tuple[str, ...]], Relations] = {}

    def _end(self, is_beyond: Callable[[str, str], bool]) -> str | None:
        """The positive variable that is beyond all others."""
        for name in self.names:
            if all(is_beyond(name, other) for other in self.names if other != name):
                return name
        return None

    def neighbours(self, name: str, bound: Collection[str]) -> tuple[list[str], list[str]]:
        """Those of some variables that come next before, and next after, a variable."""
        after = [x for x in bound if (x, name) in self.before]
        before = [y for y in bound if (name, y) in self.before]
        return last_of(after, self.before), first_of(before, self.before)

    def relations(self, name: str, bound: tuple[str, ...]) -> Relations:
        """What a variable has to do with others that are bound."""
        if (name, bound) not in self._relations:
            after, before = self.neighbours(name, bound)
            self._relations[name, bound] = Relations(
                after,
                before,
                # Times between two events of a match are within its window.
                [] if before else first_of(bound, self.before),
                [] if after else last_of(bound, self.before),
                [x for x in bound if {(x, name), (name, x)}.isdisjoint(self.before)],
                self._between(name, bound),
            )
        return self._relations[name, bound]

    def _between(self, name: str, bound: Collection[str]) -> list[Clause]:
        """The conditions on a variable and bound ones, those included that equalities imply.

        In SEQ(A a, B b, C c) WHERE [id], c.id = a.id is implied; it is tested if b is not bound.
        """
        found = [
            clause
            for clause in self.conditions
            if len(clause.variables) > 1
            and name in clause.variables
            and {*clause.variables} <= {*bound, name}
        ]
        for equal in self._equal:
            own = next((term for term in equal if term.variable == name), None)
            others = [term for term in equal if term.variable in bound]
            if own is None or not others:
                continue
            if not any({own, other} in map(equated, found) for other in others):
                found.append(Clause((Comparison("=", others[0], own),)))
        return found


#: The cached query of a pattern.
query_of = lru_cache(maxsize=4096)(Query)
