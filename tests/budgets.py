"""How much a test tries: a little in ``make test``, and more in ``make soak``.

A property says how many examples ``make test`` gives it, and has as many more as the profile of
hypothesis has. A test that draws its own cases takes their seeds from the fixture ``seeds``. A table of all
combinations becomes one of all pairs. Where kernels are not compiled, each gets the fewest that still
run every line: two examples, a tenth of the seeds, every value of a table once, half of a long one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable
from itertools import combinations, product
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

#: Examples of a property that asks for no number.
USUAL = 10

#: The seed of a soak; None in ``make test``, whose cases are the same every time.
SOAK = os.environ.get("CEPBENCH_SOAK")

#: Whether kernels run as Python, to see what compiled ones do not raise: wrong indices, overflows.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT") == "1"

#: For tests of kernels that are long streams as Python, and whose kernels others run as well.
only_compiled = pytest.mark.skipif(INTERPRETED, reason="takes long where kernels are not compiled")

#: How many seeds a test gets in a soak for one in ``make test``.
DEEPER = 10


def examples(number: int) -> settings:
    """Settings of a property that tries ``number`` examples in ``make test``."""
    return settings(max_examples=max(2, number * settings.default.max_examples // USUAL))


def covering(cases: Iterable[T], features: Callable[[T], Iterable[Hashable]]) -> list[T]:
    """A few of the cases, in which any two features of a case still come together; in a soak all.

    Chosen greedily, the one with most new pairs first. Tests marked ``seeded`` are part of a soak.
    """
    listed = list(cases)
    together = 1 if INTERPRETED else 2
    pairs = [frozenset(combinations(enumerate(features(case)), together)) for case in listed]
    left = set().union(*pairs)
    if SOAK is not None:
        return listed
    chosen = []
    while left:
        best = max(range(len(listed)), key=lambda number: len(pairs[number] & left))
        left -= pairs[best]
        chosen.append(best)
    return [listed[number] for number in sorted(chosen)]


def crossed(*parameters: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Of all combinations of the parameters' values a few, with every two values in one of them."""
    values = [list(its) for its in parameters]
    chosen = covering(product(*(range(len(its)) for its in values)), lambda numbers: numbers)
    return [tuple(its[n] for its, n in zip(values, numbers, strict=True)) for numbers in chosen]
