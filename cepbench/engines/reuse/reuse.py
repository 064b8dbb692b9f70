"""Matches of a query from those of a more general or a more specific one [liu2011]_, section 4.

Down (sections 4.A to 4.C): matches of the more general query are filtered by the types, conditions and
window of the specific one, and its missing items and negations are joined (Figure 6). Up (4.D to 4.F):
matches of the more specific query are projected, equal ones are dropped, and the matches that none of
them contains are added (Figure 7; equations 15 and 17).

Differs from the paper: filters come before joins, which is its best intermediate query (equation 14)
without enumerating them. The matches to add are found by one series of joins for all differences
together, concepts included: a partial match is dropped when all that can keep it from being contained in
a match of the specific query has been tested, and nothing does. In the example of Figure 8 these are the
A with no D between them and T, without the pointers that would find "the latest A after the latest D".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import combinations, starmap

import numpy as np
import pandas as pd

from cepbench.engines.reuse.events import Events
from cepbench.engines.reuse.growth import ALL, Growth, Sought
from cepbench.engines.reuse.kept import (
    ExtendedMatches,
    KeptMatches,
    ListedMatches,
    ProjectedMatches,
)
from cepbench.engines.reuse.kernels.columns import distinct_columns
from cepbench.engines.reuse.queries import Query
from cepbench.patterns.model import Attribute, Clause
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: Positions of the events of some variables.
Positions = Mapping[str, np.ndarray]

#: Whether something holds of each match, as bools.
Test = Callable[[Positions], np.ndarray]

#: The variables that a test reads, and the test.
Requirement = tuple[frozenset[str], Test]


class Edge:
    """Two queries, and an embedding: the specific one's positive item of each item of the general one."""

    def __init__(self, general: Query, specific: Query, embedding: tuple[int, ...]) -> None:
        self.general, self.specific = general, specific
        #: The specific query's variable of each variable of the general one.
        self.images = tuple(specific.names[place] for place in embedding)
        #: Its other positive variables.
        self.missing = tuple(name for name in specific.names if name not in self.images)
        self.name_of = dict(zip(self.images, general.names, strict=True))
        known = {frozenset(clause.comparisons) for clause in general.conditions}
        #: Those on images that the general query has not.
        self.conditions = [
            clause
            for clause in specific.conditions
            if {*clause.variables} <= {*self.images} and self._in_general(clause) not in known
        ]
        #: Pairs of images of which the first precedes the second, but not in the general query.
        self.order = [
            (x, y)
            for x, y in sorted(specific.before)
            if {x, y} <= {*self.images} and (self.name_of[x], self.name_of[y]) not in general.before
        ]

    def _in_general(self, clause: Clause) -> frozenset[object]:
        renamed = clause.with_terms(
            lambda term: (
                Attribute(self.name_of[term.variable], term.name, term.element)
                if isinstance(term, Attribute)
                else term
            )
        )
        return frozenset(renamed.comparisons)

    def tests(self, events: Events) -> Iterator[Requirement]:
        """What the specific query asks of its images alone, and the general one does not."""
        specific = self.specific

        def is_of(type: str | None, at: Positions) -> np.ndarray:
            (positions,) = at.values()
            return events.are_of(type, positions)

        def precedes(x: str, y: str, at: Positions) -> np.ndarray:
            return events.times[at[x]] < events.times[at[y]]

        def in_window(at: Positions) -> np.ndarray:
            span: np.ndarray = np.ptp([events.times[its] for its in at.values()], axis=0)
            return span <= specific.window

        for image, name in self.name_of.items():
            type = specific.variables[image].type
            if type != self.general.variables[name].type:
                yield frozenset((image,)), partial(is_of, type)
        for clause in self.conditions:
            yield frozenset(clause.variables), partial(events.holds, clause)
        for x, y in self.order:
            yield frozenset((x, y)), partial(precedes, x, y)
        if specific.window < self.general.window:
            yield frozenset(self.images), in_window


#: The cached edge of cached queries.
edge_of = lru_cache(maxsize=4096)(Edge)


def down(
    edge: Edge,
    source: KeptMatches,
    events: Events,
    limit: int,
    sought: Sought = ALL,
    order: Sequence[str] = (),
) -> KeptMatches:
    """The specific query's matches from those of the general one, as far as they are sought.

    ``limit`` is the most partial matches, and ``order`` that of joins, see :meth:`Growth.grow`.
    """
    names = edge.specific.names
    growth = _tested(edge, source, events, limit, sought)
    growth.grow(edge.missing, order)
    if sought != ALL:
        growth.keep(sought.mask(growth.table(names)))
    rows = np.arange(len(growth), dtype=np.int32) if growth.rows is None else growth.rows
    return ExtendedMatches(names, growth.own, source, rows, edge.name_of)


