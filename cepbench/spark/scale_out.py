"""How long a detection would take on more cores, from its measured tasks and Spark's overheads."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from cepbench.arguments import whole
from cepbench.engines.detection.slices import COUNTS
from cepbench.engines.runs.slices import Slice
from cepbench.errors import EvaluationError
from cepbench.patterns.model import Pattern
from cepbench.planning.plans.model import AnyPlan
from cepbench.spark.balance import Slices
from cepbench.spark.detection import DetectionJob
from cepbench.spark.jobs import watched
from cepbench.spark.parquet_slices import ParquetSlices

#: Numbers of cores of the table.
CORES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

#: The share of the time that more cores have to save to be worth it.
SAVING = 0.1

#: A job that takes less is measured again, since in the first one the workers load the kernels.
_SHORT_SECONDS = 30.0

#: Empty tasks by which the driver's time for a task is measured.
_EMPTY_TASKS = 200

#: Tasks of a stage that are read from Spark's store.
_MOST_TASKS = 1_000_000


@dataclass(frozen=True)
class Overheads:
    """What a job takes besides its slices, in seconds."""

    #: Of a job, without its tasks: planning, submission, the result.
    job: float
    #: At most of the driver for each task, since it starts one after the other: the time of a job
    #: of empty tasks, by their number. The fewer cores run them, the more of it is theirs.
    dispatch: float
    #: Of a task without events: Java's and Python's, and opening the files.
    task: float


@dataclass(frozen=True, eq=False)
class Scaling:
    """A measured detection, and how long it would take on other numbers of cores.

    Attributes
    ----------
    slices, cores, seconds
        Of the measured job; the seconds from its start to its result.
    tasks : ndarray of float64, shape (slices.tasks,)
        The measured seconds of each of its tasks, in their order.
    before : ndarray of float64
        Those of the tasks before them, which read and shuffle a DataFrame; none for files.
    table : DataFrame
        A row for each number of ``cores``: ``tasks`` and ``copied`` (share of events) of the slices
        that :func:`cepbench.spark.slices` makes for so many; ``seconds``; ``speedup``, over one core;
        ``efficiency``, the speedup per core.
    """

    slices: Slices
    cores: int
    seconds: float
    tasks: np.ndarray
    before: np.ndarray
    overheads: Overheads
    table: pd.DataFrame

    @property
    def enough(self) -> int:
        """The smallest number of cores in the table of which no larger one saves a tenth of the time."""
        seconds = self.table.set_index("cores")["seconds"]
        best = seconds[::-1].cummin()[::-1]  # of as many cores or more
        return int(seconds.index[best >= (1 - SAVING) * seconds][0])

    @property
    def error(self) -> float:
        """By which share of its time the model misses the measured job."""
        return self.of_measured(self.cores) / self.seconds - 1

    def of_measured(self, cores: int) -> float:
        """Expected seconds of the measured slices on so many cores."""
        return job_seconds(self.tasks, self.before, cores, self.overheads)

    def describe(self) -> str:
        """The measured job, its overheads, and what other numbers of cores would do."""
        its = self.overheads
        lines = [
            f"{len(self.tasks)} tasks on {_cores(self.cores)} took {self.seconds:,.3g} s; by the model "
            f"{self.of_measured(self.cores):,.3g} s ({self.error:+.0%})",
            f"overheads: {1000 * its.job:,.3g} ms for the job, {1000 * its.task:,.3g} ms for each task, "
            f"and {1000 * its.dispatch:,.3g} ms of the driver for each task",
        ]
        lines += [
            f"{_cores(row['cores'])}: {row['seconds']:,.3g} s, {row['speedup']:,.3g} times as fast as "
            f"one; {row['tasks']:,} tasks, {row['copied']:.1%} of the events copied"
            for row in self.table.to_dict("records")
        ]
        last = self.enough == self.table["cores"].iloc[-1]
        lines.append(
            f"{_cores(self.enough)} still save a tenth of the time or more"
            if last
            else f"enough: {_cores(self.enough)}; more save less than a tenth of the time"
        )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.describe()}>"


def scaling(
    df: DataFrame | str | Path,
    pattern: Pattern | str,
    plan: AnyPlan | str | None = None,
    *,
    time: str,
    type: str,
    key: str | None = None,
    generator: str | None = None,
    evaluator: str | None = None,
    cores: Iterable[int] = CORES,
) -> Scaling:
    """How long :func:`cepbench.spark.detect` would take on more cores, and how many are worth it.

    The matches are counted once on the cores of the session, or twice if that takes less than half a
    minute, and Spark's tasks are timed.

    Parameters
    ----------
    df, pattern, plan, time, type, key, generator, evaluator
        See :func:`cepbench.spark.detect`.
    cores : iterable of int
        For which the time is estimated; one core is always among them.

    Returns
    -------
    Scaling
        ``table`` has a row for each number of cores, ``describe()`` says it in words.

    Raises
    ------
    CepbenchError
        As :func:`cepbench.spark.detect`.
    EvaluationError
        If ``cores`` are not whole numbers from 1 on.

    Notes
    -----
    List scheduling: the driver starts the tasks in their order, each on the first free core and
    ``overheads.dispatch`` after the one before it; the job ends with the last of them. For each number
    of cores the slices are those that :func:`cepbench.spark.slices` makes for it, with their copied
    events. It assumes that

    - a slice takes time in proportion to its work (events, copied ones included, and expected partial
      matches), at the seconds per work measured in that part of the stream, besides a constant for each
      task;
    - parts of the values of a key take equally long: values with very many events are not foreseen;
    - cores are alike, and as many of them read files, or send and receive what a shuffle divides,
      as fast per core as those measured: disks and networks that are shared are not in it;
    - what precedes the slices of a DataFrame is divided evenly among all cores.

    The sample and the plan, which precede the job, are not in it: ``slices=`` reuses them.
    """
    wanted = sorted({1, *(whole(its, "cores", EvaluationError, least=1) for its in cores)})
    job = DetectionJob.of(df, pattern, time, type, None, key, evaluator, "count")
    sample = job.sample()
    made = job.slices(plan, generator, None, sample=sample)
    overheads = measured_overheads(job, made)
    divided = job.divided(made)
    seconds, (*earlier, tasks) = timed(divided.run(made))
    if seconds < _SHORT_SECONDS:
        # A new DataFrame, since Spark keeps the shuffled events of one that ran.
        seconds, (*earlier, tasks) = timed(divided.run(made))
    before = np.concatenate([np.zeros(0), *earlier])
    rows = []
    for number in wanted:
        its = job.slices(plan, generator, None, sample=sample, cores=number)
        expected = expected_tasks(its, made, tasks, overheads.task)
        total = job_seconds(expected, spread(before, number), number, overheads)
        rows.append((number, its.tasks, its.copied, total))
    table = pd.DataFrame(rows, columns=["cores", "tasks", "copied", "seconds"])
    table["speedup"] = table["seconds"][0] / table["seconds"]
    table["efficiency"] = table["speedup"] / table["cores"]
    own = job.spark.sparkContext.defaultParallelism
    return Scaling(made, own, seconds, tasks, before, overheads, table)


def _cores(number: int) -> str:
    return "1 core" if number == 1 else f"{number:,} cores"


# -- the model ----------------------------------------------------------------------------------


def list_schedule(
    seconds: Sequence[float] | np.ndarray, cores: int, dispatch: float = 0.0
) -> float:
    """When the last task ends, if each in turn starts on the first free core.

    The next one can start ``dispatch`` seconds after it, however many cores are free.
    """
    free = [0.0] * cores
    for number, its in enumerate(seconds):
        heapq.heapreplace(free, max(free[0], number * dispatch) + float(its))
    return max(free)


def job_seconds(tasks: np.ndarray, before: np.ndarray, cores: int, overheads: Overheads) -> float:
    """The time of a job of tasks and of those that have to end before they start."""
    ends = (list_schedule(its, cores, overheads.dispatch) for its in (before, tasks))
    return overheads.job + sum(ends)


def spread(seconds: np.ndarray, cores: int) -> np.ndarray:
    """The same seconds in one task a core."""
    return np.full(cores, seconds.sum() / cores) if len(seconds) else seconds


def expected_tasks(
    slices: Slices, measured: Slices, seconds: np.ndarray, constant: float
) -> np.ndarray:
    """The expected seconds of the tasks of slices, from those measured in others of the stream.

    Both have tables; a task without events takes the ``constant``.
    """
    share, measured_share = _shares(slices), _shares(measured)
    its = np.maximum(seconds - constant, 0.0).reshape(-1, measured.parts).sum(axis=1)
    below = np.concatenate(([0.0], np.cumsum(its)))
    # Slices that copy more events have more work in all.
    more = _work(slices).sum() / max(_work(measured).sum(), 1e-300)
    each = more * np.diff(np.interp(share, measured_share, below)) / slices.parts
    return np.repeat(each, slices.parts) + constant


def _work(slices: Slices) -> np.ndarray:
    assert slices.table is not None
    return slices.table["work"].to_numpy(np.float64)


def _shares(slices: Slices) -> np.ndarray:
    """Which share of all work is before each slice, and before the end: from 0 to 1."""
    below = np.concatenate(([0.0], np.cumsum(_work(slices))))
    return below / below[-1] if below[-1] else np.linspace(0.0, 1.0, len(below))


# -- measuring ----------------------------------------------------------------------------------


def measured_overheads(job: DetectionJob, made: Slices) -> Overheads:
    """Those of a job without events, in the session of a detection."""
    spark = job.spark
    empty = spark.range(_EMPTY_TASKS, numPartitions=_EMPTY_TASKS)
    for _ in range(2):  # the first time Java loads classes
        began = time.perf_counter()
        empty._jdf.rdd().count()
        dispatch = (time.perf_counter() - began) / _EMPTY_TASKS
    number = 2 * spark.sparkContext.defaultParallelism
    if isinstance(job.events, ParquetSlices):
        after = job.events.extent[1] + job.slicer.lead
        nothing = [Slice(0, after, None, made.plans[0])] * number
        tasks = job.run(made, nothing)
    else:
        rows = spark.range(number, numPartitions=number)
        tasks = rows.mapInArrow(_nothing, from_arrow_schema(COUNTS))
    for _ in range(2):  # the first time workers start
        seconds, (each,) = timed(tasks)
    constant = seconds - list_schedule(each, number // 2, dispatch)
    return Overheads(max(0.0, constant), dispatch, float(np.median(each)))


def _nothing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task without events; in a Spark worker."""
    return (COUNTS.empty_table().to_batches()[0] for _ in batches if False)


def timed(df: DataFrame) -> tuple[float, list[np.ndarray]]:
    """The seconds until all rows of a DataFrame are here, and those of the tasks of each stage."""
    context = df.sparkSession.sparkContext
    with watched(df.sparkSession, "measure"):
        group = context.getLocalProperty("spark.jobGroup.id")
        began = time.perf_counter()
        df.collect()
        seconds = time.perf_counter() - began
    java = context._jsc.sc()
    java.listenerBus().waitUntilEmpty()
    tracker = context.statusTracker()
    jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
    stages = [
        _task_seconds(java.statusStore(), its)
        for its in sorted({s for j in jobs for s in j.stageIds})
    ]
    return seconds, [its for its in stages if len(its)]


def _task_seconds(store: Any, stage: int) -> np.ndarray:
    """The seconds of the tasks of a stage as the driver sees them; none of one that was skipped."""
    found = store.taskList(stage, store.lastStageAttempt(stage).attemptId(), _MOST_TASKS)
    tasks = map(found.apply, range(found.size()))
    seconds = {
        its.index(): its.duration().get() / 1000 for its in tasks if its.status() == "SUCCESS"
    }
    return np.array([seconds[number] for number in sorted(seconds)])
