"""How a query of a workload is computed from the matches of another one [liu2011]_, section 4."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cepbench.arguments import elements, kind_of, shown
from cepbench.errors import PlanError, did_you_mean
from cepbench.patterns.model import Aggregate, Pattern
from cepbench.patterns.negations import waits_for_negated
from cepbench.planning.workloads.model import Workload
from cepbench.planning.workloads.refinement import Embedding

#: The query whose matches are reused, several, or None.
Source = str | tuple[str, ...] | None


@dataclass(frozen=True)
class Reuse:
    """One way to compute a query."""

    query: str
    #: The query whose matches are reused, or several; None for none.
    source: Source = None
    #: {"scratch", "down", "up", "union"}. ``down`` from a more general query, whose matches are
    #: filtered and extended; ``up`` from a more specific one, whose matches are projected, and the
    #: others added; ``union`` from several more specific ones, and what none of them contains
    #: added.
    method: str = "scratch"
    #: The place, among the positive items of the more specific query, of each positive item of the
    #: more general one; empty for a union.
    embedding: Embedding = ()
    #: In what the two differ: ``pattern``, ``concept``, ``both``, ``condition`` or ``nothing``;
    #: empty from scratch.
    change: str = ""
    #: Whether matches are known later than those of the query by itself: a match of the source may
    #: end after that of the query, or waits for a negated event.
    waits: bool = False
    #: An estimate; NaN for none.
    cost: float = field(default=math.nan, compare=False)
    #: The order in which items are joined: downwards those that the source has not, upwards all;
    #: empty for the one that the evaluator chooses.
    order: tuple[str, ...] = ()
    #: Of a union the embedding of each source.
    embeddings: tuple[Embedding, ...] = ()

    @property
    def sources(self) -> tuple[str, ...]:
        """The queries whose matches are reused."""
        return sources_in(self.source)

    @property
    def parts(self) -> tuple[Reuse, ...]:
        """The way itself; of a union one way upwards for each source."""
        if self.method != "union":
            return (self,)
        pairs = zip(self.sources, self.embeddings, strict=True)
        return tuple(Reuse(self.query, s, "up", e, self.change, self.waits) for s, e in pairs)

    def __str__(self) -> str:
        if self.source is None:
            return "from scratch"
        order = f", joins {', '.join(self.order)}" if self.order else ""
        return f"{self.method} from {', '.join(self.sources)} ({self.change}){order}"


def sources_in(source: Source) -> tuple[str, ...]:
    """None, one source or several, as a tuple."""
    if source is None:
        return ()
    return (source,) if isinstance(source, str) else source


def reuses(workload: Workload, source: str, query: str) -> Iterator[Reuse]:
    """The ways to compute a query from the matches of another one, one for each embedding."""
    one, other = workload.patterns[source], workload.patterns[query]
    upwards = workload.embeddings.get((query, source), ())
    if (source, query) in workload.embeddings:
        for each in workload.embeddings[source, query]:
            yield Reuse(
                query, source, "down", each, "nothing" if upwards else _change(one, other, each)
            )
        return
    is_later = waits_for_negated(one) and not waits_for_negated(other)
    for each in upwards:
        waits = is_later or goes_on(one, each)
        yield Reuse(query, source, "up", each, _change(other, one, each), waits)


def can_be_reused(pattern: Pattern) -> bool:
    """Whether evaluators compute matches of a pattern from others: it has no min or max over a set."""
    terms = (term for clause in pattern.conditions for term in clause.terms())
    return not any(isinstance(its, Aggregate) and its.function in ("min", "max") for its in terms)


def candidates_of(workload: Workload) -> Iterator[Reuse]:
    """All ways to compute a query of a workload from another one; of equal ones from the first."""
    place = {
        query: number
        for number, (query, pattern) in enumerate(workload.patterns.items())
        if can_be_reused(pattern)
    }
    for general, specific in workload.embeddings:
        if not {general, specific} <= place.keys():
            continue
        if (specific, general) not in workload.embeddings:
            yield from reuses(workload, general, specific)
            yield from reuses(workload, specific, general)
        elif place[general] < place[specific]:
            yield from reuses(workload, general, specific)


def _change(general: Pattern, specific: Pattern, embedding: tuple[int, ...]) -> str:
    """In what two different queries differ."""
    pairs = zip(general.positive, embedding, strict=True)
    concept = any(its.type != specific.positive[place].type for its, place in pairs)
    concept = concept or not {v.type for v in general.negated} <= {v.type for v in specific.negated}
    if len(general.variables) == len(specific.variables):
        return "concept" if concept else "condition"
    return "both" if concept else "pattern"


def goes_on(specific: Pattern, embedding: tuple[int, ...], *, at_end: bool = True) -> bool:
    """Whether a match of a query may end after its projection to a more general one, or begin before."""
    (branch,) = specific.branches()
    names, before = branch.positive_names, branch.structure.precedence()
    images = [names[place] for place in embedding]
    return any(
        not any(((name, image) if at_end else (image, name)) in before for image in images)
        for name in names
        if name not in images
    )


def waits_on_stream(way: Reuse, waits: Mapping[str, bool], patterns: Mapping[str, Pattern]) -> bool:
    """Whether matches of a query, computed in some way, are known at the end of their window only.

    So they are if the query waits for a negated event by itself, or the way or one of its sources waits, which
    ``waits`` says.

    Raises PlanError if a match would be known even later: it begins before the match that it is computed
    from, which waits for the end of a window of its own, or its window is shorter.
    """
    pattern = patterns[way.query]
    if not any(waits[source] for source in way.sources):
        return way.waits or waits_for_negated(pattern)
    if way.method == "down":
        (source,) = way.sources
        shorter = pattern.window.length < patterns[source].window.length
        if shorter or goes_on(pattern, way.embedding, at_end=False):
            raise PlanError(
                f"query {way.query!r} would be reported after the end of its window, since its source "
                f"{source!r} waits for the end of a later one; choose another source, or None"
            )
    return True


def check_queries(name: str, given: Any, workload: Workload) -> None:
    """Check that an argument is a mapping of queries of a workload.

    Raises PlanError if it is not, or has another query; the message suggests the nearest.
    """
    if not isinstance(given, Mapping):
        raise PlanError(f"{name} is a mapping of queries, not {kind_of(given)}")
    for query in given:
        if query not in workload.patterns:
            raise PlanError(
                f"{name} has a query {shown(query)} that the workload has not; it has "
                f"{', '.join(workload.patterns)}{did_you_mean(query, workload.patterns)}"
            )


def reused_by(
    workload: Workload,
    sources: Mapping[str, Any],
    embeddings: Mapping[str, Any],
    orders: Mapping[str, Any],
    candidates: Sequence[Reuse] = (),
    *,
    delays: bool,
) -> dict[str, Reuse]:
    """How each query is computed, each after its sources.

    Parameters and errors are those of :class:`cepbench.WorkloadPlan`; the workload has its virtual
    queries too.
    """
    check_queries("sources", sources, workload)
    check_queries("embeddings", embeddings, workload)
    check_queries("orders", orders, workload)
    left_out = [query for query in workload.patterns if query not in sources]
    if left_out:
        raise PlanError(
            f"sources leaves out {', '.join(left_out)}; the source of a query that is computed from "
            "scratch is None"
        )
    checked = {query: _checked_source(query, sources[query]) for query in workload.patterns}
    used = (source for its in checked.values() for source in sources_in(its))
    check_queries("sources", dict.fromkeys(used), workload)
    known = {way: way for way in candidates}
    found = {}
    for query in in_order(checked):
        way = _way(workload, query, checked[query], embeddings, delays=delays)
        if query in orders:
            way = replace(way, order=_checked_order(workload, way, orders[query]))
        found[query] = known.get(way, way)
    return found


def _checked_source(query: str, given: Any) -> Source:
    if given is None or isinstance(given, str):
        return given
    where = f"the source of query {query!r}"
    if not isinstance(given, tuple | list) or not all(isinstance(its, str) for its in given):
        raise PlanError(f"{where} is a query, a tuple of several or None, not {shown(given)}")
    if not given:
        raise PlanError(f"{where} is empty; from scratch it is None")
    if len({*given}) < len(given):
        raise PlanError(f"{where} names a query twice: {shown(given)}; name each once")
    return given[0] if len(given) == 1 else tuple(given)


def _way(
    workload: Workload, query: str, source: Source, embeddings: Mapping[str, Any], *, delays: bool
) -> Reuse:
    """The way to compute a query from its source, along the embeddings given."""
    where = f"the embedding of query {query!r}"
    if not isinstance(source, tuple):
        ways = [Reuse(query)] if source is None else _from_one(workload, source, query)
        return _chosen(ways, embeddings.get(query), where, delays=delays)
    given = [None] * len(source)
    if query in embeddings:
        given = [*elements(embeddings[query], where, "((0, 1), (0, 1))", PlanError)]
        if len(given) != len(source):
            raise PlanError(f"{where} is one for each of its {len(source)} sources, not {given}")
    parts = []
    for each, its in zip(source, given, strict=True):
        ways = [way for way in _from_one(workload, each, query) if way.method == "up"]
        if not ways:
            raise PlanError(
                f"query {query!r} cannot be united from {each!r}, which is not more specific; name "
                "one source alone, or several more specific ones"
            )
        parts.append(_chosen(ways, its, f"{where} into {each!r}", delays=delays))
    return union_of(parts)


def _from_one(workload: Workload, source: str, query: str) -> list[Reuse]:
    ways = [*reuses(workload, source, query)]
    if not ways:
        raise PlanError(
            f"query {query!r} cannot be computed from {source!r}: neither refines the other; "
            "workload.refinements lists those that do"
        )
    return ways


def union_of(parts: Sequence[Reuse]) -> Reuse:
    """The union of several ways upwards to one query."""
    changes = {part.change for part in parts}
    return Reuse(
        parts[0].query,
        tuple(part.sources[0] for part in parts),
        "union",
        change=changes.pop() if len(changes) == 1 else "both",
        waits=any(part.waits for part in parts),
        embeddings=tuple(part.embedding for part in parts),
    )


def _chosen(ways: Sequence[Reuse], embedding: Any, where: str, *, delays: bool) -> Reuse:
    """The first way along an embedding, or any, that needs no wait."""
    if embedding is not None:
        places = tuple(elements(embedding, where, "(0, 2)", PlanError))
        possible = ", ".join(str(way.embedding) for way in ways)
        ways = [way for way in ways if way.embedding == places]
        if not ways:
            raise PlanError(f"{where} is one of {possible}, not {places}")
    for way in ways:
        if delays or not way.waits:
            return way
    raise PlanError(
        f"query {ways[0].query!r} would report matches late, since its source {ways[0].source!r} goes "
        "on after them, or waits for a negated event; choose another source, or allow it by delays=True"
    )


def _checked_order(workload: Workload, way: Reuse, given: Any) -> tuple[str, ...]:
    where = f"the order of query {way.query!r}"
    if way.source is None:
        raise PlanError(f"{where}, which is computed from scratch, is its plan; give it in plans")
    names = items_joined(workload, way)
    order = tuple(elements(given, where, "('a', 'b')", PlanError))
    if sorted(map(str, order)) != sorted(names):
        raise PlanError(
            f"{where} has each of its items {', '.join(names) or '(none)'} once, which are joined when it "
            f"is computed {way.method} from {', '.join(way.sources)}; not {shown(order)}"
        )
    return order


def items_joined(workload: Workload, way: Reuse) -> tuple[str, ...]:
    """The items that are joined one by one: downwards those that the source has not, upwards all."""
    names = workload.patterns[way.query].positive_names
    if way.method != "down":
        return names
    return tuple(name for place, name in enumerate(names) if place not in way.embedding)


def in_order(sources: Mapping[str, Source]) -> tuple[str, ...]:
    """The queries, each after its sources, else as given; PlanError if there is a circle."""
    done, circle = _ordered(sources)
    if circle:
        raise PlanError(
            f"sources has a circle: {' from '.join([*circle, circle[0]])}; compute one of them from "
            "scratch, with the source None"
        )
    return done


def circle_in(sources: Mapping[str, Source]) -> list[str]:
    """Queries each of which is computed from the next, and the last from the first; empty if none."""
    return _ordered(sources)[1]


def _ordered(sources: Mapping[str, Source]) -> tuple[tuple[str, ...], list[str]]:
    """The queries, each after its sources, up to the first circle, and that circle."""
    done: dict[str, None] = {}
    for query in sources:
        chain = [query]
        while chain:
            its = next((s for s in sources_in(sources[chain[-1]]) if s not in done), None)
            if its is None:
                done[chain.pop()] = None
            elif its in chain:
                return tuple(done), chain[chain.index(its) :]
            else:
                chain.append(its)
    return tuple(done), []
