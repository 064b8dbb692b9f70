"""What a restored state has to satisfy, so that kernels stay within its arrays."""

from __future__ import annotations

import numpy as np

from cepbench.engines.instances.kernels.tables import (
    BEFORE,
    CAPACITY,
    CELLS,
    END,
    FIRST,
    FIRST_CELL,
    FIRST_EVENT,
    FIRST_LIVE,
    MEMBER,
    NEXT_CELL,
    NEXT_EVENT,
    OFFSET,
    OLDEST,
    SIZE,
    SLOTS,
    START,
    VARIABLES,
    WIDTH,
    Plan,
    State,
)
from cepbench.engines.runs.state import check_range, check_sorted, damaged

#: The shapes of arrays.
SHAPES = {
    "events": "events -", "values": "events -", "expiring": "events -", "buffers": "- events",
    "arena": "*", "cells": "cells -", "lists": "-", "counts": "-", "peaks": "-", "totals": "-",
}  # fmt: skip


def check(state: State, plan: Plan) -> None:
    """Check a state.

    Parameters
    ----------
    state : State
    plan : Plan

    Raises
    ------
    SnapshotError
        If a row, an event or a cell may be sought that there is not.
    """
    lists, totals = state.lists, state.totals
    inner, widths = lists[plan.leaves :], plan.nodes[plan.leaves :, WIDTH]
    for name, ring, first, behind in (
        ("events", state.events, FIRST_EVENT, NEXT_EVENT),
        ("cells", state.cells, FIRST_CELL, NEXT_CELL),
    ):
        # Rings are indexed by a mask.
        if len(ring) == 0 or len(ring) & (len(ring) - 1):
            raise damaged(f"{name!r} has {len(ring)} rows")
        check_range(name, totals[[first, behind]], 0, 1 << 62)
        check_range(name, totals[[behind]] - totals[first], 0, len(ring) + 1)
    check_range("events", totals[[FIRST_LIVE]], totals[FIRST_EVENT], totals[NEXT_EVENT] + 1)
    check_range("rows", lists[:, [START, END]], 0, 1 << 62)
    rows = lists[:, END] - lists[:, START]
    check_range("rows", rows[: plan.leaves], 0, len(state.events) + 1)
    check_range("rows", rows, 0, 1 << 40)
    check_range("room", inner[:, CAPACITY], 1, 1 << 40)
    check_range("room", inner[:, CAPACITY] - inner[:, END], 0, 1 << 40)
    sizes = inner[:, CAPACITY] * widths
    if sizes.sum() != len(state.arena) or (inner[:, OFFSET] != np.cumsum(sizes) - sizes).any():
        raise damaged("the rows of nodes are not where they should be")
    stored = np.arange(totals[FIRST_EVENT], totals[NEXT_EVENT]) & (len(state.events) - 1)
    cells_when_arrived = np.append(state.events[stored, CELLS], totals[NEXT_CELL])
    check_sorted("cells of events", np.append(0, cells_when_arrived))
    _check_cells(state, cells_when_arrived)
    for node in range(plan.leaves, len(plan.nodes)):
        _check_records(node, state, plan)


def _check_cells(state: State, when_arrived: np.ndarray) -> None:
    """Check that the sets of cells end, and are stored as long as their oldest events."""
    first, behind = state.totals[[FIRST_CELL, NEXT_CELL]].tolist()
    first_event, last_event = state.totals[[FIRST_EVENT, NEXT_EVENT]].tolist()
    numbers = np.arange(first, behind)
    mask = len(state.cells) - 1
    cells = state.cells[numbers & mask]
    # The first ones may be of events that are stored no more, and are sought no more.
    numbers, cells = (its[cells[:, OLDEST] >= first_event] for its in (numbers, cells))
    check_range("events", cells[:, OLDEST], first_event, last_event)
    check_range("members", cells[:, MEMBER], first_event, last_event)
    check_range("cells", cells[:, BEFORE], -1, behind)
    check_range("cells", cells[:, BEFORE] - numbers, -(1 << 62), 0)
    check_range("cells", numbers - when_arrived[cells[:, OLDEST] - first_event], 0, 1 << 62)
    alone = cells[:, BEFORE] < 0
    before = state.cells[cells[~alone, BEFORE] & mask]
    sizes, oldest = np.ones(len(cells), np.int64), cells[:, MEMBER].copy()
    sizes[~alone], oldest[~alone] = before[:, SIZE] + 1, before[:, OLDEST]
    if (
        (before[:, MEMBER] >= cells[~alone, MEMBER]).any()
        or (cells[~alone, BEFORE] < first).any()
        or (sizes != cells[:, SIZE]).any()
        or (oldest != cells[:, OLDEST]).any()
    ):
        raise damaged("sets do not have the members that they should")


def _check_records(node: int, state: State, plan: Plan) -> None:
    """Check that the instances of a node are of stored events and sets."""
    width, (first, last) = plan.nodes[node, WIDTH], plan.spans[node, SLOTS : SLOTS + 2]
    offset, begin, end = state.lists[node, [OFFSET, START, END]].tolist()
    records = state.arena[offset + begin * width : offset + end * width].reshape(-1, width)
    records = records[records[:, FIRST] >= state.totals[FIRST_EVENT]]
    for place, is_set in enumerate(plan.rules[first:last, 1].tolist()):
        bound = records[:, VARIABLES + place]
        if is_set:
            check_range("sets", bound, *state.totals[[FIRST_CELL, NEXT_CELL]].tolist())
            bound = state.cells[bound & (len(state.cells) - 1), OLDEST]
        check_range("events", bound, 0, int(state.totals[NEXT_EVENT]))
        check_range("events", bound - records[:, FIRST], 0, 1 << 62)
