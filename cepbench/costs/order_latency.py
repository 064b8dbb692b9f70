"""Cost of an order plan for latency: what is still to be looked at when the last event arrives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cepbench.costs.problem import PlanningProblem


def log_waiting(problem: PlanningProblem, order: Sequence[int]) -> np.ndarray:
    """Logarithm of what each variable of an order adds to Costlat_ord [kolchinsky2018]_, section 5.1.

    Parameters
    ----------
    problem : PlanningProblem
        With ``last``.
    order : sequence of int, length n
        A permutation of 0 … n−1.

    Returns
    -------
    ndarray of float64, shape (n,)
        In the order's order: ``ln(W·r)`` of those after ``problem.last``, else minus infinity.
    """
    index = np.asarray(order, dtype=np.intp)
    (place,) = np.flatnonzero(index == problem.last)
    waiting = np.full(len(index), -np.inf)
    waiting[place + 1 :] = problem.log_cardinality[index[place + 1 :]]
    return waiting


def log_cost(problem: PlanningProblem, order: Sequence[int]) -> float:
    """Logarithm of Costlat_ord: W·r, summed over the variables that come after ``problem.last``.

    Source: [kolchinsky2018]_, section 5.1. Filters are no part of it, as the paper has it; a
    Kleene variable counts with its sets.

    Parameters
    ----------
    problem : PlanningProblem
        With ``last``.
    order : sequence of int, length n
        A permutation of 0 … n−1.

    Returns
    -------
    float
        Minus infinity if nothing comes after it.
    """
    return float(np.logaddexp.reduce(log_waiting(problem, order)))
