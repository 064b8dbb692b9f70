"""A stock ticker: the synthetic stream of SASE+'s experiments.

One tick a unit of time; fewer events are the beginning of more.

It models the event generator of [agrawal2008]_, section 6: events of one type with symbol, price and
volume, in which "the price … has the probability p for increasing, (1 − p)/2 for decreasing, and
(1 − p)/2 for staying the same".

Differs from the paper
----------------------
The paper gives no step, and prices from 1 to 1000, which a price that mostly rises leaves. Here the
step is 1 and only the first price is from 1 to 1000. With this the lengths of matches of its Table 2
are reproduced; prices that wrap around halve two of them, and clipped prices stay multiples of 500.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cepbench.arguments import number, whole
from cepbench.seeds import counted_draws, uniform
from cepbench.streams.synthetic import SEED, GeneratedStream, drawn_from, names_of, parameter

#: The single type of all events.
TYPE = "STOCK"

#: First prices and volumes are from 1 to this.
MOST = 1000

# Purposes of random numbers.
_OF_FIRST_PRICES, _OF_TICKS = range(2)


@dataclass(frozen=True)
class StockTicker(GeneratedStream):
    """Ticks of some symbols."""

    kind = "stock-ticker"

    events: int = parameter(whole, least=1)
    seed: int = SEED()
    #: Probability that a symbol's next price is higher by 1; it is lower by 1, or the same, with
    #: half of the other probability each. Prices are unbounded.
    p: float = parameter(number, 0.7, least=0.0, most=1.0)
    #: Each tick is of one of them, 1, 2, …, with equal probability.
    symbols: int = parameter(whole, 2, least=1)

    def table(self, first: int, last: int) -> pa.Table:
        """The ticks from ``first`` to before ``last``, in the stored columns.

        ``type`` (:data:`TYPE`), ``ts`` (the number of the tick, from 0), ``symbol``, ``price``,
        ``volume``.
        """
        draws = counted_draws(self.seed, 0, self.symbols, _OF_FIRST_PRICES)
        prices = drawn_from(draws[:, 0], 1, MOST)
        # A price is the sum of all steps before, so those of earlier files are drawn again.
        for begin in range(0, first, self.per_file):
            codes, steps, _ = self._drawn(begin, min(begin + self.per_file, first))
            np.add.at(prices, codes, steps)
        codes, steps, volumes = self._drawn(first, last)
        order = np.argsort(codes, kind="stable")
        of_symbol, own = codes[order], steps[order]
        before = np.cumsum(own) - own
        begins = np.searchsorted(of_symbol, of_symbol)
        walked = np.empty(last - first, np.int64)
        walked[order] = prices[of_symbol] + before - before[begins]
        return pa.table(
            {
                "type": names_of(np.zeros(last - first), [TYPE]),
                "ts": np.arange(first, last),
                "symbol": 1 + codes,
                "price": walked,
                "volume": volumes,
            }
        )

    def _drawn(self, first: int, last: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each tick: symbol from 0, step from its price to the symbol's next, volume; int64."""
        draws = counted_draws(self.seed, first, last - first, _OF_TICKS)
        codes = drawn_from(draws[:, 0], 0, self.symbols - 1)
        share = uniform(draws[:, 1])
        steps = np.where(share < self.p, 1, np.where(share < (1 + self.p) / 2, -1, 0))
        return codes, steps, drawn_from(draws[:, 2], 1, MOST)
