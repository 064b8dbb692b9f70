"""Measuring a stream: arrival rates, and selectivities from sampled pairs within the window.

A long stream can be measured in slices, on several machines: a :class:`StatisticsSample` holds the
counts of one slice, and :func:`merge_samples` adds them up.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from cepbench.errors import StatisticsError
from cepbench.patterns.arrays import clause_holds
from cepbench.patterns.model import Attribute, Clause, Pattern
from cepbench.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_fit, check_types
from cepbench.streams.numeric import NumericReader

#: Candidates of one pair of variables that are looked at, in one slice.
PAIRS = 20_000

#: A pause of more windows than this does not count as time in which events could arrive.
LONGEST_PAUSE = 10


@dataclass(frozen=True, slots=True)
class PairSample:
    """What was seen of the conditions over two variables (or the filter on one).

    Attributes
    ----------
    candidates : float
        Pairs of events that the window and the order in time allow (events, for a filter).
    held : float
        Estimated number of candidates that satisfy the conditions.
    variance : float
        Of that estimate.
    """

    candidates: float
    held: float
    variance: float


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
        Only pairs that have a condition.
    """

    active: float
    shortest: float
    events: dict[str, int]
    pairs: dict[tuple[str, str], PairSample]

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
        selectivities = {}
        for name, count in self.events.items():
            errors[name] = math.sqrt(count) / seconds
        for pair, seen in self.pairs.items():
            if seen.candidates:
                selectivities[pair] = min(1.0, seen.held / seen.candidates)
                errors[pair] = math.sqrt(seen.variance) / seen.candidates
        return Statistics(
            rates={name: count / seconds for name, count in self.events.items()},
            selectivities=selectivities,
            standard_errors=errors,
        )


def measure_statistics(
    pattern: Pattern, stream: EventStream, *, seed: int = 0, pairs: int = PAIRS
) -> Statistics:
    """Arrival rates and selectivities of a pattern's variables on a stream.

    Parameters
    ----------
    pattern : Pattern
    stream : EventStream
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
    """
    if not len(stream):
        raise StatisticsError(
            "an empty stream has no arrival rates; give Statistics(cardinalities=...) by hand"
        )
    return sample_statistics(pattern, stream, seed=seed, pairs=pairs).to_statistics()


def sample_statistics(
    pattern: Pattern, stream: EventStream, *, seed: int = 0, pairs: int = PAIRS
) -> StatisticsSample:
    """What one slice of a stream says about a pattern; see :func:`measure_statistics`.

    Raises
    ------
    StreamError
        If the pattern cannot be asked of the stream.
    """
    if pairs < 1:
        raise StatisticsError(f"a sample needs at least one pair, not {pairs}")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise StatisticsError(f"seed {seed!r} is no seed; use an integer that is not negative")
    check_fit(pattern, stream)
    check_types(pattern, stream)
    sampler = _Sampler(pattern, stream, seed, pairs)
    per_second = 1e9 if stream.is_datetime else 1.0
    gaps = np.diff(stream.timestamps)
    window = pattern.window.length
    active = np.where(gaps > LONGEST_PAUSE * window, window, gaps).sum(dtype=np.float64)
    return StatisticsSample(
        active=float(active) / per_second,
        shortest=pattern.window.seconds,
        events={name: len(rows) for name, rows in sampler.rows.items()},
        pairs={pair: sampler.pair(*pair) for pair in _pairs_with_conditions(pattern)},
    )


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
    if len({(tuple(s.events), tuple(s.pairs), s.shortest) for s in samples}) > 1:
        raise StatisticsError("samples of different patterns cannot be merged")
    return StatisticsSample(
        active=math.fsum(sample.active for sample in samples),
        shortest=samples[0].shortest,
        events={name: sum(s.events[name] for s in samples) for name in samples[0].events},
        pairs={
            # Sums without rounding on the way are the same in any order.
            pair: PairSample(
                math.fsum(s.pairs[pair].candidates for s in samples),
                math.fsum(s.pairs[pair].held for s in samples),
                math.fsum(s.pairs[pair].variance for s in samples),
            )
            for pair in samples[0].pairs
        },
    )


