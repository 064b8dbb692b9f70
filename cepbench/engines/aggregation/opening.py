"""The arguments of aggregations as tasks, and the method that runs one."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial

from cepbench.arguments import choice
from cepbench.engines.aggregation.arrival import ArrivalAggregation
from cepbench.engines.aggregation.protocol import (
    EMITS,
    SCOPES,
    AggregationMethod,
    AggregationRun,
    AggregationTask,
)
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.engines.aggregation.tables import check_names
from cepbench.errors import EvaluationError, PatternError, UnsupportedPatternError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import EventType, Pattern
from cepbench.streams.arrival import ArrivalClock


def task_of(
    pattern: Pattern | str, emit: str, scope: str, evaluator: str | None
) -> AggregationTask:
    """Check the arguments of :class:`Aggregator`.

    Raises
    ------
    PatternError, EvaluationError
        If one is invalid.
    """
    pattern = pattern_from(pattern, aggregates=True)
    if not pattern.aggregates:
        raise PatternError(
            "the pattern has no AGG; write AGG COUNT before WITHIN, or use cep.evaluate for its "
            "matches"
        )
    check_names(pattern)
    return AggregationTask(
        pattern,
        choice(emit, "emit", EMITS, EvaluationError),
        choice(scope, "scope", SCOPES, EvaluationError),
        evaluator,
    )


def opened(task: AggregationTask, method: str | None) -> tuple[AggregationMethod, AggregationRun]:
    """The method of a task, by default the first one that runs it, and a run.

    Raises
    ------
    EvaluationError
        If the method is unknown, or uses no evaluator.
    UnsupportedPatternError
        If the method cannot run the pattern.
    """
    if method is not None:
        chosen = AGGREGATORS.find(method)
        if task.evaluator is not None and not chosen.lists_matches:
            raise EvaluationError(f"the method {chosen.name} uses no evaluator; leave it out")
        _check_concepts(chosen, task.pattern)
        return chosen, _run(chosen, task)
    for entry in (entry for entry in AGGREGATORS.values() if entry.expires):
        if entry.lists_matches:  # which runs all patterns
            return entry, _run(entry, task)
        if task.evaluator is None:
            with suppress(UnsupportedPatternError):
                return entry, _run(entry, task)
    raise AssertionError(task)  # pragma: no cover


def _run(method: AggregationMethod, task: AggregationTask) -> AggregationRun:
    pattern = task.pattern
    if pattern.order == "time":
        return method.open(task)
    return ArrivalAggregation(partial(_run_by, method=method, task=task), [pattern])


def _run_by(
    clock: ArrivalClock, method: AggregationMethod, task: AggregationTask
) -> AggregationRun:
    return method.open(replace(task, pattern=clock.pattern(task.pattern)))


def _check_concepts(method: AggregationMethod, pattern: Pattern) -> None:
    """Check that a method takes the concepts of a pattern.

    Raises
    ------
    UnsupportedPatternError
    """
    if method.concepts:
        return
    types = [key for key in pattern.group_by if isinstance(key.attribute, EventType)]
    if pattern.concepts or types:
        what = f"GROUP BY {types[0]}" if types else f"items of a concept ({pattern.concepts[0]})"
        raise UnsupportedPatternError(
            f"the method {method.name} does not declare that it takes {what}; use the method two-step, "
            "or register it with concepts=True once it does"
        )
