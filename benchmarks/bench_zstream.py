"""ZStream against the tree evaluator: ``python benchmarks/bench_zstream.py [--out rows.parquet]``.

A query with a group, one with a disjunction, and Queries 4 to 7 of [mei2009]_, section 6, over streams like the paper's: one tick a unit, names by
relative rates, prices shifted so that conditions have exactly the selectivity wanted. Every cell is
a query, a setting and a plan; the two evaluators run it in turn, counting and materializing, so that
ratios are of one run.
"""

from __future__ import annotations

import itertools
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from command_line import parser_of, write

import cepbench as cep

NAMES = ("IBM", "Sun", "Oracle", "Google")
EVALUATORS = ("tree", "zstream")


@dataclass(frozen=True)
class Query:
    """A query of the paper, and the plans that run it.

    Attributes
    ----------
    text : str
    plans : mapping of str to TreePlan or UnionPlan
    """

    text: str
    plans: Mapping[str, cep.TreePlan | cep.UnionPlan]


@dataclass(frozen=True)
class Cell:
    """A query on a stream.

    Attributes
    ----------
    query : str
        A key of :data:`QUERIES`.
    setting : str
    rates : tuple of float
        Relative, of :data:`NAMES`.
    selectivities : mapping of str to float
        Name → the probability that the price of the query's other name is greater than its own.
    """

    query: str
    setting: str
    rates: tuple[float, ...]
    selectivities: Mapping[str, float]


_LEFT, _RIGHT = cep.TreePlan((("i", "s"), "o")), cep.TreePlan(("i", ("s", "o")))
_THREE = {"left": _LEFT, "right": _RIGHT}

QUERIES = {
    # The closure of the paper's Query 3, maximal and below another join.
    "3": Query(
        "SEQ(IBM i, GROUP(Google g, +), Sun s, Oracle o) WHERE sum(g.price) > 5 WITHIN 40 units",
        {
            "KSEQ": cep.TreePlan((("i", "s"), "o"), placements={"g": ("i", "s")}),
            "root": cep.TreePlan((("i", "s"), "o"), placements={"g": ("i", "s", "o")}),
        },
    ),
    # A disjunction, section 4.4.4. The plans of the union differ in their sides, so that none is shared.
    "OR": Query(
        "SEQ(OR(IBM i, Sun s), Oracle o, Google g, Oracle p) "
        "WHERE o.price > g.price AND p.price > g.price WITHIN 40 units",
        {
            "Either": cep.TreePlan((cep.Either("i", "s"), (("o", "g"), "p"))),
            "union": cep.UnionPlan(
                [cep.TreePlan(("i", (("o", "g"), "p"))), cep.TreePlan(((("o", "g"), "p"), "s"))]
            ),
        },
    ),
    "4": Query("SEQ(IBM i, Sun s, Oracle o) WHERE i.price > s.price WITHIN 200 units", _THREE),
    "5": Query("SEQ(IBM i, Sun s, Oracle o) WITHIN 200 units", _THREE),
    "6": Query(
        "SEQ(IBM i, Sun s, Oracle o, Google g) WHERE o.price > s.price AND o.price > g.price "
        "WITHIN 100 units",
        {
            "left": cep.TreePlan(((("i", "s"), "o"), "g")),
            "right": cep.TreePlan(("i", ("s", ("o", "g")))),
            "bushy": cep.TreePlan((("i", "s"), ("o", "g"))),
            "inner": cep.TreePlan(("i", (("s", "o"), "g"))),
        },
    ),
    "7": Query(
        "SEQ(IBM i, NOT(Sun s), Oracle o) WITHIN 200 units",
        {
            "NSEQ": cep.TreePlan(("i", "o")),
            "NEG": cep.TreePlan(("i", "o"), placements={"s": ("i", "o")}),
        },
    ),
}


