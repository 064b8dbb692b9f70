"""Cost of an order plan for latency: what is still to be looked at when the last event arrives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cepbench.costs.problem import PlanningProblem


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
    index = np.asarray(order, dtype=np.intp)
    (place,) = np.flatnonzero(index == problem.last)
    return float(np.logaddexp.reduce(problem.log_cardinality[index[place + 1 :]]))
