"""A stream of ten symbols with widely different rates, for throughput comparisons."""

from __future__ import annotations

import numpy as np
import pandas as pd

#: Symbols s0 … s9, and their arrival rates in events per minute.
RATES = np.geomspace(1, 45, 10)


def ten_symbols(events: int, seed: int) -> pd.DataFrame:
    """The first ``events`` of ten Poisson streams.

    Parameters
    ----------
    events : int
    seed : int

    Returns
    -------
    DataFrame
        ``symbol`` (s0 … s9), ``ts`` in milliseconds, and ``difference``, standard normal and
        independent.
    """
    rng = np.random.default_rng(seed)
    milliseconds = int(1.05 * events / RATES.sum() * 60_000) + 1
    counts = rng.poisson(RATES * milliseconds / 60_000)
    symbols = np.repeat(np.arange(10), counts)
    times = rng.integers(0, milliseconds, len(symbols))
    order = np.argsort(times, kind="stable")[:events]
    names = pd.Index([f"s{number}" for number in range(len(RATES))])
    return pd.DataFrame(
        {
            "symbol": pd.Categorical.from_codes(symbols[order].tolist(), names),
            "ts": times[order],
            "difference": rng.normal(size=len(order)),
        }
    )
