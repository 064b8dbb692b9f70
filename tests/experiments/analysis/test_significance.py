"""The sign-flip test and the correction for many tests, against SciPy's and by simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from cepbench.experiments.analysis.averages import CONFIDENCE, bootstrap, geometric_mean, median
from cepbench.experiments.analysis.significance import EXACT_PAIRS, adjusted, sign_flip_p_values


def p_of_scipy(differences: np.ndarray) -> float:
    """By all choices of signs."""
    tested = stats.permutation_test((differences,), np.sum, permutation_type="samples")
    return float(tested.pvalue)


def test_the_exact_test_equals_that_of_scipy() -> None:
    rng = np.random.default_rng(1)
    samples = [rng.normal(0.3, 1, size=n).round(1) for n in (2, 5, 6, 8, 8, EXACT_PAIRS)]
    samples += [np.zeros(4), np.array([])]
    found = sign_flip_p_values(samples)
    assert found[:-1] == pytest.approx([p_of_scipy(sample) for sample in samples[:-1]])
    assert found[-2] == 1 and np.isnan(found[-1])
    assert sign_flip_p_values([np.array([0.3])])[0] == 1
    # Five pairs that all agree: no more than every 16th choice is as extreme.
    assert sign_flip_p_values([np.ones(5)])[0] == 1 / 16


def test_random_signs_come_close_to_all_of_them() -> None:
    rng = np.random.default_rng(2)
    sample = rng.normal(0.4, 1, size=EXACT_PAIRS + 2)
    exact = stats.permutation_test((sample,), np.sum, permutation_type="samples", n_resamples=2**14)
    (found,) = sign_flip_p_values([sample], seed=5)
    assert found == pytest.approx(float(exact.pvalue), abs=0.01)
    assert (
        sign_flip_p_values([sample], seed=5)[0] == found != sign_flip_p_values([sample], seed=6)[0]
    )
    # Never 0: the signs that were seen are one of the choices.
    assert sign_flip_p_values([np.ones(200)])[0] == 1 / 10_000


def test_chance_is_called_significant_as_often_as_it_says() -> None:
    rng = np.random.default_rng(3)
    samples = [rng.standard_t(3, size=10) for _ in range(2_000)]
    share = (sign_flip_p_values(samples) <= 0.05).mean()
    assert 0.035 < share < 0.065


def test_the_correction_equals_that_of_scipy() -> None:
    rng = np.random.default_rng(4)
    for n in (1, 2, 7, 100):
        p = rng.uniform(0, 0.2, size=n).round(2) + 0.001
        assert adjusted(p) == pytest.approx(stats.false_discovery_control(p))
    assert len(adjusted(np.array([]))) == 0
    assert list(adjusted(np.array([0.01, 0.9]))) == [0.02, 0.9]


@pytest.mark.parametrize("average", [np.mean, median, geometric_mean])
def test_intervals_are_those_of_scipy(average: Callable[..., np.ndarray]) -> None:
    values = np.random.default_rng(6).lognormal(1, 0.7, size=40)
    found = bootstrap(values, average, np.random.default_rng(7), 20_000)
    theirs = stats.bootstrap(
        (values,), average, n_resamples=20_000, confidence_level=CONFIDENCE, method="percentile",
        rng=np.random.default_rng(8),
    ).confidence_interval  # fmt: skip
    assert found == pytest.approx((theirs.low, theirs.high), rel=0.02)


@pytest.mark.parametrize("shape", [(1,), (2,), (7,), (7, 1), (5, 8), (8, 5), (3, 6, 4)])
def test_medians_are_those_of_numpy(shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(9).lognormal(0, 3, size=shape).round(1)
    values[0] = np.inf
    for axis in range(len(shape)):
        assert np.array_equal(median(values, axis=axis), np.median(values, axis=axis))
