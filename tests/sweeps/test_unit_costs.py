"""The costs of units of work are measured, fitted, stored and read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from cepbench.costs import unit_costs
from cepbench.costs.reuse_calibrated import Work
from cepbench.sweeps.unit_costs import fitted, measured


def test_kinds_of_work_have_costs() -> None:
    assert [*vars(Work())] == [*unit_costs.FIXED]
    assert Work(scanned=2.0, made=3.0).nanoseconds == pytest.approx(
        2 * unit_costs.FIXED["scanned"] + 3 * unit_costs.FIXED["made"]
    )


def test_costs_of_made_up_times_are_found_again() -> None:
    rng = np.random.default_rng(1)
    steps = pd.DataFrame({kind: rng.exponential(1e5, 300) for kind in unit_costs.FIXED})
    costs = {kind: float(place) for place, kind in enumerate(unit_costs.FIXED)}  # the first is 0
    steps["nanoseconds"] = 5e4 + sum(steps[kind] * cost for kind, cost in costs.items())
    assert fitted(steps) == pytest.approx(costs, abs=1e-6)
    # A kind that makes a step cheaper costs nothing.
    steps["nanoseconds"] -= 0.5 * steps["scanned"]
    found = fitted(steps)
    assert found["scanned"] == 0.0 and min(found.values()) >= 0.0


def test_every_kind_of_work_is_measured() -> None:
    steps = measured(workloads=6, events=300, repetitions=1)
    assert set(steps["method"]) == {"scratch", "down", "up"}
    assert (steps["nanoseconds"] > 0).all()
    assert (steps[[*unit_costs.FIXED]].sum() > 0).all()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(unit_costs, "private_folders", lambda: iter([tmp_path / "cache"]))
    unit_costs.unit_costs.cache_clear()
    yield tmp_path / "cache"
    unit_costs.unit_costs.cache_clear()


def test_stored_costs_are_read(folder) -> None:
    assert unit_costs.unit_costs() == unit_costs.FIXED
    costs = dict.fromkeys(unit_costs.FIXED, 2.5)
    unit_costs.store(costs)
    unit_costs.unit_costs.cache_clear()
    assert unit_costs.unit_costs() == costs
    assert Work(joined=4.0).nanoseconds == 10.0


@pytest.mark.parametrize("text", ["", "[]", '{"scanned": 1.0}', "NaN"])
def test_a_damaged_file_is_not_read(folder, text: str) -> None:
    unit_costs.store(unit_costs.FIXED)
    (file,) = folder.iterdir()
    file.write_text(text, encoding="utf-8")
    unit_costs.unit_costs.cache_clear()
    assert unit_costs.unit_costs() == unit_costs.FIXED
