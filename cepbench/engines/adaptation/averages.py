"""Windowed averages of a pattern's statistics [mei2009]_, section 5.3, sampled round by round.

A round's sample is one kernel call and one row of numbers, and is drawn when it is asked for: rounds of which
nobody asks cost nothing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from typing import Any

import numpy as np

from cepbench.errors import SnapshotError
from cepbench.kernels.sampling import ORDERED, SAME, UNORDERED, draw_candidates
from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.model import Attribute, Clause, Pattern
from cepbench.planning.statistics.measure import (
    LONGEST_PAUSE,
    StatisticsSample,
    active_time,
    slice_sample,
)
from cepbench.planning.statistics.measure import PAIRS as ALL_PAIRS
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.statistics.sampling import (
    conditions_by_pair,
    conditions_by_set,
    order_in_all_branches,
    pairs_of_a_partition,
)
from cepbench.seeds import rng_for
from cepbench.state import Stateful
from cepbench.streams.arrival import in_time
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader

#: Events that an average is over, if they are not more rounds than :data:`ROUNDS`; one round at least.
SPAN, ROUNDS = 8192, 64

#: The last events of a round, of whatever type, that are sampled: what bounds the cost of a round's
#: statistics.
EVENTS = 1024

#: Candidates sampled per pair of variables in a round.
PAIRS = 500

#: Standard errors by which a statistic has to differ for a change to count.
SIGNIFICANT = 3.0

#: A value and its standard error.
_Estimate = tuple[float, float]

#: The first numbers of a sample are active time, events of all types, and pairs of these and of
#: events of one partition. Then come events by variable, candidates by pair, and held ones.
_ACTIVE, _EVENTS, _FIRST = 0, 1, 4


def rounds_of(batch_size: int) -> int:
    """How many rounds the averages are over."""
    return min(ROUNDS, max(1, SPAN // batch_size))


class Averages(Stateful):
    """The rates and selectivities over the last rounds, together of :data:`SPAN` events."""

    SAVED = ("_numbers",)

    def __init__(self, pattern: Pattern, seed: int, batch_size: int) -> None:
        self._pattern = pattern = pattern.expanded
        self._seed = seed
        self._names = [variable.name for variable in pattern.variables]
        conditions = conditions_by_pair(pattern) | conditions_by_set(pattern)
        #: The pairs of variables, each with its conditions; those of a Kleene set have several.
        self._pairs = [(*key[:2], *key[2:]) for key in conditions]
        self._conditions = [*conditions.values()]
        #: The variables of each pair of which events are compared with the one before them.
        self._running = [
            {name for clause in clauses for name in clause.running_variables()}
            for clauses in self._conditions
        ]
        before = order_in_all_branches(pattern)
        self._ordered = [key[1::-1] if key[1::-1] in before else key[:2] for key in self._pairs]
        self._relations = np.array(
            [
                (
                    *map(self._names.index, key),
                    SAME if key[0] == key[1] else ORDERED if key in before else UNORDERED,
                )
                for key in self._ordered
            ],
            np.int64,
        ).reshape(-1, 3)
        self._fractions = _fractions(seed)
        self._counts = np.empty(len(self._names), np.int64)
        self._totals = np.empty(len(self._pairs), np.int64)
        self._drawn = np.empty((len(self._pairs), 2, PAIRS), np.int64)
        self._type_names: tuple[str, ...] | None = None
        self._rounds: deque[Round] = deque(maxlen=rounds_of(batch_size))
        self._current: Averaged | None = None

    def add(self, events: EventStream) -> None:
        """Note the last events of a round."""
        self._rounds.append(Round(self._sample, events[-EVENTS:]))
        self._current = None

    def current(self) -> Averaged | None:
        """The averages; None before the first round."""
        if self._current is None and self._rounds:
            self._current = self._averaged(tuple(self._rounds), PAIRS * len(self._rounds))
        return self._current

    def of(self, events: EventStream) -> Averaged:
        """The statistics of some events alone."""
        return self._averaged((Round(self._sample, events[-EVENTS:]),), PAIRS)

    def of_all(self, events: EventStream) -> Averaged:
        """The statistics of some events alone, measured as well as by default."""
        found = slice_sample(self._pattern, events, self._seed, ALL_PAIRS)
        return self._averaged((Round.of(_numbers(found)),), ALL_PAIRS)

    def unpacked(self, packed: Any) -> Averaged:
        """What :attr:`Averaged.packed` is of; a SnapshotError for other variables or pairs."""
        numbers, most = packed
        return self._averaged((Round.of(self._checked(numbers)),), most)

    @property
    def _numbers(self) -> np.ndarray:
        """Those of each round, a row each."""
        return np.array([its.numbers for its in self._rounds], np.float64)

    @_numbers.setter
    def _numbers(self, rows: np.ndarray) -> None:
        self._rounds.extend(Round.of(self._checked(row)) for row in rows)

    def _checked(self, packed: Any) -> np.ndarray:
        numbers = np.asarray(packed, np.float64)
        if numbers.shape != (_FIRST + len(self._names) + 2 * len(self._pairs),):
            raise SnapshotError("the snapshot is damaged: its averages are of another pattern")
        return numbers

    def _averaged(self, rounds: Sequence[Round], most: int) -> Averaged:
        return Averaged(self._pattern, self._names, self._pairs, rounds, most)

    def _sample(self, events: EventStream) -> np.ndarray:
        """The numbers of the last events of a round."""
        if events.type_names is not self._type_names:
            self._type_names = events.type_names
            self._is_of = np.zeros((len(self._names), len(events.type_names)), np.bool_)
            for its, variable in zip(self._is_of, self._pattern.variables, strict=True):
                its[events.codes_of(variable.type)] = True
        ordered, stamped = in_time(self._pattern, events)
        window = ordered.window.length
        active = draw_candidates(
            _read_only(events.type_codes),
            _read_only(stamped.timestamps),
            self._is_of,
            self._relations,
            window,
            min(LONGEST_PAUSE * window, 2**63 - 1),
            self._fractions,
            self._counts,
            self._totals,
            self._drawn,
        )
        tested = _Tested(self._pattern, events)
        if stamped is events:
            seconds = active / 1e9 if events.is_datetime else active
        else:
            seconds = active_time(self._pattern, events)
        numbers = [seconds, len(events)]
        numbers += tested.partition()
        numbers += self._counts.tolist()
        candidates, held = [], []
        for at, (key, total) in enumerate(zip(self._ordered, self._totals.tolist(), strict=True)):
            drawn = min(total, PAIRS)
            rows = dict(zip(key, self._drawn[at, :, :drawn], strict=True))
            possible, fitting = tested.held(self._conditions[at], rows, self._running[at])
            share = total / drawn if drawn else 0.0
            candidates.append(share * possible)
            held.append(share * fitting)
        return np.array(numbers + candidates + held, np.float64)


class _Tested:
    """Conditions on rows of some events."""

    def __init__(self, pattern: Pattern, events: EventStream) -> None:
        self._pattern = pattern
        self._events = events
        self._reader = NumericReader()
        self._columns: dict[str, np.ndarray] = {}
        self._previous: dict[str, np.ndarray] = {}

    def held(
        self, clauses: Sequence[Clause], rows: dict[str, np.ndarray], running: Iterable[str]
    ) -> tuple[int, int]:
        """How many candidates can be tested, and for how many the conditions hold.

        One for which there is no previous event of a running variable cannot be tested.
        """
        for name in running:
            kept = self._previous_rows(name)[rows[name]] >= 0
            rows = {key: at[kept] for key, at in rows.items()}

        def values(attribute: Attribute) -> np.ndarray:
            at = rows[attribute.variable]
            if attribute.element == "previous":
                at = self._previous_rows(attribute.variable)[at]
            return self._column(attribute.name)[at]

        tested = len(next(iter(rows.values())))
        held = clause_holds(clauses[0], values, self._reader.code)
        for clause in clauses[1:]:
            held = held & clause_holds(clause, values, self._reader.code)
        # Without attributes there is a single answer.
        return tested, int(np.count_nonzero(held)) if held.shape else tested * int(held)

    def partition(self) -> tuple[float, float]:
        """Pairs of events of all types, and those of one partition; zeros without partitions."""
        attribute = self._pattern.strategy.attribute
        if attribute is None:
            return 0.0, 0.0
        found = pairs_of_a_partition(self._column(attribute))
        return found.candidates, found.held

    def _column(self, name: str) -> np.ndarray:
        if name not in self._columns:
            self._columns[name] = self._reader.read(self._events, name, slice(None))
        return self._columns[name]

    def _previous_rows(self, name: str) -> np.ndarray:
        """For each event of a variable's type the row of the one before it within the window, or -1."""
        if name not in self._previous:
            (type_,) = {its.type for its in self._pattern.variables if its.name == name}
            rows = self._events.rows_of(type_)
            times = self._events.timestamps[rows]
            found = self._previous[name] = np.full(len(self._events), -1)
            found[rows[1:]] = np.where(np.diff(times) <= self._pattern.window.length, rows[:-1], -1)
        return self._previous[name]


