"""Aggregates without matches: ``python benchmarks/bench_aggregates.py [--out rows.parquet]``.

Trades of 20 tickers, 50 of each in the window unless said otherwise:

- SEQ of five: the methods without matches, and a bare loop of prefix counters that never expires;
- 100 of each in the window: the same against ``two-step``, on some events after the window is full;
- SEQ of three, in windows with ten to ten thousand active events of the first item;
- six queries of eight items, 300 of each in the window, that share the first six items, the last six, or
  nothing, by the plans of the planners of workloads;
- the size of the state of a live aggregator over a stream, and one ten times as long.

All take turns, so that ratios are of one run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import numba
import numpy as np
import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.streams.ticker_trades import TICKERS, TickerTrades

TYPES = 20
ACTIVE = (10, 100, 1_000, 10_000)
METHODS = ("window-product", "a-seq")
PLANNERS = ("NONE", "PRETREE", "CHOP-CONNECT", "SHARON")

#: The items of the k-th of six queries, by number of ticker.
SHARED: dict[str, Callable[[int], list[int]]] = {
    "first six": lambda k: [*range(6), 6 + 2 * k, 7 + 2 * k],
    "last six": lambda k: [6 + 2 * k, 7 + 2 * k, *range(6)],
    "nothing": lambda k: [(3 * k + item) % TYPES for item in range(8)],
}

#: Events in a window with 100 of each ticker, and those of a run of two-step behind them.
FULL, STRETCH = 100 * TYPES, 10 * TYPES


def measure(events: int, repetitions: int, seed: int, full: int = FULL) -> pd.DataFrame:
    """One row a cell and repetition.

    Returns
    -------
    DataFrame
        ``cell``, ``repetition``, ``seconds``, ``events``, ``value``: the last count, or bytes.

    Raises
    ------
    AssertionError
        If the methods disagree.
    """
    cells: dict[str, tuple[int, Callable[[], int]]] = {}
    stream = stream_of(events, seed, per_window=50)
    query = query_of(TICKERS[:5], 1000)
    for method in METHODS:
        cells[f"{method}, 50 of each"] = events, lambda m=method: last(query, stream, m)
    items = np.array([TICKERS[:5].index(t) if t in TICKERS[:5] else -1 for t in TICKERS[:TYPES]])
    codes = items[[*map(TICKERS.index, stream.type_names)]][stream.type_codes]
    cells["bare loop"] = events, lambda: int(prefix_counts(codes, 5)[-1])
    dense = stream_of(events, seed, per_window=100)
    for method in METHODS:
        cells[f"{method}, 100 of each"] = events, lambda m=method: last(query, dense, m)
    filled = cep.Aggregator(query, "two-step")
    filled.push(dense[:full])
    before_run, begun = filled.snapshot(), dense[: full + STRETCH]
    cells["two-step, 100 of each"] = STRETCH, lambda: resumed(before_run, begun[full:])
    fewer = stream[: min(events, 1_000_000)]
    for method in METHODS:
        for active in ACTIVE:
            its = query_of(TICKERS[:3], 20 * active)
            cells[f"{method}, {active:,} active"] = (
                len(fewer),
                lambda q=its, m=method: last(q, fewer, m),
            )
    busy = stream_of(min(events, 360_000), seed, per_window=300)
    for part, items_of in SHARED.items():
        queries = {f"Q{k}": query_of([TICKERS[j] for j in items_of(k)], 1000) for k in range(6)}
        workload = cep.Workload(queries)
        statistics = cep.measure_statistics(workload, busy)
        for planner in PLANNERS:
            plan = cep.plan_workload(workload, statistics, planner, seed=seed, method="a-seq")
            cells[f"{planner}, {part} shared"] = len(busy), lambda p=plan: total(p, busy)
    rows = []
    for repetition in range(-1, repetitions):
        for cell, (number, run) in cells.items():
            if cell.startswith("two-step") and repetition > 0:
                continue
            before = time.perf_counter()
            value = run()
            seconds = time.perf_counter() - before
            if repetition >= 0:  # the first one loads the kernels
                rows.append((cell, repetition, seconds, number, value))
    for number in (events // 40, events // 4):
        size = state_of(query, stream[:number])
        rows.append((f"state, {number:,} events", 0, np.nan, number, size))
    found = pd.DataFrame(rows, columns=["cell", "repetition", "seconds", "events", "value"])
    found["value"] = found["value"].astype(str)  # counts may have more than 64 bits
    names = found["cell"].str.split(", ", n=1).str[1]
    sharing = [f"{part} shared" for part in SHARED]
    for name in ("50 of each", *(f"{active:,} active" for active in ACTIVE), *sharing):
        assert found.loc[names == name, "value"].nunique() == 1, name
    assert last(query, begun, "a-seq") == int(
        found.loc[found["cell"] == "two-step, 100 of each", "value"].iloc[0]
    )
    return found


def stream_of(events: int, seed: int, per_window: float) -> cep.EventStream:
    """Trades, so many of each ticker in 1000 ms."""
    table = TickerTrades(events, seed, TYPES, per_window).table(0, events).to_pandas()
    return cep.EventStream.from_pandas(table, type="symbol", time="ts")


def query_of(tickers: Sequence[str], milliseconds: int) -> str:
    """COUNT over a SEQ of tickers."""
    items = ", ".join(f"{ticker} x{k}" for k, ticker in enumerate(tickers))
    return f"PATTERN SEQ({items}) AGG COUNT WITHIN < {milliseconds} milliseconds"


def last(query: str, stream: cep.EventStream, method: str) -> int:
    """The last count."""
    return int(cep.aggregate(query, stream, method).rows.columns[0][-1])


def total(plan: cep.WorkloadPlan, stream: cep.EventStream) -> int:
    """The sum of the last counts of all queries."""
    found = cep.aggregate(plan.workload, stream, "a-seq", sharing=plan)
    return sum(int(its.rows.columns[0][-1]) for its in found.rows.values() if len(its.rows))


def resumed(snapshot: dict[str, np.ndarray], stream: cep.EventStream) -> int:
    """The last count after a snapshot and further events."""
    return int(cep.Aggregator.restore(snapshot).take(stream).columns[0][-1])


def state_of(query: str, stream: cep.EventStream) -> int:
    """Bytes of the state after a stream in batches."""
    live = cep.Aggregator(query)
    for batch in stream.batches(1000):
        live.push(batch)
    return sum(array.nbytes for array in live.snapshot().values())


@numba.njit
def prefix_counts(items, length):
    """Counts of prefixes [qi2014]_, section 3.1, without windows."""
    counts = np.zeros(length, np.int64)
    for item in items:
        if item == 0:
            counts[0] += 1
        elif item > 0:
            counts[item] += counts[item - 1]
    return counts


def summary(rows: pd.DataFrame) -> str:
    """A line a cell: the least time for an event, and ratios of least times.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure` gives them.
    """
    timed = rows.dropna(subset="seconds")
    least = (timed["seconds"] / timed["events"]).groupby(timed["cell"], sort=False).min()
    lines = [f"  {cell:<32}{1e9 * each:>16,.1f} ns an event" for cell, each in least.items()]
    for method in METHODS:
        faster = least["two-step, 100 of each"] / least[f"{method}, 100 of each"]
        first, *others = (least[f"{method}, {active:,} active"] for active in ACTIVE)
        slower = least[f"{method}, 50 of each"] / least["bare loop"]
        lines += [
            f"  {method}: {faster:,.0f} times as fast as two-step",
            f"  {method}: the slowest window takes {max(first, *others) / first:.2f} times the "
            "first one's time",
            f"  {method}: {slower:.1f} times the time of the bare loop",
        ]
    for part in SHARED:
        own = {planner: least[f"{planner}, {part} shared"] for planner in PLANNERS}
        gains = ", ".join(f"{its} {own['NONE'] / own[its]:.2f}" for its in PLANNERS[1:])
        lines.append(
            f"  {part} shared: {gains} times as fast as NONE; SHARON takes "
            f"{own['SHARON'] / min(own.values()):.2f} times the least time"
        )
    short, long = rows.loc[rows["cell"].str.startswith("state"), "value"].astype(int)
    lines.append(f"  state: {short:,} bytes, after ten times as many events {long:,}")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("Aggregates without matches.", events=4_000_000, repetitions=3)
    given = parser.parse_args(arguments)
    full = min(FULL, given.events // 2)
    rows = measure(given.events, given.repetitions, given.seed, full)
    print(f"{given.events:,} events of {TYPES} types, {given.repetitions} repetitions")
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
