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

    The latency of a match is the time from the start of processing its last event to its report;
    for a match that waited for a negated event, from that of the event that ended the wait. Events
    of equal timestamps arrive together, under ``consuming`` a few at a time, and in the engines
    that go event by event one at a time. A match found by two branches of an OR counts twice.
    Latencies are measured in the kernels by the system's monotonic clock, in bins 1.1 % wide.
    """

    #: int64: matches by latency, in the bins of :mod:`cepbench.kernels.clock`.
    histogram: np.ndarray

    @classmethod
    def of(cls, seconds: np.ndarray) -> Latency:
        """The distribution of individual latencies, float64 (matches,), for user-defined evaluators."""
        doublings = np.log2(np.maximum(np.asarray(seconds, np.float64) * 1e9, 1.0))
        bins = np.minimum((doublings * clock.BINS_PER_DOUBLING).astype(np.int64), clock.BINS - 1)
        return cls(np.bincount(bins, minlength=clock.BINS))

    @property
    def count(self) -> int:
        """The number of matches reported."""
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
