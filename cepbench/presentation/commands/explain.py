"""``cepbench explain``: a plan's estimates and costs, node by node, beside those of a run."""

from __future__ import annotations

import html as markup
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cepbench.arguments import named_values
from cepbench.presentation.commands import queries
from cepbench.presentation.commands.inputs import Inputs, last_variable, run_alone
from cepbench.presentation.commands.options import (
    AlphaOption,
    EvaluatorOption,
    EvaluatorOptions,
    GeneratorOrDefault,
    LastOption,
    PlannerOption,
    examples,
    expanded,
    with_shared,
)
from cepbench.presentation.commands.output import log, progress, width, write_json, write_line

if TYPE_CHECKING:
    from cepbench.presentation.explainer.explanation import Explanation
    from cepbench.presentation.explainer.workload import WorkloadExplanation

EXAMPLES = examples(
    "cepbench explain --pattern-name rare-last --data nasdaq-style/sample \\\n"
    "    --generator DP-B --html plan.html"
)


@with_shared
def explain(
    inputs: Inputs,
    generator: GeneratorOrDefault = None,
    planner: PlannerOption = None,
    evaluator: EvaluatorOption = None,
    option: EvaluatorOptions = None,
    run: Annotated[
        bool, typer.Option(help="Run the plan, to compare estimates with actual numbers.")
    ] = True,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            callback=expanded,
            help="Also write an HTML page with a picture of the plan.",
        ),
    ] = None,
    alpha: AlphaOption = 0.0,
    last: LastOption = None,
) -> None:
    """Compare a plan's estimates with a run, node by node.

    An evaluator of automata needs no plan: the edges are shown, and what the run counted. Of several
    queries, Q1 = PATTERN …, what each costs and finds, and which reuse was worth it. With --no-run and --statistics, or an automaton, no data is needed.
    """
    options = named_values(option or (), "--option", typer.BadParameter)
    asked = inputs.read_queries(needs_data=run)
    if asked.by_query:
        queries.check_options(alpha=alpha, last=last)
        explained = queries.explain(
            inputs,
            asked,
            planner,
            generator,
            evaluator=evaluator,
            options=options,
            runs=run,
            html=html,
        )
        if html is not None:
            html.write_text(_page(str(asked), explained), encoding="utf-8")
        return
    queries.check_pattern(planner=planner)
    stream = None if inputs.data is None else inputs.read_stream(asked)

    from cepbench.engines.detection.planned import generator_for
    from cepbench.engines.detection.tasks import evaluator_without_plan
    from cepbench.planning.planners.generate import plan
    from cepbench.presentation.explainer.explain import explain as explanation_of

    if evaluator is None and (alone := evaluator_without_plan(asked.strategy.name)):
        evaluator = alone.name
    planned, statistics, its_last = None, None, None
    generator = generator or generator_for([asked], evaluator).name
    if not run_alone(evaluator, [generator]):
        statistics = inputs.read_statistics(asked, stream)
        its_last = last if last or not alpha else last_variable(asked, stream, statistics)
        with progress(f"planning with {generator}"):
            planned = plan(
                asked, statistics, generator, seed=inputs.seed, alpha=alpha, last=its_last
            )
    with progress("running the plan" if run else "explaining the plan"):
        found = explanation_of(
            asked,
            planned,
            statistics,
            stream if run else None,
            evaluator=evaluator,
            options=options,
            last=its_last,
        )
    if html is not None:
        html.write_text(_page(found.pattern.describe(), found), encoding="utf-8")
    if inputs.json:
        metrics = found.metrics.to_dict() if found.metrics else {}
        write_json(
            {
                "pattern": str(asked),
                "generator": found.plan.generator,
                "plan": found.plan.text,
                "cost": found.plan.cost,
                "evaluator": found.evaluator,
                "nodes": found.nodes,
                "metrics": {k: v for k, v in metrics.items() if not k.startswith("latency")}
                or None,
                "findings": [*found.remarks, *found.sentences()],
                "html": html,
            }
        )
        return
    write_line(found.describe(width()))
    if html is not None:
        log(f"The picture is in {html}.")


def _page(asked: str, found: Explanation | WorkloadExplanation) -> str:
    """The explanation as a self-contained page."""
    text = markup.escape(asked)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        "<title>A plan, explained</title><style>"
        ":root{color-scheme:light dark}"
        "body{font:15px/1.5 system-ui,sans-serif;max-width:75em;margin:2em auto;padding:0 1em}"
        "div.cep-explanation{overflow-x:auto}"
        "td,th{padding:.15em .6em}table{border-collapse:collapse;font-size:14px}"
        "</style></head><body>"
        f"<h1>A plan, explained</h1><pre>{text}</pre>{found._repr_html_()}</body></html>\n"
    )
