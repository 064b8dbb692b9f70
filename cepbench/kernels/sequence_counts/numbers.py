"""Tables of non-negative numbers, exact at any size, and the operations of the semiring of counts.

A table has a row for each number of a column, ``cells[column, row]``: integers of 64 bits, or, where
these do not suffice, a further axis of *digits* of 31 bits, the lowest first. Kernels are compiled
for either, and the choice between them costs nothing at run time. A number that becomes *large* can
be added to others once more, but needs more digits before that; :func:`widened` gives them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.kernels.jit import njit_in_place

#: Bits of a digit: the product of two, two more digits and a carry fit into 64 bits.
DIGIT_BITS = 31

_LOWEST = (1 << DIGIT_BITS) - 1

#: Numbers from here on are large: three of them can be added.
_LARGE = 1 << 61
_LARGE_DIGIT = 1 << (DIGIT_BITS - 2)


@njit_in_place
def add(cells, column, other, first, last, fits):
    """Add a column of a table to a column.

    Parameters
    ----------
    cells : int64 array, shape (columns, rows) or (columns, rows, digits)
    column, other : int
        Where to add, and what; they may be equal.
    first, last : int
        The rows, without the last one.
    fits : int64 array or None
        All bits of a row, counted from ``first``, are set if it is added, and none if not; None for
        all.

    Returns
    -------
    bool
        Whether a number is large.
    """
    large = 0
    if cells.ndim == 2:
        for row in range(np.uint64(first), np.uint64(last)):
            total = cells[column, row]
            if fits is None:
                total += cells[other, row]
            else:
                total += cells[other, row] & fits[row - np.uint64(first)]
            cells[column, row] = total
            large |= total
        return large >= _LARGE
    digits = cells.shape[2]
    for row in range(first, last):
        if fits is not None and fits[row - first] == 0:
            continue
        carry = 0
        for digit in range(digits):
            carry += cells[column, row, digit] + cells[other, row, digit]
            cells[column, row, digit] = carry & _LOWEST
            carry >>= DIGIT_BITS
        large |= cells[column, row, digits - 1]
    return large >= _LARGE_DIGIT


@njit_in_place
def add_total(found, cells, column, first, last, fits):
    """Add the numbers of a column to ``found``.

    Parameters
    ----------
    found : int64 array, shape (digits,)
        Of which the highest is not limited to its bits.
    cells, column, first, last, fits
        As for :func:`add`.
    """
    if cells.ndim == 2:
        low = high = 0
        for row in range(np.uint64(first), np.uint64(last)):
            number = cells[column, row]
            if fits is not None:
                number &= fits[row - np.uint64(first)]
            low += number & _LOWEST
            high += number >> DIGIT_BITS
        found[0] += low
        found[1] += high
    else:
        for row in range(first, last):
            if fits is None or fits[row - first] != 0:
                for digit in range(cells.shape[2]):
                    found[digit] += cells[column, row, digit]
    _carry(found)


@njit_in_place
def add_products(found, cells, row, others, other, first):
    """Add the sum of the products of a row of a table with a column of another one.

    Parameters
    ----------
    found : int64 array, shape (digits,)
    cells : int64 array, shape (columns, rows) or (columns, rows, digits)
    row : int
    others : array like ``cells``
    other, first : int
        Its column, and the row that is multiplied with the first column of ``cells``.
    """
    for column in range(cells.shape[0]):
        if cells.ndim == 2:
            one, two = cells[column, row], others[other, first + column]
            if (one | two) <= _LOWEST:
                product = one * two
                found[0] += product & _LOWEST
                found[1] += product >> DIGIT_BITS
            else:
                low, high = one & _LOWEST, one >> DIGIT_BITS
                its_low, its_high = two & _LOWEST, two >> DIGIT_BITS
                _add_product(found, 0, low, its_low)
                _add_product(found, 1, low, its_high)
                _add_product(found, 1, high, its_low)
                _add_product(found, 2, high, its_high)
        else:
            for digit in range(cells.shape[2]):
                for its in range(others.shape[2]):
                    _add_product(
                        found, digit + its, cells[column, row, digit],
                        others[other, first + column, its],
                    )  # fmt: skip
    _carry(found)


@njit_in_place
def _add_product(found, digit, one, two):
    product = one * two
    found[digit] += product & _LOWEST
    found[digit + 1] += product >> DIGIT_BITS


@njit_in_place
def _carry(found):
    for digit in range(len(found) - 1):
        found[digit + 1] += found[digit] >> DIGIT_BITS
        found[digit] &= _LOWEST


@njit_in_place
def assign(cells, column, first, last, value):
    """Set the numbers of a column to 0 or 1; see :func:`add`."""
    for row in range(first, last):
        if cells.ndim == 2:
            cells[column, row] = value
        else:
            for digit in range(cells.shape[2]):
                cells[column, row, digit] = 0
            cells[column, row, 0] = value


@njit_in_place
def copy_row(cells, row, others):
    """Set a row of a table to the first column of another one; see :func:`add`."""
    for column in range(cells.shape[0]):
        if cells.ndim == 2:
            cells[column, row] = others[0, column]
        else:
            for digit in range(cells.shape[2]):
                cells[column, row, digit] = others[0, column, digit]


def widened(cells: np.ndarray) -> np.ndarray:
    """The same numbers with more digits, so that none is large.

    Parameters
    ----------
    cells : ndarray of int64, shape (columns, rows) or (columns, rows, digits)
    """
    wide = cells
    if cells.ndim == 2:
        wide = np.stack([cells >> DIGIT_BITS * digit & _LOWEST for digit in range(3)], axis=2)
    return np.concatenate((wide, np.zeros_like(wide)), axis=2)


def found_digits(cells: np.ndarray) -> int:
    """The digits that :func:`add_products` needs for sums of products of such numbers."""
    return 2 * (2 if cells.ndim == 2 else cells.shape[2]) + 2


def number_of(digits: np.ndarray) -> Any:
    """The number that has these digits, a Python int."""
    return sum(digit << DIGIT_BITS * k for k, digit in enumerate(digits.tolist()))
