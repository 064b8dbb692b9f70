"""The runs of ``cepbench run``: counting matches, or writing them to files, of a pattern batch by batch."""

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
from cepbench.engines.runs.result import Metrics
from cepbench.engines.runs.returned import returned_table
from cepbench.engines.runs.workload_result import WorkloadMatches
from cepbench.experiments.sweeps.measure import WARM_UP_EVENTS
from cepbench.patterns.model import Pattern
from cepbench.planning.workloads.model import Workload
from cepbench.presentation.commands import output as out
from cepbench.presentation.commands.match_files import match_writer
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_types

#: Matches to show.
SHOWN = 5

#: Matches per batch, and events between updates of the progress bar when only counting.
_ROWS, _EVENTS = 250_000, 1 << 18


@dataclass(frozen=True)
class Job:
    """What to run, by a plan or without one; ``how`` has the evaluator and its options."""

    asked: Pattern | Workload
    stream: EventStream
    plan: Any
    how: Mapping[str, Any]

    def evaluated(self, output: str, events: int | None = None) -> Any:
        """The result of the whole stream, or of so many events at its beginning."""
        return evaluate(self.asked, self.stream[:events], self.plan, output=output, **self.how)

    def warm_up(self, output: str) -> None:
        """Run a prefix of the stream, so that the time excludes loading compiled code."""
        with out.progress("warming up"):
            self.evaluated(output, WARM_UP_EVENTS)

    def counted(self) -> Metrics:
        """Count all matches of a pattern."""
        assert isinstance(self.asked, Pattern)
        if not self.how["evaluator"].batches:
            with out.progress(f"running {self.how['evaluator'].name}"):
                metrics: Metrics = self.evaluated("count").metrics
            return metrics
        check_types(self.asked, self.stream)
        detector = Detector(self.asked, self.plan, output="count", **self.how)
        with out.progress("events", len(self.stream), scaled=True) as bar:
            for batch in self.stream.batches(_EVENTS):
                detector.push(batch)
                bar.update(len(batch))
            detector.flush()
        return detector.metrics()

    def written(
        self, file: Path | None, attributes: Sequence[str], limit: int | None
    ) -> tuple[Metrics, pa.Table, int]:
        """Write the matches of a pattern up to a limit, as :meth:`_joined` shows them.

        Returns the metrics of the run up to the last match written, the first :data:`SHOWN` matches, and
        the number of matches, up to the limit.
        """
        pattern = self.asked
        assert isinstance(pattern, Pattern)
        first, rows = self._joined(match_schema(pattern).empty_table(), pattern, attributes), 0
        with ExitStack() as stack:
            bar = stack.enter_context(out.progress("events", len(self.stream), scaled=True))
            batches = match_batches(
                replace(pattern, returns=()),
                self.stream,
                self.plan,
                rows=min(limit or _ROWS, _ROWS),
                on_progress=lambda done, _: bar.update(done - bar.n),
                **self.how,
            )
            write = file and stack.enter_context(
                match_writer(file, first.schema, position_columns(pattern))
            )
            for table in batches if limit is None else _limited(batches, limit):
                if write:
                    write(self._joined(table, pattern, attributes))
                if first.num_rows < SHOWN:
                    head = self._joined(table[: SHOWN - first.num_rows], pattern, attributes)
                    first = pa.concat_tables([first, head]).unify_dictionaries()
                rows += table.num_rows
        return batches.metrics(), first, rows

    def write_each(
        self, found: WorkloadMatches, files: Mapping[str, Path], attributes: Sequence[str]
    ) -> None:
        """Write the matches of each query of a workload."""
        for query, file in files.items():
            pattern = self.asked.queries[query]
            if pattern.returns:
                table = found[query].in_whole_stream(self.stream).arrow
            else:
                table = self._joined(found[query].arrow, pattern, attributes)
            with match_writer(file, table.schema, position_columns(pattern)) as write:
                write(table)

    def _joined(self, table: pa.Table, pattern: Pattern, attributes: Sequence[str]) -> pa.Table:
        """The columns of a pattern's RETURN, or positions with times and some attributes.

        Positions are those in the whole stream of which :attr:`stream` is a part.
        """
        if pattern.returns:
            places = self.stream.whole_positions()
            return returned_table(table, pattern, self.stream, places=places)
        names = [event_time(self.stream), *attributes]
        return with_events(table, self.stream, names, whole=True)


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
