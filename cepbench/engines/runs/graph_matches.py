"""The matches of a graph as columns of positions, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from cepbench.engines.runs.kernels import enumeration, values
from cepbench.engines.runs.kernels import graph as graphs
from cepbench.engines.runs.matches import BranchMatches, Column, SetColumn
from cepbench.engines.runs.pieces import room_for_more
from cepbench.engines.runs.rooted_graph import RootedGraph
from cepbench.kernels.batches import FIRST_CHUNK, LARGEST_CHUNK
from cepbench.patterns.model import Variable

_Chunk = TypeVar("_Chunk")

#: Members of sets for which a chunk has room, per match and at most: larger arrays are returned to
#: the operating system once they are dropped, and cost as much again to get as to fill.
_MEMBERS, _MOST_MEMBERS = 64, 3 << 20


def graph_chunks(
    graph: graphs.MatchGraph,
    roots: np.ndarray,
    earliest: np.ndarray,
    variables: Sequence[Variable],
    first_chunk: int = FIRST_CHUNK,
) -> Iterator[list[Column]]:
    """The matches that end in some nodes, in chunks as :class:`BranchMatches` has them.

    The graph must not change before the last chunk. Items of the graph are numbers of ``variables``, the
    positive ones in written order. Matches are in the order of ``roots``; chunks after the first one
    are larger.
    """
    write = partial(enumeration.enumerate_matches, graph, roots, earliest)
    yield from written_chunks(variables, len(roots), write, first_chunk)


def written_chunks(
    variables: Sequence[Variable],
    roots: int,
    write: Callable[[np.ndarray, enumeration.Search, enumeration.Chunk], int],
    first_chunk: int = FIRST_CHUNK,
) -> Iterator[list[Column]]:
    """The matches that a kernel writes, of so many roots, in chunks with a column for each
    variable.

    The kernel gets the last parameters of
    :func:`cepbench.engines.runs.kernels.enumeration.enumerate_matches`, and has its result.
    """
    is_set = np.array([variable.is_set for variable in variables])
    sets = np.where(is_set, np.cumsum(is_set) - 1, -1)

    def empty(rows: int, search: enumeration.Search) -> enumeration.Chunk:
        needed = int(search.progress[enumeration.LENGTH])
        members = max(min(room_for_more(_MEMBERS) * rows, _MOST_MEMBERS), needed)
        # Of a larger chunk than needed, the rest is never touched and takes no memory.
        return enumeration.Chunk(
            np.zeros((len(variables), 1 + rows), np.int64),
            np.empty((int(is_set.sum()), members), np.int64),
        )

    search = enumeration.new_search(len(variables), roots)
    for chunk, written in _filled(search, first_chunk, empty, partial(write, sets)):
        columns: list[Column] = []
        for place, ends in zip(sets, chunk.ends[:, : written + 1], strict=True):
            its = ends[1:] if place < 0 else SetColumn.of(ends, chunk.members[place, : ends[-1]])
            columns.append(its)
        if written:
            yield columns


def _filled(
    search: enumeration.Search,
    rows: int,
    empty: Callable[[int, enumeration.Search], _Chunk],
    write: Callable[[enumeration.Search, _Chunk], int],
) -> Iterator[tuple[_Chunk, int]]:
    """Chunks of growing size that a search fills, and how many matches each has."""
    status = enumeration.FULL
    while status != enumeration.ENDED:
        chunk = empty(rows, search)
        search.progress[enumeration.WRITTEN] = 0
        status = enumeration.CRAMPED
        while status == enumeration.CRAMPED:
            status = write(search, chunk)
            if status == enumeration.CRAMPED:
                search = enumeration.roomier(search)
        yield chunk, int(search.progress[enumeration.WRITTEN])
        rows = min(2 * rows, LARGEST_CHUNK)


def room_for(events: int) -> int:
    """Matches of a first chunk that has room for half as many events again as were in all matches."""
    return min(max(FIRST_CHUNK, 3 * events // (2 * _MEMBERS)), LARGEST_CHUNK)


def graph_values(
    graph: graphs.MatchGraph,
    roots: np.ndarray,
    earliest: np.ndarray,
    items: int,
    aggregates: values.Aggregates,
) -> Iterator[values.Rows]:
    """The values of the matches that end in some nodes, in chunks, in the order of
    :func:`graph_chunks`; the graph is unchanged until the last one.
    """
    search = enumeration.new_search(items, len(roots))
    running = np.empty((len(search.path), len(aggregates.columns)))

    def empty(rows: int, _: enumeration.Search) -> values.Rows:
        firsts, lasts, sizes = np.empty((3, items, rows), np.int64)
        return values.Rows(firsts, lasts, sizes, np.empty((len(aggregates.columns), rows)))

    def write(search: enumeration.Search, rows: values.Rows) -> int:
        nonlocal running
        if len(running) < len(search.path):
            running = np.concatenate((running, np.empty_like(running)))
        return values.enumerate_values(graph, roots, earliest, aggregates, search, running, rows)

    for rows, written in _filled(search, FIRST_CHUNK, empty, write):
        yield values.Rows(*(its[:, :written] for its in rows))


def graph_of_matches(matches: BranchMatches, times: np.ndarray) -> RootedGraph:
    """The graph of listed matches, a tree in which those with the same first events share them.

    They are of a SEQ, in written order, all different, and at least one; ``times`` are those of
    their last events.
    """
    firsts = matches.first_positions()
    prefix = np.full(len(matches), graphs.NONE)
    levels: list[np.ndarray] = []
    number = 0
    for item, column in enumerate(matches.columns):
        if not isinstance(column, SetColumn):
            column = SetColumn.of(np.arange(len(column) + 1), column)
        for place in range(int(column.sizes.max(initial=0))):
            rows = np.flatnonzero(column.sizes > place)
            position = column.pool[column.begin[rows] + place]
            keys, index, node = np.unique(
                np.stack((prefix[rows], position)), axis=1, return_index=True, return_inverse=True
            )
            level = np.zeros((len(index), graphs.COLUMNS), np.int64)
            level[:, graphs.ITEM] = item
            level[:, graphs.PREDECESSOR], level[:, graphs.POSITION] = keys
            level[:, graphs.START] = firsts[rows[index]]
            prefix[rows] = number + node.ravel()
            number += len(level)
            levels.append(level)
    order = np.argsort(matches.last_positions(), kind="stable")
    # A root has one history; with one bound for all, they are counted together.
    earliest = np.full(len(matches), firsts.min())
    return RootedGraph(
        graphs.graph_of(np.concatenate(levels)), prefix[order], earliest, times[order]
    )
