"""``cepbench explain``: a plan's estimates and costs, node by node, beside those of a run."""

from __future__ import annotations

import html as markup
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cepbench.commands.inputs import read_pattern, read_statistics, source_of
from cepbench.commands.options import (
    COLUMNS,
    AlphaOption,
    ColumnsOption,
    DataOption,
    DaysOption,
    EvaluatorOption,
    GeneratorOption,
    JsonOption,
    LastOption,
    OnlyTypesOption,
    OptionOption,
    PatternArgument,
    PatternNameOption,
    PluginOption,
    SeedOption,
    StatisticsOption,
    examples,
    options_from,
)
from cepbench.commands.output import log, progress, width, write_json, write_line
from cepbench.commands.planning import last_of, plan_with
from cepbench.errors import PlanGeneratorError
from cepbench.plugins import load_plugins

if TYPE_CHECKING:
    from cepbench.explainer.explanation import Explanation

EXAMPLES = examples(
    "cepbench explain --pattern-name rare-last --data nasdaq-style/sample \\\n"
    "    --generator DP-B --html plan.html",
)


def explain(
    pattern: PatternArgument = None,
    data: DataOption = None,
    pattern_name: PatternNameOption = None,
    generator: GeneratorOption = "DP-LD",
    evaluator: EvaluatorOption = None,
    option: OptionOption = None,
    run: Annotated[
        bool, typer.Option(help="Run the plan, to compare estimates with actual numbers.")
    ] = True,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write an HTML page with a picture of the plan."),
    ] = None,
    statistics: StatisticsOption = None,
    alpha: AlphaOption = 0.0,
    last: LastOption = None,
    plugin: PluginOption = None,
    days: DaysOption = None,
    only_types: OnlyTypesOption = False,
    columns: ColumnsOption = COLUMNS,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Compare a plan's estimates with a run, node by node.

    With --statistics and --no-run no data is needed.
    """
    needs_data = run or statistics is None
    source = source_of(data, columns) if data or needs_data else None
    asked = read_pattern(pattern, pattern_name, source)
    load_plugins(plugin)
    stream = source.stream(asked, days=days, only_types=only_types) if source else None
    known = read_statistics(statistics, asked, stream, seed)
    its_last = last if last or not alpha else last_of(asked, stream, known)
    planned = plan_with(generator, asked, known, seed=seed, alpha=alpha, last=its_last)
    if planned.plan is None:
        raise PlanGeneratorError(planned.reason)

    from cepbench.explainer.explain import explain as explanation_of

    with progress("running the plan" if run else "explaining the plan"):
        found = explanation_of(
            asked,
            planned.plan,
            known,
            stream if run else None,
            evaluator=evaluator,
            options=options_from(option),
            last=its_last,
        )
    if html is not None:
        html.write_text(_page(found), encoding="utf-8")
    if json:
        metrics = found.metrics.to_dict() if found.metrics else {}
        write_json(
            {
                "pattern": str(asked),
                "generator": planned.generator,
                "plan": planned.text,
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


def _page(found: Explanation) -> str:
    """The explanation as a self-contained page."""
    text = markup.escape(found.pattern.describe())
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
