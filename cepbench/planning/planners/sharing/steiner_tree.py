"""The directed Steiner tree of least weight, by dynamic programming over sets of terminals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np


def steiner_tree(
    weights: np.ndarray, root: int, terminals: Sequence[int], apart: Mapping[int, Sequence[int]]
) -> dict[int, int]:
    """The parent of each vertex but the root of a least tree from there to all k terminals.

    Weights of edges are float64, shape (n, n), at least 0; infinite where there is none. The vertices
    ``apart`` are entered from the root alone, and certain terminals are not to be below them.

    Source: [dreyfus1971]_, for directed graphs. The least tree from a vertex to a set of terminals is
    a shortest path to a vertex from which two trees, to two parts of the set, begin. The time is in
    O(3^k · n + 2^k · n² + n³).
    """
    size = len(weights)
    distances = weights.copy()
    distances[:, [*apart]] = np.inf
    np.fill_diagonal(distances, 0.0)
    steps = np.tile(
        np.arange(size), (size, 1)
    )  # the vertex after each one on the way to each other
    for via in range(size):
        longer = distances[:, via, None] + distances[None, via]
        shorter = longer < distances
        distances[shorter] = longer[shorter]
        steps = np.where(shorter, steps[:, via, None], steps)
    sets = 1 << len(terminals)
    least = np.full((sets, size), np.inf)
    forks = np.zeros((sets, size), np.int64)  # the vertex where the path ends
    parts = np.zeros((sets, size), np.int64)  # one of the two parts of the set, at that vertex
    entered: dict[int, int] = {}  # the vertex of ``apart`` next to the root
    for chosen in range(1, sets):
        split = np.full(size, np.inf)
        if chosen & (chosen - 1):
            part = (chosen - 1) & chosen
            while part > chosen ^ part:
                found = least[part] + least[chosen ^ part]
                better = found < split
                split[better], parts[chosen, better] = found[better], part
                part = (part - 1) & chosen
        else:
            split[terminals[chosen.bit_length() - 1]] = 0.0
        through = distances + split
        forks[chosen] = through.argmin(axis=1)
        least[chosen] = through.min(axis=1)
        for vertex, others in apart.items():
            if any(chosen >> place & 1 and its in others for place, its in enumerate(terminals)):
                least[chosen, vertex] = np.inf
            elif weights[root, vertex] + least[chosen, vertex] < least[chosen, root]:
                least[chosen, root] = weights[root, vertex] + least[chosen, vertex]
                entered[chosen] = vertex

    def edges(vertex: int, chosen: int) -> Iterator[tuple[int, int]]:
        if vertex == root and chosen in entered:
            yield root, entered[chosen]
            yield from edges(entered[chosen], chosen)
            return
        fork, here = int(forks[chosen, vertex]), vertex
        while here != fork:
            after = int(steps[here, fork])
            yield here, after
            here = after
        if part := int(parts[chosen, fork]):
            yield from edges(fork, part)
            yield from edges(fork, chosen ^ part)

    below: dict[int, list[int]] = {}
    for parent, child in edges(root, sets - 1):
        below.setdefault(parent, []).append(child)
    # Of equal trees several may enter a vertex.
    parents = {root: root}
    reached = [root]
    for vertex in reached:
        for child in below.get(vertex, ()):
            if child not in parents:
                parents[child] = vertex
                reached.append(child)
    del parents[root]
    return parents
