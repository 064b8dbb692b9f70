"""Integers of any size: of 64 bits where these suffice, else Python ints."""

from __future__ import annotations

import numpy as np

from cepbench.engines.sequence_counts.kernels import numbers

#: The integers of 64 bits.
INT64 = range(-(2**63), 2**63)

_TWO_DIGITS = 2 * numbers.DIGIT_BITS


def narrowed(integers: np.ndarray) -> np.ndarray:
    """Python ints as integers of 64 bits, if all have no more; other arrays as they are."""
    if integers.dtype == object and all(its in INT64 for its in integers):
        return integers.astype(np.int64)
    return integers


def integers(digits: np.ndarray) -> np.ndarray:
    """Rows of digits as integers: int64, or Python ints."""
    low = digits[:, 0] + (digits[:, 1] << numbers.DIGIT_BITS)
    if not digits[:, 2:].any():
        return low
    low += digits[:, 2] << _TWO_DIGITS
    sign, mask = low >> 63, (1 << numbers.DIGIT_BITS) - 1
    rest = sign & mask
    are_small = digits[:, -1] == sign
    are_small &= (digits[:, 3:-1] == rest[:, None]).all(axis=1)
    are_small &= (digits[:, 2] & mask) >> 1 == rest >> 1
    if are_small.all():
        return low
    listed = [numbers.number_of(row) for row in digits]
    return narrowed(np.array([*listed, None], object)[:-1])
