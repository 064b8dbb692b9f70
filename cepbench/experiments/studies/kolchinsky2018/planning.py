"""Costs of plans of large patterns and planning times, without running a plan.

For [kolchinsky2018]_, Figure 7: patterns of up to 22 events are beyond evaluation, but not beyond
planning, and once cost is known to tell performance, costs can stand for it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cepbench.errors import ExperimentError, PlanningRefusedError
from cepbench.experiments.analysis.averages import GEOMETRIC_MEAN, MEAN, MEDIAN, RESAMPLES, averages
from cepbench.experiments.analysis.common_patterns import only_finite
from cepbench.experiments.analysis.summary import PATTERN
from cepbench.experiments.sweeps.cells import OK
from cepbench.experiments.sweeps.measure import load_kernels
from cepbench.experiments.sweeps.rotation import outcome_of
from cepbench.experiments.sweeps.store import read_kept
from cepbench.experiments.sweeps.workload import PREDICATES, PatternSpec, draw_workload
from cepbench.planning.costs.costed import CostedProblem
from cepbench.planning.costs.problem import PlanningProblem
from cepbench.planning.planners.budget import Budget
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.registry import PlanGenerator, default_generators, find_generator
from cepbench.planning.plans.model import OrderPlan, Plan, TreePlan
from cepbench.planning.plans.tree import left_deep
from cepbench.planning.statistics.model import Statistics
from cepbench.seeds import rng_for

#: Status of a generator whose plans of this size would have taken too long.
TIME_BUDGET = "time_budget"

#: The generator whose cost others are compared with, the worst one of [kolchinsky2018]_.
BASELINE = "EFREQ"

SIZES = tuple(range(3, 23))

#: Range of the selectivities of predicates, section 6.2.
SELECTIVITIES = (0.002, 0.88)

#: Minimum expected events per window of an identifier in the dense regime, as in the sweep.
DENSE = 8.0

#: Range of the expected events per window in the frequent regime.
FREQUENT = (10.0, 1_350.0)

_COLUMNS = ("regime", "predicates", "pattern_set", "size", "pattern_id", "pattern", "generator",
            "plan_kind", "plan_cost", "plan_log_cost", "tree_log_cost", "plan_seconds",
            "search_seconds", "complete", "status", "reason", "log_normalized",
            "normalized")  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanningCase:
    """A pattern and the statistics that its plans are made from."""

    spec: PatternSpec
    statistics: Statistics
    #: How many a pattern of n events has, one of :data:`cepbench.experiments.sweeps.workload.PREDICATES`.
    predicates: str = "n/2"


def pattern_columns(spec: PatternSpec) -> dict[str, Any]:
    """``pattern_set``, ``size``, ``pattern_id`` and ``pattern``, for a row of a table."""
    columns = {name: getattr(spec, name) for name in PATTERN}
    return {**columns, "pattern": spec.text}


def measured_statistics(
    folder: str | Path, regime: str = ""
) -> tuple[dict[str, float], np.ndarray]:
    """Arrivals and selectivities that the sweep in a folder measured before it planned.

    Expected events of each identifier per window, and the selectivities of the predicates over two
    variables in the patterns of a regime, or of all, shape (k,).

    Raises ExperimentError if no sweep came so far in that folder.
    """
    cardinalities, statistics = (
        read_measured(folder, name) for name in ("cardinalities", "statistics")
    )
    pool = [
        value
        for pattern_id, found in statistics.items()
        if not regime or pattern_id.startswith(f"{regime}-")
        for pair, value in Statistics.from_dict(found).selectivities.items()
        if len(set(pair)) == 2
    ]
    return cardinalities, np.array(pool, dtype=np.float64)


def read_measured(folder: str | Path, name: str) -> dict[str, Any]:
    """``cardinalities`` or ``statistics`` of a sweep, as its folder holds them.

    Raises ExperimentError if no sweep came so far in that folder.
    """
    try:
        return read_kept(folder, name)
    except FileNotFoundError:
        raise ExperimentError(
            f"{folder} has no measured statistics: it lacks {name}.json; run a sweep there first"
        ) from None


def rate_regimes(
    cardinalities: Mapping[str, float], *, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Expected events of identifiers per window in each regime of Figure 7, from those measured.

    ``sparse``: all identifiers, at their rates. ``dense``: those of at least :data:`DENSE` events.
    ``frequent``: all identifiers at rates that do not depend on the data, log-uniform in
    :data:`FREQUENT`.
    """
    low, high = np.log(FREQUENT)
    drawn = rng_for(seed, "frequent").uniform(low, high, len(cardinalities))
    return {
        "sparse": dict(cardinalities),
        "dense": {name: events for name, events in cardinalities.items() if events >= DENSE},
        "frequent": dict(zip(sorted(cardinalities), np.exp(drawn).tolist(), strict=True)),
    }


