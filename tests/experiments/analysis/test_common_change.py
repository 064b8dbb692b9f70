"""What runs have in common, against a plain twin."""

from __future__ import annotations

import math
import statistics as plain

import numpy as np
import pytest

from cepbench.experiments.analysis.common_change import common_change


def naive_common(changes: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """(pattern, run) -> mean change of the steadiest half of the other runs, by plain loops."""
    runs = sorted({run for _, run in changes})
    middle = {
        pattern: plain.median(v for (p, _), v in changes.items() if p == pattern)
        for pattern, _ in changes
    }
    centre = {
        run: plain.median(v - middle[p] for (p, r), v in changes.items() if r == run)
        for run in runs
    }
    of_all = plain.median(centre.values())
    steady = sorted(runs, key=lambda run: abs(centre[run] - of_all))[: math.ceil(len(runs) / 2)]
    found = {}
    for pattern, run in changes:
        others = [
            changes[pattern, other]
            for other in steady
            if other != run and (pattern, other) in changes
        ]
        found[pattern, run] = plain.fmean(others) if others else math.nan
    return found


@pytest.mark.parametrize(("patterns", "runs"), [(6, 3), (9, 4), (20, 9)])
def test_it_equals_the_naive_twin(patterns: int, runs: int) -> None:
    rng = np.random.default_rng(runs)
    values = rng.normal(0.3, 0.2, size=(patterns, runs))
    values[rng.uniform(size=values.shape) < 0.15] = np.nan
    values[0, :] = np.nan
    values[0, 1] = 0.5
    order = rng.permutation(values.size)
    pattern, run = (index.ravel()[order] for index in np.indices(values.shape))
    found = common_change(pattern, run, values.ravel()[order])
    expected = naive_common(
        {(p, r): values[p, r] for p, r in np.ndindex(values.shape) if not np.isnan(values[p, r])}
    )
    seen = {(int(p), int(r)): float(v) for p, r, v in zip(pattern, run, found, strict=True)}
    for key, value in expected.items():
        assert seen[key] == pytest.approx(value, nan_ok=True), key


def test_what_only_some_runs_did_is_not_common() -> None:
    """Eight patterns, five runs, two of which became twice as fast: the other three say 0."""
    pattern, run = (index.ravel() for index in np.indices((8, 5)))
    logs = np.where(run >= 3, math.log(2), 0.0)
    assert set(common_change(pattern, run, logs)) == {0.0}
    machine = 0.1 * pattern
    np.testing.assert_allclose(common_change(pattern, run, logs + machine), machine)


def test_two_runs_say_nothing() -> None:
    pattern, run = (index.ravel() for index in np.indices((8, 2)))
    assert np.isnan(common_change(pattern, run, np.ones(16))).all()
