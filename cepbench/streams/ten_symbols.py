"""A stream of ten symbols with widely different rates, for throughput comparisons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.arguments import whole
from cepbench.errors import DatasetError

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


@dataclass(frozen=True)
class TenSymbols:
    """The stream of :func:`ten_symbols` in one file, with times as datetimes from 1970.

    Parameters
    ----------
    events, seed : int

    Raises
    ------
    DatasetError
        If there are no events, or the seed is negative.
    """

    kind: ClassVar[str] = "ten-symbols"
    required: ClassVar[tuple[str, ...]] = ("events",)

    events: int
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (("events", 1), ("seed", 0)):
            value = whole(getattr(self, name), name, DatasetError, least=least)
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """Of a folder beside those of other streams."""
        return f"{self.kind}-{self.events}-{self.seed}"

    @property
    def parameters(self) -> dict[str, Any]:
        """All that decides the events, for the data set's declaration."""
        return {"events": self.events, "seed": self.seed}

    @property
    def notes(self) -> dict[str, str]:
        """The arrival rates, for the data set's declaration."""
        return {"arrival rates": f"{RATES.min():g} to {RATES.max():g} events per symbol and minute"}

    @property
    def expected(self) -> float:
        """The number of events."""
        return float(self.events)

    def files(self) -> dict[str, tuple[()]]:
        """One file of everything."""
        return {"part-00000.parquet": ()}

    def table(self) -> pa.Table:
        """The events in the stored columns."""
        frame = ten_symbols(self.events, self.seed)
        frame["ts"] = frame["ts"].to_numpy().astype("datetime64[ms]")
        return pa.Table.from_pandas(frame, preserve_index=False)
