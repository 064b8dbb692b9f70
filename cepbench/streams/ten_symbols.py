"""A stream of ten symbols with widely different rates, for throughput comparisons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.arguments import whole
from cepbench.streams.synthetic import SEED, GeneratedStream, parameter

#: Symbols s0 … s9, and their arrival rates in events per minute.
RATES = np.geomspace(1, 45, 10)


def ten_symbols(events: int, seed: int) -> pd.DataFrame:
    """The first ``events`` of ten Poisson streams.

    ``symbol`` (s0 … s9), ``ts`` in milliseconds, and ``difference``, standard normal and independent.
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


@dataclass(frozen=True)
class TenSymbols(GeneratedStream):
    """The stream of :func:`ten_symbols` in one file, with times as datetimes from 1970."""

    kind = "ten-symbols"
    arithmetic = None

    events: int = parameter(whole, least=1)
    seed: int = SEED()

    @property
    def notes(self) -> dict[str, str]:
        return {"arrival rates": f"{RATES.min():g} to {RATES.max():g} events per symbol and minute"}

    def files(self) -> dict[str, tuple[()]]:
        """One file of everything."""
        return {"part-00000.parquet": ()}

    def table(self) -> pa.Table:
        """The events in the stored columns."""
        frame = ten_symbols(self.events, self.seed)
        frame["ts"] = frame["ts"].to_numpy().astype("datetime64[ms]")
        return pa.Table.from_pandas(frame, preserve_index=False)
