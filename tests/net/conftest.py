"""Counts of what ran and what was refused, in the report of each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.net.tally import Tally


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """Counts over all examples of a test."""
    made = Tally()
    # Filled while the examples run, and read when the report of the call is made.
    request.node.user_properties.append(("counted", made.counts))
    yield made
    made.check()
