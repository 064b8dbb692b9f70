"""``cepbench explain``: a plan's estimates and costs, node by node, beside those of a run."""

from __future__ import annotations

import html as markup
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cepbench.arguments import named_values
from cepbench.files import whole_file
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.inputs import Inputs, check_kind, texts
from cepbench.presentation.commands.options import declared, examples
from cepbench.text_table import text_width

if TYPE_CHECKING:
    from cepbench.presentation.explainer.report import Report

EXAMPLES = examples(
    "cepbench explain --pattern-name rare-last --data nasdaq-style/sample \\\n"
    "    --generator DP-B --html plan.html"
)


@declared
def explain(
    inputs: Inputs,
    generator: str | None = None,
    planner: str | None = None,
    evaluator: str | None = None,
    option: list[str] | None = None,
    run: bool = True,
    html: Path | None = None,
    alpha: float = 0.0,
    last: str | None = None,
) -> None:
    """Compare a plan's estimates with a run, node by node.

    For an evaluator of automata, shows the edges and what the run counted. For a workload, shows
    what each query costs and finds, and which reuse was worth it. With --no-run and --statistics,
    or an automaton, no data is needed.

    For SQL with MATCH_RECOGNIZE, shows the plan of the pattern that says the same; if there is none, the
    automaton that runs the query, which clause has no counterpart, and the nearest query that has one.
    """
    options = named_values(option or (), "--option", typer.BadParameter)
    if not (generator or evaluator) and _explains_rows(inputs, html, run=run):
        return
    asked = inputs.read_queries(needs_data=run)
    check_kind(asked, planner, alpha=alpha, last=last)
    stream = None
    if inputs.data is not None and (run or inputs.statistics is None or not asked.by_query):
        asked, stream = inputs.read_stream(asked)

    from cepbench.presentation.explainer.explain import explain as explanation_of

    explain_either: Any = explanation_of  # its overloads are for one kind each

    planned, statistics, its_last = inputs.plan(
        asked, stream, planner=planner, generator=generator, evaluator=evaluator, alpha=alpha, last=last
    )  # fmt: skip
    with out.progress("running the plan" if run else "explaining the plan"):
        found = explain_either(
            asked,
            planned,
            statistics,
            stream if run else None,
            evaluator=evaluator,
            options=options,
            last=its_last,
        )
    if html is not None:
        text = str(asked) if asked.by_query else asked.describe()
        _write_page(html, text, found)
    if not inputs.json:
        out.write_line(found.describe(text_width()))
        if html is not None:
            out.log(f"The picture is in {html}.")
        return
    if asked.by_query:
        document = {
            "planner": planned.planner,
            "cost": planned.cost,
            "evaluator": found.evaluator,
            "steps": found.steps,
            "findings": found.sentences(),
        }
    else:
        document = {
            "generator": found.plan.generator,
            "plan": found.plan.text,
            "cost": found.plan.cost,
            "evaluator": found.evaluator,
            "nodes": found.nodes,
            "metrics": found.metrics and out.as_dict(found.metrics),
            "findings": [*found.remarks, *found.sentences()],
        }
    out.write_json({**texts(asked), **document, "html": html})


def _explains_rows(inputs: Inputs, html: Path | None, *, run: bool) -> bool:
    """Explain a query with MATCH_RECOGNIZE that no pattern says; whether it is one."""
    from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT
    from cepbench.errors import UnsupportedPatternError
    from cepbench.patterns.parse import MATCH_RECOGNIZE
    from cepbench.patterns.row_counterpart import counterpart
    from cepbench.presentation.explainer.row_pattern import explain_rows

    rows = inputs.read_row_pattern(needs_data=run) if inputs.dialect == MATCH_RECOGNIZE else None
    if rows is None:
        return False
    try:
        counterpart(rows)
    except UnsupportedPatternError as error:
        stream = inputs.read_events() if run else None
        with out.progress("running the query" if run else "explaining the query"):
            found = explain_rows(rows, stream, error, PARTIAL_MATCH_LIMIT)
    else:
        return False
    if html is not None:
        _write_page(html, rows.describe(), found)
    if not inputs.json:
        out.write_line(found.describe(text_width()))
        if html is not None:
            out.log(f"The picture is in {html}.")
        return True
    query, changes = found.nearest or (None, ())
    out.write_json(
        {
            "pattern": str(rows),
            "states": found.states,
            "reason": found.reason,
            "nearest": query and str(query),
            "changes": changes,
            "metrics": found.metrics and out.as_dict(found.metrics),
            "findings": found.sentences(),
            "html": html,
        }
    )
    return True


def _write_page(file: Path, asked: str, found: Report) -> None:
    text = markup.escape(asked)
    page = (
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
    with whole_file(file) as unfinished:
        unfinished.write_text(page, encoding="utf-8")
