"""The stack NFA against hierarchical stacks and engines with plans: ``python benchmarks/bench_stack_nfa.py [--out rows.parquet]``.

The cells of ``bench_zstream.py``, Queries 4 to 7 of [mei2009]_, section 6. Engines with plans run the
right-deep one, whose order of evaluation is that of the backward search; all run in turn, so that
ratios are of one run.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np
import pandas as pd
from bench_zstream import QUERIES, cells, stock
from command_line import parser_of, write

import cepbench as cep

OTHERS = ("hierarchical-stacks", "tree", "lazy-nfa-instances", "zstream")


def measure(events: int, repetitions: int, seed: int, queries: Sequence[str]) -> pd.DataFrame:
    """One row a cell, evaluator and repetition.

    Returns
    -------
    DataFrame
        ``query``, ``setting``, ``repetition``, ``evaluator``, ``seconds``, ``matches``.

    Raises
    ------
    AssertionError
        If the evaluators disagree.
    """
    rows = []
    for cell in cells():
        if cell.query not in queries:
            continue
        stream = stock(cell, events, seed)
        pattern = cep.parse(f"PATTERN {QUERIES[cell.query].text}")
        right_deep = cep.OrderPlan(pattern.positive_names[::-1])
        for repetition in range(-1, repetitions):
            matches = set()
            for evaluator in ("stack-nfa", *OTHERS):
                plan = None if cep.EVALUATORS[evaluator].without_plan else right_deep
                before = time.perf_counter()
                result = cep.evaluate(pattern, stream, plan, evaluator=evaluator, output="count")
                seconds = time.perf_counter() - before
                matches.add(result.metrics.matches)
                if repetition >= 0:  # the first one loads the kernels
                    rows.append(
                        {
                            "query": cell.query,
                            "setting": cell.setting,
                            "repetition": repetition,
                            "evaluator": evaluator,
                            "seconds": seconds,
                            "matches": result.metrics.matches,
                        }
                    )
            assert len(matches) == 1, (cell, matches)
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> str:
    """A line a cell: how many times as long the other engines take; and the geometric means.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure` gives them.
    """
    lines = []
    for query, its in rows.groupby("query", sort=False):
        ratios = []
        for setting, cell in its.groupby("setting", sort=False):
            times = cell.pivot(index="repetition", columns="evaluator", values="seconds")
            ratios.append([(times[name] / times["stack-nfa"]).median() for name in OTHERS])
            lines.append(
                f"  Query {query} {setting:<15}{1e3 * times['stack-nfa'].median():>9.1f} ms"
                f"{_listed(ratios[-1])} {cell['matches'].iloc[0]:>14,} matches"
            )
        lines.append(f"Query {query}: on average{_listed(np.exp(np.log(ratios).mean(axis=0)))}")
    return "\n".join(lines)


def _listed(ratios: Sequence[float]) -> str:
    return "".join(f"  {name} {ratio:.1f}x" for name, ratio in zip(OTHERS, ratios, strict=True))


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("The stack NFA against other engines.", events=100_000, repetitions=3)
    parser.add_argument("--queries", nargs="+", default=list(QUERIES), choices=list(QUERIES))
    given = parser.parse_args(arguments)
    rows = measure(given.events, given.repetitions, given.seed, given.queries)
    print(f"stack-nfa, {given.events:,} events, {given.repetitions} repetitions")
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
