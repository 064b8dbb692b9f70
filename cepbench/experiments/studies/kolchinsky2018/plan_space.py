"""Every plan of a small pattern, with its cost under each model and its time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import Any

import pandas as pd

from cepbench.errors import ExperimentError
from cepbench.experiments.sweeps.cells import OK, check_agreement, results_frame
from cepbench.experiments.sweeps.grid import Grid
from cepbench.experiments.sweeps.measure import measure_pattern
from cepbench.experiments.sweeps.workload import GivenSpec
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.models import COST_MODELS
from cepbench.planning.costs.problem import TIME_SELECTIVITIES, PlanningProblem
from cepbench.planning.planners.generate import plan_problem
from cepbench.planning.planners.registry import PlanGenerator, fixed_plan, generators_from
from cepbench.planning.plans.kinds import indices_of
from cepbench.planning.plans.model import OrderPlan, Plan, TreePlan
from cepbench.planning.statistics.measure import measure_statistics
from cepbench.streams.event_stream import EventStream

#: Largest pattern of which every plan is run: 24 orders and 15 trees.
MOST_VARIABLES = 4

#: Cost of every plan, in columns of these names: time selectivity, and the cost model's suffix.
COSTS = {
    "adjacent": ("adjacent", "throughput"),
    "exact": ("exact", "throughput"),
    "comparisons": ("exact", "comparisons"),
}


def all_trees(names: Sequence[str]) -> Iterator[Any]:
    """Every tree over some variables, each once whichever child is written first."""
    if len(names) == 1:
        yield names[0]
        return
    first, *others = names
    for size in range(len(others)):
        for beside in combinations(others, size):
            left = [first, *beside]
            right = [name for name in others if name not in beside]
            for one in all_trees(left):
                yield from ((one, other) for other in all_trees(right))


def time_every_plan(
    pattern: Pattern,
    stream: EventStream,
    *,
    generators: Sequence[str | PlanGenerator] | None = None,
    repetitions: int = 5,
    seed: int = 0,
) -> pd.DataFrame:
    """Run every order and every tree of a pattern, in turns, counting matches.

    The pattern has no OR and at most :data:`MOST_VARIABLES` variables that a match binds. The
    choices of the generators are shown, by default of the paper's nine and user-defined ones.

    One row a plan, orders first, the order as written before all others: ``plan_kind``, ``plan``,
    ``adjacent``, ``exact`` and ``comparisons`` (what it costs, see :data:`COSTS`), ``seconds`` (the
    quickest run), ``median_seconds``, ``times_trivial`` (the quickest run over that of the order as
    written), ``pairs_compared``, ``partial_matches_created``, ``matches``, ``chosen_by`` (the
    generators that choose it under ``adjacent``) and ``chosen_by_exact``.

    Raises ExperimentError if the pattern has OR or more variables, or two plans find different
    numbers of matches.
    """
    names = pattern.positive_names
    if len(pattern.branches()) > 1 or len(names) > MOST_VARIABLES:
        raise ExperimentError(
            f"every plan is run only of patterns without OR and of at most {MOST_VARIABLES} "
            "variables; take some plans and cep.evaluate for larger ones"
        )
    known = measure_statistics(pattern, stream, seed=seed)
    problems = {
        name: PlanningProblem.from_pattern(pattern, known, name) for name in TIME_SELECTIVITIES
    }
    chosen = generators_from(generators)
    choices = {
        name: {its.name: _shape(plan_problem(problem, its, seed=seed)) for its in chosen}
        for name, problem in problems.items()
    }
    plans: list[Plan] = [OrderPlan(order) for order in permutations(names)]
    plans += [TreePlan(tree) for tree in all_trees(names)]
    rows: list[dict[str, Any]] = []
    for each in plans:
        indices = indices_of(each, names)
        row: dict[str, Any] = {"plan_kind": each.kind, "plan": each.text}
        for column, (reading, model) in COSTS.items():
            cost = COST_MODELS[model].log_cost(problems[reading], each.kind, indices)
            row[column] = math.exp(cost)
        for column, reading in (("chosen_by", "adjacent"), ("chosen_by_exact", "exact")):
            its = [name for name, shape in choices[reading].items() if shape == _shape(each)]
            row[column] = ", ".join(its)
        rows.append(row)
    fixed = [fixed_plan(each.text, each) for each in plans]
    grid = Grid(generators=fixed, repetitions=repetitions)
    runs = results_frame(measure_pattern(GivenSpec.of(pattern), stream, known, grid))
    check_agreement(runs)
    of_plans = runs[runs["status"] == OK].groupby("generator")
    found = of_plans.agg(seconds=("seconds", "min"), median_seconds=("seconds", "median"))
    found = found.reindex([each.text for each in plans])
    found["times_trivial"] = found["seconds"] / found["seconds"].iloc[0]
    counts = of_plans[["comparisons", "partial_matches_created", "matches"]].first().astype(int)
    found = found.join(counts.rename(columns={"comparisons": "pairs_compared"}))
    return pd.DataFrame(rows).join(found, on="plan")


def regrets(table: pd.DataFrame) -> pd.DataFrame:
    """Time lost by trusting a cost model: its cheapest plan against the quickest of :func:`time_every_plan`.

    One row a kind of plan and cost model: ``plan_kind``, ``model``, ``plan`` (the cheapest),
    ``times_quickest`` (its time over the shortest of the kind) and ``rank_correlation`` of cost and
    time over all plans of the kind.
    """
    rows = []
    for kind, part in table.groupby("plan_kind", sort=False):
        for model in COSTS:
            cheapest = part.loc[part[model].idxmin()]
            rows.append(
                {
                    "plan_kind": kind,
                    "model": model,
                    "plan": cheapest["plan"],
                    "times_quickest": cheapest["seconds"] / part["seconds"].min(),
                    "rank_correlation": part[model].rank().corr(part["seconds"].rank()),
                }
            )
    return pd.DataFrame(rows)


def _shape(made: Plan) -> Any:
    """Equal for plans that join the same, whichever child of a node is written first."""

    def unordered(tree: Any) -> Any:
        return tree if isinstance(tree, str) else frozenset(map(unordered, tree))

    return tuple(made.order) if isinstance(made, OrderPlan) else unordered(made.tree)