class Round:
    """The last events of a round, whose numbers are sampled when they are asked for."""

    def __init__(self, sample: Callable[[EventStream], np.ndarray], events: EventStream) -> None:
        self._unsampled: tuple[Callable[[EventStream], np.ndarray], EventStream] | None
        self._unsampled = sample, events

    @classmethod
    def of(cls, numbers: np.ndarray) -> Round:
        """One whose numbers are known."""
        found = cls.__new__(cls)
        found._unsampled, found.numbers = None, numbers
        return found

    @cached_property
    def numbers(self) -> np.ndarray:
        """Those of the sample; float64. The events are kept no longer."""
        assert self._unsampled is not None  # else they were set
        sample, events = self._unsampled
        found = sample(events)
        self._unsampled = None
        return found


class Averaged:
    """The statistics that the numbers of some rounds amount to, computed when they are asked for.

    What was not seen at all counts as half an event or half a candidate, as otherwise plans that begin
    with it would cost nothing.
    """

    def __init__(
        self,
        pattern: Pattern,
        names: Sequence[str],
        pairs: Sequence[tuple[str, ...]],
        rounds: Sequence[Round],
        most: int,
    ) -> None:
        self._window = pattern.window.seconds
        self._names, self._pairs, self._rounds, self._most = names, pairs, rounds, most

    @cached_property
    def packed(self) -> tuple[list[float], int]:
        """What :meth:`Averages.unpacked` reads; JSON-serializable."""
        numbers = reduce(np.add, (its.numbers for its in self._rounds))
        return numbers.tolist(), self._most

    @cached_property
    def _seconds(self) -> float:
        return max(self.packed[0][_ACTIVE], self._window)

    @property
    def _stream_rate(self) -> float:
        return self.packed[0][_EVENTS] / self._seconds

    @property
    def _partitions(self) -> float | None:
        pairs_of_all, pairs_of_one = self.packed[0][_EVENTS + 1 : _FIRST]
        return pairs_of_all / pairs_of_one if pairs_of_one else None

    @cached_property
    def _rates(self) -> dict[str, _Estimate]:
        found = {}
        for name, count in zip(self._names, self.packed[0][_FIRST:], strict=False):
            seen = max(count, 0.5)
            found[name] = seen / self._seconds, math.sqrt(seen) / self._seconds
        return found

    @cached_property
    def _selectivities(self) -> dict[tuple[str, str], _Estimate]:
        found: dict[tuple[str, str], _Estimate] = {}
        numbers, most = self.packed
        at, size = _FIRST + len(self._names), len(self._pairs)
        candidates, held = numbers[at : at + size], numbers[at + size :]
        for key, possible, fitting in zip(self._pairs, candidates, held, strict=True):
            if not possible:
                continue
            # Where all candidates of a round were tested, they are still a sample of what is to come.
            drawn = min(possible, most)
            share = max(fitting / possible, 0.5 / drawn)
            error = math.sqrt(share * (1 - share) / drawn)
            pair = key[0], key[1]
            before, its_error = found.get(pair, (1.0, 0.0))
            # Conditions on different elements of a set are assumed independent.
            found[pair] = before * share, math.hypot(before * error, share * its_error)
        return found

    @cached_property
    def statistics(self) -> Statistics:
        """As plan generators take them."""
        given = self._rates | self._selectivities
        return Statistics(
            rates={name: value for name, (value, _) in self._rates.items()},
            selectivities={pair: value for pair, (value, _) in self._selectivities.items()},
            standard_errors={key: error for key, (_, error) in given.items()},
            stream_rate=self._stream_rate,
            partitions=self._partitions,
        )

    def changes(self, before: Averaged) -> Iterator[tuple[str, float, float]]:
        """Name, previous and current value of each statistic that differs by more than its error."""
        both: list[tuple[str, dict[Any, _Estimate], dict[Any, _Estimate]]] = [
            ("events per second", self._rates, before._rates),
            ("selectivity", self._selectivities, before._selectivities),
        ]
        for named, now_of, before_of in both:
            for key, (now, error) in now_of.items():
                value, its_error = before_of.get(key, (1.0, 0.0))
                if abs(now - value) > SIGNIFICANT * math.hypot(error, its_error):
                    shown = key if isinstance(key, str) else ", ".join(dict.fromkeys(key))
                    yield f"{named}, {shown}", value, now
        for named, value, now in (
            ("events per second", before._stream_rate, self._stream_rate),
            ("partitions", before._partitions or 1.0, self._partitions or 1.0),
        ):
            if now != value:
                yield f"{named}, whole stream", value, now


