"""``cepbench compare``: plan generators side by side."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepbench.arguments import named_values
from cepbench.presentation.commands import queries
from cepbench.presentation.commands.completion import complete_evaluators
from cepbench.presentation.commands.inputs import Inputs, run_alone
from cepbench.presentation.commands.options import (
    CostOrDefault,
    EvaluatorOptions,
    GeneratorsOption,
    PlannersOption,
    examples,
    with_shared,
)
from cepbench.presentation.commands.output import (
    progress_of_runs,
    share_bar,
    write_json,
    write_line,
    write_table,
    write_text,
)

if TYPE_CHECKING:
    from cepbench.experiments.sweeps.compare import Comparison

EXAMPLES = examples("cepbench compare --pattern-name rare-last --data nasdaq-style/sample")

#: Ratio of the quartiles of a plan's runs above which a warning of noise is printed.
NOISY = 1.5


@with_shared
def compare(
    inputs: Inputs,
    generator: GeneratorsOption = None,
    planner: PlannersOption = None,
    evaluator: Annotated[
        list[str] | None,
        typer.Option(
            "--evaluator",
            metavar="NAME",
            autocompletion=complete_evaluators,
            help="Evaluator; may be repeated. Without it, the default for each kind of plan.",
        ),
    ] = None,
    option: EvaluatorOptions = None,
    repetitions: Annotated[
        int, typer.Option(min=1, metavar="NUMBER", help="Minimum number of runs of each plan.")
    ] = 3,
    seconds: Annotated[
        float, typer.Option(min=0, metavar="NUMBER", help="Minimum time of all runs of each plan.")
    ] = 0.3,
    cost: CostOrDefault = None,
) -> None:
    """Plan with every plan generator and measure every distinct plan.

    Throughputs are medians of interleaved runs; generators with equal plans share them. All plans
    must find the same number of matches; a difference is an error.

    Of several queries, each on lines that begin with its name, Q1 = PATTERN …, the planners of what
    they reuse, on each evaluator; all plans must find the same matches.
    """
    options = named_values(option or (), "--option", typer.BadParameter)
    pattern = inputs.read_queries()

    from cepbench.planning.workloads.model import Workload

    if isinstance(pattern, Workload):
        queries.compare(
            inputs,
            pattern,
            planner or None,
            generators=generator or None,
            evaluators=evaluator or None,
            options=_options_by_evaluator(evaluator, options),
            repetitions=repetitions,
            seconds=seconds,
            cost=cost,
        )
        return
    queries.check_pattern(planner=planner)
    stream = inputs.read_stream(pattern)

    from cepbench.engines.detection.tasks import evaluator_without_plan
    from cepbench.experiments.sweeps.compare import compare as comparison_of

    alone = evaluator_without_plan(pattern.strategy.name)
    if not evaluator and alone:
        evaluator = [alone.name]
    generators = list(dict.fromkeys(generator)) if generator else None
    planless = bool(evaluator) and all(run_alone(name, generators) for name in evaluator or ())
    statistics = None if planless else inputs.read_statistics(pattern, stream)

    with progress_of_runs("running plans") as on_progress:
        table = comparison_of(
            pattern,
            stream,
            statistics=statistics,
            generators=generators,
            evaluators=evaluator or None,
            options=_options_by_evaluator(evaluator, options),
            repetitions=repetitions,
            seconds=seconds,
            seed=inputs.seed,
            cost=cost,
            on_progress=on_progress,
        )
    if inputs.json:
        write_json(
            {
                "pattern": str(pattern),
                "events": len(stream),
                "repetitions": repetitions,
                "seconds": seconds,
                "seed": inputs.seed,
                "rows": table,
            }
        )
        return
    write_line(pattern.describe())
    write_line(f"{len(stream):,} events")
    write_line()
    _show(table)


def _options_by_evaluator(
    evaluators: list[str] | None, given: dict[str, Any]
) -> dict[str, dict[str, Any]]:
    """Options for each of the named evaluators that has them."""
    from cepbench.engines.detection.registry import evaluator_for
    from cepbench.engines.detection.tasks import options_of

    if not given:
        return {}
    if not evaluators:
        raise typer.BadParameter("it needs an --evaluator that has it", param_hint="'--option'")
    chosen = [evaluator_for(name) for name in evaluators]
    for name in given:
        if not any(name in entry.options for entry in chosen):
            options_of(chosen[0], {name: given[name]})  # raises, with the nearest name
    return {e.name: {k: v for k, v in given.items() if k in e.options} for e in chosen}


def _show(table: Comparison) -> None:
    from cepbench.engines.runs.result import shown_bytes

    fastest = table["events_per_second"].max()
    rows: list[dict[str, Any]] = []
    for row in table.to_dict("records"):
        line = {"generator": row["generator"], "evaluator": row["evaluator"]}
        rows.append(line)
        if row["status"] != "ok":
            line["plan"] = f"{row['status']}: {row['reason']}"
            continue
        speed = row["events_per_second"]
        line |= {
            "est. cost": _cost(row["cost"]),
            "events/s": f"{speed:,.0f}",
            "": share_bar(speed / fastest),
            "runs": f"as {row['measured_with']}" if row["measured_with"] else f"{row['runs']:,.0f}",
            "stored": _counted(row["peak_partial_matches"]),
            "memory": shown_bytes(row["peak_bytes"]),
            "compared": _counted(row["comparisons"]),
            "matches": int(row["matches"]),
            "plan": row["plan"] or "",
        }
    write_table(
        rows,
        ["generator", "evaluator", "est. cost", "events/s", "", "runs", "stored", "memory",
         "compared", "matches", "plan"],
        right=["est. cost", "events/s", "runs", "stored", "memory", "compared"],
        shrink="plan",
        less=("compared", "", "stored", "runs"),
    )  # fmt: skip
    write_line()
    spread = (table["events_per_second_q3"] / table["events_per_second_q1"]).max()
    if spread > NOISY:
        write_text(
            f"The interquartile range of one plan's runs spans a factor of {spread:.2g}; use more "
            "--seconds or events before relying on small ratios."
        )
    write_text("runs: interleaved, shared by equal plans; events/s: their median")
    write_text("stored: peak number of partial matches; compared: pairs tested against conditions")


def _cost(cost: float | None) -> str:
    """A cost, which runs without a plan have not."""
    if cost is None or math.isnan(cost):
        return ""
    return f"{cost:.4g}" if math.isfinite(cost) else "∞"


def _counted(number: float | None) -> str:
    """A number that user-defined evaluators may omit."""
    return "" if number is None or math.isnan(number) else f"{number:,.0f}"
