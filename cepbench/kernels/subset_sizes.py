"""Expected partial matches of every set of variables, in log space."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit


@njit
def log_subset_sizes(
    log_filtered: np.ndarray, log_selectivity: np.ndarray, log_order_factor: np.ndarray
) -> np.ndarray:
    """ln PM(S) for all 2^n sets S of variables, in O(2^n).

    Parameters
    ----------
    log_filtered : ndarray of float64, shape (n,)
    log_selectivity : ndarray of float64, shape (n, n)
        The diagonal is not read.
    log_order_factor : ndarray of float64, shape (n + 1,)

    Returns
    -------
    ndarray of float64, shape (2^n,)
        By bit mask; element 0 is ``log_order_factor[0]``.
    """
    n = len(log_filtered)
    sizes = np.zeros(1 << n)
    # added[R]: what variable i brings to a set R of variables before it.
    added = np.empty(1 << (n - 1))
    for i in range(n):
        added[0] = log_filtered[i]
        for j in range(i):
            for rest in range(1 << j):
                added[rest + (1 << j)] = added[rest] + log_selectivity[i, j]
        for rest in range(1 << i):
            sizes[rest + (1 << i)] = sizes[rest] + added[rest]
    if log_order_factor.any():
        for mask in range(1 << n):
            members = 0
            rest = mask
            while rest:
                rest &= rest - 1
                members += 1
            sizes[mask] += log_order_factor[members]
    return sizes
