"""Expected numbers of matches and partial matches per second of a stream.

Items that arrive independently, at the rates r1 to rk, are in order and within a window W about
r1·…·rk·W^(k−1)/(k−1)! times per second, and k! times as often in any order. E-Cube has 1/2 for each two
neighbours instead.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from functools import cached_property

from cepbench.patterns.equivalences import equal_attributes
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.query_terms import QueryTerms
from cepbench.planning.statistics.model import Statistics

#: Expected events in a window beyond which their number is taken for exact.
_MANY = 200.0

#: Expected events in a window of which sets are counted; more would overflow.
_LARGEST_SET = 100.0


class ExpectedRows(QueryTerms):
    """A branch of a query with the expected numbers of its partial matches."""

    def __init__(self, pattern: Pattern, statistics: Statistics) -> None:
        super().__init__(pattern, statistics)
        equal = equal_attributes(pattern.expanded.conditions, self.names)
        #: The variables of values that conditions make equal.
        self.equal_names = [{term.variable for term in its} for its in equal]
        window = self.window or math.inf
        self.rates = {name: size / window for name, size in self.sizes.items()}
        for item in self.items:
            if item.is_set:
                # The expected number of subsets, if the number of events is Poisson's.
                self.sizes[item.name] = math.expm1(min(self.sizes[item.name], _LARGEST_SET))
        self.stream_rate = statistics.stream_rate or sum(self.rates.values())

    @cached_property
    def all(self) -> float:
        """Matches per second."""
        return self.rows(self.names)

    def rows(
        self,
        names: Collection[str],
        apart: Collection[str] = (),
        *,
        hashed: bool = True,
        kept: bool = True,
    ) -> float:
        """Matches of some of the positive variables per second.

        Conditions between the variables ``apart`` and the others are not tested, but for equalities if
        engines look events up by them (``hashed``), nor is NOT unless ``kept``.
        """
        bound = [name for name in self.names if name in names]
        if not bound or not self.window:
            return 0.0
        found = math.prod(self.sizes[name] for name in bound) / self.window
        for place, one in enumerate(bound):
            for other in bound[place + 1 :]:
                tested = other == bound[place + 1] or self.statistics.has_selectivity(one, other)
                is_looked_up = hashed and self.is_equal(one, other)
                if tested and ((one in apart) == (other in apart) or is_looked_up):
                    found *= self.selectivity(one, other)
        count = len(bound)
        found *= 1.0 / math.factorial(count - 1) if self.in_order else count
        return found * self._kept(bound) if kept else found

    def is_equal(self, *names: str) -> bool:
        """Whether conditions make some value of these variables equal."""
        return any({*names} <= its for its in self.equal_names)

    def compared(self, names: Collection[str], apart: Collection[str]) -> float:
        """Pairs per second whose conditions are tested to join the variables ``apart`` to the others."""
        others = [name for name in names if name not in apart]
        if any(self.statistics.has_selectivity(x, y) for x in apart for y in others):
            return self.rows(names, apart)
        return 0.0

    def _kept(self, bound: Sequence[str]) -> float:
        """The share of matches in which no NOT whose neighbours are bound finds an event."""
        kept = 1.0
        for place, variables in enumerate(self.negated):
            sides = self.names[max(place - 1, 0) : place + 1]
            if {*sides} <= {*bound}:
                for variable in variables:
                    fitting = math.prod(self.selectivity(variable.name, side) for side in sides)
                    kept *= share_without(self.size(variable.name) * fitting, len(bound))
        return kept

    @property
    def checks(self) -> int:
        """The number of negated variables."""
        return sum(map(len, self.negated))


def share_without(events: float, items: int) -> float:
    """The share of gaps between two of k ordered items in which none of some other events is.

    The k − 1 gaps and the rest of the window divide it like as many events at random, so that the gap
    has the distribution Beta(1, k − 1), and (k − 1) / (k − 1 + N) is the share for N events in the
    whole window, whose distribution is Poisson's.

    The events are an expected number in a window; of one item the gap is the whole window.
    """
    others = items - 1
    if events > _MANY:
        return min(1.0, others / events)
    found = 0.0
    probability = math.exp(-events)
    for number in range(int(events + 10 * math.sqrt(events)) + 10):
        found += probability * (others / (others + number) if number else 1.0)
        probability *= events / (number + 1)
    return found
