"""Expected partial matches of every set of variables, in log space."""

from __future__ import annotations

import numpy as np

from cepbench.planning.kernels.terms import CostTerms


def log_subset_sizes(terms: CostTerms) -> np.ndarray:
    """ln PM(S) for all 2^n sets S of variables, in O(2^n), float64, by bit mask.

    That of the empty set is ``log_order_factor[0]``.
    """
    # Every step doubles an array: the sets with variable i are the sets without it, plus i. These
    # are few calls on long arrays, for which NumPy is faster than compiled loops.
    log_factor, log_bound = terms.log_factor, terms.log_bound
    log_selectivity, log_order_factor = terms.log_selectivity, terms.log_order_factor
    n = len(log_factor)
    sizes = np.zeros(1 << n)
    # added[R]: ln of the factor by which variable i multiplies the size of a set R of earlier ones.
    added = np.empty(1 << (n - 1))
    for i in range(n):
        added[0] = log_factor[i]
        for j in range(i):
            np.add(added[: 1 << j], log_selectivity[i, j], out=added[1 << j : 2 << j])
        np.add(sizes[: 1 << i], added[: 1 << i], out=sizes[1 << i : 2 << i])
    if log_bound.any():
        least = np.empty(1 << n)
        least[0] = np.inf
        for i in range(n):
            np.minimum(least[: 1 << i], log_bound[i], out=least[1 << i : 2 << i])
        sizes[1:] += least[1:]
    if log_order_factor.any():
        members = np.zeros(1 << n, dtype=np.int8)
        for i in range(n):
            np.add(members[: 1 << i], 1, out=members[1 << i : 2 << i])
        sizes += log_order_factor[members]
    return sizes
