"""Matches as columns of positions: one position for a plain variable, a set for a Kleene one."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, Self

import numpy as np

from cepbench.engines.runs.kernels.values import Rows
from cepbench.engines.runs.rooted_graph import RootedGraph
from cepbench.patterns.model import Pattern, Variable
from cepbench.state import Stateful


def ranges_of(begin: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """The numbers ``begin[i] … begin[i] + sizes[i] - 1`` of all ``i``, one after the other."""
    ends = np.cumsum(sizes)
    return np.repeat(begin - ends + sizes, sizes) + np.arange(ends[-1] if len(ends) else 0)


class SetColumn:
    """One set of positions per match: set ``i`` is ``pool[begin[i] : begin[i] + sizes[i]]``, ascending.

    Sets that are not one after the other in their pool are copied only when they are shown.
    """

    def __init__(self, begin: np.ndarray, sizes: np.ndarray, pool: np.ndarray) -> None:
        self.begin, self.sizes, self.pool = begin, sizes, pool

    @classmethod
    def of(cls, offsets: np.ndarray, positions: np.ndarray) -> Self:
        """Sets one after the other, see :attr:`offsets` and :attr:`positions`."""
        column = cls.__new__(cls)
        column.offsets, column.positions = offsets, positions
        column.begin, column.pool = offsets[:-1], positions
        return column

    @classmethod
    def of_sets(cls, sets: Sequence[Sequence[int]]) -> Self:
        """Sets given one by one, their positions ascending."""
        offsets = np.cumsum([0, *map(len, sets)])
        return cls.of(offsets, np.array([position for one in sets for position in one], np.int64))

    def __len__(self) -> int:
        return len(self.begin)

    @cached_property
    def sizes(self) -> np.ndarray:
        """The number of positions of each set, shape (matches,)."""
        return np.diff(self.offsets)

    @cached_property
    def offsets(self) -> np.ndarray:
        """Int64 (matches + 1,): set ``i`` is ``positions[offsets[i] : offsets[i + 1]]``."""
        return np.concatenate(([0], np.cumsum(self.sizes)))

    @cached_property
    def positions(self) -> np.ndarray:
        """The positions of all sets, one set after the other."""
        found: np.ndarray = self.pool[ranges_of(self.begin, self.sizes)]
        return found

    def copied(self) -> Self:
        """The same sets in a pool of their own."""
        return self.of(self.offsets, self.positions)

    def taken(self, kept: np.ndarray) -> Self:
        """The sets of these matches, in their order."""
        return type(self)(self.begin[kept], self.sizes[kept], self.pool)

    def last(self) -> np.ndarray:
        """The largest position of each set, shape (matches,); -1 of an empty one."""
        return self._ends(self.sizes - 1, -1)

    def first(self) -> np.ndarray:
        """The smallest position of each set, shape (matches,); beyond all of an empty one."""
        return self._ends(np.zeros(len(self), np.int64), np.iinfo(np.int64).max)

    def _ends(self, place: np.ndarray, missing: int) -> np.ndarray:
        found = np.full(len(self), missing)
        some = self.sizes > 0
        found[some] = self.pool[(self.begin + place)[some]]
        return found

    def ranks(self) -> np.ndarray:
        """The dense ranks of the sets from 1, compared as tuples: (0) before (0, 1) before (1)."""
        sizes = self.sizes
        ranks = np.zeros(len(sizes), np.int64)
        # From the last members to the first, each time for the sets with that many members.
        for place in range(int(sizes.max(initial=0)) - 1, -1, -1):
            longer = np.flatnonzero(sizes > place)
            member, rest = self.pool[self.begin[longer] + place], ranks[longer]
            order = np.lexsort((rest, member))
            new = (np.diff(member[order]) != 0) | (np.diff(rest[order]) != 0)
            ranks[longer[order]] = np.concatenate(([1], 1 + np.cumsum(new)))
        return ranks

    def tuples(self) -> list[tuple[int, ...]]:
        """The sets as tuples."""
        listed = self.positions.tolist()
        return [tuple(listed[begin:end]) for begin, end in pairwise(self.offsets.tolist())]


Column = np.ndarray | SetColumn


class BranchMatches(Stateful):
    """The matches of a pattern without OR: chunks, each with a column for each positive variable."""

    SAVED = ("_held",)

    def __init__(self, names: Sequence[str], chunks: Sequence[Sequence[Column]]) -> None:
        self.names = tuple(names)
        self.chunks = [tuple(chunk) for chunk in chunks]

    def __len__(self) -> int:
        return sum(len(chunk[0]) for chunk in self.chunks)

    @property
    def columns(self) -> tuple[Column, ...]:
        """A column for each variable, with one entry per match."""
        if len(self.chunks) > 1:
            # Concatenated only when needed, since it copies a large result.
            self.chunks = [tuple(_joined(pieces) for pieces in zip(*self.chunks, strict=True))]
        return self.chunks[0]

    @property
    def _held(self) -> list[np.ndarray | tuple[np.ndarray, np.ndarray]]:
        """The columns as plain arrays."""
        return [(c.offsets, c.positions) if isinstance(c, SetColumn) else c for c in self.columns]

    @_held.setter
    def _held(self, columns: list[np.ndarray | tuple[np.ndarray, np.ndarray]]) -> None:
        self.chunks = [tuple(SetColumn.of(*c) if isinstance(c, tuple) else c for c in columns)]

    def last_positions(self) -> np.ndarray:
        """The position of each match's last event."""
        lasts = [c.last() if isinstance(c, SetColumn) else c for c in self.columns]
        return reduce(np.maximum, lasts) if len(self) else np.empty(0, np.int64)

    def moved(self, to: Callable[[np.ndarray], np.ndarray]) -> BranchMatches:
        """The matches with other positions of the same events; sets keep the order of events."""
        chunks = [
            [
                SetColumn.of(c.offsets, to(c.positions)) if isinstance(c, SetColumn) else to(c)
                for c in chunk
            ]
            for chunk in self.chunks
        ]
        return BranchMatches(self.names, chunks)

    def first_positions(self) -> np.ndarray:
        """The position of each match's first event."""
        firsts = [c.first() if isinstance(c, SetColumn) else c for c in self.columns]
        return reduce(np.minimum, firsts) if len(self) else np.empty(0, np.int64)

    def rows(self) -> list[tuple[Any, ...]]:
        """Each match as a tuple of positions and tuples of positions."""
        listed = (c.tuples() if isinstance(c, SetColumn) else c.tolist() for c in self.columns)
        return list(zip(*listed, strict=True))

    def codes(self) -> list[np.ndarray]:
        """The columns as integers in the same order: ranks of sets, and positions."""
        return [c.ranks() if isinstance(c, SetColumn) else c for c in self.columns]

    def in_order(self) -> np.ndarray:
        """Matches sorted by last position, then by all positions in written order."""
        return np.lexsort((*self.codes()[::-1], self.last_positions()))

    def in_columns(self, names: Sequence[str]) -> BranchMatches:
        """The matches with their variables in another order."""
        places = [self.names.index(name) for name in names]
        return BranchMatches(names, [[chunk[place] for place in places] for chunk in self.chunks])

    def taken(self, kept: np.ndarray) -> BranchMatches:
        """The matches of these numbers, in their order."""
        columns = [c.taken(kept) if isinstance(c, SetColumn) else c[kept] for c in self.columns]
        return BranchMatches(self.names, [columns])


