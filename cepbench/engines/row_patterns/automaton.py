"""PATTERN as an automaton: places for a row, and for each what may follow, in order of preference.

The automaton is that of Glushkov, whose states are the places where a variable is written, with
ordered edges, so that the first match found by depth-first search is the preferred one: greedy
quantifiers try another iteration before what follows, reluctant ones after, alternatives are tried
from left to right, permutations in the order in which they are written [#]_. An iteration beyond the
lower bound maps at least one row: the empty one is not tried.

.. [#] ISO/IEC 9075-2, row pattern recognition; ISO/IEC TR 19075-5, section 4.14.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import permutations
from typing import NamedTuple

import numpy as np

from cepbench.patterns.row_pattern import RowPattern, RowTerm

#: Guards of an edge: the row is the first one of its partition, or lies behind the last one.
AT_START, AT_END = 1, 2

#: The place that ends a match.
END = -1


class Edge(NamedTuple):
    """A place that may come next, or :data:`END`, and the guards on the way there."""

    place: int
    guard: int


Edges = tuple[Edge, ...]
_NOTHING: Edges = (Edge(END, 0),)


class Automaton(NamedTuple):
    """What kernels read of a pattern; state 0 is the start, state p + 1 that behind place p.

    ``begins``: int64 (states + 1,), where the edges of each state begin. ``places``, ``guards``: int64
    (edges,). ``variables``: int64 (places,), by number. ``excluded``: bool (places,), those in ``{- -}``.
    """

    begins: np.ndarray
    places: np.ndarray
    guards: np.ndarray
    variables: np.ndarray
    excluded: np.ndarray


def automaton_of(pattern: RowPattern) -> Automaton:
    """The automaton of what PATTERN says."""
    built = _Builder(pattern.variables)
    first, _ = built.part(pattern.term, is_excluded=False)
    states = [first, *built.following]
    edges = [edge for its in states for edge in its]
    return Automaton(
        np.cumsum([0, *map(len, states)]),
        np.array([edge.place for edge in edges], np.int64),
        np.array([edge.guard for edge in edges], np.int64),
        np.array(built.variables, np.int64),
        np.array(built.excluded, bool),
    )


@dataclass
class _Builder:
    """An automaton under construction. The edges of a part lead to :data:`END` where they leave it."""

    names: tuple[str, ...]
    variables: list[int] = field(default_factory=list)
    excluded: list[bool] = field(default_factory=list)
    following: list[Edges] = field(default_factory=list)

    def part(self, term: RowTerm, *, is_excluded: bool) -> tuple[Edges, range]:
        """The edges into a part, and its places, whose following edges are written."""
        begin = len(self.following)
        match term.kind:
            case "variable":
                self.variables.append(self.names.index(term.name))
                self.excluded.append(is_excluded)
                self.following.append(_NOTHING)
                first: Edges = (Edge(begin, 0),)
            case "()":
                first = _NOTHING
            case "^" | "$":
                first = (Edge(END, AT_START if term.kind == "^" else AT_END),)
            case "sequence":
                first = self._sequence(term.parts, is_excluded)
            case "alternatives":
                first = _once(
                    edge
                    for its in term.parts
                    for edge in self.part(its, is_excluded=is_excluded)[0]
                )
            case "PERMUTE":
                orders = permutations(term.parts)
                first = _once(edge for its in orders for edge in self._sequence(its, is_excluded))
            case "exclusion":
                first, _ = self.part(term.parts[0], is_excluded=True)
            case "quantified":
                first = self._quantified(term, is_excluded)
        return first, range(begin, len(self.following))

    def _sequence(self, parts: Iterable[RowTerm], is_excluded: bool) -> Edges:
        first, begin = _NOTHING, len(self.following)
        for part in parts:
            end = len(self.following)
            its, _ = self.part(part, is_excluded=is_excluded)
            first = _through(first, its)
            self._lead(range(begin, end), its)
        return first

    def _lead(self, places: range, edges: Edges) -> None:
        """Let these edges follow wherever a part with these places is left."""
        for place in places:
            self.following[place] = _through(self.following[place], edges)

    def _quantified(self, term: RowTerm, is_excluded: bool) -> Edges:
        (part,) = term.parts
        loops = term.most is None
        begin = len(self.following)
        first = self._sequence([part] * (term.least - (loops and term.least > 0)), is_excluded)
        before = range(begin, len(self.following))
        if loops:
            its, places = self.part(part, is_excluded=is_excluded)
            again = _optional(its, term.is_reluctant)
            self._lead(places, again)
            rest = _through(its, again) if term.least else again
        else:
            rest = self._up_to(term, term.most or 0, is_excluded)
        self._lead(before, rest)
        return _through(first, rest)

    def _up_to(self, term: RowTerm, most: int, is_excluded: bool) -> Edges:
        """The iterations beyond the lower bound, each of which leads to the next one."""
        copies = [
            self.part(term.parts[0], is_excluded=is_excluded) for _ in range(most - term.least)
        ]
        rest = _NOTHING
        for its, places in reversed(copies):
            self._lead(places, rest)
            rest = _optional(its, term.is_reluctant)
        return rest


def _once(edges: Iterable[Edge]) -> Edges:
    """Edges without repetition: the second of two equal ones only fails once more."""
    return tuple(dict.fromkeys(edges))


def _through(edges: Edges, then: Edges) -> Edges:
    """Edges, with what follows in place of those that leave the part."""
    return _once(
        found
        for edge in edges
        for found in (
            (edge,)
            if edge.place != END
            else (Edge(its.place, its.guard | edge.guard) for its in then)
        )
    )


def _optional(edges: Edges, is_reluctant: bool) -> Edges:
    """The edges into one more iteration, which maps a row, and those past it."""
    more = tuple(edge for edge in edges if edge.place != END)
    return _NOTHING + more if is_reluctant else more + _NOTHING
