"""Workloads that reuse matches: ``python benchmarks/bench_workloads.py [--out rows.parquet]``.

Five questions, each with contestants that take turns:

- a hundred queries in ten families: a root of three concepts with two conditions, and nine queries with one
  item more. Solo runs on the evaluator ``tree`` along plans of DP-B, the planner NAIVE, and planners that
  share; then the same without the roots. Matches are listed, and each query's columns read.
- the workloads of E-Cube's experiments [liu2011]_ on company trades: the planners against plans drawn at
  random;
- how much is lost where a source's window has to be widened, by charging that to the edge and by STEINER,
  against all sets of virtual queries;
- the time to find the refinements of a thousand queries, and their plan; and what a workload of one query
  costs over :func:`cepbench.evaluate`;
- the bytes that a detector keeps over streams of one, three and ten times the length, and those of a listed match.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from command_line import parser_of, write

import cepbench as cep
from cepbench.planning.costs.q_error import q_error
from cepbench.planning.costs.reuse import REUSE_COSTS, ReuseProblem, Sources
from cepbench.planning.planners.sharing.chase import least_sources
from cepbench.planning.plans.reuse import Source, in_order
from cepbench.streams.company_trades import HIERARCHY, CompanyTrades

#: Types, and how many of them each concept has.
TYPES, CHILDREN = 40, 4
FAMILIES, REFINEMENTS = 10, 9
WINDOW = 200

PLANNERS = ("NAIVE", "TOP-DOWN", "BOTTOM-UP", "CHASE", "STEINER", "FORESTS")
#: Random plans, and workloads drawn with several windows.
RANDOM, DRAWN = 5, 60

#: The workloads of E-Cube's figures, as queries of the data set company-trades.
STUDY = {
    "figures 13-15": ("q1", "q2"),
    "figure 16": ("q3", "q4", "q5", "q6", "q7", "q8"),
    "figure 17": ("q1", "q9"),
    "figure 18": ("q11", "q12"),
    "figure 19": ("q1", "q2", "q9", "q13", "q14", "q15"),
}
EVALUATORS = ("tree", "hierarchical-stacks")
#: How many times the shortest stream.
LENGTHS = (1, 3, 10)
BATCH = 1_000

#: Runs, and returns a number of matches.
Run = Callable[[], int]


def types_and_concepts() -> cep.ConceptHierarchy:
    """Forty types below ten concepts."""
    types = [f"T{k:02d}" for k in range(TYPES)]
    groups = range(0, TYPES, CHILDREN)
    return cep.ConceptHierarchy({f"C{k // CHILDREN}": types[k : k + CHILDREN] for k in groups})


def uniform_stream(events: int, seed: int) -> cep.EventStream:
    """Events of all types at equal rates, one per unit of time."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "type": [f"T{k:02d}" for k in rng.integers(0, TYPES, events)],
            "time": np.arange(events),
            "x": rng.random(events),
            "id": rng.integers(0, 50, events),
        }
    )
    hierarchy = types_and_concepts()
    return cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=hierarchy)


def families(seed: int, *, roots: bool = True) -> cep.Workload:
    """Ten families of a root and nine refinements by one item of any type."""
    rng = np.random.default_rng(seed)
    hierarchy = types_and_concepts()
    concepts = [name for name in hierarchy.names if hierarchy.children(name)]
    types = [name for name in hierarchy.names if not hierarchy.children(name)]
    queries = {}
    for family in range(FAMILIES):
        chosen = rng.choice(concepts, 3, replace=False)
        root = [f"{concept} {name}" for concept, name in zip(chosen, "abc", strict=True)]
        more = rng.choice(types, REFINEMENTS, replace=False)
        places = rng.integers(0, len(root) + 1, REFINEMENTS)
        refined = [
            [*root[:k], f"{type} d", *root[k:]] for type, k in zip(more, places, strict=True)
        ]
        for number, items in enumerate([root, *refined] if roots else refined):
            queries[f"q{family}_{number}"] = (
                f"PATTERN SEQ({', '.join(items)}) WHERE a.x < b.x AND b.id = c.id "
                f"WITHIN {WINDOW} units"
            )
    return cep.Workload(queries, hierarchy=hierarchy)


def listed(found: Mapping[str, cep.Result]) -> int:
    """Read the columns of all matches; their number."""
    return sum(its.arrow.num_rows for its in found.values())


