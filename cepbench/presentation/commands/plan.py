"""``cepbench plan``: plans of a pattern, with estimated costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from cepbench.errors import PlanGeneratorError
from cepbench.presentation.commands import queries
from cepbench.presentation.commands.inputs import Inputs, last_variable
from cepbench.presentation.commands.options import (
    AlphaOption,
    CostOrDefault,
    GeneratorsOption,
    LastOption,
    PlannersOption,
    RewriteOption,
    TimeOption,
    examples,
    with_shared,
)
from cepbench.presentation.commands.output import (
    width,
    write_json,
    write_line,
    write_table,
)

if TYPE_CHECKING:
    from cepbench.patterns.model import Pattern
    from cepbench.planning.planners.registry import PlanGenerator
    from cepbench.planning.plans.model import AnyPlan
    from cepbench.planning.statistics.model import Statistics

EXAMPLES = examples(
    'cepbench plan "PATTERN SEQ(MSFT a, GOOG b, CSCO c)\n'
    '    WHERE a.difference < b.difference WITHIN 20 minutes" \\\n'
    "    --data nasdaq-style/sample --generator DP-LD --generator DP-B",
    "cepbench plan --pattern-name rare-last --data nasdaq-style/sample",
    "cepbench plan pattern.txt --statistics statistics.json",
)

#: Keys of a plan with ``--json``.
KEYS = (
    "generator", "kind", "plan", "cost", "log_cost", "cost_model", "log_latency", "seconds",
    "status", "reason", "nodes",
)  # fmt: skip

#: Keys of its nodes.
NODE_KEYS = (
    "branch", "node", "parent", "kind", "variables", "step", "operator", "estimated",
    "log_estimated", "cost", "log_cost",
)  # fmt: skip


@with_shared
def plan(
    inputs: Inputs,
    generator: GeneratorsOption = None,
    planner: PlannersOption = None,
    alpha: AlphaOption = 0.0,
    last: LastOption = None,
    cost: CostOrDefault = None,
    rewrite: RewriteOption = False,
    time: TimeOption = None,
) -> None:
    """Show plans and their estimated costs.

    Prints a table of plan generators, then drawings of the plans of the given ones, or else of the
    cheapest order and the cheapest tree, and whether choosing a plan is worth it. Costs of orders
    and of trees are not comparable.

    Of several queries, each on lines that begin with its name, Q1 = PATTERN …, the planners of what
    they reuse, and the cheapest plan or those of the given planners.
    """
    asked = inputs.read_queries(needs_data=inputs.statistics is None)
    if asked.by_query:
        queries.check_options(alpha=alpha, last=last, rewrite=rewrite, time=time)
        queries.plan(inputs, asked, planner, queries.only_one(generator), cost)
        return
    queries.check_pattern(planner=planner)
    pattern, cost = asked, cost or "throughput"

    from cepbench.patterns import rewriting
    from cepbench.planning.costs.models import COST_MODELS, cost_from
    from cepbench.planning.planners.registry import default_generators, find_generator
    from cepbench.presentation.explainer.explain import explain

    rewritten = rewriting.Rewriting(pattern, ())
    if rewrite:
        rewritten = rewriting.rewrite(pattern, time=time)
        pattern = rewritten.pattern
    model = cost_from(cost, alpha).name
    seeks_last = last is None and bool(alpha or model == "latency")
    chosen = {find_generator(name).name: None for name in generator or default_generators()}
    stream = None
    if inputs.data is not None and (inputs.statistics is None or seeks_last):
        stream = inputs.read_stream(pattern)
    statistics = inputs.read_statistics(pattern, stream)
    its_last = last_variable(pattern, stream, statistics) if seeks_last else last
    plans: dict[str, AnyPlan] = {}
    rows = [
        _planned(
            find_generator(name), plans, pattern, statistics,
            seed=inputs.seed, alpha=alpha, last=its_last, cost=model,
        )
        for name in chosen
    ]  # fmt: skip
    if not plans:
        raise PlanGeneratorError("\n".join(f"{row['generator']}: {row['reason']}" for row in rows))
    drawn = [row["generator"] for row in (rows if generator or inputs.json else _cheapest(rows))]
    by_node = model if COST_MODELS[model].form != "plans" else "throughput"
    explanations = {
        name: explain(pattern, plans[name], statistics, last=its_last, cost=by_node)
        for name in drawn
        if name in plans
    }
    at_stake = next((found.stakes for found in explanations.values()), None)
    if inputs.json:
        for row in rows:
            found = explanations.get(row["generator"])
            row["nodes"] = [] if found is None else found.nodes[list(NODE_KEYS)]
        write_json(
            {
                "pattern": str(pattern),
                "steps": [
                    {"rule": step.rule.name, "before": str(step.before)} for step in rewritten.steps
                ],
                "statistics": statistics.to_dict(),
                "cost": model,
                "alpha": alpha,
                "stakes": None if at_stake is None else at_stake.to_dict(),
                "plans": rows,
            }
        )
        return
    if rewrite:
        write_line(rewritten.describe())
        write_line()
    write_line(pattern.describe())
    write_line()
    _table(rows, with_latency=bool(alpha))
    for explanation in explanations.values():
        write_line()
        write_line(replace(explanation, stakes=None).describe(width()))
    if at_stake is not None:
        write_line()
        for line in wrap(at_stake.describe(), width()):
            write_line(line)


def _planned(
    generator: PlanGenerator,
    plans: dict[str, AnyPlan],
    pattern: Pattern,
    statistics: Statistics,
    **options: Any,
) -> dict[str, Any]:
    """Plan with one generator, into ``plans``; a row of :data:`KEYS`, also if it refuses or fails.

    Raises
    ------
    StatisticsError
        If statistics are missing or invalid, for any generator.
    """
    row = dict.fromkeys(KEYS) | {"generator": generator.name, "kind": generator.kind, "nodes": []}
    found, outcome = queries.planned(pattern, statistics, generator.name, **options)
    if found is None:
        return row | outcome
    plans[generator.name] = found
    noted = {key: getattr(found, key) for key in ("cost", "log_cost", "cost_model", "log_latency")}
    return row | noted | outcome | {"plan": found.text}


def _table(rows: Sequence[Mapping[str, Any]], *, with_latency: bool) -> None:
    from cepbench.planning.plans.notes import shown_log

    least = {row["kind"]: row["log_cost"] for row in _cheapest(rows)}
    lines = []
    for row in rows:
        line = {"generator": row["generator"], "kind": row["kind"]}
        lines.append(line)
        if row["log_cost"] is None:
            line["plan"] = f"{row['status']}: {row['reason']}"
            continue
        times = math.exp(min(row["log_cost"] - least[row["kind"]], 700.0))
        line["est. cost"] = shown_log(row["log_cost"])
        line["× least"] = "1" if times < 1.005 else f"{times:,.3g}"
        latency = row["log_latency"]
        if latency is not None:
            line["latency"] = shown_log(latency)
        line["ms"] = f"{1e3 * row['seconds']:.2f}"
        line["plan"] = row["plan"]
    numbers = ["est. cost", "× least", *["latency"] * with_latency, "ms"]
    write_table(lines, ["generator", "kind", *numbers, "plan"], shrink="plan", right=numbers)


def _cheapest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first row of least cost of each kind of plan."""
    costed = [row for row in rows if row["log_cost"] is not None]
    return [
        min((row for row in costed if row["kind"] == kind), key=itemgetter("log_cost"))
        for kind in dict.fromkeys(row["kind"] for row in costed)
    ]
