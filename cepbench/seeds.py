"""One random generator for each thing that is drawn, whatever else is drawn beside it."""

from __future__ import annotations

import zlib

import numpy as np


def rng_for(seed: int, *names: str | int) -> np.random.Generator:
    """A generator that is seeded by what it draws for.

    So the draw of one pattern, group or pair does not change when another one is added.

    Parameters
    ----------
    seed : int
        At least 0.
    names : str or int
        What is drawn for; a text counts by its CRC-32, which is the same on every machine and in
        every process, as ``hash`` is not.
    """
    numbers = (zlib.crc32(name.encode()) if isinstance(name, str) else name for name in names)
    return np.random.default_rng([seed, *numbers])
