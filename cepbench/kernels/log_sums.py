"""Sums of numbers that are given, and wanted, as logarithms."""

from __future__ import annotations

import math

from cepbench.kernels.jit import njit


@njit
def log_add(a: float, b: float) -> float:
    """``ln(e^a + e^b)`` for finite a and b (either one, not both, may be −∞)."""
    if a < b:
        a, b = b, a
    return a + math.log1p(math.exp(b - a))
