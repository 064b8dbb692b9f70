"""Running checked tasks on a whole stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cepbench.engines.detection.arrival import sharing, with_clock
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.rounds import Rounds
from cepbench.engines.runs.compressed import CompressedMatches
from cepbench.engines.runs.matches import Found
from cepbench.engines.runs.protocol import Task
from cepbench.engines.runs.result import Result
from cepbench.streams.event_stream import EventStream

#: Matches of a round among which OUTPUT selects.
_MATCHES = 1 << 15


def run_tasks(tasks: Sequence[Task], stream: EventStream) -> list[Result]:
    """Run tasks of one evaluator, which fit a whole stream; with one state if they are several.

    The seconds of each are those of its own work and an equal part of the rest.
    """
    evaluator = tasks[0].evaluator
    if len(tasks) > 1:
        evaluator = sharing(evaluator, tasks[0].pattern.order)
    tasks = with_clock(tasks, stream)
    in_rounds = _selects(tasks)
    detectors = [
        Detector.of_task(replace(task, evaluator=evaluator, whole=not in_rounds)) for task in tasks
    ]
    taken = _taken(detectors, stream, in_rounds=in_rounds)
    found = [[*its, detector.finish()] for its, detector in zip(taken, detectors, strict=True)]
    results = [
        _result(task, stream, detector, its)
        for task, detector, its in zip(tasks, detectors, found, strict=True)
    ]
    if len(results) == 1:
        return results
    own = [result.metrics.details["construction_seconds"] for result in results]
    rest = (sum(result.metrics.seconds for result in results) - sum(own)) / len(results)
    return [
        replace(result, metrics=replace(result.metrics, seconds=its + rest))
        for result, its in zip(results, own, strict=True)
    ]


def _selects(tasks: Sequence[Task]) -> bool:
    """Whether OUTPUT selects among all matches, which are then found in rounds.

    A user-defined evaluator may report a match after the round of its last event.
    """
    evaluator = tasks[0].evaluator
    selects = any(task.pattern.output != "all" for task in tasks) and not evaluator.selects_output
    return selects and evaluator.batches and evaluator.is_builtin


def _taken(
    detectors: Sequence[Detector], stream: EventStream, *, in_rounds: bool
) -> list[list[Found]]:
    """The matches that each detector finds in a stream but for its end."""
    if not in_rounds:
        return [[detector.take(stream)] for detector in detectors]
    found: list[list[Found]] = [[] for _ in detectors]
    rounds = Rounds(matches=_MATCHES)
    for part in rounds.parts(stream, lambda: sum(its.considered for its in detectors)):
        for its, detector in zip(found, detectors, strict=True):
            its.append(detector.take(part))
    return found


def _result(task: Task, stream: EventStream, detector: Detector, found: Sequence[Found]) -> Result:
    graphs = [graph for one in found for graph in one.graphs]
    values = found[0].values
    listed = task.output in ("matches", "arrow") and not graphs and values is None
    return Result(
        pattern=task.pattern,
        plan=task.plan,
        evaluator=task.evaluator.name,
        metrics=detector.metrics(),
        node_table=detector.node_table(),
        found=detector.in_branches(found) if listed else None,
        graph=CompressedMatches(task.pattern, graphs)
        if graphs or task.output == "compressed"
        else None,
        values=values,
        events=stream,
    )
