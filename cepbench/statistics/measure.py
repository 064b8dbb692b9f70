"""Measuring a stream: arrival rates, and selectivities from sampled pairs within the window.

A long stream can be measured in slices, on several machines: a :class:`StatisticsSample` holds the
counts of one slice, and :func:`merge_samples` adds them up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from cepbench.arguments import seed as seed_from
from cepbench.arguments import whole
from cepbench.errors import StatisticsError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.statistics.model import Statistics
from cepbench.statistics.sampling import PairSample, Sampler
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, check_types
from cepbench.streams.given import stream_from

_Key = TypeVar("_Key")

#: Candidates of one pair of variables that are looked at, in one slice.
PAIRS = 20_000

#: A pause of more windows than this does not count as time in which events could arrive.
LONGEST_PAUSE = 10


@dataclass(frozen=True, slots=True)
class StatisticsSample:
    """Counts from one slice of a stream, for one pattern.

    Attributes
    ----------
    active : float
        Seconds (or ticks) in which events could arrive.
    shortest : float
        The window in seconds (or ticks), the least active time that rates are based on.
    events : dict of str to int
        Variable → events of its type.
    pairs : dict of (str, str) to PairSample
        Only pairs that have a condition on single events.
    sets : dict of (str, str, str) to PairSample
        Pairs with conditions on certain events of a Kleene variable's set, and on which ones.
    stream_events : int
        Events of whatever type.
    partition : PairSample or None
        Pairs of events of whatever type, and those of one partition, under partition contiguity.
    """

    active: float
    shortest: float
    events: dict[str, int]
    pairs: dict[tuple[str, str], PairSample]
    sets: dict[tuple[str, str, str], PairSample] = field(default_factory=dict)
    stream_events: int = 0
    partition: PairSample | None = None

    def to_statistics(self) -> Statistics:
        """Rates and selectivities with their standard errors.

        A pair of which the slice holds no candidate is left out, which counts as selectivity 1.
        """
        seconds = max(self.active, self.shortest)
        if not seconds:
            raise StatisticsError(
                "a window of length 0 leaves no time in which events could arrive, so there are no "
                "arrival rates; give Statistics(cardinalities=...) by hand"
            )
        errors: dict[str | tuple[str, str], float] = {}
        selectivities: dict[tuple[str, str], float] = {}
        for name, count in self.events.items():
            errors[name] = math.sqrt(count) / seconds
        seen = [*self.pairs.items(), *(((a, b), of) for (a, b, _), of in self.sets.items())]
        for pair, sample in seen:
            if sample.candidates:
                share = min(1.0, sample.held / sample.candidates)
                error = math.sqrt(sample.variance) / sample.candidates
                before, its_error = selectivities.get(pair, 1.0), errors.get(pair, 0.0)
                # Conditions on other events of a set are taken as independent.
                selectivities[pair] = before * share
                errors[pair] = math.hypot(before * error, share * its_error)
        partition = self.partition
        return Statistics(
            rates={name: count / seconds for name, count in self.events.items()},
            selectivities=selectivities,
            standard_errors=errors,
            stream_rate=self.stream_events / seconds if self.stream_events else None,
            partitions=partition.candidates / partition.held
            if partition and partition.held
            else None,
        )


def measure_statistics(
    pattern: Pattern | str, stream: EventStream, *, seed: int = 0, pairs: int = PAIRS
) -> Statistics:
    """Arrival rates and selectivities of a pattern's variables on a stream.

    Parameters
    ----------
    pattern : Pattern or str
        Of any kind, or its text; all variables of all branches are measured, negated ones too.
    stream : EventStream
        With the events of other types too, if the pattern asks for contiguity.
    seed : int
        Of the sample; the same seed gives the same numbers.
    pairs : int
        Most candidates that are looked at for each pair of variables. If the stream has fewer,
        all are, and the selectivity is exact.

    Returns
    -------
    Statistics
        ``rates`` in events per second (or tick) of *active* time: a pause of more than
        :data:`LONGEST_PAUSE` windows, a night between two trading days say, counts as one window,
        since no match reaches across it. ``selectivities`` among pairs of events within the
        window, in the order in time that the pattern asks for; the order itself is not part of
        them. Standard errors: of a rate as for a Poisson count, of a selectivity binomial.

    Raises
    ------
    StreamError
        If the pattern cannot be asked of the stream.
    StatisticsError
        If the stream has no events, no time passes in it, or ``seed`` or ``pairs`` make no sense.

    Notes
    -----
    Source: [kolchinsky2018]_, section 6.2, where the arrival rates and selectivities of the data
    are measured before plans are made.

    Conditions on a Kleene variable are measured on single events of its type; those on ``b[i-1]``
    on two neighbouring events of the type, no further apart than the window. Conditions on the
    first or the last event of a set are measured on any event, those on more than one of these
    together, and on aggregates, count as 1.

    Two variables whose order in time differs from branch to branch of OR are measured in any order.

    Under partition contiguity that both events are of one partition is one of the conditions over
    any two variables; ``partitions`` is the number of equally large partitions in which an event
    has as many neighbours on average as in those of the stream.
    """
    pattern, stream = pattern_from(pattern), stream_from(stream)
    if not len(stream):
        raise StatisticsError(
            "an empty stream has no arrival rates; give Statistics(cardinalities=...) by hand"
        )
    return sample_statistics(pattern, stream, seed=seed, pairs=pairs).to_statistics()


def sample_statistics(
    pattern: Pattern | str,
    stream: EventStream,
    *,
    seed: int = 0,
    pairs: int = PAIRS,
    stream_events: int | None = None,
) -> StatisticsSample:
    """What one slice of a stream says about a pattern; see :func:`measure_statistics`.

    Parameters
    ----------
    pattern, stream, seed, pairs
        See :func:`measure_statistics`.
    stream_events : int, optional
        Events of whatever type in the slice, if ``stream`` holds only those of some types.

    Raises
    ------
    StreamError
        If the pattern cannot be asked of the stream.
    """
    pattern, stream = pattern_from(pattern), stream_from(stream)
    pairs = whole(pairs, "pairs", StatisticsError, least=1)
    seed = seed_from(seed, StatisticsError)
    if stream_events is not None:
        stream_events = whole(stream_events, "stream_events", StatisticsError, least=0)
    check_fit(pattern, stream)
    check_types(pattern, stream)
    sampler = Sampler(pattern, stream, seed, pairs)
    return StatisticsSample(
        active=active_time(pattern, stream),
        shortest=pattern.window.seconds,
        events={name: len(rows) for name, rows in sampler.rows.items()},
        pairs=sampler.pairs(),
        sets=sampler.sets(),
        stream_events=len(stream) if stream_events is None else stream_events,
        partition=sampler.partition(),
    )


def active_time(pattern: Pattern, stream: EventStream) -> float:
    """Seconds (or ticks) of a stream in which events could arrive, as rates count them.

    A pause of more than :data:`LONGEST_PAUSE` windows counts as one window.

    Parameters
    ----------
    pattern : Pattern
        Its window counts.
    stream : EventStream
        With events of all types.
    """
    gaps = np.diff(stream.timestamps)
    window = pattern.window.length
    active = np.where(gaps > LONGEST_PAUSE * window, window, gaps).sum(dtype=np.float64)
    return float(active) / (1e9 if stream.is_datetime else 1.0)


def merge_samples(samples: Sequence[StatisticsSample]) -> StatisticsSample:
    """The sample of a stream from those of its slices, in any order.

    Pairs that reach from one slice into the next are not seen.

    Raises
    ------
    StatisticsError
        If there is none, or they are of different patterns.
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
        pairs=_merged(samples, lambda sample: sample.pairs),
        sets=_merged(samples, lambda sample: sample.sets),
        stream_events=sum(sample.stream_events for sample in samples),
        partition=_sum(partitions) if partitions else None,
    )


def _merged(
    samples: Sequence[StatisticsSample],
    part: Callable[[StatisticsSample], Mapping[_Key, PairSample]],
) -> dict[_Key, PairSample]:
    return {key: _sum([part(sample)[key] for sample in samples]) for key in part(samples[0])}


def _sum(samples: Iterable[PairSample]) -> PairSample:
    listed = list(samples)
    # Sums without rounding on the way are the same in any order.
    return PairSample(
        math.fsum(sample.candidates for sample in listed),
        math.fsum(sample.held for sample in listed),
        math.fsum(sample.variance for sample in listed),
    )
