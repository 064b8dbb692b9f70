"""``cepbench plan``: plans of a pattern, with estimated costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cepbench.commands.inputs import read_pattern, read_statistics, source_of
from cepbench.commands.options import (
    COLUMNS,
    AlphaOption,
    ColumnsOption,
    CostOption,
    DataOption,
    DaysOption,
    GeneratorsOption,
    JsonOption,
    LastOption,
    OnlyTypesOption,
    PatternArgument,
    PatternNameOption,
    PluginOption,
    SeedOption,
    StatisticsOption,
    examples,
)
from cepbench.commands.output import width, write_json, write_line, write_table
from cepbench.commands.planning import PlannedRow, last_of, plan_with
from cepbench.errors import PlanGeneratorError
from cepbench.plugins import load_plugins

if TYPE_CHECKING:
    from cepbench.explainer.explanation import Explanation

EXAMPLES = examples(
    'cepbench plan "PATTERN SEQ(MSFT a, GOOG b, CSCO c)\n'
    '    WHERE a.difference < b.difference WITHIN 20 minutes" \\\n'
    "    --data nasdaq-style/sample --generator DP-LD --generator DP-B",
    "cepbench plan --pattern-name rare-last --data nasdaq-style/sample",
    "cepbench plan pattern.txt --statistics statistics.json",
)

#: Keys of a plan's nodes with ``--json``.
NODE_KEYS = (
    "branch",
    "node",
    "parent",
    "kind",
    "variables",
    "step",
    "estimated",
    "log_estimated",
    "cost",
    "log_cost",
)


def plan(
    pattern: PatternArgument = None,
    data: DataOption = None,
    pattern_name: PatternNameOption = None,
    generator: GeneratorsOption = None,
    statistics: StatisticsOption = None,
    alpha: AlphaOption = 0.0,
    last: LastOption = None,
    cost: CostOption = "throughput",
    plugin: PluginOption = None,
    days: DaysOption = None,
    only_types: OnlyTypesOption = False,
    columns: ColumnsOption = COLUMNS,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Show plans and their estimated costs.

    Prints a table of plan generators, then drawings of the plans of the given ones, or else of the
    cheapest order and the cheapest tree. Costs of orders and of trees are not comparable.
    """
    source = source_of(data, columns) if data or statistics is None else None
    asked = read_pattern(pattern, pattern_name, source)
    load_plugins(plugin)

    from cepbench.costs.models import cost_from
    from cepbench.explainer.explain import explain
    from cepbench.planners.registry import default_generators, find_generator

    model = cost_from(cost, alpha).name
    with_latency = alpha or model == "latency"
    names = [find_generator(name).name for name in generator or default_generators()]
    stream = None
    if source is not None and (statistics is None or (with_latency and last is None)):
        stream = source.stream(asked, days=days, only_types=only_types)
    known = read_statistics(statistics, asked, stream, seed)
    its_last = last if last or not with_latency else last_of(asked, stream, known)
    rows = [
        plan_with(name, asked, known, seed=seed, alpha=alpha, last=its_last, cost=model)
        for name in dict.fromkeys(names)
    ]
    if not any(row.plan for row in rows):
        raise PlanGeneratorError("\n".join(f"{row.generator}: {row.reason}" for row in rows))

    def explained(row: PlannedRow) -> Explanation:
        assert row.plan is not None
        return explain(asked, row.plan, known, last=its_last)

    if json:
        write_json(
            {
                "pattern": str(asked),
                "statistics": known.to_dict(),
                "cost": model,
                "alpha": alpha,
                "plans": [
                    row.to_dict()
                    | {"nodes": explained(row).nodes[list(NODE_KEYS)] if row.plan else []}
                    for row in rows
                ],
            }
        )
        return
    write_line(asked.describe())
    write_line()
    _table(rows, alpha)
    for row in rows if generator else _cheapest(rows):
        if row.plan is not None:
            write_line()
            write_line(explained(row).describe(width()))


def _table(rows: Sequence[PlannedRow], alpha: float) -> None:
    from cepbench.plans.notes import shown_log

    least = {row.kind: row.log_cost for row in reversed(_cheapest(rows))}
    lines = []
    for row in rows:
        if row.plan is None or row.log_cost is None:
            lines.append([row.generator, row.kind, "", "", "", "", f"{row.status}: {row.reason}"])
            continue
        times = math.exp(min(row.log_cost - (least[row.kind] or 0.0), 700.0))
        latency = row.plan.log_latency
        lines.append(
            [
                row.generator,
                row.kind,
                shown_log(row.log_cost),
                "1" if times < 1.005 else f"{times:,.3g}",
                "" if latency is None else "0" if latency == -math.inf else shown_log(latency),
                f"{1e3 * (row.seconds or 0.0):.2f}",
                row.text,
            ]
        )
    heads = ["generator", "kind", "est. cost", "× least", "latency", "ms", "plan"]
    if not alpha:
        heads.remove("latency")
        lines = [[*line[:4], *line[5:]] for line in lines]
    write_table(
        lines, heads, shrink=len(heads) - 1, right=("est. cost", "× least", "latency", "ms")
    )


def _cheapest(rows: Sequence[PlannedRow]) -> list[PlannedRow]:
    """The first plan of least cost of each kind."""
    found: dict[str, PlannedRow] = {}
    for row in rows:
        if row.log_cost is None:
            continue
        best = found.get(row.kind)
        if best is None or best.log_cost is None or row.log_cost < best.log_cost:
            found[row.kind] = row
    return list(found.values())
