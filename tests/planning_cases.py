"""Random planning problems, once as plain numbers and once as pattern and statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from cepbench.patterns.model import (
    ANY,
    Kind,
    Operator,
    Pattern,
    Strategy,
    Structure,
    Variable,
    Window,
)
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.statistics.model import Statistics
from tests.naive import costs


@dataclass(frozen=True)
class Case:
    """A pattern of n variables ``v0``, ``v1``, … and what is known about them."""

    operator: str
    window: int
    rates: tuple[Fraction, ...]
    selectivities: tuple[tuple[Fraction, ...], ...]
    time_selectivity: str = "adjacent"
    #: Instead of the operator over all variables, as :mod:`tests.naive.costs` has it.
    nesting: tuple | int | None = None
    kleene: frozenset[int] = frozenset()
    strategy: Strategy = ANY
    stream_rate: Fraction = Fraction(8)
    partitions: int = 4
    alpha: Fraction = Fraction(0)
    #: What arrives last; has to be given if the structure leaves it open and alpha is not 0.
    last: int | None = None

    @property
    def n(self) -> int:
        return len(self.rates)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"v{i}" for i in range(self.n))

    @property
    def structure(self):
        return (self.operator, *range(self.n)) if self.nesting is None else self.nesting

    @property
    def pattern(self) -> Pattern:
        def written(part):
            if isinstance(part, int):
                kind = Kind.KLEENE if part in self.kleene else Kind.PLAIN
                return Variable(f"v{part}", f"V{part}", kind)
            return Structure(Operator(part[0]), tuple(map(written, part[1:])))

        return Pattern(written(self.structure), (), Window(self.window, "units"), self.strategy)

    @property
    def statistics(self) -> Statistics:
        return Statistics(
            rates={name: float(rate) for name, rate in zip(self.names, self.rates, strict=True)},
            selectivities={
                (a, self.names[j]): float(self.selectivities[i][j])
                for i, a in enumerate(self.names)
                for j in range(i, self.n)
            },
            stream_rate=float(self.stream_rate),
            partitions=float(self.partitions),
        )

    @property
    def last_name(self) -> str | None:
        return None if self.last is None else self.names[self.last]

    @property
    def problem(self) -> CostedProblem:
        return CostedProblem.from_pattern(
            self.pattern,
            self.statistics,
            self.time_selectivity,
            self.last_name,
            cost=Throughput(float(self.alpha)),
        )

    def in_floats(self) -> Case:
        """The same in floats: less exact, and fast enough for whole plan spaces."""
        rows = tuple(tuple(map(float, row)) for row in self.selectivities)
        return replace(self, rates=tuple(map(float, self.rates)), selectivities=rows)

    def order_cost(self, order):
        """The cost of indices or of names; also of the first few of an order."""
        return costs.order_cost(
            self.partial_matches,
            self.cardinalities,
            self._indices(list(order)),
            alpha=self.alpha,
            last=self._last,
        )

    def tree_cost(self, tree):
        """The cost of nested pairs of indices or of names."""
        indices = self._indices(tree)
        return costs.tree_cost(self.partial_matches, indices, alpha=self.alpha, last=self._last)

    def latency(self, plan):
        """Costlat alone, of an order (a list) or a tree."""
        indices = self._indices(plan)
        if isinstance(indices, list):
            after = indices[indices.index(self._last) + 1 :]
            return sum(self.cardinalities[i] for i in after)
        return sum(
            self.partial_matches(costs.leaves_below(node))
            for node in costs.siblings(indices, self._last)
        )

    def tree_sizes(self, tree):
        """PM of every node in post-order."""
        return [
            self.partial_matches(costs.leaves_below(node))
            for node in costs.nodes_of(self._indices(tree))
        ]

    def partial_matches(self, members):
        """PM of a set of indices."""
        key = frozenset(members)
        if key not in self._known:
            self._known[key] = costs.partial_matches(
                self.cardinalities,
                self.conditions,
                sorted(key),
                used_up=self.strategy.name != "any",
                exact_sequence=self.time_selectivity == "exact" and self.structure[0] == "SEQ",
            )
        return self._known[key]

    @cached_property
    def cardinalities(self):
        return [
            costs.cardinality(self.window, rate, kleene=i in self.kleene)
            for i, rate in enumerate(self.rates)
        ]

    @cached_property
    def _known(self):
        return {}

    @cached_property
    def _last(self):
        if self.last is not None:
            return self.last
        possible = costs.possible_last(self.structure) if self.alpha else {None}
        return possible.pop() if len(possible) == 1 else None

    @cached_property
    def conditions(self):
        """The selectivities, with the order in time and contiguity among them."""
        rows = self.selectivities
        if self.time_selectivity == "adjacent":
            pairs = self._pairs(costs.order_in_time)
            rows = costs.with_conditions(rows, pairs, Fraction(1, 2))
        if self.strategy.name.endswith("contiguity"):
            events = self.stream_rate * self.window
            if self.strategy.name == "partition_contiguity":
                events /= self.partitions
            pairs = self._pairs(costs.neighbours_in_time)
            rows = costs.with_conditions(rows, pairs, 1 / Fraction(max(1, events)))
        return rows

    def _pairs(self, rule):
        if self.nesting is None and self.n > 6:  # without going through all permutations
            following = [(i, i + 1) for i in range(self.n - 1)]
            if self.operator == "SEQ":
                return following
            every = [(i, j) for j in range(self.n) for i in range(j)]
            return [] if rule is costs.order_in_time else every
        return rule(self.structure)

    def _indices(self, plan):
        if isinstance(plan, str):
            return int(plan[1:])
        return plan if isinstance(plan, int) else type(plan)(map(self._indices, plan))


def random_case(
    seed: int,
    n: int,
    operator: str = "AND",
    time_selectivity: str = "adjacent",
    *,
    powers: tuple[float, float] = (-3, 1),
) -> Case:
    """Rates over four powers of ten, half of the pairs and a third of the variables filtered.

    All numbers are fractions that a float holds exactly, so both sides get the same.
    """
    rng = np.random.default_rng([seed, n])

    def fraction(number: float) -> Fraction:
        return Fraction(float(np.float32(number)))

    rates = tuple(fraction(10 ** rng.uniform(*powers)) for _ in range(n))
    rows = [[Fraction(1)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            if rng.random() < (0.33 if i == j else 0.5):
                rows[i][j] = rows[j][i] = fraction(10 ** rng.uniform(-3, 0))
    return Case(operator, 20, rates, tuple(map(tuple, rows)), time_selectivity)


def random_nesting(rng: np.random.Generator, first: int, end: int, operator: str):
    """SEQ and AND in turn over the indices first … end − 1, in any groups."""
    if end - first == 1:
        return first
    cuts = [cut for cut in range(first + 1, end) if rng.random() < 0.5] or [first + 1]
    other = {"SEQ": "AND", "AND": "SEQ"}[operator]
    return (
        operator,
        *(
            random_nesting(rng, i, j, other)
            for i, j in zip([first, *cuts], [*cuts, end], strict=True)
        ),
    )


#: Every way to read a pattern's operator: as the paper's AND, its SEQ, and the exact SEQ.
READINGS = (("AND", "adjacent"), ("SEQ", "adjacent"), ("SEQ", "exact"))

#: Every cost model: a strategy, and what latency weighs.
STRATEGIES = (
    ANY,
    Strategy("consuming"),
    Strategy("strict_contiguity"),
    Strategy("partition_contiguity", "x"),
)
ALPHAS = (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(100))


def modelled(case: Case, strategy: Strategy, alpha: Fraction) -> Case:
    """The same under another cost model; what comes last is drawn if nothing says it."""
    rng = np.random.default_rng([case.n, len(strategy.name), int(2 * alpha)])
    possible = sorted(costs.possible_last(case.structure)) if case.n <= 6 else [case.n - 1]
    last = possible[int(rng.integers(len(possible)))] if len(possible) > 1 else None
    return replace(case, strategy=strategy, alpha=alpha, last=last if alpha else None)


def ln(number) -> float:
    """Natural logarithm, of fractions of any size too."""
    if isinstance(number, Fraction):
        return math.log(number.numerator) - math.log(number.denominator)
    return math.log(number)
