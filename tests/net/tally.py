"""How often an entry of a registry ran, and how often it was refused, by reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.budgets import examples
from tests.net.declared import REFUSALS


class Tally:
    """Counts of one test, by entry and what came of it.

    Attributes
    ----------
    counts : dict of str to int
    pinned : str
        The entry that all examples of the test are about.
    most : float
        The largest share of its examples that may be refused, by what it declares.
    """

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.pinned: str = ""
        self.most = 0.5

    def ran(self, entry: str, way: str) -> None:
        self._add(f"{entry}: ran, {way}")

    def refused(self, entry: str, reason: str) -> None:
        self._add(f"{entry}: refused, {reason}")

    def must_refuse(self, entry: str, reason: str, task: Callable[[], Any]) -> None:
        """Count a task that has to be refused by a named error."""
        with pytest.raises(REFUSALS):
            task()
        self.refused(entry, reason)

    @contextmanager
    def allowing(self, entry: str, way: str, limits: Mapping[str, str]) -> Iterator[None]:
        """Count what runs, and a refusal with some words by its reason; any other one goes on."""
        try:
            yield
        except REFUSALS as error:
            reason = next((its for words, its in limits.items() if words in str(error)), None)
            if reason is None:
                raise
            self.refused(entry, reason)
        else:
            self.ran(entry, way)

    def check(self) -> None:
        """Fail if the pinned entry ran nothing, or was refused more than its declarations explain."""
        ran, refused = (
            sum(n for name, n in self.counts.items() if name.startswith(f"{self.pinned}: {what},"))
            for what in ("ran", "refused")
        )
        assert ran, f"{self.pinned} ran nothing: {self.counts}"
        share = refused / (ran + refused)
        assert share <= self.most, f"{share:.0%} of {self.pinned} is refused: {self.counts}"

    def _add(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1


def tried(number: int) -> settings:
    """Settings of a property that tries so many examples in ``make test`` and counts in a tally."""
    checks = [*settings.default.suppress_health_check, HealthCheck.function_scoped_fixture]
    return settings(examples(number), suppress_health_check=checks)