def timed(contestants: Mapping[str, Run], repetitions: int, **row: object) -> list[dict]:
    """Run all in turns, each time from another one on; the first turn, which loads kernels, is not timed.

    Raises
    ------
    SystemExit
        If they do not find equally many matches.
    """
    rows = []
    for repetition in range(-1, repetitions):
        found = {}
        names = [*contestants]
        first = repetition % len(names)
        for name in names[first:] + names[:first]:
            began = time.perf_counter()
            found[name] = contestants[name]()
            seconds = time.perf_counter() - began
            if repetition >= 0:
                its = {"contestant": name, "repetition": repetition, "seconds": seconds}
                rows.append({**row, **its, "matches": found[name]})
        if len(set(found.values())) > 1:
            raise SystemExit(f"{row}: the numbers of matches differ: {found}")
    return rows


def planned(
    workload: cep.Workload, stream: cep.EventStream, **options: str
) -> dict[str, cep.WorkloadPlan]:
    """The plans of all planners that there are."""
    statistics = cep.measure_statistics(workload, stream)
    return {
        name: cep.plan_workload(workload, statistics, name, **options)
        for name in PLANNERS
        if name in cep.WORKLOAD_PLANNERS
    }


def measure_families(events: int, repetitions: int, seed: int) -> Iterator[dict]:
    """A hundred queries, and ninety without roots: solo runs, and planners on the evaluator ``tree``."""
    stream = uniform_stream(events, seed)
    for roots in (True, False):
        workload = families(seed, roots=roots)
        plans = planned(workload, stream, generator="DP-B")
        statistics = cep.measure_statistics(workload, stream)
        solo = {q: cep.plan(p, statistics[q], "DP-B") for q, p in workload.patterns.items()}

        def alone(workload=workload, solo=solo) -> int:
            return listed(
                {
                    q: cep.evaluate(p, stream, solo[q], output="arrow")
                    for q, p in workload.patterns.items()
                }
            )

        def run(plan: cep.WorkloadPlan) -> int:
            return listed(
                cep.evaluate(plan.workload, stream, plan, evaluator="tree", output="arrow")
            )

        contestants = {"solo": alone} | {
            name: (lambda plan=plan: run(plan)) for name, plan in plans.items()
        }
        name = "with roots" if roots else "without roots"
        yield from timed(contestants, repetitions, part="families", workload=name, events=events)


def measure_study(events: int, repetitions: int, seed: int) -> Iterator[dict]:
    """The workloads of E-Cube's figures."""
    table = CompanyTrades(events, seed).table(0, events)
    stream = cep.EventStream.from_arrow(table, type="symbol", time="ts").with_hierarchy(HIERARCHY)
    library = cep.open_dataset("company-trades").patterns
    rng = np.random.default_rng(seed)
    for name, queries in STUDY.items():
        workload = cep.Workload({q: library[q] for q in queries}, hierarchy=HIERARCHY)
        statistics = cep.measure_statistics(workload, stream)
        problem = ReuseProblem.of(workload, statistics)
        yield from q_errors(name, workload, statistics, stream)
        drawn = {f"random {k}": random_plan(workload, problem, rng) for k in range(RANDOM)}
        for evaluator in EVALUATORS:
            plans = planned(workload, stream, evaluator=evaluator) | drawn
            yield from time_q_errors(name, plans["CHASE"], statistics, stream, evaluator)

            def run(plan: cep.WorkloadPlan, evaluator=evaluator) -> int:
                found = cep.evaluate(
                    plan.workload, stream, plan, evaluator=evaluator, output="arrow"
                )
                return listed(found)

            # FORESTS plans joins, which stacks do not run.
            fitting = {k: its for k, its in plans.items() if evaluator == "tree" or not its.plans}
            # Each plan once, whoever chooses it.
            chosen = {its: str(plan.to_dict()) for its, plan in fitting.items()}
            contestants = {
                chosen[its]: (lambda plan=plan, run=run: run(plan)) for its, plan in fitting.items()
            }
            rows = timed(
                contestants,
                repetitions,
                part="study",
                workload=f"{name}, {evaluator}",
                events=events,
            )
            for its, text in chosen.items():
                yield from ({**row, "contestant": its} for row in rows if row["contestant"] == text)


