"""Processing of batches by the instance-based engine, one event after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

import numpy as np
import pandas as pd

from cepbench.errors import PartialMatchLimitError
from cepbench.evaluators.instances.layout import InstanceLayout, instance_layout
from cepbench.evaluators.instances.snapshot import pack, unpack
from cepbench.evaluators.joins.engine import rows_of_types
from cepbench.evaluators.joins.node_table import NodeCounts
from cepbench.evaluators.joins.nodes import Tree
from cepbench.evaluators.joins.partitions import PartitionRanks
from cepbench.evaluators.matches import BranchMatches, Column, Found, SetColumn
from cepbench.kernels import clock
from cepbench.kernels.instances import tables
from cepbench.kernels.instances.advance import advance
from cepbench.kernels.instances.conditions import SLOT_COLUMNS
from cepbench.kernels.instances.room import empty_state
from cepbench.kernels.instructions import STACK
from cepbench.patterns.arrays import clause_holds, expression_values
from cepbench.patterns.model import Attribute, Kind, Pattern
from cepbench.patterns.parse import parse
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader


class InstanceEngine:
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
        Whether to measure latencies.
    watched : bool
        Whether to measure the time spent in each node.
    """

    #: Ranks are for contiguity, which is not supported.
    ranks: PartitionRanks | None = None

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
        self.layout = instance_layout(branches, trees, written, reader.code)
        self.state = empty_state(self.layout.plan, self.layout.width)
        self._reader = reader
        self._reports = reports
        self._watched = watched
        self._scratch = _scratch(self.layout, timed)
        warm_up()

    @property
    def latencies(self) -> np.ndarray:
        """Matches by latency, in the bins of :mod:`cepbench.kernels.clock`; empty: not measured."""
        return self._scratch.latencies

    def node_counts(self) -> list[NodeCounts]:
        """Counts at the nodes of each branch's plan."""
        plan = self.layout.plan
        return [
            NodeCounts(
                variables=[self.layout.nodes[node] for node in nodes],
                leaves=sum(node < plan.leaves for node in nodes),
                window=plan.window,
                counts=self.state.counts[list(nodes)],
            )
            for nodes in self.layout.branches
        ]

    @property
    def peaks(self) -> np.ndarray:
        """See :mod:`cepbench.kernels.counts`."""
        return self.state.peaks

    def packed(self) -> dict[str, np.ndarray]:
        """The state as plain arrays."""
        return pack(self.state)

    def restore(self, snapshot: Mapping[str, np.ndarray]) -> None:
        """Resume from the arrays that :meth:`packed` gave.

        Raises
        ------
        SnapshotError
            If they are not those of such an engine.
        """
        self.state = unpack(snapshot, self.layout.plan, self.layout.width)

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
            If more would have to be stored.
        """
        layout = self.layout
        # Divisions by zero are part of a condition's value, not a bug.
        with np.errstate(all="ignore"):
            self.state, chunks, found, outcome = advance(
                layout.plan,
                self.limit,
                self.state,
                self._scratch,
                _nothing(layout) if batch is None else self._taken(batch, first_position),
                layout.columns if self._reports else 0,
                tables.NEVER if batch is None or ended else int(batch.timestamps[-1]),
                has_sets=layout.has_sets,
                watched=self._watched,
            )
        if outcome == tables.TOO_MANY:
            raise PartialMatchLimitError(self._too_many())
        return Found(found, self._matches(chunks))

    def _matches(
        self, chunks: list[tuple[np.ndarray, np.ndarray]]
    ) -> tuple[BranchMatches | None, ...]:
        if not self._reports:
            return (None,) * len(self.branches)
        found = []
        several = len(self.branches) > 1
        for number, (branch, own) in enumerate(
            zip(self.branches, self.layout.branch_columns, strict=True)
        ):
            pieces = [
                tuple(_columns(branch, rows[own, rows[0] == number] if several else rows, members))
                for rows, members in chunks
            ]
            found.append(BranchMatches(branch.positive_names, pieces))
        return tuple(found)

    def _too_many(self) -> str:
        leaves = self.layout.plan.leaves
        most = leaves + int(self.state.lists[leaves:, tables.LIVE].argmax())
        return (
            f"more than {self.limit:,} partial matches have to be stored, most of "
            f"them over ({', '.join(self.layout.nodes[most])}); try another plan generator, a "
            "shorter window or more conditions, or allow more with partial_match_limit"
        )

    def _taken(self, batch: EventStream, first_position: int) -> tables.Batch:
        """The events that are bound to leaves, in order, as the kernels read them."""
        of_type = rows_of_types(batch, {variable.type for variable in self.layout.leaves})
        chosen: list[np.ndarray] = []
        for variable, filters in zip(self.layout.leaves, self.layout.filters, strict=True):
            rows = of_type[variable.type]
            for clause in filters:
                held = clause_holds(clause, self._reading(batch, rows), self._reader.code)
                rows = rows[np.broadcast_to(held, rows.shape)]
            chosen.append(rows)
        leaves = np.repeat(np.arange(len(chosen)), [len(rows) for rows in chosen])
        rows = np.concatenate(chosen)
        order = np.argsort(rows, kind="stable")
        rows = rows[order]
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        events = rows[starts]
        values = np.full((len(events), self.layout.width), np.nan)
        for its, stored in zip(chosen, self.layout.values, strict=True):
            places = np.searchsorted(events, its)
            for column, expression in stored:
                values[places, column] = expression_values(
                    expression, self._reading(batch, its), self._reader.code
                )
        return tables.Batch(
            events=np.stack((batch.timestamps[events], events + first_position)),
            values=values,
            starts=np.append(starts, len(rows)),
            leaves=leaves[order],
        )

    def _reading(self, batch: EventStream, rows: np.ndarray) -> Callable[[Attribute], np.ndarray]:
        return lambda attribute: self._reader.read(batch, attribute.name, rows)


def _columns(branch: Pattern, found: np.ndarray, members: np.ndarray) -> Iterator[Column]:
    at = 0
    for variable in branch.positive:
        if variable.kind is Kind.KLEENE:
            yield SetColumn.of(found[at], found[at + 1], members)
            at += 2
        else:
            yield found[at]
            at += 1


def _nothing(layout: InstanceLayout) -> tables.Batch:
    """A batch without events."""
    return tables.Batch(
        events=np.empty((2, 0), np.int64),
        values=np.empty((0, layout.width)),
        starts=np.zeros(1, np.int64),
        leaves=np.empty(0, np.int64),
    )


def _scratch(layout: InstanceLayout, timed: bool) -> tables.Scratch:
    return tables.Scratch(
        progress=np.empty(tables.PROGRESS, np.int64),
        bound=np.zeros(layout.plan.leaves, np.int64),
        best=np.zeros(layout.plan.leaves, np.int64),
        stack=np.empty(STACK),
        slots=np.empty((2, SLOT_COLUMNS), np.int64),
        clock=np.empty(2, np.int64),
        latencies=np.zeros(clock.BINS if timed else 0, np.int64),
    )


@cache
def warm_up() -> None:
    """Compile the kernels, or load them from the disk cache, so that no timed run does."""
    pattern = parse("PATTERN AND(A a, B b) WITHIN 1 units")
    events = pd.DataFrame({"type": ["A"], "time": [0]})
    rows_of_types(EventStream.from_pandas(events, type="type", time="time"), {"A"})
    layout = instance_layout([pattern], [("a", "b")], ["a", "b"], float)
    advance(
        layout.plan,
        1,
        empty_state(layout.plan, layout.width),
        _scratch(layout, timed=False),
        _nothing(layout),
        layout.columns,
        tables.NEVER,
        has_sets=False,
        watched=False,
    )
