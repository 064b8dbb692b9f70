"""Kinds of check are an open registry: a study adds its own."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cepbench.analysis import checks
from cepbench.analysis.checks import (
    Bootstrap,
    ClaimCheck,
    Measured,
    Selection,
    check_kind,
    estimated,
    measure,
    sample_of,
)
from cepbench.errors import ExperimentError

CHECK = ClaimCheck("spread", "seconds", Selection(("A",)), Selection(("B",)))


def runs(sizes: tuple[int, ...] = (3, 4), patterns: int = 6) -> pd.DataFrame:
    """The ratio of pattern k is k + 1."""
    return pd.DataFrame(
        [
            {"size": size, "pattern_id": f"{size}-{k}", "generator": name, "seconds": value}
            for size in sizes
            for k in range(patterns)
            for name, value in (("A", 2.0 * (k + 1)), ("B", 2.0))
        ]
    )


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "CHECK_KINDS", dict(checks.CHECK_KINDS))

    @check_kind("spread", "largest over smallest ratio")
    def spread(check: ClaimCheck, logs: pd.DataFrame, resampling: Bootstrap) -> Measured:
        sample = sample_of(check, logs)
        return estimated(
            sample, lambda rows: np.exp(np.ptp(sample.columns[rows], axis=(1, 2))), resampling
        )


def test_a_study_adds_a_kind_of_check() -> None:
    found = measure(CHECK, runs(), resamples=50)
    assert found.value == pytest.approx(6.0)
    assert found.low <= found.high <= found.value and found.patterns == 12
    assert checks.CHECK_KINDS["spread"].words == "largest over smallest ratio"


def test_its_table_is_checked_like_that_of_any_other() -> None:
    assert "B was not measured" in measure(CHECK, runs()[lambda t: t["generator"] == "A"]).problem
    assert "fewer than 5" in measure(CHECK, runs((3,), 2)).problem
    assert "no column seconds" in measure(CHECK, runs().drop(columns="seconds")).problem


def test_a_kind_has_one_meaning() -> None:
    with pytest.raises(ExperimentError, match="'ratio' already; choose another name"):
        check_kind("ratio", "something else")(lambda check, logs, resampling: Measured())
