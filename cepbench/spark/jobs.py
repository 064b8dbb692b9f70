"""Spark jobs over a list of items, with a progress bar and short errors."""

from __future__ import annotations

import gc
import math
import re
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import InheritableThread, inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cepbench import errors
from cepbench.errors import CepbenchError, DatasetError, EvaluationError
from cepbench.progress import progress_bar
from cepbench.registry import Registry

_POLL_SECONDS = 0.2
_LONGEST_POLL_SECONDS = 5.0

#: An error of ours at the end of a worker's stack trace.
_OURS = re.compile(r"^cepbench\.errors\.(\w+): (.*)", re.MULTILINE)

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_job(
    spark: SparkSession,
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    name: str,
    partitions: int | None = None,
    progress: bool = True,
    one_here: bool = False,
    **shown: Any,
) -> list[Result]:
    """Apply a function to every item, in Spark tasks; the results in the order of the items.

    Parameters
    ----------
    function : callable
        Runs in the workers, which import it from the installed package.
    partitions : int, optional
        Number of tasks; the results do not depend on it. By default each has a share of the items that
        are left: few tasks, since each takes a while to start, and short ones in the end, when cores wait
        for the last one.
    one_here : bool
        Handle a single item in this process: there is nothing to spread, and a task of its own takes
        longer than a small file.
    name, progress, **shown
        See :func:`watched`, also for errors; of ``finished`` items there are as many as given.
    """
    if not items:
        return []
    if one_here and len(items) == 1:
        try:
            return [function(items[0])]
        except CepbenchError:
            raise
        except Exception as error:
            cause = _cause(traceback.format_exc())
            raise DatasetError(f"the job {name!r} failed: {cause}") from error
    context = spark.sparkContext
    shares = _shares(items, context.defaultParallelism, partitions)

    def run() -> list[Any]:
        spread = context.parallelize(shares, len(shares))
        return spread.flatMap(lambda its: [_outcome(function, item) for item in its]).collect()

    # Not in this thread, where an interrupt would spoil the connection to Java that cancels the job.
    with (
        ThreadPoolExecutor(1) as thread,
        watched(spark, name, progress=progress, total=len(items), **shown),
    ):
        outcome = thread.submit(inheritable_thread_target(spark)(run)).result()
    for value in outcome:
        if isinstance(value, CepbenchError):
            raise value
    return outcome


def _shares(items: Sequence[Item], cores: int, number: int | None) -> list[list[Item]]:
    """Items by task, in their order: equally many in each of a number of tasks, or ever fewer."""
    left = list(items)
    shares: list[list[Item]] = []
    while left:
        tasks = 2 * cores if number is None else max(number - len(shares), 1)
        share = math.ceil(len(left) / tasks)
        shares.append(left[:share])
        left = left[share:]
    return shares


@contextmanager
def watched(
    spark: SparkSession,
    name: str,
    unit: str = "task",
    *,
    finished: Callable[[], int] | None = None,
    total: int | None = None,
    progress: bool = True,
) -> Iterator[None]:
    """Show the progress of the actions in a block, and raise the errors of their tasks as such.

    They are cancelled if the block is left by an error.

    Parameters
    ----------
    name, unit : str
        Labels of the progress bar.
    finished : callable, optional
        Returns how many of ``total`` are finished so far; by default tasks are counted.
    progress : bool
        Whether to show a progress bar after a few seconds.

    Raises
    ------
    CepbenchError
        The error of a task, if it is a CepbenchError; otherwise a DatasetError with the cause and
        its location, instead of the stack traces of Java and Python. Raised from Spark's error,
        which has the full text.
    """
    context = spark.sparkContext
    group = f"cepbench-{name}-{uuid.uuid4()}"
    before = context.getLocalProperty("spark.jobGroup.id")
    ended = threading.Event()
    bar = progress_bar(shown=progress, desc=name, unit=f" {unit}s", total=total)

    def show() -> None:
        tracker = context.statusTracker()
        began = time.monotonic()
        # Polling costs time too, so less often in long jobs.
        while not ended.wait(
            min(_LONGEST_POLL_SECONDS, max(_POLL_SECONDS, (time.monotonic() - began) / 50))
        ):
            if finished is not None:
                _advance(bar, finished())
                continue
            jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
            stages = {stage for job in jobs for stage in job.stageIds}
            found = [info for info in map(tracker.getStageInfo, sorted(stages)) if info]
            bar.total = sum(info.numTasks for info in found)
            _advance(bar, sum(info.numCompletedTasks for info in found))

    context.setJobGroup(group, f"cepbench {name}", interruptOnCancel=True)
    thread = InheritableThread(target=show)
    thread.start()
    try:
        with bar:
            yield
            _advance(bar, bar.total or 0)
    except (Py4JError, PySparkException) as error:
        ours = _OURS.findall(str(error))
        if ours:
            kind, message = ours[-1]
            raise getattr(errors, kind)(message) from error
        raise DatasetError(f"the Spark job {name!r} failed: {_cause(str(error))}") from error
    except BaseException:
        context.cancelJobGroup(group)
        raise
    finally:
        ended.set()
        thread.join()
        context.setLocalProperty("spark.jobGroup.id", before or "")


def _cause(text: str) -> str:
    """The last Python error in Spark's text and its location; otherwise Spark's own cause."""
    *_, last = ("", *re.split(r"Traceback \(most recent call last\):\n", text)[1:])
    place, cause = "", ""
    for line in last.splitlines():
        if line.startswith("  "):
            place = line if line.lstrip().startswith('File "') else place
        elif line.strip():
            cause = line.strip()
            break
    found = re.search(r'"(.+)", line (\d+), in (\S+)', place)
    if cause and found:
        return f"{cause} (in {found[3]}, {Path(found[1]).name} line {found[2]})"
    # Otherwise Java failed, or a worker died: the first line of Java's stack trace, without the
    # names of wrapping exceptions.
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((line for line in lines if "Exception: " in line), "".join(lines[:1]))
    cause = first.rsplit("Exception: ", 1)[-1]
    if "worker exited" in cause:
        cause += "; most often the system ran out of memory: use fewer cores or less data"
    return cause


def _advance(bar: Any, done: int) -> None:
    if done > bar.n:  # an update by 0 would redraw the bar
        bar.update(done - bar.n)


def _outcome(function: Callable[[Any], Any], item: Any) -> Any:
    """A result, or a CepbenchError as a value, to keep it out of Spark's messages."""
    try:
        return function(item)
    except CepbenchError as error:
        return error
    finally:
        _freeze_what_is_loaded()


@cache
def _freeze_what_is_loaded() -> None:
    """Once in a worker: PySpark collects garbage after every task, a tenth of a second over all modules."""
    gc.collect()
    gc.freeze()


def check_is_builtin(name: str | None, registry: Registry[Any], instead: str) -> None:
    """Check that Spark's workers have an entry of a registry; ``instead`` runs it in this process.

    An EvaluationError if it is user-defined, or there is no such entry.
    """
    if name is not None and not registry.find(name).is_builtin:
        raise EvaluationError(
            f"{name} is user-defined, and Spark's workers do not have it; use {instead}, which runs "
            "it in this process"
        )
