"""Seeded random generators, one per purpose and independent of each other."""

from __future__ import annotations

import zlib

import numpy as np


def rng_for(seed: int, *names: str | int) -> np.random.Generator:
    """A random generator for the purpose that ``names`` say; ``seed`` is at least 0.

    The draws for one pattern, group or pair do not change when another one is added. Of a text the
    CRC-32 is used, which unlike ``hash`` is the same on every machine and in every process.
    """
    numbers = (zlib.crc32(name.encode()) if isinstance(name, str) else name for name in names)
    return np.random.default_rng([seed, *numbers])


def counted_draws(seed: int, first: int, count: int, *names: int) -> np.ndarray:
    """Random bits by number: those of item k are the same whichever items are drawn with it.

    The items are ``count`` from ``first`` on, counted from 0; ``names`` say what is drawn for. Uint64
    of shape (count, 4): one step of the counter of Philox for each item, whose bits are the same in
    every version of NumPy.
    """
    key = np.random.SeedSequence(seed, spawn_key=names).generate_state(2, np.uint64)
    return np.asarray(np.random.Philox(key=key, counter=first).random_raw(4 * count)).reshape(-1, 4)


def uniform(bits: np.ndarray) -> np.ndarray:
    """Random bits, uint64, as numbers from 0 to below 1; float64 of the same shape."""
    return np.asarray((bits >> np.uint64(11)) * 2.0**-53)
