"""Running a checked task on a whole stream."""

from __future__ import annotations

from cepbench.evaluators.compressed import CompressedMatches
from cepbench.evaluators.detector import Detector
from cepbench.evaluators.protocol import Evaluator, Task
from cepbench.evaluators.result import Result
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_types


def run_task(evaluator: Evaluator, task: Task, stream: EventStream) -> Result:
    """Run a task of :func:`cepbench.evaluators.tasks.task_for` on a whole stream.

    Raises
    ------
    StreamError
        If the pattern asks for types or attributes that the stream does not have.
    PartialMatchLimitError
        If more partial matches would have to be stored than allowed.
    """
    check_types(task.pattern, stream)
    detector = Detector.of_task(evaluator, task)
    found = [detector.take(stream), detector.finish()]
    graphs = [graph for one in found for graph in one.graphs]
    values = found[0].values
    listed = task.output == "matches" and not graphs and values is None
    return Result(
        pattern=task.pattern,
        plan=task.plan,
        evaluator=evaluator.name,
        metrics=detector.metrics(),
        node_table=detector.node_table(),
        found=detector.in_branches(found) if listed else None,
        graph=CompressedMatches(task.pattern, graphs)
        if graphs or task.output == "compressed"
        else None,
        values=values,
        events=stream if task.pattern.returns else None,
    )