def workloads(
    cardinalities: Mapping[str, float],
    *,
    patterns: int | Mapping[int, int] = 10,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
) -> dict[tuple[str, str], list[PlanningCase]]:
    """The sequences of Figure 7: each regime of :func:`rate_regimes`, with n/2 and n predicates.

    There are so many patterns of each size, or, of a mapping, of each size up to a key, in
    ascending order. Selectivities are log-uniform in :data:`SELECTIVITIES`. A regime has no
    patterns of more events than it has identifiers. The result is by regime and predicates, without
    workloads that have none.

    Source: [kolchinsky2018]_, sections 6.2 and 6.3, Figure 7. Differs from the paper: the rates and
    the numbers of predicates vary, and selectivities are drawn, not measured.
    """
    selectivities = np.geomspace(*SELECTIVITIES, 1_001)
    numbers = patterns if isinstance(patterns, Mapping) else {max(sizes): patterns}
    wanted = {
        size: next((number for most, number in numbers.items() if size <= most), 0)
        for size in sizes
    }
    found: dict[tuple[str, str], list[PlanningCase]] = {}
    for regime, events in rate_regimes(cardinalities, seed=seed).items():
        drawn = partial(large_patterns, events, selectivities, seed=seed, regime=regime)
        for predicates in PREDICATES:
            for size, number in wanted.items():
                if number and size <= len(events):
                    cases = drawn(sizes=[size], patterns=number, predicates=predicates)
                    found.setdefault((regime, predicates), []).extend(cases)
    return found


def large_patterns(
    cardinalities: Mapping[str, float],
    selectivities: Sequence[float] | np.ndarray,
    *,
    sizes: Sequence[int] = SIZES,
    patterns: int = 10,
    seed: int = 0,
    predicates: str = "n/2",
    regime: str = "",
) -> list[PlanningCase]:
    """Sequences as :func:`cepbench.experiments.sweeps.workload.draw_workload` draws them, with statistics.

    Cardinalities are the expected events of each identifier per window. There are so many patterns
    of each size; the paper has 200 in all, 10 of each of 20 sizes. The number of predicates is one
    of :data:`cepbench.experiments.sweeps.workload.PREDICATES`; the patterns' names begin with the
    regime.

    Source: [kolchinsky2018]_, section 6.3, Figure 7. Differs from the paper: the selectivity of a
    predicate is drawn from the given ones, such as those measured on other predicates of the same
    form, whichever the identifiers.

    Raises ExperimentError if there is no selectivity, or as for ``draw_workload``.
    """
    pool = np.asarray(selectivities, dtype=np.float64)
    if not pool.size:
        raise ExperimentError("there are no selectivities to draw from")
    specs = draw_workload(
        cardinalities,
        pattern_sets=["sequence"],
        sizes=sizes,
        patterns=patterns,
        seed=seed,
        predicates=predicates,
        regime=regime,
    )
    cases = []
    for spec in specs:
        if predicates != "n/2":
            spec = replace(spec, pattern_id=f"{spec.pattern_id}-{predicates}")
        cases.append(case_of(spec, cardinalities, pool, rng_for(seed, spec.pattern_id), predicates))
    return cases


def case_of(
    spec: PatternSpec,
    cardinalities: Mapping[str, float],
    pool: np.ndarray,
    rng: np.random.Generator,
    predicates: str = "n/2",
) -> PlanningCase:
    """A pattern with selectivities drawn from those of a pool."""
    pattern = spec.pattern
    drawn = rng.choice(pool, size=len(pattern.conditions)).tolist()
    statistics = Statistics(
        cardinalities={v.name: float(cardinalities[v.type]) for v in pattern.variables if v.type},
        selectivities={
            (clause.variables[0], clause.variables[1]): value
            for clause, value in zip(pattern.conditions, drawn, strict=True)
        },
    )
    return PlanningCase(spec, statistics, predicates)