def q_errors(
    name: str,
    workload: cep.Workload,
    statistics: Mapping[str, cep.Statistics],
    stream: cep.EventStream,
) -> Iterator[dict]:
    """How far the expected numbers of matches are from those found, by both cost models."""
    found = cep.evaluate(workload, stream, output="count")
    seconds = np.ptp(stream.timestamps) / 1e9
    for cost, model in REUSE_COSTS.items():
        expected = model(workload, statistics, {}, None)
        for query, its in found.items():
            estimate, matches = expected.matches(query) * seconds, its.metrics.matches
            yield {
                "part": "q-errors", "workload": f"{name}, {query}", "contestant": cost,
                "matches": matches, "q_error": float(q_error(estimate, matches, least=1.0)),
            }  # fmt: skip


def time_q_errors(
    name: str,
    plan: cep.WorkloadPlan,
    statistics: Mapping[str, cep.Statistics],
    stream: cep.EventStream,
    evaluator: str,
) -> Iterator[dict]:
    """How far the calibrated costs of CHASE's plan are from the times of its queries."""
    steps = cep.explain(plan.workload, plan, statistics, stream, evaluator=evaluator).steps
    estimates = steps["cost"] * np.ptp(stream.timestamps) / 1e18
    for query, its in zip(steps["query"], q_error(estimates, steps["seconds"]), strict=True):
        yield {
            "part": "q-errors", "workload": f"{name}, {query}", "contestant": f"seconds on {evaluator}",
            "q_error": float(its),
        }  # fmt: skip


def random_plan(
    workload: cep.Workload, problem: ReuseProblem, rng: np.random.Generator
) -> cep.WorkloadPlan:
    """A source or none for each query, all equally likely."""
    while True:
        ways = {query: [None] for query in workload.patterns}
        for edge in problem.edges:
            ways[edge.query].append(edge)
        chosen = {query: its[int(rng.integers(len(its)))] for query, its in ways.items()}
        sources = {query: edge and edge.source for query, edge in chosen.items()}
        try:
            in_order(sources)
        except cep.CepbenchError:
            continue
        embeddings = {query: edge.embedding for query, edge in chosen.items() if edge is not None}
        return cep.WorkloadPlan(workload, sources=sources, embeddings=embeddings)


def charged(problem: ReuseProblem, rng: np.random.Generator) -> Sources:
    """CHASE, in which an edge from a query with a widened window is charged all that this query takes.

    Virtual queries are such queries. With the charge no weight depends on other edges, as Lemma 1 of
    [liu2011]_ needs; but a virtual query that several use is charged to each of them.
    """
    scratch = {q: its for q, its in problem.scratch.items() if q not in problem.virtual}
    through: dict[str, str] = {}
    for edge in problem.edges:
        if edge.sources[0] in problem.virtual and edge.query in scratch:
            cost = problem.scratch[edge.sources[0]] + edge.cost
            if cost < scratch[edge.query]:
                scratch[edge.query], through[edge.query] = cost, edge.sources[0]
    plain = [edge for edge in problem.edges if not {edge.query, *edge.sources} & problem.virtual]
    found: dict[str, Source] = {**least_sources(scratch, plain)}
    for query, virtual in through.items():
        if found[query] is None:
            found |= {query: virtual, virtual: None}
    return found


def best_of_all(problem: ReuseProblem, rng: np.random.Generator) -> Sources:
    """The least arborescences over every set of virtual queries."""
    plans = []
    for size in range(len(problem.virtual) + 1):
        for chosen in combinations(sorted(problem.virtual), size):
            left_out = problem.virtual - {*chosen}
            scratch = {q: its for q, its in problem.scratch.items() if q not in left_out}
            edges = [e for e in problem.edges if {e.query, *e.sources} <= scratch.keys()]
            plans.append(least_sources(scratch, edges))
    return min(plans, key=problem.cost)


def of_several_windows(rng: np.random.Generator) -> tuple[cep.Workload, dict[str, cep.Statistics]]:
    """Three to five queries with a beginning in common, whose windows differ."""
    texts, statistics = {}, {}
    beginning = rng.permutation(list("ABC"))[: int(rng.integers(2, 4))].tolist()
    for number in range(int(rng.integers(3, 6))):
        items = [*beginning, *rng.permutation(list("DEF"))[: int(rng.integers(0, 3))].tolist()]
        listed = ", ".join(f"{type} {type.lower()}" for type in items)
        window = int(rng.choice([5, 10, 20]))
        texts[f"q{number}"] = f"PATTERN SEQ({listed}) WITHIN {window} seconds"
    rates = {name.lower(): float(rng.uniform(0.2, 4.0)) for name in "ABCDEF"}
    workload = cep.Workload(texts)
    for query, pattern in workload.patterns.items():
        its = {name: rates[name] for name in pattern.names}
        statistics[query] = cep.Statistics(rates=its, stream_rate=sum(rates.values()))
    return workload, statistics


