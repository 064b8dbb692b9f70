"""Numbers of matches, exact at any size.

A table of numbers, shape (numbers, digits), has non-negative integers as *digits* of 62 bits, the lowest
first, so that two of them and a carry fit into an integer of 64 bits. One digit suffices in most cases.
What does not fit is noticed either by the last carry, to try again with more digits, or before it
happens: the sum of four numbers below :data:`LARGE` fits.
"""

from __future__ import annotations

import numpy as np

from cepbench.kernels.jit import njit_in_place

#: Bits of a digit.
DIGIT_BITS = 62

#: A highest digit from here on asks for one more; four smaller ones can be added before that.
LARGE = 1 << (DIGIT_BITS - 2)

_LOWEST = (1 << DIGIT_BITS) - 1


@njit_in_place
def add(totals, place, others, other):
    """``totals[place] += others[other]``, numbers of as many digits each; returns the last carry."""
    carry = 0
    for digit in range(totals.shape[1]):
        total = totals[place, digit] + others[other, digit] + carry
        totals[place, digit] = total & _LOWEST
        carry = total >> DIGIT_BITS
    return carry


@njit_in_place
def subtract(totals, place, others, other):
    """``totals[place] -= others[other]``, which is not larger."""
    borrow = 0
    for digit in range(totals.shape[1]):
        rest = totals[place, digit] - others[other, digit] - borrow
        totals[place, digit] = rest & _LOWEST
        borrow = 1 if rest < 0 else 0


def widened(numbers: np.ndarray, digits: int) -> np.ndarray:
    """The same numbers with ``digits`` digits each, not fewer than they have."""
    wider = np.zeros((len(numbers), digits), np.int64)
    wider[:, : numbers.shape[1]] = numbers
    return wider


def integers(numbers: np.ndarray) -> list[int]:
    """The numbers of a table as integers."""
    found: list[int] = numbers[:, 0].tolist()
    for digit in range(1, numbers.shape[1]):
        shift = DIGIT_BITS * digit
        more = numbers[:, digit].tolist()
        found = [low + (high << shift) for low, high in zip(found, more, strict=True)]
    return found