def plan_costs(
    cases: Sequence[PlanningCase],
    generators: Sequence[str] | None = None,
    *,
    seed: int = 0,
    budget_seconds: float = math.inf,
    plan_seconds: float = math.inf,
) -> pd.DataFrame:
    """Plan every case by every generator, by default the paper's nine and user-defined ones.

    :data:`BASELINE` always plans, too. ``budget_seconds`` are for each generator in all: sizes are
    planned in rising order; once the next size would take more than what is left, by how the time
    grew so far, it and all larger ones become rows with the status ``time_budget``. If
    ``plan_seconds`` are finite, an inexact search whose budget is used up gets this many for each
    further plan, and returns the best one found.

    One row a case and generator: ``regime``, ``predicates``, ``pattern_set``, ``size``,
    ``pattern_id``, ``pattern``, ``generator``, ``plan_kind``, ``plan_cost`` and ``plan_log_cost``
    (Cost_ord of an order, Cost_tree of a tree), ``tree_log_cost`` (Cost_tree, of an order as its
    left-deep tree: one scale for both kinds, as Cost_tree counts leaves and Cost_ord does not;
    missing for other kinds of plan), ``plan_seconds``, ``search_seconds`` (without setting up the
    problem, which is the same for all), ``complete`` (false for a search that its budget ended),
    ``status`` (``ok``, ``refused``, ``time_budget``, ``error``), ``reason``, ``log_normalized`` (ln
    of Cost_tree of EFREQ's plan over Cost_tree of this plan) and ``normalized``.
    ``attrs["budget_seconds"]`` is the budget.

    Source: [kolchinsky2018]_, section 6.3, Figure 7.
    """
    names = default_generators() if generators is None else list(generators)
    entries = {find_generator(name).name: find_generator(name) for name in [*names, BASELINE]}
    budgets = {name: _Budget(budget_seconds) for name in entries}
    for generator in entries.values():
        load_kernels(generator)
    rows: list[dict[str, Any]] = []
    by_size = sorted(cases, key=lambda case: case.spec.size)
    for _, group in groupby(by_size, key=lambda case: case.spec.size):
        some = list(group)
        asked = {name: budget.allows(len(some)) for name, budget in budgets.items()}
        taken: dict[str, list[float]] = {name: [] for name in entries}
        for case in some:
            pattern = case.spec.pattern
            began = time.perf_counter()
            problem = CostedProblem.from_pattern(pattern, case.statistics)
            setup = time.perf_counter() - began
            for name, generator in entries.items():
                row: dict[str, Any] = {
                    "regime": case.spec.regime,
                    "predicates": case.predicates,
                    **pattern_columns(case.spec),
                    "generator": name,
                    "plan_kind": generator.kind,
                    "status": TIME_BUDGET,
                    "reason": f"beyond {budget_seconds:g} s for all plans of {name}",
                }
                is_search = generator.anytime and not generator.exact
                if asked[name] or (is_search and plan_seconds < math.inf):
                    limit = math.inf if asked[name] else plan_seconds
                    row |= _planned(problem, generator, seed, Budget(limit))
                    if row["status"] == OK:
                        taken[name].append(row["search_seconds"])
                        row["plan_seconds"] = setup + row["search_seconds"]
                rows.append(row)
        for name, seconds in taken.items():
            budgets[name].spend(seconds)
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    baseline = table[table["generator"] == BASELINE].set_index("pattern_id")["tree_log_cost"]
    against = table["pattern_id"].map(baseline).astype(float)
    table["log_normalized"] = against - table["tree_log_cost"].astype(float)
    table["normalized"] = np.exp(table["log_normalized"])
    table = table[table["generator"].isin([find_generator(name).name for name in names])]
    table = table.reset_index(drop=True)
    table.attrs["budget_seconds"] = budget_seconds
    return table


