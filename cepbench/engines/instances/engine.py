"""The instance-based engine: the tables, state and calls of its kernels."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np

from cepbench.engines.instances.kernels import tables
from cepbench.engines.instances.kernels.advance import advance
from cepbench.engines.instances.kernels.conditions import SLOT_COLUMNS
from cepbench.engines.instances.kernels.room import empty_state
from cepbench.engines.instances.layout import InstanceLayout, instance_layout
from cepbench.engines.plan_runs.engine import BranchTask, Chunks, PlanEngine, warm_up_pattern
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.kernels.batches import NEVER
from cepbench.kernels.instructions import STACK
from cepbench.state import check_shape, damaged
from cepbench.streams.event_stream import EventStream


class InstanceEngine(PlanEngine):
    """The instance-based engine: event by event, each from its leaves to the root."""

    SAVED = (
        "state.events", "state.values", "state.expiring", "state.buffers", "state.arena",
        "state.cells", "state.lists[:]", "state.counts[:]", "state.peaks[:]", "state.totals[:]",
    )  # fmt: skip

    layout: InstanceLayout

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task)
        self.layout = instance_layout(
            task.branches, task.trees, task.placements, task.written, task.reader.code
        )
        self.state = empty_state(self.layout.plan, self.layout.width)
        self._nothing = _nothing(self.layout)
        self._scratch = _scratch(self.layout, self.latencies)
        warm_up()

    def node_counts(self) -> list[NodeCounts]:
        """See :meth:`PlanEngine.node_counts`."""
        layout = self.layout
        return self.counts_by_branch(layout.branches, layout.plan.window, self.state.counts)

    @property
    def peaks(self) -> np.ndarray:
        """See :mod:`cepbench.kernels.counts`."""
        return self.state.peaks

    def resumed(self) -> None:
        """Check that arrays fit each other; what is chosen is working space."""
        state, plan = self.state, self.layout.plan
        events, cells = len(state.events), len(state.cells)
        due = {
            "events": (events, tables.EVENT_COLUMNS),
            "values": (events, self.layout.width),
            "expiring": (events, len(plan.nodes)),
            "buffers": (plan.leaves, events),
            "arena": (int(state.lists[:, tables.CAPACITY] @ plan.nodes[:, tables.WIDTH]),),
            "cells": (cells, tables.CELL_COLUMNS),
        }
        for name, shape in due.items():
            check_shape(name, getattr(state, name), shape)
        for size in (events, cells):
            # Rings are indexed by a mask.
            if size == 0 or size & (size - 1):
                raise damaged(f"it has rings of {size} rows")
        self.state = state._replace(chosen=np.zeros((2, events), np.int64))

    def advance(
        self, batch: EventStream | None, first_position: int, until: int
    ) -> tuple[Chunks, int]:
        """See :meth:`PlanEngine.advance`."""
        layout = self.layout
        self.state, chunks, found, outcome = advance(
            layout.plan,
            self.task.limit,
            self.state,
            self._scratch,
            self._nothing if batch is None else self._taken(batch, first_position),
            layout.columns if self.task.reports else 0,
            until,
            has_sets=layout.has_sets,
            watched=self.task.watched,
        )
        if outcome == tables.TOO_MANY:
            leaves = layout.plan.leaves
            most = leaves + int(self.state.lists[leaves:, tables.LIVE].argmax())
            raise self.too_many(layout.nodes[most])
        return chunks, found

    def _taken(self, batch: EventStream, first_position: int) -> tables.Batch:
        """The events bound to leaves, in order, as arrays for the kernels."""
        found = self.leaf_events(batch)
        rows, begins = found.rows, found.begins
        if not len(rows):
            return self._nothing
        chosen = [rows[begin:end] for begin, end in pairwise(begins)]
        leaves = np.repeat(np.arange(len(chosen)), [len(its) for its in chosen])
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        events = rows[starts]
        values = np.full((len(events), self.layout.width), np.nan)
        for its, stored in zip(chosen, self.layout.values, strict=True):
            places = np.searchsorted(events, its)
            for column, expression in stored:
                values[places, column] = self.values(expression, batch, its)
        return tables.Batch(
            events=np.stack((batch.timestamps[events], events + first_position)),
            values=values,
            starts=np.append(starts, len(rows)),
            leaves=leaves[order],
        )


def _nothing(layout: InstanceLayout) -> tables.Batch:
    """A batch without events."""
    return tables.Batch(
        events=np.empty((2, 0), np.int64),
        values=np.empty((0, layout.width)),
        starts=np.zeros(1, np.int64),
        leaves=np.empty(0, np.int64),
    )


def _scratch(layout: InstanceLayout, latencies: np.ndarray) -> tables.Scratch:
    return tables.Scratch(
        progress=np.empty(tables.PROGRESS, np.int64),
        bound=np.zeros(layout.plan.leaves, np.int64),
        best=np.zeros(layout.plan.leaves, np.int64),
        stack=np.empty(STACK),
        slots=np.empty((2, SLOT_COLUMNS), np.int64),
        clock=np.empty(2, np.int64),
        latencies=latencies,
    )


@cache
def warm_up() -> None:
    """Compile the kernels or load them from the disk cache, to exclude this from measured times."""
    layout = instance_layout([warm_up_pattern()], [("a", "b")], [()], ["a", "b"], float)
    advance(
        layout.plan,
        1,
        empty_state(layout.plan, layout.width),
        _scratch(layout, np.empty(0, np.int64)),
        _nothing(layout),
        layout.columns,
        NEVER,
        has_sets=False,
        watched=False,
    )
