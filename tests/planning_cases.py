"""Random planning problems, once as plain numbers and once as pattern and statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from cepbench.costs.problem import PlanningProblem
from cepbench.patterns.model import Operator, Pattern, Structure, Variable, Window
from cepbench.statistics.model import Statistics
from tests.naive import costs


@dataclass(frozen=True)
class Case:
    """A pattern of n variables ``v0``, ``v1``, … and what is known about them."""

    operator: str
    window: int
    rates: tuple[Fraction, ...]
    selectivities: tuple[tuple[Fraction, ...], ...]
    time_selectivity: str = "adjacent"

    @property
    def n(self) -> int:
        return len(self.rates)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"v{i}" for i in range(self.n))

    @property
    def pattern(self) -> Pattern:
        items = tuple(Variable(name, name.upper()) for name in self.names)
        return Pattern(Structure(Operator(self.operator), items), (), Window(self.window, "units"))

    @property
    def statistics(self) -> Statistics:
        return Statistics(
            rates={name: float(rate) for name, rate in zip(self.names, self.rates, strict=True)},
            selectivities={
                (a, self.names[j]): float(self.selectivities[i][j])
                for i, a in enumerate(self.names)
                for j in range(i, self.n)
            },
        )

    @property
    def problem(self) -> PlanningProblem:
        return PlanningProblem.from_pattern(self.pattern, self.statistics, self.time_selectivity)

    def in_floats(self) -> Case:
        """The same in floats: less exact, and fast enough for whole plan spaces."""
        rows = tuple(tuple(map(float, row)) for row in self.selectivities)
        return Case(
            self.operator, self.window, tuple(map(float, self.rates)), rows, self.time_selectivity
        )

    def order_cost(self, order):
        """Cost_ord of indices or of names; also of the first few of an order."""
        return costs.order_cost(*self._numbers, self._indices(order), exact_sequence=self._exact)

    def tree_cost(self, tree):
        """Cost_tree of nested pairs of indices or of names."""
        return costs.tree_cost(*self._numbers, self._indices(tree), exact_sequence=self._exact)

    def tree_sizes(self, tree):
        """PM of every node in post-order."""
        return costs.node_sizes(*self._numbers, self._indices(tree), exact_sequence=self._exact)

    @property
    def _exact(self) -> bool:
        return self.operator == "SEQ" and self.time_selectivity == "exact"

    @cached_property
    def _numbers(self):
        rows = self.selectivities
        if self.operator == "SEQ" and self.time_selectivity == "adjacent":
            rows = costs.with_order_in_time(rows)
        return self.window, self.rates, rows

    def _indices(self, plan):
        if isinstance(plan, str):
            return int(plan[1:])
        return plan if isinstance(plan, int) else type(plan)(map(self._indices, plan))


def random_case(
    seed: int, n: int, operator: str = "AND", time_selectivity: str = "adjacent"
) -> Case:
    """Rates over four powers of ten, half of the pairs and a third of the variables filtered.

    All numbers are fractions that a float holds exactly, so both sides get the same.
    """
    rng = np.random.default_rng([seed, n])

    def fraction(number: float) -> Fraction:
        return Fraction(float(np.float32(number)))

    rates = tuple(fraction(10 ** rng.uniform(-3, 1)) for _ in range(n))
    rows = [[Fraction(1)] * n for _ in range(n)]
    for i in range(n):
        for j in range(i, n):
            if rng.random() < (0.33 if i == j else 0.5):
                rows[i][j] = rows[j][i] = fraction(10 ** rng.uniform(-3, 0))
    return Case(operator, 20, rates, tuple(map(tuple, rows)), time_selectivity)


#: Every way to read a pattern's operator: as the paper's AND, its SEQ, and the exact SEQ.
READINGS = (("AND", "adjacent"), ("SEQ", "adjacent"), ("SEQ", "exact"))


def ln(number) -> float:
    """Natural logarithm, of fractions of any size too."""
    if isinstance(number, Fraction):
        return math.log(number.numerator) - math.log(number.denominator)
    return math.log(number)
