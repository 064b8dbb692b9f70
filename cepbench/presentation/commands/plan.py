"""``cepbench plan``: plans of a pattern, with estimated costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import typer

from cepbench.errors import CepbenchError, PlanGeneratorError, PlanningRefusedError, StatisticsError
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.inputs import Inputs, check_kind, last_variable, texts
from cepbench.presentation.commands.options import declared, examples
from cepbench.text_table import text_width

if TYPE_CHECKING:
    from cepbench.patterns.model import Pattern
    from cepbench.planning.workloads.model import Workload

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

#: Those that are attributes of the plan.
_OF_PLANS = ("cost", "log_cost", "cost_model", "log_latency")

#: Keys of its nodes.
NODE_KEYS = (
    "branch", "node", "parent", "kind", "variables", "step", "operator", "estimated",
    "log_estimated", "cost", "log_cost",
)  # fmt: skip


@declared
def plan(
    inputs: Inputs,
    generator: list[str] | None = None,
    planner: list[str] | None = None,
    alpha: float = 0.0,
    last: str | None = None,
    cost: str | None = None,
    rewrite: bool = False,
    time: str | None = None,
) -> None:
    """Show plans and their estimated costs.

    Prints a table of plan generators, draws the plans of the given ones, or else the cheapest order
    and the cheapest tree, and says whether choosing a plan is worth it. Costs of orders and of
    trees are not comparable.

    For a workload, the table has the planners of reused matches, and the cheapest plan or those of
    the given planners are shown.
    """
    asked = inputs.read_queries(needs_data=inputs.statistics is None)
    check_kind(asked, planner, alpha=alpha, last=last, rewrite=rewrite, time=time)
    if asked.by_query:
        if generator and len(generator) > 1:
            raise typer.BadParameter(
                "the queries computed from scratch are joined along plans of one generator; give one",
                param_hint="'--generator'",
            )
        of_scratch = generator[0] if generator else None
        _plan_workload(inputs, asked, planner, of_scratch, cost or "calibrated")
        return
    pattern = asked

    from cepbench.patterns import rewriting
    from cepbench.planning.costs.models import COST_MODELS, cost_from
    from cepbench.planning.planners.registry import default_generators, find_generator
    from cepbench.presentation.explainer.explain import explain

    rewritten = rewriting.Rewriting(pattern, ())
    if rewrite:
        rewritten = rewriting.rewrite(pattern, time=time)
        pattern = rewritten.pattern
    model = cost_from(cost or "throughput", alpha).name
    seeks_last = last is None and bool(alpha or model == "latency")
    chosen = dict.fromkeys(find_generator(name) for name in generator or default_generators())
    stream = None
    if inputs.data is not None and (inputs.statistics is None or seeks_last):
        pattern, stream = inputs.read_stream(pattern)
    statistics = inputs.read_statistics(pattern, stream)
    its_last = last_variable(pattern, stream, statistics) if seeks_last else last
    rows: list[dict[str, Any]] = [
        dict.fromkeys(KEYS) | {"generator": each.name, "kind": each.kind, "nodes": []}
        for each in chosen
    ]
    plans = _plans_of(
        rows, pattern, statistics, seed=inputs.seed, alpha=alpha, last=its_last, cost=model
    )
    for row in rows:
        if found := plans.get(row["generator"]):
            row |= {key: getattr(found, key) for key in _OF_PLANS} | {"plan": found.text}
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
            if found := explanations.get(row["generator"]):
                row["nodes"] = found.nodes[list(NODE_KEYS)]
        out.write_json(
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
        out.write_line(rewritten.describe())
        out.write_line()
    out.write_line(pattern.describe())
    out.write_line()
    _table(rows, ["generator", "kind"], with_latency=bool(alpha))
    for explanation in explanations.values():
        out.write_line()
        out.write_line(replace(explanation, stakes=None, choice=None).describe(text_width()))
    if at_stake is not None:
        out.write_line()
        out.write_text(at_stake.describe())


def _plan_workload(
    inputs: Inputs,
    workload: Workload,
    planners: Sequence[str] | None,
    generator: str | None,
    cost: str,
) -> None:
    """The plans of several planners with their costs, then the cheapest one or the named ones."""
    from cepbench.planning.planners.sharing.registry import WORKLOAD_PLANNERS
    from cepbench.presentation.comparison.compare import computed_from_others

    stream = None
    if inputs.statistics is None:
        workload, stream = inputs.read_stream(workload)
    statistics = inputs.read_statistics(workload, stream)
    counted = all(pattern.aggregates for pattern in workload.patterns.values())
    shares = "aggregates" if counted else "matches"
    names = planners or [n for n, entry in WORKLOAD_PLANNERS.items() if entry.shares == shares]
    chosen = dict.fromkeys(WORKLOAD_PLANNERS.find(name).name for name in names)
    rows: list[dict[str, Any]] = [
        {"planner": name, "cost": None, "seconds": None, "steps": []} for name in chosen
    ]
    plans = _plans_of(
        rows, workload, statistics, delays=True, seed=inputs.seed, generator=generator, cost=cost
    )
    reused = {}
    for row in rows:
        found = plans.get(row["planner"])
        if found is None:
            continue
        row["cost"] = found.cost
        if found.sources is not None:
            row["steps"] = found.steps
            reused[found.planner] = computed_from_others(found)
    if inputs.json:
        of_queries = {query: its.to_dict() for query, its in statistics.items()}
        out.write_json({**texts(workload), "statistics": of_queries, "cost": cost, "plans": rows})
        return
    out.write_line(str(workload))
    out.write_line()
    for row in rows:
        cost_of_plan = row["cost"]
        row |= {
            "kind": "",
            "plan": reused.get(row["planner"], ""),
            "log_cost": -math.inf if cost_of_plan == 0 else cost_of_plan and math.log(cost_of_plan),
        }
    _table(rows, ["planner"], plan="from other queries")
    cheapest = min(plans.values(), key=lambda its: its.cost or 0.0)
    for its in plans.values() if planners else [cheapest]:
        out.write_line()
        out.write_line(its.describe())


def _plans_of(
    rows: Sequence[dict[str, Any]], asked: Pattern | Workload, statistics: Any, **options: Any
) -> dict[str, Any]:
    """Plan with what each row begins with: a generator or a planner.

    Rows get their ``status``, ``reason`` and the ``seconds`` of planning. A PlanGeneratorError if there is
    no plan.
    """
    from cepbench.experiments.sweeps.measure import timed_plan
    from cepbench.experiments.sweeps.rotation import outcome_of

    plans = {}
    for row in rows:
        name = next(iter(row.values()))
        with out.progress(f"planning with {name}"):
            try:
                plans[name], row["seconds"] = timed_plan(asked, statistics, name, **options)
                row |= {"status": "ok", "reason": None}
            except StatisticsError:
                raise
            except CepbenchError as error:
                row |= outcome_of(error, PlanningRefusedError, named=False)
    if not plans:
        reasons = (f"{next(iter(row.values()))}: {row['reason']}" for row in rows)
        raise PlanGeneratorError("\n".join(reasons))
    return plans


def _table(
    rows: Sequence[Mapping[str, Any]],
    names: Sequence[str],
    *,
    plan: str = "plan",
    with_latency: bool = False,
) -> None:
    from cepbench.planning.plans.notes import shown_log

    least = {row["kind"]: row["log_cost"] for row in _cheapest(rows)}
    lines = []
    for row in rows:
        line = {name: row[name] for name in names}
        lines.append(line)
        if row["log_cost"] is None:
            line[plan] = f"{row['status']}: {row['reason']}"
            continue
        line["est. cost"] = shown_log(row["log_cost"])
        if least[row["kind"]] > -math.inf:  # nothing is a multiple of a cost of 0
            times = math.exp(min(row["log_cost"] - least[row["kind"]], 700.0))
            line["× least"] = "1" if times < 1.005 else f"{times:,.3g}"
        if row.get("log_latency") is not None:
            line["latency"] = shown_log(row["log_latency"])
        line["ms"] = f"{1e3 * row['seconds']:.2f}"
        line[plan] = row["plan"]
    numbers = ["est. cost", "× least", *["latency"] * with_latency, "ms"]
    out.write_table(lines, [*names, *numbers, plan], shrink=plan, right=numbers)


def _cheapest(rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The first row of least cost of each kind of plan."""
    costed = [row for row in rows if row["log_cost"] is not None]
    return [
        min((row for row in costed if row["kind"] == kind), key=itemgetter("log_cost"))
        for kind in dict.fromkeys(row["kind"] for row in costed)
    ]
