"""Writes ``recorded_plans.parquet``: what every plan generator made of 500 drawn problems.

``python -m tests.planning.planners.record_plans`` rewrites it, after a change of plans that was wanted; else
``test_recorded_plans.py`` holds the plan generators to it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd

import cepbench as cep
from cepbench.errors import PlanningRefusedError
from tests.planning_cases import ALPHAS, READINGS, STRATEGIES, Case, random_case, random_nesting

PATH = Path(__file__).with_name("recorded_plans.parquet")

#: The plan generators that there were when the table was written first, and EFREQ-SETS, whose plans
#: were those of EFREQ then.
GENERATORS = (
    "TRIVIAL",
    "EFREQ",
    "GREEDY",
    "II-RANDOM",
    "II-GREEDY",
    "DP-LD",
    "ZSTREAM",
    "ZSTREAM-ORD",
    "DP-B",
    "IKKBZ",
    "SA",
    "2PO",
    "IDP",
    "GOO",
    "DPCCP",
    "QUICKPICK",
    "LINDP",
    "FLIPS",
    "EFREQ-SETS",
)
PROBLEMS = 500


def drawn_case(number: int) -> Case:
    """The problem of that number: 2 to 14 variables, every reading, strategy and weight in turn."""
    rng = np.random.default_rng([14, number])
    n = int(rng.integers(2, 15))
    operator, time_selectivity = READINGS[int(rng.integers(len(READINGS)))]
    case = random_case(number, n, operator, time_selectivity)
    nests = time_selectivity == "adjacent" and 3 <= n <= 6 and rng.random() < 0.5
    if nests:
        case = replace(case, nesting=random_nesting(rng, 0, n, operator))
    kleene = frozenset(np.flatnonzero(rng.random(n) < 0.15).tolist())
    if rng.random() < 0.4:
        case = replace(case, kleene=kleene)
    # A problem whose conditions are a chain, for IKKBZ.
    if rng.random() < 0.2:
        rows = [
            [s if i == j or abs(i - j) == 1 else Fraction(1) for j, s in enumerate(row)]
            for i, row in enumerate(case.selectivities)
        ]
        case = replace(case, selectivities=tuple(map(tuple, rows)))
    if rng.random() < 0.5:
        case = replace(case, strategy=STRATEGIES[int(rng.integers(1, len(STRATEGIES)))])
    if rng.random() < 0.5:
        case = replace(case, alpha=ALPHAS[int(rng.integers(1, len(ALPHAS)))], last=_last(case, rng))
    return case


def _last(case: Case, rng: np.random.Generator) -> int | None:
    """Drawn from those that the structure allows where it leaves it open."""

    def latest(part: tuple | int) -> list[int]:
        if isinstance(part, int):
            return [part]
        parts = part[-1:] if part[0] == "SEQ" else part[1:]
        return [index for one in parts for index in latest(one)]

    possible = latest(case.structure)
    return int(rng.choice(possible)) if len(possible) > 1 else None


def recorded(number: int) -> Iterator[dict[str, object]]:
    """A row for each plan generator: its plan and notes, or why it refused."""
    case = drawn_case(number)
    for name in GENERATORS:
        row: dict[str, object] = {"problem": number, "generator": name}
        try:
            (plan,) = cep.plan(
                case.pattern,
                case.statistics,
                name,
                seed=number % 5,
                time_selectivity=case.time_selectivity,
                alpha=float(case.alpha),
                last=case.last_name,
            ).parts
        except PlanningRefusedError as error:
            yield row | {"refused": str(error)}
            continue
        yield row | {
            "plan": plan.text.replace(" ", "").replace("v", ""),
            "log_cost": plan.log_cost,
            "log_latency": plan.log_latency,
            "log_bound": plan.log_bound,
            "log_estimates": float(np.sum(plan.estimates)),
            "complete": plan.complete,
            "cost_model": plan.cost_model,
        }


def main() -> None:
    """Write the table to the path that is given, or to where it is kept."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else PATH
    rows = [row for number in range(PROBLEMS) for row in recorded(number)]
    pd.DataFrame(rows).to_parquet(path, compression="zstd", compression_level=19, index=False)


if __name__ == "__main__":
    main()
