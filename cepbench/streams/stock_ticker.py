"""A stock ticker: the synthetic stream of SASE+'s experiments.

One tick a unit of time; fewer events are the beginning of more.

It models the event generator of [agrawal2008]_, section 6: events of one type with symbol, price and
volume, in which "the price … has the probability p for increasing, (1 − p)/2 for decreasing, and
(1 − p)/2 for staying the same".

Differs from the paper
----------------------
The paper prints values from 1 to 1000 for the price and names neither a step nor what happens at the
ends of that range. Here the step is 1, a price of :attr:`StockTicker.prices` becomes 0, and one of 0
does not decrease: a guess, the one of those tried with which runs merge as in its Table 3 and matches
are as long as in its Table 2. Unbounded prices have the lengths, but other percentages.
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

#: Volumes are from 1 to this.
MOST_VOLUME = 1000

#: Steps of a price that are added up at once; those after a return to 0 are added again.
_SPAN = 500

# Purposes of random numbers.
_OF_FIRST_PRICES, _OF_TICKS = range(2)


@dataclass(frozen=True)
class StockTicker(GeneratedStream):
    """Ticks of some symbols."""

    kind = "stock-ticker"

    events: int = parameter(whole, least=1)
    seed: int = SEED()
    #: Probability that a symbol's next price is higher by 1; it is lower by 1, or the same, with
    #: half of the other probability each.
    p: float = parameter(number, 0.7, least=0.0, most=1.0)
    #: Each tick is of one of them, 1, 2, …, with equal probability.
    symbols: int = parameter(whole, 2, least=1)
    #: Prices are from 0 to below this, from which they return to 0.
    prices: int = parameter(whole, 1000, least=1)

    def table(self, first: int, last: int) -> pa.Table:
        """The ticks from ``first`` to before ``last``, in the stored columns.

        ``type`` (:data:`TYPE`), ``ts`` (the number of the tick, from 0), ``symbol``, ``price``,
        ``volume``.
        """
        draws = counted_draws(self.seed, 0, self.symbols, _OF_FIRST_PRICES)
        at = drawn_from(draws[:, 0], 0, self.prices - 1)
        # A price follows from all steps before, so those of earlier files are drawn again.
        for begin in range(0, first, self.per_file):
            codes, steps, _ = self._drawn(begin, min(begin + self.per_file, first))
            self._walk(at, codes, steps)
        codes, steps, volumes = self._drawn(first, last)
        walked = self._walk(at, codes, steps)
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
        return codes, steps, drawn_from(draws[:, 2], 1, MOST_VOLUME)

    def _walk(self, at: np.ndarray, codes: np.ndarray, steps: np.ndarray) -> np.ndarray:
        """The price at each tick; ``at``, the price of each symbol, is moved past them."""
        walked = np.empty(len(codes), np.int64)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=self.symbols))
        for symbol, ticks in enumerate(np.split(order, ends[:-1])):
            own = self._prices_from(at[symbol], steps[ticks])
            walked[ticks], at[symbol] = own[:-1], own[-1]
        return walked

    def _prices_from(self, price: int, steps: np.ndarray) -> np.ndarray:
        """The price before each step and after the last."""
        prices = np.empty(len(steps) + 1, np.int64)
        prices[0] = price
        done = 0
        while done < len(steps):
            free = prices[done] + np.cumsum(steps[done : done + _SPAN])
            held = free - np.minimum(np.minimum.accumulate(free), 0)
            over = np.flatnonzero(held == self.prices)
            taken = over[0] + 1 if len(over) else len(held)
            prices[done + 1 : done + 1 + taken] = held[:taken] % self.prices
            done += taken
        return prices
