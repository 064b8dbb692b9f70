"""What EXPLAIN ANALYZE costs: ``python benchmarks/bench_node_times.py [--out rows.parquet]``.

The same evaluations with and without the measurement of the time that goes into each node, in turn,
so that ratios are of one run. The other counters are always on.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence

import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.streams.ten_symbols import ten_symbols

PATTERNS = {
    "many matches": (
        "PATTERN SEQ(s3 a, s6 b, s9 c) WHERE a.difference < b.difference WITHIN 5 minutes"
    ),
    "many partial matches": (
        "PATTERN AND(s1 a, s3 b, s5 c, s7 d) WHERE a.difference < c.difference "
        "AND b.difference < d.difference WITHIN 2 minutes"
    ),
    "short steps": (
        "PATTERN SEQ(s0 a, s2 b, s4 c, s6 d, s8 e) WHERE a.difference < b.difference "
        "AND c.difference < e.difference WITHIN 1 minutes"
    ),
}


def measure(events: int, repetitions: int, seed: int) -> dict[str, tuple[list[float], list[float]]]:
    """Seconds of each repetition without and with node times, for each pattern."""
    table = ten_symbols(events, seed)
    typed = table.assign(ts=pd.to_datetime(table["ts"], unit="ms"))
    stream = cep.EventStream.from_pandas(typed, type="symbol", time="ts")
    found = {}
    for name, text in PATTERNS.items():
        pattern = cep.parse(text)
        plan = cep.plan(pattern, cep.measure_statistics(pattern, stream, seed=seed), "DP-B")
        seconds: tuple[list[float], list[float]] = ([], [])
        for repetition in range(-1, repetitions):
            for on in (False, True):
                before = time.perf_counter()
                cep.evaluate(pattern, stream, plan, output="count", node_times=on)
                if repetition >= 0:  # the first one loads the kernels
                    seconds[on].append(time.perf_counter() - before)
        found[name] = seconds
    return found


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of(
        "The cost of measuring the time of each node.", events=200_000, repetitions=41
    )
    given = parser.parse_args(arguments)
    rows: list[dict[str, object]] = []
    print(f"node times, {given.events:,} events, {given.repetitions} repetitions")
    print(f"  {'':<22}{'off':>10}{'on':>10}   on / off, median [quartiles]")
    for name, (off, on) in measure(given.events, given.repetitions, given.seed).items():
        ratios = [y / x for x, y in zip(off, on, strict=True)]
        low, middle, high = (
            statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
        )
        shown = "".join(f"{1e3 * statistics.median(times):>7.1f} ms" for times in (off, on))
        print(f"  {name:<22}{shown}   {middle:.3f} [{low:.3f}, {high:.3f}]")
        rows += [{"pattern": name, "off": x, "on": y} for x, y in zip(off, on, strict=True)]
    write(pd.DataFrame(rows), given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
