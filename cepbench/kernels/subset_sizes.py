"""Expected partial matches of every set of variables, in log space."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit


@njit
def log_subset_sizes(
    log_factor: np.ndarray,
    log_bound: np.ndarray,
    log_selectivity: np.ndarray,
    log_order_factor: np.ndarray,
) -> np.ndarray:
    """ln PM(S) for all 2^n sets S of variables, in O(2^n).

    Parameters
    ----------
    log_factor : ndarray of float64, shape (n,)
        What a variable multiplies every set by.
    log_bound : ndarray of float64, shape (n,)
        The least of those of its members multiplies a set too. All zeros for none.
    log_selectivity : ndarray of float64, shape (n, n)
        The diagonal is not read.
    log_order_factor : ndarray of float64, shape (n + 1,)

    Returns
    -------
    ndarray of float64, shape (2^n,)
        By bit mask; element 0 is ``log_order_factor[0]``.
    """
    n = len(log_factor)
    sizes = np.zeros(1 << n)
    # added[R]: what variable i brings to a set R of variables before it.
    added = np.empty(1 << (n - 1))
    for i in range(n):
        added[0] = log_factor[i]
        for j in range(i):
            for rest in range(1 << j):
                added[rest + (1 << j)] = added[rest] + log_selectivity[i, j]
        for rest in range(1 << i):
            sizes[rest + (1 << i)] = sizes[rest] + added[rest]
    if log_bound.any():
        least = np.empty(1 << n)
        least[0] = np.inf
        for i in range(n):
            for rest in range(1 << i):
                least[rest + (1 << i)] = min(least[rest], log_bound[i])
        for mask in range(1, 1 << n):
            sizes[mask] += least[mask]
    if log_order_factor.any():
        for mask in range(1 << n):
            members = 0
            rest = mask
            while rest:
                rest &= rest - 1
                members += 1
            sizes[mask] += log_order_factor[members]
    return sizes
