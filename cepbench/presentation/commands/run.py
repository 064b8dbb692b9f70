"""``cepbench run``: run one plan on a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cepbench.arguments import named_values
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.inputs import Inputs, check_kind, texts
from cepbench.presentation.commands.match_files import with_lists_as_text
from cepbench.presentation.commands.options import declared, examples

if TYPE_CHECKING:
    import pyarrow as pa

    from cepbench.engines.runs.workload_result import WorkloadMatches
    from cepbench.patterns.model import Pattern
    from cepbench.patterns.row_pattern import RowPattern
    from cepbench.planning.plans.workload import WorkloadPlan
    from cepbench.planning.workloads.model import Workload

EXAMPLES = examples(
    "cepbench run --pattern-name rare-last --data nasdaq-style/sample",
    "cepbench run --pattern-name rare-last --data nasdaq-style/sample \\\n"
    "    --generator DP-B --output matches.parquet --attribute price",
    "cepbench run --pattern-name rare-last --data nasdaq-style/sample --spark",
    "cepbench run --dialect match_recognize --data nasdaq-style/sample \\\n"
    "    'SELECT * FROM bars MATCH_RECOGNIZE (PARTITION BY symbol\n"
    "     MEASURES FIRST(U.ts) AS since, COUNT(*) AS bars\n"
    "     PATTERN (U{4,}) DEFINE U AS U.price > PREV(U.price))'",
)


@declared
def run(
    inputs: Inputs,
    generator: str | None = None,
    planner: str | None = None,
    evaluator: str | None = None,
    option: list[str] | None = None,
    output: Path | None = None,
    attribute: list[str] | None = None,
    count: bool = False,
    limit: int | None = None,
    spark: bool = False,
    master: str | None = None,
) -> None:
    """Run one plan; show matches, throughput and memory.

    Evaluators that take no plan of a generator, such as sase, run without one.

    Without --output the first matches are shown. Matches are written in the order in which they
    were found, with the columns of RETURN, or else the position and time of each event. Positions
    are rows of --data, from 0, whatever part was read, and even if it was sorted. In CSV several
    positions are separated by blanks, and several values are a JSON array.

    The queries of a workload run by one plan, in which they reuse each other's matches; --output
    writes a file for each, such as matches.Q1.parquet.

    With --spark tasks read slices of the data, which may exceed memory; matches are counted, or
    written with --output as a folder of Parquet files, in no order.

    With --dialect match_recognize a query of SQL runs without a plan: --output writes its rows, and
    --count shows their number only. With --generator or --evaluator the pattern that says the same runs,
    if there is one.
    """
    if count and (output or limit):
        raise typer.BadParameter("it excludes --output and --limit", param_hint="'--count'")
    if master is not None and not spark:
        raise typer.BadParameter("it requires --spark", param_hint="'--master'")
    options = named_values(option or (), "--option", typer.BadParameter)
    rows = None if generator or evaluator else inputs.read_row_pattern()
    if rows is not None:
        if planner or options or attribute or limit or spark:
            raise typer.BadParameter(
                "SQL takes --output and --count, and no options of plans", param_hint="'--dialect'"
            )
        _run_rows(inputs, rows, output, count)
        return
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
    check_kind(asked, planner, limit=limit)
    if attribute and not asked.by_query and asked.returns:
        raise typer.BadParameter(
            "the pattern's RETURN names the columns; add the attribute there, as in "
            f"{asked.positive_names[0]}.{attribute[0]}",
            param_hint="'--attribute'",
        )
    files = _files(output, asked) if output and asked.by_query else {}
    for file in files.values():
        inputs.check_unread(file, "'--output'")

    from cepbench.engines.detection.chosen import fastest
    from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, chosen_evaluator
    from cepbench.engines.runs.arrow_matches import event_time
    from cepbench.engines.runs.protocol import Arguments, Evaluator
    from cepbench.planning.statistics.measure import active_time
    from cepbench.presentation.commands.matching import Job, position_columns

    asked, stream = inputs.read_stream(asked, positions=not count)
    plan, statistics, _ = inputs.plan(
        asked, stream, planner=planner, generator=generator, evaluator=evaluator
    )
    kind = "count" if count else "arrow"
    if asked.by_query:
        job = Job(asked, stream, plan, {"evaluator": evaluator, "options": options})
        job.warm_up(kind)
        with out.progress("running"):
            found = job.evaluated(kind)
        job.write_each(found, files, attribute or ())
        _show_workload(inputs, asked, plan, found, files)
        return
    engine: str | Evaluator | None = evaluator
    choice = None
    if evaluator is None and generator is None and asked.window.length:
        plan, engine, choice = fastest(
            asked, plan, statistics or inputs.read_statistics(asked, stream),
            active_time(asked, stream),
            Arguments(
                evaluator=None, options=options, output=kind,
                partial_match_limit=PARTIAL_MATCH_LIMIT,
            ),
            whole_stream=False,
        )  # fmt: skip
    used = chosen_evaluator(plan, engine, asked.strategy.name)
    job = Job(asked, stream, plan, {"evaluator": used, "options": options})
    job.warm_up(kind)
    if count:
        metrics, first, written = job.counted(), None, 0
    else:
        metrics, first, written = job.written(output, attribute or [], limit)
    stopped = limit is not None and written >= limit
    if inputs.json:
        out.write_json(
            {
                **texts(asked),
                "generator": plan and plan.generator,
                "plan": plan and plan.text,
                "cost": plan and plan.cost,
                "evaluator": used.name,
                "expected_seconds": choice and dict(choice.seconds),
                "metrics": out.as_dict(metrics),
                "stopped_by_limit": stopped,
                "output": output,
                "written": written if output else 0,
                "first_matches": first.to_pylist() if first is not None and not output else [],
            }
        )
        return
    headline = plan.describe().splitlines()[0] if plan else "without a plan"
    out.write_text(f"{headline}, run by {used.name}")
    if plan:
        out.write_line(f"  {plan.text}")
    if choice:
        out.write_text(f"  {choice}")
    out.write_line()
    out.write_metrics(metrics)
    if stopped:
        out.write_text(
            f"Stopped after {written:,} matches; the metrics are those of the events until then."
        )
    if output is not None:
        out.write_line(f"{written:,} matches are in {output}.")
    elif first is not None and first.num_rows:
        out.write_line()
        if asked.returns:
            shown = with_lists_as_text(first, position_columns(asked))
            out.write_table(shown.to_pylist(), shown.schema.names)
        else:
            _show_matches(asked, first, event_time(stream))


def _run_rows(inputs: Inputs, pattern: RowPattern, output: Path | None, count: bool) -> None:
    """Run a query with MATCH_RECOGNIZE."""
    from cepbench.engines.detection.evaluate import evaluate
    from cepbench.presentation.commands.match_files import match_writer
    from cepbench.presentation.commands.matching import SHOWN

    stream = inputs.read_events()
    evaluate(pattern, stream[:0])  # the time excludes loading compiled code
    with out.progress("running"):
        found = evaluate(pattern, stream)
    if output is not None:
        with match_writer(output, found.arrow.schema) as write:
            write(found.arrow)
    first = found.arrow.slice(0, SHOWN).to_pylist() if not (count or output) else []
    if inputs.json:
        out.write_json(
            {
                "pattern": str(pattern),
                "metrics": out.as_dict(found.metrics),
                "rows": len(found),
                "output": output,
                "first_rows": first,
            }
        )
        return
    out.write_line(found.describe())
    if output is not None:
        out.write_line(f"{len(found):,} rows are in {output}.")
    elif first:
        out.write_line()
        out.write_table(first, found.arrow.schema.names)


def _files(output: Path, workload: Workload) -> dict[str, Path]:
    """Query → its file: matches.q1.parquet of matches.parquet."""
    for query in workload.patterns:
        if Path(query).name != query:
            raise typer.BadParameter(
                f"the name of query {query!r} cannot be part of a file's name; rename it",
                param_hint="'--output'",
            )
    return {query: output.with_suffix(f".{query}{output.suffix}") for query in workload.patterns}


def _show_workload(
    inputs: Inputs,
    workload: Workload,
    plan: WorkloadPlan,
    found: WorkloadMatches,
    files: dict[str, Path],
) -> None:
    evaluators = {query: its.evaluator for query, its in found.items()}
    if inputs.json:
        out.write_json(
            {
                **texts(workload),
                "planner": plan.planner,
                "cost": plan.cost,
                "plan": plan.steps,
                "evaluators": evaluators,
                "metrics": out.as_dict(found.metrics),
                "steps": found.steps,
                "output": files,
            }
        )
        return
    out.write_line(plan.describe().splitlines()[0])
    out.write_line()
    rows = [
        {
            "query": row["query"],
            "computed": str(plan.reuse(row["query"])),
            "by": evaluators.get(row["query"], "") if row["source"] is None else "",
            "matches": row["results"],
            "reused": row["reused"],
            "new": row["delta"],
            "ms": f"{1e3 * row['seconds']:.2f}",
        }
        for row in found.steps.to_dict("records")
    ]
    out.write_table(rows, list(rows[0]), right=["ms"], shrink="computed")
    out.write_line()
    out.write_line(
        f"{found.metrics.matches:,} matches of {len(found)} queries in {found.metrics.events:,} events, "
        f"in {found.metrics.seconds:.3g} s"
    )
    for query, file in files.items():
        out.write_line(f"{found[query].metrics.matches:,} matches of {query} are in {file}.")


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
    out.write_table(rows, [*["day"] * pattern.window.is_datetime, *heads.values()])


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
