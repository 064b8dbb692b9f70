"""Expected partial matches that a plan creates per event, from statistics alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.branches import branch_problems
from cepbench.planning.plans.given import plan_for, plan_from
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.notes import from_log
from cepbench.planning.plans.tree import leaves, post_order, relabel
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.model import Statistics


@dataclass(frozen=True, slots=True)
class Created:
    """Expected partial matches and matches per event of the pattern's types."""

    #: Of two events or more, without matches, as evaluators count ``partial_matches_created``;
    #: infinite where the number exceeds a float.
    partial_matches: float
    #: Before negation and selection strategies reject any.
    matches: float


def created_per_event(
    pattern: Pattern | str,
    plan: AnyPlan,
    statistics: Statistics,
    *,
    time_selectivity: str = "adjacent",
) -> Created:
    """Expected number of partial matches that a plan creates per event.

    At any time PM combinations of k events coexist within the window. Events that arrive
    independently are together within it for a k-th of its length on average, so the combinations
    are replaced k times per window: a node creates k·PM partial matches while Σ W·r events of the
    pattern's types arrive.

    Source: [kolchinsky2018]_, sections 3.1 and 3.2, for PM. A set of a Kleene variable counts as one
    event in k, and consumed events are estimated as in the cost model, so the numbers are rough for
    such patterns.

    Raises PlanError if the plan does not fit the pattern; StatisticsError, UnsupportedPatternError
    as for :func:`cepbench.planning.planners.generate.plan`.
    """
    pattern, statistics = pattern_from(pattern), statistics_from(statistics)
    branches = pattern.branches()
    plan = plan_for(plan_from(plan), [branch.planned_names for branch in branches])
    problems = branch_problems(pattern, statistics, time_selectivity)
    arriving = _arriving(branches, statistics)
    if not arriving:
        return Created(0.0, 0.0)
    log_arriving = math.log(arriving)
    inner, roots = [-math.inf], []
    for part, problem in zip(plan.parts, problems, strict=True):
        sizes = problem.log_node_sizes("tree", relabel(part.tree, problem.names.index))
        counts = np.array([len(tuple(leaves(node))) for node in post_order(part.tree)])
        created = sizes + np.log(counts) - log_arriving
        inner += list(created[:-1][counts[:-1] > 1])
        roots.append(created[-1])
    return Created(*(from_log(float(np.logaddexp.reduce(each))) for each in (inner, roots)))


def _arriving(branches: Sequence[Pattern], statistics: Statistics) -> float:
    """Expected events per window of all types of the pattern; a type of two variables counts once."""
    # Statistics given by hand may have several rates of a type: the largest counts.
    by_type: dict[str | None, float] = {}
    for branch in branches:
        for variable in branch.variables:
            if variable.name in statistics.names:
                rate = statistics.cardinality(variable.name, branch.window.seconds)
                by_type[variable.type] = max(rate, by_type.get(variable.type, 0.0))
    # Events of any type are those of all types.
    return by_type.get(None) or sum(by_type.values())
