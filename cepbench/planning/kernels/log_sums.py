"""Sums in log space."""

from __future__ import annotations

import math

from cepbench.kernels.jit import njit

#: If all logarithms are within this range, the numbers themselves can be added, scaled to the
#: middle of the range: many times faster, without under- or overflow.
PLAIN_RANGE = 600.0


@njit
def log_add(a: float, b: float) -> float:
    """``ln(e^a + e^b)`` for finite a and b (either one, not both, may be −∞)."""
    if a < b:
        a, b = b, a
    return a + math.log1p(math.exp(b - a))
