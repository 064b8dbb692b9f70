"""The arborescence of least weight: each vertex is reached from the root by one edge."""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit


@njit
def least_arborescence(
    size: int, sources: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, int]:
    """For each vertex but the root, 0, the edge that enters it; the sum of their weights is least.

    The algorithm of Chu and Liu and of Edmonds [liu2011]_, section 5: each vertex takes its lightest
    entering edge; a circle of these becomes one vertex, in whose entering edges the weight of the edge
    that each would replace is subtracted. The edges that enter a vertex are a skew heap whose nodes
    owe their subtrees the weight to be subtracted, so that the time is in O(edges · log edges).

    ``size``: int, the number of vertices n.
    ``sources``, ``targets``: int64 (m,), every vertex is reached from the root along some of the
    edges.
    ``weights``: float64 (m,).

    Returns ``entering``: int64 (n,), index of an edge; -1 for the root. Of equal edges one of the
    smallest index is preferred. ``steps``: int, the number of edges taken off heaps, and of nodes
    passed where two heaps become one.
    """
    edges = len(sources)
    keys, owed = weights.copy(), np.zeros(edges)
    left, right = np.full(edges, -1), np.full(edges, -1)
    # Contracted circles are vertices too, at most n - 1 of them.
    heaps = np.full(2 * size, -1)
    entering = np.full(2 * size, -1)
    # The circle that a vertex was contracted to, and its outermost one.
    circle = np.full(2 * size, -1)
    outermost = np.arange(2 * size)
    done = np.zeros(2 * size, dtype=np.bool_)
    on_path = np.zeros(2 * size, dtype=np.bool_)
    path = np.empty(2 * size, dtype=np.int64)
    steps = np.zeros(1, dtype=np.int64)
    for edge in range(edges):
        if targets[edge] != 0 and sources[edge] != targets[edge]:
            heaps[targets[edge]] = _merged(
                heaps[targets[edge]], edge, keys, owed, left, right, steps
            )
    done[0] = True
    circles = size
    for start in range(1, size):
        vertex, length = _outermost(start, outermost), 0
        while not done[vertex]:
            path[length] = vertex
            on_path[vertex] = True
            length += 1
            before = vertex
            while before == vertex:  # edges inside a contracted circle are dropped
                edge = heaps[vertex]
                _settle(edge, keys, owed, left, right)
                steps[0] += 1
                heaps[vertex] = _merged(left[edge], right[edge], keys, owed, left, right, steps)
                before = _outermost(sources[edge], outermost)
            entering[vertex] = edge
            rest = heaps[vertex]
            if rest >= 0:
                keys[rest] -= keys[edge]
                owed[rest] -= keys[edge]
            if not on_path[before] or done[before]:
                vertex = before
                continue
            inside = -1
            while inside != before:
                length -= 1
                inside = path[length]
                heaps[circles] = _merged(
                    heaps[circles], heaps[inside], keys, owed, left, right, steps
                )
                circle[inside] = outermost[inside] = circles
            vertex = circles
            circles += 1
        for k in range(length):
            done[path[k]] = True
    # The edge that enters a circle replaces that of the vertex in it at which it ends.
    for outer in range(circles - 1, size - 1, -1):
        edge = entering[outer]
        vertex = targets[edge]
        while vertex != outer:
            entering[vertex] = edge
            vertex = circle[vertex]
    return entering[:size], steps[0]


@njit
def _merged(
    one: int,
    other: int,
    keys: np.ndarray,
    owed: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    steps: np.ndarray,
) -> int:
    """The root of two skew heaps together; -1 is an empty heap."""
    root = last = -1
    while one >= 0 and other >= 0:
        steps[0] += 1
        if keys[other] < keys[one] or (keys[other] == keys[one] and other < one):
            one, other = other, one
        _settle(one, keys, owed, left, right)
        if last < 0:
            root = one
        else:
            left[last] = one
        last = one
        following = right[one]
        right[one] = left[one]
        left[one] = -1
        one = following
    rest = max(one, other)
    if last < 0:
        return rest
    left[last] = rest
    return root


@njit
def _settle(
    node: int, keys: np.ndarray, owed: np.ndarray, left: np.ndarray, right: np.ndarray
) -> None:
    """Pass on to its children what a node owes."""
    if owed[node] != 0.0:
        for child in (left[node], right[node]):
            if child >= 0:
                keys[child] += owed[node]
                owed[child] += owed[node]
        owed[node] = 0.0


@njit
def _outermost(vertex: int, outermost: np.ndarray) -> int:
    """The vertex, or the circle that is not itself in another one."""
    while outermost[vertex] != vertex:
        outermost[vertex] = outermost[outermost[vertex]]
        vertex = outermost[vertex]
    return vertex
