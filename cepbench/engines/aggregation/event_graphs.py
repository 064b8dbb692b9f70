"""Patterns whose matches are counted by event: tables for the kernel, and the state of a total."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from cepbench.engines.aggregation.kernels.event_graph import tables
from cepbench.engines.aggregation.kernels.event_graph.advance import count_paths
from cepbench.engines.aggregation.semirings import Total
from cepbench.engines.automata.compilation import automaton
from cepbench.engines.automata.model import Automaton
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.sase.counting import CountLayout, count_layout
from cepbench.engines.sase.kernels import tables as automata
from cepbench.engines.sequence_counts.integers import integers
from cepbench.engines.sequence_counts.kernels import numbers
from cepbench.engines.sequence_counts.kernels.tables import Events, table_of
from cepbench.engines.sequence_counts.windows import working_sums
from cepbench.errors import PartialMatchLimitError
from cepbench.kernels.instructions import LOAD_LEFT, STACK
from cepbench.patterns.model import Pattern
from cepbench.state import Stateful

_BEFORE_ALL = np.iinfo(np.int64).min

#: Arrays of the state that a snapshot has.
_KEPT = (
    "bounds", "starts", "marks", "values", "times", "previous", "ends", "leaves", "vectors",
    "heads", "barriers", "cells",
)  # fmt: skip

#: The least number of events for which room is made at once.
_FEWEST = 256

#: Counters of a partition, a word of memory each (more for large numbers): one for each pair of an
#: event and a first event in the window.
COUNTER_LIMIT = 1 << 26


@dataclass(frozen=True)
class CountedGraph:
    """A pattern as a sequence of items, whose histories are counted by their last event."""

    pattern: Pattern  #: of the matches, without AGG
    layout: CountLayout  #: without the conditions between events
    graph: tables.Graph  #: of the total COUNT
    scope: str

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
            limit=None if isinstance(one, float) else numbers.LARGE,
            is_maximum=total.is_maximum,
        )
        width = self.layout.of_events.width
        return GraphWindow(graph, width, total.dtype(is_float=is_float))


def graph_layout(task: BranchTask) -> tuple[CountLayout, tables.Graph] | None:
    """The tables of a task of a single branch, whose tree is its automaton; None if its histories differ
    in more than the first and the last event.
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
        rules=table_of(rules, 3),
        kept=np.array([*kept], np.int64),
        window=plan.window,
        counts_window=True,
        weighted=-1,
        parts=1,
        zero=0,
        one=1,
        limit=numbers.LARGE,
        is_maximum=False,
    )


