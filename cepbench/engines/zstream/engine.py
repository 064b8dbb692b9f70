"""Rounds over the batches of a stream [mei2009]_, section 4.3: the batch-iterator model."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from cepbench.engines.plan_runs.by_type import ByTypes, TypeFlags, type_codes_of
from cepbench.engines.plan_runs.engine import BranchTask, Chunks, Layout, PlanEngine
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.engines.runs.latency import Latency
from cepbench.engines.runs.pieces import matches_at_once
from cepbench.engines.zstream.assembly import Assembly, TooManyRecords, beginning_at
from cepbench.engines.zstream.buffers import Leaf
from cepbench.engines.zstream.disjunctions import Sides
from cepbench.engines.zstream.kernels.reading import read_events
from cepbench.engines.zstream.operators import Join, Negation, operators_of
from cepbench.errors import PartialMatchLimitError
from cepbench.kernels import counts
from cepbench.kernels.arrays import read_only
from cepbench.kernels.batches import NEVER
from cepbench.patterns.model import Variable
from cepbench.state import check_shape, damaged
from cepbench.streams.event_stream import EventStream

#: Records that a round may make at a node before it is cut in two, so that they stay in the caches;
MOST_RECORDS = 1 << 18
#: but a round of so few events is never cut for that.
FEWEST_EVENTS = 64

#: Events by which alternatives are compared.
SAMPLE = 1024

_NO_ROWS = np.empty(0, np.int64)


class _Kept(NamedTuple):
    """The events of a batch that can be bound to a leaf."""

    code: int  #: of their type
    places: np.ndarray | slice  #: among those of the type
    rows: np.ndarray  #: int64
    times: np.ndarray  #: int64


class _Events(NamedTuple):
    """The events of a batch."""

    batch: EventStream
    first_position: int
    codes: np.ndarray  #: int32 (events,), of their types
    timestamps: np.ndarray  #: int64 (events,)
    codes_of: Mapping[str | None, list[int]]  #: the types that are of the type of each leaf
    kept: Mapping[int, _Kept]  #: those of leaves of one type, if the batch keeps its rows

    def added(self, first: int, stop: int) -> int:
        """How many are bound to leaves, all of which are kept, from row ``first`` to before row ``stop``."""
        return sum(
            int(np.subtract(*its.rows.searchsorted((stop, first)))) for its in self.kept.values()
        )


def _codes_of(types: Sequence[str | None], batch: EventStream) -> dict[str | None, list[int]]:
    return {kind: batch.codes_of(kind).tolist() for kind in types}


def _with_columns(join: Join, columns: Sequence[int], rows: np.ndarray) -> np.ndarray:
    """Records with these leaves as columns, as those of a join."""
    return rows[[columns.index(leaf) for leaf in join.columns]]


class ZStreamEngine(PlanEngine):
    """Finds the matches of a branch without KL, or counts those of several that differ in leaves,
    which :func:`~cepbench.engines.zstream.disjunctions.groups_of` puts together.

    A round has ``batch_size`` events, and goes on until it has a quarter as many for the leaf buffers; or it is one
    timestamp if latencies are measured. With ``hashing`` equalities are evaluated by hashing; ``as_given``, the plan
    is, operator by operator, their work is counted, and no round goes on.
    """

    SAVED = (
        "_chosen", "_is_new", "_size", "rounds[:]", "_counts[:]", "_peaks[:]", "_leaves", "_rows",
    )  # fmt: skip

    def __init__(self, task: BranchTask, *, batch_size: int, hashing: bool, as_given: bool) -> None:
        super().__init__(task)
        self._sides = Sides(task.branches)
        self._alternatives = operators_of(
            task.branches[0],
            task.trees[0],
            placements=task.placements[0],
            hashing=hashing,
            as_given=as_given,
            reports=task.reports,
            groups=tuple(task.groups),
        )
        self._batch_size, self._as_given = batch_size, as_given
        #: Events in the next round.
        self._size = batch_size
        #: int64 (2,); the number of idle and of assembly rounds.
        self.rounds = np.zeros(2, np.int64)
        self._start(0)
        #: Whether no event has come.
        self._is_new = True

    def _start(self, alternative: int) -> None:
        """Begin without events, by one of the alternatives."""
        self._alternative = alternative
        operators = self.operators = copy(self._alternatives[alternative])
        self.layout = Layout(
            leaves=operators.leaves,
            filters=operators.filters,
            nodes=tuple(tuple(map(self._sides.label, names)) for names in operators.names),
            columns=operators.positive,
        )
        self._leaves = [
            Leaf.empty(len(columns), has_positions=operators.has_positions)
            for columns in operators.values
        ]
        variables = (its for number in range(len(self._leaves)) for its in self._variables(number))
        self._has_own = TypeFlags((its.type, 1) for its in variables)
        #: The codes of the types of a batch that are of the type of each leaf.
        self._codes_of = ByTypes(partial(_codes_of, [its.type for its in self.layout.leaves]))
        self._records = [np.empty((len(join.columns), 0), np.int32) for join in operators.joins]
        #: Matches that wait for the end of their window.
        self._pending = self._records[-1]
        self._counts = np.zeros((len(operators.names), operators.count_columns), np.int64)
        self._peaks = np.zeros(counts.PEAKS, np.int64)

    @property
    def work(self) -> np.ndarray:
        """What each operator did, int64 (nodes, 3); see :mod:`cepbench.kernels.counts`."""
        return self._counts[:, counts.COUNT_COLUMNS :]

    def node_counts(self) -> list[NodeCounts]:
        """Counts at the nodes of the plan."""
        window, order = self.operators.window, self.operators.order
        names = [self.layout.nodes[node] for node in order]
        return [NodeCounts(names, len(self._leaves), window, self._counts[order])]

    def advance(
        self, batch: EventStream | None, first_position: int, until: int
    ) -> tuple[Chunks, int]:
        """Process a batch of events, round by round; see :meth:`PlanEngine.advance`."""
        found = 0
        chunks: list[np.ndarray] = []
        if batch is not None:
            if self._is_new and len(self._alternatives) > 1:
                cheapest = self._cheapest(batch[:SAMPLE], first_position)
                if cheapest != self._alternative:
                    self._start(cheapest)
            self._is_new = False
            if self._is_idle(batch):
                self.rounds[0] += -(-len(batch) // self._size)
                now = int(batch.timestamps[-1])
                if self._drop_events(now):
                    self._expire(now, None)
                batch = None
        if batch is not None:
            events, most = self._events_of(batch, first_position), self._sides.most
            begin = 0
            while begin < len(batch):
                stop, stops = begin, [leaf.stop for leaf in self._leaves]
                try:
                    while stop == begin or (stop < len(batch) and self._goes_on(stops)):
                        first, stop = stop, self._end_of_step(events, stop)
                        room = most * (stop - first)
                        if len(events.kept) == len(self._leaves):
                            room = min(room, events.added(first, stop))
                        if not all(leaf.has_room(room) for leaf in self._leaves):
                            # For two steps, so that few added events need none for the next ones.
                            least = most * min(self._batch_size, len(batch) - first)
                            dropped = self._make_room(2 * max(room, least))
                            stops = [its - gone for its, gone in zip(stops, dropped, strict=True)]
                        self._take(events, first, stop)
                    found += self._round(int(events.timestamps[stop - 1]), stop - begin, chunks)
                    begin = stop
                except TooManyRecords:
                    self._size = max(FEWEST_EVENTS, min(self._size, stop - begin) // 2)
                finally:
                    for number, before in enumerate(stops):
                        leaf = self._leaves[number]
                        if begin == stop:
                            self._counts[number, counts.CREATED] += leaf.stop - before
                        else:
                            leaf.stop = before
        if until == NEVER:
            found += self._round(NEVER, 0, chunks)
        return self.without_sets(chunks), found

    def _cheapest(self, sample: EventStream, first_position: int) -> int:
        """The alternative that makes fewest records of some events, or has fewest outer ones."""
        if not self.operators.made:
            sizes = [
                sum(len(sample.rows_of(v.type)) for v in self._variables(its.joins[0].outer))
                for its in self._alternatives
            ]
            return sizes.index(min(sizes))
        made = []
        for number in range(len(self._alternatives)):
            trial = copy(self)
            trial.latencies, trial.rounds = self.latencies.copy(), self.rounds.copy()
            trial._is_new = False
            trial._start(number)
            with suppress(PartialMatchLimitError):
                trial.advance(sample, first_position, int(sample.timestamps[-1]))
            made.append(int(trial._counts[len(trial._leaves) : -2, counts.CREATED].sum()))
        return made.index(min(made))

    def _is_idle(self, batch: EventStream) -> bool:
        """Whether a batch has no events for leaf buffers, nor decides anything."""
        waits = self._pending.shape[1] or len(self.latencies)
        return not waits and not self._has_own.any_of(batch)

    def _make_room(self, events: int) -> list[int]:
        """Have leaf buffers hold what is stored and so many events more; returns the rows that each dropped."""
        dropped = [leaf.make_room(events) for leaf in self._leaves]
        for number, join in enumerate(self.operators.joins):
            moved = np.array([[dropped[leaf]] for leaf in join.columns], np.int32)
            self._records[number] = self._records[number] - moved
        self._pending = self._pending - moved
        return dropped

    def _events_of(self, batch: EventStream, first_position: int) -> _Events:
        codes_of = self._codes_of.of(batch)
        single = {
            number: codes_of[variable.type][0]
            for number, variable in enumerate(self.layout.leaves)
            if len(codes_of[variable.type]) == 1 and number not in self._sides.choices
        }
        parts = zip(single.items(), batch.rows_of_codes([*single.values()]) or (), strict=False)
        kept = {}
        for (number, code), rows in parts:
            places = self.fitting_places(batch, self.layout.filters[number], code)
            kept[number] = _Kept(code, places, rows[places], batch.times_of_code(code)[places])
        timestamps = read_only(np.ascontiguousarray(batch.timestamps))
        return _Events(batch, first_position, type_codes_of(batch), timestamps, codes_of, kept)

    def _take(self, events: _Events, first: int, stop: int) -> None:
        """Add the events from row ``first`` to before row ``stop`` to the leaf buffers."""
        batch, codes_of = events.batch, events.codes_of
        codes, timestamps = events.codes[first:stop], events.timestamps[first:stop]
        for number, variable in enumerate(self.layout.leaves):
            leaf, kinds = self._leaves[number], codes_of[variable.type]
            columns, filters = self.operators.values[number], self.layout.filters[number]
            times = leaf.times[leaf.stop :]
            kept = events.kept.get(number)
            if kept is not None:
                of_step = slice(*kept.rows.searchsorted((first, stop)))
                rows, filters, places = kept.rows[of_step], (), kept.places
                at = of_step if isinstance(places, slice) else places[of_step]
                times[: len(rows)] = kept.times[of_step]
            elif number in self._sides.choices:
                rows = self._rows_of_sides(batch, number, first, len(codes))
                filters = ()
                times[: len(rows)] = batch.timestamps[rows]
            elif variable.type is None:
                rows = np.arange(first, first + len(codes))
                times[: len(rows)] = timestamps
            elif not kinds:
                continue
            elif len(kinds) > 1:
                rows = first + batch[first : first + len(codes)].rows_of(variable.type)
                times[: len(rows)] = batch.timestamps[rows]
            elif not (filters or columns or leaf.has_positions):
                leaf.stop += int(read_events(codes, timestamps, kinds[0], first, times, _NO_ROWS))
                continue
            else:
                rows = np.empty(len(codes), np.int64)
                rows = rows[: read_events(codes, timestamps, kinds[0], first, times, rows)]
            if filters and len(rows):
                rows = self.fitting(batch, rows, filters)
                times[: len(rows)] = batch.timestamps[rows]
            if not len(rows):
                continue
            new = slice(leaf.stop, leaf.stop + len(rows))
            if leaf.has_positions:
                np.add(rows, events.first_position, out=leaf.positions[new])
            for expression, column in columns.items():
                leaf.values[column, new] = (
                    self.values(expression, batch, rows)
                    if kept is None
                    else self.values(expression, batch, at, kept.code)
                )
            leaf.stop = new.stop

    def _variables(self, leaf: int) -> tuple[Variable, ...]:
        """The variables of a leaf: several of a disjunction."""
        return self._sides.choices.get(leaf, (self.layout.leaves[leaf],))

    def _rows_of_sides(self, batch: EventStream, leaf: int, first: int, events: int) -> np.ndarray:
        """The rows of a disjunction's events in their order, once for each side that they are of."""
        part = batch[first : first + events]
        found = []
        for variable in self._variables(leaf):
            rows = first + part.rows_of(variable.type)
            found.append(self.fitting(batch, rows, self._sides.filters[variable.name]))
        return np.sort(np.concatenate(found))

    @property
    def _may_go_on(self) -> bool:
        """Whether rounds go on while so few events are added to the leaf buffers that one is not worth its start."""
        return not (self._as_given or len(self.latencies) or self._size <= FEWEST_EVENTS)

    def _goes_on(self, stops: Sequence[int]) -> bool:
        added = sum(leaf.stop - before for leaf, before in zip(self._leaves, stops, strict=True))
        return self._may_go_on and 4 * added < self._size

    def _end_of_step(self, events: _Events, begin: int) -> int:
        """The row behind a step, or behind all those of a round where it is known what they add."""
        times, size = events.timestamps, self._size
        if len(self.latencies):
            return int(np.searchsorted(times, times[begin], "right"))
        end = begin + size
        if end < len(times) and self._may_go_on and len(events.kept) == len(self._leaves):
            stops = range(end, len(times), size)
            # Most often the first one.
            if 4 * events.added(begin, end) < size:
                steps = bisect_left(stops, size, 1, key=lambda its: 4 * events.added(begin, its))
                end = begin + (1 + steps) * size
        return min(end, len(times))

    def _round(self, now: int, events: int, chunks: list[np.ndarray]) -> int:
        """Take up the ``events`` that leaf buffers have got, of whatever type, and give the number
        of new matches.

        No later event is before ``now``. Nothing has changed if :class:`TooManyRecords` is raised.
        """
        since = time.perf_counter()
        operators, leaves = self.operators, self._leaves
        fresh = [
            int(leaves[number].times[leaves[number].fresh])
            for number in operators.finals
            if leaves[number].stop > leaves[number].fresh
        ]
        if not fresh and not self._pending.shape[1]:
            self.rounds[0] += events > 0
            self._tally_bytes(0)
            self._expire(now, None)
            return 0
        if operators.stars and not operators.chosen:
            sizes = [leaf.stop - leaf.base for leaf in leaves]
            begun = [int(leaf.times[leaf.base]) for leaf in leaves if leaf.stop > leaf.base]
            operators.choose_stars(sizes, min(1.0, operators.window / max(1, now - min(begun))))
        cuts, most = events > FEWEST_EVENTS, matches_at_once(MOST_RECORDS)
        assembly = Assembly(
            operators,
            leaves,
            self._records,
            self.task,
            most=most if cuts else max(most, self.task.limit),
            cuts=cuts,
            reports=self.task.reports,
        )
        if not fresh:
            self.rounds[0] += events > 0
            found = 0
        else:
            assembly.discard(min(fresh) - operators.window)
            found = self._assemble(assembly, cuts=cuts)
            if 4 * assembly.tallies[:, counts.CREATED].max() < most:
                self._size = min(2 * self._size, self._batch_size)
            self.rounds[1] += 1
            for leaf in leaves:
                leaf.fresh = leaf.stop
        late = [negation for negation in operators.joins[-1].negations if negation.is_late]
        matches = assembly.found
        if late:
            rows = np.concatenate((self._pending, *matches), axis=1)
            matches = [self._decide(assembly, late, rows, now)]
            found = matches[0].shape[1]
        if self.task.reports:
            chunks += [assembly.positions(rows) for rows in matches]
        self._count(assembly, found)
        self._expire(now, assembly if fresh else None)
        if len(self.latencies) and found:
            seconds = np.array([time.perf_counter() - since])
            self.latencies += found * Latency.of(seconds).histogram
        return found

    def _assemble(self, assembly: Assembly, *, cuts: bool) -> int:
        try:
            return assembly.run(timed=self.task.watched)
        except TooManyRecords:
            if cuts:
                raise
            raise self._too_many() from None

    def _decide(
        self, assembly: Assembly, late: Sequence[Negation], rows: np.ndarray, now: int
    ) -> np.ndarray:
        """The records whose window has passed, without those that are negated; others wait."""
        join = self.operators.joins[-1]
        first = assembly.extent(join, rows)[0]
        due = first < now - self.operators.window
        self._pending = np.compress(~due, rows, axis=1)
        rows = np.compress(due, rows, axis=1)
        for negation in late:
            rows = assembly.without_negated(negation, join, rows)
        return rows

    def _count(self, assembly: Assembly, found: int) -> None:
        """Add up what a round took."""
        lost = (
            np.minimum(self._counts[:, counts.LIFETIME], assembly.tallies[:, counts.LIFETIME]) < 0
        )
        self._counts += assembly.tallies
        self._counts[lost, counts.LIFETIME] = -1
        self._counts[-1, counts.CREATED] += found
        taken = sum(buffer.old.nbytes + buffer.new.nbytes for buffer in assembly.buffers[:-1])
        self._tally_bytes(assembly.bytes + taken)

    def _tally_bytes(self, besides: int) -> None:
        """Update the peak of the bytes taken by leaf buffers and what is there besides."""
        taken = besides + sum(leaf.bytes for leaf in self._leaves)
        self._peaks[counts.PEAK_BYTES] = max(self._peaks[counts.PEAK_BYTES], taken)

    def _expire(self, now: int, assembly: Assembly | None) -> None:
        """Keep what later rounds may read."""
        operators = self.operators
        self._drop_events(now)
        starts = [leaf.base for leaf in self._leaves]
        for number, join in enumerate(operators.joins):
            if join.is_kept:
                rows = self._records[number]
                if assembly is not None:
                    buffer = assembly.buffers[number]
                    kept = [beginning_at(join, part, starts) for part in (buffer.old, buffer.new)]
                    self._records[number] = np.concatenate(kept, axis=1)
                else:
                    self._records[number] = beginning_at(join, rows, starts)
        stored = [rows.shape[1] for rows in self._records[:-1]]
        if operators.chosen and assembly is not None:
            stored = [assembly.stored_by_star(number, starts) for number in range(len(stored))]
        if operators.counts_last and assembly is not None:
            stored[-1] = assembly.waiting(self._records, starts)
        self._tally_stored([*stored, self._pending.shape[1]])

    def _drop_events(self, now: int) -> bool:
        """Keep the events that later rounds may read; returns whether others were dropped."""
        operators, dropped = self.operators, False
        for number, leaf in enumerate(self._leaves):
            # A late negation looks back from the last event of a record that waits.
            back = 1 + (number in operators.looks_back)
            base = leaf.first_row(now - back * operators.window)
            dropped |= base > leaf.base
            leaf.base, leaf.fresh = base, max(leaf.fresh, base)
        return dropped

    def _tally_stored(self, stored: Sequence[int]) -> None:
        """Update the peaks of what is stored between rounds."""
        leaves = [leaf.stop - leaf.base for leaf in self._leaves]
        held = np.array([*leaves, *stored])
        np.maximum(self._counts[:, counts.PEAK], held, out=self._counts[:, counts.PEAK])
        if sum(stored) > self.task.limit:
            raise self._too_many()
        peaks = self._peaks
        peaks[counts.PEAK_PARTIAL_MATCHES] = max(peaks[counts.PEAK_PARTIAL_MATCHES], sum(stored))
        peaks[counts.PEAK_EVENTS] = max(peaks[counts.PEAK_EVENTS], sum(leaves))

    def _too_many(self) -> PartialMatchLimitError:
        stored = self._counts[len(self._leaves) :, counts.PEAK]
        return self.too_many(self.layout.nodes[len(self._leaves) + int(stored.argmax())])

    def adopt(self, old: ZStreamEngine) -> bool:
        """Go on where another plan for the same branch is, with its buffers; whether that is possible.

        Leaf buffers are taken over, and so are those of joins of the same variables and negations. Other
        records that later rounds read are made from them. It is not possible if conditions read values
        that the other plan's do not, if there are alternatives to choose from, or if there were too many
        records for a round. Source: [mei2009]_, section 5.3, which leaves the reuse of sub-trees to future
        work.
        """
        operators, given = self.operators, old.operators
        has_choice = len(self._alternatives) > 1 and operators.made
        if has_choice or operators.looks_back != given.looks_back:
            return False
        leaves = []
        for leaf, values, stored in zip(old._leaves, operators.values, given.values, strict=True):
            if not values.keys() <= stored.keys():
                return False
            columns = [stored[expression] for expression in values]
            # All that an assembly round has seen is new to the joins that have to be evaluated.
            leaves.append(
                replace(leaf, values=leaf.values[columns], fresh=leaf.base, stop=leaf.fresh)
            )
        held = {
            join.made_of: (join.columns, rows)
            for join, rows in zip(given.made, old._records, strict=False)
            if join.is_kept
        }
        assembly = Assembly(
            operators, leaves, self._records, self.task, most=MOST_RECORDS, cuts=True, reports=False
        )
        read: set[int] = set()
        to_make = []
        for number, join in reversed([*enumerate(operators.made)]):
            if not join.is_kept and number + len(leaves) not in read:
                continue
            if join.made_of in held:
                assembly.buffers[number].new = _with_columns(join, *held[join.made_of])
            else:
                read |= {join.outer, join.inner}
                to_make.append(number)
        try:
            for number in reversed(to_make):
                assembly.make(number)
        except TooManyRecords:
            return False
        for leaf, its in zip(leaves, old._leaves, strict=True):
            leaf.fresh, leaf.stop = its.fresh, its.stop
        self._leaves = leaves
        for number, join in enumerate(operators.made):
            if join.is_kept:
                self._records[number] = assembly.buffers[number].new
        self._pending = _with_columns(operators.joins[-1], given.joins[-1].columns, old._pending)
        self._is_new = False
        self._count(assembly, 0)
        return True

    @property
    def _rows(self) -> list[np.ndarray]:
        """The records and the matches that wait, by number of the stored event."""
        columns = [join.columns for join in self.operators.joins]
        return [
            rows - np.array([[self._leaves[leaf].base] for leaf in leaves], np.int32)
            for leaves, rows in zip(
                [*columns, columns[-1]], [*self._records, self._pending], strict=True
            )
        ]

    @_rows.setter
    def _rows(self, rows: list[np.ndarray]) -> None:
        for its, none in zip(rows, [*self._records, self._pending], strict=True):
            check_shape("records", its[:, :0], none.shape)
        *self._records, self._pending = rows

    @property
    def _chosen(self) -> int:
        return self._alternative

    @_chosen.setter
    def _chosen(self, alternative: int) -> None:
        if not 0 <= alternative < len(self._alternatives):
            raise damaged(f"it has no alternative {alternative}")
        self._start(alternative)
