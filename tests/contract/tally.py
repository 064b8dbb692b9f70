"""How often an entry of a registry ran, and how often it was refused, by reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tests.budgets import INTERPRETED
from tests.contract.declared import REFUSALS


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


def explored(
    name: str, seeds: Sequence[int], check: Callable[[st.DataObject], None], *, each: int = 10
) -> None:
    """Try a few fresh cases of each seed, others for each entry.

    After ten valid ones, hypothesis goes on with up to five mutants of each: most of what a case
    draws is how it is run, so that most of them would have the same pattern and events.
    """
    assert each <= 10
    checks = list(HealthCheck)
    for its in seeds:

        @seed(f"{name} {its}")
        @settings(
            max_examples=2 if INTERPRETED else each, database=None, suppress_health_check=checks
        )
        @given(data=st.data())
        def cases(data: st.DataObject) -> None:
            check(data)

        cases()
