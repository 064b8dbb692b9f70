"""Measuring statistics: arrival rates, and selectivities from sampled pairs within the window.

A long stream can be measured in slices, in parallel: a :class:`StatisticsSample` has the counts of
one slice, and :func:`merge_samples` adds them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, overload

import numpy as np

from cepbench.arguments import seed as seed_from
from cepbench.arguments import whole
from cepbench.errors import StatisticsError, errors_naming
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.statistics.model import Statistics
from cepbench.planning.statistics.sampling import STEP, PairSample, Sampler
from cepbench.planning.workloads.given import queries_from
from cepbench.planning.workloads.model import Workload
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import (
    check_fit,
    check_types,
    reporting_missing_types,
    under_one_hierarchy,
)
from cepbench.streams.given import Frame, events_from, stream_from

#: Sampled candidates per pair of variables, in one slice.
PAIRS = 20_000

#: A pause of more windows than this is not active time.
LONGEST_PAUSE = 10


@dataclass(frozen=True, slots=True)
class StatisticsSample:
    """Counts from one slice of a stream, for one pattern."""

    #: Active time in seconds (or ticks).
    active: float
    #: The window in seconds (or ticks), the minimum active time for rates.
    shortest: float
    #: Variable → events of its type.
    events: Mapping[str, float]
    #: Only pairs with a condition on single events.
    pairs: dict[tuple[str, str], PairSample]
    #: Pairs with conditions on elements of a Kleene set, by pair and element.
    sets: dict[tuple[str, str, str], PairSample] = field(default_factory=dict)
    #: Events of all types.
    stream_events: int = 0
    #: Under partition contiguity: pairs of events of all types, and those of one partition.
    partition: PairSample | None = None

    def to_statistics(self) -> Statistics:
        """Rates and selectivities with their standard errors.

        A pair without candidates is omitted, that is, has selectivity 1. A window of length 0, in which
        nothing has a rate, has cardinalities instead.
        """
        seconds = max(self.active, self.shortest or 1.0)
        arrivals = {name: count / seconds for name, count in self.events.items()}
        errors: dict[str | tuple[str, str], float] = {}
        selectivities: dict[tuple[str, str], float] = {}
        of_events: dict[tuple[str, str], float] = {}
        for name, count in self.events.items():
            errors[name] = math.sqrt(count) / seconds
        seen = [(*its, "each") for its in self.pairs.items()]
        seen += [((a, b), sample, which) for (a, b, which), sample in self.sets.items()]
        for pair, sample, which in seen:
            if sample.candidates:
                share = min(1.0, sample.held / sample.candidates)
                error = math.sqrt(sample.variance) / sample.candidates
                before, its_error = selectivities.get(pair, 1.0), errors.get(pair, 0.0)
                if {*which.split()} <= STEP:
                    of_events[pair] = of_events.get(pair, 1.0) * share
                else:
                    of_events.setdefault(pair, 1.0)
                # Conditions on different elements of a set are assumed independent.
                selectivities[pair] = before * share
                errors[pair] = math.hypot(before * error, share * its_error)
        return Statistics(
            cardinalities=None if self.shortest else arrivals,
            rates=arrivals if self.shortest else None,
            selectivities=selectivities,
            event_selectivities={
                pair: share for pair, share in of_events.items() if share != selectivities[pair]
            },
            standard_errors=errors,
            stream_rate=self.stream_events / seconds,
            partitions=self._partitions(),
        )

    def _partitions(self) -> float | None:
        """The number of equal partitions; of events that are alone a single one."""
        if self.partition is None:
            return None
        if not self.partition.candidates:
            return 1.0
        return self.partition.candidates / self.partition.held if self.partition.held else None


@overload
def measure_statistics(
    pattern: Pattern | str,
    stream: EventStream | Frame,
    *,
    type: str | None = None,
    time: str | None = None,
    seed: int = 0,
    pairs: int = PAIRS,
    missing_types: str = "warn",
) -> Statistics: ...
@overload
def measure_statistics(
    pattern: Workload,
    stream: EventStream | Frame,
    *,
    type: str | None = None,
    time: str | None = None,
    seed: int = 0,
    pairs: int = PAIRS,
    missing_types: str = "warn",
) -> dict[str, Statistics]: ...
def measure_statistics(
    pattern: Pattern | str | Workload,
    stream: EventStream | Frame,
    *,
    type: str | None = None,
    time: str | None = None,
    seed: int = 0,
    pairs: int = PAIRS,
    missing_types: str = "warn",
) -> Statistics | dict[str, Statistics]:
    """Arrival rates and selectivities of a pattern's variables on a stream.

    Of a workload, those of the matches of each query, by query.

    Parameters
    ----------
    stream, type, time, missing_types
        See :func:`cepbench.evaluate`; with events of all types, if the strategy is a contiguity
        strategy.
    seed : int
        Seed of the sample.
    pairs : int
        Maximum number of candidates per pair of variables. If the stream has fewer, all are
        evaluated, and the selectivity is exact.

    Returns
    -------
    Statistics or dict of str to Statistics
        ``rates`` in events per second (or tick) of *active* time: a pause of more than
        :data:`LONGEST_PAUSE` windows, such as a night between two trading days, counts as one
        window, since no match spans it. Of a window of length 0 ``cardinalities`` instead, in the
        moments that have events. ``selectivities`` among pairs of events within the window
        and in the pattern's order in time; the order itself is not part of them. Standard errors
        are Poisson for rates, binomial for selectivities.

    Raises
    ------
    StreamError
        If the pattern does not fit the stream.
    StatisticsError
        If ``seed`` or ``pairs`` is out of range.

    Notes
    -----
    Source: [kolchinsky2018]_, section 6.2, where arrival rates and selectivities are measured
    before planning.

    All variables of all branches are measured, negated ones included. Conditions on a Kleene variable are
    measured on single events of its type; those on ``b[i-1]`` on two consecutive events of the type within
    the window. Conditions on the first or the last event of a set are measured on any event; those that
    combine elements, and those on aggregates, have selectivity 1. Two variables whose order in time differs
    between branches of OR are measured in any order.

    Under partition contiguity, equality of the partition is among the conditions over any two
    variables; ``partitions`` is the number of equal partitions in which an event shares its
    partition with as many others on average as in the stream.
    """
    with reporting_missing_types(missing_types):
        asked = queries_from(pattern)
        found, stream = {}, events_from(stream, type, time)
        known: dict[Hashable, Any] = {}
        for query, its in asked.queries.items():
            with errors_naming(query):
                sample = sample_statistics(
                    its.without_aggregate(), stream, seed=seed, pairs=pairs, known=known
                )
                found[query] = sample.to_statistics()
        return found if asked.by_query else found[""]


def sample_statistics(
    pattern: Pattern | str,
    stream: EventStream,
    *,
    seed: int = 0,
    pairs: int = PAIRS,
    stream_events: int | None = None,
    known: dict[Hashable, Any] | None = None,
) -> StatisticsSample:
    """The sample of one slice of a stream; see :func:`measure_statistics`.

    ``stream_events`` are those of all types in the slice, if ``stream`` has only some types. ``known`` is what
    was found for other queries of a workload, see :class:`cepbench.planning.statistics.sampling.Sampler`.

    Raises StreamError if the pattern does not fit the stream.
    """
    pattern, stream = under_one_hierarchy(pattern_from(pattern), stream_from(stream))
    pairs = whole(pairs, "pairs", StatisticsError, least=1)
    seed = seed_from(seed, StatisticsError)
    if stream_events is not None:
        stream_events = whole(stream_events, "stream_events", StatisticsError, least=0)
    check_fit(pattern, stream)
    check_types(pattern, stream)
    return slice_sample(pattern, stream, seed, pairs, stream_events, known)


def slice_sample(
    pattern: Pattern,
    stream: EventStream,
    seed: int,
    pairs: int,
    stream_events: int | None = None,
    known: dict[Hashable, Any] | None = None,
    times: np.ndarray | None = None,
) -> StatisticsSample:
    """As :func:`sample_statistics`, without checks: types may be missing in a slice.

    ``times``: those of :func:`slices_of`, if the stream has its events.
    """
    sampler = Sampler(pattern, stream, seed, pairs, known, None if times is None else times.ravel())
    window = pattern.window.length
    return StatisticsSample(
        active=sampler.once(("active", window), partial(active_time, pattern, stream, times)),
        shortest=pattern.window.seconds,
        events={name: len(rows) for name, rows in sampler.rows.items()},
        pairs=sampler.pairs(),
        sets=sampler.sets(),
        stream_events=len(stream) if stream_events is None else stream_events,
        partition=sampler.partition(),
    )


def slices_of(
    stream: EventStream, starts: Sequence[int], size: int, window: int
) -> tuple[EventStream, np.ndarray]:
    """The events of equally long slices as one stream, whose rows by type are known, and int64 (slices, size),
    times that sample them apart: none is within a window of another slice.
    """
    rows = np.asarray(starts)[:, None] + np.arange(size)
    times = stream.timestamps[rows]
    times[1:] += np.cumsum(times[:-1, -1] - times[1:, 0] + window + 1)[:, None]
    return stream.with_rows(rows.ravel()).indexed(), times


def active_time(pattern: Pattern, stream: EventStream, times: np.ndarray | None = None) -> float:
    """Active time of a stream of all types in seconds (or ticks), the denominator of rates.

    A pause of more than :data:`LONGEST_PAUSE` windows counts as one window. ``times``: those of slices, whose
    pauses between them do not count. Of a window of length 0 the number of moments that have events.
    """
    gaps = np.diff(np.atleast_2d(stream.timestamps if times is None else times))
    window = pattern.window.length
    if not window:
        return float(np.count_nonzero(gaps) + (len(gaps) if len(stream) else 0))
    active = np.where(gaps > LONGEST_PAUSE * window, window, gaps).sum(dtype=np.float64)
    return float(active) / (1e9 if stream.is_datetime else 1.0)


def merge_samples(samples: Sequence[StatisticsSample]) -> StatisticsSample:
    """The sample of a stream from those of its slices, in any order.

    Pairs across slices are not sampled.

    Raises StatisticsError if there are none, or they are of different patterns.
    """
    if not samples:
        raise StatisticsError("there are no samples to merge")
    if len({(tuple(s.events), tuple(s.pairs), tuple(s.sets), s.shortest) for s in samples}) > 1:
        raise StatisticsError("samples of different patterns cannot be merged")
    partitions = [sample.partition for sample in samples if sample.partition is not None]
    return StatisticsSample(
        active=math.fsum(sample.active for sample in samples),
        shortest=samples[0].shortest,
        events={name: sum(s.events[name] for s in samples) for name in samples[0].events},
        pairs={key: _sum([s.pairs[key] for s in samples]) for key in samples[0].pairs},
        sets={key: _sum([s.sets[key] for s in samples]) for key in samples[0].sets},
        stream_events=sum(sample.stream_events for sample in samples),
        partition=_sum(partitions) if partitions else None,
    )


def _sum(samples: Sequence[PairSample]) -> PairSample:
    # Exact sums do not depend on the order.
    return PairSample(
        math.fsum(sample.candidates for sample in samples),
        math.fsum(sample.held for sample in samples),
        math.fsum(sample.variance for sample in samples),
    )
