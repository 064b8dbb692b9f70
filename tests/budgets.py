"""How much a test tries: a little in ``make test``, and more in ``make soak``.

A property says how many examples ``make test`` gives it, and has as many more as the profile of
hypothesis has. A test that draws its own cases takes their seeds from the fixture ``seeds``.
"""

from __future__ import annotations

import os

from hypothesis import settings

#: Examples of a property that asks for no number.
USUAL = 20

#: The seed of a soak; None in ``make test``, whose cases are the same every time.
SOAK = os.environ.get("CEPBENCH_SOAK")

#: How many seeds a test gets in a soak for one in ``make test``.
DEEPER = 10


def examples(number: int) -> settings:
    """Settings of a property that tries ``number`` examples in ``make test``."""
    return settings(max_examples=max(2, number * settings.default.max_examples // USUAL))
