"""Microseconds a push, by engine: ``python benchmarks/bench_pushes.py [--out rows.parquet]``.

A sequence of three with few matches on a stream of five types, in pushes of 1, 16, 256 and 4,096 events, by
every engine of the registry. A detector counts the matches of a whole window before its pushes are timed, each
for itself; all take turns, so that ratios are of one repetition. A mean includes pushes in which an engine
evicts, the median does not.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
from command_line import parser_of, write
from every_engine import BASELINE, ENGINES, plan_for

import cepbench as cep

PATTERN = cep.parse("PATTERN SEQ(A a, B b, C c) WHERE a.x < b.x AND b.x < c.x WITHIN 200 units")

#: Events of a push, and how many pushes are timed in a repetition.
PUSHES = {1: 400, 16: 200, 256: 40, 4_096: 4}


def stream_of(events: int, seed: int) -> cep.EventStream:
    """An event a unit of time; one in forty is of a type of the pattern."""
    rng = np.random.default_rng(seed)
    table = {
        "type": rng.choice(list("ABCDE"), events, p=[1 / 120, 1 / 120, 1 / 120, 0.5, 0.475]),
        "ts": np.arange(events),
        "x": rng.random(events),
    }
    return cep.EventStream.from_pandas(pd.DataFrame(table), type="type", time="ts")


def measure(
    repetitions: int, seed: int, engines: Sequence[str] = ENGINES, share: float = 1.0
) -> pd.DataFrame:
    """One row an engine, size of push and repetition.

    Parameters
    ----------
    repetitions, seed : int
    engines : sequence of str
    share : float
        Of the pushes in :data:`PUSHES`; at least two are timed.

    Returns
    -------
    DataFrame
        ``engine``, ``events`` of a push, ``repetition``, ``seed``, ``pushes``, ``mean`` and ``median``
        microseconds a push, and ``matches``.
    """
    window = PATTERN.window.length
    rows = []
    for repetition in range(-1, repetitions):
        for size, most in PUSHES.items():
            pushes = max(2, round(share * most))
            stream = stream_of(window + size * pushes, seed + max(repetition, 0))
            batches = [stream[at : at + size] for at in range(window, len(stream), size)]
            for name in engines:
                plan = plan_for(name, "abc")
                detector = cep.Detector(PATTERN, plan, evaluator=name, output="count")
                detector.push(stream[:window])
                seconds = []
                for batch in batches:
                    before = time.perf_counter()
                    detector.push(batch)
                    seconds.append(time.perf_counter() - before)
                if repetition < 0:  # the first one loads the kernels
                    continue
                rows.append(
                    {
                        "engine": name,
                        "events": size,
                        "repetition": repetition,
                        "seed": seed + repetition,
                        "pushes": pushes,
                        "mean": 1e6 * float(np.mean(seconds)),
                        "median": 1e6 * float(np.median(seconds)),
                        "matches": detector.metrics().matches,
                    }
                )
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame, baseline: str) -> str:
    """A line an engine and size: the mean and the median push, and the ratio of means to the baseline.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure` gives them.
    baseline : str
        An engine among them.
    """
    lines = []
    for size, its in rows.groupby("events", sort=False):
        means = its.pivot(index="repetition", columns="engine", values="mean")
        medians = its.pivot(index="repetition", columns="engine", values="median").median()
        lines.append(
            f"{size:,} events a push, {its['pushes'].iloc[0]} pushes\n"
            f"  {'':<22}{'mean us [quartiles]':>32}{'median push':>14}   / {baseline} [quartiles]"
        )
        for name in its["engine"].unique():
            low, mean, high = means[name].quantile([0.25, 0.5, 0.75])
            less, ratio, more = (means[name] / means[baseline]).quantile([0.25, 0.5, 0.75])
            spread = f"{mean:,.1f} [{low:,.1f}, {high:,.1f}]"
            lines.append(
                f"  {name:<22}{spread:>32}{medians[name]:>11,.1f} us   "
                f"{ratio:.2f} [{less:.2f}, {more:.2f}]"
            )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = parser_of("Microseconds a push, by engine.", repetitions=9)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES))
    parser.add_argument("--baseline", choices=ENGINES, default=BASELINE)
    parser.add_argument("--share", type=float, default=1.0, help="of the pushes, for a short run")
    given = parser.parse_args(arguments)
    engines = list(dict.fromkeys([given.baseline, *given.engines]))
    rows = measure(given.repetitions, given.seed, engines, given.share)
    print(f"pushes, seed {given.seed}, {given.repetitions} repetitions, cepbench {cep.__version__}")
    print(PATTERN)
    print(summary(rows, given.baseline))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
