"""Counting without runs: ``python benchmarks/bench_sequence_counts.py [--out rows.parquet]``.

SEQ(s3, s6, s9) on a stream of ten symbols, counted by ``sase`` and by ``tree``, with a condition between
its first two items; and by ``sase`` without any, in windows with ten to ten thousand active events
of the first item. Then AGG COUNT, with a SUM and without, with conditions between neighbours and a NOT, by ranks and by
``greta``, in two windows of which one is ten times as long, on a tenth of the events. All take turns, so that ratios are
of one run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product

import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.streams.ten_symbols import ten_symbols

PATTERN = "PATTERN SEQ(s3 a, s6 b, s9 c)"
WITH_CONDITION = f"{PATTERN} WHERE a.difference < b.difference WITHIN 5 minutes"
ACTIVE = (10, 100, 1_000, 10_000)
WITH_NOT = (
    "PATTERN SEQ(s3 a, NOT(s5 n), s6 b, s9 c) WHERE a.difference < b.difference"
    " AND b.difference < c.difference AND n.difference > 2 AGG {} WITHIN {} milliseconds"
)
#: What is asked for with NOT.
ASKED = {"NOT": "COUNT", "NOT and SUM": "COUNT, SUM(b.difference)"}
#: Events of the first item in the windows of those with NOT.
ACTIVE_WITH_NOT = (20, 200)


def measure(events: int, repetitions: int, seed: int) -> pd.DataFrame:
    """One row a cell and repetition.

    Returns
    -------
    DataFrame
        ``cell``, ``repetition``, ``seconds``, ``matches``.

    Raises
    ------
    AssertionError
        If the engines disagree.
    """
    table = ten_symbols(events, seed)
    apart = int(table["ts"].iloc[-1] / (table["symbol"] == "s3").sum())
    typed = table.assign(ts=pd.to_datetime(table["ts"], unit="ms"))
    stream = cep.EventStream.from_pandas(typed, type="symbol", time="ts")
    pattern = cep.parse(WITH_CONDITION)
    plan = cep.plan(pattern, cep.measure_statistics(pattern, stream, seed=seed), "DP-B")

    def counted(pattern: cep.Pattern, plan: cep.TreePlan | None = None) -> int:
        evaluator = "sase" if plan is None else "tree"
        result = cep.evaluate(pattern, stream, plan, evaluator=evaluator, output="count")
        return result.metrics.matches

    def aggregated(text: str, method: str) -> int:
        return cep.aggregate(text, stream[: events // 10], method).rows[-1].values[0]

    cells: dict[str, Callable[[], int]] = {
        "tree": partial(counted, pattern, plan),
        "sase": partial(counted, pattern),
    }
    for active in ACTIVE:
        text = f"{PATTERN} WITHIN {active * apart} milliseconds"
        cells[f"{active:,} active"] = partial(counted, cep.parse(text))
    for name, active, method in product(ASKED, ACTIVE_WITH_NOT, ("order-statistics", "greta")):
        text = WITH_NOT.format(ASKED[name], active * apart)
        cells[f"{name}, {active} active, {method}"] = partial(aggregated, text, method)
    rows = []
    for repetition in range(-1, repetitions):
        for cell, count in cells.items():
            before = time.perf_counter()
            found = count()
            seconds = time.perf_counter() - before
            if repetition >= 0:  # the first one loads the kernels
                rows.append((cell, repetition, seconds, found))
    table = pd.DataFrame(rows, columns=["cell", "repetition", "seconds", "matches"])
    matches = table.set_index("cell")["matches"]
    assert matches[["tree", "sase"]].nunique() == 1
    for active in ACTIVE_WITH_NOT:
        assert matches[[its for its in cells if f", {active} active" in its]].nunique() == 1
    return table


def summary(rows: pd.DataFrame) -> str:
    """A line a cell: the least time, and ratios of least times.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure` gives them.
    """
    least = rows.groupby("cell", sort=False)["seconds"].min()
    matches = rows.groupby("cell", sort=False)["matches"].first()
    lines = [
        f"  {cell:<44}{1e3 * least[cell]:>9.1f} ms{matches[cell]:>25,} matches"
        for cell in least.index
    ]
    first, *others = (least[f"{active:,} active"] for active in ACTIVE)
    lines += [
        f"  sase counts {least['tree'] / least['sase']:.2f} times as fast as tree",
        f"  the slowest window takes {max(others) / first:.2f} times the first one's time",
    ]
    for name, active in product(ASKED, ACTIVE_WITH_NOT):
        ranked, greta = (
            least[f"{name}, {active} active, {method}"] for method in ("order-statistics", "greta")
        )
        lines.append(
            f"  with {name}, {active} active, ranks are {greta / ranked:.1f} times as fast as greta"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("Counting sequences without runs.", events=1_000_000, repetitions=7)
    given = parser.parse_args(arguments)
    rows = measure(given.events, given.repetitions, given.seed)
    print(f"SEQ(s3, s6, s9), {given.events:,} events, {given.repetitions} repetitions")
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
