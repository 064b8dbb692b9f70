"""Queries above several of a workload: what they have in common, for planners that share it.

Two queries with the same beginning share nothing unless somebody asked for that beginning. Sharing
candidates of several queries at once are the sub-patterns of [ray2016]_ (SPASS), and the plan
over them the Steiner tree of [zhang2017]_ (MOTTO).

Differs from the papers: their queries have one window and types without concepts, and what they share is
a substring (SPASS) or a sub-sequence (MOTTO) of items. Here it is what stands above both queries by
refinement: items between others may be left out, types are the lowest common concepts, conditions are
those that both imply, and the window is the longer one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

import numpy as np

from cepbench.errors import PatternError
from cepbench.patterns.concepts import ConceptHierarchy, types_above
from cepbench.patterns.model import Operator, Pattern
from cepbench.planning.workloads.model import Workload
from cepbench.planning.workloads.refinement import embeddings, implies, refines_others

#: Queries that each is compared with, those with most types in common: first each query, then what was
#: found.
PARTNERS = (8, 2)

#: Alignments of two queries.
MOST_ALIGNMENTS = 8

#: Items of one query and those of another that they are aligned with.
_Alignment = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Generalization:
    """A query above two others."""

    #: Its variables are named x1, x2, … in order of appearance, negated ones included.
    pattern: Pattern
    #: A query of the workload below it.
    member: str
    #: Its variables → those of the member.
    names: Mapping[str, str]


def common_generalizations(workload: Workload) -> list[Generalization]:
    """The greatest common generalizations of pairs of queries, and of what these have in common.

    Each is of two items or more, and above two queries at least that do not refine each other; none
    is a query of the workload. What has most types in common comes first.
    """
    hierarchy = workload.hierarchy
    queries: dict[Pattern, Generalization] = {}
    for query, pattern in workload.patterns.items():
        if refines_others(pattern):
            its, names = _canonical(pattern.without_aggregate())
            queries.setdefault(its, Generalization(its, query, names))
    found: dict[Pattern, Generalization] = {}
    compared = 0
    for most in PARTNERS:
        known = [*queries.values(), *found.values()]
        for one, other in _pairs(known, compared, most, hierarchy):
            for common in _common(one, other, hierarchy):
                if common.pattern not in queries:
                    found.setdefault(common.pattern, common)
        compared = len(known)
    return [*found.values()]


def generalization_of(pattern: Pattern, workload: Workload) -> Generalization | None:
    """A query as one above the first query of a workload that it is above; None if there is none."""
    for query, member in workload.patterns.items():
        for embedding in embeddings(pattern, member, workload.hierarchy):
            names = {
                variable.name: member.positive_names[place]
                for variable, place in zip(pattern.positive, embedding, strict=True)
            }
            for variable in pattern.negated:
                like = (v.name for v in member.negated if v.type == variable.type)
                names[variable.name] = next(like, member.negated[0].name)
            return Generalization(pattern, query, names)
    return None


def _pairs(
    queries: Sequence[Generalization], compared: int, most: int, hierarchy: ConceptHierarchy | None
) -> Iterator[tuple[Generalization, Generalization]]:
    """Pairs of queries, not both of the first ``compared``, that have two types or concepts in common."""
    types = [[v.type for v in query.pattern.positive] for query in queries]
    own = _counts(types)
    roots = _counts([[(its, *types_above(its, hierarchy))[-1] for its in row] for row in types])
    found: dict[tuple[int, int], None] = {}
    for number in range(compared, len(queries)):
        common = np.minimum(roots, roots[number]).sum(axis=1)
        common[number] = 0
        # Concepts decide among those with equally many types in common.
        rank = common + 1_000 * np.minimum(own, own[number]).sum(axis=1)
        best = np.argsort(-rank, kind="stable")[: most + 1]
        for other in best[common[best] >= 2][:most].tolist():
            found[min(number, other), max(number, other)] = None
    for one, other in found:
        yield queries[one], queries[other]


def _counts(rows: Sequence[Sequence[str | None]]) -> np.ndarray:
    """How often each row has each name, shape (rows, names)."""
    columns: dict[str | None, int] = {}
    for row in rows:
        for name in row:
            columns.setdefault(name, len(columns))
    found = np.zeros((len(rows), len(columns)), np.int64)
    for number, row in enumerate(rows):
        for name in row:
            found[number, columns[name]] += 1
    return found


def _common(
    one: Generalization, other: Generalization, hierarchy: ConceptHierarchy | None
) -> Iterator[Generalization]:
    """Greatest common generalizations of two queries; none if one is above the other."""
    p, q = one.pattern, other.pattern
    if (p.window.is_datetime, p.operator, p.order) != (q.window.is_datetime, q.operator, q.order):
        return
    if embeddings(p, q, hierarchy) or embeddings(q, p, hierarchy):
        return
    for with_concepts in (False, True) if hierarchy else (False,):
        alignments = _alignments(p, q, hierarchy, with_concepts=with_concepts)
        for alignment in islice(alignments, MOST_ALIGNMENTS):
            pattern = _above(p, q, alignment, hierarchy)
            if pattern is not None:
                found, names = _canonical(pattern)
                yield Generalization(
                    found, one.member, {name: one.names[its] for name, its in names.items()}
                )


def _alignments(
    p: Pattern, q: Pattern, hierarchy: ConceptHierarchy | None, *, with_concepts: bool
) -> Iterator[_Alignment]:
    """The longest ways to pair items of two queries, in order under SEQ, that no pair can extend."""
    pairs = [
        (i, j)
        for (i, mine), (j, theirs) in product(enumerate(p.positive), enumerate(q.positive))
        if mine.kind is theirs.kind
        and (
            mine.type == theirs.type
            or (with_concepts and _lowest(mine.type, theirs.type, hierarchy) is not None)
        )
    ]
    in_order = p.operator is Operator.SEQ

    def fit(one: tuple[int, int], other: tuple[int, int]) -> bool:
        if in_order:
            return (one[0] < other[0] and one[1] < other[1]) or (
                one[0] > other[0] and one[1] > other[1]
            )
        return one[0] != other[0] and one[1] != other[1]

    def longer(chosen: _Alignment, begin: int) -> Iterator[_Alignment]:
        later = [
            place
            for place in range(begin, len(pairs))
            if all(fit(pairs[place], its) for its in chosen)
        ]
        if not any(all(fit(pair, its) for its in chosen) for pair in pairs):
            yield chosen
        for place in later:
            yield from longer((*chosen, pairs[place]), place + 1)

    found = islice(longer((), 0), MOST_ALIGNMENTS**2)
    yield from sorted((its for its in found if len(its) > 1), key=len, reverse=True)


def _lowest(one: str | None, other: str | None, hierarchy: ConceptHierarchy | None) -> str | None:
    """The lowest type at or above two types; None if there is none."""
    above = {other, *types_above(other, hierarchy)}
    return next((name for name in (one, *types_above(one, hierarchy)) if name in above), None)


def _above(
    p: Pattern, q: Pattern, alignment: _Alignment, hierarchy: ConceptHierarchy | None
) -> Pattern | None:
    """The query of the aligned items, with what both queries ask of them; None if there is none."""
    places = dict(alignment)
    kept = {p.positive[i].name: q.positive[j] for i, j in alignment}
    types = {
        name: _lowest(p.positive[i].type, q.positive[places[i]].type, hierarchy)
        for i, name in enumerate(p.positive_names)
        if i in places
    }
    there = {mine: theirs.name for mine, theirs in kept.items()}
    here = {theirs: mine for mine, theirs in there.items()}
    conditions = [
        clause
        for clause in p.conditions
        if {*clause.variables} <= there.keys() and implies(q, clause.renamed(there))
    ]
    conditions += [
        mine
        for clause in q.conditions
        if {*clause.variables} <= here.keys()
        for mine in [clause.renamed(here)]
        if mine not in conditions and implies(p, mine)
    ]
    left_out = [v for v in p.positive if v.name not in kept]
    # Negations that both have, else none.
    negated = [v for v in p.negated if any(v.type == its.type for its in q.negated)]
    for negations in (negated, []) if negated else ([],):
        dropped = [*left_out, *(v for v in p.negated if v not in negations)]
        names = {v.name for v in negations}
        of_negations = [c for c in p.conditions if not names.isdisjoint(c.variables)]
        try:
            found = replace(
                p,
                structure=p.structure.without({v.name for v in dropped}).changed(
                    lambda v: replace(v, type=types.get(v.name, v.type))
                ),
                conditions=(*conditions, *of_negations),
                window=max(p.window, q.window, key=lambda window: window.length),
                returns=(),
                equivalences=tuple(its for its in p.equivalences if its in q.equivalences),
                hierarchy=None,
            ).with_hierarchy(hierarchy)
        except PatternError:
            continue
        if embeddings(found, p, hierarchy) and embeddings(found, q, hierarchy):
            return found
    return None


def _canonical(pattern: Pattern) -> tuple[Pattern, dict[str, str]]:
    """Equal for patterns that differ in names and in the order of conditions alone; their names before."""
    names = {name: f"x{number}" for number, name in enumerate(pattern.names, 1)}
    conditions = sorted((clause.renamed(names) for clause in pattern.conditions), key=str)
    found = replace(
        pattern,
        structure=pattern.structure.changed(lambda v: replace(v, name=names[v.name])),
        conditions=tuple(conditions),
        returns=(),
        equivalences=tuple(sorted(pattern.equivalences)),
    )
    return found, {new: old for old, new in names.items()}
