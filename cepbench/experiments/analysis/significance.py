"""Significance of paired differences: a sign-flip test, and the correction for many tests."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

#: Up to this number of pairs all choices of signs are tested, beyond it random ones.
EXACT_PAIRS = 12

#: Random choices of signs for more pairs.
FLIPS = 9_999

#: Sums of the same numbers in another order differ by this much at most, relatively.
_ROUNDING = 1e-9


def sign_flip_p_values(samples: Sequence[np.ndarray], *, seed: int = 0) -> np.ndarray:
    """Two-sided p-values of paired samples under the hypothesis that signs are random.

    The p-value is the share of all choices of signs whose mean is as far from 0 as the observed
    one. Up to :data:`EXACT_PAIRS` pairs all choices are counted, beyond that :data:`FLIPS` random
    ones and the observed one; ``seed`` is that of the random signs, which samples of equal size share.

    Each sample has the shape (n,), n may differ: differences, such as logarithms of ratios; finite.
    Float of shape (samples,): 1 for a sample without differences, all of them 0, and NaN for an
    empty one.

    Source: R. A. Fisher, "The Design of Experiments" (1935), section 21.
    """
    p = np.full(len(samples), np.nan)
    for n in {len(sample) for sample in samples} - {0}:
        members = [k for k, sample in enumerate(samples) if len(sample) == n]
        values = np.stack([samples[k] for k in members], axis=1)
        seen = np.abs(values.sum(axis=0))
        least = seen - _ROUNDING * np.abs(values).sum(axis=0)
        if n <= EXACT_PAIRS:
            signs = np.array(list(itertools.product((-1.0, 1.0), repeat=n)))
            extreme, choices = (np.abs(signs @ values) >= least).sum(axis=0), len(signs)
        else:
            signs = np.random.default_rng([seed, n]).choice((-1.0, 1.0), size=(FLIPS, n))
            extreme, choices = (np.abs(signs @ values) >= least).sum(axis=0) + 1, FLIPS + 1
        p[members] = extreme / choices
    return p


def adjusted(p: np.ndarray) -> np.ndarray:
    """P-values of several tests, shape (tests,), adjusted to control the false discovery rate.

    They are no smaller than ``p``, and in the same order of size.

    Source: Y. Benjamini and Y. Hochberg, "Controlling the False Discovery Rate", Journal of the
    Royal Statistical Society B 57 (1995), the procedure of section 3 as adjusted p-values.
    """
    order = np.argsort(p, kind="stable")
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    result = np.empty(len(p))
    result[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return result
