"""Room for rows: whatever is stored, moved and evicted, against lists of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.buffers import expire, has_room, make_room
from tests.kernels.plans import a_plan, a_state

pytestmark = pytest.mark.kernel

#: Nodes: (integer columns, float columns, whether an event's two times are one).
SHAPES = [(2, 0, True), (2, 2, True), (3, 1, False), (4, 0, False)]

Row = tuple[tuple[int, ...], tuple[float, ...]]


class Stored:
    """The arenas beside the naive lists that they should equal."""

    def __init__(self) -> None:
        nodes = np.full((len(SHAPES) + 1, tables.NODE_COLUMNS), -1, np.int64)
        for node, (ints, floats, single) in enumerate(SHAPES):
            nodes[node, tables.INTS], nodes[node, tables.FLOATS] = ints, floats
            nodes[node, tables.EARLIEST] = 0
            nodes[node, tables.LATEST] = 0 if single else 1
        # The root, which stores nothing in the arenas.
        nodes[-1, tables.INTS] = nodes[-1, tables.FLOATS] = 5
        self.plan = a_plan(nodes=nodes, stored=False)
        self.state = a_state(self.plan)
        self.rows: list[list[Row]] = [[] for _ in SHAPES]
        self.serial = 0

    def read(self, node: int) -> list[Row]:
        state, found = self.state.rows[node], []
        for row in range(state[tables.START], state[tables.END]):
            places = [
                [
                    state[offset] + column * state[tables.CAPACITY] + row
                    for column in range(self.plan.nodes[node, width])
                ]
                for offset, width in (
                    (tables.INT_OFFSET, tables.INTS),
                    (tables.FLOAT_OFFSET, tables.FLOATS),
                )
            ]
            ints, floats = self.state.ints[places[0]], self.state.floats[places[1]]
            found.append((tuple(ints.tolist()), tuple(floats)))
        return found

    def add(self, node: int, spans: list[tuple[int, int]]) -> None:
        """Rows by (time since the first, latest time)."""
        ints, floats, single = SHAPES[node]
        starts = self.state.rows[:, tables.START].copy()
        others = {n: (self.read(n), starts[n]) for n in range(len(SHAPES))}
        fresh = self.state.rows[node, tables.END] - self.state.rows[node, tables.FRESH]
        if not has_room(node, len(spans), self.plan, self.state):
            self.state = make_room(node, len(spans), self.plan, self.state)
        for other, (rows, start) in others.items():
            assert self.read(other) == rows
            if other != node:
                assert self.state.rows[other, tables.START] == start
        state = self.state.rows[node]
        assert state[tables.END] + len(spans) <= state[tables.CAPACITY]
        assert state[tables.END] - state[tables.FRESH] == fresh
        for age, latest in spans:
            times = (latest, self.serial) if single else (latest - age, latest)
            self.serial += 1
            row = (
                (*times, *(self.serial + 100 * c for c in range(2, ints))),
                tuple(self.serial / 2 + c for c in range(floats)),
            )
            at = state[tables.END]
            for column, value in enumerate(row[0]):
                place = state[tables.INT_OFFSET] + column * state[tables.CAPACITY] + at
                self.state.ints[place] = value
            for column, value in enumerate(row[1]):
                place = state[tables.FLOAT_OFFSET] + column * state[tables.CAPACITY] + at
                self.state.floats[place] = value
            state[tables.END] += 1
            self.rows[node].append(row)

    def expire(self, node: int, oldest: int) -> None:
        self.rows[node] = [row for row in self.rows[node] if row[0][0] >= oldest]
        live = expire(node, oldest, self.plan, self.state)
        assert live == len(self.rows[node])
        stored = self.read(node)
        assert [row for row in stored if row[0][0] >= oldest] == self.rows[node]
        # Not much more is stored than lives, and nothing at all that is known to be sorted.
        assert len(stored) <= (live if SHAPES[node][2] else 2 * live)
        assert self.state.rows[node, tables.FRESH] == self.state.rows[node, tables.END]


@given(
    st.lists(
        st.tuples(
            st.integers(0, len(SHAPES) - 1),
            st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), max_size=12),
            st.integers(0, 12),
            st.booleans(),
        ),
        max_size=25,
    )
)
def test_rows_are_as_in_lists(steps) -> None:
    stored = Stored()
    now, oldest = [0] * len(SHAPES), 0
    for node, added, window, forget in steps:
        spans = []
        for age, pause in added:
            now[node] += pause
            spans.append((age, now[node]))
        stored.add(node, spans)
        if forget:
            oldest = max(oldest, max(now) - window)
            stored.expire(node, oldest)
    for node in range(len(SHAPES)):
        stored.expire(node, oldest)


def test_what_begins_at_the_oldest_time_that_counts_is_kept() -> None:
    # Both times differ at this node, so that rows are compacted, the kept one not the last.
    node = next(n for n, (_, _, single) in enumerate(SHAPES) if not single)
    for ages in ([0, 9, 9, 9], [9, 0, 9, 9], [9, 9, 9, 0]):
        stored = Stored()
        stored.add(node, [(age, 20) for age in ages])
        stored.expire(node, 20)
        assert len(stored.read(node)) == 1 and len(stored.rows[node]) == 1


def test_memory_stays_where_rows_come_and_go() -> None:
    stored = Stored()
    sizes = []
    for tick in range(60):
        for node in range(len(SHAPES)):
            stored.add(node, [(5, tick), (0, tick)])
            stored.expire(node, tick - 10)
        sizes.append(len(stored.state.ints))
    assert sizes[-1] == sizes[30]
    assert sizes[-1] < 12 * sum(len(rows) * SHAPES[n][0] for n, rows in enumerate(stored.rows))
