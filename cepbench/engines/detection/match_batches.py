"""Matches in batches, for results larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepbench.arguments import callback, whole
from cepbench.engines.detection.chosen import chosen
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.rounds import Rounds
from cepbench.engines.detection.task_runs import run_tasks
from cepbench.engines.detection.tasks import PARTIAL_MATCH_LIMIT, chosen_evaluator, task_for
from cepbench.engines.runs.protocol import Arguments, Evaluator
from cepbench.engines.runs.result import Metrics
from cepbench.errors import EvaluationError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.given import plan_from
from cepbench.planning.plans.model import AnyPlan
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import (
    check_fit,
    check_types,
    reporting_missing_types,
    under_one_hierarchy,
)
from cepbench.streams.given import Frame, events_from

#: Number of events pushed first, and at most.
_FIRST_EVENTS, _MOST_EVENTS = 1 << 10, 1 << 20


class MatchBatches(Iterator[pa.Table]):
    """Batches of matches, computed lazily, and the metrics so far."""

    def __init__(self, tables: Iterator[pa.Table], metrics: Callable[[], Metrics]) -> None:
        self._tables = tables
        self._metrics = metrics

    def __next__(self) -> pa.Table:
        return next(self._tables)

    def metrics(self) -> Metrics:
        """Metrics so far, including matches not yet returned."""
        return self._metrics()


def match_batches(
    pattern: Pattern | str,
    stream: EventStream | Frame,
    plan: AnyPlan | None = None,
    *,
    type: str | None = None,
    time: str | None = None,
    rows: int = 1_000_000,
    evaluator: str | Evaluator | None = None,
    options: Mapping[str, Any] | None = None,
    partial_match_limit: int = PARTIAL_MATCH_LIMIT,
    on_progress: Callable[[int, int], object] | None = None,
    missing_types: str = "warn",
) -> MatchBatches:
    """Find all matches of ``pattern`` in ``stream``, batch by batch.

    Events are processed in portions that complete about ``rows`` matches. Batches can be written
    and dropped, for example by ``pyarrow.parquet.ParquetWriter.write_table``.

    Parameters
    ----------
    pattern : Pattern or str
        Or its text.
    stream, plan, type, time
        As in :func:`~cepbench.engines.detection.evaluate.evaluate`.
    rows : int
        Maximum number of rows of a batch.
    evaluator, options
        As in :func:`cepbench.engines.detection.evaluate.evaluate`. An evaluator of whole streams computes
        all matches before the first batch.
    partial_match_limit : int
        The same.
    on_progress : callable, optional
        Called after each portion with the numbers of events processed and of all events.
    missing_types : {"warn", "error"}
        As in :func:`~cepbench.engines.detection.evaluate.evaluate`.

    Returns
    -------
    MatchBatches
        An iterator of pyarrow.Table, with ``metrics()`` so far. Tables have one to ``rows`` rows
        and the columns of :func:`cepbench.engines.runs.arrow_matches.match_schema`.

    Raises
    ------
    EvaluationError
        If ``rows`` is not positive; and all errors of ``evaluate``.
    """
    rows = whole(rows, "rows", EvaluationError, least=1)
    on_progress = callback(on_progress, "on_progress", EvaluationError)
    pattern, stream = under_one_hierarchy(pattern_from(pattern), events_from(stream, type, time))
    with reporting_missing_types(missing_types):
        check_types(pattern, stream)
        check_fit(pattern, stream)
        asked = Arguments(
            evaluator=evaluator,
            options=options,
            output="arrow",
            partial_match_limit=partial_match_limit,
        )
        if plan is None:
            plan, evaluator, _ = chosen(pattern, stream, asked, whole_stream=False)
        else:
            plan = plan_from(plan)
        used = chosen_evaluator(plan, evaluator, pattern.strategy.name)
        asked = replace(asked, evaluator=used)
        task = task_for(pattern, plan, asked, whole_stream=not used.batches)
        if task.whole:
            (result,) = run_tasks([task], stream)
            if on_progress is not None:
                on_progress(len(stream), len(stream))
            return MatchBatches(_slices(result.arrow, rows), lambda: result.metrics)
    detector = Detector.of_task(task)
    return MatchBatches(_batches(detector, stream, rows, on_progress), detector.metrics)


def _batches(
    detector: Detector,
    stream: EventStream,
    rows: int,
    on_progress: Callable[[int, int], object] | None,
) -> Iterator[pa.Table]:
    rounds = Rounds(min(_FIRST_EVENTS, rows), rows, _MOST_EVENTS)
    for part in rounds.parts(stream, lambda: detector.metrics().matches):
        found = detector.push(part)
        if on_progress is not None:
            on_progress(detector.position, len(stream))
        yield from _slices(found, rows)
    yield from _slices(detector.flush(), rows)


def _slices(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    for begin in range(0, table.num_rows, rows):
        yield table.slice(begin, rows)
