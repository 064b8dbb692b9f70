"""Sums in log space."""

from __future__ import annotations

import math

from cepbench.kernels.jit import njit

#: Numbers no further apart than e to this power can be added as plain ones, scaled to their
#: middle: many times faster, and nothing under- or overflows.
PLAIN_RANGE = 600.0


@njit
def log_add(a: float, b: float) -> float:
    """``ln(e^a + e^b)`` for finite a and b (either one, not both, may be −∞)."""
    if a < b:
        a, b = b, a
    return a + math.log1p(math.exp(b - a))
