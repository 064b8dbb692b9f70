"""The predicate graph of a problem; the order in time counts as a condition."""

from __future__ import annotations

import numpy as np

from cepbench.planning.costs.problem import PlanningProblem


def adjacency(problem: PlanningProblem) -> np.ndarray:
    """Whether two variables have a selectivity other than 1, bool, shape (n, n)."""
    adjacent: np.ndarray = problem.log_selectivity != 0.0
    np.fill_diagonal(adjacent, False)
    return adjacent


def components(adjacent: np.ndarray) -> list[list[int]]:
    """The connected components, each in written order, the earliest first."""
    found: list[list[int]] = []
    left = np.ones(len(adjacent), dtype=bool)
    while left.any():
        part = np.zeros_like(left)
        part[np.argmax(left)] = True
        size = 0
        while size < part.sum():
            size = part.sum()
            part |= adjacent[part].any(axis=0)
        found.append(np.flatnonzero(part).tolist())
        left &= ~part
    return found
