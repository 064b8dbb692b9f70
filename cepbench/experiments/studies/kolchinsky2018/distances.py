"""Distances of plans from the optimum, for every generator and up to hundreds of events.

Extends [kolchinsky2018]_, Figure 7: beyond 22 events, to generators that the paper did not evaluate,
and against the optimum where an exact generator can give it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from cepbench.arguments import choice
from cepbench.errors import ExperimentError, UnsatisfiablePatternError
from cepbench.experiments.analysis.averages import (
    GEOMETRIC_MEAN,
    MEDIAN,
    RESAMPLES,
    WORST_CASE,
    averages,
)
from cepbench.experiments.analysis.common_patterns import common_rows, only_finite
from cepbench.experiments.analysis.summary import in_order_of
from cepbench.experiments.studies.kolchinsky2018.planning import (
    PlanningCase,
    case_of,
    large_patterns,
)
from cepbench.experiments.sweeps.cells import OK
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.patterns.model import quoted_unless_plain
from cepbench.patterns.parse import parse
from cepbench.planning.planners.registry import OPTIMAL, TOLERANCE
from cepbench.seeds import rng_for

#: Every size up to the limit of dynamic programming, then far beyond it.
SIZES = (*range(3, 25), 50, 100, 200)

#: Metric → statistics over the patterns of a size.
_SUMMARISED = {
    "normalized": {"geometric mean": GEOMETRIC_MEAN},
    "search_seconds": {"median": MEDIAN},
    "distance": {"geometric mean": GEOMETRIC_MEAN, "worst case": WORST_CASE},
}


def extended_patterns(
    cardinalities: Mapping[str, float],
    selectivities: Sequence[float] | np.ndarray,
    *,
    shape: str = "sequence",
    sizes: Sequence[int] = SIZES,
    patterns: int = 10,
    seed: int = 0,
) -> list[PlanningCase]:
    """Patterns of any size, at least 2, from any number of identifiers, with statistics.

    ``sequence``: those of
    :func:`cepbench.experiments.studies.kolchinsky2018.planning.large_patterns`, and, for more
    events than identifiers, with several variables of one identifier: each identifier is taken once
    before any is taken again.

    ``acyclic``: conjunctions of ``size - 1`` predicates, each between a new variable and one of
    those before it, drawn at random. Their predicate graph is a tree, the class for which
    generators such as IKKBZ exist; a sequence has the order of its neighbours in time beside its
    predicates, so its graph has cycles.

    Cardinalities are the expected events of each identifier per window and selectivities those to
    draw from, see :func:`cepbench.experiments.studies.kolchinsky2018.planning.measured_statistics`;
    there are so many patterns of each size.

    Raises ExperimentError if there is no such shape, no selectivity or identifier, or a number is
    too small.
    """
    choice(shape, "shape", _CONDITIONS, ExperimentError)
    pool = np.asarray(selectivities, dtype=np.float64)
    if not pool.size or not cardinalities:
        raise ExperimentError("there are no measured selectivities or identifiers to draw from")
    if patterns < 1 or min(sizes, default=0) < 2:
        raise ExperimentError(
            f"{patterns} patterns of sizes {list(sizes)}: at least one pattern, of at least 2 "
            "events, is needed"
        )
    cases = []
    for size in sizes:
        if shape == "sequence" and size <= len(cardinalities):
            cases += large_patterns(cardinalities, pool, sizes=[size], patterns=patterns, seed=seed)
            continue
        cases += [_drawn(cardinalities, pool, shape, size, k, seed) for k in range(patterns)]
    return cases


def with_distances(costs: pd.DataFrame) -> pd.DataFrame:
    """Costs of plans, of ``plan_costs``, relative to the least cost of their kind.

    With the columns ``log_distance``, ln of the cost over the least cost, ``distance`` and
    ``is_optimal``, all missing where the least cost is not known: where :data:`OPTIMAL` was not
    asked or has no plan.
    """
    ended_well = (costs["status"] == OK).to_numpy(bool)
    exact = costs["generator"].to_numpy() == costs["plan_kind"].map(OPTIMAL).to_numpy()
    key = ["pattern_id", "plan_kind"]
    best = costs[ended_well & exact].set_index(key)["plan_log_cost"].astype(float)
    least = best.reindex(pd.MultiIndex.from_frame(costs[key])).to_numpy(float)
    log_distance = costs["plan_log_cost"].to_numpy(float) - least
    known = ~np.isnan(log_distance)
    is_optimal = pd.Series(log_distance <= TOLERANCE, costs.index, dtype="boolean")
    return costs.assign(
        log_distance=log_distance,
        distance=np.exp(log_distance),
        is_optimal=is_optimal.where(known),
    )


def distance_summary(
    costs: pd.DataFrame, *, seed: int = 0, resamples: int = RESAMPLES
) -> pd.DataFrame:
    """Averages of :func:`with_distances` over the patterns of each size, in the shape that charts take.

    By ``pattern_set``, ``size``, ``generator`` and ``plan_kind``: ``normalized`` (geometric mean),
    ``search_seconds`` (median) and ``distance`` (geometric mean, worst case).
    """
    parts = only_finite(costs, _SUMMARISED).groupby(["pattern_set", "size"], sort=False)
    groups = (({"pattern_set": name, "size": size}, part) for (name, size), part in parts)
    run = ["generator", "plan_kind"]
    return averages(groups, run, _SUMMARISED, seed=seed, resamples=resamples)


def distance_table(costs: pd.DataFrame) -> pd.DataFrame:
    """A row a generator of :func:`with_distances` over all sizes of which the optimum is known.

    Distances of one kind of plan are over the same patterns for all generators; see
    :func:`cepbench.experiments.analysis.common_patterns.common_rows`.

    Columns ``pattern_set``, ``plan_kind``, ``generator``, ``geometric_mean`` and ``worst_case`` of
    the distance, ``optimal`` (share of plans of least cost), ``patterns`` (that these three are
    taken over; 0 for a generator that lacks more than half, which has none of the three),
    ``plans_made`` (patterns with a plan whose least cost is known), ``least_known`` (patterns whose
    least cost is known) and ``largest`` (size of the largest pattern with a plan, least cost known
    or not). Generators of one kind are in the order of the geometric mean.
    """
    rows = []
    kinds = only_finite(costs, ["log_distance"]).groupby(["pattern_set", "plan_kind"], sort=False)
    for (pattern_set, kind), every in kinds:
        known = every["log_distance"].notna()
        counted = common_rows(every, known.to_numpy(), ["generator"])["counted"]
        for generator, group in every.groupby("generator", sort=False):
            own = group[counted[group.index]]
            distances = own["log_distance"].to_numpy(float)
            made = group[group["status"] == OK]
            rows.append(
                {
                    "pattern_set": pattern_set,
                    "plan_kind": kind,
                    "generator": generator,
                    "geometric_mean": math.exp(distances.mean()) if len(own) else math.nan,
                    "worst_case": math.exp(distances.max()) if len(own) else math.nan,
                    "optimal": float(own["is_optimal"].mean()) if len(own) else math.nan,
                    "patterns": len(own),
                    "plans_made": int(group["log_distance"].notna().sum()),
                    "least_known": every.loc[known, "pattern_id"].nunique(),
                    "largest": int(made["size"].max()) if len(made) else pd.NA,
                }
            )
    table = pd.DataFrame(rows).sort_values(["plan_kind", "geometric_mean"], kind="stable")
    table = in_order_of(costs["pattern_set"].unique(), table, "pattern_set")
    return table.astype({"largest": "Int64"}).reset_index(drop=True)


def repeated_types(cases: Sequence[PlanningCase]) -> int:
    """Number of patterns with several variables of one identifier."""
    return sum(
        len({variable.type for variable in pattern.variables}) < len(pattern.variables)
        for pattern in (case.spec.pattern for case in cases)
    )


def _drawn(
    cardinalities: Mapping[str, float],
    pool: np.ndarray,
    shape: str,
    size: int,
    number: int,
    seed: int,
) -> PlanningCase:
    rng = rng_for(seed, shape, size, number)
    types = _spread(sorted(cardinalities), size, rng)
    names = [f"v{k + 1}" for k in range(size)]
    items = ", ".join(
        f"{quoted_unless_plain(kind)} {name}" for kind, name in zip(types, names, strict=True)
    )
    operator = "SEQ" if shape == "sequence" else "AND"
    while True:
        pairs = _CONDITIONS[shape](size, rng)
        texts = [
            f"{names[i]}.difference {'<' if rng.integers(2) else '>'} {names[j]}.difference"
            for i, j in pairs
        ]
        text = f"PATTERN {operator}({items}) WHERE {' AND '.join(texts)} WITHIN 20 minutes"
        try:
            spec = PatternSpec(f"{shape}-{size}-{number:04d}", shape, size, str(parse(text)), seed)
            break
        except UnsatisfiablePatternError:
            pass  # as for draw_workload: now and then predicates contradict each other
    return case_of(spec, cardinalities, pool, rng)


def _spread(identifiers: Sequence[str], size: int, rng: np.random.Generator) -> list[str]:
    """Identifiers in random order, none of them again before each has had its turn."""
    rounds = -(-size // len(identifiers))
    drawn = [identifiers[k] for _ in range(rounds) for k in rng.permutation(len(identifiers))]
    return [drawn[k] for k in rng.permutation(size)]


def _random_pairs(size: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Half as many pairs as variables, as in the paper's patterns."""
    later, earlier = np.tril_indices(size, -1)
    chosen = np.sort(rng.choice(len(later), size=size // 2, replace=False))
    return [(int(earlier[k]), int(later[k])) for k in chosen]


def _random_tree(size: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """A pair of each variable but the first with one before it, places in the pattern shuffled."""
    place = rng.permutation(size)
    edges = [(place[rng.integers(later)], place[later]) for later in range(1, size)]
    return sorted((int(min(edge)), int(max(edge))) for edge in edges)


#: Shape of a pattern -> what draws the pairs of its predicates.
_CONDITIONS: dict[str, Callable[[int, np.random.Generator], list[tuple[int, int]]]] = {
    "sequence": _random_pairs,
    "acyclic": _random_tree,
}
