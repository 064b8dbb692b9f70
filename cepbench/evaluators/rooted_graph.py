"""Matches of a branch as a graph, and their numbers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np

from cepbench.kernels.match_graph import counting
from cepbench.kernels.match_graph.extraction import extracted
from cepbench.kernels.match_graph.graph import (
    HEAD,
    ITEM,
    LEFT,
    NONE,
    POSITION,
    PREDECESSOR,
    RIGHT,
    START,
    UNION,
    MatchGraph,
)
from cepbench.kernels.match_graph.nodes import Scratch, new_scratch


@dataclass(frozen=True)
class RootedGraph:
    """Matches of one branch: a graph, and the nodes at which they end.

    Attributes
    ----------
    graph : MatchGraph
    roots, earliest : ndarray of int64, shape (n,)
        Nodes, and for each the position of the first event in the window of its last one.
    times : ndarray of int64, shape (n,)
        Timestamps of the last events.
    """

    graph: MatchGraph
    roots: np.ndarray
    earliest: np.ndarray
    times: np.ndarray

    @classmethod
    def of(
        cls, graph: MatchGraph, roots: np.ndarray, earliest: np.ndarray, times: np.ndarray
    ) -> Self:
        """A copy of the nodes that the matches consist of; the graph of a run may then change."""
        own, its = extracted(graph, roots, earliest)
        live = its != NONE
        return cls(own, its[live], earliest[live], times[live])

    @cached_property
    def scratch(self) -> Scratch:
        """Scratch for counts."""
        return new_scratch(self.graph)

    @cached_property
    def measured(self) -> tuple[int, int]:
        """The digits of a count that suffice for all matches together, and their greatest length."""
        bits, longest = counting.measure(self.graph, self.roots, self.earliest, self.scratch)
        most = max(bits.max(initial=0.0), 0.0) + np.log2(max(len(bits), 1))
        return int(most + 1) // counting.DIGIT_BITS + 1, int(longest.max(initial=0))

    @cached_property
    def counts(self) -> list[int]:
        """The number of matches of each root."""
        digits, _ = self.measured
        found = np.zeros((len(self.roots), digits), np.int64)
        rows = np.arange(len(self.roots))
        counting.count_matches(self.graph, self.roots, self.earliest, rows, 0, found, self.scratch)
        return _numbers(found)

    def last_positions(self) -> np.ndarray:
        """The position of the last event of each root's matches."""
        nodes = self.graph.nodes[self.roots]
        is_union = nodes[:, ITEM] == UNION
        nodes[is_union] = self.graph.nodes[nodes[is_union, HEAD]]
        positions: np.ndarray = nodes[:, POSITION]
        return positions

    def lengths(self) -> dict[int, int]:
        """The number of matches by their numbers of events."""
        digits, longest = self.measured
        found = np.zeros((1, (1 + longest) * digits), np.int64)
        rows = np.zeros(len(self.roots), np.int64)
        counting.count_matches(
            self.graph, self.roots, self.earliest, rows, digits, found, self.scratch
        )
        return dict(enumerate(_numbers(found.reshape(-1, digits))))

    def starts(self) -> dict[int, int]:
        """The number of matches by the positions of their first events."""
        if not len(self.roots):
            return {}
        digits, _ = self.measured
        lowest, highest = self.earliest.min(), self.graph.nodes[self.roots, START].max()
        found = np.zeros((max(highest - lowest + 1, 0), digits), np.int64)
        counting.counts_per_start(
            self.graph, self.roots, self.earliest, lowest, found, self.scratch
        )
        return dict(enumerate(_numbers(found), lowest))

    def picked(self, numbers: Sequence[int], items: int) -> Iterator[list[list[int]]]:
        """The matches of these numbers, in the order of enumeration, each without the others.

        Parameters
        ----------
        numbers : sequence of int
            Ascending, from 0 on.
        items : int

        Yields
        ------
        list of list of int
            Positions by item.
        """
        ends = list(accumulate(self.counts))
        digits, _ = self.measured
        at = -1
        for number in numbers:
            root = bisect_right(ends, number)
            if root != at:
                at, earliest = root, self.earliest[root]
                counts = counting.count_histories(
                    self.graph, self.roots[root], earliest, 0, digits, self.scratch
                )
                order = self.scratch.order[: len(counts)].tolist()
                below = dict(zip(order, _numbers(counts), strict=True))
            yield self._history(number - ends[root] + self.counts[root], root, below, items)

    def _history(
        self, number: int, root: int, counts: dict[int, int], items: int
    ) -> list[list[int]]:
        found: list[list[int]] = [[] for _ in range(items)]
        node = int(self.roots[root])
        while node != NONE:
            its = self.graph.nodes[node]
            if its[ITEM] != UNION:
                found[its[ITEM]].append(int(its[POSITION]))
                node = int(its[PREDECESSOR])
                continue
            for column in (HEAD, LEFT, RIGHT):
                node = int(its[column])
                its_count = counts.get(node, 0)
                if number < its_count:
                    break
                number -= its_count
        for positions in found:
            positions.reverse()
        return found


def _numbers(digits: np.ndarray) -> list[int]:
    """Counts as integers, of rows of digits."""
    found: list[int] = digits[:, 0].tolist()
    for place in range(1, digits.shape[1]):
        shift = counting.DIGIT_BITS * place
        found = [
            one + (more << shift)
            for one, more in zip(found, digits[:, place].tolist(), strict=True)
        ]
    return found
