"""The clock and the histogram of detection latencies."""

from __future__ import annotations

import math
import sys
import time

import numpy as np
from numba import types
from numba.extending import overload

from cepbench.kernels.jit import njit_in_place

#: Bins of the histogram for each doubling of the latency: a bin is 1.1 % wide.
BINS_PER_DOUBLING = 64
#: From 1 to 2^40 ns, which are 18 minutes; longer latencies are in the last bin.
BINS = 40 * BINS_PER_DOUBLING + 1

_ON_WINDOWS = sys.platform == "win32"
if _ON_WINDOWS:
    _TICK = round(time.get_clock_info("perf_counter").resolution * 1e9)
    _count_ticks = types.ExternalFunction("QueryPerformanceCounter", types.int32(types.voidptr))
else:
    _MONOTONIC = time.CLOCK_MONOTONIC
    _clock_gettime = types.ExternalFunction(
        "clock_gettime", types.int32(types.int32, types.voidptr)
    )


def now(clock: np.ndarray) -> int:
    """Nanoseconds of a monotonic clock.

    ``clock``: int64 (2,), buffer for the operating system's result.
    """
    return time.perf_counter_ns()


@overload(now)
def _now(clock):
    def on_windows(clock):
        _count_ticks(clock.ctypes)
        return clock[0] * _TICK

    def on_posix(clock):
        _clock_gettime(_MONOTONIC, clock.ctypes)
        return clock[0] * 1_000_000_000 + clock[1]

    return on_windows if _ON_WINDOWS else on_posix


@njit_in_place
def record(arrived, found, scratch):
    """Add matches that are reported now to the histogram ``scratch.latencies``.

    ``arrived``: int, time of arrival of their last event, by :func:`now`.
    ``found``: int, number of matches.
    """
    nanoseconds = max(1, now(scratch.clock) - arrived)
    place = int(math.log2(nanoseconds) * BINS_PER_DOUBLING)
    scratch.latencies[min(place, BINS - 1)] += found


def seconds_of_bins() -> np.ndarray:
    """The geometric middle of each bin in seconds; float64, shape (BINS,)."""
    middles: np.ndarray = np.exp2((np.arange(BINS) + 0.5) / BINS_PER_DOUBLING) * 1e-9
    return middles
