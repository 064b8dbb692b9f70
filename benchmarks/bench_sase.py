"""The automaton engine against a loop written for one query: ``python benchmarks/bench_sase.py``.

The template of [agrawal2008]_, section 6, six queries at two windows, on its stock ticker. The loop
knows the template: it keeps the runs of each symbol in arrays and tests the conditions in its code.
It counts, or writes as many positions as the matches have. All run in turn, so that ratios are of
one run.

Further lines compare the engine with itself: over 2,000 symbols and over 2, with as many events of
a symbol in a window, and the most bytes that it stores over the stream and a tenth of it.
Options of the engine are compared with each other, too: what to do with NOT, and postponing. So are the
columns of RETURN from V or along the graph, and those of listed matches.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numba
import numpy as np
import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.engines.runs.result import Metrics
from cepbench.streams.stock_ticker import StockTicker

PREDICATES = {
    "p1": "",
    "p2": " AND a[i].price > a[i-1].price",
    "p3": " AND a[i].price > min(a[..i-1].price)",
}
STRATEGIES = {"s2": "partition_contiguity(symbol)", "s3": "next"}
WINDOWS = (500, 2000)
OUTPUTS = ("count", "arrow")

#: Symbols, and events of each in a window.
SYMBOLS, OF_SYMBOL = (2, 2000), 50

#: Queries on the stock ticker and on a stream of types, with two values of an option that are
#: compared.
NEGATION = {"negation": "early"}, {"negation": "filter"}
POSTPONE = {"postpone": True}, {"postpone": False}
OPTIONS = {
    "tick NOT": (
        "PATTERN SEQ(STOCK a, NOT(STOCK n), STOCK b) WHERE [symbol] AND a.price % 500 = 0"
        " AND n.volume < 5 AND b.volume < 150 WITHIN 1000 units",
        NEGATION,
    ),
    "rise NOT": (
        "PATTERN SEQ(STOCK+ a, NOT(STOCK n), STOCK b) WHERE [symbol] AND a[1].price % 500 = 0"
        " AND a[i].price > a[i-1].price AND n.price < a[1].price AND b.volume < 150"
        " STRATEGY next WITHIN 1000 units",
        NEGATION,
    ),
    "types NOT": ("PATTERN SEQ(A a, NOT(B n), C c) WITHIN 100 units", NEGATION),
    "apart NOT": (
        "PATTERN SEQ(A a, NOT(B n), C c, D d) WHERE n.x < a.x AND d.x > 0.999 WITHIN 100 units",
        NEGATION,
    ),
    "rare C": (
        "PATTERN SEQ(A a, KL(B b), C c) WHERE b[i].x > avg(b[..i-1].x) AND c.x > 0.99"
        " WITHIN 60 units",
        POSTPONE,
    ),
    "each C": (
        "PATTERN SEQ(A a, KL(B b), C c) WHERE b[i].x > avg(b[..i-1].x) WITHIN 60 units",
        POSTPONE,
    ),
}

#: Columns of RETURN for queries on the stock ticker: from V, and along the graph.
RETURNS = {
    "V": "a[1].symbol AS symbol, b.price AS price",
    "graph": "a[1].price AS low, sum(a.price) AS total, count(a.price) AS n, b.price AS price",
}

#: Events in a batch whose matches are built.
_BATCH = 1 << 13

#: Positions that the loop writes before it overwrites them.
_POSITIONS = 1 << 16

#: Runs of a symbol that the loop has room for.
_RUNS = 64


def stock_ticker(events: int, seed: int, symbols: int = 2) -> cep.EventStream:
    """The paper's stream, one event a tick.

    Parameters
    ----------
    events, seed, symbols : int
    """
    table = StockTicker(events, seed, symbols=symbols).table(0, events)
    return cep.EventStream.from_arrow(table, type="type", time="ts")


def query(predicate: str, strategy: str, window: int, symbols: int = 2) -> str:
    """The text of a query; ``window`` is in events of a symbol."""
    return (
        "PATTERN SEQ(STOCK+ a, STOCK b) WHERE [symbol] AND a[1].price % 500 = 0"
        f"{PREDICATES[predicate]} AND b.volume < 150 STRATEGY {STRATEGIES[strategy]} "
        f"WITHIN {symbols * window} units"
    )


@numba.njit
def loop(predicate, contiguous, window, symbols, prices, volumes, positions):
    """The number of matches of a query; as many positions as they have are written in turn."""
    runs = np.empty((3, _RUNS, 3), np.int64)  # start, last or least price, events
    sizes = np.zeros(3, np.int64)
    found = place = 0
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
                    place = place if place + events < len(positions) else 0
                    for k in range(events + 1):
                        positions[place + k] = now - k
                    place += events + 1
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
    return found


def detected(pattern: cep.Pattern, stream: cep.EventStream, output: str) -> Metrics:
    """The metrics of the engine; matches that it builds are dropped."""
    if output == "count":
        return cep.evaluate(pattern, stream, evaluator="sase", output=output).metrics
    detector = cep.Detector(pattern, evaluator="sase", output=output)
    for batch in stream.batches(_BATCH):
        detector.push(batch)
    return detector.metrics()


def measure(
    events: int, repetitions: int, seed: int, outputs: Sequence[str] = OUTPUTS
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
                    room = np.empty(_POSITIONS if output == "arrow" else 0, np.int64)
                    for repetition in range(-1, repetitions):
                        before = time.perf_counter()
                        found = loop(number, strategy == "s2", 2 * window, *arrays, room)
                        between = time.perf_counter()
                        matches = detected(pattern, stream, output).matches
                        after = time.perf_counter()
                        assert matches == found, (pattern, found)
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


def measure_options(
    events: int, repetitions: int, seed: int, outputs: Sequence[str] = ("count", "arrow")
) -> pd.DataFrame:
    """One row a query, output, repetition and value of the option.

    Returns
    -------
    DataFrame
        ``query``, ``output``, ``repetition``, ``option``, ``seconds``, ``matches``.
    """
    ticker, rng = stock_ticker(events, seed), np.random.default_rng(seed)
    types = {"type": rng.choice(list("ABCDEFGH"), events), "x": rng.random(events)}
    of_types = cep.EventStream.from_pandas(
        pd.DataFrame({**types, "ts": np.arange(events)}), type="type", time="ts"
    )
    rows = []
    for query, (text, options) in OPTIONS.items():
        stream = ticker if "STOCK" in text else of_types
        for output in outputs:
            for repetition in range(-1, repetitions):
                for option, its in zip(("on", "off"), options, strict=True):
                    before = time.perf_counter()
                    result = cep.evaluate(
                        text, stream, evaluator="sase", output=output, options=its
                    )
                    seconds = time.perf_counter() - before
                    if repetition >= 0:  # the first one loads the kernels
                        matches = result.metrics.matches
                        rows.append((query, output, repetition, option, seconds, matches))
    names = ["query", "output", "repetition", "option", "seconds", "matches"]
    return pd.DataFrame(rows, columns=names)


def measure_returns(events: int, repetitions: int, seed: int) -> pd.DataFrame:
    """As :func:`measure_options`, of RETURN with and without lists of matches."""
    stream = stock_ticker(events, seed)
    rows = []
    for predicate in ("p1", "p3"):
        for source, columns in RETURNS.items():
            text = f"{query(predicate, 's3', 500)} RETURN {columns}"
            for repetition in range(-1, repetitions):
                for option, output in (("on", "arrow"), ("off", "matches")):
                    before = time.perf_counter()
                    matches = cep.evaluate(text, stream, evaluator="sase", output=output).arrow
                    seconds = time.perf_counter() - before
                    if repetition >= 0:  # the first one loads the kernels
                        its = (f"{predicate} s3", source, repetition, option, seconds)
                        rows.append((*its, matches.num_rows))
    names = ["query", "output", "repetition", "option", "seconds", "matches"]
    return pd.DataFrame(rows, columns=names)


def summary_of_options(rows: pd.DataFrame) -> str:
    """A line a query and output: the time with the first option, and the ratio of the other's to it.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure_options` gives them.

    Raises
    ------
    AssertionError
        If the matches differ.
    """
    lines = []
    for (query, output), its in rows.groupby(["query", "output"], sort=False):
        assert its["matches"].nunique() == 1, (query, output)
        times = its.pivot(index="repetition", columns="option", values="seconds")
        lines.append(
            f"  {query:<10}{output:<6}{1e3 * times['on'].median():>9.1f} ms"
            f"{(times['off'] / times['on']).median():>8.2f} times as fast as without"
            f"{its['matches'].iloc[0]:>12,} matches"
        )
    return "\n".join(lines)


def summary(rows: pd.DataFrame) -> str:
    """A line a query, window and output: events a second, as a share of the loop's.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure` gives them.
    """
    lines = []
    for (window, query, output), its in rows.groupby(["window", "query", "output"], sort=False):
        times = its.pivot(index="repetition", columns="engine", values="seconds")
        lines.append(
            f"  {query} W {window:<5}{output:<6}{1e3 * times['sase'].median():>9.1f} ms"
            f"{(times['loop'] / times['sase']).median():>7.2f} of the loop's throughput"
            f"{its['matches'].iloc[0]:>12,} matches"
        )
    return "\n".join(lines)


def partitions(events: int, repetitions: int, seed: int) -> str:
    """A line an output and strategy: the time over many symbols, relative to that over two."""
    streams = {symbols: stock_ticker(events, seed, symbols) for symbols in SYMBOLS}
    lines = []
    for strategy in STRATEGIES:
        for output in OUTPUTS:
            seconds: dict[int, list[float]] = {symbols: [] for symbols in SYMBOLS}
            for repetition in range(-1, repetitions):
                for symbols, stream in streams.items():
                    pattern = cep.parse(query("p3", strategy, OF_SYMBOL, symbols))
                    before = time.perf_counter()
                    detected(pattern, stream, output)
                    if repetition >= 0:
                        seconds[symbols].append(time.perf_counter() - before)
            few, many = (np.median(seconds[symbols]) for symbols in SYMBOLS)
            lines.append(
                f"  p3{strategy} {output:<6}{1e3 * many:>9.1f} ms with {SYMBOLS[1]:,} symbols, "
                f"{many / few:.2f} of the time with {SYMBOLS[0]}"
            )
    return "\n".join(lines)


def memory(events: int, seed: int) -> str:
    """A line an output: the most bytes stored over a tenth of the stream, and over all of it."""
    stream = stock_ticker(events, seed)
    lines = []
    for output in OUTPUTS:
        pattern = cep.parse(query("p3", "s3", WINDOWS[0]))
        peaks = [
            detected(pattern, stream[:length], output).peak_bytes
            for length in (events // 10, events)
        ]
        lines.append(f"  p3s3 W {WINDOWS[0]} {output:<6}{peaks[0]:>12,} and {peaks[1]:,} bytes")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("The automaton engine against one loop.", events=200_000, repetitions=3)
    given = parser.parse_args(arguments)
    rows = measure(given.events, given.repetitions, given.seed)
    print(f"sase, {given.events:,} events, {given.repetitions} repetitions")
    print(summary(rows))
    print(partitions(given.events, given.repetitions, given.seed))
    print(memory(given.events, given.seed))
    print("NOT: runs that end early against filtering; KL: postponing against not")
    print(summary_of_options(measure_options(given.events, given.repetitions, given.seed)))
    print("RETURN: from V or along the graph against listed matches")
    print(summary_of_options(measure_returns(given.events, given.repetitions, given.seed)))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
