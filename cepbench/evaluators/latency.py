"""Measured detection latency: from the arrival of a match's last event to its report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cepbench.arguments import number
from cepbench.errors import EvaluationError
from cepbench.kernels import clock


@dataclass(frozen=True)
class Latency:
    """Detection latency as a distribution [kolchinsky2018]_, section 5.1.

    A match's latency is the time from when its last event was taken up to when the match was
    reported; for one that waited for a negated event, from when the event was taken up that ended
    the waiting. Events of equal timestamps arrive together, but under ``consuming`` a few at a time,
    and one by one in engines that go event by event.
    A match that two branches of an OR find is counted for both. Measured inside the kernels by the
    system's monotonic clock, and counted in bins 1.1 % wide.

    Attributes
    ----------
    histogram : ndarray of int64
        Matches by latency, in the bins of :mod:`cepbench.kernels.clock`.
    """

    histogram: np.ndarray

    @classmethod
    def of(cls, seconds: np.ndarray) -> Latency:
        """The distribution of single latencies, such as a user-defined evaluator measures.

        Parameters
        ----------
        seconds : ndarray of float64, shape (matches,)
        """
        doublings = np.log2(np.maximum(np.asarray(seconds, np.float64) * 1e9, 1.0))
        bins = np.minimum((doublings * clock.BINS_PER_DOUBLING).astype(np.int64), clock.BINS - 1)
        return cls(np.bincount(bins, minlength=clock.BINS))

    @property
    def count(self) -> int:
        """How many matches were reported."""
        return int(self.histogram.sum())

    @property
    def mean(self) -> float:
        """Seconds; NaN without matches."""
        if not self.count:
            return float("nan")
        return float(self.histogram @ clock.seconds_of_bins() / self.count)

    def quantile(self, share: float) -> float:
        """Seconds within which this share of the matches was reported; NaN without matches."""
        share = number(share, "share", EvaluationError, least=0.0, most=1.0)
        if not self.count:
            return float("nan")
        reached = int(np.searchsorted(np.cumsum(self.histogram), share * self.count))
        return float(clock.seconds_of_bins()[min(reached, clock.BINS - 1)])

    @property
    def median(self) -> float:
        """Seconds."""
        return self.quantile(0.5)

    @property
    def p95(self) -> float:
        """Seconds."""
        return self.quantile(0.95)

    @property
    def p99(self) -> float:
        """Seconds."""
        return self.quantile(0.99)

    @property
    def maximum(self) -> float:
        """Seconds."""
        return self.quantile(1.0)
