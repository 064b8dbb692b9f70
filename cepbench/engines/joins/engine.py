"""The join engine: the tables, state and calls of its kernels."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from cepbench.engines.joins.kernels import tables
from cepbench.engines.joins.kernels.advance import advance
from cepbench.engines.joins.kernels.blocks import BLOCKS
from cepbench.engines.joins.kernels.buffers import empty_state, place_columns
from cepbench.engines.joins.kernels.candidates import GUIDE, OUTER_BLOCK
from cepbench.engines.joins.kernels.clauses import SLOT_COLUMNS
from cepbench.engines.joins.kernels.equality import INDEXED
from cepbench.engines.joins.kernels.filters import BLOCK
from cepbench.engines.joins.kernels.pairs import MOST_PAIRS
from cepbench.engines.joins.kernels.pool import most_members
from cepbench.engines.joins.kernels.sets import MOST_STORED, MOST_VISITED
from cepbench.engines.joins.layout import JoinLayout, join_layout
from cepbench.engines.plan_runs.engine import BranchTask, Chunks, PlanEngine, warm_up_pattern
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.engines.plan_runs.partitions import PartitionRanks, warm_up_partitions
from cepbench.engines.plan_runs.sequences import rounds_of
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.pieces import events_at_once
from cepbench.errors import PartialMatchLimitError
from cepbench.kernels.batches import NEVER
from cepbench.kernels.counts import COMPARED, COUNT_COLUMNS
from cepbench.kernels.instructions import STACK
from cepbench.patterns.parse import parse
from cepbench.state import check_shape, damaged
from cepbench.streams.event_stream import EventStream

#: Moments per window, at which extensible rows are counted; see `kernels.joins.steps`.
MOMENTS_PER_WINDOW = 8

#: The same under the consuming strategy: the earlier events are consumed, the fewer rows are
#: joined.
CONSUMING_MOMENTS_PER_WINDOW = 128

#: Events in a step under the consuming strategy, even if more share a timestamp.
CONSUMING_EVENTS_PER_STEP = 16

#: A step takes moments up to this number of events, but at most this number of moments.
EVENTS_PER_STEP = 256
MOMENTS_PER_STEP = 64

#: Events in a step if rows of an inner node are not created in time order: fewer, because all of
#: them are scanned.
UNSORTED_EVENTS_PER_STEP = 64

#: Events in a round, of which the arrays of those that are bound stay in the caches, without partitions.
_ROUND = 1 << 18

#: Binary logarithm of the most sets that :mod:`cepbench.engines.joins.kernels.sets` counts in closed form.
_MOST_COUNTED = 62


class JoinEngine(PlanEngine):
    """The join engine: processes steps of time, node by node.

    If latencies are measured, every timestamp is a step.
    """

    SAVED = ("_packed", "state.counts[:]", "state.peaks[:]")

    layout: JoinLayout

    def __init__(self, task: BranchTask) -> None:
        super().__init__(task)
        branches = tuple(task.branches)
        written = task.written if len(branches) > 1 else branches[0].positive_names
        compiled = (
            branches,
            tuple(task.trees),
            tuple(task.placements),
            tuple(written),
            task.reports,
        )
        self.layout = _layout_without_texts(*compiled) or join_layout(
            *compiled, code=task.reader.code
        )
        strategy = task.branches[0].strategy
        self.state = empty_state(self.layout.plan)
        self._nothing = _nothing(self.layout)
        if (places := self.layout.places) is not None:
            window = self.layout.plan.window
            most = max(map(abs, places), default=0)
            timed = min(places, default=0) < 0
            self.ranks = PartitionRanks(strategy.attribute, window, most, timed=timed)
        self._scratch = _scratch(self.layout, self.latencies)
        self._pace = _pace(self.layout.plan, timed=task.timed, watched=task.watched)
        _warm_up(self._scratch.extras is not None)

    def node_counts(self) -> list[NodeCounts]:
        """See :meth:`PlanEngine.node_counts`."""
        layout, counts = self.layout, self.state.counts.copy()
        checks = slice(len(layout.leaves), layout.plan.inner)
        # Comparisons of a check are attributed to the node whose rows it tests.
        tested = layout.plan.nodes[checks, tables.LEFT]
        np.add.at(counts[:, COMPARED], tested, counts[checks, COMPARED])
        return self.counts_by_branch(layout.branches, layout.plan.window, counts)

    @property
    def peaks(self) -> np.ndarray:
        """See :mod:`cepbench.kernels.counts`."""
        return self.state.peaks

    @property
    def _packed(self) -> tuple[np.ndarray, ...]:
        """Rows by node and their shifts, all integers, all floats, members: what is in use of each."""
        nodes, state = self.layout.plan.nodes, self.state

        def stored(arena: np.ndarray, offset: int, width: int) -> np.ndarray:
            pieces = [np.empty(0, arena.dtype)]
            for node, rows in enumerate(state.rows):
                for column in range(nodes[node, width]):
                    begin = rows[offset] + column * rows[tables.CAPACITY]
                    pieces.append(arena[begin + rows[tables.START] : begin + rows[tables.END]])
            return np.concatenate(pieces)

        return (
            state.rows[:, tables.END] - state.rows[:, tables.START],
            state.rows[:, tables.SHIFT] + state.rows[:, tables.START],
            stored(state.ints, tables.INT_OFFSET, tables.INTS),
            stored(state.floats, tables.FLOAT_OFFSET, tables.FLOATS),
            state.members[:, : state.used[0]],
        )

    @_packed.setter
    def _packed(self, packed: tuple[np.ndarray, ...]) -> None:
        sizes, shifts, ints, floats, members = packed
        nodes, empty = self.layout.plan.nodes, empty_state(self.layout.plan)
        check_shape("rows", sizes, (len(nodes),))
        check_shape("shifts", shifts, sizes.shape)
        check_shape("members", members, (2, *members.shape[-1:]))
        if (sizes < 0).any():
            raise damaged("it counts less than no rows")
        rows = np.zeros_like(empty.rows)
        for column in (tables.CAPACITY, tables.END, tables.FRESH):
            rows[:, column] = sizes
        rows[:, tables.SHIFT] = shifts
        for name, array, offset, width in (
            ("integers", ints, tables.INT_OFFSET, tables.INTS),
            ("floats", floats, tables.FLOAT_OFFSET, tables.FLOATS),
        ):
            check_shape(name, array, (place_columns(nodes, rows, offset, width),))
        used = np.array([members.shape[1]])
        self.state = empty._replace(rows=rows, ints=ints, floats=floats, members=members, used=used)

    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """See :meth:`Engine.run`; in rounds, whose arrays stay in the caches."""
        if self.ranks is None:
            rounds = [*rounds_of(batch, first_position, _ROUND, with_ties=True)]
        else:
            rounds = [*rounds_of(batch, first_position)]
        if len(rounds) < 2:
            return super().run(batch, first_position, ended=ended)
        last = rounds[-1][1]
        return Found.joined(
            super(JoinEngine, self).run(part, position, ended=ended and position == last)
            for part, position in rounds
        )

    def advance(
        self, batch: EventStream | None, first_position: int, until: int
    ) -> tuple[Chunks, int]:
        """See :meth:`PlanEngine.advance`."""
        plan, columns = self.layout.plan, self.layout.columns
        events = self._nothing if batch is None else self._leaf_events(batch, first_position)
        if events is self._nothing and plan.waits == tables.WAITS_NOT:
            return [(np.empty((columns, 0), np.int64), self.state.members[1])], 0
        self.state, chunks, found, outcome = advance(
            plan, self._pace, self.task.limit, self.state, self._scratch, events, columns, until
        )
        if outcome in (tables.TOO_MANY, tables.TOO_MANY_MEMBERS):
            first = self.layout.plan.inner
            rows = self.state.rows[first:, tables.END] - self.state.rows[first:, tables.START]
            members = most_members(self.task.limit) if outcome != tables.TOO_MANY else 0
            raise self.too_many(self.layout.nodes[first + int(rows.argmax())], members=members)
        if outcome == tables.TOO_LARGE:
            raise PartialMatchLimitError(self._too_large())
        return [(chunk, self.state.members[1]) for chunk in chunks], found

    def _too_large(self) -> str:
        plan, last = self.layout.plan, len(self.layout.plan.nodes) - 1
        counted = not self.task.reports and not plan.stored
        most: dict[int, list[str]] = {}
        for node in range(plan.inner, last + 1):
            row = plan.nodes[node]
            if row[tables.KIND] != tables.SETS or row[tables.SET_LIMIT] == 1:
                continue
            limit = MOST_STORED
            if counted and node == last:
                steps = plan.spans[node, tables.STEP : tables.STEP + 2]
                free = row[tables.SET_STEP] < 0 and steps[0] == steps[1]
                limit = _MOST_COUNTED if free else MOST_VISITED
            most.setdefault(limit, []).append(self.layout.nodes[row[tables.RIGHT]][0])
        fit = " or ".join(f"2^{limit} sets in KL({', '.join(most[limit])})" for limit in most)
        later = ""
        if not self.task.reports and MOST_STORED in most:
            later = f"a plan that joins KL({most[MOST_STORED][0]}) last counts up to 2^{_MOST_COUNTED}; "
        return (
            f"so many events fit within one window that there are more than {fit}; use a rarer type, "
            "a shorter window, or conditions on neighbours such as b[i].x > b[i-1].x; "
            f'{later}evaluator="sase" with output="count" or "compressed" has no such limit, nor has '
            "AGG COUNT"
        )

    def _leaf_events(self, batch: EventStream, first_position: int) -> tables.Batch:
        """The events that can be bound to each leaf, as arrays for the kernels."""
        columns: list[np.ndarray] = []
        if self.ranks is not None and self.layout.places is not None:
            places = self.ranks.of(batch, self.task.reader, first_position)
            columns += [places[max(place, -1)] for place in self.layout.places]
        events = self.leaf_events(batch)
        rows = events.rows
        if not len(rows):
            return self._nothing
        integers = np.empty((len(self._nothing.events), len(rows)), np.int64)
        events.take_times(integers[0])
        np.add(rows, first_position, out=integers[1])
        for its, found in zip(columns, integers[2:], strict=True):
            np.take(its, rows, out=found, mode="clip")
        values = self.leaf_values(events, self.layout.values)
        return tables.Batch(integers, np.array(events.begins), values)


def _nothing(layout: JoinLayout) -> tables.Batch:
    """A batch without events."""
    return tables.Batch(
        events=np.empty((2 + len(layout.places or ()), 0), np.int64),
        starts=np.zeros(len(layout.leaves) + 1, np.int64),
        values=np.empty((0, 0)),
    )


@lru_cache(maxsize=256)
def _layout_without_texts(*compiled: Any) -> JoinLayout | None:
    """The cached :func:`join_layout` of patterns and plans.

    None if they mention texts, whose codes are those of a reader.
    """
    texts: list[str] = []

    def code(text: str) -> float:
        texts.append(text)
        return 0.0

    layout = join_layout(*compiled, code=code)
    return None if texts else layout


def _pace(plan: tables.Plan, *, timed: bool, watched: bool) -> tables.Pace:
    cap = CONSUMING_EVENTS_PER_STEP if plan.consuming else 0
    if timed:
        return tables.Pace(length=1, most=1, enough=1, cap=cap, watched=watched)
    if plan.consuming:
        length = max(1, plan.window // CONSUMING_MOMENTS_PER_WINDOW)
        return tables.Pace(length=length, most=1, enough=1, cap=cap, watched=watched)
    length = max(1, plan.window // MOMENTS_PER_WINDOW)
    in_order = plan.nodes[plan.inner : -1, tables.SORTED].all()
    enough = events_at_once(EVENTS_PER_STEP if in_order else UNSORTED_EVENTS_PER_STEP)
    return tables.Pace(length=length, most=MOMENTS_PER_STEP, enough=enough, cap=0, watched=watched)


def _scratch(layout: JoinLayout, latencies: np.ndarray) -> tables.Scratch:
    columns = layout.integer_columns
    return tables.Scratch(
        mask=np.empty(BLOCK, np.uint8),
        chosen=np.empty(BLOCK, np.int64),
        stack=np.empty((STACK, BLOCK)),
        low=np.empty((columns, OUTER_BLOCK), np.int64),
        high=np.empty((columns, OUTER_BLOCK), np.int64),
        starts=np.empty(OUTER_BLOCK, np.int64),
        stops=np.empty(OUTER_BLOCK, np.int64),
        rectangle=np.empty(tables.RECTANGLE, np.int64),
        progress=np.empty(tables.PROGRESS, np.int64),
        clock=np.empty(2, np.int64),
        latencies=latencies,
        outer_of=np.empty(MOST_PAIRS, np.int64),
        inner_of=np.empty(MOST_PAIRS, np.int64),
        guide=np.empty(GUIDE + 1, np.int64),
        heads=np.empty(INDEXED, np.int64),
        chain=np.empty(INDEXED, np.int64),
        extremes=np.empty(BLOCKS),
        moments=np.empty(MOMENTS_PER_STEP, np.int64),
        live=np.empty((2, MOMENTS_PER_STEP), np.int64),
        before=np.empty((len(layout.plan.nodes), COUNT_COLUMNS), np.int64),
        ahead=np.empty(len(layout.leaves), np.int64),
        due=np.empty(len(layout.leaves), np.int64),
        extras=_extras(layout),
    )


def _extras(layout: JoinLayout) -> tables.Extras | None:
    plan = layout.plan
    joins = plan.nodes[plan.inner :, tables.KIND] == tables.JOINS
    checked = (plan.spans[:, tables.ROW] < plan.spans[:, tables.ROW + 1]).any()
    if joins.all() and plan.inner == len(layout.leaves) and not checked and not plan.stored:
        return None
    return tables.Extras(
        slots=np.empty((2 + len(layout.leaves), SLOT_COLUMNS), np.int64),
        values=np.empty(STACK),
        alive=np.empty(OUTER_BLOCK, np.uint8),
    )


def warm_up() -> None:
    """Compile all kernels or load them from the disk cache."""
    for extras in (False, True):
        _warm_up(extras)
    warm_up_partitions()


@cache
def _warm_up(extras: bool) -> None:
    """The same for plans with or without extras only, to exclude it from measured times."""
    pattern = warm_up_pattern()
    if extras:
        pattern = parse("PATTERN AND(A a, KL(B b)) WITHIN 1 units")
    layout = join_layout([pattern], [("a", "b")], [()], ["a", "b"], positions=True, code=float)
    batch = tables.Batch(
        events=np.zeros((2, 2), np.int64),
        starts=np.array([0, 1, 2]),
        values=np.empty((0, 2)),
    )
    advance(
        layout.plan,
        _pace(layout.plan, timed=False, watched=False),
        1,
        empty_state(layout.plan),
        _scratch(layout, np.empty(0, np.int64)),
        batch,
        layout.columns,
        NEVER,
    )