def _pairs_with_conditions(pattern: Pattern) -> list[tuple[str, str]]:
    """Pairs of names, and (name, name) for a filter, each once, as the pattern is written."""
    found: dict[tuple[str, str], None] = {}
    for clause in pattern.conditions:
        names = sorted(clause.variables, key=pattern.names.index)
        if names:
            found[names[0], names[-1]] = None
    return list(found)


class _Sampler:
    """Draws candidates of each pair and asks the conditions of them."""

    def __init__(self, pattern: Pattern, stream: EventStream, seed: int, pairs: int) -> None:
        self.pattern = pattern
        self.stream = stream
        self.seed = seed
        self.most = pairs
        self.before = pattern.structure.precedence()
        self.reader = NumericReader()
        self.types = {variable.name: variable.type for variable in pattern.variables}
        codes = {name: code for code, name in enumerate(stream.type_names)}
        self.rows = {
            variable.name: np.flatnonzero(stream.type_codes == codes.get(variable.type, -1))
            for variable in pattern.variables
        }
        self.columns: dict[Attribute, np.ndarray] = {}

    def pair(self, first: str, second: str) -> PairSample:
        clauses = self.pattern.clauses_between(first, second)
        if first == second:
            held = self._held(clauses, {first: np.arange(len(self.rows[first]))})
            return PairSample(len(held), float(held.sum()), 0.0)
        candidates, picked = self._candidates(first, second)
        if not candidates:
            return PairSample(0.0, 0.0, 0.0)
        held = self._held(clauses, picked)
        if candidates <= self.most:
            return PairSample(float(candidates), float(held.sum()), 0.0)
        # Drawn with replacement.
        share = float(held.mean())
        spread = share * (1 - share) / len(held)
        return PairSample(float(candidates), share * candidates, spread * float(candidates) ** 2)

    def _candidates(self, first: str, second: str) -> tuple[int, dict[str, np.ndarray]]:
        """How many pairs the window and the order allow, and which of them are looked at.

        The pairs are given as indices into the rows of the two variables.
        """
        if (second, first) in self.before:
            first, second = second, first
        times = {name: self.stream.timestamps[self.rows[name]] for name in (first, second)}
        window = self.pattern.window.length
        if (first, second) in self.before:
            low = np.searchsorted(times[second], times[first], "right")
        else:
            low = np.searchsorted(times[second], times[first] - window, "left")
        high = np.searchsorted(times[second], times[first] + window, "right")
        # Two variables of one type may not share an event; in a SEQ the order sees to it.
        shared = (first, second) not in self.before and self.types[first] == self.types[second]
        ends = np.cumsum(high - low - shared)
        total = int(ends[-1]) if len(ends) else 0
        if total <= self.most:
            drawn = np.arange(total)
        else:
            # A seed of its own for each pair, so that other conditions do not change the draw.
            names = f"{first} {second}".encode()
            drawn = np.random.default_rng([self.seed, zlib.crc32(names)]).integers(
                total, size=self.most
            )
        at = np.searchsorted(ends, drawn, "right")
        partner = low[at] + drawn - (ends - (high - low - shared))[at]
        if shared:
            partner += partner >= at
        return total, {first: at, second: partner}

    def _held(self, clauses: Iterable[Clause], picked: dict[str, np.ndarray]) -> np.ndarray:
        def values(attribute: Attribute) -> np.ndarray:
            if attribute not in self.columns:
                rows = self.rows[attribute.variable]
                self.columns[attribute] = self.reader.read(self.stream, attribute.name, rows)
            return self.columns[attribute][picked[attribute.variable]]

        size = len(next(iter(picked.values())))
        held = np.ones(size, dtype=bool)
        for clause in clauses:
            held &= clause_holds(clause, values, self.reader.code)
        return held