class GraphWindow(Stateful):
    """The events in the window with their counts, by partition; ``width`` is that of V."""

    SAVED = ("_kept",)

    def __init__(self, graph: tables.Graph, width: int, dtype: type) -> None:
        self._plan = graph
        self._width, self._dtype = width, dtype
        self._is_exact = dtype is np.int64 and not graph.is_maximum
        self._states: list[tables.State] = []

    def add(self, number: int) -> None:
        """Add so many partitions without events."""
        self._states += [self._empty() for _ in range(number)]

    def peaks(self) -> np.ndarray:
        """The maximum number of nodes, and of counters, since this was asked last, each summed over partitions."""
        found = np.zeros(2, np.int64)
        for state in self._states:
            low, high, _, first, last, *peaks = state.bounds.tolist()
            found += peaks
            state.bounds[tables.PEAK_NODES] = last - first
            state.bounds[tables.PEAK_COUNTERS] = ((last - first) * self._plan.parts + 1) * (
                high - low
            )
        return found

    def are_active(self, earliest: int) -> np.ndarray:
        """Whether each partition has events from some time on."""
        return np.array([_is_active(state, earliest) for state in self._states], bool)

    def keep(self, partitions: np.ndarray) -> None:
        """Keep some partitions, numbered anew."""
        self._states = [self._states[place] for place in partitions.tolist()]

    @property
    def bytes(self) -> int:
        """The size of its state."""
        # With the number of partitions.
        return 8 + sum(array.nbytes for its in self._kept for array in its)

    def push(self, events: Events, samples: int) -> tuple[np.ndarray, np.ndarray]:
        """See :meth:`cepbench.engines.sequence_counts.windows.CountingWindow.push`; without rows."""
        parts, updates = [], 0
        spans = pairwise(events.spans.tolist())
        for place, (first, behind) in zip(events.parts.tolist(), spans, strict=True):
            if first < behind:
                its = events._replace(
                    rows=events.rows[first:behind], samples=events.samples[first:behind]
                )
                state = self._advanced(self._states[place], its)
                totals = integers(state.out) if self._is_exact else state.out[:, 0]
                parts.append((its.samples[its.samples >= 0], totals))
                updates += int(state.progress[tables.UPDATES])
                self._states[place] = state._replace(out=state.out[:0])
        is_large = any(totals.dtype == object for _, totals in parts)
        found: np.ndarray = np.zeros(samples, object if is_large else self._dtype)
        for places, totals in parts:
            found[places] = totals
        return found, np.array([0, updates, 0])

    def _advanced(self, state: tables.State, events: Events) -> tables.State:
        """The state of a partition after its events, with a value for each sample in ``out``."""
        are_sampled = events.samples >= 0
        events = events._replace(samples=np.where(are_sampled, np.cumsum(are_sampled) - 1, -1))
        out: np.ndarray = np.zeros((int(are_sampled.sum()), state.out.shape[1]), state.out.dtype)
        state.progress[:] = 0
        state = state._replace(out=out)
        at, rows = 0, events.rows
        while at < len(rows):
            # Piece by piece, for the table has a cell for each pair of events.
            nodes = state.bounds[tables.LAST] - state.bounds[tables.FIRST]
            behind = at + max(_FEWEST, int(nodes))
            if self._needed(state, *self._new(events, rows[at:behind])) > COUNTER_LIMIT:
                behind = at + _FEWEST  # some of which may replace others
            state = self._with_room(state, *self._new(events, rows[at:behind]))
            while not count_paths(self._plan, state, events._replace(rows=rows[:behind])):
                state = self._widened(state)
            at = behind
        return state

    @property
    def _kept(self) -> list[tuple[np.ndarray, ...]]:
        """The state of each partition between pushes."""
        return [tuple(getattr(state, name) for name in _KEPT) for state in self._states]

    @_kept.setter
    def _kept(self, kept: list[tuple[np.ndarray, ...]]) -> None:
        self._states = [
            self._with_working_space(
                self._empty()._replace(**dict(zip(_KEPT, arrays, strict=True)))
            )
            for arrays in kept
        ]

    def _empty(self) -> tables.State:
        """The state of a partition without events."""
        graph, none = self._plan, np.zeros(0, np.int64)
        items = len(graph.begins)
        cells: np.ndarray = np.zeros((graph.parts + 1, 0), self._dtype)
        return self._with_working_space(
            tables.State(
                bounds=np.zeros(tables.BOUNDS, np.int64),
                starts=none,
                marks=none,
                values=np.zeros((len(graph.kept), 0)),
                times=none,
                previous=none,
                ends=none,
                leaves=np.zeros(0, bool),
                vectors=np.zeros((1, self._width)),
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

    def _widened(self, state: tables.State) -> tables.State:
        """With more digits."""
        state.progress[tables.IS_LARGE] = 0
        wide = self._with_working_space(state._replace(cells=numbers.widened(state.cells)))
        digits = wide.out.shape[1]
        wide.found[:] = numbers.with_digits(state.found, digits)
        return wide._replace(out=numbers.with_digits(state.out, digits))

    def _with_working_space(self, state: tables.State) -> tables.State:
        return state._replace(
            fits=np.zeros(len(state.starts), np.int64),
            # The weights are factors of the histories already.
            **working_sums(
                state.cells, self._plan.zero, is_exact=self._is_exact, are_weighted=False
            ),
        )

    def _with_room(self, state: tables.State, starts: int, nodes: int) -> tables.State:
        """What is in the window at the front, unless there is room for so many more starts and nodes.

        It is refused if that takes too much memory, before any is taken.
        """
        plan = self._plan
        low, high, _, first, last, *_ = state.bounds.tolist()
        if high + starts <= len(state.starts) and last + nodes <= len(state.times):
            return state
        needed = self._needed(state, starts, nodes)
        if needed > COUNTER_LIMIT:
            raise PartialMatchLimitError(
                f"greta keeps a counter for each pair of an event and a first event in the window, more "
                f"than {COUNTER_LIMIT:,} here; shorten WITHIN, or choose method='two-step', whose memory "
                "is that of the events in the window, or without conditions between events 'a-seq'"
            )
        spare = 2 if 4 * needed <= COUNTER_LIMIT else 1
        height, width = spare * (high - low + starts), spare * (last - first + nodes)
        rows = partial(_moved, first=low, last=high, capacity=height)
        columns = partial(_moved, first=first, last=last, capacity=width)
        parts = plan.parts
        behind = tables.MATCHES + 1 + parts
        shape = (behind + parts * width, height, *state.cells.shape[2:])
        cells = np.full(shape, 0 if self._is_exact else plan.zero, state.cells.dtype)
        old = state.cells[:, low:high]
        cells[tables.MATCHES, : high - low] = old[tables.MATCHES]
        cells[behind : behind + parts * (last - first), : high - low] = old[
            behind + parts * first : behind + parts * last
        ]
        return state._replace(
            bounds=state.bounds - [low, low, low, first, first, 0, 0],
            starts=rows(state.starts),
            marks=rows(state.marks),
            values=np.ascontiguousarray(rows(state.values.T).T),
            times=columns(state.times),
            previous=columns(state.previous) - first,
            ends=columns(state.ends) - low,
            leaves=columns(state.leaves),
            vectors=_moved(state.vectors, first, last, width + 1),
            heads=state.heads - first,
            cells=cells,
            fits=np.zeros(height, np.int64),
        )

    def _new(self, events: Events, rows: np.ndarray) -> tuple[int, int]:
        """How many rows of starts and how many nodes some events may need."""
        plan, flags = self._plan, events.flags[rows]
        starts = events.times[rows[(flags & plan.begins[0]) != 0]]
        if not len(plan.kept):
            starts = np.unique(starts)
        return len(starts), int(((flags[:, None] & (plan.begins | plan.takes)) != 0).sum())

    def _needed(self, state: tables.State, starts: int, nodes: int) -> int:
        """How many counters what is in the window and so many more starts and nodes need."""
        low, high, _, first, last, *_ = state.bounds.tolist()
        words = int(np.prod(state.cells.shape[2:], dtype=np.int64))
        return (high - low + starts) * (last - first + nodes) * self._plan.parts * words


def _is_active(state: tables.State, earliest: int) -> bool:
    """Whether there are events from some time on."""
    last, high = state.bounds[[tables.LAST, tables.HIGH]].tolist()
    latest = [state.barriers[0, 0], *state.times[:last][-1:], *state.starts[:high][-1:]]
    return bool(max(latest) >= earliest)


def _moved(array: np.ndarray, first: int, last: int, capacity: int) -> np.ndarray:
    """A part of an array, at the front of a larger one."""
    moved = np.zeros((capacity, *array.shape[1:]), array.dtype)
    moved[: last - first] = array[first:last]
    return moved
