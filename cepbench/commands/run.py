"""``cepbench run``: one plan run on a stream, and its matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cepbench.commands.inputs import read_pattern, read_statistics, source_of
from cepbench.commands.match_files import check_ending, match_writer
from cepbench.commands.options import (
    COLUMNS,
    ColumnsOption,
    DataOption,
    DaysOption,
    EvaluatorOption,
    GeneratorOption,
    JsonOption,
    OnlyTypesOption,
    PatternArgument,
    PatternNameOption,
    PluginOption,
    SeedOption,
    StatisticsOption,
    examples,
)
from cepbench.commands.output import progress, say, say_text, shown_bytes, write_json, write_table
from cepbench.commands.planning import plan_with
from cepbench.commands.plugins import load_plugins
from cepbench.errors import PlanGeneratorError

if TYPE_CHECKING:
    import pyarrow as pa

    from cepbench.evaluators.result import Metrics
    from cepbench.patterns.model import Pattern
    from cepbench.plans.model import AnyPlan
    from cepbench.streams.event_stream import EventStream

EXAMPLES = examples(
    "cepbench run --pattern-name four-stocks --data nasdaq-style/sample",
    "cepbench run --pattern-name four-stocks --data nasdaq-style/sample \\\n"
    "    --generator DP-B --output matches.parquet --attribute price",
)

#: Matches that are shown if none are written.
SHOWN = 5

#: Matches of a batch, and events between two steps of the progress bar where none are kept.
_ROWS, _EVENTS = 250_000, 1 << 18


def run(
    pattern: PatternArgument = None,
    data: DataOption = None,
    pattern_name: PatternNameOption = None,
    generator: GeneratorOption = "DP-LD",
    evaluator: EvaluatorOption = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            callback=check_ending,
            help="Write all matches to this file: .parquet, .csv or .arrow. "
            "They need not fit the memory.",
        ),
    ] = None,
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also write this attribute of each event; may be repeated.",
        ),
    ] = None,
    count: Annotated[
        bool, typer.Option("--count", help="Only count matches, which is fastest.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Stop after so many matches.")
    ] = None,
    statistics: StatisticsOption = None,
    plugin: PluginOption = None,
    days: DaysOption = None,
    only_types: OnlyTypesOption = False,
    columns: ColumnsOption = COLUMNS,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Run one plan; say its matches, throughput and memory.

    Without --output the first matches are shown. What is written has the position and the time of
    each event, in the order in which matches were found.
    """
    if count and (output or limit):
        raise typer.BadParameter(
            "it goes with neither --output nor --limit", param_hint="'--count'"
        )
    source = source_of(data, columns)
    asked = read_pattern(pattern, pattern_name, source)
    load_plugins(plugin)
    stream = source.stream(asked, days=days, only_types=only_types)
    known = read_statistics(statistics, asked, stream, seed)
    planned = plan_with(generator, asked, known, seed=seed)
    if planned.plan is None:
        raise PlanGeneratorError(planned.reason)
    _warm_up(asked, stream, planned.plan, evaluator, output="count" if count else "arrow")
    if count:
        metrics, its_evaluator = _counted(asked, stream, planned.plan, evaluator)
        first, written = None, 0
    else:
        found = _Found(asked, stream, planned.plan, evaluator, attribute or [], limit)
        first, written = found.written(output)
        metrics, its_evaluator = found.metrics(), found.evaluator
    told = {
        "pattern": str(asked),
        "generator": planned.generator,
        "plan": planned.text,
        "cost": planned.plan.cost,
        "evaluator": its_evaluator,
        "metrics": {k: v for k, v in metrics.to_dict().items() if not k.startswith("latency")},
        "stopped_by_limit": limit is not None and written >= limit,
        "output": output,
        "written": written if output else 0,
        "first_matches": first.to_pylist() if first is not None and output is None else [],
    }
    if json:
        write_json(told)
        return
    say_text(f"{planned.plan.describe().splitlines()[0]}, run by {its_evaluator}")
    say(f"  {planned.text}")
    say()
    _tell(metrics)
    if told["stopped_by_limit"]:
        say_text(
            f"Stopped after {written:,} matches; the numbers are those of the events until then."
        )
    if output is not None:
        say(f"{written:,} matches are in {output}.")
    elif first is not None and first.num_rows:
        say()
        _show_matches(asked, first)


