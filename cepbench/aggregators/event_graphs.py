"""Patterns whose matches are counted by event: tables for the kernel, and the state of a total."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cepbench.aggregators.semirings import Total
from cepbench.aggregators.windows import integers, working_sums
from cepbench.automata.compilation import automaton
from cepbench.automata.model import Automaton
from cepbench.evaluators.plan_runs.engine import BranchTask
from cepbench.evaluators.sase.counting import CountLayout, count_layout
from cepbench.kernels.event_graph import tables
from cepbench.kernels.event_graph.advance import count_paths
from cepbench.kernels.instructions import LOAD_LEFT, STACK
from cepbench.kernels.sase import tables as automata
from cepbench.kernels.sequence_counts import numbers
from cepbench.kernels.sequence_counts.tables import Events
from cepbench.patterns.model import Pattern

_BEFORE_ALL = np.iinfo(np.int64).min

#: Arrays of the state that a snapshot has.
_KEPT = (
    "bounds", "starts", "marks", "values", "times", "previous", "ends", "leaves", "vectors",
    "heads", "barriers", "cells",
)  # fmt: skip

#: The least number of events for which room is made at once.
_FEWEST = 256


@dataclass(frozen=True)
class CountedGraph:
    """A pattern as a sequence of items, whose histories are counted by their last event.

    Attributes
    ----------
    pattern : Pattern
        Of the matches, without AGG.
    layout : CountLayout
        Without the conditions between events.
    graph : cepbench.kernels.event_graph.tables.Graph
        Of the total COUNT.
    scope : str
        See :class:`~cepbench.aggregators.protocol.AggregationTask`.
    """

    pattern: Pattern
    layout: CountLayout
    graph: tables.Graph
    scope: str

    @property
    def last_flags(self) -> int:
        """Flags of the events that may complete a match."""
        return int(self.graph.begins[-1] | self.graph.takes[-1])

    def window(self, total: Total, *, is_float: bool) -> GraphWindow:
        """The state of a total."""
        weighted, parts = -1, 1
        if total.variable is not None:
            weighted = self.pattern.positive_names.index(total.variable)
            parts += self.pattern.positive[weighted].is_set and not total.is_maximum
        zero, one = total.units(is_float=is_float)
        graph = self.graph._replace(
            counts_window=self.scope == "window",
            weighted=weighted,
            parts=parts,
            zero=zero,
            one=one,
            is_maximum=total.is_maximum,
        )
        width = self.layout.of_events.width
        return GraphWindow(graph, width, total.dtype(is_float=is_float))


def graph_layout(task: BranchTask) -> tuple[CountLayout, tables.Graph] | None:
    """The tables of a task's pattern; None if its histories differ in more than the first and the
    last event.

    Parameters
    ----------
    task : BranchTask
        Of a single branch, whose tree is its automaton.
    """
    layout = count_layout(task, without_rules=True)
    (given,) = task.trees
    if layout is None:
        return None
    compiled = automaton(given.pattern)
    assert isinstance(compiled, Automaton)
    plan, its = layout.of_events.plan, layout.items
    proceeds = np.where(
        layout.edges[:, 1] < 0, -1, layout.edges[:, 1] + automata.PROCEED - automata.TAKE
    )
    edges = np.column_stack((layout.edges, proceeds))
    # The state whose event is the one before that of an edge.
    ends = edges.max(axis=1) // automata.EDGES
    before = np.column_stack((np.append(-1, ends[:-1]), ends, ends))
    begun = plan.updates[plan.update_spans[automata.BEGIN] : plan.update_spans[automata.BEGIN + 1]]
    sources = {column: source for column, source, _ in begun.tolist()}
    is_kept = np.ones(len(plan.rules), bool)
    spans, rules, kept = [0], [], dict[int, int]()
    for (item, kind), edge in np.ndenumerate(edges):
        first, programs, end = plan.spans[edge].tolist() if edge >= 0 else (0, 0, 0)
        for rule, (opcode, argument, operator, _) in enumerate(
            plan.rules[first:end].tolist(), first
        ):
            if rule >= programs and opcode != LOAD_LEFT:
                continue
            column = compiled.vector[argument]
            if column.operation != "value":
                return None
            if column.state == before[item, kind]:
                continue
            if column.state > 0 or rule >= programs or kind == automata.PROCEED:
                return None
            # Histories are counted by start, so that the first event is known too.
            is_kept[rule] = False
            place = kept.setdefault(sources[argument], len(kept))
            rules.append((opcode, place, operator))
        if kind != automata.PROCEED:
            spans.append(len(rules))
    compacted = plan._replace(
        spans=np.append(0, np.cumsum(is_kept))[plan.spans], rules=plan.rules[is_kept]
    )
    return layout, tables.Graph(
        begins=its.begins,
        takes=its.takes,
        prevents=its.prevents,
        edges=edges,
        automaton=compacted,
        spans=np.array(spans, np.int64),
        rules=np.array(rules, np.int64).reshape(-1, 3),
        kept=np.array([*kept], np.int64),
        window=plan.window,
        counts_window=True,
        weighted=-1,
        parts=1,
        zero=0,
        one=1,
        is_maximum=False,
    )


class GraphWindow:
    """The events in the window with their counts, of one partition and total.

    Parameters
    ----------
    graph : cepbench.kernels.event_graph.tables.Graph
    width : int
        Columns of V.
    dtype : type
        Of its numbers.
    """

    def __init__(self, graph: tables.Graph, width: int, dtype: type) -> None:
        self._plan = graph
        self._is_exact = dtype is np.int64 and not graph.is_maximum
        items = len(graph.begins)
        none = np.zeros(0, np.int64)
        cells: np.ndarray = np.zeros((graph.parts + 1, 0), dtype)
        self._state = self._with_working_space(
            tables.State(
                bounds=np.zeros(tables.BOUNDS, np.int64),
                starts=none,
                marks=none,
                values=np.zeros((len(graph.kept), 0)),
                times=none,
                previous=none,
                ends=none,
                leaves=np.zeros(0, bool),
                vectors=np.zeros((1, width)),
                heads=np.full(items, -1),
                barriers=np.full((items, 2), _BEFORE_ALL),
                cells=cells,
                fits=none,
                stack=np.zeros(STACK),
                found=cells,
                out=cells,
                progress=np.zeros(tables.PROGRESS, np.int64),
            )
        )

    def peaks(self) -> tuple[int, int]:
        """The maximum number of nodes, and of counters, since this was asked last."""
        bounds = self._state.bounds
        nodes, counters = bounds[[tables.PEAK_NODES, tables.PEAK_COUNTERS]].tolist()
        low, high, _, first, last, *_ = bounds.tolist()
        bounds[tables.PEAK_NODES] = last - first
        bounds[tables.PEAK_COUNTERS] = ((last - first) * self._plan.parts + 1) * (high - low)
        return nodes, counters

    @property
    def prevented(self) -> int:
        """Timestamp of the latest event that prevents later starts."""
        return int(self._state.barriers[0, 0])

    @property
    def bytes(self) -> int:
        """The size of its state."""
        return sum(array.nbytes for array in self.arrays().values())

    def push(self, events: Events, samples: int) -> tuple[list[Any], int]:
        """Process some events; returns the totals after some of them, and the number of updates.

        Parameters
        ----------
        events : cepbench.kernels.sequence_counts.tables.Events
        samples : int
            How many there are in ``events.samples``.
        """
        progress = self._state.progress
        progress[:] = 0
        out = self._state.out
        self._set_out(np.zeros((samples, out.shape[1]), out.dtype))
        at, rows = 0, events.rows
        while at < len(rows):
            # Piece by piece, for the table has a cell for each pair of events.
            nodes = self._state.bounds[tables.LAST] - self._state.bounds[tables.FIRST]
            behind = at + max(_FEWEST, int(nodes))
            self._make_room(events.flags[rows[at:behind]])
            piece = events._replace(rows=rows[:behind])
            while not count_paths(self._plan, self._state, piece):
                self._widen()
            at = behind
        out, updates = self._state.out, int(progress[tables.UPDATES])
        return (integers(out) if self._is_exact else out[:, 0].tolist()), updates

    def copy(self) -> GraphWindow:
        """One that changes apart from this."""
        other = GraphWindow.__new__(GraphWindow)
        other._plan, other._is_exact = self._plan, self._is_exact
        other._state = self._state
        other.restore(self.arrays())
        return other

    def arrays(self) -> dict[str, np.ndarray]:
        """The state between pushes."""
        state = self._state._asdict()
        return {name: state[name] for name in _KEPT}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Resume from the arrays that :meth:`arrays` gave."""
        copies = {name: array.copy() for name, array in arrays.items()}
        progress = self._state.progress.copy()
        self._state = self._with_working_space(self._state._replace(progress=progress, **copies))

    def _widen(self) -> None:
        """Give numbers more digits."""
        state = self._state
        state.progress[tables.IS_LARGE] = 0
        self._state = self._with_working_space(state._replace(cells=numbers.widened(state.cells)))
        digits = self._state.out.shape[1]
        self._set_out(numbers.with_digits(state.out, digits))
        self._state.found[:] = numbers.with_digits(state.found, digits)

    def _set_out(self, out: np.ndarray) -> None:
        self._state = self._state._replace(out=out)

    def _with_working_space(self, state: tables.State) -> tables.State:
        return state._replace(
            fits=np.zeros(len(state.starts), np.int64),
            **working_sums(state.cells, self._plan.zero, is_exact=self._is_exact),
        )

    def _make_room(self, flags: np.ndarray) -> None:
        """Move what is in the window to the front, if there is no room for events of such flags."""
        state, plan = self._state, self._plan
        low, high, _, first, last, *_ = state.bounds.tolist()
        starts = int(((flags & plan.begins[0]) != 0).sum())
        nodes = int(((flags[:, None] & (plan.begins | plan.takes)) != 0).sum())
        if high + starts <= len(state.starts) and last + nodes <= len(state.times):
            return
        rows = _Move(low, high, 2 * (high - low + starts))
        columns = _Move(first, last, 2 * (last - first + nodes))
        parts = plan.parts
        behind = tables.MATCHES + 1 + parts
        shape = (behind + parts * columns.capacity, rows.capacity, *state.cells.shape[2:])
        cells = np.full(shape, 0 if self._is_exact else plan.zero, state.cells.dtype)
        old = state.cells[:, low:high]
        cells[tables.MATCHES, : high - low] = old[tables.MATCHES]
        cells[behind : behind + parts * (last - first), : high - low] = old[
            behind + parts * first : behind + parts * last
        ]
        vectors = np.zeros((columns.capacity + 1, state.vectors.shape[1]))
        vectors[: last - first] = state.vectors[first:last]
        self._state = state._replace(
            bounds=state.bounds - [low, low, low, first, first, 0, 0],
            starts=rows.of(state.starts),
            marks=rows.of(state.marks),
            values=np.ascontiguousarray(rows.of(state.values.T).T),
            times=columns.of(state.times),
            previous=columns.of(state.previous) - first,
            ends=columns.of(state.ends) - low,
            leaves=columns.of(state.leaves),
            vectors=vectors,
            heads=state.heads - first,
            cells=cells,
            fits=np.zeros(rows.capacity, np.int64),
        )


@dataclass(frozen=True)
class _Move:
    """A part of arrays that is moved to the front of larger ones."""

    first: int
    last: int
    capacity: int

    def of(self, array: np.ndarray) -> np.ndarray:
        moved = np.zeros((self.capacity, *array.shape[1:]), array.dtype)
        moved[: self.last - self.first] = array[self.first : self.last]
        return moved
