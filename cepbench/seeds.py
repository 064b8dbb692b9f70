"""Seeded random generators, one per purpose and independent of each other."""

from __future__ import annotations

import zlib

import numpy as np


def rng_for(seed: int, *names: str | int) -> np.random.Generator:
    """A random generator for one purpose.

    The draws for one pattern, group or pair do not change when another one is added.

    Parameters
    ----------
    seed : int
        At least 0.
    names : str or int
        The purpose. Of a text the CRC-32 is used, which unlike ``hash`` is the same on every
        machine and in every process.
    """
    numbers = (zlib.crc32(name.encode()) if isinstance(name, str) else name for name in names)
    return np.random.default_rng([seed, *numbers])
