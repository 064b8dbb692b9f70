"""What got slower: ``python benchmarks/bench_history.py [--compare] [--out rows.parquet]``.

Each engine and method, pushes, pairs of neighbours, a plan, a parsed pattern and a stream from a table, in
seconds of CPU as a ratio to a fixed loop that runs right before it: the speed of the machine, and what else it
does, cancel to a large part. Medians and quartiles are added to ``benchmarks/history.csv`` with commit and
processor; ``--compare`` adds nothing. What is slower by a tenth than at the last commit on a like processor, with
quartiles apart, is printed first.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from command_line import parser_of, write
from every_engine import ENGINES, plan_for

import cepbench as cep

HISTORY = Path(__file__).with_name("history.csv")

#: How much slower is said.
SLOWER = 1.10

_SEQUENCE = "PATTERN SEQ(A a, B b, C c) WHERE a.x + 0.9 < b.x AND b.x < c.x WITHIN 200 units"
_NEIGHBOURS = (
    "PATTERN SEQ(ANY a, ANY b) WHERE a.x < b.x STRATEGY partition_contiguity(k) WITHIN 200 units"
)
_COUNTED = "PATTERN SEQ(A a, B b, C c) WHERE a.x < 0.1 AND b.x < 0.1 AND c.x < 0.1 AGG COUNT WITHIN 200 units"
_CHAIN = "PATTERN SEQ({}) WHERE {} WITHIN 200 units"


def table_of(events: int, seed: int) -> pd.DataFrame:
    """Events of four types, one a unit of time."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "type": pd.Categorical.from_codes(rng.integers(0, 4, events), list("ABCD")),
            "ts": np.arange(events),
            "x": rng.random(events),
            "k": rng.integers(0, 50, events),
        }
    )


def cells(events: int, seed: int) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is measured: its name, and a run of some 10 ms."""
    table = table_of(events, seed)
    stream = cep.EventStream.from_pandas(table, type="type", time="ts")
    sequence, neighbours = cep.parse(_SEQUENCE), cep.parse(_NEIGHBOURS)
    for name in ENGINES:
        yield (
            f"{name}, count",
            partial(
                cep.evaluate,
                sequence,
                stream,
                plan_for(name, "abc"),
                evaluator=name,
                output="count",
            ),
        )
    yield "chosen engine, matches", partial(cep.evaluate, sequence, stream, output="arrow")
    yield "chosen engine, neighbours", partial(cep.evaluate, neighbours, stream, output="arrow")
    for size, part in ((1, events // 100), (256, events)):
        batches = list(stream[:part].batches(size))
        for name in ("tree", "sase"):

            def pushed(name: str = name, batches: list[cep.EventStream] = batches) -> None:
                live = cep.Detector(sequence, plan_for(name, "abc"), evaluator=name, output="count")
                for batch in batches:
                    live.push(batch)

            yield f"{name}, pushes of {size}", pushed
    for name, entry in cep.AGGREGATORS.items():
        if entry.is_builtin and entry.expires:
            yield f"{name}, AGG COUNT", partial(cep.aggregate, _COUNTED, stream, name)
    names = [f"v{number}" for number in range(9)]
    text = _CHAIN.format(
        ", ".join(f"{'ABCD'[number % 4]} {name}" for number, name in enumerate(names)),
        " AND ".join(f"{a}.x < {b}.x" for a, b in pairwise(names)),
    )
    chain = cep.parse(text)
    statistics = cep.measure_statistics(chain, stream, seed=seed)
    yield "parse nine variables", partial(cep.parse, text)
    yield "DP-B, nine variables", partial(cep.plan, chain, statistics, "DP-B")
    yield "stream from a table", partial(cep.EventStream.from_pandas, table, type="type", time="ts")


def fixed_loop() -> int:
    """Work that never changes: sorted and searched numbers, and a loop of the interpreter."""
    values = np.random.default_rng(0).random(100_000)
    total = int(np.searchsorted(np.sort(values), values[::4]).sum())
    for number in range(50_000):
        total += number & 3
    return total


def measure(events: int, repetitions: int, seed: int) -> pd.DataFrame:
    """One row a cell and repetition: ``cell``, ``repetition``, ``seconds``, ``ratio`` to the fixed loop."""
    runs = list(cells(events, seed))
    for _, run in runs:
        run()  # loads the kernels
    rows = []
    for repetition in range(repetitions):
        for name, run in runs:
            fixed, seconds = (_seconds(its) for its in (fixed_loop, run))
            rows.append(
                {
                    "cell": name,
                    "repetition": repetition,
                    "events": events,
                    "seed": seed,
                    "seconds": seconds,
                    "ratio": seconds / fixed,
                }
            )
    return pd.DataFrame(rows)


def _seconds(run: Callable[[], Any]) -> float:
    before = time.process_time()
    run()
    return time.process_time() - before


def entry_of(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows as they are kept: quartiles and median of the ratios of each cell."""
    ratios = rows.groupby("cell", sort=False)["ratio"].quantile([0.25, 0.5, 0.75]).unstack()
    ratios.columns = pd.Index(["low", "median", "high"])
    kept = ratios.round(4).reset_index()
    kept.insert(0, "processor", processor())
    kept.insert(0, "date", f"{datetime.now(UTC):%Y-%m-%d}")
    kept.insert(0, "commit", commit())
    return kept


def compared(now: pd.DataFrame, history: pd.DataFrame) -> str:
    """What got slower than at the last commit of the history, and the ratio to it of each cell."""
    like = history[history["processor"].isin(now["processor"])]
    if like.empty:
        return "no earlier figures of this processor\n" + now.to_string(index=False)
    then, date = like.iloc[-1][["commit", "date"]]
    last = like[like["commit"] == then].drop_duplicates("cell", keep="last").set_index("cell")
    its = now.set_index("cell").join(last[["low", "median", "high"]], rsuffix=" before")
    its["times"] = (its["median"] / its["median before"]).round(2)
    slower = its[(its["times"] > SLOWER) & (its["low"] > its["high before"])]
    lines = [f"{name} takes {row['times']} times as long" for name, row in slower.iterrows()]
    first = "\n".join(lines) or f"nothing is slower by {SLOWER - 1:.0%}"
    shown = its[["low", "median", "high", "median before", "times"]].to_string()
    return f"{first}, against {then} of {date}\n{shown}"


def commit() -> str:
    """That of the checkout, with a mark if it was changed."""
    said = subprocess.run(
        ["git", "-C", HISTORY.parent, "describe", "--always", "--dirty"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return said.stdout.strip() or "unknown"


def processor() -> str:
    """Its model, where Linux tells it."""
    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    models = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return next(models, platform.machine())


def main(arguments: Sequence[str]) -> None:
    """Measure, compare, and add to the history."""
    parser = parser_of("What got slower.", events=20_000, repetitions=9)
    parser.add_argument("--compare", action="store_true", help="add nothing to the history")
    parser.add_argument("--history", type=Path, default=HISTORY)
    given = parser.parse_args(arguments)
    rows = measure(given.events, given.repetitions, given.seed)
    now = entry_of(rows)
    history = pd.read_csv(given.history) if given.history.exists() else now.head(0)
    print(compared(now, history))
    if not given.compare:
        pd.concat([history, now]).to_csv(given.history, index=False)
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
