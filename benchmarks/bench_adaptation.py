"""Adaptation against plans that stay: ``python benchmarks/bench_adaptation.py [--out rows.parquet]``.

First, policies against the plan that they begin with, left alone: CPU time in turns, on streams that stay, that
swing at the pace of rounds, and that drift, and on short ones; with the first plan of ``static`` given to all, and with
the time that it takes each to make its own, if it makes one. It begins with the cells below :data:`LEAST`.

Then query 6 of [mei2009]_ over the three segments of its Figure 14 in a row: IBM 100 times rarer than the
others, then all alike with a selective first condition, then with a selective second one. Each plan
that stays and the adaptive one run each segment in turn, so that ratios are of one run. A
plan that stays sees the segment as one batch, the adaptive one round by round.

Then switches on zstream between any two of the plans, making matches: with the buffers of the old plan
taken over, and rebuilt from the events of the last window. The same for the queries of [liu2011]_'s
Figure 19 and the plans of its planners, on tree.
"""

from __future__ import annotations

import gc
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.engines.adaptation.detector import BATCH_SIZE
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.experiments.studies.liu2011.drift import SEGMENTS as TRADES
from cepbench.experiments.studies.liu2011.drift import WINDOW
from cepbench.experiments.studies.liu2011.turns import PLANNERS, company_stream, study_workload
from cepbench.streams.company_trades import HIERARCHY, CompanyTrades
from cepbench.streams.stock_rates import StockRates

QUERY = (
    "PATTERN SEQ(IBM i, Sun s, Oracle o, Google g) WHERE o.price > s.price AND o.price > g.price "
    "WITHIN 100 units"
)

PLANS = {
    "left": cep.TreePlan(((("i", "s"), "o"), "g")),
    "right": cep.TreePlan(("i", ("s", ("o", "g")))),
    "bushy": cep.TreePlan((("i", "s"), ("o", "g"))),
    "inner": cep.TreePlan(("i", (("s", "o"), "g"))),
}

SEGMENTS = {
    "1:100:100:100": {
        "rates": {"IBM": 1, "Sun": 100, "Oracle": 100, "Google": 100},
        "selectivities": {"Oracle > Sun": 1, "Oracle > Google": 1},
    },
    "sel1 = 1/50": {"selectivities": {"Oracle > Sun": 1 / 50, "Oracle > Google": 1}},
    "sel2 = 1/50": {"selectivities": {"Oracle > Sun": 1, "Oracle > Google": 1 / 50}},
}

#: Rates that take turns: IBM is rare, then Google.
SWINGS = [
    {"rates": {"IBM": 1, "Sun": 10, "Oracle": 10, "Google": 10}},
    {"rates": {"IBM": 10, "Sun": 10, "Oracle": 10, "Google": 1}},
]

#: The policies, but the one that measures every round in full, and the least ratio that should be.
POLICIES, LEAST = ("amortized", "threshold", "bound", "static"), 0.95

#: Evaluator → rounds in which a short run takes some 50 ms.
SHORT_RUNS = {"tree": 2, "zstream": 8}

#: The reason of a change to the same plan.
REBUILT = "rebuilt"

#: zstream whose switches take buffers over, and rebuild them.
ADOPTING = EVALUATORS["zstream"]
REBUILDING = replace(ADOPTING, adopts=False)


def ticks(rounds: int, batch_size: int, seed: int) -> cep.EventStream:
    """The three segments, each of so many rounds."""
    events = len(SEGMENTS) * rounds * batch_size
    made = StockRates(events, seed, segments=list(SEGMENTS.values()))
    return cep.EventStream.from_arrow(made.table(0, events), type="name", time="ts")


