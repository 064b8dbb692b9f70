"""``cepbench generators`` and ``cepbench evaluators``: what is registered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cepbench.experiments.plugins import load_plugins
from cepbench.papers import ALGORITHMS, REFERENCES
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.options import declared, examples

GENERATORS_EXAMPLES = examples("cepbench generators")
EVALUATORS_EXAMPLES = examples("cepbench evaluators --json")

#: Attributes of an evaluator with ``--json``.
EVALUATOR_KEYS = (
    "name", "kinds", "without_plan", "strategies", "constructs", "outputs", "batches", "latency",
    "node_times", "snapshots",
)  # fmt: skip


@declared
def generators(plugin: list[Path] | None = None, json: bool = False) -> None:
    """List the plan generators, with their sources.

    Those marked as default, user-defined ones included, are compared if no generator is named.
    """
    with out.progress("loading plan generators"):
        from cepbench.planning.costs.models import COST_MODELS
        from cepbench.planning.planners.generate import plan  # noqa: F401  registers them
        from cepbench.planning.planners.registry import PLAN_GENERATORS, default_generators
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
            "user_defined": not entry.is_builtin,
        }
        for entry in PLAN_GENERATORS.values()
    ]
    if json:
        out.write_json(rows)
        return
    for row in rows:
        if len(row["costs"]) == len(COST_MODELS):
            row["costs"] = "all"
    out.write_table(
        rows,
        {"name": "name", "kind": "kind", "default": "default", "exact": "exact", "costs": "costs",
         "at most": "most_variables", "source": "source"},
        shrink="source",
    )  # fmt: skip
    out.write_line()
    out.write_text(
        "exact: its plan has the least cost in its plan space, otherwise it is a heuristic; costs: "
        f"the supported values of --cost, of {', '.join(COST_MODELS)}; at most: variables"
    )


@declared
def evaluators(plugin: list[Path] | None = None, json: bool = False) -> None:
    """List the evaluators, with their sources."""
    with out.progress("loading evaluators"):
        from cepbench.engines.detection.registry import EVALUATORS
    load_plugins(plugin)
    rows: list[dict[str, Any]] = [
        {
            **{key: getattr(entry, key) for key in EVALUATOR_KEYS},
            "options": {name: option.default for name, option in entry.options.items()},
            "source": _source(entry.name, entry.source),
            "user_defined": not entry.is_builtin,
        }
        for entry in EVALUATORS.values()
    ]
    if json:
        out.write_json(rows)
        return
    for row in rows:
        row["plans"] = [*row["kinds"], *["none"] * row["without_plan"]]
        row["options"] = [f"{name}={value}" for name, value in row["options"].items()]
    options = ["options"] if any(row["options"] for row in rows) else []
    out.write_table(rows, ["name", "plans", "source", *options], shrink="source")


def _source(name: str, registered: str) -> str:
    """Authors, year and section of an algorithm from a paper; otherwise its registered source."""
    for algorithm in ALGORITHMS:
        if algorithm.name == name:
            return f"{REFERENCES[algorithm.paper].label}, {algorithm.place}"
    return registered