def measure_windows(seed: int) -> Iterator[dict]:
    """How much more plans cost than the best one where a source's window may be widened."""
    rng = np.random.default_rng(seed)
    planners = {"CHARGED": charged, "BEST": best_of_all}
    for name, function in planners.items():
        cep.workload_planner(name, virtual=True)(function)
    for number in range(DRAWN):
        workload, statistics = of_several_windows(rng)
        costs = {
            name: cep.plan_workload(workload, statistics, name).cost
            for name in ("NAIVE", "CHASE", "CHARGED", "STEINER", "BEST")
        }
        for name, cost in costs.items():
            yield {
                "part": "windows", "workload": f"windows {number}", "contestant": name,
                "times_best": cost / costs["BEST"],
            }  # fmt: skip


def thousand(seed: int, queries: int) -> cep.Workload:
    """Families of ten over sixty types in twelve concepts."""
    rng = np.random.default_rng(seed)
    types = [f"T{k}" for k in range(60)]
    concepts = {f"G{k}": types[5 * k : 5 * k + 5] for k in range(12)}
    texts = {}
    for family in range(queries // 10):
        root = [str(rng.choice([*concepts] if rng.random() < 0.3 else types)) for _ in range(3)]
        for number in range(10):
            items = list(root)
            for _ in range(0 if number == 0 else 2 if rng.random() < 0.3 else 1):
                items.insert(int(rng.integers(len(items) + 1)), str(rng.choice(types)))
            listed = ", ".join(f"{type} x{k}" for k, type in enumerate(items))
            texts[f"q{family}_{number}"] = f"PATTERN SEQ({listed}) WHERE [id] WITHIN 10 seconds"
    return cep.Workload(texts, hierarchy=cep.ConceptHierarchy(concepts))


def measure_planning(events: int, repetitions: int, seed: int, queries: int) -> Iterator[dict]:
    """Refinements and plan of many queries, and one query as a workload."""
    for repetition in range(-1, repetitions):
        workload = thousand(seed, queries)
        statistics = {
            query: cep.Statistics(
                rates={v.name: 5.0 if v.type[0] == "G" else 1.0 for v in pattern.positive}
            )
            for query, pattern in workload.patterns.items()
        }
        began = time.perf_counter()
        pairs = len(workload.embeddings)
        known = time.perf_counter()
        cep.plan_workload(workload, statistics, "CHASE")
        row = {"part": "planning", "workload": f"{queries:,} queries", "repetition": repetition}
        if repetition >= 0:
            seconds = {"refinements": known - began, "CHASE": time.perf_counter() - known}
            for name, its in seconds.items():
                yield {**row, "contestant": name, "seconds": its, "matches": pairs}
    stream = uniform_stream(events, seed)
    one = families(seed).patterns["q0_0"]
    workload = cep.Workload({"q": one}, hierarchy=stream.hierarchy)
    plan = cep.plan(one, cep.measure_statistics(one, stream), "DP-B")
    contestants = {
        "evaluate": lambda: cep.evaluate(one, stream, plan, output="arrow").arrow.num_rows,
        "workload": lambda: listed(cep.evaluate(workload, stream, {"q": plan}, output="arrow")),
    }
    yield from timed(
        contestants, 3 * repetitions, part="planning", workload="one query", events=events
    )


def measure_memory(events: int, seed: int) -> Iterator[dict]:
    """What a detector by a plan of CHASE keeps at most, between pushes, and what listed matches take.

    A longer stream is the shortest one again and again.
    """
    stream = uniform_stream(events, seed)
    workload = families(seed)
    plan = cep.plan_workload(workload, cep.measure_statistics(workload, stream), generator="DP-B")
    frame = stream.to_pandas()
    for times in LENGTHS:
        detector = cep.Detector(workload, plan, evaluator="tree", output="count")
        most = 0
        for number in range(times):
            for first in range(0, events, BATCH):
                part = frame.iloc[first : first + BATCH]
                part = part.assign(time=part["time"] + number * events)
                batch = cep.EventStream.from_pandas(part, type="type", time="time")
                detector.push(batch)
                most = max(most, sum(array.nbytes for array in detector.snapshot().values()))
        yield {
            "part": "memory", "workload": f"{times}x", "events": times * events,
            "contestant": "detector", "matches": detector.metrics().matches, "bytes": most,
        }  # fmt: skip
    found = cep.evaluate(workload, stream, plan, evaluator="tree", output="arrow")
    for name, its in found.items():
        if plan.sources[name] is not None:
            yield {
                "part": "memory", "workload": name, "events": events, "contestant": "listed",
                "matches": its.metrics.matches, "bytes": its.metrics.peak_bytes,
            }  # fmt: skip


def ratios(rows: pd.DataFrame, base: str) -> pd.DataFrame:
    """How many times as long as a contestant each takes, by repetition."""
    seconds = rows.pivot(index="repetition", columns="contestant", values="seconds")
    return seconds.div(seconds[base], axis=0)


def summary(rows: pd.DataFrame) -> str:
    """Medians of ratios in one repetition, with the least and the greatest."""
    lines = []
    timings = rows[rows["seconds"].notna()]
    for (part, workload), its in timings.groupby(["part", "workload"], sort=False):
        lines.append(f"{part}, {workload}: {its['matches'].iloc[0]:,.0f} matches or pairs")
        medians = its.groupby("contestant", sort=False)["seconds"].median()
        best = medians.idxmin()
        for name, median in medians.items():
            shown = f"  {name:<12}{1e3 * median:>10.2f} ms"
            for base in dict.fromkeys(("solo", "evaluate", "NAIVE", best)):
                if base in medians and (base != best or part == "study") and base != name:
                    its_ratios = (
                        ratios(its, name)[base] if part == "families" else ratios(its, base)[name]
                    )
                    times = "times as fast as" if part == "families" else "the time of"
                    shown += (
                        f"   {its_ratios.median():.2f} [{its_ratios.min():.2f}, {its_ratios.max():.2f}] "
                        f"{times} {base}"
                    )
            lines.append(shown)
    for cost, its in rows[rows["part"] == "q-errors"].groupby("contestant", sort=False)["q_error"]:
        lines.append(
            f"q-errors of {cost}, {len(its)} queries: median {its.median():.2f}, nine of ten within "
            f"{its.quantile(0.9):.2f}, at most {its.max():.2f}"
        )
    windows = rows[rows["part"] == "windows"]
    for name, its in windows.groupby("contestant", sort=False)["times_best"]:
        lines.append(
            f"windows that differ, {len(its)} workloads, {name}: {its.mean():.3f} times the cost of the best "
            f"plan on average, at most {its.max():.2f}, the best in {(its < 1 + 1e-9).mean():.0%}"
        )
    memory = rows[rows["part"] == "memory"]
    for row in memory[memory["contestant"] == "detector"].itertuples():
        lines.append(
            f"memory, {row.workload}: {row.events:,.0f} events, at most {row.bytes:,.0f} bytes"
        )
    listed = memory[memory["contestant"] == "listed"]
    if len(listed):
        lines.append(
            f"memory of {listed['matches'].sum():,.0f} matches of queries that reuse: "
            f"{listed['bytes'].sum() / listed['matches'].sum():.1f} bytes each"
        )
    return "\n".join(lines)


COLUMNS = (
    "part", "workload", "contestant", "repetition", "events", "seconds", "matches", "bytes",
    "q_error", "times_best",
)  # fmt: skip
PARTS = ("families", "study", "windows", "planning", "memory")


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = parser_of("Workloads that reuse matches.", events=100_000, repetitions=5)
    parser.add_argument("--study-events", type=int, default=200_000)
    parser.add_argument(
        "--queries", type=int, default=1_000, help="of the workload that is planned"
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    given = parser.parse_args(arguments)
    measured = {
        "families": lambda: measure_families(given.events, given.repetitions, given.seed),
        "study": lambda: measure_study(given.study_events, given.repetitions, given.seed),
        "windows": lambda: measure_windows(given.seed),
        "planning": lambda: measure_planning(
            given.events, given.repetitions, given.seed, given.queries
        ),
        "memory": lambda: measure_memory(given.events // 10, given.seed),
    }
    measurements = [row for part in given.parts for row in measured[part]()]
    rows = pd.DataFrame(measurements, columns=COLUMNS)
    print(f"{given.events:,} events, seed {given.seed}, {given.repetitions} repetitions")
    print(summary(rows))
    write(rows, given.out)


if __name__ == "__main__":
    main(sys.argv[1:])
