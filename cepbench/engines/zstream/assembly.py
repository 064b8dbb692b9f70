"""An assembly round: operators from the leaves to the root [mei2009]_, sections 4.3 and 4.4."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np

from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.matches import ranges_of
from cepbench.engines.runs.pieces import matches_at_once, room_for_more
from cepbench.engines.zstream.buffers import Leaf
from cepbench.engines.zstream.kernels import bounds as bound_kernels
from cepbench.engines.zstream.kernels import counted, listed
from cepbench.engines.zstream.kernels import join as join_kernels
from cepbench.engines.zstream.kernels import star as star_kernels
from cepbench.engines.zstream.kernels.bits import count_passed, fill_bits, place_bits
from cepbench.engines.zstream.operators import Join, Negation, Operators, Table
from cepbench.engines.zstream.stars import Bound, Leg, Star
from cepbench.kernels import counts
from cepbench.kernels.batches import LARGEST_CHUNK
from cepbench.kernels.sorting import sorted_by
from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.model import Attribute, Clause

_NO_SIZES = np.empty(0, np.int64)
_NO_POSITIONS = np.empty(0, np.int64)
_NO_PLACES = np.empty((0, 2), np.int64)
_NO_WORDS = np.empty(1, np.uint64), np.empty(1, np.int32)
_NO_RECORDS = np.empty((0, 0), np.int32)

#: Pairs of a record and an event that are tested together.
_PAIRS = 1 << 20


#: Records whose limits are found together, so that they stay in the caches.
_BLOCK = 1024

#: Pairs of events for which there is a running count besides the bitmap.
_DENSE = 1 << 22


class TooManyRecords(Exception):
    """An operator would make more records than a round may."""


@dataclass
class Buffer:
    """The records of an operator of earlier rounds, and of this one: a row number for each of their
    events, int32, shape (columns, records).
    """

    old: np.ndarray
    new: np.ndarray


class Assembly:
    """The buffers during a round, with the records that those of the operators hold.

    An operator may make at most ``most`` records; ``cuts`` says whether more cut the round in two.
    """

    def __init__(
        self,
        operators: Operators,
        leaves: Sequence[Leaf],
        records: Sequence[np.ndarray],
        task: BranchTask,
        *,
        most: int,
        cuts: bool,
        reports: bool,
    ) -> None:
        self._operators = operators
        self._leaves = leaves
        self._task = task
        self._most = most
        self._cuts = cuts
        self._reports = reports
        #: The first row of each leaf that may be in a new record.
        self.starts = [leaf.base for leaf in leaves]
        self.buffers = [Buffer(rows, rows[:, :0]) for rows in records]
        #: (columns, records); the root's new records, as rows or already as positions.
        self.found: list[np.ndarray] = []
        #: int64 (nodes, columns of counts); see :mod:`cepbench.kernels.counts`.
        self.tallies = np.zeros((len(operators.names), operators.count_columns), np.int64)
        #: The first row of the tested leaf, and bits as :meth:`_bits` gives them.
        self._tables: dict[Table, tuple[int, np.ndarray, np.ndarray, np.ndarray]] = {}
        self._find_bounds()

    def _find_bounds(self) -> None:
        """The rows that events stand for in other leaves, for all operators at once."""
        leaves, bounds = self._leaves, self._operators.bounds
        # Where row 0 of each bound's leaf would be.
        self._offsets: list[int] = []
        size = 0
        for bound in bounds:
            x = leaves[bound.x]
            self._offsets.append(size - x.base)
            size += x.stop - x.base
        self._bounds = np.empty(size, np.int32)
        for bound, offset in zip(bounds, self._offsets, strict=True):
            x, y = leaves[bound.x], leaves[bound.y]
            found = self._bounds[offset + x.base : offset + x.stop]
            times, shift = x.times[x.base : x.stop], bound.shift
            if bound.negated >= 0:
                pairs, times = self._negating_times(bound, x.base, leaves[bound.negated].base)
                self.tallies[bound.node, counts.COMPARED] += pairs
                if bound.comparisons:
                    # Not ascending, unless every event negates.
                    stored = y.times[y.base : y.stop]
                    times += bound.is_after
                    found[:] = y.base + np.searchsorted(stored, times)
                    continue
            bound_kernels.first_rows(times, y.times[: y.stop], y.base, shift, found)
        self.bytes = self._bounds.nbytes  #: of ranges of rows, and at most of bitmaps

    def _negating_times(self, bound: Bound, first: int, its_first: int) -> tuple[int, np.ndarray]:
        """The pairs tested to find what negates the events from a row on, and the times of that.

        ``its_first``: the first row of the negated leaf that is looked at.
        """
        x, its = self._leaves[bound.x], self._leaves[bound.negated]
        negated, found = its.times[: its.stop], np.empty(x.stop - first, np.int32)
        times = np.empty(len(found), np.int64)
        bound_kernels.first_rows(
            x.times[first : x.stop], negated, its.base, int(bound.is_after), found
        )
        pairs = bound_kernels.negating_times(
            found,
            x.values,
            first,
            negated,
            its.values,
            its_first,
            np.array(bound.comparisons, np.int64).reshape(-1, 3),
            bound.is_after,
            times,
        )
        return pairs, times

    def discard(self, eat: int) -> None:
        """Leave out what begins before the earliest allowed timestamp."""
        self._eat = eat
        for number in range(self._operators.positive):
            self.starts[number] = self._leaves[number].first_row(eat)
        for join, buffer in zip(self._operators.joins, self.buffers, strict=True):
            buffer.old = beginning_at(join, buffer.old, self.starts)

    def run(self, *, timed: bool) -> int:
        """Evaluate all operators, maybe with the time spent in each; gives how many records the root makes.

        If an operator makes more than it may, :class:`TooManyRecords` is raised.
        """
        made = 0
        joins = self._operators.joins
        if self._operators.as_given:
            self._count_negating()
        for number, join in enumerate(joins):
            since = time.perf_counter_ns() if timed else 0
            tally = self.tallies[len(self._leaves) + number]
            if self._operators.counts_last and number == len(joins) - 2:
                continue
            if self._operators.chosen:
                made = self._count_star(number, tally)
            elif self._operators.counts_last and join is joins[-1]:
                made = self._count_last()
            else:
                made = self._evaluate(number, join)
            if timed:
                tally[counts.NANOSECONDS] = time.perf_counter_ns() - since
            if join is not joins[-1] and not self._operators.chosen:
                tally[counts.CREATED] = made
                tally[counts.LIFETIME] = self._lifetime(made, self._span(number, join))
        return made

    def _count_negating(self) -> None:
        """Count the work of NSEQ, which looks up the negating event of each new event once."""
        for bound in self._operators.bounds:
            if bound.negated < 0:
                continue
            leaf, tally = self._leaves[bound.x], self.tallies[bound.negated]
            first = max(leaf.fresh, self.starts[bound.x])
            tally[counts.TRIED] += leaf.stop - first
            tally[counts.MADE] += leaf.stop - first
            if bound.comparisons:
                its_first = self._leaves[bound.negated].first_row(self._eat)
                pairs, _ = self._negating_times(bound, first, its_first)
                tally[counts.TESTED] += pairs * len(bound.comparisons)

    def make(self, number: int) -> None:
        """Make the records of one operator, from those that are in the buffers below it."""
        made = self._evaluate(number, self._operators.joins[number])
        self.tallies[len(self._leaves) + number, counts.CREATED] = made

    def _lifetime(self, made: int, span: int) -> int:
        """The sum of the times for which records are stored that extend over a sum of times; -1 if these may
        have been more than 64 bits.
        """
        window = self._operators.window
        if made * window >= 1 << 63:
            return -1
        return (made * window - span) >> counts.lifetime_shift(window)

    def _span(self, number: int, join: Join) -> int:
        """The sum of the times that an operator's new records extend over."""
        rows = self.buffers[number].new
        if len(join.first) == len(join.last) == 1:
            first, last = join.first[0], join.last[0]
            return int(
                join_kernels.total_span(
                    self._leaves[join.columns[first]].times,
                    rows[first],
                    self._leaves[join.columns[last]].times,
                    rows[last],
                )
            )
        first_times, last_times = self.extent(join, rows)
        return int((last_times - first_times).sum())

    def extent(self, join: Join, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """When records start and end."""

        def reduced(function: np.ufunc, columns: Sequence[int]) -> np.ndarray:
            times = (np.take(self._leaves[join.columns[at]].times, rows[at]) for at in columns)
            return reduce(function, times)

        return reduced(np.minimum, join.first), reduced(np.maximum, join.last)

    def _evaluate(self, number: int, join: Join) -> int:
        buffer = self.buffers[number]
        is_root = number == len(self.buffers) - 1
        pieces = []
        made = 0
        for outer, is_new in self._inputs(join):
            rows, size = self._pass(number, join, outer, inner_is_new=is_new, is_root=is_root)
            if rows.shape[1]:
                pieces.append(rows)
            made += int(size)  # without compilation, kernels return NumPy's integers
        if is_root:
            self.found = pieces
        elif pieces:
            buffer.new = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
        return made

    def _inputs(self, join: Join) -> Iterator[tuple[np.ndarray, bool]]:
        """Records of the outer buffer, and whether they meet only new ones of the inner buffer."""
        if join.outer < 0:
            yield np.empty((0, 1), np.int32), True
            return
        old, new = self._rows(join.outer)
        # Where only one side can come last, an old record of it meets nothing new.
        if new.shape[1]:
            yield new, not join.outer_drives
        if join.inner_drives and old.shape[1]:
            yield old, True

    def _rows(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """The old and the new records of a buffer."""
        if number >= len(self._leaves):
            buffer = self.buffers[number - len(self._leaves)]
            return buffer.old, buffer.new
        leaf = self._leaves[number]
        rows = np.arange(self.starts[number], leaf.stop, dtype=np.int32)[None]
        old = max(leaf.fresh - self.starts[number], 0)
        return rows[:, :old], rows[:, old:]

    def _pass(
        self, number: int, join: Join, outer: np.ndarray, *, inner_is_new: bool, is_root: bool
    ) -> tuple[np.ndarray, int]:
        """Join outer records with all inner ones, or the new ones only.

        Returns the new records, without any if they are only counted, and how many there are.
        """
        leaves = len(self._leaves)
        is_leaf = join.inner < leaves
        key = self._key(join)
        first = self.starts[key]
        if is_leaf and inner_is_new:
            first = max(first, self._leaves[key].fresh)
        old, new = (_NO_RECORDS, _NO_RECORDS) if is_leaf else self._rows(join.inner)
        inner = new if inner_is_new else np.concatenate((old, new), axis=1)
        as_given = self._operators.as_given
        counted = is_root and join.is_exact and not (self._reports or as_given)
        empty = np.empty((len(join.columns), 0), np.int32)
        if not is_leaf and inner.shape[1] == 0:
            return empty, 0
        if join.equalities:
            rows, size = self._hashed(join, outer, inner, first, counted=counted)
            self.tallies[leaves + number, counts.COMPARED] += size
        else:
            ranges = self._ranges(number, join, outer, first)
            sizes = _NO_SIZES if counted else np.empty(outer.shape[1], np.int64)
            if is_leaf:
                ranges = self._filtered(number, join, outer, ranges)
                if counted:
                    return empty, _number_of_events(outer, ranges)
            within = _limits(outer, ranges)
            if is_leaf:
                size = join_kernels.count_events(outer, ranges, *within, sizes)
            else:
                groups, inner = self._groups(join, inner)
                size = join_kernels.count_groups(
                    outer,
                    ranges,
                    within,
                    groups,
                    np.empty_like(groups.at),
                    np.empty_like(groups.stops),
                    sizes,
                )
            if counted or size == 0:
                return empty, size
            if as_given or not (is_root and join.is_exact):
                self._check(size, is_root)
            positions, offsets = _NO_POSITIONS, _NO_POSITIONS
            if is_root and join.is_exact:
                positions, offsets = self._positions_of(join)
            rows = np.empty((len(join.columns), size), np.int64 if len(positions) else np.int32)
            targets = self._targets(join, is_root)
            if is_leaf:
                join_kernels.join_events(
                    outer, ranges, within, sizes, positions, offsets, targets, rows
                )
            else:
                join_kernels.join_groups(
                    outer, inner, ranges, within, groups, sizes, positions, offsets, targets, rows
                )
        if counted:
            return empty, size
        if join.is_exact:
            if as_given:
                self._count_work(leaves + number, size, 0, size)
            return rows, size
        rows = self._tested(leaves + number, join, rows)
        return rows, rows.shape[1]

    def _count_work(self, node: int, tried: int, tested: int, made: int) -> None:
        """Add to the work of an operator of a plan that is evaluated as given."""
        self.tallies[node, counts.COUNT_COLUMNS :] += (tried, tested, made)

    def _check(self, size: int, is_root: bool) -> None:
        """Raise TooManyRecords; the root's are not stored, and may be as many as they need to be."""
        if size > self._most and (self._cuts or not is_root):
            raise TooManyRecords

    def _key(self, join: Join) -> int:
        """The leaf of a join's key."""
        return join.inner if join.inner < len(self._leaves) else self._columns(join.inner)[join.key]

    def _columns(self, number: int) -> tuple[int, ...]:
        """The leaf of each column of a buffer."""
        leaves = len(self._leaves)
        return (number,) if number < leaves else self._operators.joins[number - leaves].columns

    def _places(self, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
        """Columns and offsets of bounds, shape (pairs, 2)."""
        if not pairs:
            return _NO_PLACES
        return np.array([(column, self._offsets[bound]) for column, bound in pairs], np.int64)

    def _ranges(
        self, number: int, join: Join, outer: np.ndarray, first: int
    ) -> join_kernels.Ranges:
        """What restricts the key for these outer records, bitmaps included."""
        tested = [(table, outer[column]) for column, table in join.tables]
        offsets, origins, words, ranks = self._bits(number, tested, first)
        tables = [(at, offset) for (at, _), offset in zip(join.tables, offsets, strict=True)]
        return join_kernels.Ranges(
            lows=self._places(join.lows),
            highs=self._places(join.highs),
            bounds=self._bounds,
            tables=np.array([its for its in tables if its[1] is not None] or _NO_PLACES, np.int64),
            origins=origins,
            words=words,
            ranks=ranks,
            first=first,
            stop=self._leaves[self._key(join)].stop,
        )

    def _filtered(
        self, number: int, join: Join, outer: np.ndarray, ranges: join_kernels.Ranges
    ) -> join_kernels.Ranges:
        """The ranges that the join's filters leave of these, whose records they are asked for."""
        if not join.has_filters:
            return ranges
        asked = _number_of_events(outer, ranges)
        self.tallies[len(self._leaves) + number, counts.COMPARED] += asked
        return ranges._replace(
            lows=self._places([*join.lows, *join.filter_lows]),
            highs=self._places([*join.highs, *join.filter_highs]),
        )

    def _bits(
        self, number: int, tested: Sequence[tuple[Table, np.ndarray]], first: int
    ) -> tuple[list[int | None], np.ndarray, np.ndarray, np.ndarray]:
        """Bitmaps of the events of some rows, from the row ``first`` of the other leaf on.

        Returns where in the origins row 0 of each table would be, or None if all its bits are set,
        and origins, words and ranks.
        """
        if not tested:
            return [], _NO_SIZES, *_NO_WORDS
        lengths = [self._leaves[table.x].stop - self._leaves[table.x].base for table, _ in tested]
        ends = [0, *accumulate(lengths)]
        origins = np.empty(ends[-1], np.int64)
        place = 0
        filled = []
        for (table, rows), offset, length in zip(tested, ends, lengths, strict=False):
            x = self._leaves[table.x]
            marks = np.zeros(length, np.int8)
            join_kernels.mark(rows, x.base, marks)
            its_origins = origins[offset : offset + length]
            tests = (marks, *self._tested_range(table), first, self._leaves[table.y].stop)
            place, pairs = place_bits(*tests, place, its_origins)
            self.tallies[len(self._leaves) + number, counts.COMPARED] += pairs
            filled.append((table, tests, its_origins, pairs, offset))
        offsets: list[int | None] = []
        # A word is read behind the last one.
        words, ranks = np.empty(place + 1, np.uint64), np.empty(place + 1, np.int32)
        for table, tests, its_origins, pairs, offset in filled:
            x, y = self._leaves[table.x], self._leaves[table.y]
            compared = np.array(table.comparisons, np.int64)
            passed = fill_bits(
                *tests, x.base, x.values, y.values, compared, its_origins, words, ranks
            )
            offsets.append(None if passed == pairs else offset - x.base)
        self.bytes = max(self.bytes, self._bounds.nbytes + 12 * place)
        return offsets, origins, words, ranks

    def _tested_range(self, table: Table) -> tuple[np.ndarray, np.ndarray]:
        """The rows that each event of a table is tested against: the first, and behind the last."""
        return self._bounds_of(table.low), self._bounds_of(table.high)

    def _bounds_of(self, bound: int) -> np.ndarray:
        """The bounds of all events of a leaf."""
        leaf = self._leaves[self._operators.bounds[bound].x]
        offset = self._offsets[bound]
        return self._bounds[offset + leaf.base : offset + leaf.stop]

    def _count_star(self, number: int, tally: np.ndarray) -> int:
        """Count the new records of a node without making them."""
        stars = self._operators.chosen[number]
        latest = stars[0].latest
        firsts = list(self.starts)
        firsts[latest] = max(firsts[latest], self._leaves[latest].fresh)
        found = [self._counted_star(number, star, firsts) for star in stars]
        made = found[0][0]
        if number < len(self._operators.joins) - 1:
            span = sum(abs(its) for _, its in found)
            tally[counts.CREATED] = made
            tally[counts.LIFETIME] = self._lifetime(made, span)
        return made

    def _counted_star(self, number: int, star: Star, firsts: Sequence[int]) -> list[int]:
        """The records from some row of each leaf on, and the times from centres to spokes."""
        centre, spoke = self._leaves[star.centre], self._leaves[star.spoke.leaf]
        legs = [self._leg(number, star.centre, leg, firsts) for leg in star.legs]
        is_root = number == len(self._operators.joins) - 1
        is_range = len(legs) <= 1 + is_root and not any(len(leg.origins) for leg in legs)
        given = star_kernels.Star(
            begin=firsts[star.centre],
            stop=centre.stop,
            base=centre.base,
            spoke_base=spoke.base,
            times=centre.times,
            spoke_times=spoke.times,
            spoke=legs[0],
            first_satellite=legs[min(1, len(legs) - 1)],
            second_satellite=legs[-1],
            satellites=len(legs) - 1,
            timed=not is_root,
        )
        results = np.zeros(2, np.int64)
        if is_range:
            running = np.empty(spoke.stop - spoke.base + 1, np.int64)
            star_kernels.count_ranges(given, running, results)
        else:
            star_kernels.count_star(given, results)
        return results.tolist()

    def _leg(self, number: int, centre: int, leg: Leg, firsts: Sequence[int]) -> star_kernels.Leg:
        low, high = (self._operators.number_of(bound) for bound in (leg.low, leg.high))
        moving, bits = self._bounds[:0], (_NO_SIZES, *_NO_WORDS)
        if leg.moving is not None:
            moving = self._bounds_of(self._operators.number_of(leg.moving))
        if leg.comparisons:
            bits = self._bits_of(number, Table(centre, leg.leaf, low, high, leg.comparisons))
        return star_kernels.Leg(
            self._bounds_of(low),
            self._bounds_of(high),
            firsts[leg.leaf],
            moving,
            leg.from_low,
            *bits,
        )

    def _bits_of(self, number: int, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Origins, words and ranks of a table that several nodes read; none if all bits are set."""
        x, y = self._leaves[table.x], self._leaves[table.y]
        if table not in self._tables:
            rows = np.arange(x.base, x.stop)
            (offset,), origins, words, ranks = self._bits(number, [(table, rows)], y.base)
            origins = _NO_SIZES if offset is None else origins
            self._tables[table] = x.base, origins, words, ranks
        base, origins, words, ranks = self._tables[table]
        # Events may have expired since.
        return origins[x.base - base :], words, ranks

    def stored_by_star(self, number: int, starts: Sequence[int]) -> int:
        """How many records of a node later rounds may read, if none is made."""
        if not self._operators.joins[number].is_kept:
            return 0
        return self._counted_star(number, self._operators.chosen[number][0], starts)[0]

    def _count_last(self) -> int:
        """Count matches, and list them, without making the records of the join before the root."""
        root, number = self._operators.joins[-1], len(self._operators.joins) - 2
        join = self._operators.joins[number]
        z, y = self._leaves[join.inner], self._leaves[root.inner]
        first, fresh = self.starts[join.inner], max(z.fresh, self.starts[join.inner])
        first_last, fresh_last = self.starts[root.inner], max(y.fresh, self.starts[root.inner])
        old, new = self._rows(join.outer)
        outer = np.concatenate((old, new), axis=1) if old.shape[1] else new
        ranges = self._filtered(number, join, outer, self._ranges(number, join, outer, first))
        # Old records meet new events of the last leaf only.
        passes = [(outer, ranges, first_last if root.outer_drives else fresh_last)]
        if all(root.drives):
            passes.append((old, ranges._replace(stop=fresh), fresh_last))
        results = np.zeros((len(passes), 3), np.int64)
        within = np.empty((4, _BLOCK), np.int32)
        for at, (records, its_ranges, first_y) in enumerate(passes):
            lasts, bits = self._lasts(root, first_y)
            counts_old = at > 0 or not root.outer_drives
            for last, found in zip(lasts, (results[at], np.zeros(3, np.int64)), strict=False):
                counted.count_last(
                    records, old.shape[1], fresh, counts_old,
                    its_ranges, last, within,
                    *self._extents(join.outer, records),
                    np.empty((2, len(last.times) + 1), np.int64), found,
                )  # fmt: skip
                if last is not lasts[0]:
                    self.tallies[-1, counts.COMPARED] += found[2]
            if self._reports:
                self._list_last(
                    int(results[at, 2]), lasts[0],
                    (records, old.shape[1], fresh, counts_old, its_ranges, lasts[0], bits, within),
                )  # fmt: skip
            if at == 0 and self._operators.is_rotated:
                begin = (fresh if root.outer_drives else first) - z.base
                results[0, :2] = counted.total_weights(lasts[0], begin, y.times)
        made, span, _ = results[0].tolist()
        tally = self.tallies[len(self._leaves) + number]
        tally[counts.CREATED] = made
        tally[counts.LIFETIME] = self._lifetime(made, span)
        return int(results[:, 2].sum())

    def _list_last(self, count: int, last: counted.Last, inputs: tuple[Any, ...]) -> None:
        """List matches in chunks, with room for more than one event of the last leaf at the end."""
        root = self._operators.joins[-1]
        slack = int((last.limits[1] - last.limits[0]).max(initial=0))
        positions, offsets = self._positions_of(root)
        resume = np.zeros(2, np.int64)
        while count:
            # Large chunks are all of one size, which the allocator finds again.
            room = min(count + slack, max(matches_at_once(LARGEST_CHUNK), slack + 1))
            chunk = np.empty((len(root.columns), room), np.int64)
            made = listed.list_last(
                *inputs, positions, offsets, self._operators.targets, resume, chunk
            )
            self.found.append(chunk[:, :made])
            count -= int(made)

    def _extents(
        self, number: int, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Times and rows of the first, and of the last, events of records of a buffer."""
        if number < len(self._leaves):
            times = self._leaves[number].times
            return times, rows[0], times, rows[0]
        join = self._operators.joins[number - len(self._leaves)]
        if len(join.first) == len(join.last) == 1:
            (first,), (last,) = join.first, join.last
            start, end = (self._leaves[join.columns[at]].times for at in (first, last))
            return start, rows[first], end, rows[last]
        numbers = np.arange(rows.shape[1], dtype=np.int32)
        start, end = self.extent(join, rows)
        return start, numbers, end, numbers

    def _lasts(self, root: Join, first: int) -> tuple[list[counted.Last], np.ndarray]:
        """The last join with the rows from ``first`` on, and without its filters if it has any.

        Also the bit of row 0 of the last leaf for each event of the one before, see :mod:`listed`.
        """
        lows, highs = [*root.lows, *root.filter_lows], [*root.highs, *root.filter_highs]
        last, bits = self._last(root, lows, highs, first)
        if not root.has_filters:
            return [last], bits
        return [last, self._last(root, root.lows, root.highs, first)[0]], bits

    def _last(
        self,
        root: Join,
        lows: Sequence[tuple[int, int]],
        highs: Sequence[tuple[int, int]],
        first: int,
    ) -> tuple[counted.Last, np.ndarray]:
        column = len(root.columns) - 2
        z, y = self._leaves[root.columns[column]], self._leaves[root.inner]
        size = z.stop - z.base
        tables = [table for _, table in root.tables]
        its_lows = [bound for at, bound in lows if at == column] + [t.low for t in tables]
        its_highs = [bound for at, bound in highs if at == column] + [t.high for t in tables]
        ascending = not any(self._operators.bounds[at].comparisons for at in its_lows + its_highs)
        tested = [(table, np.arange(z.base, z.stop)) for table in tables]
        pairs = -self.tallies[-1, counts.COMPARED]
        offsets, origins, words, ranks = self._bits(len(self._operators.joins) - 1, tested, first)
        pairs += self.tallies[-1, counts.COMPARED]
        passed = np.empty(0, np.int32)
        if offsets == [None]:
            origins, tables = _NO_SIZES, []
        bits = origins
        if tables and pairs + size <= room_for_more(_DENSE):
            passed, origins = np.empty(pairs + size, np.int32), bits.copy()
            count_passed(words, *self._tested_range(tables[0]), first, y.stop, origins, passed)
        last = counted.Last(
            lows=self._places([pair for pair in lows if pair[0] != column]),
            highs=self._places([pair for pair in highs if pair[0] != column]),
            first=first,
            stop=y.stop,
            base=z.base,
            limits=np.empty((2, size), np.int64),
            passing=np.empty((2, size), np.int64),
            sums=np.empty((3, size + 1), np.int64),
            times=z.times[z.base : z.stop],
            origins=origins,
            words=words,
            ranks=ranks,
            passed=passed,
            # Without running counts, sums of them are not known.
            ascending=ascending and (len(passed) > 0 or not tables),
        )
        places = [self._offsets[bound] + z.base for bound in its_lows]
        counted.fill_last(
            last,
            self._bounds,
            np.array(places, np.int64),
            np.array([self._offsets[bound] + z.base for bound in its_highs], np.int64),
            places[-1] if tables else -1,
        )
        return last, bits

    def waiting(self, records: Sequence[np.ndarray], starts: Sequence[int]) -> int:
        """How many records of the join before the root later rounds may read, if none is stored.

        ``records`` are those that the operators' buffers hold after the round, and ``starts`` the
        first row of each leaf that is stored.
        """
        number = len(self._operators.joins) - 2
        join = self._operators.joins[number]
        if self._operators.is_rotated or not self._operators.joins[-1].inner_drives:
            return 0
        if join.outer < len(self._leaves):
            outer = np.arange(starts[join.outer], self._leaves[join.outer].stop, dtype=np.int32)[
                None
            ]
        else:
            outer = records[join.outer - len(self._leaves)]
        ranges = self._ranges(number, join, outer, starts[join.inner])
        ranges = self._filtered(number, join, outer, ranges)
        return _number_of_events(outer, ranges)

    def _groups(self, join: Join, inner: np.ndarray) -> tuple[join_kernels.Groups, np.ndarray]:
        """Inner records by their key, and in this order."""
        columns = self._columns(join.inner)
        key = self._leaves[columns[join.key]]
        if join.start >= 0:
            start = self._leaves[columns[join.start]]
            order, _ = sorted_by(inner[join.start], start.base, start.stop - start.base)
            inner = np.take(inner, order, axis=1)
        order, stops = sorted_by(inner[join.key], key.base, key.stop - key.base)
        inner = np.take(inner, order, axis=1)
        groups = join_kernels.Groups(
            stops=stops,
            base=key.base,
            at=stops[:-1].copy(),
            firsts=inner[join.start] if join.start >= 0 else np.empty(0, np.int32),
            lows=self._places(join.start_lows),
        )
        return groups, inner

    def _hashed(
        self, join: Join, outer: np.ndarray, inner: np.ndarray, first: int, *, counted: bool
    ) -> tuple[np.ndarray, int]:
        """Join by equal values [mei2009]_, section 5.2.2.

        Inner records are sorted by the codes of their values, then by the key. All equalities make
        one code, so that there are no secondary tables.
        """
        columns, key = self._columns(join.inner), self._leaves[self._key(join)]
        if join.inner < len(self._leaves):
            inner = np.arange(first, key.stop, dtype=np.int32)[None]
        outer_code = np.zeros(outer.shape[1], np.int64)
        inner_code = np.zeros(inner.shape[1], np.int64)
        known = np.ones(outer.shape[1], bool)
        for outer_column, outer_value, inner_column, inner_value in join.equalities:
            leaf = self._leaves[join.columns[outer_column]]
            wanted = leaf.values[outer_value, outer[outer_column]]
            leaf = self._leaves[columns[inner_column]]
            values, codes = np.unique(
                leaf.values[inner_value, inner[inner_column]], return_inverse=True
            )
            at = np.minimum(np.searchsorted(values, wanted), max(len(values) - 1, 0))
            known &= values[at] == wanted if len(values) else False
            outer_code = outer_code * len(values) + at
            inner_code = inner_code * len(values) + codes
            # Again small numbers, for they are multiplied.
            _, codes = np.unique(np.concatenate((outer_code, inner_code)), return_inverse=True)
            outer_code, inner_code = codes[: len(outer_code)], codes[len(outer_code) :]
        rows = inner[join.key] if columns != (join.inner,) else inner[0]
        width = key.stop + 1
        sorted_by = np.argsort(inner_code * width + rows, kind="stable")
        place = (inner_code * width + rows)[sorted_by]
        lows = self._limit(np.maximum, first, outer, [*join.lows, *join.filter_lows])
        highs = self._limit(np.minimum, key.stop, outer, [*join.highs, *join.filter_highs])
        begin = np.searchsorted(place, outer_code * width + lows)
        end = np.searchsorted(place, outer_code * width + highs)
        sizes = np.where(known, np.maximum(end - begin, 0), 0)
        size = int(sizes.sum())
        if counted:
            return np.empty((len(join.columns), 0), np.int32), size
        self._check(size, join is self._operators.joins[-1])
        found = np.empty((len(join.columns), size), np.int32)
        found[: len(outer)] = np.repeat(outer, sizes, axis=1)
        found[len(outer) :] = inner[:, sorted_by[ranges_of(begin, sizes)]]
        return found, size

    def _limit(
        self, reduced: np.ufunc, limit: int, rows: np.ndarray, pairs: Sequence[tuple[int, int]]
    ) -> np.ndarray:
        """The least or the greatest of some bounds and a limit, for each record."""
        found = np.full(rows.shape[1], limit, np.int64)
        for column, bound in pairs:
            reduced(found, self._bounds[self._offsets[bound] + rows[column]], out=found)
        return found

    def _positions_of(self, join: Join) -> tuple[np.ndarray, np.ndarray]:
        """The positions of events of each column, and where its row 0 would be."""
        leaves = [self._leaves[leaf] for leaf in join.columns]
        sizes = [leaf.stop - leaf.base for leaf in leaves]
        offsets = np.cumsum(sizes) - sizes - [leaf.base for leaf in leaves]
        return np.concatenate([leaf.positions[leaf.base : leaf.stop] for leaf in leaves]), offsets

    def _targets(self, join: Join, is_root: bool) -> np.ndarray:
        """Which row of the result each column is written to."""
        return (
            self._operators.targets if is_root and join.is_exact else np.arange(len(join.columns))
        )

    def positions(self, rows: np.ndarray) -> np.ndarray:
        """Matches as positions in the order of the pattern, as the root's records may be already."""
        if rows.dtype == np.int64:
            return rows
        columns = self._operators.joins[-1].columns
        found = np.empty(rows.shape, np.int64)
        for at, leaf in enumerate(columns):
            target = self._operators.targets[at]
            np.take(self._leaves[leaf].positions, rows[at], out=found[target], mode="clip")
        return found

    def _tested(self, node: int, join: Join, rows: np.ndarray) -> np.ndarray:
        """The records that pass all that they were not made by."""
        passes = np.ones(rows.shape[1], bool)
        leaves = [self._leaves[leaf] for leaf in join.columns]
        for x, y in join.order:
            passes &= leaves[x].times[rows[x]] < leaves[y].times[rows[y]]
        for x, y in join.distinct:
            passes &= leaves[x].positions[rows[x]] != leaves[y].positions[rows[y]]
        if join.window:
            first, last = self.extent(join, rows)
            passes &= last - first <= self._operators.window
        tried = int(passes.sum()) if self._operators.as_given else 0
        self.tallies[node, counts.COMPARED] += rows.shape[1] * bool(join.clauses)
        for clause in join.clauses:
            passes &= self._holds(clause, dict(zip(join.columns, rows, strict=True)))
        rows = rows if passes.all() else np.compress(passes, rows, axis=1)
        if self._operators.as_given:
            self._count_work(node, tried, tried * len(join.clauses), rows.shape[1])
        for negation in join.negations:
            if not negation.is_late:
                rows = self.without_negated(negation, join, rows)
        for group in join.groups:
            self.tallies[node, counts.COMPARED] += rows.shape[1]
            positions = np.array([its.positions[r] for its, r in zip(leaves, rows, strict=True)])
            has_group = self._task.groups[group](self._operators.variables_of(join), positions)
            rows = np.compress(has_group, rows, axis=1)
        return rows

    def _holds(self, clause: Clause, rows: Mapping[int, np.ndarray]) -> np.ndarray:
        """Whether a clause holds of records, given the rows of each leaf that it may read."""

        def read(attribute: Attribute) -> np.ndarray:
            leaf, column = self._operators.place(attribute)
            return self._leaves[leaf].values[column, rows[leaf]]

        return clause_holds(clause, read, self._task.reader.code)

    def without_negated(self, negation: Negation, join: Join, rows: np.ndarray) -> np.ndarray:
        """The records of a join that no event of a negated leaf forbids."""
        tally = self.tallies[len(self._leaves) + self._operators.joins.index(join)]
        pairs = -tally[counts.COMPARED]
        left = np.compress(~self._is_negated(negation, join, rows), rows, axis=1)
        pairs += tally[counts.COMPARED]
        if self._operators.as_given:
            conditions = len(negation.comparisons) + len(negation.clauses)
            self._count_work(negation.leaf, rows.shape[1], pairs * conditions, left.shape[1])
        return left

    def _is_negated(self, negation: Negation, join: Join, rows: np.ndarray) -> np.ndarray:
        """Whether an event of a negated leaf forbids each record of a join, shape (records,)."""
        leaf = self._leaves[negation.leaf]
        tally = self.tallies[len(self._leaves) + self._operators.joins.index(join)]
        lows = self._limit(np.maximum, leaf.base, rows, negation.lows)
        highs = self._limit(np.minimum, leaf.stop, rows, negation.highs)
        if not (negation.comparisons or negation.clauses or negation.distinct):
            return highs > lows
        if not (negation.clauses or negation.distinct):
            values = np.array(
                [
                    self._leaves[join.columns[column]].values[compared[0], rows[column]]
                    for column, compared in negation.comparisons
                ]
            )
            compared = np.array([its[1:] for _, its in negation.comparisons], np.int64)
            found, tested = bound_kernels.any_passes(values, lows, highs, leaf.values, compared)
            tally[counts.COMPARED] += tested
            return found
        sizes = np.maximum(highs - lows, 0)
        found = np.zeros(rows.shape[1], bool)
        ends = np.cumsum(sizes)
        begin = 0
        while begin < len(sizes):
            # At least one record, however many events there are in its range.
            stop = max(
                begin + 1, int(np.searchsorted(ends, ends[begin] - sizes[begin] + _PAIRS, "right"))
            )
            part = slice(begin, stop)
            record = np.repeat(np.arange(begin, stop), sizes[part])
            event = ranges_of(lows[part], sizes[part])
            tally[counts.COMPARED] += len(event)
            forbids = self._forbids(negation, join, rows[:, record], event)
            found[record[forbids]] = True
            begin = stop
        return found

    def _forbids(
        self, negation: Negation, join: Join, rows: np.ndarray, events: np.ndarray
    ) -> np.ndarray:
        """Whether the event of a negated leaf forbids the record beside it."""
        forbids = np.ones(len(events), bool)
        leaf = self._leaves[negation.leaf]
        for column in negation.distinct:
            other = self._leaves[join.columns[column]]
            forbids &= other.positions[rows[column]] != leaf.positions[events]
        read = {**dict(zip(join.columns, rows, strict=True)), negation.leaf: events}
        for clause in negation.clauses:
            forbids &= self._holds(clause, read)
        return forbids


def _limits(outer: np.ndarray, ranges: join_kernels.Ranges) -> np.ndarray:
    """The limits of the rows of the key for each outer record, shape (2, records)."""
    found = np.empty((2, outer.shape[1]), np.int32)
    join_kernels.find_limits(
        outer, 0, ranges.lows, ranges.highs, ranges.bounds, ranges.first, ranges.stop, *found
    )
    return found


def _number_of_events(outer: np.ndarray, ranges: join_kernels.Ranges) -> int:
    """How many events of the key join outer records."""
    within = np.empty((2, _BLOCK), np.int32)
    return int(join_kernels.total_events(outer, ranges, within, _NO_SIZES))


def beginning_at(join: Join, rows: np.ndarray, starts: Sequence[int]) -> np.ndarray:
    """The records of a join whose first event is not before the first row of its leaf."""
    if not rows.shape[1]:
        return rows
    kept = np.ones(rows.shape[1], bool)
    for column in join.first:
        kept &= rows[column] >= starts[join.columns[column]]
    return rows if kept.all() else np.compress(kept, rows, axis=1)
