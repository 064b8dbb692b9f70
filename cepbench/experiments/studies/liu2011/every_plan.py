"""Every plan of a workload measured, and where the planners' plans stand among them.

[liu2011]_, section VII-E, compares Chase with three other plans of the workload of Figure 19; all that
there are follow from its refinements.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from cepbench.engines.detection.evaluate import evaluate
from cepbench.errors import PlanError
from cepbench.experiments.studies.liu2011.runs import (
    PRINTED_SOURCES,
    WORK,
    printed_sources,
    seconds_of,
)
from cepbench.experiments.studies.liu2011.turns import PLANNERS, company_stream, study_workload
from cepbench.experiments.studies.runs import sized
from cepbench.experiments.sweeps.cells import OK
from cepbench.planning.costs.reuse import ReuseProblem, Sources
from cepbench.planning.planners.sharing.generate import plan_workload
from cepbench.planning.plans.reuse import Source, in_order
from cepbench.planning.plans.workload import WorkloadPlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream

#: Name of the plan that the paper prints in part.
PRINTED = "as printed"

#: The fastest plans that are measured again beside the planners'.
_BEST = 10

#: Profile → the engines, and runs of every plan, and of the planners' and the fastest.
PROFILES = {
    "quick": {"evaluators": ("hierarchical-stacks",), "every": 1, "repetitions": 10},
    "full": {"evaluators": ("hierarchical-stacks", "tree"), "every": 5, "repetitions": 30},
}


def every_plan(problem: ReuseProblem) -> Iterator[Sources]:
    """All ways to choose a source, or none, for each query, without circles."""
    ways: dict[str, list[Source]] = {query: [None] for query in problem.scratch}
    for edge in problem.edges:
        ways[edge.query].append(edge.source)
    for chosen in itertools.product(*ways.values()):
        sources = dict(zip(ways, chosen, strict=True))
        try:
            in_order(sources)
        except PlanError:
            continue
        yield sources


def plans_measured(
    profile: str,
    *,
    sweep: str = "both",
    seed: int = 0,
    events: int = 10_000,
    evaluator: str = "hierarchical-stacks",
    repetitions: int = 0,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Measure every plan of the workload of a sweep, then the planners' and the fastest again.

    Without ``repetitions`` the latter run as often as the profile says.

    Returns a row a plan: ``plan`` (the source of each query), ``cost`` (calibrated), ``e_cube``,
    ``work``, ``milliseconds`` (the least of its runs), ``planners`` (whose plan it is, and
    :data:`PRINTED` for the one of least work that has the paper's sources); and a row a run of a
    planner, as :func:`cepbench.experiments.studies.runs.figure_runs` takes it: ``seconds``,
    ``over_best`` (divided by the time, in the same round, of the plan that is fastest by the
    median), ``faster_plans`` (percent of all plans that take less time than the planner's),
    ``work``, ``work_over_least`` and ``cost_over_least`` (work and calibrated cost divided by the least
    of all plans), ``load`` and ``plan_log_cost`` as :func:`cepbench.experiments.studies.liu2011.runs.with_axes`
    has them.
    """
    sizes = sized(PROFILES, profile, {"repetitions": repetitions})
    stream = company_stream(events, seed)
    workload = study_workload(sweep, stream.hierarchy)
    statistics = measure_statistics(workload, stream, seed=seed)
    problems = {
        cost: ReuseProblem.of(workload, statistics, cost, delays=True, evaluator=evaluator)
        for cost in ("calibrated", "e-cube")
    }
    plans = [
        WorkloadPlan(
            workload,
            sources=sources,
            delays=True,
            embeddings=_embeddings(problems["calibrated"], sources),
        )
        for sources in every_plan(problems["calibrated"])
    ]
    seconds, work = np.min(
        [_round(plans, stream, evaluator) for _ in range(sizes["every"])], axis=0
    ).T
    chosen = {
        planner: plan_workload(
            workload, statistics, planner, delays=True, seed=seed, evaluator=evaluator
        ).sources
        for planner in PLANNERS
    }
    as_printed = [
        place
        for place, plan in enumerate(plans)
        if printed_sources(plan.sources or {}) == len(PRINTED_SOURCES)
    ]
    if as_printed:
        chosen[PRINTED] = plans[min(as_printed, key=work.__getitem__)].sources
    costs = np.array([problems["calibrated"].cost(plan.sources or {}) for plan in plans])
    listed = pd.DataFrame(
        {
            "plan": [_words(plan) for plan in plans],
            "cost": costs,
            "e_cube": [problems["e-cube"].cost(plan.sources or {}) for plan in plans],
            "work": work,
            "milliseconds": 1000 * seconds,
            "planners": [
                ", ".join(name for name, sources in chosen.items() if sources == plan.sources)
                for plan in plans
            ],
        }
    )
    at = {name: [p.sources for p in plans].index(sources) for name, sources in chosen.items()}
    again = [*dict.fromkeys([*at.values(), *np.argsort(seconds)[:_BEST].tolist()])]
    window = max(pattern.window.seconds for pattern in workload.patterns.values())
    span = seconds_of(stream)
    rounds = np.array(
        [_round([plans[k] for k in again], stream, evaluator) for _ in range(sizes["repetitions"])]
    )[:, :, 0]
    fastest = rounds[:, np.median(rounds, axis=0).argmin()]
    rows = []
    for run, in_turns in enumerate(rounds):
        times = dict(zip(again, in_turns, strict=True))
        rows += [
            {
                "setting": "every plan",
                "size": len(workload.patterns),
                "generator": name,
                "regime": evaluator,
                "repetition": str(run),  # beside runs of a sweep, which name their seed, too
                "status": OK,
                "seconds": times[place],
                "over_best": times[place] / fastest[run],
                "faster_plans": 100 * float(np.mean(seconds < seconds[place])),
                "work": work[place],
                "work_over_least": work[place] / work.min(),
                "cost_over_least": costs[place] / costs.min(),
                "load": times[place] / span,
                "plan_log_cost": math.log(
                    problems["e-cube"].cost(plans[place].sources or {}) / window
                ),
            }
            for name, place in at.items()
        ]
    return listed.sort_values("milliseconds", ignore_index=True), pd.DataFrame(rows)


def _round(
    plans: Sequence[WorkloadPlan], stream: EventStream, evaluator: str
) -> list[tuple[float, float]]:
    """Seconds and work of each plan, one after the other; the first one runs untimed before."""
    evaluate(plans[0].workload, stream, plans[0], evaluator=evaluator, output="arrow")
    found = []
    for plan in plans:
        began = time.perf_counter()
        metrics = evaluate(plan.workload, stream, plan, evaluator=evaluator, output="arrow").metrics
        seconds = time.perf_counter() - began
        found.append((seconds, float(sum(metrics.work[word] for word in WORK))))
    return found


def _embeddings(problem: ReuseProblem, sources: Sources) -> dict[str, Sequence[int]]:
    edges = (problem.edge(source, query) for query, source in sources.items() if source)
    return {edge.query: edge.embedding for edge in edges if edge is not None}


def _words(plan: WorkloadPlan) -> str:
    return ", ".join(
        f"{query} from {source}" for query, source in (plan.sources or {}).items() if source
    )
