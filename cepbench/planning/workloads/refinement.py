"""Refinement of queries: which results of one query are, projected, results of another [liu2011]_."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from cepbench.patterns.arrays import constant_holds
from cepbench.patterns.contradictions import MOST_STEPS
from cepbench.patterns.expressions import Aggregate, Attribute, Clause, Constant, Expression
from cepbench.patterns.model import Kind, Pattern, Variable
from cepbench.patterns.orders import Fact, Order

if TYPE_CHECKING:
    import pandas as pd

    from cepbench.patterns.concepts import ConceptHierarchy

#: For each positive variable of the general query, the index of one of the specific query.
Embedding = tuple[int, ...]


def embeddings(
    general: Pattern, specific: Pattern, hierarchy: ConceptHierarchy | None = None
) -> tuple[Embedding, ...]:
    """The ways to read the matches of one query as matches of a more general one.

    For each embedding, the index in ``specific.positive`` of each of ``general.positive``; the
    projection of every match of ``specific`` to these variables is a match of ``general``. They
    increase if ``general`` is a SEQ. Empty if ``specific`` is no refinement of ``general``, and for
    patterns that have no refinements: with OR, groups, OUTPUT non_overlap, or a strategy other than
    ``any``. GROUP BY and AGG, computed over the matches, are left aside. Without a hierarchy a type is
    above itself only.

    Source: [liu2011]_, Definitions 2 to 5. An embedding keeps the order in time, and maps each variable
    to one of the same type or of one below, and of the same kind; but a Kleene variable also to a plain
    one, a set of one event. Conditions of ``general`` on positive variables follow from those of
    ``specific``; equalities are transitive, but not through a negated variable, which need not have
    an event. The window of ``specific`` is not longer. Each negated variable of ``general`` is
    covered by one of ``specific`` that forbids at least the same events.

    Differs from [liu2011]_: by Definition 3 taken literally, deleting D from SEQ(G, ¬D, A, T) and
    adding it to SEQ(G, ¬D, T) would both be refinements; but A, T without D between G and A may have
    a D between A and T, so that the former is not below SEQ(G, ¬D, T).
    """
    above, below = _query_of(general), _query_of(specific)
    if above is None or below is None:
        return ()
    return tuple(_Refinement(above, below, hierarchy).embeddings())


class Refinements:
    """Which queries of a workload refine which.

    Only pairs are tried in which the specific query has enough variables at or below each type of
    the general one.
    """

    def __init__(
        self, patterns: Mapping[str, Pattern], hierarchy: ConceptHierarchy | None = None
    ) -> None:
        self._names = list(patterns)
        self._hierarchy = hierarchy
        queries = {name: _Query.of(pattern) for name, pattern in patterns.items()}
        self._queries = {name: query for name, query in queries.items() if query}
        found = {}
        for pair in _candidates(self._queries, hierarchy):
            if ways := tuple(self._between(*pair).embeddings()):
                found[pair] = ways
        #: The pairs (general, specific) that have any, see :func:`embeddings`.
        self.embeddings: Mapping[tuple[str, str], tuple[Embedding, ...]] = MappingProxyType(found)

    def _between(self, general: str, specific: str) -> _Refinement:
        return _Refinement(self._queries[general], self._queries[specific], self._hierarchy)

    def table(self) -> pd.DataFrame:
        """A row a pair, see :attr:`cepbench.Workload.refinements`."""
        import pandas as pd

        places = {name: place for place, name in enumerate(self._names)}
        above = np.zeros((len(places), len(places)), dtype=np.float32)
        for general, specific in self.embeddings:
            above[places[general], places[specific]] = 1
        strictly = above * (1 - above.T)
        between = strictly @ strictly
        rows = [
            (general, specific, self._change(general, specific), bool(between[pair] == 0))
            for general, specific in self.embeddings
            for pair in [(places[general], places[specific])]
        ]
        return pd.DataFrame(rows, columns=["general", "specific", "change", "direct"])

    def _change(self, general: str, specific: str) -> str:
        refinement = self._between(general, specific)
        ways = self.embeddings[general, specific]
        retyped = min(map(refinement.types_changed, ways)) > 0
        if refinement.adds_items:
            return "both" if retyped else "pattern"
        if retyped:
            return "concept"
        return "nothing" if (specific, general) in self.embeddings else "condition"


def refines_others(pattern: Pattern) -> bool:
    """Whether there can be refinements of a pattern, see :func:`embeddings`."""
    return _query_of(pattern) is not None


def implies(pattern: Pattern, clause: Clause) -> bool:
    """Whether a condition on positive variables holds in every match of a pattern with refinements."""
    query = _query_of(pattern)
    return query is not None and query.known.implies(clause)


def is_at_or_above(
    general: str | None, specific: str | None, hierarchy: ConceptHierarchy | None
) -> bool:
    """Whether every event of the type ``specific`` is of the type ``general``; None is any type."""
    if general is None or general == specific:
        return True
    return specific is not None and hierarchy is not None and hierarchy.is_a(specific, general)


def _candidates(
    queries: Mapping[str, _Query], hierarchy: ConceptHierarchy | None
) -> Iterator[tuple[str, str]]:
    """Pairs of different queries that the windows and the numbers of types do not exclude."""
    columns: dict[str | None, int] = {}
    for query in queries.values():
        for variable in query.variables:
            columns.setdefault(variable.type, len(columns))
    at_or_above = {
        name: [
            column for other, column in columns.items() if is_at_or_above(other, name, hierarchy)
        ]
        for name in columns
    }
    offered = np.zeros((len(queries), len(columns)), dtype=np.int64)
    for place, query in enumerate(queries.values()):
        for variable in query.variables:
            offered[place, at_or_above[variable.type]] += 1
    names = list(queries)
    windows = [query.pattern.window for query in queries.values()]
    lengths = np.array([window.length for window in windows])
    datetimes = np.array([window.is_datetime for window in windows])
    for above, query in enumerate(queries.values()):
        counted = Counter(columns[variable.type] for variable in query.variables)
        enough = (offered[:, [*counted]] >= [*counted.values()]).all(axis=1)
        enough &= (lengths <= lengths[above]) & (datetimes == datetimes[above])
        enough[above] = False
        yield from ((names[above], names[below]) for below in np.flatnonzero(enough))


@dataclass(frozen=True)
class _Negation:
    """A negated variable, the positive ones before and after it, and the conditions on it."""

    variable: Variable
    after: frozenset[int]
    before: frozenset[int]
    clauses: tuple[Clause, ...]


class _Query:
    """A pattern with its positive variables by index."""

    def __init__(self, pattern: Pattern) -> None:
        #: With ``[attr]`` as comparisons.
        self.pattern = pattern
        self.variables = pattern.positive
        self._places = {variable.name: place for place, variable in enumerate(self.variables)}
        self._precedence = pattern.structure.precedence()
        #: Pairs of positive variables of which one is before the other.
        self.precedence = {
            (self._places[x], self._places[y])
            for x, y in self._precedence
            if x in self._places and y in self._places
        }

    @classmethod
    def of(cls, pattern: Pattern) -> _Query | None:
        """None for patterns without refinements."""
        if (
            pattern.strategy.name != "any"
            or pattern.output != "all"
            or pattern.groups
            or len(pattern.structure.alternatives()) > 1
        ):
            return None
        (branch,) = pattern.branches()
        return cls(branch)

    @cached_property
    def clauses(self) -> list[list[Clause]]:
        """The conditions on positive variables, by the last variable that each mentions."""
        found: list[list[Clause]] = [[] for _ in self.variables]
        for clause in self.pattern.conditions:
            if self._places.keys() >= set(clause.variables):
                found[max(map(self._places.__getitem__, clause.variables))].append(clause)
        return found

    @cached_property
    def known(self) -> _Known:
        """What the conditions on positive variables imply."""
        return _Known([*itertools.chain.from_iterable(self.clauses)])

    @cached_property
    def negations(self) -> tuple[_Negation, ...]:
        """The negated variables."""
        return tuple(
            _Negation(
                variable,
                frozenset(self._places[x] for x, y in self._precedence if y == variable.name),
                frozenset(self._places[y] for x, y in self._precedence if x == variable.name),
                tuple(c for c in self.pattern.conditions if variable.name in c.variables),
            )
            for variable in self.pattern.negated
        )


@lru_cache(maxsize=4096)
def _query_of(pattern: Pattern) -> _Query | None:
    """The cached query of a pattern; None for patterns without refinements."""
    return _Query.of(pattern)


class _Known:
    """What conditions that all hold imply."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        self.clauses = clauses
        self._written = {frozenset(clause.comparisons) for clause in clauses}
        # Conditions over i > 1 need not hold for any event.
        plain = [clause for clause in clauses if not clause.is_running]
        self._facts: list[Fact] = [(c.comparisons[0], c) for c in plain if len(c.comparisons) == 1]
        self._order = Order(self._facts, MOST_STEPS)
        self._alternatives = [
            [
                Order([*self._facts, (comparison, clause)], MOST_STEPS)
                for comparison in clause.comparisons
            ]
            for clause in plain
            if len(clause.comparisons) > 1
        ]

    def implies(self, clause: Clause) -> bool:
        """Whether the clause holds too."""
        if any(written <= frozenset(clause.comparisons) for written in self._written):
            return True
        if clause.is_running:
            return False
        return any(
            all(any(map(order.implies, clause.comparisons)) for order in orders)
            for orders in ([self._order], *self._alternatives)
        )


