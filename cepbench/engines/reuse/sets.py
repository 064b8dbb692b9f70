"""Matches with sets, those of Kleene variables, as matches of queries without any.

The matches of a query whose sets have given numbers of events are those of a query with a plain
variable for each of them: KL(B b) with two events is AND(B b[1], B b[2]), whose events ascend. Each number
of events thus has its own queries and edges, and a set that reuse has to find is sought with one event,
then with two, and so on.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import lru_cache, partial
from itertools import product
from typing import NamedTuple, Self

import numpy as np

from cepbench.engines.reuse.events import Events
from cepbench.engines.reuse.growth import ALL, Growth, Sought
from cepbench.engines.reuse.kept import (
    CopiedWhenAsked,
    FoundMatches,
    KeptMatches,
    ListedMatches,
    UnitedMatches,
)
from cepbench.engines.reuse.kernels.columns import distinct_columns
from cepbench.engines.reuse.queries import Query
from cepbench.engines.reuse.reuse import Edge, delta, down, edge_of, number_down, projected
from cepbench.engines.runs.matches import BranchMatches, Column, SetColumn, no_matches
from cepbench.patterns.arrays import constant_holds
from cepbench.patterns.expressions import attributes_of
from cepbench.patterns.model import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Constant,
    Expression,
    Kind,
    Operator,
    Pattern,
    Structure,
    Variable,
)
from cepbench.planning.plans.reuse import Reuse

#: The number of events of each Kleene variable of a query.
Sizes = tuple[int, ...]

#: The matches of a query by these numbers, where there are any; without Kleene variables all are of
#: the numbers ().
Sized = Mapping[Sizes, KeptMatches]


class Sets(NamedTuple):
    """A query for sets of given sizes, and its variables for each positive one of the query with sets."""

    query: Query
    elements: dict[str, tuple[str, ...]]


@lru_cache(maxsize=4096)
def of_sizes(query: Query, sizes: Sizes) -> Sets | None:
    """The query whose matches are those with sets of these sizes; None if a condition excludes them."""
    if not sizes:
        return Sets(query, {name: (name,) for name in query.names})
    pattern = query.pattern
    number = iter(sizes)
    elements = {
        variable.name: tuple(f"{variable.name}[{place + 1}]" for place in range(next(number)))
        if variable.is_set
        else (variable.name,)
        for variable in pattern.positive
    }
    sets = {v.name: elements[v.name] for v in pattern.positive if v.is_set}
    conditions: dict[Clause, None] = {}
    for clause in pattern.conditions:
        for each in _of_elements(clause, sets):
            left = [its for its in each.comparisons if [*its.attributes()]]
            constant = [its for its in each.comparisons if its not in left]
            if any(map(constant_holds, constant)):
                continue
            if not left:
                return None
            conditions[Clause(tuple(left))] = None
    plain = object.__new__(Pattern)  # valid, since the pattern is
    vars(plain).update({its.name: getattr(pattern, its.name) for its in fields(pattern)})
    vars(plain).update(
        structure=_with_elements(pattern.structure, sets), conditions=tuple(conditions), returns=()
    )
    return Sets(Query(plain, ascending=[*sets.values()]), elements)


def _with_elements(structure: Structure, sets: Mapping[str, Sequence[str]]) -> Structure:
    items: list[Variable | Structure] = []
    for item in structure.items:
        if isinstance(item, Structure):
            items.append(_with_elements(item, sets))
        elif item.name in sets:
            its = [replace(item, name=name, kind=Kind.PLAIN) for name in sets[item.name]]
            items.append(its[0] if len(its) == 1 else Structure(Operator.AND, tuple(its)))
        else:
            items.append(item)
    return Structure(structure.operator, tuple(items))


def _of_elements(clause: Clause, sets: Mapping[str, Sequence[str]]) -> Iterator[Clause]:
    """What a condition on sets means for their events."""
    running = clause.running_variables()
    ranging = running | {
        term.variable
        for term in clause.terms()
        if isinstance(term, Attribute) and term.element == "each" and term.variable in sets
    }
    names = sorted(ranging)
    spans = (range(name in running, len(sets[name])) for name in names)
    for places in product(*spans):
        at = dict(zip(names, places, strict=True))

        def changed(term: Attribute | Aggregate, at: Mapping[str, int] = at) -> Expression:
            variable = term.attribute.variable if isinstance(term, Aggregate) else term.variable
            if variable not in sets:
                return term
            if isinstance(term, Aggregate):
                its = sets[variable][: at[variable] if term.before else None]
                return _aggregated(term, [replace(term.attribute, variable=name) for name in its])
            place = {"first": 0, "last": -1}.get(term.element)
            if place is None:
                place = at[variable] - (term.element == "previous")
            return Attribute(sets[variable][place], term.name)

        yield clause.with_terms(changed)


def _aggregated(term: Aggregate, over: Sequence[Expression]) -> Expression:
    if term.function == "count":
        return Constant(len(over))
    # Halves, since nesting is limited.
    total = [*over]
    while len(total) > 1:
        pairs = zip(total[::2], total[1::2], strict=False)
        total = [Arithmetic("+", *pair) for pair in pairs] + total[len(total) & ~1 :]
    return total[0] if term.function == "sum" else Arithmetic("/", total[0], Constant(len(over)))


def by_sizes(
    query: Query, matches: BranchMatches, dtype: type[np.integer] = np.int64
) -> dict[Sizes, np.ndarray]:
    """Positions of matches by the sizes of their sets, shape (variables, matches)."""
    columns = matches.columns
    sets = [column for column in columns if isinstance(column, SetColumn)]
    if not query.has_sets:
        return {(): np.stack([*map(np.asarray, columns)], dtype=dtype, casting="same_kind")}
    sizes = np.stack([column.sizes for column in sets], axis=1)
    found = {}
    for each in np.unique(sizes, axis=0):
        rows = np.flatnonzero((sizes == each).all(axis=1))
        parts = [
            column.positions[column.offsets[rows] + np.arange(column.sizes[rows[0]])[:, None]]
            if isinstance(column, SetColumn)
            else np.asarray(column)[None, rows]
            for column in columns
        ]
        found[tuple(each.tolist())] = np.concatenate(parts, dtype=dtype, casting="same_kind")
    return found


def kept_of(query: Query, matches: BranchMatches) -> dict[Sizes, KeptMatches]:
    """Matches as an evaluator found them."""
    if query.has_sets:
        return listed(query, by_sizes(query, matches, np.int32))
    return {(): FoundMatches(matches)}


def listed(
    query: Query, tables: Mapping[Sizes, np.ndarray], first: int = 0
) -> dict[Sizes, KeptMatches]:
    """Matches of these positions, shape (variables, matches), counted from ``first`` on."""
    found: dict[Sizes, KeptMatches] = {}
    for sizes, table in tables.items():
        its = of_sizes(query, sizes)
        assert its is not None
        moved = table - first if first else table
        found[sizes] = ListedMatches(its.query.names, moved.astype(np.int32, copy=False))
    return found


def as_columns(query: Query, tables: Mapping[Sizes, np.ndarray]) -> BranchMatches:
    """Matches of these positions with their sets as columns."""
    chunks = []
    for sizes, table in tables.items():
        its = of_sizes(query, sizes)
        assert its is not None
        rows = iter(table)
        columns: list[Column] = []
        for variable in query.pattern.positive:
            own = np.stack([next(rows) for _ in its.elements[variable.name]])
            offsets = np.arange(table.shape[1] + 1) * len(own)
            columns.append(SetColumn.of(offsets, own.T.ravel()) if variable.is_set else own[0])
        chunks.append(columns)
    return BranchMatches(query.names, chunks) if chunks else no_matches(query.pattern.positive)


def as_matches(query: Query, found: Sized) -> BranchMatches:
    """Matches with their sets as columns; without sets they are copied when asked for."""
    if found and not query.has_sets:
        return CopiedWhenAsked(found[()])
    return as_columns(query, {sizes: its.copied(np.int64) for sizes, its in found.items()})


class SetEdge:
    """A more general and a more specific query with sets, and an embedding."""

    def __init__(self, general: Query, specific: Query, embedding: tuple[int, ...]) -> None:
        self.general, self.specific = general, specific
        positive = specific.pattern.positive
        self.images = [positive[place] for place in embedding]
        #: For each Kleene variable of the specific query, the place of its size among those of the
        #: general one; None for one that is missing there.
        self.sets: dict[str, int | None] = {v.name: None for v in positive if v.is_set}
        #: The places of sets of which the image is one event.
        self.single = []
        place = 0
        for variable, image in zip(general.pattern.positive, self.images, strict=True):
            if variable.is_set:
                if image.is_set:
                    self.sets[image.name] = place
                else:
                    self.single.append(place)
                place += 1
        self.missing = [name for name, its in self.sets.items() if its is None]

    def specific_sizes(self, sizes: Sizes, missing: Sizes) -> Sizes | None:
        """The sizes in the specific query; None if it has no matches of those of the general one."""
        if any(sizes[place] != 1 for place in self.single):
            return None
        others = iter(missing)
        return tuple(next(others) if its is None else sizes[its] for its in self.sets.values())

    def general_sizes(self, sizes: Sizes) -> Sizes:
        """The sizes in the general query."""
        found = dict.fromkeys(self.single, 1)
        for size, place in zip(sizes, self.sets.values(), strict=True):
            if place is not None:
                found[place] = size
        return tuple(found[place] for place in sorted(found))

    def of(self, sizes: Sizes, specific_sizes: Sizes) -> Edge | None:
        """The edge between the queries with sets of some sizes; None if one has no matches."""
        general, specific = of_sizes(self.general, sizes), of_sizes(self.specific, specific_sizes)
        if general is None or specific is None:
            return None
        names = [name for image in self.images for name in specific.elements[image.name]]
        places = tuple(specific.query.leaf_of[name] for name in names)
        return edge_of(general.query, specific.query, places)


#: The cached edge of cached queries.
set_edge_of = lru_cache(maxsize=4096)(SetEdge)


class Way(NamedTuple):
    """The edges of a :class:`cepbench.planning.plans.reuse.Reuse`, and the order of its joins."""

    query: Query
    edges: tuple[SetEdge, ...]
    order: tuple[str, ...]

    @classmethod
    def of(cls, way: Reuse, queries: Mapping[str, Query]) -> Self:
        """The edges of a way between some queries."""
        edges = []
        for part in way.parts:
            pair = [queries[name] for name in (*part.sources, part.query)]
            general, specific = pair if part.method == "down" else pair[::-1]
            edges.append(set_edge_of(general, specific, part.embedding))
        return cls(queries[way.query], tuple(edges), way.order)

    def _order(self, sizes: Sizes) -> list[str]:
        its = of_sizes(self.query, sizes)
        assert its is not None
        return [name for each in self.order for name in its.elements[each]]

    def down(
        self, source: Sized, events: Events, limit: int, sought: Sought = ALL
    ) -> dict[Sizes, KeptMatches]:
        """See :func:`cepbench.engines.reuse.reuse.down`."""
        (edge,) = self.edges
        parts: list[Sized] = []

        def extends(sizes: Sizes, matches: KeptMatches, missing: Sizes) -> bool:
            specific = edge.specific_sizes(sizes, missing)
            if specific is None or (its := edge.of(sizes, specific)) is None:
                return False
            found = down(its, matches, events, limit, sought, self._order(specific))
            if len(found):
                parts.append({specific: found})
            return len(found) > 0

        bounds = [_most(edge.specific, name, events) for name in edge.missing]
        closed = _is_closed(edge.specific, edge.missing, sought)
        for sizes, matches in source.items():
            _each(bounds, partial(extends, sizes, matches), closed=closed)
        return united(parts)

    def number_down(self, source: Sized, events: Events, limit: int) -> int:
        """How many :meth:`down` finds."""
        (edge,) = self.edges
        if edge.general.has_sets or edge.specific.has_sets:
            return number_of(self.down(source, events, limit))
        its = edge.of((), ())
        assert its is not None
        return sum(number_down(its, known, events, limit, self.order) for known in source.values())

    def projected(self, sources: Sequence[Sized], events: Events) -> dict[Sizes, KeptMatches]:
        """See :func:`cepbench.engines.reuse.reuse.projected`."""
        events.work.source_matches += sum(
            number_of(its)
            for edge, its in zip(self.edges, sources, strict=True)
            if len(edge.images) < len(edge.specific.names)
        )
        edges: dict[Sizes, list[Edge]] = {}
        matches: dict[Sizes, list[KeptMatches]] = {}
        for edge, source in zip(self.edges, sources, strict=True):
            for sizes, its in source.items():
                general = edge.general_sizes(sizes)
                own = edge.of(general, sizes)
                assert own is not None
                edges.setdefault(general, []).append(own)
                matches.setdefault(general, []).append(its)
        return {sizes: projected(its, matches[sizes]) for sizes, its in edges.items()}

    def delta(
        self, known: Sized, events: Events, limit: int, sought: Sought = ALL
    ) -> dict[Sizes, KeptMatches]:
        """The matches that no source contains; ``known`` are the others."""
        found: dict[Sizes, KeptMatches] = {}

        def has_matches(sizes: Sizes) -> bool:
            general = of_sizes(self.query, sizes)
            if general is None:
                return False
            edges = [its for edge in self.edges for its in _edges_of(edge, sizes, events)]
            order = self._order(sizes)
            if edges:
                added = delta(edges, events, limit, sought, order)
            else:
                added = _all_matches(general.query, events, limit, sought, order)
            if len(added):
                found[sizes] = added
            return len(added) > 0 or len(known.get(sizes, ())) > 0

        names = [v.name for v in self.query.pattern.positive if v.is_set]
        bounds = [_most(self.query, name, events) for name in names]
        _each(bounds, has_matches, closed=_is_closed(self.query, names, sought))
        return found

    def up(
        self, sources: Sequence[Sized], events: Events, limit: int, sought: Sought = ALL
    ) -> tuple[dict[Sizes, KeptMatches], int]:
        """Projections of the sources' matches, and those that none contains; the number of projections."""
        reused = self.projected(sources, events)
        found = united([reused, self.delta(reused, events, limit, sought)])
        return found, number_of(reused)


