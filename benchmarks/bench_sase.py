"""The automaton engine against a loop written for one query: ``python benchmarks/bench_sase.py``.

The template of [agrawal2008]_, section 6, six queries at two windows, on its stock ticker. The loop
knows the template: it keeps the runs of each symbol in arrays and tests the conditions in its code.
It counts, or writes as many positions as the matches have. All run in turn, so that ratios are of
one run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numba
import numpy as np
import pandas as pd

import cepbench as cep

PREDICATES = {
    "p1": "",
    "p2": " AND a[i].price > a[i-1].price",
    "p3": " AND a[i].price > min(a[..i-1].price)",
}
STRATEGIES = {"s2": "partition_contiguity(symbol)", "s3": "next"}
WINDOWS = (500, 2000)

#: Runs of a symbol that the loop has room for.
_RUNS = 64


def stock_ticker(events: int, seed: int, symbols: int = 2) -> cep.EventStream:
    """A stream like the paper's: prices move by one, and go up with probability 0.7.

    Parameters
    ----------
    events : int
    seed : int
    symbols : int
    """
    rng = np.random.default_rng(seed)
    symbol = rng.integers(1, symbols + 1, events)
    step = rng.choice([1, -1, 0], events, p=[0.7, 0.15, 0.15])
    price = np.empty(events, np.int64)
    for one in range(1, symbols + 1):
        own = symbol == one
        price[own] = rng.integers(1, 1001) + np.cumsum(step[own])
    columns = {
        "type": "STOCK",
        "time": np.arange(events),
        "symbol": symbol,
        "price": price,
        "volume": rng.integers(1, 1001, events),
    }
    return cep.EventStream.from_pandas(pd.DataFrame(columns), type="type", time="time")


def query(predicate: str, strategy: str, window: int) -> str:
    """The text of a query; ``window`` is in events of a symbol."""
    return (
        "PATTERN SEQ(STOCK+ a, STOCK b) WHERE [symbol] AND a[1].price % 500 = 0"
        f"{PREDICATES[predicate]} AND b.volume < 150 STRATEGY {STRATEGIES[strategy]} "
        f"WITHIN {2 * window} units"
    )


@numba.njit
def loop(predicate, contiguous, window, symbols, prices, volumes, positions):
    """The matches of a query, and the positions in them, which are written in turn."""
    runs = np.empty((3, _RUNS, 3), np.int64)  # start, last or least price, events
    sizes = np.zeros(3, np.int64)
    found = written = 0
    for now in range(len(symbols)):
        symbol, price, closes = symbols[now], prices[now], volumes[now] < 150
        its, kept = runs[symbol], 0
        for run in range(sizes[symbol]):
            start, compared, events = its[run]
            if start < now - window:
                continue
            if closes:
                found += 1
                if len(positions):
                    for k in range(events + 1):
                        positions[(written + k) % len(positions)] = now - k
                written += events + 1
            if predicate == 0 or price > compared:
                if predicate == 1:
                    compared = price
                events += 1
            elif contiguous:
                continue
            its[kept] = start, compared, events
            kept += 1
        if price % 500 == 0:
            its[kept] = now, price, 1
            kept += 1
        sizes[symbol] = kept
    return found, written


def measure(
    events: int, repetitions: int, seed: int, outputs: Sequence[str] = ("count", "arrow")
) -> pd.DataFrame:
    """One row a query, window, output, engine and repetition.

    Returns
    -------
    DataFrame
        ``query``, ``window``, ``output``, ``repetition``, ``engine``, ``seconds``, ``matches``.

    Raises
    ------
    AssertionError
        If loop and engine disagree.
    """
    stream = stock_ticker(events, seed)
    arrays = [np.asarray(stream.column(name)) for name in ("symbol", "price", "volume")]
    rows = []
    for window in WINDOWS:
        for strategy in STRATEGIES:
            for number, predicate in enumerate(PREDICATES):
                pattern = cep.parse(query(predicate, strategy, window))
                for output in outputs:
                    room = np.empty(1 << 16 if output == "arrow" else 0, np.int64)
                    for repetition in range(-1, repetitions):
                        before = time.perf_counter()
                        found, _ = loop(number, strategy == "s2", 2 * window, *arrays, room)
                        between = time.perf_counter()
                        result = cep.evaluate(pattern, stream, evaluator="sase", output=output)
                        after = time.perf_counter()
                        assert result.metrics.matches == found, (pattern, found)
                        if repetition >= 0:  # the first one loads the kernels
                            rows += [
                                {
                                    "query": predicate + strategy,
                                    "window": window,
                                    "output": output,
                                    "repetition": repetition,
                                    "engine": engine,
                                    "seconds": seconds,
                                    "matches": found,
                                }
                                for engine, seconds in (
                                    ("loop", between - before),
                                    ("sase", after - between),
                                )
                            ]
    return pd.DataFrame(rows)
