"""``cepbench compare``: plan generators side by side."""

from __future__ import annotations

from typing import Any

import typer

from cepbench.arguments import named_values
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.inputs import Inputs, check_kind, texts
from cepbench.presentation.commands.options import declared, examples
from cepbench.text_table import terminal_width

EXAMPLES = examples("cepbench compare --pattern-name rare-last --data nasdaq-style/sample")


@declared
def compare(
    inputs: Inputs,
    generator: list[str] | None = None,
    planner: list[str] | None = None,
    method: list[str] | None = None,
    evaluator: list[str] | None = None,
    option: list[str] | None = None,
    repetitions: int = 3,
    seconds: float = 0.3,
    cost: str | None = None,
) -> None:
    """Measure the plans of all plan generators.

    Throughputs are medians of interleaved runs; generators with equal plans share them. Plans that
    find different numbers of matches are an error.

    For a workload, measures the plans of all planners on each evaluator. For a pattern with AGG,
    measures the aggregation methods.
    """
    options = named_values(option or (), "--option", typer.BadParameter)
    asked = inputs.read_queries()
    check_kind(asked, planner)
    asked, stream = inputs.read_stream(asked)

    from cepbench.presentation.comparison.compare import compare as comparison_of

    known = None if inputs.statistics is None else inputs.read_statistics(asked, stream)
    with out.progress_of_runs("running plans") as on_progress:
        table = comparison_of(
            asked,
            stream,
            statistics=known,
            generators=list(dict.fromkeys(generator)) if generator else None,
            planners=planner or None,
            methods=method or None,
            evaluators=evaluator or None,
            options=_options_by_evaluator(evaluator, options),
            repetitions=repetitions,
            seconds=seconds,
            seed=inputs.seed,
            cost=cost,
            on_progress=on_progress,
        )
    if inputs.json:
        out.write_json(
            {
                **texts(asked),
                "events": len(stream),
                "repetitions": repetitions,
                "seconds": seconds,
                "seed": inputs.seed,
                "rows": table,
            }
        )
        return
    out.write_line(table.text(terminal_width()))


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