def number_of(matches: Sized) -> int:
    """How many matches there are."""
    return sum(map(len, matches.values()))


def united(parts: Sequence[Sized]) -> dict[Sizes, KeptMatches]:
    """The matches of all parts."""
    found: dict[Sizes, list[KeptMatches]] = {}
    for part in parts:
        for sizes, matches in part.items():
            found.setdefault(sizes, []).append(matches)
    return {sizes: _together(its) for sizes, its in found.items()}


def distinct(matches: Sized) -> dict[Sizes, KeptMatches]:
    """The first of all equal matches each."""
    return {sizes: its.taken(distinct_columns(its.table)) for sizes, its in matches.items()}


def allowed(query: Query, matches: Sized, events: Events, limit: int) -> dict[Sizes, KeptMatches]:
    """The matches that no negated event forbids."""
    found: dict[Sizes, KeptMatches] = {}
    for sizes, its in matches.items():
        own = of_sizes(query, sizes)
        assert own is not None
        growth = Growth(own.query, events, its.names, its.table, limit)
        growth.check()
        found[sizes] = ListedMatches(its.names, growth.table(its.names))
    return found


def _together(parts: Sequence[KeptMatches]) -> KeptMatches:
    return parts[0] if len(parts) == 1 else UnitedMatches(parts)


