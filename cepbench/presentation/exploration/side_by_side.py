"""The plans of several generators for one pattern, side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from cepbench.arguments import seed as seed_from
from cepbench.errors import PlanGeneratorError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import PlanGenerator, generators_from
from cepbench.planning.plans.model import AnyPlan
from cepbench.planning.plans.notes import from_log
from cepbench.planning.statistics.given import statistics_from
from cepbench.planning.statistics.model import Statistics
from cepbench.presentation.explainer.explain import explain
from cepbench.presentation.explainer.explanation import Explanation
from cepbench.presentation.exploration.side_by_side_page import panels_html

#: Columns of the table of plans, in order.
COLUMNS = (
    "generator", "plan_kind", "plan", "cost", "log_cost", "relative_cost", "same_as", "reason",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class SideBySide:
    """The result of :func:`plans_side_by_side`; a notebook shows it as a row of annotated trees.

    Attributes
    ----------
    pattern : Pattern
    statistics : Statistics
    table : DataFrame
        One row per generator: ``generator``, ``plan_kind`` (``order`` or ``tree``), ``plan`` (as
        text), ``cost`` and ``log_cost``, ``relative_cost`` (to the least cost of the same kind;
        costs of orders and of trees are not comparable), ``same_as`` (the preceding generators
        with an equal plan) and ``reason`` (why there is no plan, else empty).
    plans : mapping of str to plan
        Generator → plan; generators without a plan are missing.
    explanations : mapping of str to Explanation
        Generator → its plan node by node.
    notes : mapping of str to str, optional
        Generator → a line shown with its plan.
    """

    pattern: Pattern
    statistics: Statistics
    table: pd.DataFrame
    plans: Mapping[str, AnyPlan]
    explanations: Mapping[str, Explanation]
    notes: Mapping[str, str] | None = None

    def __repr__(self) -> str:
        return f"SideBySide({len(self.plans)} plans of {self.pattern})"

    def describe(self) -> str:
        """The table as text."""
        shown = self.table[["generator", "plan_kind", "plan", "cost", "relative_cost"]].copy()
        shown["same as"] = self.table["same_as"].str.join(", ")
        return str(shown.to_string(index=False))

    def _repr_html_(self) -> str:
        return panels_html(self.table.to_dict("records"), self.explanations, self.notes)


def plans_side_by_side(
    pattern: Pattern | str,
    statistics: Statistics,
    generators: Sequence[str | PlanGenerator] | None = None,
    *,
    seed: int = 0,
    time_selectivity: str = "adjacent",
    alpha: float = 0.0,
    last: str | Sequence[str | None] | None = None,
) -> SideBySide:
    """Plan a pattern with several generators and compare their plans.

    Parameters
    ----------
    pattern : Pattern or str
        Of any kind, or its text; with OR, each plan has one tree per branch.
    statistics : Statistics
    generators : sequence of str or PlanGenerator, optional
        Names in ``cep.PLAN_GENERATORS``, for example; by default those of
        :func:`cepbench.planning.planners.registry.default_generators`.
    seed : int
        Seed of randomized generators.
    time_selectivity, alpha, last
        As ``cep.plan`` takes them.

    Returns
    -------
    SideBySide
        With ``table``, a DataFrame with one row per generator, ``plans`` by generator, and a picture
        in notebooks, in which the width of a line shows the expected number of partial matches.

    Raises
    ------
    PlanGeneratorError
        If a generator is unknown. A generator that refuses or fails has a row with the reason.
    StatisticsError, UnsupportedPatternError
        If the statistics do not fit the pattern, or an argument is invalid.
    """
    pattern, statistics = pattern_from(pattern), statistics_from(statistics)
    seed = seed_from(seed, PlanGeneratorError)  # checked once, not per generator
    chosen = generators_from(generators)
    plans: dict[str, AnyPlan] = {}
    explanations: dict[str, Explanation] = {}
    reasons: dict[str, str] = {}
    drawn: dict[tuple[str, str], Explanation] = {}
    for generator in chosen:
        try:
            found = plan(
                pattern, statistics, generator, seed=seed, time_selectivity=time_selectivity,
                alpha=alpha, last=last,
            )  # fmt: skip
        except PlanGeneratorError as error:
            reasons[generator.name] = str(error)
            continue
        plans[generator.name] = found
        key = (found.kind, found.text)
        if key not in drawn:
            drawn[key] = explain(
                pattern, found, statistics, time_selectivity=time_selectivity, alpha=alpha,
                last=last,
            )  # fmt: skip
        explanations[generator.name] = drawn[key]
    return SideBySide(pattern, statistics, _table(chosen, plans, reasons), plans, explanations)


def _table(
    generators: Sequence[PlanGenerator], plans: Mapping[str, AnyPlan], reasons: Mapping[str, str]
) -> pd.DataFrame:
    logs = {name: math.nan if p.log_cost is None else p.log_cost for name, p in plans.items()}
    best: dict[str, float] = {}
    for name, found in plans.items():
        best[found.kind] = min(best.get(found.kind, math.inf), logs[name])
    rows = []
    seen: dict[tuple[str, str], list[str]] = {}
    for generator in generators:
        name, kind = generator.name, generator.kind
        row: dict[str, object] = dict.fromkeys(COLUMNS, math.nan)
        row |= {"generator": name, "plan_kind": kind, "plan": "", "same_as": ()}
        row["reason"] = reasons.get(name, "")
        if name in plans:
            text = plans[name].text
            equal = seen.setdefault((kind, text), [])
            ratio = from_log(logs[name] - best[kind])
            row |= {
                "plan": text, "cost": plans[name].cost, "log_cost": logs[name],
                "relative_cost": ratio, "same_as": tuple(equal),
            }  # fmt: skip
            equal.append(name)
        rows.append(row)
    return pd.DataFrame(rows, columns=list(COLUMNS))
