"""``cepbench run``: run one plan on a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepbench.arguments import named_values
from cepbench.presentation.commands import queries
from cepbench.presentation.commands.inputs import Inputs, automaton_for, run_alone
from cepbench.presentation.commands.match_files import check_ending, with_lists_as_text
from cepbench.presentation.commands.options import (
    EvaluatorOption,
    EvaluatorOptions,
    GeneratorOrDefault,
    MasterOption,
    PlannerOption,
    examples,
    with_shared,
)
from cepbench.presentation.commands.output import (
    progress,
    write_json,
    write_line,
    write_metrics,
    write_table,
    write_text,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from cepbench.patterns.model import Pattern

EXAMPLES = examples(
    "cepbench run --pattern-name rare-last --data nasdaq-style/sample",
    "cepbench run --pattern-name rare-last --data nasdaq-style/sample \\\n"
    "    --generator DP-B --output matches.parquet --attribute price",
    "cepbench run --pattern-name rare-last --data nasdaq-style/sample --spark",
)


@with_shared
def run(
    inputs: Inputs,
    generator: GeneratorOrDefault = None,
    planner: PlannerOption = None,
    evaluator: EvaluatorOption = None,
    option: EvaluatorOptions = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            callback=check_ending,
            help="Write all matches to this file (.parquet, .csv or .arrow), in batches.",
        ),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Also write this attribute of events; may be repeated."),
    ] = None,
    count: Annotated[bool, typer.Option("--count", help="Only count matches (fastest).")] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Stop after this many matches.")
    ] = None,
    spark: Annotated[
        bool,
        typer.Option("--spark", help="Run in slices of the stream, on all cores or a cluster."),
    ] = False,
    master: MasterOption = None,
) -> None:
    """Run one plan; show matches, throughput and memory.

    An evaluator that runs without the generator's plans runs without one.

    Several queries, each on lines that begin with its name, Q1 = PATTERN …, run by one plan, in which
    they reuse each other's matches; --output writes a file for each, matches.Q1.parquet.

    Without --output the first matches are shown. Matches are written in the order in which they
    were found: the columns of the pattern's RETURN, or without it the time of each event and its
    position. Positions are the rows of --data, from 0, whatever part is read, and also if they had to
    be sorted by time. In CSV several positions have blanks between them, and several values are a
    JSON array.

    With --spark tasks read slices of the data, which may exceed memory; matches are counted, or
    written with --output as a folder of Parquet files, in no order.
    """
    if count and (output or limit):
        raise typer.BadParameter("it excludes --output and --limit", param_hint="'--count'")
    if master is not None and not spark:
        raise typer.BadParameter("it requires --spark", param_hint="'--master'")
    options = named_values(option or (), "--option", typer.BadParameter)
    asked = inputs.read_queries()
    if spark:
        if asked.by_query or options or attribute or limit or planner:
            raise typer.BadParameter(
                "it takes one pattern, and not --option, --attribute, --limit or --planner",
                param_hint="'--spark'",
            )
        from cepbench.presentation.commands.spark_run import run_on_spark

        run_on_spark(inputs, asked, generator, evaluator, output, master)
        return
    if asked.by_query:
        queries.check_options(limit=limit)
        queries.run(
            inputs, asked, planner, generator, evaluator=evaluator, options=options, output=output,
            attributes=attribute or (), count=count,
        )  # fmt: skip
        return
    queries.check_pattern(planner=planner)
    if attribute and asked.returns:
        raise typer.BadParameter(
            "the pattern's RETURN names the columns; add the attribute there, as in "
            f"{asked.positive_names[0]}.{attribute[0]}",
            param_hint="'--attribute'",
        )

    from cepbench.engines.detection.planned import generator_for
    from cepbench.engines.detection.tasks import chosen_evaluator, evaluator_without_plan
    from cepbench.engines.runs.arrow_matches import event_time
    from cepbench.planning.planners.generate import plan
    from cepbench.presentation.commands.matching import Job, position_columns

    stream = inputs.read_stream(asked, positions=not count)
    if evaluator is None and (alone := evaluator_without_plan(asked.strategy.name)):
        evaluator = alone.name
    generator = generator or generator_for([asked], evaluator).name
    if evaluator is not None and run_alone(evaluator, [generator]):
        planned = automaton_for(asked, evaluator)
    else:
        statistics = inputs.read_statistics(asked, stream)
        with progress(f"planning with {generator}"):
            planned = plan(asked, statistics, generator, seed=inputs.seed)
    its_evaluator = chosen_evaluator(planned, evaluator, asked.strategy.name)
    job = Job(asked, stream, planned, its_evaluator, options)
    job.warm_up()
    if count:
        metrics, first, written = job.counted(), None, 0
    else:
        metrics, first, written = job.written(output, attribute or [], limit)
    outcome = {
        "pattern": str(asked),
        "generator": planned and planned.generator,
        "plan": planned and planned.text,
        "cost": planned and planned.cost,
        "evaluator": its_evaluator.name,
        "metrics": {k: v for k, v in metrics.to_dict().items() if not k.startswith("latency")},
        "stopped_by_limit": limit is not None and written >= limit,
        "output": output,
        "written": written if output else 0,
        "first_matches": first.to_pylist() if first is not None and output is None else [],
    }
    if inputs.json:
        write_json(outcome)
        return
    headline = planned.describe().splitlines()[0] if planned else "without a plan"
    write_text(f"{headline}, run by {its_evaluator.name}")
    if planned:
        write_line(f"  {planned.text}")
    write_line()
    write_metrics(metrics)
    if outcome["stopped_by_limit"]:
        write_text(
            f"Stopped after {written:,} matches; the metrics are those of the events until then."
        )
    if output is not None:
        write_line(f"{written:,} matches are in {output}.")
    elif first is not None and first.num_rows:
        write_line()
        if asked.returns:
            shown = with_lists_as_text(first, position_columns(asked))
            write_table(shown.to_pylist(), shown.schema.names)
        else:
            _show_matches(asked, first, event_time(stream))


def _show_matches(pattern: Pattern, first: pa.Table, time: str) -> None:
    """The first matches by the times of their events, with the day of the first event."""
    heads = {
        variable.name: f"{variable.name}: {variable.type_text}" for variable in pattern.positive
    }
    rows = []
    for match in first.to_pylist():
        times = {head: match[f"{name}.{time}"] for name, head in heads.items()}
        row = {head: _clock(time) for head, time in times.items()}
        if pattern.window.is_datetime:
            row["day"] = f"{min(_each(times.values())):%Y-%m-%d}"
        rows.append(row)
    write_table(rows, [*["day"] * pattern.window.is_datetime, *heads.values()])


def _each(times: Iterable[Any]) -> Iterator[Any]:
    """The times of all variables; Kleene variables have several, other branches' none."""
    for time in times:
        if isinstance(time, list):
            yield from time
        elif time is not None:
            yield time


def _clock(time: Any) -> str:
    """The time of day, or the tick."""
    if isinstance(time, list):
        return " ".join(map(_clock, time))
    if time is None or isinstance(time, int):
        return "" if time is None else f"{time:,}"
    return str(time.time().isoformat("milliseconds"))
