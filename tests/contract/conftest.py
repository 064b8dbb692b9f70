"""Engines of users in the registry; counts of what ran and what was refused, in each test's report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.entries import register_users
from tests.contract.tally import Tally


@pytest.fixture(autouse=True)
def users(registered_as_before: None) -> None:
    """Engines of users are registered beside the others."""
    register_users()


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    """Counts over all examples of a test."""
    made = Tally()
    # Filled while the examples run, and read when the report of the call is made.
    request.node.user_properties.append(("counted", made.counts))
    yield made
    made.check()
