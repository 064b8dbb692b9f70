"""Logarithms of numbers that may be zero."""

from __future__ import annotations

import math

import numpy as np

#: Stands for a rate, cardinality, selectivity or window of zero: the smallest normal float.
SMALLEST = float(np.finfo(np.float64).tiny)


def log(number: float) -> float:
    """ln of a number of at least 0."""
    return math.log(max(number, SMALLEST))
