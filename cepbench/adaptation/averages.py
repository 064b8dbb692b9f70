"""Windowed averages of a pattern's statistics [mei2009]_, section 5.3, sampled round by round."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from cepbench.errors import SnapshotError
from cepbench.patterns.model import Pattern
from cepbench.statistics.measure import PAIRS as ALL_PAIRS
from cepbench.statistics.measure import StatisticsSample, merge_samples, slice_sample
from cepbench.statistics.model import Statistics
from cepbench.statistics.sampling import PairSample
from cepbench.streams.event_stream import EventStream

#: Events that an average is over, if they are not more rounds than :data:`ROUNDS`; one round at least.
SPAN, ROUNDS = 8192, 64

#: The last events of a round, of whatever type, that are sampled: what bounds the cost of a round's
#: statistics.
EVENTS = 1024

#: Candidates sampled per pair of variables in a round.
PAIRS = 500


class Averages:
    """The rates and selectivities over the last rounds, together of :data:`SPAN` events.

    What was not seen at all counts as half an event or half a candidate, as otherwise plans that
    begin with it would cost nothing.

    Parameters
    ----------
    pattern : Pattern
    seed : int
    batch_size : int
        Events in a round.
    """

    def __init__(self, pattern: Pattern, seed: int, batch_size: int) -> None:
        self._pattern = pattern
        self._seed = seed
        self._samples: deque[StatisticsSample] = deque(
            maxlen=min(ROUNDS, max(1, SPAN // batch_size))
        )
        self._current: Statistics | None = None

    def add(self, events: EventStream) -> None:
        """Sample the last events of a round."""
        self._samples.append(slice_sample(self._pattern, events[-EVENTS:], self._seed, PAIRS))
        self._current = None

    def current(self) -> Statistics | None:
        """The averages; None before the first round."""
        if self._current is None and self._samples:
            self._current = _statistics([*self._samples])
        return self._current

    def of(self, events: EventStream) -> Statistics:
        """The statistics of some events alone."""
        return _statistics([slice_sample(self._pattern, events[-EVENTS:], self._seed, PAIRS)])

    def of_all(self, events: EventStream) -> Statistics:
        """The statistics of some events alone, measured as well as by default."""
        sample = slice_sample(self._pattern, events, self._seed, ALL_PAIRS)
        return _statistics([sample])

    def packed(self) -> list[dict[str, Any]]:
        """The state as JSON-serializable values."""
        return [_packed(sample) for sample in self._samples]

    def restore(self, packed: Iterable[Mapping[str, Any]]) -> None:
        """Resume from what :meth:`packed` returned.

        Raises
        ------
        SnapshotError
            If it is no such state.
        """
        try:
            self._samples.extend(map(_unpacked, packed))
        except (KeyError, TypeError, ValueError) as error:
            raise SnapshotError(
                f"the snapshot is damaged: no usable averages: {error!r}"
            ) from error


def _statistics(samples: Sequence[StatisticsSample]) -> Statistics:
    whole = merge_samples(samples)
    drawn = PAIRS * len(samples)
    return replace(
        whole,
        events={name: max(count, 0.5) for name, count in whole.events.items()},
        pairs={key: _seen(sample, drawn) for key, sample in whole.pairs.items()},
        sets={key: _seen(sample, drawn) for key, sample in whole.sets.items()},
    ).to_statistics()


def _seen(sample: PairSample, most: int) -> PairSample:
    """The sample with at least half a draw for which the conditions hold, and with a binomial error.

    Where all candidates of a round were tested, they are still a sample of what is to come.
    """
    if not sample.candidates:
        return sample
    drawn = min(sample.candidates, most)
    share = max(sample.held / sample.candidates, 0.5 / drawn)
    spread = share * (1 - share) / drawn
    return PairSample(sample.candidates, share * sample.candidates, spread * sample.candidates**2)


def _packed(sample: StatisticsSample) -> dict[str, Any]:
    found = asdict(sample)
    for name in ("pairs", "sets"):
        found[name] = [[*key, *_numbers(its)] for key, its in getattr(sample, name).items()]
    return found


def _numbers(sample: PairSample) -> tuple[float, float, float]:
    return sample.candidates, sample.held, sample.variance


def _unpacked(packed: Mapping[str, Any]) -> StatisticsSample:
    found = dict(packed)
    for name in ("pairs", "sets"):
        found[name] = {tuple(row[:-3]): PairSample(*row[-3:]) for row in found[name]}
    if found["partition"] is not None:
        found["partition"] = PairSample(**found["partition"])
    return StatisticsSample(**found)