def planning_summary(
    costs: pd.DataFrame,
    by: Sequence[str] = (),
    metrics: Sequence[str] = ("normalized", "plan_seconds"),
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> pd.DataFrame:
    """Averages of columns of :func:`plan_costs` over the patterns of each size, apart by ``by``.

    Mean, as in the paper; median; geometric mean; by generator and kind of plan. Sizes without any
    plan have rows without values.
    """
    planned = only_finite(costs, metrics)
    for name in metrics:
        planned[name] = planned[name].where(planned["status"] == OK)
    columns = [*by, "size"]
    found: Any = planned.groupby(columns, sort=False)
    # Sizes as numbers of NumPy: the text of a group's name seeds its intervals.
    groups = (
        ({**dict(zip(columns, key, strict=True)), "size": np.int64(key[-1])}, part)
        for key, part in found
    )
    run = ["generator", "plan_kind"]
    wanted = dict.fromkeys(metrics, _AVERAGES)
    return averages(groups, run, wanted, seed=seed, resamples=resamples)


def left_out_table(table: pd.DataFrame) -> pd.DataFrame:
    """Failed and refused plans and runs, counted, with the first reason.

    Of :func:`plan_costs`, or of regrets, one row per ``pattern_set``, ``generator`` and ``status``
    but ``ok``: ``rows``, ``patterns``, their ``sizes`` as a text, and the ``reason`` of the first;
    empty if every generator planned every pattern.
    """
    failed = table[table["status"] != OK]
    failed = failed.assign(status=failed["status"].astype(str).str.replace("_", " "))
    groups = failed.groupby(["pattern_set", "generator", "status"], sort=False)
    known = sorted(set(table["size"]))
    found = groups.agg(
        rows=("status", "size"),
        patterns=("pattern_id", "nunique"),
        sizes=("size", lambda sizes: _in_ranges(sizes, known)),
        reason=("reason", "first"),
    )
    return found.reset_index()


def _in_ranges(sizes: pd.Series, known: Sequence[int]) -> str:
    """Sizes as ``3, 5–24, 50``: runs of neighbours among the known sizes, ends joined."""
    places = sorted({known.index(size) for size in sizes})
    # Places that follow each other are equally far from their ranks.
    ranked = groupby(enumerate(places), key=lambda one: one[1] - one[0])
    runs = [[known[place] for _, place in run] for _, run in ranked]
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


_AVERAGES = {"mean": MEAN, "median": MEDIAN, "geometric mean": GEOMETRIC_MEAN}


class _Budget:
    """Seconds left for a generator, and how long its plans took at the last two sizes."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds
        self.recent: list[float] = []
        self.is_over = False

    def allows(self, plans: int) -> bool:
        """Whether this number of plans of the next size fits; if not, no larger one does."""
        if not self.is_over and self.recent:
            growth = self.recent[-1] / self.recent[0] if len(self.recent) > 1 else 1.0
            # At least as long as before: small plans are noise, and no plan gets easier.
            self.is_over = plans * self.recent[-1] * max(1.0, growth) > self.left
        return not self.is_over

    def spend(self, seconds: Sequence[float]) -> None:
        if seconds:
            self.left -= sum(seconds)
            self.recent = [*self.recent[-1:], float(np.median(seconds))]


def try_to_plan(
    problem: PlanningProblem, generator: PlanGenerator, seed: int, budget: Budget | None = None
) -> tuple[Plan | None, str, str | None]:
    """A generator's plan, or None; status, and reason where there is no plan."""
    try:
        return plan_problem(problem, generator, seed=seed, budget=budget), OK, None
    except Exception as error:  # a broken generator is a row; the others continue
        found = outcome_of(error, PlanningRefusedError)
        return None, found["status"], found["reason"]


def _planned(
    problem: CostedProblem, generator: PlanGenerator, seed: int, budget: Budget
) -> dict[str, Any]:
    began = time.perf_counter()
    found, status, reason = try_to_plan(problem, generator, seed, budget)
    row: dict[str, Any] = {"status": status, "reason": reason}
    if found is not None:
        row |= {
            "search_seconds": time.perf_counter() - began,
            "complete": found.complete,
            "plan_cost": found.cost,
            "plan_log_cost": found.log_cost,
            "tree_log_cost": tree_log_cost(problem, found),
        }
    return row


def tree_log_cost(problem: CostedProblem, plan: Plan) -> float:
    """ln Cost_tree of a plan, of an order as its left-deep tree; NaN for other kinds of plan.

    The sizes of the inner nodes of a left-deep tree are those of the order's prefixes. Its cost
    counts the leaves besides, which Cost_ord does not.
    """
    if isinstance(plan, OrderPlan):
        place = {name: index for index, name in enumerate(problem.names)}
        return problem.log_tree_cost(left_deep([place[name] for name in plan.order]))
    if isinstance(plan, TreePlan) and plan.log_cost is not None:
        return plan.log_cost
    return math.nan
