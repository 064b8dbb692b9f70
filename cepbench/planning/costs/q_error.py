"""The q-error of estimates."""

from __future__ import annotations

from typing import Any

import numpy as np

#: Nodes with fewer matches in the whole stream are dominated by noise.
FEWEST_MATCHES = 30


def q_error(estimated: Any, measured: Any, least: Any = 0.0) -> np.ndarray:
    """The factor between estimates and measurements: max(e/m, m/e).

    ``least`` is the resolution of the measurement, a lower limit for both sides: an estimate below
    it is correct if nothing was measured, and otherwise the q-error is a finite lower bound. At
    least 1; infinite if one side is zero and ``least`` is too.
    """
    low = np.asarray(least, dtype=np.float64)
    e = np.maximum(np.asarray(estimated, dtype=np.float64), low)
    m = np.maximum(np.asarray(measured, dtype=np.float64), low)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        found = np.maximum(e / m, m / e)
    return np.where(e == m, 1.0, found)