def number_down(
    edge: Edge, source: KeptMatches, events: Events, limit: int, order: Sequence[str] = ()
) -> int:
    """The number of matches that :func:`down` finds."""
    growth = _tested(edge, source, events, limit, ALL)
    if edge.missing:
        return growth.number(edge.missing, order)
    growth.check()
    return len(growth)


def _tested(edge: Edge, source: KeptMatches, events: Events, limit: int, sought: Sought) -> Growth:
    """The source's matches that have all that the specific query asks of the images."""
    growth = Growth(edge.specific, events, edge.images, source.table, limit, sought)
    for needed, test in edge.tests(events):
        growth.keep(test({name: growth.column(name) for name in needed}))
    if edge.missing or growth.unchecked:
        events.work.source_matches += len(growth)
    return growth


def projected(edges: Sequence[Edge], sources: Sequence[KeptMatches]) -> KeptMatches:
    """The distinct projections of matches of more specific queries, each by its edge, to one query."""
    names = edges[0].general.names
    if len(edges) == 1 and not edges[0].missing:
        return ProjectedMatches(names, sources[0], edges[0].images)
    projections = [
        its.table[[edge.specific.names.index(image) for image in edge.images]]
        for edge, its in zip(edges, sources, strict=True)
    ]
    found = np.ascontiguousarray(np.concatenate(projections, axis=1))
    if any(edge.missing for edge in edges) or not all(starmap(_apart, combinations(edges, 2))):
        found = np.ascontiguousarray(found[:, distinct_columns(found)])
    return ListedMatches(names, found)


def delta(
    edges: Sequence[Edge],
    events: Events,
    limit: int,
    sought: Sought = ALL,
    order: Sequence[str] = (),
) -> KeptMatches:
    """The general query's matches that no match of a specific one contains, as far as they are sought.

    All edges are to the same general query. Its items are joined in ``order``, by default those first
    that decide whether a source contains a match; ``limit`` is the most partial matches.
    """
    return sought.among(_Delta(edges, events, limit, sought, order).matches())


def _apart(one: Edge, other: Edge) -> bool:
    """Whether no match of the general query is contained in matches of both specific ones."""
    for mine, theirs in zip(one.images, other.images, strict=True):
        first, second = one.specific.variables[mine], other.specific.variables[theirs]
        if not any(edge.specific.pattern.overlap(first, second) for edge in (one, other)):
            return True
    return False