class AveragedQueries:
    """The statistics of the queries of a workload [liu2011]_, section 6: those of each of them."""

    def __init__(self, by_query: Mapping[str, Averaged]) -> None:
        self.by_query = by_query

    @cached_property
    def statistics(self) -> dict[str, Statistics]:
        """As planners of workloads take them."""
        return {query: its.statistics for query, its in self.by_query.items()}

    def changes(self, before: AveragedQueries) -> Iterator[tuple[str, float, float]]:
        """Name, previous and current value of each statistic that differs by more than its error."""
        for query, its in self.by_query.items():
            for name, value, now in its.changes(before.by_query[query]):
                yield f"query {query}, {name}", value, now


def averaged(by_query: Mapping[str, Averaged]) -> Averaged | AveragedQueries:
    """The statistics of a pattern, or of the queries of a workload."""
    return by_query[""] if "" in by_query else AveragedQueries(by_query)


@lru_cache(maxsize=16)
def _fractions(seed: int) -> np.ndarray:
    """One draw in each of as many strata."""
    return (np.arange(PAIRS) + rng_for(seed, "averages").random(PAIRS)) / PAIRS


def _read_only(array: np.ndarray) -> np.ndarray:
    # A kernel is compiled separately for writable and for strided arrays.
    found = np.ascontiguousarray(array).view()
    found.flags.writeable = False
    return found


def _numbers(sample: StatisticsSample) -> np.ndarray:
    """A sample of statistics as the numbers of a round."""
    found = [*(sample.pairs | sample.sets).values()]
    partition = sample.partition
    of_partitions = (partition.candidates, partition.held) if partition else (0.0, 0.0)
    return np.array(
        [
            sample.active,
            sample.stream_events,
            *of_partitions,
            *sample.events.values(),
            *(its.candidates for its in found),
            *(its.held for its in found),
        ],
        np.float64,
    )
