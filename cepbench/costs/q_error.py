"""How far an estimate is off, as the one number that people who estimate sizes of joins use."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Of a node with fewer matches in the whole stream, chance says more than the model does.
FEWEST_MATCHES = 30


def q_error(estimated: Any, measured: Any, least: Any = 0.0) -> np.ndarray:
    """By which factor estimates are off, whichever way: max(e/m, m/e).

    Parameters
    ----------
    estimated, measured : array-like of float
    least : array-like of float
        The smallest number that could have been measured. Both sides count as no less, so that an
        estimate of next to nothing is right where nothing was found, and where nothing was found
        the factor is finite, and a lower bound of the real one.

    Returns
    -------
    ndarray of float64
        At least 1; infinite if one side is zero and ``least`` is too.
    """
    low = np.asarray(least, dtype=np.float64)
    e = np.maximum(np.asarray(estimated, dtype=np.float64), low)
    m = np.maximum(np.asarray(measured, dtype=np.float64), low)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.maximum(e / m, m / e)
    return np.where(e == m, 1.0, found)
