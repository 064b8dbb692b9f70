"""Matches that two-step has to keep on long sequences, on which it runs out of memory in [qi2014]_, section 6.2.

A-Seq counts them without keeping any: they are the matches that have not expired, the value of COUNT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from cepbench.engines.aggregation.aggregate import aggregate
from cepbench.experiments.studies.qi2014.printed import MEMORY
from cepbench.experiments.studies.qi2014.runs import ALL_RATES, crossing
from cepbench.experiments.studies.runs import figure_runs, number, sized
from cepbench.streams.event_stream import EventStream
from cepbench.streams.ticker_trades import TICKERS, WINDOW, TickerTrades

#: The longest sequence that the paper runs with two-step, and those that it cannot.
LENGTHS = (5, 6, 7, 8, 9, 10)

#: Milliseconds.
WINDOWS = (1000, 2000)

#: Trades of a ticker per second.
RATES = (10, 40, 60, 100, 300)

#: Of the longest window.
_WINDOWS_OF_A_STREAM = 10

#: Bytes of an item of a match at least: a reference of the paper's machine, of 32 bits. A guess.
REFERENCE = 4

PROFILES = {"quick": {"seeds": 5}, "full": {"seeds": 20}}


def kept_matches(
    profile: str,
    *,
    seed: int = 0,
    lengths: Sequence[int] = LENGTHS,
    rates: Sequence[int] = RATES,
    windows: Sequence[int] = WINDOWS,
) -> pd.DataFrame:
    """The most matches that two-step has to keep at a time, and the bytes of their references.

    A row a length, rate, window and stream, as
    :func:`cepbench.experiments.studies.runs.figure_runs` takes it: ``size``, ``window_size``,
    ``active``, ``regime`` (the rate), ``series`` (``two-step, 1000 ms``), ``repetition`` (the
    seed), ``kept_matches``, ``kept_bytes`` (:data:`REFERENCE` for each item).
    """
    seeds = range(seed, seed + sized(PROFILES, profile)["seeds"])
    rows = [
        row
        for rate in rates
        for its in seeds
        for row in _on_stream(rate, its, max(lengths), lengths, windows)
    ]
    return pd.DataFrame(rows)


def _on_stream(
    rate: int, seed: int, tickers: int, lengths: Sequence[int], windows: Sequence[int]
) -> Iterator[dict[str, object]]:
    events = round(_WINDOWS_OF_A_STREAM * tickers * rate * max(windows) / WINDOW)
    made = TickerTrades(events, seed, tickers, float(rate))
    stream = EventStream.from_arrow(made.table(0, events), type="symbol", time="ts")
    for length in lengths:
        items = ", ".join(f"{ticker} i{place}" for place, ticker in enumerate(TICKERS[:length]))
        for window in windows:
            pattern = f"PATTERN SEQ({items}) AGG COUNT WITHIN < {window} milliseconds"
            counts = aggregate(pattern, stream, "a-seq").values["COUNT"]
            most = float(max(counts, default=0))
            yield {
                "size": length,
                "window_size": window,
                "active": rate * window / WINDOW,
                "regime": f"{rate} per second",
                "series": f"two-step, {window} ms",
                "repetition": str(seed),
                "kept_matches": most,
                "kept_bytes": REFERENCE * length * most,
            }


def out_of_memory(kept: pd.DataFrame) -> pd.DataFrame:
    """With how many active events the matches of each stream fill the paper's memory, by length.

    Of :func:`kept_matches` in the shortest window; in the regime of all rates, with the setting ``memory at
    length 6``, and ``active``.
    """
    rows = []
    shortest = kept[kept["window_size"] == WINDOWS[0]]
    for (length, seed), part in shortest.groupby(["size", "repetition"]):
        its = part[part["kept_bytes"] > 0].sort_values("active")
        active = its["active"].to_numpy(float)
        found = crossing(active, np.log(its["kept_bytes"].to_numpy(float)), MEMORY)
        row = {"size": length, "repetition": seed, "active": float(found)}
        rows.append(row | {"setting": f"memory at length {length}", "series": "two-step"})
    return figure_runs(pd.DataFrame(rows).assign(regime=ALL_RATES), "setting", "series")


def memory_says(full: pd.DataFrame) -> str:
    """Between which numbers of active events length 5 fits into memory and length 6 does not; of :func:`out_of_memory`."""
    fits, fails = (full[full["size"] == length]["active"].median() for length in (5, 6))
    return (
        f"In 1000 ms the references of the matches that two-step keeps fill the {MEMORY / 2**30:.0f} GB of "
        f"the paper's machine from {number(fails)} active events of each ticker on at length 6, where it ran "
        f"out of memory, and from {number(fits)} on at length 5, where it did not: if it kept {REFERENCE} "
        "bytes for each item of a match, a guess, its stream had between so many."
    )
