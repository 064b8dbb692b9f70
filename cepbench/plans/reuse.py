"""How a query of a workload is computed from the matches of another one [liu2011]_, section 4."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cepbench.arguments import elements, kind_of, shown
from cepbench.errors import PlanError, did_you_mean
from cepbench.patterns.model import Kind, Operator, Pattern
from cepbench.workloads.model import Workload


@dataclass(frozen=True)
class Reuse:
    """One way to compute a query.

    Attributes
    ----------
    query : str
    source : str or None
        The query whose matches are reused; None for none.
    method : {"scratch", "down", "up"}
        ``down`` from a more general query, whose matches are filtered and extended; ``up`` from a
        more specific one, whose matches are projected, and the others added.
    embedding : tuple of int
        The place, among the positive items of the more specific query, of each positive item of the
        more general one.
    change : str
        In what the two differ: ``pattern``, ``concept``, ``both``, ``condition`` or ``nothing``; empty
        from scratch.
    waits : bool
        Whether matches are known later than those of the query by itself: the source goes on after
        the last item of the query.
    cost : float
        An estimate; NaN for none.
    """

    query: str
    source: str | None = None
    method: str = "scratch"
    embedding: tuple[int, ...] = ()
    change: str = ""
    waits: bool = False
    cost: float = field(default=math.nan, compare=False)

    def __str__(self) -> str:
        if self.source is None:
            return "from scratch"
        return f"{self.method} from {self.source} ({self.change})"


def reuses(workload: Workload, source: str, query: str) -> Iterator[Reuse]:
    """The ways to compute a query from the matches of another one, one for each embedding.

    Parameters
    ----------
    workload : Workload
    source, query : str
    """
    one, other = workload.patterns[source], workload.patterns[query]
    upwards = workload.embeddings.get((query, source), ())
    if (source, query) in workload.embeddings:
        for each in workload.embeddings[source, query]:
            yield Reuse(
                query, source, "down", each, "nothing" if upwards else _change(one, other, each)
            )
        return
    for each in upwards:
        yield Reuse(
            query, source, "up", each, _change(other, one, each), _goes_on(one, other, each)
        )


def candidates_of(workload: Workload) -> Iterator[Reuse]:
    """All ways to compute a query of a workload from another one; of equal ones from the first.

    Queries with Kleene variables are left out: evaluators do not reuse their matches.
    """
    place = {
        query: number
        for number, (query, pattern) in enumerate(workload.patterns.items())
        if not any(variable.is_set for variable in pattern.positive)
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


def _goes_on(specific: Pattern, general: Pattern, embedding: tuple[int, ...]) -> bool:
    """Whether matches of a query are complete after their projections to a more general one."""
    if specific.operator is not Operator.SEQ:
        return len(specific.positive) > len(general.positive)
    trailing = [its.variables[-1].kind is Kind.NEGATED for its in (specific, general)]
    return embedding[-1] < len(specific.positive) - 1 or trailing == [True, False]


def check_queries(name: str, given: Any, workload: Workload) -> None:
    """Check that an argument is a mapping of queries of a workload.

    Raises
    ------
    PlanError
        If it is not, or has another query; the message suggests the nearest.
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
    sources: Mapping[str, str | None],
    embeddings: Mapping[str, Sequence[int]],
    candidates: Sequence[Reuse] = (),
    *,
    delays: bool,
) -> dict[str, Reuse]:
    """How each query is computed, each after its source.

    Parameters and errors are those of :class:`cepbench.WorkloadPlan`.
    """
    for name, given in (("sources", sources), ("embeddings", embeddings)):
        if not isinstance(given, Mapping):
            raise PlanError(f"{name} is a mapping of queries, not {kind_of(given)}")
        check_queries(name, given, workload)
    used = {source: query for query, source in sources.items() if source is not None}
    check_queries("sources", used, workload)
    left_out = [query for query in workload.patterns if query not in sources]
    if left_out:
        raise PlanError(
            f"sources leaves out {', '.join(left_out)}; the source of a query that is computed from "
            "scratch is None"
        )
    known = {way: way for way in candidates}
    found = {}
    for query in in_order({query: sources[query] for query in workload.patterns}):
        ways = [Reuse(query)]
        source = sources[query]
        if source is not None:
            ways = [*reuses(workload, source, query)]
            if not ways:
                raise PlanError(
                    f"query {query!r} cannot be computed from {source!r}: neither refines the other; "
                    "workload.refinements lists those that do"
                )
        if query in embeddings:
            where = f"the embedding of query {query!r}"
            places = tuple(elements(embeddings[query], where, "(0, 2)", PlanError))
            possible = ", ".join(str(way.embedding) for way in ways)
            ways = [way for way in ways if way.embedding == places]
            if not ways:
                raise PlanError(f"{where} is one of {possible}, not {places}")
        in_time = [way for way in ways if delays or not way.waits]
        if not in_time:
            raise PlanError(
                f"query {query!r} would report matches late, since its source {source!r} goes on after "
                "them; choose another source, or allow it by delays=True"
            )
        found[query] = known.get(in_time[0], in_time[0])
    return found


def in_order(sources: Mapping[str, str | None]) -> tuple[str, ...]:
    """The queries, each after its source, else as given.

    Raises
    ------
    PlanError
        If queries are computed from each other.
    """
    done: dict[str, None] = {}
    for query in sources:
        chain: list[str] = []
        its: str | None = query
        while its is not None and its not in done:
            if its in chain:
                circle = [*chain[chain.index(its) :], its]
                raise PlanError(
                    f"sources has a circle: {' from '.join(circle)}; compute one of them from scratch, "
                    "with the source None"
                )
            chain.append(its)
            its = sources[its]
        done |= dict.fromkeys(reversed(chain))
    return tuple(done)
