"""Tables of numbers and the operations of their semirings: exact integers, floats, maxima.

A table has a row for each number of a column, ``cells[column, row]``: integers of 64 bits, or, where
these do not suffice, a further axis of *digits* of 31 bits, the lowest first, of which the highest
has the sign. Kernels are compiled for either, and for floats, and the choice between them costs
nothing at run time. A number that becomes *large* can be added to others once more, but needs more
digits before that; :func:`widened` gives them.

``found`` is a table of sums, shape (2, 1, digits), or (2, 1) for floats: column 0 the whole, column 1
a part, see :func:`add_part`. Maxima have one digit.

In the semiring of maxima (``is_maximum``) both sum and product are the larger one of two integers, where
:data:`NO_MATCH` is the zero, with which all products are zero, and :data:`NO_VALUE` the one: nothing,
and a match without a value, are less than all values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cepbench.kernels.jit import njit_in_place

#: Bits of a digit: the product of two, two more digits and a carry fit into 64 bits.
DIGIT_BITS = 31

_LOWEST = (1 << DIGIT_BITS) - 1

NO_MATCH, NO_VALUE = np.iinfo(np.int64).min, np.iinfo(np.int64).min + 1

#: Numbers from here on are large: three of them can be added.
LARGE = 1 << 61
_LARGE_DIGIT = 1 << (DIGIT_BITS - 2)


@njit_in_place
def add(cells, column, other, first, last, fits, some, weight, limit, is_maximum):
    """Add a column of a table, times a weight, to a column; returns whether a number is large.

    ``column``, ``other``: int, where to add, and what; they may be equal unless there is a weight.
    ``first``, ``last``: int, the rows, without the last one.
    ``fits``: int64 array, all bits of a row, counted from ``first``, are set if it is added, and
    none if not.
    ``some``: bool, whether to heed ``fits``; else all rows are added.
    ``limit``: int or None, :data:`LARGE`; None for floats, which have no digits to be added.
    """
    if cells.ndim == 2:
        if is_maximum:
            for row in range(first, last):
                more = cells[other, row]
                if (not some or fits[row - first] != 0) and more != NO_MATCH:
                    cells[column, row] = max(cells[column, row], more, weight)
            return False
        # Of all sizes together.
        bits = 0
        if weight == 1 and not some:
            for row in range(np.uint64(first), np.uint64(last)):
                total = cells[column, row] + cells[other, row]
                cells[column, row] = total
                if limit is not None:
                    bits |= total ^ (total >> 63)
        else:
            for row in range(np.uint64(first), np.uint64(last)):
                more = cells[other, row]
                if weight != 1 and more != 0:  # infinite weights
                    more *= weight
                total = cells[column, row]
                if not some or fits[row - np.uint64(first)] != 0:
                    total += more
                cells[column, row] = total
                if limit is not None:
                    bits |= total ^ (total >> 63)
        return limit is not None and bits >= limit
    large = False
    for row in range(first, last):
        if not some or fits[row - first] != 0:
            top = _add_digits(cells, column, other, row, weight)
            large |= top >= _LARGE_DIGIT or top < -_LARGE_DIGIT
    return large


@njit_in_place
def _add_digits(cells, column, other, row, weight):
    """Returns the highest digit, which has a sign."""
    highest = cells.shape[2] - 1
    if weight == 1:
        carry = 0
        for digit in range(highest):
            carry += cells[column, row, digit] + cells[other, row, digit]
            cells[column, row, digit] = carry & _LOWEST
            carry >>= DIGIT_BITS
        cells[column, row, highest] += carry + cells[other, row, highest]
        return cells[column, row, highest]
    rest = np.int64(weight)
    for low in range(3):
        factor = rest & _LOWEST if low < 2 else rest
        rest >>= DIGIT_BITS
        carry = 0
        for digit in range(low, highest + 1):
            if factor == 0:
                break
            carry += cells[column, row, digit] + cells[other, row, digit - low] * factor
            cells[column, row, digit] = carry & _LOWEST
            carry >>= DIGIT_BITS
        # What is above belongs to the sign, as in two's complement.
        if cells[column, row, highest] > _LOWEST >> 1:
            cells[column, row, highest] -= _LOWEST + 1
    return cells[column, row, highest]


@njit_in_place
def is_too_large(cells, column, first, last, weight, is_maximum):
    """Whether numbers of a column need more digits before they are multiplied by a weight."""
    if is_maximum or cells.dtype.type(0.5) != 0:
        return False
    size = abs(weight)
    for row in range(first, last):
        if cells.ndim == 2:
            number = abs(cells[column, row])
            # The least integer has no absolute value.
            if number != 0 and (size < 0 or (size > 1 and number > LARGE // size)):
                return True
        else:
            highest = cells.shape[2] - 1
            top = cells[column, row, highest]
            if top not in (0, -1):
                return True
            for digit in range(highest - 4, highest):
                if cells[column, row, digit] != top & _LOWEST:
                    return True
    return False


@njit_in_place
def add_total(found, place, cells, column, first, last, fits, some, is_maximum):
    """Add the numbers of a column, of some rows as for :func:`add`, to column ``place`` of ``found``."""
    if found.ndim == 2:
        for row in range(first, last):
            if not some or fits[row - first] != 0:
                found[place, 0] += cells[column, row]
        return
    part = found[place, 0]
    if cells.ndim == 2:
        if is_maximum:
            for row in range(first, last):
                if not some or fits[row - first] != 0:
                    part[0] = max(part[0], cells[column, row])
            return
        low = high = 0
        for row in range(np.uint64(first), np.uint64(last)):
            number = cells[column, row]
            if some:
                number &= fits[row - np.uint64(first)]
            low += number & _LOWEST
            high += number >> DIGIT_BITS
        part[0] += low
        part[1] += high
    else:
        for row in range(first, last):
            if not some or fits[row - first] != 0:
                for digit in range(cells.shape[2]):
                    part[digit] += cells[column, row, digit]
    _carry(part)


@njit_in_place
def add_products(found, place, cells, row, others, other, first, is_maximum):
    """Add the sum of the products of a row of a table with a column of another one to ``found``.

    Row ``first`` of column ``other`` is multiplied with the first column of ``cells``.
    """
    if found.ndim == 2:
        for column in range(cells.shape[0]):
            one, two = cells[column, row], others[other, first + column]
            if one != 0 and two != 0:  # infinite numbers
                found[place, 0] += one * two
        return
    part = found[place, 0]
    for column in range(cells.shape[0]):
        if cells.ndim == 2:
            one, two = cells[column, row], others[other, first + column]
            if is_maximum:
                if one != NO_MATCH and two != NO_MATCH:
                    part[0] = max(part[0], one, two)
            elif 0 <= (one | two) <= _LOWEST:
                product = one * two
                part[0] += product & _LOWEST
                part[1] += product >> DIGIT_BITS
            else:
                low, high = one & _LOWEST, one >> DIGIT_BITS
                its_low, its_high = two & _LOWEST, two >> DIGIT_BITS
                _add_product(part, 0, low, its_low)
                _add_product(part, 1, low, its_high)
                _add_product(part, 1, high, its_low)
                _add_product(part, 2, high, its_high)
        else:
            for digit in range(cells.shape[2]):
                for its in range(others.shape[2]):
                    _add_product(
                        part, digit + its, cells[column, row, digit],
                        others[other, first + column, its],
                    )  # fmt: skip
    if not is_maximum:
        _carry(part)


@njit_in_place
def add_part(found, weight, zero, is_maximum):
    """Add column 1 of ``found``, times a weight, to column 0, and clear it."""
    if found.ndim == 2:
        if found[1, 0] != 0:  # infinite weights
            found[0, 0] += found[1, 0] * weight
        found[1, 0] = zero
        return
    if is_maximum:
        if found[1, 0, 0] != NO_MATCH:
            found[0, 0, 0] = max(found[0, 0, 0], found[1, 0, 0], weight)
    else:
        _add_digits(found, 0, 1, 0, weight)
    assign(found, 1, 0, 1, zero)


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
    """Set the numbers of a column to a value of 64 bits; see :func:`add`."""
    for row in range(first, last):
        if cells.ndim == 2:
            cells[column, row] = value
        else:
            rest, highest = value, cells.shape[2] - 1
            for digit in range(highest):
                cells[column, row, digit] = rest & _LOWEST
                rest >>= DIGIT_BITS
            cells[column, row, highest] = rest


@njit_in_place
def copy_row(cells, row, others):
    """Set a row of a table to the first column of another one; see :func:`add`."""
    for column in range(cells.shape[0]):
        if cells.ndim == 2:
            cells[column, row] = others[0, column]
        else:
            for digit in range(cells.shape[2]):
                cells[column, row, digit] = others[0, column, digit]


@njit_in_place
def copy_total(out, sample, found):
    """Set a row of digits to column 0 of ``found``, see :func:`add_total`."""
    if found.ndim == 2:  # only of an argument it is decided when compiling
        out[sample, 0] = found[0, 0]
    else:
        for digit in range(found.shape[2]):
            out[sample, digit] = found[0, 0, digit]


def widened(cells: np.ndarray) -> np.ndarray:
    """The same numbers with more digits, so that none is large."""
    return (
        with_digits(cells[..., None], 6)
        if cells.ndim == 2
        else with_digits(cells, 2 * cells.shape[2])
    )


def with_digits(cells: np.ndarray, number: int) -> np.ndarray:
    """The same numbers with so many digits, at least as many as now, on the last axis."""
    digits = [*np.moveaxis(cells, -1, 0)]
    while len(digits) < number:
        digits[-1:] = [digits[-1] & _LOWEST, digits[-1] >> DIGIT_BITS]
    return np.stack(digits, axis=-1)


def found_digits(cells: np.ndarray, *, are_weighted: bool) -> int:
    """The digits for sums of products of such numbers, or of these times a weight of 64 bits."""
    return 2 * (2 if cells.ndim == 2 else cells.shape[2]) + (5 if are_weighted else 2)


def number_of(digits: np.ndarray) -> Any:
    """The number that has these digits, a Python int."""
    return sum(digit << DIGIT_BITS * k for k, digit in enumerate(digits.tolist()))
