"""Planners on workloads of tens to a thousand queries, which [liu2011]_, section IX, leaves to the future."""

from __future__ import annotations

import numpy as np
import pandas as pd

from cepbench.experiments.studies.liu2011.turns import ALONE, PLANNERS, company_stream, planner_runs
from cepbench.experiments.studies.runs import figure_runs, sized
from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
from cepbench.planning.workloads.model import Workload
from cepbench.seeds import rng_for
from cepbench.streams.company_trades import COMPANIES, HIERARCHY

#: Queries of a workload.
SIZES = (10, 100, 1_000)

#: Queries of a family: a general one, and others with an item more or a company for a concept.
FAMILY = 10

#: Queries of the largest workload that planners other than the paper's plan.
SEARCHED = 100

#: Profile → trades of the stream, runs.
PROFILES = {
    "quick": {"events": 10_000, "repetitions": 3},
    "full": {"events": 100_000, "repetitions": 10},
}

_WINDOW = "15 milliseconds"


def all_planners() -> list[str]:
    """The built-in planners of workloads that reuse matches."""
    return [
        name
        for name, planner in WORKLOAD_PLANNERS.items()
        if planner.shares == "matches" and planner.is_builtin
    ]


def drawn_workload(queries: int, seed: int) -> Workload:
    """A workload of families; a smaller one is the beginning of a larger one.

    Each family has a query of a concept and two companies or concepts, all different, and queries that
    refine it: by a company before, between or after its items, or by a company for a concept.
    """
    found = {}
    for number in range(queries):
        family, member = divmod(number, FAMILY)
        root = _root(rng_for(seed, "family", family))
        items = _refined(root, rng_for(seed, "query", number)) if member else root
        listed = ", ".join(f"{name} v{place}" for place, name in enumerate(items))
        found[f"q{number}"] = f"PATTERN SEQ({listed}) WITHIN {_WINDOW}"
    return Workload(found, hierarchy=HIERARCHY)


def _root(rng: np.random.Generator) -> list[str]:
    concepts = [*HIERARCHY.children("Company")]
    alone = [name for name in COMPANIES if name not in HIERARCHY]
    first = concepts.pop(int(rng.integers(len(concepts))))
    others = rng.permutation([*concepts, *alone])[:2].tolist()
    return [str(name) for name in rng.permutation([first, *others])]


def _refined(items: list[str], rng: np.random.Generator) -> list[str]:
    concepts = [place for place, name in enumerate(items) if name in HIERARCHY.concepts]
    if rng.random() < 1 / 3:
        place = int(rng.choice(concepts))
        below = HIERARCHY.children(items[place])
        return [*items[:place], str(rng.choice(below)), *items[place + 1 :]]
    company = str(rng.choice([name for name in COMPANIES if name not in items]))
    place = int(rng.integers(len(items) + 1))
    return [*items[:place], company, *items[place:]]


def scale_runs(
    profile: str,
    *,
    seed: int = 0,
    sizes: tuple[int, ...] = SIZES,
    searched: int = SEARCHED,
    **changes: int,
) -> pd.DataFrame:
    """Plan and run workloads of these sizes by every planner, and each query alone, in turns.

    Workloads of more than ``searched`` queries are not given to planners by search. Changes are
    ``events`` and ``repetitions`` in the place of the profile's, unless 0. Runs are those of
    :func:`cepbench.experiments.studies.liu2011.turns.planner_runs` with the number of queries as
    setting.
    """
    its = sized(PROFILES, profile, changes)
    stream = company_stream(its["events"], seed)
    rows = [
        row | {"setting": f"{size:,}"}
        for size in sizes
        for row in planner_runs(
            drawn_workload(size, seed),
            stream,
            evaluator="hierarchical-stacks",
            repetitions=its["repetitions"],
            seed=seed,
            planners=(*(PLANNERS if size > searched else all_planners()), ALONE),
            warm_up=size == sizes[0],
        )
    ]
    return figure_runs(pd.DataFrame(rows), "setting", "generator")
