"""Sampling the conditions of a pattern on pairs of events that satisfy window and order."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.model import Aggregate, Attribute, Clause, Comparison, Pattern
from cepbench.seeds import rng_for
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

_T = TypeVar("_T")

#: Combinations of elements of a Kleene set in one condition that can be measured: a single one, or
#: an event and its predecessor, of conditions that hold for each event.
_MEASURED = ({"first"}, {"last"})
STEP = {"each", "rest", "previous"}


@dataclass(frozen=True, slots=True)
class PairSample:
    """Sampled conditions over two variables (or filters on one)."""

    #: Pairs of events within the window and in order (events, for a filter).
    candidates: float
    #: Estimated number of candidates that satisfy the conditions.
    held: float
    #: Of that estimate.
    variance: float


def conditions_by_pair(pattern: Pattern) -> dict[tuple[str, str], list[Clause]]:
    """The conditions on single events, by pairs of names; (name, name) for filters."""
    found: dict[tuple[str, str], list[Clause]] = {}
    for clause in (*pattern.conditions, *_partition_clauses(pattern)):
        if clause.is_elementwise:
            found.setdefault(_pair_of(clause, pattern), []).append(clause)
    return found


def conditions_by_set(pattern: Pattern) -> dict[tuple[str, str, str], list[Clause]]:
    """The measurable conditions on elements of a Kleene set, by pair and element."""
    found: dict[tuple[str, str, str], list[Clause]] = {}
    for clause in pattern.conditions:
        if clause.is_elementwise or any(isinstance(term, Aggregate) for term in clause.terms()):
            continue
        mentioned: dict[str, set[str]] = {name: set() for name in clause.variables}
        for attribute in clause.attributes():
            mentioned[attribute.variable].add(attribute.element)
        if all(elements in _MEASURED or elements <= STEP for elements in mentioned.values()):
            which = " ".join(sorted({attribute.element for attribute in clause.attributes()}))
            found.setdefault((*_pair_of(clause, pattern), which), []).append(clause)
    return found


def _partition_clauses(pattern: Pattern) -> list[Clause]:
    attribute = pattern.strategy.attribute
    if attribute is None:
        return []
    found = {
        pair: Clause((Comparison("=", *(Attribute(name, attribute) for name in pair)),))
        for branch in pattern.branches()
        for pair in combinations(branch.positive_names, 2)
    }
    return list(found.values())


def _pair_of(clause: Clause, pattern: Pattern) -> tuple[str, str]:
    names = sorted(clause.variables, key=pattern.names.index)
    return names[0], names[-1]


def pairs_of_a_partition(values: np.ndarray) -> PairSample:
    """All pairs of events, and those with equal values of the partition attribute."""
    present = values[~np.isnan(values)]
    _, sizes = np.unique(present, return_counts=True)
    # A missing value equals no other.
    alone = len(values) - len(present)
    return PairSample(
        float(len(values)) ** 2, float((sizes.astype(np.float64) ** 2).sum()) + alone, 0.0
    )


class Sampler:
    """Evaluates conditions on sampled candidates of each pair of variables, at most ``most``.

    ``known`` has what was found for other patterns in the same stream, and is added to. ``times`` say what is
    within a window, if these are not the stream's: of slices of a stream that are sampled as one, whose rows by type
    are known.
    """

    def __init__(
        self,
        pattern: Pattern,
        stream: EventStream,
        seed: int,
        most: int,
        known: dict[Hashable, Any] | None = None,
        times: np.ndarray | None = None,
    ) -> None:
        self.pattern = pattern.expanded
        self.stream = stream
        self.times = stream.timestamps if times is None else times
        self.seed = seed
        self.most = most
        self.before = order_in_all_branches(pattern)
        self.reader = NumericReader()
        self.known = {} if known is None else known
        self.types = {variable.name: variable.type for variable in pattern.variables}
        #: Type → its code, where the rows of the events of a single code are known.
        self.codes: dict[str | None, int] = {}
        if times is not None:
            codes = {type: stream.codes_of(type) for type in self.types.values()}
            self.codes = {type: int(its[0]) for type, its in codes.items() if len(its) == 1}
        self.rows = {
            name: self.once(("rows", type), partial(self._rows_of, type))
            for name, type in self.types.items()
        }
        self.columns: dict[tuple[str, str], np.ndarray] = {}
        self._bounded: tuple[object, tuple[np.ndarray, ...]] = None, ()

    def _rows_of(self, type: str | None) -> np.ndarray:
        parts = self.stream.rows_of_codes([self.codes[type]]) if type in self.codes else None
        return self.stream.rows_of(type) if parts is None else parts[0]

    def pairs(self) -> dict[tuple[str, str], PairSample]:
        """The samples of conditions on single events, by pairs of names; (name, name) for filters."""
        found = conditions_by_pair(self.pattern)
        return {pair: self._sample(*pair, clauses) for pair, clauses in found.items()}

    def sets(self) -> dict[tuple[str, str, str], PairSample]:
        """The samples of conditions on elements of a Kleene set, by pair and element.

        Elements are sampled separately: a single event cannot be the first and the last of a set.
        """
        found = conditions_by_set(self.pattern)
        return {key: self._sample(*key[:2], clauses) for key, clauses in found.items()}

    def partition(self) -> PairSample | None:
        """Pairs of events of all types, and those of one partition; None without partitions."""
        attribute = self.pattern.strategy.attribute
        if attribute is None:
            return None
        values = self.reader.read(self.stream, attribute, slice(None))
        return pairs_of_a_partition(values)

    def once(self, key: Hashable, found: Callable[[], _T]) -> _T:
        """What depends on a key alone in this stream."""
        if key not in self.known:
            self.known[key] = found()
        its: _T = self.known[key]
        return its

    def _sample(self, first: str, second: str, clauses: list[Clause]) -> PairSample:
        key = (
            first, second, self.types[first], self.types[second], (first, second) in self.before,
            (second, first) in self.before, self.pattern.order, self.pattern.window.length, *clauses,
        )  # fmt: skip
        return self.once(key, partial(self._drawn, first, second, clauses))

    def _drawn(self, first: str, second: str, clauses: list[Clause]) -> PairSample:
        if first == second:
            candidates = len(self.rows[first])
            if candidates and not any(clause.is_running for clause in clauses):
                held = self._held(clauses, {})
                return PairSample(float(candidates), float(np.count_nonzero(held)), 0.0)
            picked = {first: np.arange(candidates)}
        else:
            candidates, picked = self._candidates(first, second)
        looked_at = len(picked[first])
        for name in {name for clause in clauses for name in clause.running_variables()}:
            kept = self._has_predecessor(name)[picked[name]]
            picked = {key: at[kept] for key, at in picked.items()}
        possible = len(picked[first])
        if not possible:
            return PairSample(0.0, 0.0, 0.0)
        held = self._held(clauses, picked)
        if looked_at == candidates:
            return PairSample(float(possible), float(held.sum()), 0.0)
        # Drawn with replacement.
        share = float(held.mean())
        spread = share * (1 - share) / possible
        estimated = candidates * possible / looked_at
        return PairSample(estimated, share * estimated, spread * estimated**2)

    def _candidates(self, first: str, second: str) -> tuple[int, dict[str, np.ndarray]]:
        """The number of candidates, and the drawn ones as row indices of the two variables."""
        if (second, first) in self.before:
            first, second = second, first
        # Pairs of the same types often follow each other; no more is kept, for it may be as much as the stream.
        key = self.types[first], self.types[second], (first, second) in self.before
        if self._bounded[0] != key:
            self._bounded = None, ()
            self._bounded = key, self._bounds(first, second)
        low, ends, sizes, same, shared = self._bounded[1]
        total = int(ends[-1]) if len(ends) else 0
        if total <= self.most:
            drawn = np.arange(total)
        else:
            # Seeded per pair, so that other conditions do not change the sample.
            rng = rng_for(self.seed, f"{first} {second}")
            # Sorted they are looked up several times as fast.
            drawn = np.sort(rng.integers(total, size=self.most))
        at = np.searchsorted(ends, drawn, "right")
        partner = low[at] + drawn - (ends[at] - sizes[at])
        partner += shared[at] & (partner >= same[at])
        return total, {first: at, second: partner}

    def _bounds(self, first: str, second: str) -> tuple[np.ndarray, ...]:
        """Of each event of a variable, the first candidate of the other one; the running and the own number of all of
        them; and what :meth:`_same_events` finds.
        """
        times = {name: self.times[self.rows[name]] for name in (first, second)}
        window = self.pattern.window.length
        if (first, second) in self.before:
            place = times if self.pattern.order == "time" else self.rows
            low = np.searchsorted(place[second], place[first], "right")
        else:
            low = np.searchsorted(times[second], times[first] - window, "left")
        high = np.searchsorted(times[second], times[first] + window, "right")
        # Two variables must not share an event; in a SEQ the order implies that.
        same, shared = self._same_events(first, second)
        sizes = high - low - shared
        return low, np.cumsum(sizes), sizes, same, shared

    def _same_events(self, first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
        """Where each event of one variable stands among the other's, and whether it is a candidate."""
        rows, others = self.rows[first], self.rows[second]
        if (first, second) in self.before or not len(others):
            return rows, np.zeros(len(rows), dtype=bool)
        same = np.searchsorted(others, rows)
        return same, others[np.minimum(same, len(others) - 1)] == rows

    def _has_predecessor(self, name: str) -> np.ndarray:
        """Whether the previous event of the type is in the window, for each event of the type."""
        times = self.times[self.rows[name]]
        found = np.zeros(len(times), dtype=bool)
        found[1:] = np.diff(times) <= self.pattern.window.length
        return found

    def _held(self, clauses: Iterable[Clause], picked: dict[str, np.ndarray]) -> np.ndarray:
        """Whether candidates satisfy all clauses; those not picked from are all events."""

        def values(attribute: Attribute) -> np.ndarray:
            key = (attribute.variable, attribute.name)
            if key not in self.columns:
                code = self.codes.get(self.types[attribute.variable])
                rows = self.rows[attribute.variable] if code is None else slice(None)
                self.columns[key] = self.reader.read(self.stream, attribute.name, rows, code)
            column = self.columns[key]
            if not picked:
                return column
            return column[picked[attribute.variable] - (attribute.element == "previous")]

        held = [clause_holds(clause, values, self.reader.code) for clause in clauses]
        return held[0] if len(held) == 1 else np.logical_and.reduce(held)


def order_in_all_branches(pattern: Pattern) -> set[tuple[str, str]]:
    """Pairs of names with the same order in time in all branches that have both."""
    ordered: set[tuple[str, str]] = set()
    unordered: set[tuple[str, str]] = set()
    for branch in pattern.branches():
        before = branch.structure.precedence()
        ordered |= before
        for a, b in combinations(branch.names, 2):
            unordered |= {(a, b), (b, a)} - before
    return ordered - unordered
