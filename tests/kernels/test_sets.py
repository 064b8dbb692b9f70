"""Pieces of the kernels of sets and strategies, each against a way to do it that is plain to see."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.consume import choose_disjoint
from cepbench.engines.joins.kernels.pool import compacted
from cepbench.engines.joins.kernels.sets import _count_sets
from cepbench.engines.runs.latency import Latency
from cepbench.kernels import clock
from cepbench.kernels.instructions import RULE_COLUMNS
from tests.kernels.plans import a_plan, a_state

pytestmark = pytest.mark.kernel

TIMES = st.lists(st.integers(0, 12), min_size=1, max_size=9).map(sorted)


def plan_of(nodes: np.ndarray, own: list[list[tuple[int, ...]]], window: int = 0) -> tables.Plan:
    """A plan of which each node has only rules about positions."""
    spans = np.zeros((len(nodes), tables.RULE_KINDS + 1), np.int64)
    written: list[tuple[int, ...]] = []
    for node, rules_of_node in enumerate(own):
        spans[node, : tables.POSITIONS + 1] = len(written)
        written += rules_of_node
        spans[node, tables.POSITIONS + 1 :] = len(written)
    rules = np.array(written, np.int64).reshape(-1, RULE_COLUMNS)
    return a_plan(nodes=nodes, spans=spans, rules=rules, window=window, consuming=True)


@given(times=TIMES, fresh=st.integers(0, 9), window=st.integers(0, 12), is_new=st.booleans())
def test_sets_are_counted_as_if_each_were_made(
    times: list[int], fresh: int, window: int, is_new: bool
) -> None:
    """Of one row, whose earliest timestamp bounds the sets as their own does."""
    earliest = 3
    fitting = [time for time in times if time <= earliest + window]
    number, fresh = len(fitting), min(fresh, len(fitting))
    expected = 0
    for size in range(1, number + 1):
        for chosen in combinations(range(number), size):
            first = min(earliest, fitting[chosen[0]])
            if fitting[chosen[-1]] - first <= window and (is_new or chosen[-1] >= fresh):
                expected += 1
    # Node 0 is the row's, node 1 the leaf's, node 2 makes the sets.
    nodes = np.zeros((3, tables.NODE_COLUMNS), np.int64)
    nodes[2, tables.LEFT], nodes[2, tables.RIGHT] = 0, 1
    plan = plan_of(nodes, [[], [], []], window)
    members = np.arange(number)[np.newaxis].repeat(2, axis=0)
    state = a_state(plan, ints=np.array([earliest, *fitting], np.int64), members=members)
    state.rows[0, tables.CAPACITY] = 1
    state.rows[1, [tables.INT_OFFSET, tables.CAPACITY, tables.END]] = 1, number, number
    state.rows[1, tables.FRESH] = fresh
    assert _count_sets(2, 0, is_new, 0, number, plan, state) == expected


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True).map(sorted),
            st.integers(8, 12),
        ),
        max_size=8,
    )
)
def test_disjoint_rows_are_chosen_in_order(rows: list[tuple[list[int], int]]) -> None:
    """Rows of a set and a position; the naive way sorts them and goes through them once."""
    expected, used = [], set()
    for chosen, other in sorted(rows, key=lambda row: (row[1], row)):
        events = [*chosen, other]
        if used.isdisjoint(events):
            used.update(events)
            expected.append(events)
    nodes = np.zeros((1, tables.NODE_COLUMNS), np.int64)
    nodes[0, [tables.INTS, tables.IS_ROOT]] = 3, 1
    sizes = [len(chosen) for chosen, _ in rows]
    begin = np.cumsum([0, *sizes])[:-1].tolist()
    pool = [position for chosen, _ in rows for position in chosen]
    members = np.array([[-1] * len(pool), pool], np.int64)
    ints = np.array([*begin, *sizes, *(other for _, other in rows)], np.int64)
    plan = plan_of(nodes, [[(0, 1, 0, 0), (2, 0, 0, 0)]])
    state = a_state(plan, ints=ints, members=members)
    state.rows[0, [tables.CAPACITY, tables.DUE]] = len(rows)
    choose_disjoint(plan, state)
    chosen = state.rows[0, tables.GIVEN]
    columns = ints.reshape(3, -1)
    found = [
        [*members[1, start : start + size].tolist(), other]
        for start, size, other in columns[:, :chosen].T.tolist()
    ]
    assert sorted(found) == sorted(expected)
    # The others are behind them, none lost.
    assert sorted(zip(*columns[:2].tolist(), strict=True)) == sorted(zip(begin, sizes, strict=True))


@given(
    st.lists(st.lists(st.integers(0, 99), min_size=1, max_size=4), min_size=1, max_size=6),
    st.lists(st.integers(0, 5), max_size=9),
    st.integers(0, 20),
)
def test_the_pool_keeps_what_rows_refer_to(
    sets: list[list[int]], mentions: list[int], more: int
) -> None:
    """Rows may share a set, and sets that no row refers to make room."""
    rows = [number % len(sets) for number in mentions]
    begin = np.cumsum([0, *map(len, sets)])[:-1]
    pool = np.array([position for one in sets for position in one], np.int64)
    members = np.array([pool + 1000, pool])
    nodes = np.zeros((1, tables.NODE_COLUMNS), np.int64)
    sizes = [len(sets[row]) for row in rows]
    ints = np.array([*begin[rows], *sizes], np.int64) if rows else np.empty(0, np.int64)
    plan = plan_of(nodes, [[(0, 1, 0, 0)]])
    state = a_state(plan, ints=ints, members=members, used=np.array([len(pool)]))
    state.rows[0, tables.CAPACITY] = state.rows[0, tables.END] = len(rows)
    after = compacted(more, plan, state, []).members
    assert state.used[0] == sum(len(sets[row]) for row in set(rows))
    assert after.shape[1] >= state.used[0] + more
    for number, row in enumerate(rows):
        start, size = ints[number], ints[len(rows) + number]
        assert after[1, start : start + size].tolist() == sets[row]
        assert after[0, start : start + size].tolist() == [p + 1000 for p in sets[row]]


@given(st.lists(st.floats(1e-8, 100), min_size=1, max_size=50))
def test_quantiles_of_latencies_are_as_fine_as_the_bins(seconds: list[float]) -> None:
    histogram = np.zeros(clock.BINS, np.int64)
    for value in seconds:
        histogram[int(np.log2(value * 1e9) * clock.BINS_PER_DOUBLING)] += 1
    latency = Latency(histogram)
    ordered = sorted(seconds)
    assert latency.count == len(seconds)
    assert latency.maximum == pytest.approx(ordered[-1], rel=0.012)
    assert latency.median == pytest.approx(ordered[(len(ordered) - 1) // 2], rel=0.012)
    assert latency.mean == pytest.approx(np.mean(seconds), rel=0.012)
    assert latency.p95 <= latency.p99 <= latency.maximum


def test_without_matches_there_is_no_latency() -> None:
    latency = Latency(np.zeros(clock.BINS, np.int64))
    assert latency.count == 0
    assert all(np.isnan([latency.mean, latency.median, latency.p95, latency.p99]))


def test_the_clock_runs_forward() -> None:
    room = np.empty(2, np.int64)
    times = [clock.now(room) for _ in range(100)]
    assert times == sorted(times)
    assert times[-1] > times[0]