class _Found:
    """Matches of one plan, batch by batch."""

    def __init__(
        self,
        pattern: Pattern,
        stream: EventStream,
        plan: AnyPlan,
        evaluator: str | None,
        attributes: Iterable[str],
        limit: int | None,
    ) -> None:
        from cepbench.evaluators.arrow_matches import match_schema, with_events
        from cepbench.evaluators.match_batches import match_batches
        from cepbench.evaluators.registry import evaluator_for

        self.evaluator = evaluator_for(plan, evaluator).name
        self._stream = stream
        self._bar: Any = None
        names = ["time", *attributes]
        self._joined = lambda table: with_events(table, stream, names)
        self._schema = self._joined(match_schema(pattern).empty_table()).schema
        self._batches = match_batches(
            pattern,
            stream,
            plan,
            rows=min(limit or _ROWS, _ROWS),
            evaluator=self.evaluator,
            told=self._told,
        )
        self._limit = limit

    def metrics(self) -> Metrics:
        return self._batches.metrics()

    def written(self, file: Path | None) -> tuple[pa.Table, int]:
        """Write matches; the first of them, and how many there were until the limit."""
        first, rows = self._schema.empty_table(), 0
        with ExitStack() as stack:
            self._bar = stack.enter_context(progress("events", len(self._stream), scaled=True))
            write = stack.enter_context(match_writer(file, self._schema)) if file else None
            for table in self._limited():
                if write is not None:
                    write(self._joined(table))
                if first.num_rows < SHOWN:
                    head = table[: SHOWN - first.num_rows]
                    first = self._appended(first, self._joined(head))
                rows += table.num_rows
        return first, rows

    def _limited(self) -> Iterator[pa.Table]:
        left = self._limit
        for table in self._batches:
            yield table if left is None else table[:left]
            if left is not None:
                left -= table.num_rows
                if left <= 0:
                    return

    def _told(self, events: int) -> None:
        self._bar.update(min(events, len(self._stream)) - self._bar.n)

    @staticmethod
    def _appended(one: pa.Table, other: pa.Table) -> pa.Table:
        import pyarrow as pa

        return pa.concat_tables([one, other]).unify_dictionaries()


def _counted(
    pattern: Pattern, stream: EventStream, plan: AnyPlan, evaluator: str | None
) -> tuple[Metrics, str]:
    from cepbench.evaluators.detector import Detector
    from cepbench.streams.fit import check_types

    check_types(pattern, stream)
    detector = Detector(pattern, plan, evaluator=evaluator, output="count")
    with progress("events", len(stream), scaled=True) as bar:
        for batch in stream.batches(_EVENTS):
            detector.push(batch)
            bar.update(len(batch))
        detector.flush()
    return detector.metrics(), detector.evaluator


def _warm_up(
    pattern: Pattern, stream: EventStream, plan: AnyPlan, evaluator: str | None, output: str
) -> None:
    """Run the beginning, so that loading compiled code is not part of the throughput."""
    from cepbench.evaluators.evaluate import evaluate
    from cepbench.experiments.measure import WARM_UP_EVENTS

    with progress("warming up"):
        evaluate(pattern, stream[:WARM_UP_EVENTS], plan, evaluator=evaluator, output=output)


def _tell(metrics: Metrics) -> None:
    lines = {
        "matches": f"{metrics.matches:,}",
        "events": f"{metrics.events:,} in {metrics.seconds:.3g} s",
        "throughput": f"{metrics.events_per_second:,.0f} events per second",
        "memory": f"{shown_bytes(metrics.peak_bytes)} for events and partial matches, at most",
        "partial matches": f"{metrics.partial_matches_created:,} created, "
        f"{metrics.peak_partial_matches:,} stored at most",
        "comparisons": f"{metrics.comparisons:,}",
    }
    for name, text in lines.items():
        say(f"{name + ':':<17}{text}")


def _show_matches(pattern: Pattern, first: pa.Table) -> None:
    """The first matches by the times of their events, the day of the first event in front."""
    matches = first.to_pylist()
    names = [variable.name for variable in pattern.positive]
    heads = [f"{variable.name}: {variable.type}" for variable in pattern.positive]
    times = [[match[f"{name}.time"] for name in names] for match in matches]
    rows = [list(map(_clock, line)) for line in times]
    if pattern.window.is_datetime:
        heads = ["day", *heads]
        rows = [
            [f"{min(_each(line)):%Y-%m-%d}", *row] for line, row in zip(times, rows, strict=True)
        ]
    write_table(rows, heads)


def _each(times: Iterable[Any]) -> Iterator[Any]:
    """Single times; of a Kleene variable there are many, and of another branch none."""
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
