"""Statistics of queries that nobody asked for, from those of the queries below them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations_with_replacement, pairwise

from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.query_terms import QueryTerms
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.generalization import Generalization, generalization_of
from cepbench.planning.workloads.model import Workload


class VirtualStatistics:
    """Statistics of generalizations of a workload's queries, from those of every query.

    The rate of a type is that of any item of it in the workload; of a concept that no query asks for,
    the sum of the rates of the names directly below it. Selectivities are those of a query below. Where the
    generalization has only some of its conditions on a pair of items, each of them is taken to keep
    the same share.
    """

    def __init__(self, workload: Workload, statistics: Mapping[str, Statistics]) -> None:
        self._workload, self._statistics = workload, statistics
        self._rates: dict[str | None, float] = {}
        for query, pattern in workload.patterns.items():
            for variable in pattern.positive:
                rate = _rate(statistics[query], variable.name, pattern)
                if rate is not None:
                    self._rates.setdefault(variable.type, rate)

    def of(self, its: Generalization) -> Statistics | None:
        """The statistics of one; None if the rate of a type is not known."""
        member, known = self._workload.patterns[its.member], self._statistics[its.member]
        types = {variable.name: variable.type for variable in member.variables}
        rates = {}
        for variable in its.pattern.variables:
            name = its.names[variable.name]
            rate = _rate(known, name, member)
            if types[name] != variable.type:
                rate = self._rate_of(variable.type, self._workload.hierarchy)
            if rate is None:
                return None
            rates[variable.name] = rate
        selectivities, times = {}, {}
        neighbours = {*pairwise(its.pattern.positive_names)}
        for pair in combinations_with_replacement(its.pattern.names, 2):
            mine = (its.names[pair[0]], its.names[pair[1]])
            found = known.selectivity(*mine)
            if its.pattern.equivalences and pair in neighbours:
                found = QueryTerms(member, known).selectivity(*mine)
            kept = len(its.pattern.expanded.clauses_between(*pair))
            all_ = len(member.expanded.clauses_between(*mine))
            if kept and found < 1.0:
                selectivities[pair] = found ** min(1.0, kept / max(all_, 1))
            if pair[0] != pair[1]:
                times[pair] = known.time_selectivity(*mine)
        return Statistics(
            rates=rates,
            selectivities=selectivities,
            time_selectivities=times,
            stream_rate=known.stream_rate,
            partitions=known.partitions,
        )

    def with_virtual(self, virtual: Mapping[str, Pattern]) -> dict[str, Statistics]:
        """The statistics of the queries, and of virtual ones that are above one of them."""
        found = dict(self._statistics)
        for name, pattern in virtual.items():
            its = self._statistics.get(name)
            if its is None and (above := generalization_of(pattern, self._workload)) is not None:
                its = self.of(above)
            if its is not None:
                found[name] = its
        return found

    def _rate_of(self, type: str | None, hierarchy: ConceptHierarchy | None) -> float | None:
        if type in self._rates or type is None or hierarchy is None or type not in hierarchy:
            return self._rates.get(type)
        below = [self._rate_of(name, hierarchy) for name in hierarchy.children(type)]
        known = [rate for rate in below if rate is not None]
        return sum(known) if known and len(known) == len(below) else None


def _rate(statistics: Statistics, name: str, pattern: Pattern) -> float | None:
    """Events of a variable per second; None if the window has no length, or there is no rate."""
    window = pattern.window.seconds
    if name not in statistics.names or not window:
        return None
    return statistics.cardinality(name, window) / window
