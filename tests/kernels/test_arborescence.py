"""The arborescence of least weight, against all arborescences and a recursion."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.planning.kernels.arborescence import least_arborescence

#: Source, target, weight.
Edge = tuple[int, int, float]


def chosen(size: int, edges: Sequence[Edge]) -> list[int]:
    sources, targets = (np.array([e[k] for e in edges], dtype=np.int64) for k in (0, 1))
    weights = np.array([e[2] for e in edges], dtype=np.float64)
    found, steps = least_arborescence(size, sources, targets, weights)
    assert steps >= size - 1
    assert found[0] == -1
    return found[1:].tolist()


def is_arborescence(edges: Sequence[Edge], its: Sequence[int]) -> bool:
    """Whether each vertex is reached from the root along the edges that enter the vertices."""
    source = {edges[k][1]: edges[k][0] for k in its}
    for vertex in source:
        steps = 0
        while vertex and steps <= len(source):
            vertex, steps = source[vertex], steps + 1
        if vertex:
            return False
    return True


def weight(edges: Sequence[Edge], its: Sequence[int]) -> float:
    return sum(edges[k][2] for k in its)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[Edge]]:
    """Few vertices and weights, so that circles and ties are frequent; parallel edges and loops."""
    size = draw(st.integers(2, 6))
    vertices = st.integers(0, size - 1)
    weights = st.integers(0, 5).map(float)
    ground = [(0, vertex, draw(st.integers(3, 12).map(float))) for vertex in range(1, size)]
    others = draw(st.lists(st.tuples(vertices, vertices, weights), max_size=14))
    return size, draw(st.permutations([*ground, *others]))


@given(graphs())
def test_against_all_arborescences(graph: tuple[int, list[Edge]]) -> None:
    size, edges = graph
    found = chosen(size, edges)
    assert [edges[k][1] for k in found] == [*range(1, size)]
    assert is_arborescence(edges, found)
    entering = [
        [k for k, (source, target, _) in enumerate(edges) if target == vertex != source]
        for vertex in range(1, size)
    ]
    every = [weight(edges, its) for its in product(*entering) if is_arborescence(edges, its)]
    assert weight(edges, found) == min(every) == least_weight(edges)


def least_weight(edges: Sequence[Edge]) -> float:
    """Contract a circle of lightest entering edges, and again without it."""
    lightest: dict[int, Edge] = {}
    for edge in edges:
        if edge[1] and edge[0] != edge[1]:
            lightest[edge[1]] = min(edge, lightest.get(edge[1], edge), key=lambda its: its[2])
    for start in lightest:
        path = [start]
        while path[-1] and path[-1] not in path[:-1]:
            path.append(lightest[path[-1]][0])
        if path[-1]:
            circle = {*path[path.index(path[-1]) :]}
            name = min(circle)
            contracted = [
                (name if s in circle else s, name, w - lightest[t][2])
                if t in circle
                else (name if s in circle else s, t, w)
                for s, t, w in edges
            ]
            return sum(lightest[v][2] for v in circle) + least_weight(contracted)
    return sum(edge[2] for edge in lightest.values())


@pytest.mark.parametrize("seed", range(5))
def test_larger_graphs_against_a_recursion(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 60
    edges = [(0, vertex, float(rng.integers(50, 200))) for vertex in range(1, size)]
    for source, target in rng.integers(1, size, (200 * (seed + 1), 2)).tolist():
        edges.append((source, target, float(rng.integers(1, 60))))
    found = chosen(size, edges)
    assert is_arborescence(edges, found)
    assert weight(edges, found) == least_weight(edges)


def test_a_circle_is_entered_where_that_adds_least() -> None:
    """As in Example 3 of [liu2011]: q3, q4 and q7 are cheapest from each other, entered from q2."""
    edges = [
        (0, 2, 5.0), (0, 3, 20.0), (0, 4, 20.0), (0, 7, 20.0), (4, 3, 1.0), (7, 4, 1.0), (3, 7, 1.0),
        (2, 3, 4.0), (2, 4, 9.0), (0, 1, 1.0), (0, 5, 1.0), (0, 6, 1.0),
    ]  # fmt: skip
    found = chosen(8, edges)
    assert [edges[k][:2] for k in found] == [(0, 1), (0, 2), (2, 3), (7, 4), (0, 5), (0, 6), (3, 7)]


def test_circles_in_circles() -> None:
    """Each contracted circle is again the cheapest source of the next one."""
    size = 400
    edges = [(0, vertex, 1e6) for vertex in range(1, size)]
    edges += [(v + 1, v, 2.0 * v) for v in range(1, size - 1)]
    edges += [(v, v + 1, 2.0 * v + 1) for v in range(1, size - 1)]
    found = chosen(size, edges)
    assert is_arborescence(edges, found)
    assert sum(edges[k][0] == 0 for k in found) == 1
    # From the last one down: every other root replaces an edge by a heavier one.
    assert weight(edges, found) == 1e6 + sum(2.0 * v for v in range(1, size - 1))
