"""What grows by ten times as much: ``python benchmarks/bench_growth.py [--out rows.parquet]``.

Every engine and every aggregation method of the registries, live, on ten times the stream as it is, with one
timestamp for all events, with one key, with 10,000 keys, and with ten times the window. Each runs in a process of
its own: first the short one, then the long one. A stream is made batch by batch, so that nothing but a detector
grows with it; only the CPU time of pushes counts. Patterns have few matches, whose number is shown.

An exponent is the logarithm to base 10 of a ratio: 1 is linear. Memory is that of the process, against before the
first event, or that counted by the engine, whichever grows more. It may grow with the events in the window and
with nothing else.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log10, nan
from typing import Any

import numpy as np
import pandas as pd
from bench_memory import resident_bytes
from command_line import parser_of, write
from every_engine import ENGINES, plan_for

import cepbench as cep

METHODS = tuple(name for name, entry in cep.AGGREGATORS.items() if entry.is_builtin)

#: Events of a push, and times between events in the window.
BATCH, WINDOW = 500, 100

#: The largest exponents of what is near-linear, ratios of 18, and of what is bounded, ratios of 2.
LINEAR, BOUNDED = 1.25, 0.3

#: Seconds after which a run is not repeated.
ENOUGH = 10.0

#: Added to the memory of processes, of which they take some by chance, before ratios.
CHANCE = 1 << 20


@dataclass(frozen=True)
class Case:
    """What grows, and on which stream.

    Attributes
    ----------
    keys : int
        Different values of ``k``, which all events of a match share; 0 without such a condition.
    is_tied : bool
        Whether all events have one timestamp.
    grows : {"stream", "window"}
    """

    keys: int = 0
    is_tied: bool = False
    grows: str = "stream"

    @property
    def most_memory(self) -> float:
        """The largest exponent of memory: the window has ten times the events, or as many as before."""
        return LINEAR if self.is_tied or self.grows == "window" else BOUNDED


CASES = {
    "stream": Case(),
    "one timestamp": Case(is_tied=True),
    "one key": Case(keys=1),
    "10,000 keys": Case(keys=10_000),
    "window": Case(grows="window"),
}


def batches(case: Case, events: int, seed: int) -> Iterator[cep.EventStream]:
    """Events of four types at the same rate, one a unit of time unless all are at one."""
    for number, first in enumerate(range(0, events, BATCH)):
        rng = np.random.default_rng([seed, number])
        count = min(BATCH, events - first)
        table = {
            "type": pd.Categorical.from_codes(rng.integers(0, 4, count), list("ABCD")),
            "ts": np.zeros(count, np.int64) if case.is_tied else np.arange(first, first + count),
            "x": rng.random(count),
            "k": rng.integers(0, max(case.keys, 1), count),
        }
        yield cep.EventStream.from_pandas(pd.DataFrame(table), type="type", time="ts")


def opened(name: str, case: Case, window: int) -> Any:
    """A detector or an aggregator with few matches.

    Conditions of engines relate two events, which they compare; those of methods that need no matches
    concern one. A method by which no event expires has a window that never ends.
    """
    keys = "[k] AND " if case.keys else ""
    if name in ENGINES:
        where = f"{keys}b.x > a.x + 0.97 AND c.x > b.x"
        pattern = cep.parse(f"PATTERN SEQ(A a, B b, C c) WHERE {where} WITHIN {window} units")
        return cep.Detector(pattern, plan_for(name, "abc"), evaluator=name, output="count")
    within = window if cep.AGGREGATORS[name].expires else 10**12
    where = f"{keys}a.x < 0.05 AND b.x < 0.05 AND c.x < 0.05"
    return cep.Aggregator(
        f"PATTERN SEQ(A a, B b, C c) WHERE {where} AGG COUNT WITHIN {within} units", name
    )


def run(name: str, case: Case, events: int, window: int, seed: int) -> dict[str, float]:
    """Push a stream in this process, and say what it took; memory is that of the process."""
    live = opened(name, case, window)
    seconds, most = 0.0, resident_bytes() or 0
    for batch in batches(case, events, seed):
        before = time.process_time()
        live.push(batch)
        seconds += time.process_time() - before
        most = max(most, resident_bytes() or 0)
    metrics = live.metrics() if name in ENGINES else live.metrics
    matches = metrics.matches if name in ENGINES else nan
    counted = metrics.peak_bytes
    return {"seconds": seconds, "matches": matches, "counted": counted, "resident": most}


def both(
    name: str, case: Case, events: int, repetitions: int, seed: int
) -> Iterator[dict[str, Any]]:
    """The short run and the long one, each with the least time of its repetitions."""
    run(name, case, 2 * BATCH, WINDOW, seed)  # loads what is loaded once
    before = resident_bytes() or 0
    for factor in (1, 10):
        streams = factor if case.grows == "stream" else 1
        its: list[dict[str, float]] = []
        # What takes long is not measured again.
        while len(its) < repetitions and sum(one["seconds"] for one in its) < ENOUGH:
            its.append(run(name, case, events * streams, WINDOW * factor // streams, seed))
        yield {
            **its[0],
            "seconds": min(one["seconds"] for one in its),
            "resident": max(one["resident"] for one in its) - before,
        }


def measure(
    events: int,
    repetitions: int,
    seed: int,
    names: Sequence[str],
    case: str,
    limit: float,
) -> pd.DataFrame:
    """One row an engine or method.

    Parameters
    ----------
    events : int
        Of the short stream.
    repetitions, seed : int
    names : sequence of str
    case : str
    limit : float
        Seconds after which a process is ended.

    Returns
    -------
    DataFrame
        ``case``, ``name``, ``events``, of the short run and the long one ``seconds``, ``matches``,
        ``counted`` and ``resident`` bytes; ``time`` and ``memory``, exponents; ``verdict``.
    """
    rows = []
    for name in names:
        given = [name, case, str(events), str(repetitions), str(seed)]
        command = [sys.executable, __file__, "--one", *given]
        try:
            ended = subprocess.run(command, stdout=subprocess.PIPE, timeout=limit, check=True)
            printed = ended.stdout
        except subprocess.TimeoutExpired as late:
            printed = late.stdout or b""
        found = [json.loads(line) for line in printed.splitlines()]
        rows.append({"case": case, "name": name, "events": events, **judged(name, case, found)})
    return pd.DataFrame(rows)


def judged(name: str, case: str, found: Sequence[dict[str, float]]) -> dict[str, Any]:
    """The short run and the long one side by side, with exponents and a verdict.

    Parameters
    ----------
    name, case : str
    found : sequence of dict
        As :func:`run` gives them; the long one is missing if the process was ended.
    """
    row = {
        f"{what}_{which}": its[what]
        for which, its in zip(("short", "long"), found, strict=False)
        for what in its
    }
    if len(found) < 2:
        return {**row, "time": nan, "memory": nan, "verdict": "not linear: ended at the limit"}
    short, long = found
    spent = log10(long["seconds"] / short["seconds"])
    ratios = [(long["resident"] + CHANCE) / (short["resident"] + CHANCE)]
    if short["counted"] > 0:
        ratios.append(long["counted"] / short["counted"])
    kept = log10(max(ratios))
    most = CASES[case].most_memory
    if name in METHODS and not cep.AGGREGATORS[name].expires:
        most = LINEAR  # its window has all events
    wrong = ["time is not linear"] * (spent > LINEAR)
    wrong += ["memory is not bounded"] * (kept > most)
    return {**row, "time": spent, "memory": kept, "verdict": ", ".join(wrong) or "ok"}


def summary(rows: pd.DataFrame) -> str:
    """A line an engine or method, and case.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure` gives them.
    """
    lines = []
    for case, its in rows.groupby("case", sort=False):
        times = 10 if CASES[case].grows == "stream" else 1
        lines.append(
            f"{case}: ten times as much\n"
            f"  {'':<22}{'us/event':>10}{'10x':>10}{'matches':>9}{'10x':>9}{'us/match 10x':>14}"
            f"{'process':>10}{'10x':>10}{'counted':>10}{'10x':>10}{'time^':>8}{'memory^':>9}"
        )
        for row in its.to_dict("records"):
            took, matches, process, counted = (
                [row.get(f"{what}_{which}", nan) for which in ("short", "long")]
                for what in ("seconds", "matches", "resident", "counted")
            )
            each = [1e6 * its / row["events"] for its in took]
            lines.append(
                f"  {row['name']:<22}{each[0]:>10.2f}{each[1] / times:>10.2f}"
                f"{matches[0]:>9,.0f}{matches[1]:>9,.0f}"
                f"{1e6 * took[1] / (matches[1] or nan):>14,.1f}"
                + "".join(f"{its / 1e6:>7.2f} MB" for its in (*process, *counted))
                + f"{row['time']:>8.2f}{row['memory']:>9.2f}  {row['verdict']}"
            )
    return "\n".join(lines).replace("nan", "  –")


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = parser_of("What grows by ten times as much.", events=10_000, repetitions=3)
    every = (*ENGINES, *METHODS)
    parser.add_argument("--engines", nargs="+", choices=every, default=list(every))
    parser.add_argument("--cases", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument("--limit", type=float, default=120, help="seconds of one process")
    parser.add_argument(
        "--one",
        nargs=5,
        metavar=("NAME", "CASE", "EVENTS", "REPETITIONS", "SEED"),
        help="one here, which prints two lines of JSON",
    )
    given = parser.parse_args(arguments)
    if given.one:
        name, case, *numbers = given.one
        for found in both(name, CASES[case], *map(int, numbers)):
            print(json.dumps(found), flush=True)
        return
    print(
        f"growth from {given.events:,} events and a window of {WINDOW}, seed {given.seed}, "
        f"{given.repetitions} repetitions, cepbench {cep.__version__}"
    )
    parts = []
    for case in given.cases:  # each is shown when it is known: all take minutes
        parts.append(
            measure(given.events, given.repetitions, given.seed, given.engines, case, given.limit)
        )
        print(summary(parts[-1]), flush=True)
    write(pd.concat(parts), given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
