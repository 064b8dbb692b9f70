"""Cost of an order plan for throughput: the expected partial matches of all its prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from cepbench.costs.problem import PlanningProblem


def log_node_sizes(problem: PlanningProblem, order: Sequence[int]) -> np.ndarray:
    """Logarithm of the expected number of partial matches of every prefix of an order.

    PM(k) = ∏ W·r · ∏ sel over the first k variables, filters included [kolchinsky2018]_,
    section 3.1; where events are used up, W·min(r) · ∏ sel [kolchinsky2018]_, section 5.2.

    Parameters
    ----------
    problem : PlanningProblem
    order : sequence of int, length n
        A permutation of 0 … n−1.

    Returns
    -------
    ndarray of float64, shape (n,)
        ``ln PM(1)``, …, ``ln PM(n)``.
    """
    index = np.asarray(order, dtype=np.intp)
    # Row k of the lower triangle: what the k-th variable's conditions with those before it (and
    # its own filter, on the diagonal) multiply the prefix by.
    conditions = np.tril(problem.log_selectivity[np.ix_(index, index)]).sum(axis=1)
    if problem.consuming:
        sizes: np.ndarray = np.cumsum(conditions)
        sizes += np.minimum.accumulate(problem.log_cardinality[index])
    else:
        sizes = np.cumsum(problem.log_cardinality[index] + conditions)
    return sizes + problem.log_order_factor[1:]


def log_cost(problem: PlanningProblem, order: Sequence[int]) -> float:
    """Logarithm of Cost_ord: the sum over all prefixes, k = 1 … n.

    Source: [kolchinsky2018]_, sections 3.1 and 5.2.

    Differs from the paper: where events are used up it multiplies each prefix by W once more,
    a constant that no plan depends on; here the cost is the number of partial matches always.

    Parameters
    ----------
    problem : PlanningProblem
    order : sequence of int, length n

    Returns
    -------
    float
    """
    return float(np.logaddexp.reduce(log_node_sizes(problem, order)))
