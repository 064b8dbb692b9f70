"""Arrays for kernels."""

from __future__ import annotations

import numpy as np


def read_only(array: np.ndarray) -> np.ndarray:
    """A view, since a kernel is compiled separately for writable and read-only arrays."""
    view = array.view()
    view.flags.writeable = False
    return view
