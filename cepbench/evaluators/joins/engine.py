"""Runs plans over the batches of a stream: the kernels, their state, and the matches found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache

import numpy as np
import pandas as pd

from cepbench.errors import PartialMatchLimitError
from cepbench.evaluators.joins.forest import forest_layout, places_of
from cepbench.evaluators.joins.layout import JoinLayout, join_layout
from cepbench.evaluators.joins.node_table import NodeCounts
from cepbench.evaluators.joins.nodes import Tree
from cepbench.evaluators.joins.partitions import PartitionRanks
from cepbench.evaluators.joins.snapshot import pack, unpack
from cepbench.evaluators.matches import BranchMatches, Column, Found, SetColumn
from cepbench.kernels import clock
from cepbench.kernels.counts import COMPARED
from cepbench.kernels.instructions import STACK
from cepbench.kernels.joins import tables
from cepbench.kernels.joins.advance import advance
from cepbench.kernels.joins.buffers import empty_state
from cepbench.kernels.joins.candidates import GUIDE, OUTER_BLOCK
from cepbench.kernels.joins.clauses import SLOT_COLUMNS
from cepbench.kernels.joins.equality import INDEXED
from cepbench.kernels.joins.filters import BLOCK
from cepbench.kernels.joins.pairs import MOST_PAIRS
from cepbench.kernels.joins.sets import MOST_STORED, MOST_VISITED
from cepbench.kernels.joins.steps import NEVER
from cepbench.kernels.sorting import count_types, rows_by_type
from cepbench.patterns.arrays import clause_holds, expression_values
from cepbench.patterns.model import Attribute, Kind, Pattern
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: Moments in a window, at which extensible rows are counted; see `kernels.joins.steps`.
MOMENTS_PER_WINDOW = 8

#: The same under the consuming strategy: the sooner events are consumed, the less is joined.
CONSUMING_MOMENTS_PER_WINDOW = 128

#: Events in a step under the consuming strategy, however many share a timestamp.
CONSUMING_EVENTS_PER_STEP = 16

#: A step takes moments up to so many events, but no more than so many moments.
EVENTS_PER_STEP = 256
MOMENTS_PER_STEP = 64

#: Events in a step if rows of an inner node are not created in the order of time: all of them are
#: tested, so fewer are better.
UNSORTED_EVENTS_PER_STEP = 64


class Engine:
    """Finds the matches of one branch of a pattern, or of several that consume each other's events.

    Parameters
    ----------
    branches : sequence of Pattern
        Without OR; several with the consuming strategy and one window.
    trees : sequence of nested pairs of names
        A plan for each.
    written : sequence of str
        The variables of all branches in the order of the pattern.
    reader : NumericReader
        Assigns codes to texts; may be shared.
    reports : bool
        Whether matches are returned, or only counted.
    limit : int
        How many partial matches may be stored.
    timed : bool
        Whether to measure latencies; events are then processed one timestamp after the other.
    watched : bool
        Whether to measure the time spent in each node.
    """

    def __init__(
        self,
        branches: Sequence[Pattern],
        trees: Sequence[Tree],
        *,
        written: Sequence[str],
        reader: NumericReader,
        reports: bool,
        limit: int,
        timed: bool,
        watched: bool,
    ) -> None:
        self.branches = tuple(branches)
        self.limit = limit
        self._reader = reader
        self._reports = reports
        self._layouts = [
            _layout(branch.with_partition(), tree, reports, reader)
            for branch, tree in zip(branches, trees, strict=True)
        ]
        self.layout = (
            self._layouts[0] if len(branches) == 1 else forest_layout(self._layouts, written)
        )
        strategy = branches[0].strategy
        self.state = empty_state(self.layout.plan)
        self.ranks = PartitionRanks(strategy.attribute) if self.layout.ranks else None
        self._scratch = _scratch(self.layout, timed)
        self._pace = _pace(self.layout.plan, timed=timed, watched=watched)
        warm_up()

    def node_counts(self) -> list[NodeCounts]:
        """Counts at the nodes of each branch's plan."""
        found = []
        for layout, place in zip(self._layouts, places_of(self._layouts), strict=True):
            leaves, inner = len(layout.leaves), layout.plan.inner
            counts = self.state.counts[place]
            # Comparisons of a check count at the node whose rows it tests.
            tested = layout.plan.nodes[leaves:inner, tables.LEFT]
            np.add.at(counts[:, COMPARED], tested, counts[leaves:inner, COMPARED])
            shown = np.r_[:leaves, inner : len(counts)]
            variables = [layout.nodes[node] for node in shown]
            found.append(NodeCounts(variables, leaves, layout.plan.window, counts[shown]))
        return found

    @property
    def peaks(self) -> np.ndarray:
        """See :mod:`cepbench.kernels.counts`."""
        return self.state.peaks

    def packed(self) -> dict[str, np.ndarray]:
        """The state as plain arrays."""
        return pack(self.layout.plan.nodes, self.state)

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Resume from the arrays that :meth:`packed` gave.

        Raises
        ------
        SnapshotError
            If they are not those of such an engine.
        """
        self.state = unpack(snapshot, self.layout.plan)

    @property
    def latencies(self) -> np.ndarray:
        """Matches by latency, in the bins of :mod:`cepbench.kernels.clock`; empty: not measured."""
        return self._scratch.latencies

    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """Process a batch of events.

        Parameters
        ----------
        batch : EventStream or None
            None for no events, at the end.
        first_position : int
            Of the batch's first event.
        ended : bool
            Whether no events follow.

        Raises
        ------
        PartialMatchLimitError
            If more would have to be stored, or a Kleene set has more subsets than can be counted.
        """
        if batch is None:
            leaves = len(self.layout.leaves)
            taken = tables.Batch(
                events=np.empty((3 if self.layout.ranks else 2, 0), np.int64),
                starts=np.zeros(leaves + 1, np.int64),
                values=np.empty(0),
                value_starts=np.zeros(leaves, np.int64),
            )
        else:
            taken = self._leaf_events(batch, first_position)
        until = NEVER if batch is None or ended else int(batch.timestamps[-1])
        # Divisions by zero are part of a condition's value, not a bug.
        with np.errstate(all="ignore"):
            self.state, chunks, found, outcome = advance(
                self.layout.plan,
                self._pace,
                self.limit,
                self.state,
                self._scratch,
                taken,
                self.layout.columns,
                until,
            )
        if outcome == tables.TOO_MANY:
            raise PartialMatchLimitError(self._too_many())
        if outcome == tables.TOO_LARGE:
            raise PartialMatchLimitError(self._too_large())
        return Found(found, self._matches(chunks))

    def _matches(self, chunks: list[np.ndarray]) -> tuple[BranchMatches | None, ...]:
        if not self._reports:
            return (None,) * len(self.branches)
        if len(self.branches) == 1:
            return (self._of_branch(self.branches[0], chunks),)
        found = []
        column = 1
        for number, (branch, layout) in enumerate(zip(self.branches, self._layouts, strict=True)):
            own = slice(column, column + layout.columns)
            pieces = [chunk[own, chunk[0] == number] for chunk in chunks]
            found.append(self._of_branch(branch, pieces))
            column = own.stop
        return tuple(found)

    def _of_branch(self, branch: Pattern, chunks: list[np.ndarray]) -> BranchMatches:
        return BranchMatches(
            branch.positive_names, [tuple(self._columns(branch, chunk)) for chunk in chunks]
        )

    def _columns(self, branch: Pattern, found: np.ndarray) -> Iterator[Column]:
        at = 0
        for variable in branch.positive:
            if variable.kind is Kind.KLEENE:
                yield SetColumn.of(found[at], found[at + 1], self.state.members[1])
                at += 2
            else:
                yield found[at]
                at += 1

    def _too_many(self) -> str:
        first = self.layout.plan.inner
        rows = self.state.rows[first:, tables.END] - self.state.rows[first:, tables.START]
        names = ", ".join(self.layout.nodes[first + int(rows.argmax())])
        return (
            f"more than {self.limit:,} partial matches have to be stored, most of "
            f"them over ({names}); try another plan generator, a shorter window or more conditions, "
            "or allow more with partial_match_limit"
        )

    def _too_large(self) -> str:
        kleene = [v for branch in self.branches for v in branch.positive if v.kind is Kind.KLEENE]
        names = dict.fromkeys(variable.name for variable in kleene)
        most = MOST_STORED if self._reports else MOST_VISITED
        return (
            f"so many events fit KL({', '.join(names)}) within one window that there are more than "
            f"2^{most} sets of them; use a rarer type, a shorter window, or conditions on "
            "neighbours such as b[i].x > b[i-1].x"
        )

    def _reading(self, batch: EventStream, rows: np.ndarray) -> Callable[[Attribute], np.ndarray]:
        return lambda attribute: self._reader.read(batch, attribute.name, rows)

    def _leaf_events(self, batch: EventStream, first_position: int) -> tables.Batch:
        """Events that may be bound to each leaf, as the kernels take them."""
        chosen: list[np.ndarray] = []
        columns: list[np.ndarray] = []
        ranks = self.ranks.of(batch, self._reader) if self.ranks is not None else None
        of_type = rows_of_types(batch, {leaf.type for leaf in self.layout.leaves})
        for leaf, variable in enumerate(self.layout.leaves):
            rows = of_type[variable.type]
            for clause in self.layout.filters[leaf]:
                held = clause_holds(clause, self._reading(batch, rows), self._reader.code)
                rows = rows[np.broadcast_to(held, rows.shape)]
            chosen.append(rows)
            for _, expression in self.layout.values[leaf]:
                values = expression_values(
                    expression, self._reading(batch, rows), self._reader.code
                )
                columns.append(np.broadcast_to(values, rows.shape))
        counts = np.array([len(rows) for rows in chosen])
        widths = self.layout.plan.nodes[: len(chosen), tables.FLOATS]
        all_rows = np.concatenate(chosen)
        integers = np.empty((2 if ranks is None else 3, len(all_rows)), np.int64)
        # All rows are there: nothing is clipped, but nothing is checked either.
        np.take(batch.timestamps, all_rows, out=integers[0], mode="clip")
        np.add(all_rows, first_position, out=integers[1])
        if ranks is not None:
            integers[2] = ranks[all_rows]
        return tables.Batch(
            events=integers,
            starts=np.concatenate(([0], np.cumsum(counts))),
            values=np.concatenate([np.empty(0), *columns]),
            value_starts=np.cumsum(counts * widths) - counts * widths,
        )


def rows_of_types(batch: EventStream, types: set[str | None]) -> dict[str | None, np.ndarray]:
    """The rows of each of these types, empty for those that the batch does not know.

    Parameters
    ----------
    batch : EventStream
    types : set of str or None
        None for events of any type.

    Returns
    -------
    dict of str or None to int64 array
        Ascending row numbers.
    """
    # Arrays that may and may not be written are different types to a kernel: it gets the latter.
    type_codes = np.ascontiguousarray(batch.type_codes).view()
    type_codes.flags.writeable = False
    counts = np.zeros(len(batch.type_names), np.int64)
    count_types(type_codes, counts)
    wanted = np.array([name in types for name in batch.type_names], np.int64)
    last = np.cumsum(counts * wanted)
    rows = np.empty(last[-1] + 1 if len(last) else 1, np.int64)
    rows_by_type(type_codes, np.where(wanted, last - counts, len(rows) - 1), wanted, rows)
    found = dict.fromkeys(types, np.empty(0, np.int64))
    if None in types:
        found[None] = np.arange(len(batch))
    for name, end, count in zip(batch.type_names, last.tolist(), counts.tolist(), strict=True):
        if name in types:
            found[name] = rows[end - count : end]
    return found


def _layout(pattern: Pattern, tree: Tree, positions: bool, reader: NumericReader) -> JoinLayout:
    return _layout_without_texts(pattern, tree, positions) or join_layout(
        pattern, tree, positions=positions, code=reader.code
    )


@lru_cache(maxsize=256)
def _layout_without_texts(pattern: Pattern, tree: Tree, positions: bool) -> JoinLayout | None:
    """The layout of a pattern and a plan that may well be run again.

    None if the pattern mentions texts, whose codes are those of a reader.
    """
    texts: list[str] = []

    def code(text: str) -> float:
        texts.append(text)
        return 0.0

    layout = join_layout(pattern, tree, positions=positions, code=code)
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
    enough = EVENTS_PER_STEP if in_order else UNSORTED_EVENTS_PER_STEP
    return tables.Pace(length=length, most=MOMENTS_PER_STEP, enough=enough, cap=0, watched=watched)


def _scratch(layout: JoinLayout, timed: bool) -> tables.Scratch:
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
        slots=np.empty((2 + len(layout.leaves), SLOT_COLUMNS), np.int64),
        values=np.empty(STACK),
        clock=np.empty(2, np.int64),
        alive=np.empty(OUTER_BLOCK, np.uint8),
        latencies=np.zeros(clock.BINS if timed else 0, np.int64),
        outer_of=np.empty(MOST_PAIRS, np.int64),
        inner_of=np.empty(MOST_PAIRS, np.int64),
        guide=np.empty(GUIDE + 1, np.int64),
        heads=np.empty(INDEXED, np.int64),
        chain=np.empty(INDEXED, np.int64),
        moments=np.empty(MOMENTS_PER_STEP, np.int64),
        live=np.empty((2, MOMENTS_PER_STEP), np.int64),
        before=np.empty((len(layout.plan.nodes), tables.COUNT_COLUMNS), np.int64),
        ahead=np.empty(len(layout.leaves), np.int64),
        due=np.empty(len(layout.leaves), np.int64),
    )


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from the disk cache, so that no timed run does."""
    pattern = parse("PATTERN AND(A a, B b) WITHIN 1 units")
    layout = join_layout(pattern, ("a", "b"), positions=True, code=float)
    events = pd.DataFrame({"type": ["A"], "time": [0]})
    rows_of_types(EventStream.from_pandas(events, type="type", time="time"), {"A"})
    batch = tables.Batch(
        events=np.zeros((2, 2), np.int64),
        starts=np.array([0, 1, 2]),
        values=np.empty(0),
        value_starts=np.zeros(2, np.int64),
    )
    advance(
        layout.plan,
        _pace(layout.plan, timed=False, watched=False),
        1,
        empty_state(layout.plan),
        _scratch(layout, timed=False),
        batch,
        layout.columns,
        NEVER,
    )