class _Delta:
    """The general query's matches that no match of any specific one contains."""

    def __init__(
        self,
        edges: Sequence[Edge],
        events: Events,
        limit: int,
        sought: Sought,
        order: Sequence[str] = (),
    ) -> None:
        self.edges, self.events, self.limit, self.sought = edges, events, limit, sought
        self.general = edges[0].general
        #: Of each edge, what a match has to pass to be contained in one of its specific query.
        self.tests = [[*edge.tests(events)] for edge in edges]
        for edge, tests in zip(edges, self.tests, strict=True):
            if edge.missing or edge.specific.checks:
                tests.append((_needed_to_complete(edge), partial(self._are_completed, edge)))
        self.order = self._ordered(order)
        self.gap = self._gap(*edges) if [*map(len, self.tests)] == [1] else None
        if self.gap is not None:
            self.tests = [[]]

    def matches(self) -> KeptMatches:
        """Matches of the general query."""
        general = self.general
        if self.gap is None and not all(self.tests):
            return ListedMatches(general.names, np.empty((len(general.names), 0), np.int32))
        first, *others = self.order
        growth = Growth.of_one(general, self.events, first, self.limit, self.sought)
        growth.labels = np.zeros((len(growth), len(self.edges)), bool)
        tests = self._tested(growth, self.tests)
        for name in others:
            gap = None if self.gap is None or name != self.gap[0] else self.gap[1:]
            growth.extend(name, gap)
            tests = self._tested(growth, tests)
        if growth.rows is None:
            return ListedMatches(general.names, growth.begun)
        begun = ListedMatches([first], growth.begun)
        return ExtendedMatches(general.names, growth.own, begun, growth.rows, {first: first})

    def _ordered(self, given: Sequence[str]) -> list[str]:
        """The general query's variables, one restricted to few events, then those that decide.

        From the last one on, since the earlier end of a gap is restricted by the later one.
        """
        general = self.general
        decides = {
            edge.name_of[image]
            for edge, tests in zip(self.edges, self.tests, strict=True)
            for needed, _ in tests
            for image in needed
        }
        size = len(self.events.times)
        # Of a long batch, most events of the others are new as well.
        few = 2 * (min(self.sought.end, size) - self.sought.begin) < size
        restricted = self.sought.variable(general) if few else None
        if given:
            return sorted(given, key=lambda name: name != restricted)
        behind = reversed(general.names)
        return sorted(behind, key=lambda name: (name != restricted, name not in decides))

    def _tested(
        self, growth: Growth, tests: Sequence[Sequence[Requirement]]
    ) -> list[list[Requirement]]:
        """Test what can be; returns the remaining tests.

        A match is labelled for an edge once a test of it fails; without remaining tests of an edge all
        others are contained in matches of its specific query, and dropped.
        """
        left: list[list[Requirement]] = []
        assert growth.labels is not None
        for number, its in enumerate(tests):
            name_of = self.edges[number].name_of
            left.append([])
            for needed, test in its:
                names = {image: name_of[image] for image in sorted(needed)}
                if not {*names.values()} <= growth.names:
                    left[-1].append((needed, test))
                    continue
                undecided = np.flatnonzero(~growth.labels[:, number])
                at = {image: growth.column(name)[undecided] for image, name in names.items()}
                growth.labels[undecided, number] = ~test(at)
            if its and not left[-1]:
                growth.keep(growth.labels[:, number])
        growth.check()
        return left

    def _gap(self, edge: Edge) -> tuple[str, str, np.ndarray] | None:
        """The ends of the gap of the only missing item, and its events' timestamps.

        None if there are more differences, conditions between it and other events, or an order that
        does not join the later end before the earlier one.
        """
        specific = edge.specific
        if len(edge.missing) != 1 or specific.checks:
            return None
        (missing,) = edge.missing
        bounds = specific.neighbours(missing, edge.images)
        its = [clause for clause in specific.conditions if missing in clause.variables]
        if [*map(len, bounds)] != [1, 1] or any(len(clause.variables) > 1 for clause in its):
            return None
        if any({(x, missing), (missing, x)}.isdisjoint(specific.before) for x in edge.images):
            return None
        ((first,), (last,)) = bounds
        earlier, later = edge.name_of[first], edge.name_of[last]
        if self.order.index(earlier) < self.order.index(later):
            return None
        found = self.events.candidates(specific.variables[missing], specific.filters[missing])
        return earlier, later, found.times

    def _are_completed(self, edge: Edge, at: Positions) -> np.ndarray:
        """Whether the missing items and negations of the specific query can be added."""
        matches = np.stack([*at.values()])
        growth = Growth(edge.specific, self.events, [*at], matches, self.limit)
        if len(edge.missing) == 1 and not edge.specific.checks:
            return growth.extensible(*edge.missing)
        growth.grow(edge.missing)
        if growth.rows is None:
            return np.ones(matches.shape[1], bool)
        found = np.zeros(matches.shape[1], bool)
        found[growth.rows] = True
        return found


def _needed_to_complete(edge: Edge) -> frozenset[str]:
    """The images on which it depends whether the missing items and negations can be added."""
    specific, images = edge.specific, frozenset(edge.images)
    needed: set[str] = set()
    for name in edge.missing:
        after, before = specific.neighbours(name, edge.images)
        ordered = {x for x in images if {(x, name), (name, x)} & specific.before}
        if not after or not before or ordered != images:
            return images
        needed.update(after, before)
        for clause in specific.conditions:
            needed.update(clause.variables if name in clause.variables else ())
    for check in specific.checks:
        if any(check.within):
            return images
        needed.update(check.after, check.before, check.mentioned, check.distinct)
    return frozenset(needed & images)


@cache
def warm_up() -> None:
    """Compile the kernels or load them from the disk cache, to exclude this from measured times."""
    event = pd.DataFrame({"type": ["A"], "time": [0], "x": [0]})
    query = Query(parse("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 1 units"))
    stream = EventStream.from_pandas(event, type="type", time="time")
    events = Events(stream, NumericReader(), [query])
    begun = ListedMatches(["a"], np.zeros((1, 1), np.int32))
    growth = Growth(query, events, ["a"], begun.table, 1)
    growth.extensible("b")
    growth.number("b")
    growth.extend("b")
    distinct_columns(growth.table(query.names))
    assert growth.rows is not None
    ExtendedMatches(query.names, growth.own, begun, growth.rows, {"a": "a"}).copied(np.int64)
