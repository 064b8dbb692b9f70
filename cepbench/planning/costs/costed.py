"""The argument of a plan generator: a planning problem and the cost to minimize."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from cepbench.planning.costs.model import CostModel
from cepbench.planning.costs.problem import PlanningProblem, plain
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.kernels.subset_sizes import log_subset_sizes
from cepbench.planning.kernels.terms import CostTerms
from cepbench.planning.plans.tree import Tree


@dataclass(frozen=True, eq=False)
class CostedProblem(PlanningProblem):
    """A planning problem together with a cost.

    Raises StatisticsError as for a :class:`PlanningProblem`, or if the cost needs a number that is
    missing.
    """

    cost: CostModel = field(default_factory=Throughput)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.cost.check(self)

    @classmethod
    def of(cls, problem: PlanningProblem, cost: CostModel) -> CostedProblem:
        """A planning problem with a cost."""
        numbers = {entry.name: getattr(problem, entry.name) for entry in fields(PlanningProblem)}
        return cls(**numbers, cost=cost)

    @property
    def alpha(self) -> float:
        """Weight of latency in the cost; 0 for costs without one."""
        return self.cost.alpha

    @property
    def form(self) -> str:
        """The form of the cost; ``joins`` if some but not all variables have equal values.

        Sizes of sets are then more than :attr:`terms` say.
        """
        return "joins" if self.cost.form == "sets" and self.partly_equal else self.cost.form

    @cached_property
    def terms(self) -> CostTerms:
        """The arrays for the compiled searches, for costs of the form ``sets``; see :attr:`form`."""
        return self.cost.terms(self)

    def log_subset_sizes(self) -> np.ndarray:
        """ln of the expected partial matches over each set, which is its binary number; shape (2^n,)."""
        sizes = log_subset_sizes(self.terms)
        if self.partly_equal is not None:
            sizes -= self.partly_equal.log_repeated_in(np.arange(len(sizes)))
        return sizes

    def log_order_cost(self, order: Sequence[int]) -> float:
        """ln of the cost of an order of indices."""
        return self.cost.log_cost(self, "order", order)

    def log_tree_cost(self, tree: Tree[int]) -> float:
        """ln of the cost of nested pairs of indices."""
        return self.cost.log_cost(self, "tree", _pairs(tree))

    def order_cost(self, order: Sequence[int]) -> float:
        """Cost of an order of indices; PlanGeneratorError if it is too large for a float."""
        return plain("order_cost", self.log_order_cost(order))

    def tree_cost(self, tree: Tree[int]) -> float:
        """Cost of nested pairs of indices; PlanGeneratorError if it is too large for a float."""
        return plain("tree_cost", self.log_tree_cost(tree))


def _pairs(tree: Any) -> Any:
    """Nested pairs, with lists as tuples."""
    return tuple(map(_pairs, tree)) if isinstance(tree, tuple | list) else tree
