"""Q-errors of cost models: estimated against measured partial matches at the nodes of plans.

PM = ∏ W·r · ∏ sel of a set of variables [kolchinsky2018]_, sections 3.1 and 3.2, is the expected
number of combinations of events that fit each other and lie within one window: those *alive* at any
one moment. In a window's time more are *created*: a combination of k events that arrive
independently is alive for a k-th of a window on average, so k times PM. Both are measured, see
:mod:`cepbench.experiments.studies.kolchinsky2018.node_counts`, and an estimate is held against those alive.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT
from cepbench.errors import (
    PartialMatchLimitError,
    PlanningRefusedError,
    UnsupportedPatternError,
)
from cepbench.experiments.studies.kolchinsky2018.node_counts import NodeCount, count_node
from cepbench.experiments.studies.kolchinsky2018.planning import pattern_columns
from cepbench.experiments.sweeps.workload import PatternSpec
from cepbench.patterns.model import Pattern
from cepbench.planning.costs.problem import TIME_SELECTIVITIES, PlanningProblem
from cepbench.planning.costs.q_error import q_error
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import PlanGenerator, generators_from
from cepbench.planning.statistics.joint import JointConditions, measure_joint
from cepbench.planning.statistics.measure import sample_statistics
from cepbench.planning.statistics.model import Statistics
from cepbench.streams.event_stream import EventStream

#: Name → what it is: how the partial matches at a node are estimated.
MODELS = {
    "adjacent": "the paper's: 1/2 for two neighbours of a sequence, conditions independent",
    "exact": "1/k! for k events of a sequence, conditions independent",
    "joint": "1/k! for k events of a sequence, conditions that share a variable measured together",
}


def plan_nodes(
    specs: Sequence[PatternSpec],
    stream: EventStream,
    *,
    generators: Sequence[str | PlanGenerator] | None = None,
    seed: int = 0,
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
) -> pd.DataFrame:
    """Every node of every plan: estimated and measured partial matches.

    Statistics are measured on the stream. The generators, by default the paper's nine and
    user-defined ones, plan once per time selectivity. A node over which more partial matches have
    to be stored than the limit has no measured number.

    One row a pattern, plan, node and model of :data:`MODELS`: ``pattern_set``, ``size``,
    ``pattern_id``, ``pattern``, ``generator``, ``plan_kind``, ``time_selectivity`` (with which the
    plan was made), ``plan``, ``branch``, ``node`` (its number, prefixes or post-order),
    ``variables``, ``events`` (how many they are), ``conditions`` (variables and pairs of them that
    have any), ``linked`` (whether two of these share a variable), ``model``, ``estimated`` (NaN
    where the model takes no such pattern), ``measured`` (alive on average), ``created`` (per
    window), ``matches`` (in the stream), ``least``, ``heaviest`` (see :class:`NodeCount`),
    ``ratio`` (estimated / measured) and ``q_error``.

    Source: [kolchinsky2018]_, sections 3.1 and 3.2, for what is estimated.
    """
    chosen = generators_from(generators)
    rows: list[dict[str, Any]] = []
    for spec in specs:
        pattern = spec.pattern
        sample = sample_statistics(pattern, stream, seed=seed)
        statistics = sample.to_statistics()
        active = max(sample.active, sample.shortest)
        joint = measure_joint(pattern, stream, seed=seed)
        about = pattern_columns(spec)
        known: dict[tuple[int, frozenset[str]], list[dict[str, Any]]] = {}
        branches = [_Branch(branch, statistics, joint) for branch in pattern.branches()]
        for found in _plans(pattern, statistics, chosen, seed):
            for number, part in enumerate(found["made"].parts):
                for node, names in enumerate(part.nodes()):
                    key = (number, frozenset(names))
                    if key not in known:
                        known[key] = branches[number].node(
                            names, stream, active, partial_match_limit
                        )
                    place = {**about, **found, "plan": str(part), "branch": number, "node": node}
                    place.pop("made")
                    rows += [{**place, **its} for its in known[key]]
    table = pd.DataFrame(rows, columns=list(_COLUMNS))
    with np.errstate(divide="ignore", invalid="ignore"):
        table["ratio"] = table["estimated"] / table["measured"]
    table["q_error"] = q_error(table["estimated"], table["measured"], table["least"])
    return table


_COLUMNS = (
    "pattern_set", "size", "pattern_id", "pattern", "generator", "plan_kind", "time_selectivity", "plan",
    "branch", "node", "variables", "events", "conditions", "linked", "model", "estimated",
    "measured", "created", "matches", "least", "heaviest", "ratio", "q_error",
)  # fmt: skip


class _Branch:
    """A pattern without OR, with its estimates."""

    def __init__(self, pattern: Pattern, statistics: Statistics, joint: JointConditions) -> None:
        self.pattern = pattern
        self.statistics = statistics
        self.joint = joint
        self.problems: dict[str, PlanningProblem] = {}
        for name in TIME_SELECTIVITIES:
            try:
                self.problems[name] = PlanningProblem.from_pattern(pattern, statistics, name)
            except UnsupportedPatternError:  # what it refuses has no estimate
                continue

    def estimates(self, names: Sequence[str]) -> dict[str, float]:
        """Model → expected partial matches over some variables; infinite beyond a float."""
        index = [self.pattern.positive_names.index(name) for name in names]
        logs = {name: its.log_partial_matches(index) for name, its in self.problems.items()}
        if "exact" in logs:
            logs["joint"] = logs["exact"] + self.joint.log_factor(names)
        with np.errstate(over="ignore"):
            return {
                name: float(np.exp(logs[name])) if name in logs else math.nan for name in MODELS
            }

    def node(
        self, names: Sequence[str], stream: EventStream, active: float, limit: int
    ) -> list[dict[str, Any]]:
        """Estimates and measurement of a node, one row per model."""
        groups = {frozenset(c.variables) for c in self.pattern.conditions}
        groups = {group for group in groups if group <= {*names}}
        try:
            count = count_node(
                self.pattern,
                stream,
                names,
                statistics=self.statistics,
                active=active,
                partial_match_limit=limit,
            )
        except PartialMatchLimitError:
            count = NodeCount(0, math.nan, math.nan, math.nan, math.nan)
        measured = {
            "variables": ", ".join(n for n in self.pattern.positive_names if n in names),
            "events": len(names),
            "conditions": len(groups),
            "linked": sum(map(len, groups)) > len(frozenset().union(*groups)),
            "measured": count.alive,
            "created": count.created,
            "matches": count.matches,
            "least": count.least,
            "heaviest": count.heaviest,
        }
        return [
            {**measured, "model": model, "estimated": estimated}
            for model, estimated in self.estimates(names).items()
        ]


def _plans(
    pattern: Pattern, statistics: Statistics, generators: Sequence[PlanGenerator], seed: int
) -> Iterator[dict[str, Any]]:
    """Each generator's plans; those that a generator or a time selectivity refuses are left out."""
    for time_selectivity in TIME_SELECTIVITIES:
        for generator in generators:
            try:
                made = plan(
                    pattern, statistics, generator, seed=seed, time_selectivity=time_selectivity
                )
            except (PlanningRefusedError, UnsupportedPatternError):
                continue
            yield {
                "generator": generator.name,
                "plan_kind": generator.kind,
                "time_selectivity": time_selectivity,
                "made": made,
            }
