"""The run of ``cepbench run``: counting matches, or writing them batch by batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.evaluate import evaluate
from cepbench.engines.detection.match_batches import match_batches
from cepbench.engines.runs.arrow_matches import event_time, match_schema, with_events
from cepbench.engines.runs.protocol import Evaluator
from cepbench.engines.runs.result import Metrics, Result
from cepbench.engines.runs.returned import returned_table
from cepbench.experiments.sweeps.measure import WARM_UP_EVENTS
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import AnyPlan
from cepbench.presentation.commands.match_files import match_writer
from cepbench.presentation.commands.output import progress
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_types

#: Matches to show.
SHOWN = 5

#: Matches per batch, and events between updates of the progress bar when only counting.
_ROWS, _EVENTS = 250_000, 1 << 18


@dataclass(frozen=True)
class Job:
    """A plan to run, or a pattern without one."""

    pattern: Pattern
    stream: EventStream
    plan: AnyPlan | None
    evaluator: Evaluator
    options: Mapping[str, Any]

    def warm_up(self) -> None:
        """Run a prefix of the stream, so that the time excludes loading compiled code."""
        with progress("warming up"):
            for output in ("count", "arrow"):
                self._evaluated(self.stream[:WARM_UP_EVENTS], output)

    def counted(self) -> Metrics:
        """Count all matches."""
        if not self.evaluator.batches:
            with progress(f"running {self.evaluator.name}"):
                return self._evaluated(self.stream, "count").metrics
        check_types(self.pattern, self.stream)
        detector = Detector(
            self.pattern, self.plan, evaluator=self.evaluator, options=self.options, output="count"
        )
        with progress("events", len(self.stream), scaled=True) as bar:
            for batch in self.stream.batches(_EVENTS):
                detector.push(batch)
                bar.update(len(batch))
            detector.flush()
        return detector.metrics()

    def written(
        self, file: Path | None, attributes: Sequence[str], limit: int | None
    ) -> tuple[Metrics, pa.Table, int]:
        """Write the columns of the pattern's RETURN, or matches with times and some attributes.

        Positions are those in the whole stream of which :attr:`stream` is a part.

        Parameters
        ----------
        file : Path or None
            None to find them only.
        attributes : sequence of str
            Of the matches' events; none with RETURN.
        limit : int or None
            Maximum number of matches.

        Returns
        -------
        metrics : Metrics
            The metrics of the run up to the last match written.
        first : pyarrow.Table
            The first :data:`SHOWN` matches.
        rows : int
            The number of matches, up to the limit.
        """
        names = [event_time(self.stream), *attributes]
        positions = position_columns(self.pattern)

        def joined(table: pa.Table) -> pa.Table:
            if self.pattern.returns:
                places = self.stream.whole_positions()
                return returned_table(table, self.pattern, self.stream, places=places)
            return with_events(table, self.stream, names, whole=True)

        first, rows = joined(match_schema(self.pattern).empty_table()), 0
        with ExitStack() as stack:
            bar = stack.enter_context(progress("events", len(self.stream), scaled=True))
            batches = match_batches(
                replace(self.pattern, returns=()),
                self.stream,
                self.plan,
                rows=min(limit or _ROWS, _ROWS),
                evaluator=self.evaluator,
                options=self.options,
                on_progress=lambda done, _: bar.update(done - bar.n),
            )
            write = (
                stack.enter_context(match_writer(file, first.schema, positions)) if file else None
            )
            for table in batches if limit is None else _limited(batches, limit):
                if write is not None:
                    write(joined(table))
                if first.num_rows < SHOWN:
                    head = joined(table[: SHOWN - first.num_rows])
                    first = pa.concat_tables([first, head]).unify_dictionaries()
                rows += table.num_rows
        return batches.metrics(), first, rows

    def _evaluated(self, stream: EventStream, output: str) -> Result:
        return evaluate(
            self.pattern,
            stream,
            self.plan,
            evaluator=self.evaluator,
            options=self.options,
            output=output,
        )


def position_columns(pattern: Pattern) -> set[str]:
    """The columns with positions, in the table of a pattern's matches."""
    if pattern.returns:
        return {column.name for column in pattern.returns if isinstance(column.value, str)}
    return set(pattern.positive_names)


def _limited(tables: Iterator[pa.Table], limit: int) -> Iterator[pa.Table]:
    for table in tables:
        yield table[:limit]
        limit -= table.num_rows
        if limit <= 0:
            return
