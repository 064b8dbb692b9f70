"""Sensitivity of plans to errors in the statistics.

Statistics are measured on the past and used on the future, and selectivities of conditions that
were never evaluated together are guesses. Here every rate and selectivity is multiplied by a random
factor; plans are made from the result, and costed and run under the right statistics.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.studies.kolchinsky2018.planning import (
    PlanningCase,
    pattern_columns,
    read_measured,
    try_to_plan,
)
from cepbench.experiments.sweeps.cells import OK, check_agreement, results_frame
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import load_kernels, measure_pattern
from cepbench.experiments.sweeps.store import read_results
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.costs.throughput import Throughput
from cepbench.planning.planners.registry import (
    OPTIMAL,
    PLAN_GENERATORS,
    PlanGenerator,
    find_generator,
    fixed_plan,
)
from cepbench.planning.plans.kinds import indices_of
from cepbench.planning.plans.model import Plan
from cepbench.planning.plans.notes import from_log
from cepbench.planning.statistics.model import Statistics
from cepbench.seeds import rng_for
from cepbench.streams.event_stream import EventStream

#: Largest errors of a number, as factors.
FACTORS = (2.0, 5.0, 10.0, 100.0)

#: Metric of a run -> whether more of it is better.
_MEASURED = {"events_per_second": True, "partial_matches_created": False, "comparisons": False}


def cases_of_sweep(
    folder: str | Path, pattern_set: str = "sequence", regime: str = ""
) -> list[PlanningCase]:
    """The patterns of a finished sweep in a folder with the statistics that it measured.

    An empty regime is that of a sweep without regimes.

    Raises ExperimentError if the sweep has not finished, or has no such pattern set in the regime.
    """
    statistics = read_measured(folder, "statistics")
    results = read_results(folder)
    results = results[results["regime"] == regime]
    columns = ["pattern_id", "pattern_set", "size", "pattern", "seed"]
    found = results[results["pattern_set"] == pattern_set][columns].drop_duplicates("pattern_id")
    if found.empty:
        known = ", ".join(results["pattern_set"].unique())
        where = f" in regime {regime!r}" if regime else ""
        raise ExperimentError(
            f"the sweep has no pattern set {pattern_set!r}{where}; there are {known or 'none'}"
        )
    return [
        PlanningCase(
            PatternSpec(row["pattern_id"], row["pattern_set"], int(row["size"]), row["pattern"],
                        int(row["seed"])),
            Statistics.from_dict(statistics[row["pattern_id"]]),
        )
        for row in found.to_dict("records")
    ]  # fmt: skip


def spread_sample(cases: Sequence[PlanningCase], number: int) -> list[PlanningCase]:
    """``number`` of the cases, or all, evenly over their order, with the last one.

    Sweeps list patterns by rising size; large ones, with the most to plan, are never left out.
    """
    places = np.linspace(len(cases) - 1, 0, min(max(number, 1), len(cases))).round().astype(int)
    return [cases[place] for place in sorted(set(places.tolist()))]


def wrong_statistics(statistics: Statistics, factor: float, rng: np.random.Generator) -> Statistics:
    """The same statistics, each number multiplied by ``factor ** u``, u uniform in [-1, 1].

    Selectivities are cut off at 1, so large ones are wrong by less. Generators of one seed draw the
    same u for every factor. The rate of the whole stream and the number of partitions stay.

    Raises ExperimentError if the factor is below 1 or not finite.
    """
    if not 1 <= factor < math.inf:
        raise ExperimentError(f"factor {factor!r}: numbers are wrong by a factor of at least 1")
    kind = "rates" if statistics.cardinalities is None else "cardinalities"
    arrivals: dict[str, float] = dict(getattr(statistics, kind))
    wrong = {name: arrivals[name] * factor ** rng.uniform(-1.0, 1.0) for name in sorted(arrivals)}
    selectivities = {
        pair: min(1.0, statistics.selectivities[pair] * factor ** rng.uniform(-1.0, 1.0))
        for pair in sorted(statistics.selectivities)
    }
    own: dict[str, Any] = {kind: {name: wrong[name] for name in arrivals}}
    return Statistics(
        **own,
        selectivities=selectivities,
        stream_rate=statistics.stream_rate,
        partitions=statistics.partitions,
    )


def planning_regrets(
    cases: Sequence[PlanningCase],
    generators: Sequence[str] | None = None,
    *,
    factors: Sequence[float] = FACTORS,
    draws: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    """Costs under the right numbers of plans that were made from wrong ones, of patterns without OR.

    By default all plan generators that are registered. The numbers of a pattern are made wrong
    ``draws`` times for each factor, see :func:`wrong_statistics`. All generators plan from the same
    wrong numbers, each with the same seed as from the right ones.

    One row a case, generator, factor and draw, beginning with factor 1 for the plan from the right
    numbers: ``pattern_set``, ``size``, ``pattern_id``, ``pattern``, ``generator``, ``plan_kind``,
    ``factor``, ``draw``, ``plan``, ``log_cost`` (under the right numbers), ``regret`` (the cost
    over that of the plan that the same generator makes from the right numbers; below 1 where a
    heuristic was lucky), ``distance`` (the cost over the least cost of a plan of its kind),
    ``log_regret``, ``log_distance``, ``status`` and ``reason``.

    Raises ExperimentError if there are no draws, or a factor is below 1; PlanGeneratorError if a
    generator is unknown.
    """
    entries = _generators(generators)
    rows = (row for case in cases for row, _ in _attempts(case, entries, factors, draws, seed))
    return pd.DataFrame(rows)


def measured_regrets(
    cases: Sequence[PlanningCase],
    streams: Callable[[PlanningCase], EventStream],
    generators: Sequence[str] | None = None,
    *,
    factors: Sequence[float] = FACTORS,
    draws: int = 1,
    repetitions: int = 3,
    seed: int = 0,
) -> pd.DataFrame:
    """Runs of plans that were made from wrong numbers, and of those from the right ones.

    All plans of a pattern run on the same events, those that ``streams`` gives for a case, each
    different plan once in each repetition and for all generators that made it, interleaved as in a
    sweep. Times are medians over the repetitions. The other parameters are those of
    :func:`planning_regrets`.

    Its rows with ``events_per_second``, ``partial_matches_created``, ``comparisons`` and
    ``matches``; and ``slowdown``, ``more_partial_matches`` and ``more_comparisons``: how many times
    slower the plan was, and how many times more it did, than the one from the right numbers
    (missing where either did not end well or is 0). A run that did not end well gives its status
    and reason to the row.

    Raises ExperimentError as :func:`planning_regrets`; or if two plans of a pattern found different
    numbers of matches.
    """
    entries = _generators(generators)
    parts = []
    for case in cases:
        attempts = list(_attempts(case, entries, factors, draws, seed))
        table = pd.DataFrame(row for row, _ in attempts)
        plans = {(its.kind, its.text): its for _, its in attempts if its is not None}
        fixed = [fixed_plan(f"{kind} {text}", its) for (kind, text), its in plans.items()]
        runs = _measured(case, streams(case), fixed, repetitions, seed)
        parts.append(table.merge(runs, on=["plan_kind", "plan"], how="left"))
    table = pd.concat(parts, ignore_index=True)
    failed = (table["status"] == OK) & table["run_status"].notna() & (table["run_status"] != OK)
    table.loc[failed, "status"] = table.loc[failed, "run_status"]
    table.loc[failed, "reason"] = table.loc[failed, "run_reason"]
    return _against_right(table.drop(columns=["run_status", "run_reason"]))


def _generators(generators: Sequence[str] | None) -> list[PlanGenerator]:
    names = list(PLAN_GENERATORS) if generators is None else generators
    entries = [find_generator(name) for name in names]
    for entry in entries:
        load_kernels(entry)
    return entries


def _attempts(
    case: PlanningCase,
    generators: Sequence[PlanGenerator],
    factors: Sequence[float],
    draws: int,
    seed: int,
) -> Iterator[tuple[dict[str, Any], Plan | None]]:
    """Rows of one case with the plan, None for a row without one."""
    if draws < 1:
        raise ExperimentError(f"{draws} draws: numbers must be made wrong at least once")
    pattern = case.spec.pattern
    right = PlanningProblem.from_pattern(pattern, case.statistics)
    problems = {(1.0, 0): right}
    for factor in factors:
        for draw in range(draws):
            rng = rng_for(seed, case.spec.pattern_id, draw)
            wrong = wrong_statistics(case.statistics, factor, rng)
            problems[float(factor), draw] = PlanningProblem.from_pattern(pattern, wrong)
    least = {
        kind: _attempt(right, right, find_generator(name), seed)[0]["log_cost"]
        for kind, name in OPTIMAL.items()
    }
    for generator in generators:
        own = math.nan
        for (factor, draw), problem in problems.items():
            found, plan = _attempt(problem, right, generator, seed)
            if factor == 1 and draw == 0:
                own = found["log_cost"]
            log_regret = found["log_cost"] - own
            log_distance = found["log_cost"] - least[generator.kind]
            row = {
                **pattern_columns(case.spec),
                "generator": generator.name,
                "plan_kind": generator.kind,
                "factor": factor,
                "draw": draw,
                **found,
                "log_regret": log_regret,
                "regret": from_log(log_regret),
                "log_distance": log_distance,
                "distance": from_log(log_distance),
            }
            yield row, plan


def _attempt(
    problem: PlanningProblem, right: PlanningProblem, generator: PlanGenerator, seed: int
) -> tuple[dict[str, Any], Plan | None]:
    """The plan of ``problem`` with its cost under the right one, as columns; and the plan."""
    plan, status, reason = try_to_plan(problem, generator, seed)
    row = {"plan": None, "log_cost": math.nan, "status": status, "reason": reason}
    if plan is None:
        return row, None
    log_cost = Throughput().log_cost(right, plan.kind, indices_of(plan, right.names))
    return {**row, "plan": plan.text, "log_cost": log_cost}, plan


def _measured(
    case: PlanningCase,
    stream: EventStream,
    plans: Sequence[PlanGenerator],
    repetitions: int,
    seed: int,
) -> pd.DataFrame:
    """A row for each of the plans, with medians over the repetitions."""
    columns = ["plan_kind", "plan", "run_status", "run_reason", *_MEASURED, "matches"]
    if not plans:
        return pd.DataFrame(columns=columns)
    grid = Grid(generators=plans, repetitions=repetitions, seed=seed)
    runs = results_frame(measure_pattern(case.spec, stream, case.statistics, grid))
    check_agreement(runs)
    key = ["plan_kind", "plan"]
    failed = runs[runs["status"] != OK].groupby(key)[["status", "reason"]].first()
    found = runs.groupby(key, sort=False)[[*_MEASURED, "matches"]].median().astype(float)
    failed = failed.reindex(found.index)
    found = found.where(failed["status"].isna())
    found = found.assign(run_status=failed["status"].fillna(OK), run_reason=failed["reason"])
    return found.reset_index()[columns]


def _against_right(table: pd.DataFrame) -> pd.DataFrame:
    """The table with ratios of each run to that of the plan from the right numbers."""
    key = ["pattern_id", "generator"]
    right = table[table["factor"] == 1].set_index(key)
    index = pd.MultiIndex.from_frame(table[key])
    names = ("slowdown", "more_partial_matches", "more_comparisons")
    for name, (metric, more_is_better) in zip(names, _MEASURED.items(), strict=True):
        own = table[metric].astype(float)
        base = pd.Series(right[metric].reindex(index).to_numpy(float), table.index)
        over, under = (base, own) if more_is_better else (own, base)
        table[name] = (over / under).where((over > 0) & (under > 0))
    return table