def cells() -> Iterator[Cell]:
    """What the paper varies in its Figures 8, 10, 12, 15 and 16; and KSEQ and DISJ, which it does not."""
    yield Cell("3", "default", (1, 1, 1, 1), {})
    yield Cell("OR", "default", (1, 1, 1, 1), {})
    yield Cell("OR", "1/8", (1, 1, 1, 1), {"Google": 1 / 8})
    for parts in (1, 2, 4, 8, 16, 32):
        yield Cell("4", f"1/{parts}", (1, 1, 1, 0), {"Sun": 1 / parts})
    for rates in ((50, 1, 1), (10, 1, 1), (1, 1, 1), (1, 10, 10), (1, 50, 50)):
        yield Cell("5", ":".join(map(str, rates)), (*rates, 0), {})
    same = (1, 1, 1, 1)
    yield Cell("6", "1:100:100:100", (1, 100, 100, 100), {"Sun": 1, "Google": 1})
    yield Cell("6", "default", same, {"Sun": 1, "Google": 1})
    yield Cell("6", "sel1 = 1/50", same, {"Sun": 1 / 50, "Google": 1})
    yield Cell("6", "sel2 = 1/50", same, {"Sun": 1, "Google": 1 / 50})
    for times in (1, 10, 50):
        for number, name in enumerate(NAMES[:3]):
            rates = [1, 1, 1, 0]
            rates[number] = times
            if times > 1 or number == 0:
                yield Cell("7", f"{name} x{times}", tuple(rates), {})


def stock(cell: Cell, events: int, seed: int) -> cep.EventStream:
    """The stream of a cell."""
    rng = np.random.default_rng(seed)
    rates = np.array(cell.rates) / sum(cell.rates)
    kinds = rng.choice(len(NAMES), events, p=rates)
    shifts = np.array([_shift(cell.selectivities.get(name, 0.5)) for name in NAMES])
    frame = pd.DataFrame(
        {
            "name": pd.Categorical.from_codes(kinds, NAMES),
            "ts": np.arange(events),
            "price": rng.random(events) + shifts[kinds],
        }
    )
    return cep.EventStream.from_pandas(frame, type="name", time="ts")


def _shift(selectivity: float) -> float:
    """The d for which u > v + d with this probability, for u and v uniform in [0, 1]."""
    if selectivity <= 0.5:
        return 1 - math.sqrt(2 * selectivity)
    return math.sqrt(2 * (1 - selectivity)) - 1


