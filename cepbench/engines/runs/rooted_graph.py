"""Matches of a branch as a graph, and their numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np

from cepbench.engines.runs.kernels import counting
from cepbench.engines.runs.kernels import graph as graphs
from cepbench.engines.runs.kernels.choice import choose_each
from cepbench.engines.runs.kernels.extraction import extracted
from cepbench.engines.runs.kernels.nodes import Scratch, new_scratch
from cepbench.kernels.exact import integers


@dataclass(frozen=True)
class RootedGraph:
    """Matches of one branch: a graph, and the nodes at which they end."""

    graph: graphs.MatchGraph
    #: int64 (n,); nodes, and for each the least position that a match of its window begins at.
    roots: np.ndarray
    earliest: np.ndarray
    times: np.ndarray  #: int64 (n,); timestamps of the last events

    @classmethod
    def of(
        cls, graph: graphs.MatchGraph, roots: np.ndarray, earliest: np.ndarray, times: np.ndarray
    ) -> Self:
        """A copy of the nodes that the matches consist of; the graph of a run may then change."""
        own, its = extracted(graph, roots, earliest)
        live = its != graphs.NONE
        # Windows with the same first events are counted together.
        nodes = graphs.stored_nodes(own)
        is_first = (nodes[:, graphs.ITEM] != graphs.UNION) & (
            nodes[:, graphs.PREDECESSOR] == graphs.NONE
        )
        firsts = np.sort(nodes[is_first, graphs.POSITION])
        bounds = firsts[np.searchsorted(firsts, earliest[live])]
        return cls(own, its[live], bounds, times[live])

    @cached_property
    def scratch(self) -> Scratch:
        """Scratch for counts."""
        return new_scratch(self.graph)

    @cached_property
    def digits(self) -> np.ndarray:
        """The number of matches of each root, as digits, shape (n, digits)."""
        return self._counted(counting.count_matches)

    @cached_property
    def counts(self) -> list[int]:
        """The number of matches of each root."""
        return integers(self.digits)

    def last_positions(self) -> np.ndarray:
        """The position of the last event of each root's matches."""
        nodes = self.graph.nodes[self.roots]
        is_union = nodes[:, graphs.ITEM] == graphs.UNION
        nodes[is_union] = self.graph.nodes[nodes[is_union, graphs.HEAD]]
        return np.ascontiguousarray(nodes[:, graphs.POSITION])

    def lengths(self) -> dict[int, int]:
        """The number of matches by their numbers of events."""
        return dict(enumerate(integers(self._counted(counting.count_lengths))))

    def starts(self) -> dict[int, int]:
        """The number of matches by the positions of their first events."""
        if not len(self.roots):
            return {}
        lowest = int(self.earliest.min())
        positions = int(self.graph.nodes[self.roots, graphs.START].max()) - lowest + 1
        found = self._counted(counting.counts_per_start, lowest, positions)
        return dict(enumerate(integers(found), lowest))

    def _counted(self, count: Callable[..., tuple[np.ndarray, bool]], *more: int) -> np.ndarray:
        """What a kernel counts, with as many digits as that needs."""
        digits = 1
        while True:
            found, fits = count(self.graph, self.roots, self.earliest, digits, self.scratch, *more)
            if fits:
                return found
            digits *= 2

    def latest(self) -> Self:
        """Of the matches of each last event the one that OUTPUT non_overlap prefers to the others.

        That is the one with the latest start, then the fewest events, then the smallest positions.
        """
        lasts = self.last_positions()
        chosen = np.full(len(self.roots), graphs.NONE)
        nodes, done, more = graphs.stored_nodes(self.graph), 0, graphs.UNION_NODES
        while done < len(chosen):
            graph = graphs.graph_of(nodes, more=more)
            done = choose_each(
                graph, self.roots, self.earliest, lasts, done, new_scratch(graph), chosen
            )
            nodes, more = graphs.stored_nodes(graph), 2 * more
        its = chosen != graphs.NONE
        return type(self)(graphs.graph_of(nodes), chosen[its], self.earliest[its], self.times[its])

    def picked(self, numbers: Sequence[int], items: int) -> Iterator[list[list[int]]]:
        """The matches of these ascending numbers, in the order of enumeration, each without the
        others, as positions by item.
        """
        ends = list(accumulate(self.counts))
        digits = self.digits.shape[1]
        at = -1
        for number in numbers:
            root = bisect_right(ends, number)
            if root != at:
                at, earliest = root, self.earliest[root]
                # A history's number is at most that of the root, which fits these digits.
                counts, _ = counting.count_histories(
                    self.graph, self.roots[root : root + 1], earliest, False, digits, self.scratch
                )
                order = self.scratch.order[: len(counts)].tolist()
                below = dict(zip(order, integers(counts[:, 0]), strict=True))
            yield self._history(number - ends[root] + self.counts[root], root, below, items)

    def _history(
        self, number: int, root: int, counts: dict[int, int], items: int
    ) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in range(items)]
        node = int(self.roots[root])
        while node != graphs.NONE:
            its = self.graph.nodes[node]
            if its[graphs.ITEM] != graphs.UNION:
                found[its[graphs.ITEM]].append(int(its[graphs.POSITION]))
                node = int(its[graphs.PREDECESSOR])
                continue
            for column in (graphs.HEAD, graphs.LEFT, graphs.RIGHT):
                node = int(its[column])
                its_count = counts.get(node, 0)
                if number < its_count:
                    break
                number -= its_count
        for positions in found:
            positions.reverse()
        return found
