"""Exact numbers of matches against Python's integers."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from cepbench.kernels import exact

_NEAR = [
    around + offset for around in (2**31, 2**61, 2**62, 2**63, 2**124) for offset in (-1, 0, 1)
]
_NUMBERS = st.sampled_from([0, 1, *_NEAR]) | st.integers(0, 2**130)


def table(numbers: list[int], digits: int) -> np.ndarray:
    lowest = (1 << exact.DIGIT_BITS) - 1
    rows = [[n >> exact.DIGIT_BITS * k & lowest for k in range(digits)] for n in numbers]
    return np.array(rows, np.int64)


@given(numbers=st.lists(_NUMBERS, min_size=1), digits=st.integers(3, 4))
def test_numbers_are_read_and_widened(numbers: list[int], digits: int) -> None:
    drawn = table(numbers, digits)
    assert exact.integers(drawn) == numbers
    assert exact.integers(exact.widened(drawn, digits + 1)) == numbers


@given(one=_NUMBERS, other=_NUMBERS, digits=st.integers(1, 4))
def test_sums_are_exact_or_carried(one: int, other: int, digits: int) -> None:
    size = 1 << exact.DIGIT_BITS * digits
    one, other = one % size, other % size
    totals = table([7 % size, one], digits)
    carried = exact.add(totals, 1, table([other], digits), 0)
    assert exact.integers(totals) == [7 % size, (one + other) % size]
    assert carried == (one + other) // size


@given(one=_NUMBERS, other=_NUMBERS, digits=st.integers(1, 4))
def test_differences_are_exact(one: int, other: int, digits: int) -> None:
    size = 1 << exact.DIGIT_BITS * digits
    small, large = sorted((one % size, other % size))
    totals = table([large], digits)
    exact.subtract(totals, 0, table([small], digits), 0)
    assert exact.integers(totals) == [large - small]


@given(drawn=st.lists(_NUMBERS, min_size=4, max_size=4), digits=st.integers(1, 3))
@example(drawn=[-1] * 4, digits=1)  # the largest that are not large
@example(drawn=[-1] * 4, digits=3)
def test_four_numbers_that_are_not_large_can_be_added(drawn: list[int], digits: int) -> None:
    bound = exact.LARGE << exact.DIGIT_BITS * (digits - 1)
    numbers = [number % bound for number in drawn]
    totals = table(numbers[:1], digits)
    for number in numbers[1:]:
        assert exact.add(totals, 0, table([number], digits), 0) == 0
    assert exact.integers(totals) == [sum(numbers)]
