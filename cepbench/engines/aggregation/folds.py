"""Matches folded into totals: by their first events, with which they expire, or by their last ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from cepbench.engines.aggregation.kernels.match_folds.folding import fold, number_slots
from cepbench.engines.aggregation.semirings import LARGEST, Total, in_floats, largest_sum
from cepbench.engines.aggregation.valuation import Changes
from cepbench.engines.runs.matches import SetColumn
from cepbench.engines.sequence_counts.integers import narrowed
from cepbench.state import Stateful

_NEVER = np.iinfo(np.int64).max


class Weights(NamedTuple):
    """What matches add to a total: match m ``values[places[m] - lowest]``."""

    values: np.ndarray
    places: np.ndarray
    lowest: int = 0

    @property
    def by_match(self) -> np.ndarray:
        """One for each match."""
        found: np.ndarray = self.values[self.places - self.lowest]
        return found

    def taken(self, kept: np.ndarray) -> Weights:
        """Those of some matches."""
        return self._replace(places=self.places[kept])


class Matches(NamedTuple):
    """The matches that a batch of events completes."""

    rows: np.ndarray  #: of their last events
    groups: np.ndarray
    firsts: np.ndarray  #: positions of their first events
    weights: list[Weights]  #: of each total, the number of matches first

    def taken(self, kept: np.ndarray) -> Matches:
        """Some of them."""
        rows, groups, firsts = (its[kept] for its in self[:3])
        return Matches(rows, groups, firsts, [its.taken(kept) for its in self.weights])


class _Runs(NamedTuple):
    """Successive matches with the same last event and group."""

    codes: np.ndarray  #: ascending: group times the number of rows, plus row
    begins: np.ndarray
    ends: np.ndarray


def _runs_of(matches: Matches, wide: int) -> _Runs:
    codes = matches.rows
    if matches.groups.any():
        codes = matches.groups * wide + codes
    first = np.zeros(min(1, len(codes)), np.int64)
    begins = np.append(first, np.flatnonzero(codes[1:] != codes[:-1]) + 1)
    ends = np.append(begins[1:], len(codes))[: len(begins)]
    codes = codes[begins]
    order = np.argsort(codes, kind="stable")
    return _Runs(codes[order], begins[order], ends[order])


class CompletedMatches(Stateful):
    """The totals of the matches that each event completes.

    The first total is the number of matches. They count after this event only, or from then on (``stays``).
    """

    SAVED: ClassVar[tuple[str, ...]] = ("_counted", "peak_matches", "peak_counters")

    def __init__(self, totals: Sequence[Total], *, stays: bool = False) -> None:
        self._totals, self._stays = totals, stays
        self._counted = np.zeros(0, np.int64)
        #: The most that count at a time; counters by group.
        self.peak_matches = self.peak_counters = 0

    def to_floats(self, floats: Sequence[bool]) -> None:
        """Say which totals are over floats from now on."""

    def push(self, times: np.ndarray, matches: Matches, known: np.ndarray, lowest: int) -> Changes:
        """The totals after some events, of these times, that complete some matches.

        ``known`` are the times of the events in the window, the first of which has the position ``lowest``.
        """
        size = len(times)
        runs = _runs_of(matches, size)
        codes, firsts = np.unique(runs.codes, return_index=True)
        order, found = np.argsort(runs.begins), []
        for total, weights in zip(self._totals, matches.weights, strict=True):
            values = weights.by_match
            if not (total.is_maximum or largest_sum(values, len(values)) < LARGEST):
                values = values.astype(object)
            if len(values):
                add = np.maximum if total.is_maximum else np.add
                by_run = np.empty(len(order), values.dtype)
                by_run[order] = add.reduceat(values, runs.begins[order])
                values = narrowed(add.reduceat(by_run, firsts))
            found.append(values)
        changes = _changes(codes, size, found)
        if self._stays:
            self._counted = np.union1d(self._counted, changes.parts)
            self.peak_matches += len(matches.rows)
            self.peak_counters = len(self._counted)
        else:
            counts = np.bincount(matches.rows), np.bincount(changes.rows)
            most = [int(its.max(initial=0)) for its in counts]
            self.peak_matches = max(self.peak_matches, most[0])
            self.peak_counters = max(self.peak_counters, most[1])
        return changes

    def at(self, time: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """The groups of what expires, and its totals, at a time: nothing."""
        return self._counted[:0], []


class FirstEvents(CompletedMatches):
    """The totals of the matches in the window, by group and first event: a *slot* for each.

    It counts for ``window`` ticks after its first event.
    """

    SAVED = ("_groups", "_times", "_positions", "_cells")

    def __init__(self, totals: Sequence[Total], window: int) -> None:
        super().__init__(totals)
        self._window = window
        #: Of the slots that have not expired; groups are ascending.
        self._groups = self._times = self._positions = np.zeros(0, np.int64)
        self._earliest = _NEVER
        self._floats = [False] * len(totals)
        self._cells = [np.zeros(0, np.int64) for _ in totals]

    def to_floats(self, floats: Sequence[bool]) -> None:
        """See :meth:`CompletedMatches.to_floats`."""
        self._cells = in_floats(self._totals, self._floats, floats, self._cells)
        self._floats = [*floats]

    def push(self, times: np.ndarray, matches: Matches, known: np.ndarray, lowest: int) -> Changes:
        """See :meth:`CompletedMatches.push`; also after events with which matches expire."""
        size, wide = len(times), len(times) + 1
        if not len(matches.rows) and int(times[-1]) - self._window <= self._earliest:
            return _changes(matches.rows, wide, [its[:0] for its in self._cells])
        runs = _runs_of(matches, wide)
        groups, rows = np.divmod(runs.codes, wide)
        before, slots = len(self._groups), np.empty(len(matches.rows), np.int64)
        new = np.empty((2, len(slots)), np.int64)
        number = number_slots(
            runs.begins, runs.ends, groups, matches.firsts, lowest,
            np.stack((self._groups, self._positions)), np.full(len(known), -1),
            np.empty(len(known), np.int64), slots, new,
        )  # fmt: skip
        begun, examples = new[:, :number]
        self._groups = np.append(self._groups, groups[begun])
        self._positions = np.append(self._positions, matches.firsts[examples])
        self._times = np.append(self._times, known[self._positions[before:] - lowest])
        # In the row behind the last one, those that outlive the batch.
        ends = np.searchsorted(times, self._times + self._window, side="right")
        codes = self._groups * wide + ends
        expiring = np.argsort(codes, kind="stable")
        codes = codes[expiring]
        changes = np.union1d(runs.codes, codes[ends[expiring] < size])
        expired = np.searchsorted(codes, changes, side="right")
        behind = np.searchsorted(codes, (changes // wide + 1) * wide)
        first_runs = np.append(np.searchsorted(runs.codes, changes), len(runs.codes))
        active, found = int(self._cells[0].sum()), []
        for place, (total, is_float) in enumerate(zip(self._totals, self._floats, strict=True)):
            zero, old = total.units(is_float=is_float)[0], self._cells[place]
            cells = np.append(old, np.full(number, zero, old.dtype))
            weights = matches.weights[place]
            values, out, kernel = weights.values, np.empty(len(changes), cells.dtype), fold
            most = largest_sum(cells, len(cells)) + largest_sum(values, len(slots))
            if not (total.is_maximum or most < LARGEST):
                cells, values, out = (its.astype(object) for its in (cells, values, out))
                kernel = getattr(fold, "py_func", fold)
            kernel(
                cells, slots, values, weights.places, weights.lowest, runs.begins, runs.ends,
                first_runs, expiring, expired, behind, out, zero, total.is_maximum,
            )  # fmt: skip
            self._cells[place] = cells
            found.append(narrowed(out))
        more = np.bincount(rows, runs.ends - runs.begins, wide)
        matches_after = active + np.cumsum(more - np.bincount(ends, self._cells[0], wide))
        slots_after = before + np.cumsum(
            np.bincount(rows[begun], minlength=wide) - np.bincount(ends, minlength=wide)
        )
        self.peak_matches = max(self.peak_matches, int(matches_after[:size].max()))
        self.peak_counters = max(self.peak_counters, int(slots_after[:size].max()))
        self._keep(expiring[codes % wide == size])
        return _changes(changes, wide, found)

    def _keep(self, slots: np.ndarray) -> None:
        self._groups, self._times = self._groups[slots], self._times[slots]
        self._positions = self._positions[slots]
        self._cells = [narrowed(its[slots]) for its in self._cells]
        self._earliest = int(self._times.min(initial=_NEVER))

    def at(self, time: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """The groups of the slots that have not expired at a time, and their totals."""
        active = self._times >= time - self._window
        return self._groups[active], [its[active] for its in self._cells]

    def resumed(self) -> None:
        """The earliest slot is the first to expire."""
        self._earliest = int(self._times.min(initial=_NEVER))


def _changes(codes: np.ndarray, wide: int, totals: list[np.ndarray]) -> Changes:
    """Changes by row, from those by group and row."""
    groups, rows = np.divmod(codes, wide)
    order = np.argsort(rows, kind="stable")
    return Changes(rows[order], groups[order], [its[order] for its in totals])


def no_matches(types: Sequence[type]) -> Matches:
    """No matches; the numbers of each total are of these types."""
    none = np.zeros(0, np.int64)
    return Matches(none, none, none, [Weights(np.zeros(0, dtype), none) for dtype in types])


def joined(parts: Sequence[Matches]) -> Matches:
    """The matches of several branches."""
    if len(parts) == 1:
        return parts[0]
    rows, groups, firsts = (np.concatenate(its) for its in list(zip(*parts, strict=True))[:3])
    weights = [
        Weights(np.concatenate([its.by_match for its in of_total]), np.arange(len(rows)))
        for of_total in zip(*(part.weights for part in parts), strict=True)
    ]
    return Matches(rows, groups, firsts, weights)


def of_sets(total: Total, values: np.ndarray, column: SetColumn, lowest: int) -> Weights:
    """What sets of events add to a total; ``values`` is what each event adds, from the one of position
    ``lowest`` on.
    """
    zero = total.units(is_float=values.dtype == np.float64)[0]
    its = np.append(values[column.positions - lowest], values.dtype.type(zero))
    if not (total.is_maximum or largest_sum(its, len(its)) < LARGEST):
        its = its.astype(object)
    add = np.maximum if total.is_maximum else np.add
    found = add.reduceat(its, column.offsets[:-1])
    found[column.sizes == 0] = zero
    return Weights(found, np.arange(len(found)))
