"""A query and its statistics as numbers, for the costs of reused matches."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Self

from cepbench.patterns.model import Kind, Operator, Pattern, Variable
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.workloads.model import Workload


class QueryTerms:
    """A branch of a query and its statistics."""

    def __init__(self, pattern: Pattern, statistics: Statistics) -> None:
        self.items = pattern.positive
        self.names = [item.name for item in self.items]
        #: In seconds or ticks.
        self.window = pattern.window.seconds
        #: Whether the pattern is a SEQ.
        self.in_order = pattern.operator is Operator.SEQ
        self.statistics = statistics
        #: Events per window that pass the conditions on each positive variable alone.
        self.sizes = {name: self.size(name) for name in self.names}
        #: The negated ones before each item, and behind the last one.
        self.negated: list[list[Variable]] = [[]]
        for variable in pattern.variables:
            if variable.kind is Kind.NEGATED:
                self.negated[-1].append(variable)
            else:
                self.negated.append([])
        # [attr] is measured between neighbours only, and holds between any two.
        self._equal = bool(pattern.equivalences)
        self._place = {name: place for place, name in enumerate(self.names)}

    @classmethod
    def of_queries(
        cls, workload: Workload, statistics: Mapping[str, Statistics]
    ) -> dict[str, list[Self]]:
        """The branches of each query of a workload."""
        return {
            query: [cls(branch, statistics[query]) for branch in pattern.iter_branches()]
            for query, pattern in workload.patterns.items()
        }

    def size(self, name: str) -> float:
        """Events per window that pass the conditions on a variable alone."""
        return self.statistics.cardinality(name, self.window) * self.statistics.selectivity(
            name, name
        )

    def selectivity(self, one: str, other: str) -> float:
        """That of the conditions on two variables, those that follow from ``[attr]`` included."""
        its = self.statistics.selectivity(one, other)
        if not self._equal or one not in self._place or other not in self._place:
            return its
        first, last = sorted((self._place[one], self._place[other]))
        if last == first + 1:
            return its
        # Other conditions on neighbours make theirs less.
        chain = pairwise(self.names[first : last + 1])
        return its * max(self.statistics.selectivity(a, b) for a, b in chain)