def cells(
    rounds: int, batch_size: int, seed: int
) -> Iterator[tuple[str, str, cep.Pattern | cep.Workload, cep.EventStream, int]]:
    """Name, evaluator, pattern or workload, stream, and events of a round."""
    query = cep.parse(QUERY)
    for evaluator, short in SHORT_RUNS.items():
        whole = 3 * rounds
        for name, number, segments in (
            ("steady", whole, [{}]),
            ("short", short, [{}]),
            ("swings", whole, SWINGS * (whole // 2)),
            ("segments", whole, [*SEGMENTS.values()]),
        ):
            made = StockRates(number * batch_size, seed, segments=segments)
            table = made.table(0, made.events)
            stream = cep.EventStream.from_arrow(table, type="name", time="ts")
            yield name, evaluator, query, stream, batch_size
    workload = study_workload("both", HIERARCHY, WINDOW)
    a_round = max(1, batch_size // 4)
    for name, number, segments in (
        ("workload, steady", 2 * rounds, [{}]),
        ("workload, short", 4, [{}]),
        ("workload, drift", 3 * rounds, [*TRADES.values()]),
    ):
        stream = company_stream(number * a_round, seed, segments=segments)
        yield name, "tree", workload, stream, a_round


def measure_policies(
    rounds: int, batch_size: int, repetitions: int, seed: int, output: str
) -> pd.DataFrame:
    """CPU seconds by cell, policy and repetition: of its first plan left alone, and of it with that of ``static`` and without.

    Raises
    ------
    AssertionError
        If they find different matches.
    """
    rows = []
    for name, evaluator, queries, stream, size in cells(rounds, batch_size, seed):
        how = {"evaluator": evaluator, "output": output}
        adaptive = partial(cep.AdaptiveDetector, queries, batch_size=size, **how)
        first = {}
        for policy in POLICIES:
            detector = adaptive(policy=policy)
            detector.push(stream[:size])
            first[policy] = detector.plan
        runs = {}
        for policy in POLICIES:
            runs[policy, "given"] = partial(adaptive, policy=policy, initial=first["static"])
            runs[policy, "made"] = partial(adaptive, policy=policy)
            runs[policy, "alone"] = partial(cep.Detector, queries, first[policy], **how)
        for repetition in range(-1, repetitions):  # the first one loads the kernels
            found = set()
            for key in [*runs][:: 1 if repetition % 2 else -1]:
                batches = [*stream.batches(size)]
                gc.collect()
                began = time.process_time()
                detector = runs[key]()
                for batch in batches:
                    detector.push(batch)
                detector.flush()
                seconds = time.process_time() - began
                found.add(detector.metrics().matches)
                if repetition >= 0:
                    rows.append((name, evaluator, *key, repetition, seconds))
            assert len(found) == 1, found
    columns = ["stream", "evaluator", "policy", "first_plan", "repetition", "seconds"]
    return pd.DataFrame(rows, columns=columns)


def summary_of_policies(rows: pd.DataFrame) -> str:
    """Ratios to the plan left alone, as median, least and most, and first of all which are too low."""
    keys = ["stream", "evaluator", "repetition", "policy"]
    alone, given, made = (
        rows[rows["first_plan"] == its].set_index(keys)["seconds"]
        for its in ("alone", "given", "made")
    )
    of_static = alone.xs("static", level="policy")
    ratios = (
        pd.concat({"made": alone / made, "given": of_static / given}, names=["first_plan"])
        .groupby(["stream", "evaluator", "first_plan", "policy"], sort=False)
    )  # fmt: skip
    found = ratios.agg(["median", "min", "max"])
    low = found["median"] < LEAST
    lines = [f"{low.sum()} of {len(low)} cells below {LEAST} of the plan left alone"]
    for policy, its in low.groupby("policy", sort=False):
        named = [" ".join(key[:3]) for key in its.index[its]]
        lines.append(f"  {policy}: {', '.join(named) or 'none'}")
    lines.append(
        f"{'stream':<18}{'first plan':<11}{'alone':>9}" + "".join(f"{p:>18}" for p in POLICIES)
    )
    took = (1e3 * of_static).groupby(level=["stream", "evaluator"]).median()
    for (stream, evaluator, first_plan), its in found.groupby(level=[0, 1, 2], sort=False):
        shown = its.droplevel([0, 1, 2]).reindex([*POLICIES]).itertuples(index=False)
        lines.append(
            f"{stream + ', ' + evaluator:<26}{first_plan:<6}{took[stream, evaluator]:>6.0f} ms"
            + "".join(f"{f'{m:.2f} ({a:.2f}-{b:.2f})':>18}" for m, a, b in shown)
        )
    return "\n".join(lines)


def measure(
    evaluators: Sequence[str],
    rounds: int,
    repetitions: int,
    seed: int,
    output: str,
    **adaptive: object,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Seconds by evaluator, plan, segment and repetition, and the switches.

    Raises
    ------
    AssertionError
        If plans find different matches.
    """
    batch_size = int(str(adaptive["batch_size"]))
    stream = ticks(rounds, batch_size, seed)
    segments = dict(zip(SEGMENTS, stream.batches(rounds * batch_size), strict=True))
    rows, switches = [], []
    for evaluator in evaluators:
        for repetition in range(-1, repetitions):
            matches = dict.fromkeys(("adaptive", *PLANS), 0)
            detectors = {
                name: cep.Detector(QUERY, plan, evaluator=evaluator, output=output)
                for name, plan in PLANS.items()
            }
            detectors["adaptive"] = cep.AdaptiveDetector(
                QUERY, evaluator=evaluator, output=output, **adaptive
            )
            for segment, events in segments.items():
                for name, detector in detectors.items():
                    before = time.perf_counter()
                    detector.push(events)
                    seconds = time.perf_counter() - before
                    matches[name] = detector.metrics().matches
                    if repetition >= 0:  # the first one loads the kernels
                        rows.append((evaluator, name, segment, repetition, seconds))
            assert len(set(matches.values())) == 1, matches
            if repetition >= 0:
                # Without planning: the plan is the same.
                detectors["adaptive"].switch(detectors["adaptive"].plan, REBUILT)
                its = detectors["adaptive"].switches.assign(evaluator=evaluator)
                switches.append(its.assign(repetition=repetition))
    columns = ["evaluator", "plan", "segment", "repetition", "seconds"]
    return pd.DataFrame(rows, columns=columns), pd.concat(switches)


def measure_switches(windows: Sequence[int], repetitions: int, seed: int) -> pd.DataFrame:
    """Seconds by window, old and new plan, way of switching and repetition."""
    events = ticks(1, 8 * max(windows), seed)[-8 * max(windows) :]
    rows = []
    for window in windows:
        query = QUERY.replace("WITHIN 100", f"WITHIN {window}")
        for old, new in itertools.permutations(PLANS, 2):
            for evaluator, way in ((ADOPTING, "taken over"), (REBUILDING, REBUILT)):
                detector = cep.AdaptiveDetector(
                    query, evaluator=evaluator, policy="static", initial=PLANS[old]
                )
                detector.push(events)
                for _ in range(repetitions):
                    detector.switch(PLANS[new], "measured")
                    detector.switch(PLANS[old], "back")
                its = detector.switches
                seconds = its.loc[its["reason"] == "measured", "seconds"]
                rows += [(window, old, new, way, n, s) for n, s in enumerate(seconds)]
    return pd.DataFrame(rows, columns=["window", "old", "new", "way", "repetition", "seconds"])


def measure_workload_switches(windows: Sequence[int], repetitions: int, seed: int) -> pd.DataFrame:
    """As :func:`measure_switches`, by window in ms, of a workload's plans."""
    size = 20 * max(windows)
    table = CompanyTrades(size, seed).table(0, size)
    events = cep.EventStream.from_arrow(table, type="symbol", time="ts").with_hierarchy(HIERARCHY)
    rows = []
    for window in windows:
        workload = study_workload("both", HIERARCHY, f"{window} milliseconds")
        statistics = cep.measure_statistics(workload, events)
        plans = {name: cep.plan_workload(workload, statistics, name) for name in PLANNERS}
        first = int(np.searchsorted(events.timestamps, events.timestamps[-1] - window * 10**6))
        for old, new in itertools.permutations(plans, 2):
            detector = cep.AdaptiveDetector(
                workload, evaluator="tree", policy="static", initial=plans[old]
            )
            detector.push(events)
            for number in range(repetitions):
                detector.switch(plans[new], "measured")
                detector.switch(plans[old], "back")
                began = time.perf_counter()
                rebuilt = cep.Detector(workload, plans[new], evaluator="tree", position=first)
                rebuilt.take(events[first:])
                seconds = time.perf_counter() - began
                rows.append((window, old, new, REBUILT, number, seconds))
            its = detector.switches
            taken = its.loc[its["reason"] == "measured", "seconds"]
            rows += [(window, old, new, "taken over", n, s) for n, s in enumerate(taken)]
    return pd.DataFrame(rows, columns=["window", "old", "new", "way", "repetition", "seconds"])


def summary_of_switches(rows: pd.DataFrame) -> str:
    """How long switches take, from the table of :func:`measure_switches`."""
    best = rows.groupby(["window", "old", "new", "way"], sort=False)["seconds"].min().unstack()
    lines = []
    for window, its in best.groupby("window"):
        ratios = its[REBUILT] / its["taken over"]
        lines.append(
            f"window {window}: a switch takes {1e3 * its['taken over'].median():.2f} ms with buffers "
            f"taken over, {1e3 * its[REBUILT].median():.2f} ms rebuilt; {ratios.min():.2f}x to "
            f"{ratios.max():.2f}x as long, {ratios.median():.2f}x in the median"
        )
    return "\n".join(lines)


def summary(rows: pd.DataFrame, switches: pd.DataFrame, rounds: int) -> str:
    """What adaptation gains over the whole stream and loses within each segment.

    Parameters
    ----------
    rows, switches : DataFrame
        As :func:`measure` gives them.
    rounds : int
        Rounds in a segment.
    """
    lines = []
    for evaluator, its in rows.groupby("evaluator", sort=False):
        lines.append(f"{evaluator}: ms by segment")
        table = its.pivot_table(
            index="plan", columns="segment", values="seconds", aggfunc="median", sort=False
        )
        for plan, line in (1e3 * table).iterrows():
            shown = "".join(f"{value:>16.1f}" for value in line)
            lines.append(f"  {plan:<9}{shown}{line.sum():>16.1f}")
        whole = its.groupby(["repetition", "plan"])["seconds"].sum().unstack()
        static = whole.drop(columns="adaptive").min(axis=1)
        lines.append(
            f"  {(static / whole['adaptive']).median():.2f}x the best plan over the whole stream"
        )
        times = its.pivot(index="repetition", columns=["segment", "plan"], values="seconds")
        for segment in SEGMENTS:
            own = times[segment]
            ratio = (own.drop(columns="adaptive").min(axis=1) / own["adaptive"]).median()
            lines.append(f"  {ratio:.2f}x the best plan of {segment}")
        took = switches[switches["evaluator"] == evaluator].set_index("reason")["seconds"]
        rebuilding = took[took.index == REBUILT].median()
        took = took[took.index != REBUILT]
        a_round = whole["adaptive"].median() / (rounds * len(SEGMENTS))
        share = took.sum() / whole["adaptive"].sum()
        lines.append(
            f"  {len(took) / len(whole):g} switches, of {took.median() / a_round:.2f} rounds' time "
            f"each, {took.max() / a_round:.2f} at most, {share:.1%} of the whole"
        )
        lines.append(f"  {rebuilding / a_round:.2f} rounds' time to switch to the same plan")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = parser_of("Adaptation against plans that stay.", repetitions=3)
    parser.add_argument("--rounds", type=int, default=8, help="in a segment")
    parser.add_argument("--batch-size", type=int, default=BATCH_SIZE, help="events in a round")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cost", default="throughput")
    parser.add_argument("--policy", default="threshold")
    parser.add_argument("--output", default="count", choices=["count", "arrow"])
    parser.add_argument("--evaluators", nargs="+", default=["tree", "zstream"])
    parser.add_argument("--policies", type=int, default=5, help="repetitions of the policies")
    parser.add_argument("--windows", type=int, nargs="*", default=[100, 400], help="of switches")
    given = parser.parse_args(arguments)
    if given.policies:
        its = measure_policies(
            given.rounds, given.batch_size, given.policies, given.seed, given.output
        )
        print(summary_of_policies(its))
    rows, switches = measure(
        given.evaluators,
        given.rounds,
        given.repetitions,
        given.seed,
        given.output,
        batch_size=given.batch_size,
        cost=given.cost,
        policy=given.policy,
    )
    events = given.rounds * given.batch_size
    print(f"adaptation, 3 segments of {events:,} events, {given.repetitions} repetitions")
    print(summary(rows, switches, given.rounds))
    if given.windows:
        switched = measure_switches(given.windows, 3 * given.repetitions, given.seed)
        print(summary_of_switches(switched))
        of_plans = measure_workload_switches(given.windows, 3 * given.repetitions, given.seed)
        print(f"plans of a workload\n{summary_of_switches(of_plans)}")
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
