"""``cepbench generators`` and ``cepbench evaluators``: the registered ones."""

from __future__ import annotations

from typing import Any

from cepbench.commands.options import JsonOption, PluginOption, examples
from cepbench.commands.output import progress, write_json, write_line, write_table, write_text
from cepbench.papers import ALGORITHMS, REFERENCES
from cepbench.plugins import load_plugins

GENERATORS_EXAMPLES = examples("cepbench generators")
EVALUATORS_EXAMPLES = examples("cepbench evaluators --json")


def generators(plugin: PluginOption = None, json: JsonOption = False) -> None:
    """List the plan generators, with their sources.

    Those marked as default, user-defined ones included, are compared where no generator is named.
    """
    with progress("loading plan generators"):
        from cepbench.costs.models import COST_MODELS
        from cepbench.planners.generate import plan  # noqa: F401  registers them
        from cepbench.planners.registry import PLAN_GENERATORS, default_generators
    load_plugins(plugin)
    usual = set(default_generators())
    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "kind": entry.kind,
            "exact": entry.exact,
            "costs": [name for name, cost in COST_MODELS.items() if entry.takes(cost)],
            "default": entry.name in usual,
            "most_variables": entry.max_size,
            "space": entry.space,
            "description": entry.description,
            "source": _source(entry.name, entry.source),
            "own": not entry.is_builtin,
        }
        for entry in PLAN_GENERATORS.values()
    ]
    if json:
        write_json(rows)
        return
    write_table(
        (
            [
                row["name"],
                row["kind"],
                row["default"],
                row["exact"],
                ", ".join(row["costs"]) if len(row["costs"]) < len(COST_MODELS) else "all",
                row["most_variables"],
                row["source"],
            ]
            for row in rows
        ),
        ["name", "kind", "default", "exact", "costs", "at most", "source"],
        shrink=6,
    )
    write_line()
    write_text(
        "exact: its plan is of least cost among all it chooses from, else it is a heuristic; costs: "
        f"what --cost it takes, of {', '.join(COST_MODELS)}; at most: variables it takes"
    )


def evaluators(plugin: PluginOption = None, json: JsonOption = False) -> None:
    """List the evaluators, with their sources."""
    with progress("loading evaluators"):
        from cepbench.evaluators.registry import EVALUATORS
    load_plugins(plugin)
    rows: list[dict[str, Any]] = [
        {
            "name": entry.name,
            "kinds": list(entry.kinds),
            "without_plan": entry.without_plan,
            "strategies": list(entry.strategies),
            "constructs": list(entry.constructs),
            "outputs": list(entry.outputs),
            "options": {name: option.default for name, option in entry.options.items()},
            "batches": entry.batches,
            "latency": entry.latency,
            "node_times": entry.node_times,
            "snapshots": entry.snapshots,
            "source": _source(entry.name, entry.source),
            "own": not entry.is_builtin,
        }
        for entry in EVALUATORS.values()
    ]
    if json:
        write_json(rows)
        return
    heads = ["name", "plans", "source"]
    cells = [
        [row["name"], ", ".join([*row["kinds"], *["none"] * row["without_plan"]]), row["source"]]
        for row in rows
    ]
    if any(row["options"] for row in rows):
        heads.append("options")
        for line, row in zip(cells, rows, strict=True):
            line.append(", ".join(f"{name}={value}" for name, value in row["options"].items()))
    write_table(cells, heads, shrink=2)


def _source(name: str, registered: str) -> str:
    """Authors, year and place of an algorithm from a paper; otherwise its registered source."""
    for algorithm in ALGORITHMS:
        if algorithm.name == name:
            reference = REFERENCES[algorithm.paper]
            first = reference.authors.split(",")[0].split(". ")[-1]
            others = " et al." if reference.authors.count(",") > 1 else ""
            if reference.authors.count(",") == 1:
                others = f" and {reference.authors.split(', ')[1].split('. ')[-1]}"
            return f"{first}{others} {reference.year}, {algorithm.place}"
    return registered
