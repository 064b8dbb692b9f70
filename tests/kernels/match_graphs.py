"""Match graphs as tests draw them, each with the list of its histories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from cepbench.engines.runs.kernels import graph as graphs
from cepbench.patterns.model import Kind, Variable

#: A history: positions and items, the first event first.
History = tuple[tuple[int, int], ...]


@dataclass
class Drawn:
    """A graph, and by its nodes what they stand for, listed one by one."""

    graph: graphs.MatchGraph = field(default_factory=lambda: graphs.empty_graph(4))
    histories: dict[int, list[History]] = field(default_factory=dict)

    def add_event(self, position: int, item: int, predecessor: int = graphs.NONE) -> int:
        """As the kernel does."""
        self.graph = graphs.with_room(self.graph, 1)
        before = [()] if predecessor == graphs.NONE else self.histories[predecessor]
        node = int(graphs.add_event(self.graph, position, item, predecessor))
        self.histories[node] = [(*history, (position, item)) for history in before]
        return node

    def add_union(self, one: int, other: int) -> int:
        """As the kernel does."""
        self.graph = graphs.with_room(self.graph, graphs.UNION_NODES)
        found = self.histories.get(one, []) + self.histories.get(other, [])
        node = int(graphs.add_union(self.graph, one, other))
        self.histories[node] = found
        return node

    def reclaim(self, earliest: int) -> None:
        """As the kernel does."""
        graphs.reclaim(self.graph, earliest)
        for node, histories in self.histories.items():
            self.histories[node] = [one for one in histories if one[0][0] >= earliest]

    def listed(self, roots: np.ndarray, earliest: np.ndarray) -> Iterator[History]:
        """The matches of some roots that begin within their windows."""
        for root, bound in zip(roots.tolist(), earliest.tolist(), strict=True):
            yield from (one for one in self.histories[root] if one[0][0] >= bound)


def variables_of(kleene: list[bool]) -> list[Variable]:
    """Variables v0, v1, …, Kleene where asked for."""
    return [
        Variable(f"v{item}", "T", Kind.KLEENE if is_set else Kind.PLAIN)
        for item, is_set in enumerate(kleene)
    ]


def any_match(types: str, kleene: list[bool], window: int) -> tuple[Drawn, np.ndarray, np.ndarray]:
    """The graph of SEQ under skip-till-any-match: item i has the type i, position is time.

    Returns
    -------
    Drawn, roots, earliest
    """
    drawn, roots, earliest = Drawn(), [], []
    reached = [graphs.NONE] * len(kleene)  # by item: the histories that end with it
    for position, letter in enumerate(types):
        if letter == "-":
            continue
        item = int(letter)
        before = graphs.NONE
        if item:
            before = reached[item - 1]
        if item and kleene[item]:
            before = drawn.add_union(before, reached[item])
        bound = position - window
        if item and not graphs.is_live(drawn.graph, before, bound):
            continue
        node = drawn.add_event(position, item, before)
        if not item and kleene[0] and graphs.is_live(drawn.graph, reached[0], bound):
            node = drawn.add_union(node, drawn.add_event(position, item, reached[0]))
        if item == len(kleene) - 1:
            roots.append(node)
            earliest.append(max(bound, 0))
        reached[item] = drawn.add_union(node, reached[item])
    return drawn, np.array(roots, np.int64), np.array(earliest, np.int64)


@st.composite
def match_graphs(draw: st.DrawFn) -> tuple[Drawn, list[bool], np.ndarray, np.ndarray]:
    """A graph of events that extend what was drawn before, united in any order, with some roots.

    Returns
    -------
    Drawn, which items are Kleene, roots, earliest
    """
    kleene = draw(st.lists(st.booleans(), min_size=1, max_size=3))
    drawn = Drawn()
    states: list[list[int]] = [[] for _ in kleene]  # by item: nodes that no union has yet
    roots, earliest = [], []
    oldest = 0
    for position in range(draw(st.integers(1, 14))):
        item = draw(st.integers(0, len(kleene) - 1))
        before = list(states[item - 1]) if item else [graphs.NONE]
        before += states[item] if kleene[item] else []
        for node in draw(st.permutations(before))[: draw(st.integers(0, 3))]:
            if node == graphs.NONE or graphs.is_live(drawn.graph, node, oldest):
                states[item].append(drawn.add_event(position, item, node))
                # More is too slow to list.
                if len(drawn.histories[states[item][-1]]) > 60:
                    del states[item][-1]
        for its in states:
            if len(its) > 1 and draw(st.booleans()):
                one, other = its.pop(draw(st.integers(0, len(its) - 1))), its.pop()
                if one != other:
                    its.append(drawn.add_union(one, other))
        for node in states[-1]:
            if draw(st.integers(0, 3)) == 0:
                roots.append(node)
                earliest.append(draw(st.integers(oldest, position)))
        if not roots and draw(st.integers(0, 3)) == 0:
            oldest = draw(st.integers(oldest, position))
            drawn.reclaim(oldest)
    return drawn, kleene, np.array(roots, np.int64), np.array(earliest, np.int64)


@st.composite
def repeated_roots(draw: st.DrawFn) -> tuple[Drawn, list[bool], np.ndarray, np.ndarray]:
    """A graph of merged runs that take events and accept again and again.

    Returns
    -------
    Drawn, which items are Kleene, roots, earliest
    """
    kleene = draw(st.sampled_from([[True], [True, False], [True, True], [False, True, False]]))
    drawn, roots, earliest = Drawn(), [], []
    reached = [graphs.NONE] * len(kleene)  # by item: the histories that end with it
    last = len(kleene) - 1
    moves = st.tuples(st.sampled_from(["take", "begin"]), st.integers(0, last))
    more = draw(st.lists(moves, min_size=20, max_size=30))
    for position, (move, item) in enumerate([("begin", item) for item in range(last)] + more):
        before = reached[item - 1] if item else graphs.NONE
        if move == "take":
            item = kleene.index(True)
            before = reached[item]
        if before == graphs.NONE and (move == "take" or item):
            continue
        if before != graphs.NONE and len(drawn.histories[before]) > 20:
            continue  # more is too slow to list
        node = drawn.add_event(position, item, before)
        if item == last:
            roots.append(node)
            earliest.append(draw(st.sampled_from([0, 0, position // 2])))
        if move == "begin":
            node = drawn.add_union(node, reached[item])
        reached[item] = node
    return drawn, kleene, np.array(roots, np.int64), np.array(earliest, np.int64)
