"""What processing event by event costs: ``python benchmarks/bench_instances.py [--out rows.parquet]``.

Each pattern is evaluated along the plans of DP-LD and DP-B by the columnar engine and by the one
that goes event by event, in turn, so that ratios are of one run. Beside them: how many partial
matches an event makes, which is what the two engines differ in.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.streams.ten_symbols import ten_symbols

#: From few partial matches per event to many; one a construct.
PATTERNS = {
    "sparse": "PATTERN SEQ(s0 a, s1 b, s2 c) WHERE a.difference < b.difference WITHIN 1 minutes",
    "five types": (
        "PATTERN SEQ(s0 a, s2 b, s4 c, s6 d, s8 e) WHERE a.difference < b.difference "
        "AND c.difference < e.difference WITHIN 1 minutes"
    ),
    "sequence": "PATTERN SEQ(s3 a, s6 b, s9 c) WHERE a.difference < b.difference WITHIN 1 minutes",
    "conjunction": (
        "PATTERN AND(s1 a, s3 b, s5 c, s7 d) WHERE a.difference < c.difference "
        "AND b.difference < d.difference WITHIN 2 minutes"
    ),
    "negation": (
        "PATTERN SEQ(s3 a, NOT(s1 n), s6 c) WHERE a.difference < c.difference WITHIN 2 minutes"
    ),
    "Kleene": (
        "PATTERN SEQ(s1 a, KL(s4 b), s6 c) WHERE b[i].difference > b[i-1].difference "
        "AND b.difference > a.difference WITHIN 1 minutes"
    ),
    "consuming": "PATTERN SEQ(s3 a, s6 b, s9 c) STRATEGY consuming WITHIN 2 minutes",
}

#: The columnar evaluators and their twins, by the generator of the plan that they run.
ENGINES = {
    "DP-LD": ("lazy-nfa", "lazy-nfa-instances"),
    "DP-B": ("tree", "tree-instances"),
}


def measure(events: int, repetitions: int, seed: int) -> pd.DataFrame:
    """One row a pattern, evaluator and repetition.

    Parameters
    ----------
    events, repetitions, seed : int

    Returns
    -------
    DataFrame
        ``pattern``, ``evaluator``, ``columnar`` (whether it is), ``generator``, ``repetition``,
        ``seconds``, ``matches``, ``partial_matches_per_event``, ``comparisons``, ``peak_bytes``.
    """
    table = ten_symbols(events, seed)
    typed = table.assign(ts=pd.to_datetime(table["ts"], unit="ms"))
    stream = cep.EventStream.from_pandas(typed, type="symbol", time="ts")
    rows = []
    for name, text in PATTERNS.items():
        pattern = cep.parse(text)
        measured = cep.measure_statistics(pattern, stream, seed=seed)
        plans = {generator: cep.plan(pattern, measured, generator) for generator in ENGINES}
        for repetition in range(-1, repetitions):
            for generator, pair in ENGINES.items():
                for evaluator in pair:
                    before = time.perf_counter()
                    result = cep.evaluate(
                        pattern, stream, plans[generator], evaluator=evaluator, output="count"
                    )
                    seconds = time.perf_counter() - before
                    if repetition < 0:  # the first one loads the kernels
                        continue
                    metrics = result.metrics
                    rows.append(
                        {
                            "pattern": name,
                            "evaluator": evaluator,
                            "columnar": evaluator == pair[0],
                            "generator": generator,
                            "repetition": repetition,
                            "seconds": seconds,
                            "matches": metrics.matches,
                            "partial_matches_per_event": metrics.partial_matches_created / events,
                            "comparisons": metrics.comparisons,
                            "peak_bytes": metrics.peak_bytes,
                        }
                    )
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> str:
    """A line a pattern and plan: both times, and the ratio within a repetition.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure` gives them.
    """
    lines = [
        f"  {'':<12} {'plan':<6}{'columnar':>11}{'by event':>11}   ratio, median [quartiles]"
        f"{'PM/event':>10}{'ns/comparison':>15}"
    ]
    for (name, generator), its in rows.groupby(["pattern", "generator"], sort=False):
        times = its.pivot(index="repetition", columns="columnar", values="seconds")
        low, middle, high = (times[False] / times[True]).quantile([0.25, 0.5, 0.75])
        one = its[~its["columnar"]].iloc[0]
        columnar, by_event = 1e3 * times[True].median(), 1e3 * times[False].median()
        spread = f"{middle:.2f} [{low:.2f}, {high:.2f}]"
        dear = 1e6 * by_event / max(one["comparisons"], 1)
        lines.append(
            f"  {name:<12} {generator:<6}{columnar:>8.1f} ms{by_event:>8.1f} ms   {spread:<25}"
            f"{one['partial_matches_per_event']:>10.3g}{dear:>15.1f}"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("The cost of processing event by event.", events=200_000, repetitions=11)
    given = parser.parse_args(arguments)
    rows = measure(given.events, given.repetitions, given.seed)
    print(f"event by event, {given.events:,} events, {given.repetitions} repetitions")
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
