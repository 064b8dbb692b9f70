"""How long plan generators take: ``python benchmarks/bench_planning.py [--out rows.parquet]``.

Every generator plans the same seeded random problems, in turn within each problem, after a warm-up
that compiles the kernels. A time is that of ``plan_problem``, its checks and notes included; making
the problem is not part of it. Only ratios of one run say something about the code. A generator that
refuses a problem has a row without a time that says why.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import PlanningRefusedError
from cepbench.patterns.model import STRATEGIES
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.registry import PLAN_GENERATORS

SIZES = (3, 7, 12, 16, 20, 22, 24, 50, 100, 200)
#: Conditions over random pairs, or over neighbours alone; or all rates and selectivities alike, the
#: worst case of a search that leaves out what is dearer than something else.
SHAPES = ("random", "chain", "alike")
#: The largest size worth waiting for; the others go up to the last of SIZES.
LARGEST = {"DP-LD": 24, "DP-B": 24}
LARGEST_ALIKE = LARGEST | {"DP-B": 18, "DPCCP": 16}


def random_problem(
    n: int, seed: int, strategy: str = "any", alpha: float = 0.0, shape: str = "random"
) -> CostedProblem:
    """A sequence of n variables: 1–45 events per window, conditions on half as many pairs as n."""
    rng = np.random.default_rng([seed, n])
    log_selectivity = np.zeros((n, n))
    if shape == "alike":
        # One event per window and variable: sets of all sizes cost the same.
        names = tuple(f"v{i}" for i in range(n))
        return CostedProblem(
            names,
            np.zeros(n),
            log_selectivity,
            strategy=strategy,
            last=n - 1,
            cost=Throughput(alpha),
        )
    later = np.arange(1, n)
    log_selectivity[later, later - 1] = log_selectivity[later - 1, later] = np.log(0.5)
    for _ in range(max(1, n // 2)):
        i, j = rng.choice(n, size=2, replace=False)
        if shape == "chain":
            j = i - 1 if i else 1
        added = np.log(rng.uniform(0.002, 0.88))
        log_selectivity[i, j] += added
        log_selectivity[j, i] = log_selectivity[i, j]
    return CostedProblem(
        tuple(f"v{i}" for i in range(n)),
        np.log(rng.uniform(1, 45, size=n)),
        log_selectivity,
        operator="SEQ",
        strategy=strategy,
        last=n - 1,
        cost=Throughput(alpha),
    )


def measure(
    generators: Sequence[str],
    sizes: Iterable[int],
    problems: int,
    seed: int,
    strategy: str = "any",
    alpha: float = 0.0,
    shape: str = "random",
) -> list[dict[str, Any]]:
    """One row a generator and problem."""
    largest = LARGEST_ALIKE if shape == "alike" else LARGEST
    for name in generators:
        with contextlib.suppress(PlanningRefusedError):
            plan_problem(random_problem(4, seed, strategy, alpha, shape), name, seed=seed)
    rows = []
    for n in sizes:
        for number in range(problems):
            problem = random_problem(n, seed + number, strategy, alpha, shape)
            for name in generators:
                if n > largest.get(name, n):
                    continue
                row = {
                    "generator": name,
                    "size": n,
                    "problem": number,
                    "seed": seed,
                    "strategy": strategy,
                    "alpha": alpha,
                    "shape": shape,
                }
                before = time.perf_counter()
                try:
                    plan = plan_problem(problem, name, seed=seed)
                except PlanningRefusedError as refusal:
                    rows.append(row | {"seconds": None, "log_cost": None, "refused": str(refusal)})
                    continue
                seconds = time.perf_counter() - before
                rows.append(row | {"seconds": seconds, "log_cost": plan.log_cost, "refused": None})
    return rows


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """Median, least and most time per generator and size, and its ratio to GREEDY's median."""
    times: dict[tuple[int, str], list[float]] = {}
    for row in rows:
        taken = times.setdefault((row["size"], row["generator"]), [])
        if row["refused"] is None:
            taken.append(row["seconds"])
    lines = [
        f"{'size':>4}  {'generator':<12} {'median':>10} {'least':>10} {'most':>10} {'/GREEDY':>9}"
    ]
    for (n, name), seconds in times.items():
        if not seconds:
            lines.append(f"{n:>4}  {name:<12} {'refused':>10}")
            continue
        median = statistics.median(seconds)
        greedy = times.get((n, "GREEDY"))
        ratio = f"{median / statistics.median(greedy):.2f}" if greedy else ""
        shown = "".join(f" {1e3 * x:>7.2f} ms" for x in (median, min(seconds), max(seconds)))
        lines.append(f"{n:>4}  {name:<12}{shown} {ratio:>9}")
    return "\n".join(lines)


def write(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Store the rows as JSON or Parquet, by the ending of ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".json":
        path.write_text(json.dumps(list(rows), indent=1), encoding="utf-8")
    else:
        pd.DataFrame(rows).to_parquet(path, index=False)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description="How long plan generators take.")
    parser.add_argument("--generators", nargs="+", default=list(PLAN_GENERATORS))
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--problems", type=int, default=5, help="random problems for each size")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--strategy", choices=STRATEGIES, default="any")
    parser.add_argument("--alpha", type=float, default=0.0, help="weight of latency")
    parser.add_argument(
        "--shape",
        choices=SHAPES,
        nargs="+",
        default=["random", "alike"],
        help="which pairs have conditions, or all numbers alike",
    )
    parser.add_argument("--out", type=Path, help="where to write the rows: .json or .parquet")
    given = parser.parse_args(arguments)
    if given.out and given.out.suffix not in (".json", ".parquet"):
        parser.error(f"--out {given.out}: the name must end in .json or .parquet")
    for name in given.generators:
        if name not in PLAN_GENERATORS:
            parser.error(f"--generators {name}: known are {', '.join(PLAN_GENERATORS)}")
    rows = []
    for shape in given.shape:
        measured = measure(
            given.generators,
            given.sizes,
            given.problems,
            given.seed,
            given.strategy,
            given.alpha,
            shape,
        )
        print(
            f"planning, {given.problems} problems of each size, seed {given.seed}, "
            f"strategy {given.strategy}, alpha {given.alpha:g}, conditions: {shape}"
        )
        print(summary(measured))
        rows += measured
    if given.out:
        write(rows, given.out)
        print(f"{len(rows)} rows in {given.out}")


if __name__ == "__main__":
    main(sys.argv[1:])
