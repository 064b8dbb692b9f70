"""What the engines that run automata share: batches in rounds, what is read of events, metrics."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from cepbench.engines.automata.vector import Column as VectorColumn
from cepbench.engines.plan_runs.engine import BranchTask, Engine
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.engines.plan_runs.sequences import rounds_of
from cepbench.engines.runs.matches import BranchMatches, Column, Found, SetColumn, no_matches
from cepbench.engines.sase.kernels import profile, tables
from cepbench.engines.sase.layout import AutomatonLayout, automaton_layout
from cepbench.errors import PartialMatchLimitError
from cepbench.kernels import counts
from cepbench.kernels.arrays import read_only
from cepbench.patterns.arrays import clause_holds, expression_values
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: Some events: all by the slice, or their numbers.
Rows = np.ndarray | slice

#: Events in a round, so that memory does not grow with batches.
ROUND = 1 << 16

#: Phases that are timed: moves, the construction of matches, and updates of the buffer.
MATCHING, CONSTRUCTION, BUFFER = range(3)


class AutomatonEngine(Engine):
    """Finds the matches of one SEQ of plain and Kleene items by the runs of its automaton.

    The automaton is the tree of the task's only branch; there are no negated items in it. Matches
    are counted ``by_start`` or have a graph; ``returned`` are the columns of V that are the values of
    those that are reported.
    """

    SAVED: ClassVar[tuple[str, ...]] = (
        "_times",
        "_first",
        "_peaks[:]",
        "profile[:]",
        "seconds[:]",
        "tallies[:]",
        "events",
        "constructed",
        "written",
    )

    def __init__(
        self,
        task: BranchTask,
        *,
        by_start: bool,
        returned: Sequence[VectorColumn] = (),
        layout: AutomatonLayout | None = None,
    ) -> None:
        super().__init__(task)
        (automaton,) = task.trees
        self.layout = layout or automaton_layout(
            automaton,
            task.reader.code,
            counts=by_start,
            reports=task.reports,
            returned=returned,
        )
        #: Timestamps of the events in the window, and the position of the first of them.
        self._times = np.empty(0, np.int64)
        self._first = 0
        #: No event after the round has an earlier timestamp.
        self._until = 0
        self._chunks: list[list[Column]] = []
        #: int64; see :mod:`cepbench.engines.sase.kernels.tables`.
        self.tallies = np.zeros(tables.TALLIES, np.int64)
        #: float64; see :mod:`cepbench.engines.sase.kernels.profile`; NaN where nothing is counted.
        self.profile = profile.empty_profile(self.layout.plan, watched=task.watched)
        #: float64 (3,); see :data:`MATCHING`; NaN where there is no such phase.
        self.seconds = np.zeros(3)
        self._began = 0.0
        #: Events read; matches constructed, and events in all of them.
        self.events = self.constructed = self.written = 0

    def node_counts(self) -> list[NodeCounts]:
        """None: the automaton has no nodes."""
        return []

    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """Process a batch of events; see :meth:`Engine.run`."""
        for part, position in rounds_of(batch, first_position, ROUND):
            assert batch is not None
            if not len(self._times):
                self._first = position
            self._times = with_more(self._times, part.timestamps)
            self.events += len(part)
            behind = batch.timestamps[position - first_position + len(part) :][:1]
            self._until = int(behind[0] if len(behind) else part.timestamps[-1])
            with np.errstate(all="ignore"):
                events = self._events(part, position)
                # Those stored since the last batch are there until the first row.
                if self.task.watched:
                    until = int(events.rows[0]) if len(events.rows) else len(part)
                    self.profile[:, profile.SUM] += until * self.profile[:, profile.STORED]
                if moves := len(events.rows) > 0 or self._is_due():
                    self._round(events)
            old = int(self._times.searchsorted(part.timestamps[-1] - self.layout.plan.window))
            self._times, self._first = self._times[old:], self._first + old
            if moves:
                self._check_limit(self._live())
                self._measure()
        return self._found()

    def _is_due(self) -> bool:
        """Whether a round changes something even if it reads no event."""
        return False

    def _round(self, events: tables.Events) -> None:
        """Process some events, with more room whenever a table is full."""
        arranged = self._arranged(events)
        ended = False
        while not ended:
            self._began = time.perf_counter()
            ended = self._advance(*arranged)
            self._clock(MATCHING)
            self._construct()
            self._clock(CONSTRUCTION)
            if not ended:
                self._make_room()

    def _arranged(self, events: tables.Events) -> tuple[Any, ...]:
        """The events as :meth:`_advance` takes them."""
        return (events,)

    @abstractmethod
    def _advance(self, *events: Any) -> bool:
        """Go on with the events; returns whether all have been processed; else a table is full."""

    def _construct(self) -> None:
        """Write the matches whose last events have been found, unless they are only counted."""

    def _make_room(self) -> None:
        """Enlarge the tables that are full."""

    @abstractmethod
    def _live(self) -> int:
        """The number of runs."""

    @property
    def work(self) -> dict[str, int]:
        """What runs did, in the words of :data:`~cepbench.engines.runs.work.WORDS`."""
        tallies = self.tallies.tolist()
        return {
            "run_visits": tallies[tables.VISITED],
            "edges_evaluated": tallies[tables.EVALUATED],
            "events_reprocessed": tallies[tables.REPROCESSED],
        }

    @property
    def visits_apart(self) -> float:
        """Events read by runs, had none been merged; NaN if not known."""
        return math.nan

    def _counted(self) -> int:
        """The number of matches since the last batch."""
        number = int(self.tallies[tables.FOUND])
        self.tallies[tables.FOUND] = 0
        return number

    def _found(self) -> Found:
        """The matches since the last batch."""
        if not self.task.reports:
            return Found(self._counted(), (None,))
        found = no_matches(self.layout.variables)
        if self._chunks:
            found, self._chunks = BranchMatches(found.names, self._chunks), []
        return Found(len(found), (found,))

    def _events(self, part: EventStream, first_position: int) -> tables.Events:
        """What the kernels read of some events."""
        return events_of(self.layout, self.task.reader, part, first_position)

    def _clock(self, phase: int) -> None:
        """Add the time since the last call to a phase."""
        now = time.perf_counter()
        self.seconds[phase] += now - self._began
        self._began = now

    def _keep(self, chunks: Iterable[list[Column]], ends: int) -> None:
        """Keep constructed matches, which have so many ends."""
        found = 0
        for chunk in chunks:
            found += len(chunk[0])
            self.check_matches(found, ends)
            self.written += sum(map(_size, chunk))
            self._chunks.append(chunk)
        self.constructed += found

    def check_matches(self, found: int, ends: int) -> None:
        """Limit the sets of Kleene variables, which other engines store, by the matches found at so
        many ends.

        Raises
        ------
        PartialMatchLimitError
        """
        if self._sets and found > self.task.limit * ends:
            raise PartialMatchLimitError(
                f"more than {self.task.limit:,} matches end with one event, for there are so many "
                f"sets of {self._sets}; use a shorter window or more conditions, only count "
                "matches, or allow more with partial_match_limit"
            )

    @property
    def _sets(self) -> str:
        """The Kleene variables."""
        return ", ".join(variable.name for variable in self.layout.variables if variable.is_set)

    def _check_limit(self, runs: int) -> None:
        if runs > self.task.limit:
            of_sets = f", with different sets of {self._sets}" if self._sets else ""
            raise PartialMatchLimitError(
                f"more than {self.task.limit:,} runs of the automaton have to be stored{of_sets}; "
                "use a shorter window or more conditions, or allow more with partial_match_limit"
            )

    def _bytes(self) -> int:
        """The size of the runs, of what they have selected, and of what is counted."""
        counted = self.tallies.nbytes + self.profile.nbytes
        return self.state_bytes(beyond=AutomatonEngine) + counted

    def _measure(self) -> None:
        for peak, value in (
            (counts.PEAK_PARTIAL_MATCHES, self.tallies[tables.PEAK_RUNS]),
            (counts.PEAK_BYTES, self._bytes()),
        ):
            self._peaks[peak] = max(self._peaks[peak], value)


def with_more(known: np.ndarray, fresh: np.ndarray) -> np.ndarray:
    """Timestamps and, behind them, others; ``known``, which only this function gave room, is no longer used.

    They are copied once in a while only.
    """
    stored = known.base
    end = (
        0
        if stored is None
        else (known.ctypes.data - stored.ctypes.data) // known.itemsize + len(known)
    )
    if stored is None or end + len(fresh) > len(stored):
        stored, end = np.empty(2 * (len(known) + len(fresh)), np.int64), len(known)
        stored[:end] = known
    stored[end : end + len(fresh)] = fresh
    return stored[end - len(known) : end + len(fresh)]


def no_events(columns: int) -> tables.Events:
    """No events, of which so many columns are read."""
    none = np.empty(0, np.int64)
    return tables.Events(none, none, none, np.empty((columns, 0)), 0)


def joined(one: tables.Events, two: tables.Events) -> tables.Events:
    """The events of one table, and then those of another one, all from row 0 on."""
    return tables.Events(
        rows=np.append(one.rows, two.rows + len(one.times)),
        times=np.append(one.times, two.times),
        flags=np.append(one.flags, two.flags),
        values=np.concatenate((one.values, two.values), axis=1),
        first=0,
    )


def events_of(
    layout: AutomatonLayout, reader: NumericReader, part: EventStream, first_position: int
) -> tables.Events:
    """What the kernels read of some events, the first of them at a position."""
    plan, code = layout.plan, reader.code
    whole = slice(None)
    numbers: dict[str, np.ndarray] = {}

    def read(name: str, rows: Rows) -> np.ndarray:
        if rows is not whole:
            return reader.read(part, name, rows)
        if name not in numbers:
            numbers[name] = reader.read(part, name, rows)
        return numbers[name]

    if any(passing.clauses for passing in layout.passing):
        flags = np.zeros(len(part), np.int64)
        types = {passing.type for passing in layout.passing}
        of_type: dict[str | None, Rows]
        if types == {None} or types == set(part.type_names) == {*part.type_names[:1]}:
            of_type = dict.fromkeys(types, whole)
        else:
            of_type = {**layout.rows.by_type(part)}
        for passing in layout.passing:
            rows = of_type[passing.type]
            held: Any = True
            for clause in passing.clauses:
                held = held & clause_holds(clause, lambda a, at=rows: read(a.name, at), code)  # type: ignore[misc]  # fmt: skip
            if rows is whole:
                flags |= passing.flag * held
            else:
                flags[rows] |= passing.flag * held
        chosen = np.flatnonzero(flags)
    else:
        flags, chosen = layout.flags.of(part)
    if plan.dies:
        chosen = np.arange(len(part))
    its: Rows = whole if len(chosen) == len(part) else chosen
    values = np.empty((len(layout.columns), len(part)))
    for column, expression in enumerate(layout.columns if len(chosen) else ()):
        values[column, its] = expression_values(expression, lambda a: read(a.name, its), code)
    if plan.dies and len(plan.keys):
        chosen = np.flatnonzero(~np.isnan(values[plan.keys[0]]))
    times = read_only(np.ascontiguousarray(part.timestamps))
    return tables.Events(chosen, times, flags, values, first_position)


def _size(column: Column) -> int:
    """The number of events in a column of matches."""
    return len(column.positions if isinstance(column, SetColumn) else column)
