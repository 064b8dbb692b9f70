"""The sign-flip test and the correction for many tests, against plain twins and by simulation."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from cepbench.analysis.significance import EXACT_PAIRS, adjusted, sign_flip_p_values


def naive_p(differences: list[float]) -> float:
    seen = abs(sum(differences))
    choices = list(itertools.product((-1, 1), repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) for signs in choices]
    return sum(total >= seen - 1e-12 for total in sums) / len(choices)


def test_the_exact_test_equals_its_twin() -> None:
    rng = np.random.default_rng(1)
    samples = [rng.normal(0.3, 1, size=n).round(1) for n in (1, 2, 5, 6, 8, 8, EXACT_PAIRS)]
    samples += [np.zeros(4), np.array([])]
    found = sign_flip_p_values(samples)
    assert found[:-1] == pytest.approx([naive_p(list(sample)) for sample in samples[:-1]])
    assert found[-2] == 1 and np.isnan(found[-1])
    # Five pairs that all agree: no more than every 16th choice is as extreme.
    assert sign_flip_p_values([np.ones(5)])[0] == 1 / 16


def test_random_signs_come_close_to_all_of_them() -> None:
    rng = np.random.default_rng(2)
    sample = rng.normal(0.4, 1, size=EXACT_PAIRS + 2)
    (found,) = sign_flip_p_values([sample], seed=5)
    assert found == pytest.approx(naive_p(list(sample)), abs=0.01)
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


def naive_adjusted(p: list[float]) -> list[float]:
    """For each p-value the least level at which the procedure of 1995 rejects it."""
    result = []
    for value in p:
        levels = []
        for level in sorted(
            {other * len(p) / rank for other in p for rank in range(1, len(p) + 1)}
        ):
            ranked = sorted(p)
            kept = [v for k, v in enumerate(ranked, 1) if v <= k / len(p) * level + 1e-15]
            if kept and value <= max(kept):
                levels.append(level)
        result.append(min([*levels, 1.0]))
    return result


def test_the_correction_equals_its_twin() -> None:
    rng = np.random.default_rng(4)
    for n in (1, 2, 7):
        p = rng.uniform(0, 0.2, size=n).round(2) + 0.001
        assert adjusted(p) == pytest.approx(naive_adjusted(list(p)))
    assert len(adjusted(np.array([]))) == 0
    assert list(adjusted(np.array([0.01, 0.9]))) == [0.02, 0.9]
