"""Kernels of match graphs, each against histories that are listed one by one."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, groupby

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.runs.graph_matches import graph_chunks
from cepbench.engines.runs.kernels import graph as graphs
from cepbench.engines.runs.kernels.choice import NO_ROOM, choose
from cepbench.engines.runs.kernels.nodes import new_scratch
from cepbench.engines.runs.matches import BranchMatches
from cepbench.engines.runs.pieces import pieces_of
from tests.budgets import examples
from tests.kernels.match_graphs import (
    Drawn,
    History,
    any_match,
    match_graphs,
    repeated_roots,
    variables_of,
)

pytestmark = pytest.mark.kernel


def row_of(history: History, kleene: list[bool]) -> tuple[int | tuple[int, ...], ...]:
    """A history as a row of matches."""
    sets = {
        item: tuple(position for position, _ in its)
        for item, its in groupby(history, key=lambda event: event[1])
    }
    return tuple(its if kleene[item] else its[0] for item, its in sets.items())


@given(drawn=match_graphs(), first_chunk=st.integers(1, 3))
def test_matches_are_enumerated_as_listed(
    drawn: tuple[Drawn, list[bool], np.ndarray, np.ndarray], first_chunk: int
) -> None:
    its, kleene, roots, earliest = drawn
    variables = variables_of(kleene)
    chunks = list(graph_chunks(its.graph, roots, earliest, variables, first_chunk))
    listed = Counter(row_of(one, kleene) for one in its.listed(roots, earliest))
    rows = BranchMatches([v.name for v in variables], chunks).rows() if chunks else []
    assert Counter(rows) == listed


@given(
    drawn=repeated_roots(),
    first_chunk=st.sampled_from([4, 5, 6, 7, 1000]),
    members=st.integers(1, 3),
)
@examples(20)
def test_roots_of_one_run_are_enumerated_as_each_by_itself(
    drawn: tuple[Drawn, list[bool], np.ndarray, np.ndarray], first_chunk: int, members: int
) -> None:
    """Matches that are copied from those of an earlier root, also in their order."""
    its, kleene, roots, earliest = drawn

    def rows(some: slice) -> list[tuple[object, ...]]:
        variables = variables_of(kleene)
        chunks = graph_chunks(its.graph, roots[some], earliest[some], variables, first_chunk)
        return [row for chunk in chunks for row in BranchMatches(["v"], [chunk]).rows()]

    with pieces_of(room=members):
        together = rows(slice(None))
        # Of the roots backwards, the graph still has the marks of the roots forwards.
        backwards = rows(slice(None, None, -1))
        assert together == [row for k in range(len(roots)) for row in rows(slice(k, k + 1))]
    listed = Counter(row_of(one, kleene) for one in its.listed(roots, earliest))
    assert Counter(together) == Counter(backwards) == listed


@given(drawn=match_graphs())
def test_one_match_of_each_last_event_is_chosen(
    drawn: tuple[Drawn, list[bool], np.ndarray, np.ndarray],
) -> None:
    its, kleene, roots, earliest = drawn
    for root, bound in zip(roots.tolist(), earliest.tolist(), strict=True):
        graph = graphs.with_room(its.graph, 20)
        full = graphs.graph_of(graphs.stored_nodes(graph), int(graph.totals[graphs.FIRST]), 0)
        node = int(choose(graph, root, bound, new_scratch(graph)))
        fitting = [one for one in its.histories[root] if one[0][0] >= bound]
        if not fitting:
            assert node == graphs.NONE
            continue
        best = min(fitting, key=lambda one: (-one[0][0], len(one), row_of(one, kleene)))
        variables = variables_of(kleene)
        (columns,) = graph_chunks(graph, np.array([node]), np.array([bound]), variables)
        rows = BranchMatches([v.name for v in variables], [columns]).rows()
        assert rows == [row_of(best, kleene)]
        if graphs.room(full) < len(best):
            assert choose(full, root, bound, new_scratch(full)) == NO_ROOM


def test_a_set_that_ends_is_smaller_than_one_that_goes_on() -> None:
    """({0, 1}, {4}) against ({0}, {2, 4}): (0) comes before (0, 1)."""
    drawn = Drawn()
    first = drawn.add_event(0, 0)
    goes_on = drawn.add_event(1, 0, first)
    ends = drawn.add_event(2, 1, first)
    root = drawn.add_union(drawn.add_event(4, 1, goes_on), drawn.add_event(4, 1, ends))
    node = choose(drawn.graph, root, 0, new_scratch(drawn.graph))
    variables = variables_of([True, True])
    (columns,) = graph_chunks(drawn.graph, np.array([node]), np.array([0]), variables)
    assert BranchMatches(["v0", "v1"], [columns]).rows() == [((0,), (2, 4))]


def test_a_union_visits_nothing_expired() -> None:
    """However many histories are united in whatever order, a narrow window reads only its own."""
    rng = np.random.default_rng(5)
    drawn = Drawn()
    node = graphs.NONE
    for position in rng.permutation(2000):
        node = drawn.add_union(node, drawn.add_event(int(position), 0))
    everything = graph_chunks(drawn.graph, np.array([node]), np.array([0]), variables_of([False]))
    found = np.concatenate([column for (column,) in everything])
    assert sorted(found.tolist()) == list(range(2000))
    drawn.graph.nodes[drawn.graph.nodes[:, graphs.START] < 1990] = -(10**9)
    (chunk,) = graph_chunks(drawn.graph, np.array([node]), np.array([1995]), variables_of([False]))
    assert sorted(chunk[0].tolist()) == [1995, 1996, 1997, 1998, 1999]


def test_long_matches_are_enumerated() -> None:
    """The search and its chunks grow with the longest match."""
    drawn, node = Drawn(), graphs.NONE
    for position in range(3000):
        node = drawn.add_event(position, 0, node)
    (chunk,) = graph_chunks(drawn.graph, np.array([node]), np.array([0]), variables_of([True]), 1)
    assert BranchMatches(["v0"], [chunk]).rows() == [(tuple(range(3000)),)]


def test_marks_of_an_earlier_enumeration_are_checked() -> None:
    """Backwards, the number of a root is that of another one before."""
    drawn, roots = Drawn(), [graphs.NONE]
    for position in range(6):
        roots.append(drawn.add_event(position, 0, roots[-1]))
    for order in (1, -1):
        its = np.array(roots[1:])[::order]
        (chunk,) = graph_chunks(drawn.graph, its, np.zeros(6, np.int64), variables_of([True]))
        assert (
            BranchMatches(["v0"], [chunk]).rows()
            == [(tuple(range(n)),) for n in range(1, 7)][::order]
        )


def test_memory_is_that_of_a_window() -> None:
    graph = graphs.empty_graph(256)
    reached = [graphs.NONE] * 3
    for position in range(3000):
        item = position % 3
        before = reached[item - 1] if item else graphs.NONE
        if item == 1:
            before = graphs.add_union(graph, before, reached[item])
        node = graphs.add_event(graph, position, item, before)
        reached[item] = graphs.add_union(graph, node, reached[item])
        graphs.reclaim(graph, position - 30)
        assert graphs.room(graph) > graphs.UNION_NODES


def subsets(types: str, kleene: list[bool], window: int) -> set[tuple[object, ...]]:
    """The matches of SEQ under skip-till-any-match, from all sets of events."""
    found: set[tuple[object, ...]] = set()
    events = [(position, int(letter)) for position, letter in enumerate(types) if letter != "-"]
    for size in range(len(kleene), len(events) + 1):
        for chosen in combinations(events, size):
            items = [item for _, item in chosen]
            if (
                items == sorted(items)
                and set(items) == set(range(len(kleene)))
                and all(kleene[item] or items.count(item) == 1 for item in items)
                and chosen[-1][0] - chosen[0][0] <= window
            ):
                found.add(row_of(chosen, kleene))
    return found


@pytest.mark.parametrize(
    ("types", "kleene"),
    [
        ("0101-1202110122", [False, True, False]),
        ("010-1100101", [True, False]),
        ("0-00-000", [True]),
        ("01011-01101", [False, True]),
    ],
)
def test_matches_of_sequences_are_their_subsets(types: str, kleene: list[bool]) -> None:
    drawn, roots, earliest = any_match(types, kleene, 6)
    variables = variables_of(kleene)
    chunks = list(graph_chunks(drawn.graph, roots, earliest, variables))
    found = BranchMatches([v.name for v in variables], chunks).rows()
    assert len(found) == len(set(found)) > 10
    assert set(found) == subsets(types, kleene, 6)