def measure(
    events: int, repetitions: int, seed: int, queries: Sequence[str], outputs: Sequence[str]
) -> pd.DataFrame:
    """One row a cell, plan, output, evaluator and repetition.

    Returns
    -------
    DataFrame
        ``query``, ``setting``, ``plan``, ``output``, ``repetition``, ``evaluator``, ``seconds``,
        ``matches``, ``partial_matches``, ``peak_bytes``.

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
        query = QUERIES[cell.query]
        pattern = cep.parse(f"PATTERN {query.text}")
        for plan_name, plan in query.plans.items():
            for output in outputs:
                for repetition in range(-1, repetitions):
                    matches = set()
                    # In turn the first one: memory that the second takes is new to the process, which
                    # takes longer than the evaluation where matches fill gigabytes.
                    for evaluator in EVALUATORS[:: 1 - 2 * (repetition % 2)]:
                        before = time.perf_counter()
                        result = cep.evaluate(
                            pattern, stream, plan, evaluator=evaluator, output=output
                        )
                        seconds = time.perf_counter() - before
                        metrics = result.metrics
                        matches.add(metrics.matches)
                        if repetition >= 0:  # the first one loads the kernels
                            rows.append(
                                {
                                    "query": cell.query,
                                    "setting": cell.setting,
                                    "plan": plan_name,
                                    "output": output,
                                    "repetition": repetition,
                                    "evaluator": evaluator,
                                    "seconds": seconds,
                                    "matches": metrics.matches,
                                    "partial_matches": metrics.partial_matches_created,
                                    "peak_bytes": metrics.peak_bytes,
                                }
                            )
                    assert len(matches) == 1, (cell, plan_name, matches)
    return pd.DataFrame(rows)


def summary(rows: pd.DataFrame) -> str:
    """A line a cell, plan and output, and the geometric mean of each query.

    Parameters
    ----------
    rows : DataFrame
        As :func:`measure` gives them.
    """
    lines = []
    for (output, query), its in rows.groupby(["output", "query"], sort=False):
        ratios = []
        for (setting, plan), cell in its.groupby(["setting", "plan"], sort=False):
            times = cell.pivot(index="repetition", columns="evaluator", values="seconds")
            # Of the logarithm: whichever runs second may be slower by the same factor.
            ratios.append(np.exp(np.log(times["tree"] / times["zstream"]).median()))
            tree, zstream = 1e3 * times.median()[list(EVALUATORS)]
            lines.append(
                f"  Query {query} {output:<8}{setting:<15}{plan:<6}{tree:>9.1f} ms"
                f"{zstream:>9.1f} ms{ratios[-1]:>7.1f}x {cell['matches'].iloc[0]:>14,} matches"
            )
        mean, least = np.exp(np.mean(np.log(ratios))), min(ratios)
        lines.append(f"Query {query}, {output}: {mean:.1f}x on average, {least:.2f}x at least")
    return "\n".join(lines)


def trees(names: Sequence[str]) -> list[Any]:
    """All trees whose leaves are these, left to right."""
    if len(names) == 1:
        return [names[0]]
    cuts = (itertools.product(trees(names[:at]), trees(names[at:])) for at in range(1, len(names)))
    return [tree for pairs in cuts for tree in pairs]


def orders(events: int, repetitions: int, seed: int, queries: Sequence[str], output: str) -> str:
    """A line a cost: how well it orders the plans of a cell by their times on zstream.

    Pairs of plans whose times are within a tenth of each other do not count, nor do those that cost the
    same. Beside them, the time of the plan of least cost relative to the fastest.
    """
    names = [name for name in cep.COST_MODELS if name.startswith("zstream")]
    right, pairs = dict.fromkeys(names, 0), dict.fromkeys(names, 0)
    losses: dict[str, list[float]] = {name: [] for name in names}
    for cell in cells():
        pattern = cep.parse(f"PATTERN {QUERIES[cell.query].text}")
        # Trees of two variables are alike, and a disjunction is in no tree of joins alone.
        if cell.query not in {*queries} - {"OR"} or len(pattern.planned_names) < 3:
            continue
        stream = stock(cell, events, seed)
        statistics = cep.measure_statistics(pattern, stream)
        plans = [cep.TreePlan(tree) for tree in trees(pattern.planned_names)]
        seconds = np.full(len(plans), np.inf)
        for _ in range(repetitions + 1):  # interleaved; the first one loads the kernels
            for at, plan in enumerate(plans):
                before = time.perf_counter()
                cep.evaluate(pattern, stream, plan, evaluator="zstream", output=output)
                seconds[at] = min(seconds[at], time.perf_counter() - before)
        for name in names:
            costs = [
                cep.plan_cost(pattern, plan, statistics, cost=name)["cost"].sum() for plan in plans
            ]
            for x, y in itertools.combinations(range(len(plans)), 2):
                differs = abs(math.log(seconds[x] / seconds[y])) > 0.1 and costs[x] != costs[y]
                pairs[name] += differs
                right[name] += differs and (seconds[x] < seconds[y]) == (costs[x] < costs[y])
            losses[name].append(seconds[int(np.argmin(costs))] / seconds.min())
    return "\n".join(
        f"{name}, {output}: {right[name]} of {pairs[name]} pairs of plans in order; its plan takes "
        f"{np.mean(losses[name]):.2f}x as long as the fastest on average, {max(losses[name]):.2f}x at most"
        for name in names
    )


def memory(events: int, seed: int) -> str:
    """A line a plan of Query 4: the peak bytes on a stream, and on one ten times as long."""
    query = QUERIES["4"]
    cell = next(cell for cell in cells() if cell.query == "4")
    streams = [stock(cell, events * times, seed) for times in (1, 10)]
    lines = []
    for name, plan in query.plans.items():
        peaks = [
            cep.evaluate(
                f"PATTERN {query.text}", stream, plan, evaluator="zstream", output="count"
            ).metrics.peak_bytes
            for stream in streams
        ]
        lines.append(
            f"Query 4, {name}: {peaks[0]:,} bytes at most, {peaks[1]:,} on ten times the stream"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    # Even, so that each evaluator is as often the first one.
    parser = parser_of(
        "ZStream's engine against the tree evaluator.", events=100_000, repetitions=6
    )
    parser.add_argument("--queries", nargs="+", default=list(QUERIES), choices=list(QUERIES))
    parser.add_argument("--outputs", nargs="+", default=["count"], choices=["count", "arrow"])
    parser.add_argument("--costs", action="store_true", help="only compare costs with times")
    given = parser.parse_args(arguments)
    if given.costs:
        for output in given.outputs:
            print(orders(given.events, given.repetitions, given.seed, given.queries, output))
        return
    rows = measure(given.events, given.repetitions, given.seed, given.queries, given.outputs)
    print(f"zstream, {given.events:,} events, {given.repetitions} repetitions")
    print(summary(rows))
    print(memory(given.events, given.seed))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