class _Refinement:
    """A search for the embeddings of one query into another."""

    def __init__(
        self, general: _Query, specific: _Query, hierarchy: ConceptHierarchy | None
    ) -> None:
        self._general = general
        self._specific = specific
        self._hierarchy = hierarchy

    def embeddings(self) -> Iterator[Embedding]:
        """All of them, in lexicographic order."""
        if self._general.pattern.order != self._specific.pattern.order:
            return
        above, below = self._general.pattern.window, self._specific.pattern.window
        if above.is_datetime == below.is_datetime and below.length <= above.length:
            yield from self._extended(())

    @property
    def adds_items(self) -> bool:
        """Whether the specific query has more variables, negated ones included."""
        return len(self._specific.pattern.variables) > len(self._general.pattern.variables)

    def _extended(self, chosen: Embedding) -> Iterator[Embedding]:
        place = len(chosen)
        if place == len(self._general.variables):
            if all(self._covering(negation, chosen) for negation in self._general.negations):
                yield chosen
            return
        for image, variable in enumerate(self._specific.variables):
            if image not in chosen and self._fits(self._general.variables[place], variable):
                longer = (*chosen, image)
                if self._keeps_order(longer) and self._implied(place, longer):
                    yield from self._extended(longer)

    def _fits(self, general: Variable, specific: Variable) -> bool:
        kinds = {general.kind, specific.kind}
        # One event is a set.
        is_one = general.kind is Kind.KLEENE and specific.kind is Kind.PLAIN
        return (len(kinds) == 1 or is_one) and is_at_or_above(
            general.type, specific.type, self._hierarchy
        )

    def _keeps_order(self, chosen: Embedding) -> bool:
        last = len(chosen) - 1
        required, given = self._general.precedence, self._specific.precedence
        return all(
            ((place, last) not in required or (image, chosen[last]) in given)
            and ((last, place) not in required or (chosen[last], image) in given)
            for place, image in enumerate(chosen[:last])
        )

    def _implied(self, place: int, chosen: Embedding) -> bool:
        """Whether the conditions that end at a variable hold."""
        names, single = self._names(chosen), self._single(chosen)
        return all(
            self._specific.known.implies(its.renamed(names))
            for clause in self._general.clauses[place]
            if (its := _of_one_event(clause, single)) is not None
        )

    def _single(self, chosen: Embedding) -> frozenset[str]:
        """The Kleene variables of the general query that are one event in the specific one."""
        variables = zip(self._general.variables, chosen, strict=False)
        return frozenset(
            variable.name
            for variable, image in variables
            if variable.kind is Kind.KLEENE and not self._specific.variables[image].is_set
        )

    def _names(self, chosen: Embedding) -> dict[str, str]:
        images = (self._specific.variables[image].name for image in chosen)
        return dict(zip((v.name for v in self._general.variables), images, strict=False))

    def types_changed(self, chosen: Embedding) -> int:
        """How many variables, negated ones included, have another type."""
        general = self._general
        images = (self._specific.variables[image] for image in chosen)
        changed = sum(
            v.type != image.type for v, image in zip(general.variables, images, strict=True)
        )
        return changed + sum(
            all(other.type != negation.variable.type for other in self._covering(negation, chosen))
            for negation in general.negations
        )

    def _covering(self, negation: _Negation, chosen: Embedding) -> list[Variable]:
        """The negated variables of the specific query that forbid at least the same events."""
        after = {chosen[place] for place in negation.after}
        before = {chosen[place] for place in negation.before}
        if not (after and before) and not self._spans_the_same(chosen):
            return []
        if any(
            self._may_be_between(image, after, before, negation.variable)
            for image in range(len(self._specific.variables))
            if image not in chosen
        ):
            return []
        return [
            other.variable
            for other in self._specific.negations
            if is_at_or_above(other.variable.type, negation.variable.type, self._hierarchy)
            and all(self._reaches(image, after) for image in other.after)
            and all(self._is_reached(image, before) for image in other.before)
            and self._asks_no_more(other, negation, chosen)
        ]

    def _reaches(self, image: int, later: AbstractSet[int]) -> bool:
        """Whether a variable is one of these, or before one of them."""
        return any(image == y or (image, y) in self._specific.precedence for y in later)

    def _is_reached(self, image: int, earlier: AbstractSet[int]) -> bool:
        return any(image == x or (x, image) in self._specific.precedence for x in earlier)

    def _spans_the_same(self, chosen: Embedding) -> bool:
        """Whether a negation at an end looks equally far in both queries."""
        return self._general.pattern.window.length == self._specific.pattern.window.length and all(
            self._reaches(image, {*chosen}) and self._is_reached(image, {*chosen})
            for image in range(len(self._specific.variables))
        )

    def _may_be_between(
        self, image: int, after: AbstractSet[int], before: AbstractSet[int], negated: Variable
    ) -> bool:
        """Whether an event that a projection leaves out may be a forbidden one of it."""
        variable = self._specific.variables[image]
        return (
            is_at_or_above(variable.type, negated.type, self._hierarchy)
            or is_at_or_above(negated.type, variable.type, self._hierarchy)
        ) and not (self._reaches(image, after) or self._is_reached(image, before))

    def _asks_no_more(self, other: _Negation, negation: _Negation, chosen: Embedding) -> bool:
        """Whether the conditions on a negated variable follow from those on a general one."""
        names = self._names(chosen) | {negation.variable.name: other.variable.name}
        single = self._single(chosen)
        its = (_of_one_event(clause, single) for clause in negation.clauses)
        given = [clause.renamed(names) for clause in its if clause is not None]
        known = _Known([*self._specific.known.clauses, *given]) if other.clauses else None
        return known is None or all(map(known.implies, other.clauses))


def _of_one_event(clause: Clause, single: AbstractSet[str]) -> Clause | None:
    """The clause for some sets of one event each; None if it holds of any."""
    if clause.running_variables() & single:
        return None

    def change(term: Attribute | Aggregate) -> Expression:
        if isinstance(term, Attribute):
            return replace(term, element="each") if term.variable in single else term
        if term.attribute.variable not in single:
            return term
        return Constant(1) if term.function == "count" else term.attribute

    found = clause.with_terms(change)
    constant = (its for its in found.comparisons if not [*its.terms()])
    return None if any(map(constant_holds, constant)) else found
