"""Trades of stocks by ticker: the stream of A-Seq's experiments.

Each trade has random numbers of its own, counted by its position, so the events do not depend on how
the work is divided, and fewer events are the beginning of more.

It stands for the data of [qi2014]_, section 6.1: a trace of 120,000 stock trades, and synthetic
streams "with more event types" for workloads of several queries.

Differs from the paper
----------------------
Neither the trace nor its rate is printed. Here trades arrive as a Poisson process at a chosen rate,
the same for every ticker. Prices and volumes are uniform and independent, since no query of the
experiments reads them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from cepbench.arguments import number, whole
from cepbench.errors import DatasetError
from cepbench.seeds import counted_draws, uniform
from cepbench.streams.ticks import FILE_EVENTS, Ticks

#: To be incremented with every change of the arithmetic below, which outdates stored data.
ARITHMETIC = 1

TICKERS = (
    "DELL", "IPIX", "AMAT", "QQQ", "MSFT", "INTC", "CSCO", "ORCL", "SUNW", "YHOO",
    "AMZN", "EBAY", "QCOM", "JDSU", "AAPL", "ADBE", "SBUX", "COST", "AMGN", "NVDA",
    "INTU", "ERTS", "PAYX", "KLAC", "LRCX", "XLNX", "ALTR", "MXIM", "LLTC", "BRCM",
    "JNPR", "VRSN", "SYMC", "GILD", "BIIB", "CELG", "CTAS", "FISV", "MCHP", "ROST",
)  # fmt: skip

#: ``per_window`` counts the events of a ticker in this many milliseconds.
WINDOW = 1000

#: Cents.
_LOWEST_PRICE, _HIGHEST_PRICE = 1_000, 9_999
_MOST_VOLUME = 1000


@dataclass(frozen=True)
class TickerTrades(Ticks):
    """Trades of some tickers.

    Parameters
    ----------
    events : int
    seed : int
    types : int
        Number of tickers, the first of :data:`TICKERS`; each trade is of one of them with equal
        probability.
    per_window : float
        Mean number of trades of each ticker in 1000 ms.

    Raises
    ------
    DatasetError
        If a number is out of range.

    Examples
    --------
    >>> TickerTrades(1000, per_window=50).table(0, 1000).num_rows
    1000
    """

    kind: ClassVar[str] = "ticker-trades"
    required: ClassVar[tuple[str, ...]] = ("events",)

    events: int
    seed: int = 0
    types: int = 20
    per_window: float = 10.0

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "events": whole(self.events, "events", DatasetError, least=1),
            "seed": whole(self.seed, "seed", DatasetError, least=0),
            "types": whole(self.types, "types", DatasetError, least=1, most=len(TICKERS)),
            "per_window": number(self.per_window, "per_window", DatasetError, least=1e-3, most=1e4),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def name(self) -> str:
        """Of a folder beside those of other streams."""
        return f"{self.kind}-{self.events}-{self.seed}-{self.types}-{self.per_window:g}"

    @property
    def parameters(self) -> dict[str, Any]:
        """All that decides the events, for the data set's declaration."""
        return {
            "events": self.events,
            "seed": self.seed,
            "arithmetic": ARITHMETIC,
            "types": self.types,
            "per_window": self.per_window,
        }

    def table(self, first: int, last: int) -> pa.Table:
        """The trades from ``first`` to before ``last``, in the stored columns.

        ``symbol`` (the ticker), ``ts`` (whole milliseconds from 1970), ``price`` (cents),
        ``volume`` (shares).
        """
        # A time is the sum of all gaps before, so those of earlier files are drawn again.
        began = sum(
            int(self._gaps(self._draws(begin, min(begin + FILE_EVENTS, first))).sum())
            for begin in range(0, first, FILE_EVENTS)
        )
        draws = self._draws(first, last)
        times = (began + np.cumsum(self._gaps(draws))) // 1_000_000
        prices = draws[:, 2] % np.uint64(_HIGHEST_PRICE - _LOWEST_PRICE + 1)
        return pa.table(
            {
                "symbol": pa.DictionaryArray.from_arrays(
                    (draws[:, 1] % np.uint64(self.types)).astype(np.int32),
                    pa.array(TICKERS[: self.types]),
                ),
                "ts": times.view("datetime64[ms]"),
                "price": _LOWEST_PRICE + prices.astype(np.int64),
                "volume": 1 + (draws[:, 3] % np.uint64(_MOST_VOLUME)).astype(np.int64),
            }
        )

    def _draws(self, first: int, last: int) -> np.ndarray:
        return counted_draws(self.seed, first, last - first)

    def _gaps(self, draws: np.ndarray) -> np.ndarray:
        """Nanoseconds between each trade and the one before; int64, so that sums are exact."""
        mean = WINDOW * 1e6 / (self.types * self.per_window)
        share = uniform(draws[:, 0])
        return (-mean * np.log1p(-share)).astype(np.int64)
