"""Adjacency lists of a predicate graph, concatenated."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit


@njit
def adjacency(edges: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The adjacency lists of a graph of n variables: where each begins, and all of them.

    Those of variable v are ``neighbours[first[v] : first[v + 1]]``, in the order of the edges,
    which are pairs of different variables, each pair once, int64, shape (m, 2).
    """
    first = np.zeros(n + 1, dtype=np.int64)
    for edge in range(len(edges)):
        first[edges[edge, 0] + 1] += 1
        first[edges[edge, 1] + 1] += 1
    for v in range(n):
        first[v + 1] += first[v]
    at = first.copy()
    neighbours = np.empty(2 * len(edges), dtype=np.int64)
    for edge in range(len(edges)):
        a, b = edges[edge, 0], edges[edge, 1]
        neighbours[at[a]] = b
        at[a] += 1
        neighbours[at[b]] = a
        at[b] += 1
    return first, neighbours