@dataclass(frozen=True, slots=True)
class Found:
    """The matches completed by a batch of events."""

    number: int
    #: One per branch of the pattern; None if matches are only counted, or are in ``graphs``.
    matches: tuple[BranchMatches | None, ...]
    #: For ``output="compressed"``: the number of a branch, and matches of it.
    graphs: tuple[tuple[int, RootedGraph], ...] = ()
    values: Rows | None = None  #: the values of the matches, if RETURN needs no more of them

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Those of successive batches; of each branch tables, or none."""
        found = list(parts)
        branches = zip(*(part.matches for part in found), strict=True)
        matches = (None if None in its else joined(its) for its in branches)
        return cls(sum(part.number for part in found), tuple(matches))

    @classmethod
    def of_graphs(cls, graphs: Sequence[tuple[int, RootedGraph]]) -> Self:
        """Matches as graphs, which are counted."""
        return cls(sum(sum(graph.counts) for _, graph in graphs), (), tuple(graphs))


def matches_by_branch(pattern: Pattern, found: Sequence[Found]) -> tuple[BranchMatches, ...]:
    """The matches of several batches, concatenated by branch of their pattern."""
    some = [one.matches for one in found if one.number]
    parts = []
    for number, branch in enumerate(pattern.branches()):
        own = [part for matches in some if (part := matches[number]) is not None]
        if len(own) != 1:
            own = [joined([no_matches(branch.positive), *own])]
        parts += own
    return tuple(parts)


def matches_of_rows(variables: Sequence[Variable], rows: Sequence[Sequence[Any]]) -> BranchMatches:
    """The inverse of :meth:`BranchMatches.rows`."""
    columns: list[Column] = []
    for place, variable in enumerate(variables):
        entries = [row[place] for row in rows]
        columns.append(
            SetColumn.of_sets(entries) if variable.is_set else np.array(entries, np.int64)
        )
    return BranchMatches([variable.name for variable in variables], [columns])


def no_matches(variables: Sequence[Variable]) -> BranchMatches:
    """Empty columns for these variables."""
    return matches_of_rows(variables, [])


def joined(parts: Sequence[BranchMatches]) -> BranchMatches:
    """The matches of several batches over the same variables, concatenated."""
    return BranchMatches(parts[0].names, [chunk for part in parts for chunk in part.chunks])


def picked(branches: Sequence[BranchMatches], numbers: Sequence[int]) -> tuple[BranchMatches, ...]:
    """The matches of these ascending numbers, of those of one branch after the other."""
    found, before = [], 0
    for its in branches:
        begin, end = (bisect_left(numbers, edge) for edge in (before, before + len(its)))
        found.append(its.taken(np.array(numbers[begin:end], np.int64) - before))
        before += len(its)
    return tuple(found)


def _joined(pieces: Sequence[Column]) -> Column:
    plain = [piece for piece in pieces if not isinstance(piece, SetColumn)]
    if plain:
        return np.concatenate(plain)
    sets = [piece for piece in pieces if isinstance(piece, SetColumn)]
    offsets = np.cumsum(np.concatenate([[0], *(piece.sizes for piece in sets)]))
    return SetColumn.of(offsets, np.concatenate([piece.positions for piece in sets]))