def _edges_of(edge: SetEdge, sizes: Sizes, events: Events) -> Iterator[Edge]:
    """The edges to a general query with sets of some sizes.

    Where each condition on a missing set is one on its events, there is a set if there is one of one
    event; else one of any size.
    """
    bounds = [
        1 if _is_closed(edge.specific, [name], ALL) else _most(edge.specific, name, events)
        for name in edge.missing
    ]
    for missing in product(*(range(1, bound + 1) for bound in bounds)):
        specific = edge.specific_sizes(sizes, missing)
        its = None if specific is None else edge.of(sizes, specific)
        if its is not None:
            yield its


def _all_matches(
    query: Query, events: Events, limit: int, sought: Sought, order: Sequence[str]
) -> KeptMatches:
    """The matches of a query without sets from the events alone."""
    first, *others = sorted(order or query.names, key=lambda name: name != sought.variable(query))
    growth = Growth.of_one(query, events, first, limit, sought)
    growth.grow(others, others)
    return sought.among(ListedMatches(query.names, growth.table(query.names)))


def _most(query: Query, name: str, events: Events) -> int:
    """The most events of a variable within a window."""
    times = events.candidates(query.variables[name], query.filters[name]).times
    ends = np.searchsorted(times, times + query.window, side="right")
    return int((ends - np.arange(len(times))).max(initial=0))


