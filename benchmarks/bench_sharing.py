"""Plans of workloads: ``python benchmarks/bench_sharing.py [--out rows.parquet]``.

Random workloads over trades of 40 tickers, whose queries begin with the same items, end with the same,
have them in the middle, or have nothing in common, with ten to three hundred active first events. Each is
run by the plans of all planners that take no list of plans, and by random cuts around the common part; all
take turns.

The constants of :mod:`cepbench.planning.costs.sharing` are the least squares of relative errors of these times,
in units of an update; what a call or an event costs whatever the plan is fitted beside them. The summary
gives them, and how much slower the choice of each planner is than the fastest plan.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
from command_line import parser_of, write
from scipy.optimize import lsq_linear

import cepbench as cep
from cepbench.planning.costs.sharing import SharingProblem
from cepbench.streams.ticker_trades import TICKERS, TickerTrades

TYPES = 40
ACTIVE = (10, 30, 100, 300)
#: Seconds of an addition of one number to another in a column, at least.
NUMBER = 0.25e-9

#: Of plans that A-Seq counts.
TERMS = ("updates", "followed", "products", "sums", "events", "alone", "connections")

PLANNERS = ("NONE", "PRETREE", "CHOP-CONNECT", "SHARON")


def workloads(number: int, rng: np.random.Generator) -> Iterator[cep.Workload]:
    """Queries of up to eight items, with a part in common at some place, or none."""
    for k in range(number):
        place = ("prefix", "tail", "middle", "nothing")[k % 4]
        queries, length = int(rng.integers(2, 7)), int(rng.integers(4, 9))
        size = 0 if place == "nothing" else int(rng.integers(2, length - 1))
        tickers = rng.permutation(TICKERS[:TYPES]).tolist()
        common, others = tickers[:size], tickers[size:]
        texts = {}
        for query in range(queries):
            own = rng.choice(others, length - size, replace=False).tolist()
            at = {"prefix": 0, "tail": len(own)}.get(place, len(own) // 2)
            items = ", ".join(f"{t} x{k}" for k, t in enumerate(own[:at] + common + own[at:]))
            texts[f"Q{query}"] = f"PATTERN SEQ({items}) AGG COUNT WITHIN < 1000 milliseconds"
        yield cep.Workload(texts)


def plans_of(
    workload: cep.Workload, stream: cep.EventStream, rng: np.random.Generator
) -> Iterator[tuple[str, cep.WorkloadPlan]]:
    """Those of the planners, and three with random cuts."""
    statistics = cep.measure_statistics(workload, stream)
    for planner in PLANNERS:
        yield planner, cep.plan_workload(workload, statistics, planner, method="a-seq")
    length = min(len(its.positive) for its in workload.patterns.values())
    for k in range(3):
        cuts = dict.fromkeys(workload.patterns, (int(rng.integers(1, length)),))
        yield f"cuts {k}", cep.WorkloadPlan(workload, cuts, bool(k % 2))


def measure(events: int, repetitions: int, seed: int, number: int) -> pd.DataFrame:
    """One row a workload and plan.

    Returns
    -------
    DataFrame
        ``workload``, ``active``, ``plan``, ``seconds`` (of the processor, the least of all repetitions), the terms of
        :class:`cepbench.planning.costs.sharing.SharingCost` over the stream, and ``runs alone``, ``runs``,
        ``scans alone``, ``scans``: calls, and events that they read.
    """
    rng = np.random.default_rng(seed)
    streams = {its: _stream_of(events, seed, its) for its in ACTIVE}
    rows = []
    for k, workload in enumerate(workloads(number, rng)):
        active = ACTIVE[k // 4 % len(ACTIVE)]
        stream = streams[active]
        listed = [*plans_of(workload, stream, rng)]
        problem = SharingProblem(workload, cep.measure_statistics(workload, stream))
        length = np.ptp(stream.timestamps) / 1e9
        least = np.full(len(listed), np.inf)
        for repetition in range(-1, repetitions):
            for place, (_, plan) in enumerate(listed):
                before = time.process_time()
                cep.aggregate(workload, stream, "a-seq", sharing=plan)
                if repetition >= 0:  # the first one loads the kernels
                    least[place] = min(least[place], time.process_time() - before)
        for (name, plan), seconds in zip(listed, least, strict=True):
            cost = problem.cost(
                {q: tuple(c) for q, c in plan.cuts.items()}, shares_prefixes=plan.shares_prefixes
            )
            terms = {term: its * length for term, its in asdict(cost).items() if term in TERMS}
            alone = sum(not cuts for cuts in plan.cuts.values()) if not cost.events else 0
            calls = {"runs alone": alone, "runs": cost.events > 0}
            scans = {f"scans{its[4:]}": events * calls[its] for its in calls}
            rows.append(
                {"workload": k, "active": active, "plan": name, "seconds": seconds}
                | terms | calls | scans
            )  # fmt: skip
    return pd.DataFrame(rows)


def _stream_of(events: int, seed: int, per_window: float) -> cep.EventStream:
    table = TickerTrades(events, seed, TYPES, per_window).table(0, events).to_pandas()
    return cep.EventStream.from_pandas(table, type="symbol", time="ts")


def fitted(rows: pd.DataFrame) -> pd.Series:
    """Seconds of each term, of numbers at least ``NUMBER``."""
    terms = rows.drop(columns=["workload", "active", "plan", "seconds"]).astype(float)
    least = np.where(terms.columns.isin(["updates", "products", "sums"]), NUMBER, 0.0)
    relative = terms.to_numpy() / rows["seconds"].to_numpy()[:, None]
    found = lsq_linear(relative, np.ones(len(rows)), (least, np.inf)).x
    return pd.Series(found, terms.columns)


def summary(rows: pd.DataFrame) -> str:
    """The constants, and the slowdowns of the planners' choices."""
    times = fitted(rows)
    lines = [f"  an update takes {1e9 * times['updates']:.3f} ns; in units of it:"]
    lines += [f"    {term:<12}{its / times['updates']:>10.1f}" for term, its in times.items()]
    best = rows.groupby("workload")["seconds"].min()
    for planner in PLANNERS:
        own = rows[rows["plan"] == planner].set_index("workload")["seconds"] / best
        lines.append(
            f"  {planner}: at most {own.max():.2f} times the time of the fastest plan, "
            f"{(own > 1.15).sum()} of {len(own)} more than 1.15 times"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("Plans of workloads.", events=60_000, repetitions=3)
    parser.add_argument("--workloads", type=int, default=48)
    given = parser.parse_args(arguments)
    rows = measure(given.events, given.repetitions, given.seed, given.workloads)
    print(f"{given.workloads} workloads, {given.events:,} events, {given.repetitions} repetitions")
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
