"""Trades of stocks by ticker: the stream of A-Seq's experiments.

Fewer events are the beginning of more.

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

import numpy as np
import pyarrow as pa

from cepbench.arguments import number, whole
from cepbench.seeds import counted_draws, uniform
from cepbench.streams.synthetic import SEED, GeneratedStream, drawn_from, names_of, parameter

TICKERS = (
    "DELL", "IPIX", "AMAT", "QQQ", "MSFT", "INTC", "CSCO", "ORCL", "SUNW", "YHOO",
    "AMZN", "EBAY", "QCOM", "JDSU", "AAPL", "ADBE", "SBUX", "COST", "AMGN", "NVDA",
    "INTU", "ERTS", "PAYX", "KLAC", "LRCX", "XLNX", "ALTR", "MXIM", "LLTC", "BRCM",
    "JNPR", "VRSN", "SYMC", "GILD", "BIIB", "CELG", "CTAS", "FISV", "MCHP", "ROST",
)  # fmt: skip

#: ``per_window`` counts the events of a ticker in this many milliseconds.
WINDOW = 1000

#: Prices, in cents, and volumes.
_PRICES, _VOLUMES = (1_000, 9_999), (1, 1_000)


@dataclass(frozen=True)
class TickerTrades(GeneratedStream):
    """Trades of some tickers."""

    kind = "ticker-trades"

    events: int = parameter(whole, least=1)
    seed: int = SEED()
    #: Number of tickers, the first of :data:`TICKERS`; each trade is of one of them with equal
    #: probability.
    types: int = parameter(whole, 20, least=1, most=len(TICKERS))
    #: Mean number of trades of each ticker in 1000 ms.
    per_window: float = parameter(number, 10.0, least=1e-3, most=1e4)

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.events}-{self.seed}-{self.types}-{self.per_window:g}"

    def table(self, first: int, last: int) -> pa.Table:
        """The trades from ``first`` to before ``last``, in the stored columns.

        ``symbol`` (the ticker), ``ts`` (whole milliseconds from 1970), ``price`` (cents),
        ``volume`` (shares).
        """
        # A time is the sum of all gaps before, so those of earlier files are drawn again.
        began = sum(
            int(self._gaps(self._draws(begin, min(begin + self.per_file, first))).sum())
            for begin in range(0, first, self.per_file)
        )
        draws = self._draws(first, last)
        times = (began + np.cumsum(self._gaps(draws))) // 1_000_000
        return pa.table(
            {
                "symbol": names_of(draws[:, 1] % np.uint64(self.types), TICKERS[: self.types]),
                "ts": times.view("datetime64[ms]"),
                "price": drawn_from(draws[:, 2], *_PRICES),
                "volume": drawn_from(draws[:, 3], *_VOLUMES),
            }
        )

    def _draws(self, first: int, last: int) -> np.ndarray:
        return counted_draws(self.seed, first, last - first)

    def _gaps(self, draws: np.ndarray) -> np.ndarray:
        """Nanoseconds between each trade and the one before; int64, so that sums are exact."""
        mean = WINDOW * 1e6 / (self.types * self.per_window)
        share = uniform(draws[:, 0])
        return (-mean * np.log1p(-share)).astype(np.int64)