def _is_closed(query: Query, names: Collection[str], sought: Sought) -> bool:
    """Whether sets of some variables are found together with smaller ones.

    Those with conditions on single events have all their subsets; those with conditions on events
    that precede others have the ones that begin as they do, which need not be among those sought.
    A negated item that depends on a set may forbid more beside a smaller one.
    """
    for check in query.checks:
        its = check.mentioned.union(check.after, check.before, check.distinct)
        if any(check.within) or its & {*names}:
            return False
    for clause in query.conditions:
        mine = {*names}.intersection(clause.variables)
        if not mine or clause.is_elementwise:
            continue
        terms = [
            term for term in clause.terms() if {a.variable for a in attributes_of(term)} & mine
        ]
        begins = all(isinstance(term, Attribute) and term.element != "last" for term in terms)
        if sought != ALL or not begins:
            return False
    return True


def _each(bounds: Sequence[int], found: Callable[[Sizes], bool], *, closed: bool) -> None:
    """Try all sizes up to their bounds, smaller ones first; if ``closed``, none above ones not found."""
    if not all(bounds):
        return
    left = [(len(bounds), (1,) * len(bounds))]
    tried = {left[0][1]}
    while left:
        _, sizes = heapq.heappop(left)
        if not found(sizes) and closed:
            continue
        for place, bound in enumerate(bounds):
            larger = (*sizes[:place], sizes[place] + 1, *sizes[place + 1 :])
            if larger[place] <= bound and larger not in tried:
                tried.add(larger)
                heapq.heappush(left, (sum(larger), larger))
