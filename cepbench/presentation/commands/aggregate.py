"""``cepbench aggregate``: the values of AGG over a stream."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.inputs import StreamInputs
from cepbench.presentation.commands.match_files import match_writer
from cepbench.presentation.commands.options import declared, examples

if TYPE_CHECKING:
    from cepbench.engines.aggregation.protocol import AggregateMetrics
    from cepbench.patterns.model import Pattern
    from cepbench.planning.workloads.model import Workload

EXAMPLES = examples(
    'cepbench aggregate "PATTERN SEQ(CSCO a, MSFT b) AGG COUNT, AVG(b.price)\n'
    '    WITHIN 20 minutes" --data nasdaq-style/sample',
    'cepbench aggregate "PATTERN SEQ(CSCO a, MSFT b) AGG COUNT\n'
    '    WITHIN 20 minutes" --data nasdaq-style/sample --at "2008-01-02 12:00"',
)

#: Values to show.
SHOWN = 5


@declared
def aggregate(
    inputs: StreamInputs,
    method: str | None = None,
    emit: str = "trigger",
    scope: str = "window",
    at: list[str] | None = None,
    sharing: str | None = None,
    evaluator: str | None = None,
    output: Path | None = None,
) -> None:
    """Compute the values of AGG, of a pattern or of a workload.

    Without --output the last values are shown. Positions are rows of --data, from 0, whatever part
    was read.
    """
    asked = inputs.read_queries()

    from cepbench.engines.aggregation.aggregate import aggregate as aggregated
    from cepbench.experiments.sweeps.measure import WARM_UP_EVENTS

    asked, stream = inputs.read_stream(asked, positions=True)
    options: dict[str, Any] = {
        "emit": emit, "scope": scope, "evaluator": evaluator, "sharing": sharing,
    }  # fmt: skip
    if at:
        options["at"] = [_time(text, asked) for text in at]
    with out.progress("warming up"):
        aggregated(asked, stream[:WARM_UP_EVENTS], method, **options)
    with out.progress("aggregating"):
        result = aggregated(asked, stream, method, **options).in_whole_stream(stream)
    table = result.arrow
    if output is not None:
        with match_writer(output, table.schema) as write:
            write(table)
    last = table[max(0, table.num_rows - SHOWN) :].to_pylist()
    if inputs.json:
        out.write_json(
            {
                "pattern": str(asked),
                "method": result.method,
                "sharing": sharing,
                "metrics": result.metrics.to_dict(),
                "values": table.num_rows,
                "output": output,
                "last_values": [] if output else last,
            }
        )
        return
    out.write_text(f"values by {result.method}{f', sharing by {sharing}' if sharing else ''}")
    out.write_line()
    _write_metrics(result.metrics, table.num_rows)
    if output is not None:
        out.write_line(f"{table.num_rows:,} values are in {output}.")
    elif last:
        out.write_line()
        if len(last) < table.num_rows:
            out.write_text(f"The last {len(last)} of {table.num_rows:,} values:")
        out.write_table(last, table.schema.names)


def _time(text: str, asked: Pattern | Workload) -> Any:
    """A time given to ``--at``: a datetime or an integer, by the window."""
    from cepbench.streams.moments import moment

    is_datetime = next(iter(asked.queries.values())).window.is_datetime
    try:
        return moment(text) if is_datetime else int(text)
    except ValueError:
        due = "a datetime such as '2008-01-02 12:00'" if is_datetime else "an integer"
        raise typer.BadParameter(f"{text!r} is not {due}", param_hint="'--at'") from None


def _write_metrics(metrics: AggregateMetrics, values: int) -> None:
    from cepbench.engines.runs.result import shown_bytes

    lines = {
        "values": f"{values:,}",
        "events": f"{metrics.events:,} in {metrics.seconds:.3g} s",
        "updates": f"{metrics.updates:,}",
        "objects": f"{metrics.peak_objects:,} at peak",
    }
    if not math.isnan(metrics.peak_bytes):  # not reported by all methods
        lines["memory"] = f"{shown_bytes(metrics.peak_bytes)} peak"
    out.write_named(lines)
