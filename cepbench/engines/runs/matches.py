"""Matches as columns of positions: one position for a plain variable, a set for a Kleene one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


@dataclass(frozen=True)
class SetColumn:
    """One set of positions per match."""

    #: int64 (matches + 1,); set ``i`` is ``positions[offsets[i] : offsets[i + 1]]``.
    offsets: np.ndarray
    positions: np.ndarray  #: int64; ascending within a set

    @classmethod
    def of(cls, begin: np.ndarray, size: np.ndarray, pool: np.ndarray) -> SetColumn:
        """Sets of ``size`` positions from ``begin`` on in ``pool``."""
        return cls(np.concatenate(([0], np.cumsum(size))), pool[ranges_of(begin, size)])

    @classmethod
    def of_sets(cls, sets: Sequence[Sequence[int]]) -> SetColumn:
        """Sets given one by one, their positions ascending."""
        offsets = np.cumsum([0, *map(len, sets)])
        return cls(offsets, np.array([position for one in sets for position in one], np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> np.ndarray:
        """The number of positions of each set, shape (matches,)."""
        return np.diff(self.offsets)

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """Positions, and where in them each set begins; it has ``sizes`` of them."""
        return self.positions, self.offsets[:-1]

    def taken(self, kept: np.ndarray) -> SetColumn:
        """The sets of these matches, in their order."""
        pool, begin = self.ranges()
        return SetColumn.of(begin[kept], self.sizes[kept], pool)

    def last(self) -> np.ndarray:
        """The largest position of each set, shape (matches,); -1 of an empty one."""
        return self._ends(self.sizes - 1, -1)

    def first(self) -> np.ndarray:
        """The smallest position of each set, shape (matches,); beyond all of an empty one."""
        return self._ends(np.zeros(len(self), np.int64), np.iinfo(np.int64).max)

    def _ends(self, place: np.ndarray, missing: int) -> np.ndarray:
        found = np.full(len(self), missing)
        some = self.sizes > 0
        pool, begin = self.ranges()
        found[some] = pool[(begin + place)[some]]
        return found

    def ranks(self) -> np.ndarray:
        """The dense ranks of the sets from 1, compared as tuples: (0) before (0, 1) before (1)."""
        sizes = np.diff(self.offsets)
        ranks = np.zeros(len(sizes), np.int64)
        # From the last members to the first, each time for the sets with that many members.
        for place in range(int(sizes.max(initial=0)) - 1, -1, -1):
            longer = np.flatnonzero(sizes > place)
            member, rest = self.positions[self.offsets[longer] + place], ranks[longer]
            order = np.lexsort((rest, member))
            new = (np.diff(member[order]) != 0) | (np.diff(rest[order]) != 0)
            ranks[longer[order]] = np.concatenate(([1], 1 + np.cumsum(new)))
        return ranks

    def tuples(self) -> list[tuple[int, ...]]:
        """The sets as tuples."""
        listed = self.positions.tolist()
        return [tuple(listed[begin:end]) for begin, end in pairwise(self.offsets.tolist())]


class RangeColumn(SetColumn):
    """Sets that are successive positions of one array, copied only when they are shown.

    Set ``i`` is ``pool[begin[i] : begin[i] + sizes[i]]``, ascending.
    """

    def __init__(self, begin: np.ndarray, sizes: np.ndarray, pool: np.ndarray) -> None:
        # Past the frozen dataclass, whose fields are properties here.
        self.__dict__.update(_begin=begin, _sizes=sizes, _pool=pool)

    @property
    def sizes(self) -> np.ndarray:
        """The number of positions of each set, shape (matches,)."""
        found: np.ndarray = self.__dict__["_sizes"]
        return found

    @cached_property
    def offsets(self) -> np.ndarray:
        """See :class:`SetColumn`."""
        return self._copied.offsets

    @cached_property
    def positions(self) -> np.ndarray:
        """See :class:`SetColumn`."""
        return self._copied.positions

    @cached_property
    def _copied(self) -> SetColumn:
        pool, begin = self.ranges()
        return SetColumn.of(begin, self.sizes, pool)

    def __len__(self) -> int:
        return len(self.sizes)

    def ranges(self) -> tuple[np.ndarray, np.ndarray]:
        """See :meth:`SetColumn.ranges`."""
        return self.__dict__["_pool"], self.__dict__["_begin"]

    def taken(self, kept: np.ndarray) -> RangeColumn:
        """The sets of these matches, in their order."""
        pool, begin = self.ranges()
        return RangeColumn(begin[kept], self.sizes[kept], pool)


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
        self.chunks = [tuple(SetColumn(*c) if isinstance(c, tuple) else c for c in columns)]

    def last_positions(self) -> np.ndarray:
        """The position of each match's last event."""
        lasts = [c.last() if isinstance(c, SetColumn) else c for c in self.columns]
        return reduce(np.maximum, lasts) if len(self) else np.empty(0, np.int64)

    def moved(self, to: Callable[[np.ndarray], np.ndarray]) -> BranchMatches:
        """The matches with other positions of the same events; sets keep the order of events."""
        chunks = [
            [
                SetColumn(c.offsets, to(c.positions)) if isinstance(c, SetColumn) else to(c)
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


def _joined(pieces: Sequence[Column]) -> Column:
    plain = [piece for piece in pieces if not isinstance(piece, SetColumn)]
    if plain:
        return np.concatenate(plain)
    sets = [piece for piece in pieces if isinstance(piece, SetColumn)]
    sizes = np.concatenate([np.diff(piece.offsets) for piece in sets])
    positions = np.concatenate([piece.positions for piece in sets])
    return SetColumn(np.concatenate(([0], np.cumsum(sizes))), positions)
