"""Running work that writes its own files as a Spark job, and following it on a bar."""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tqdm import tqdm

from cepbench.errors import CepbenchError, DatasetError

_POLL_SECONDS = 0.2
_LONGEST_POLL_SECONDS = 5.0
#: A job that is done before so many seconds shows no bar.
_SHORT_SECONDS = 3.0

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_job(
    spark: SparkSession,
    function: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    name: str,
    unit: str = "part",
    partitions: int | None = None,
    finished: Callable[[], int] | None = None,
    progress: bool = True,
) -> list[Result]:
    """Apply a function of the installed package to every item, in Spark tasks.

    Parameters
    ----------
    spark : SparkSession
    function : callable
        Runs in the workers.
    items : sequence
    name, unit : str
        Shown on the bar: what is done, and what it counts.
    partitions : int, optional
        Number of tasks; the results do not depend on it. By default a few a core.
    finished : callable, optional
        How many items are done so far, for the bar.
    progress : bool
        Whether to show a bar if it takes longer than a few seconds.

    Returns
    -------
    list
        The results in the order of ``items``.

    Raises
    ------
    CepbenchError
        What a task raised, if it was one; else a DatasetError with the cause and its place.
    """
    if not items:
        return []
    context = spark.sparkContext
    tasks = partitions or min(len(items), 4 * context.defaultParallelism)
    group = f"cepbench-{name}-{uuid.uuid4()}"
    outcome: list[tuple[str, Any]] = []
    broken: list[BaseException] = []

    def run() -> None:
        try:
            context.setJobGroup(group, f"cepbench {name}", interruptOnCancel=True)
            spread = context.parallelize(list(items), min(tasks, len(items)))
            outcome.extend(spread.map(lambda item: _outcome(function, item)).collect())
        except BaseException as error:  # handed to the caller's thread
            broken.append(error)

    thread = InheritableThread(target=run)
    thread.start()
    bar = tqdm(
        total=len(items), desc=name, unit=f" {unit}s", delay=_SHORT_SECONDS, disable=not progress
    )
    try:
        with bar:
            began = time.monotonic()
            while thread.is_alive():
                # Less often in a job of many hours: looking costs time as well.
                elapsed = time.monotonic() - began
                thread.join(min(_LONGEST_POLL_SECONDS, max(_POLL_SECONDS, elapsed / 50)))
                _advance(bar, finished() if finished else 0)
            _advance(bar, 0 if broken else len(items))
    except BaseException:
        context.cancelJobGroup(group)
        thread.join()
        raise
    if broken:
        with told_briefly(name):
            raise broken[0]
    for kind, value in outcome:
        if kind == "error":
            raise value
    return [value for _, value in outcome]


@contextmanager
def told_briefly(name: str) -> Iterator[None]:
    """Turn Spark's pages of two languages' stacks into an error that names the job and the cause.

    Parameters
    ----------
    name : str
        Of the job.

    Raises
    ------
    DatasetError
        From the error of Spark, whose whole text thus stays at hand.
    """
    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise DatasetError(f"the Spark job {name!r} failed: {_cause(str(error))}") from error


def _cause(text: str) -> str:
    """The end of the last Python traceback in Spark's text and its place; else Spark's own cause."""
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
    # Without one, Java failed by itself, or a worker died: the first line of Java's stack tells,
    # after the names of the exceptions that others were wrapped in.
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = next((line for line in lines if "Exception: " in line), "".join(lines[:1]))
    cause = told.rsplit("Exception: ", 1)[-1]
    if "worker exited" in cause:
        cause += "; most often the system had no memory left for it: use fewer cores or less data"
    return cause


def _advance(bar: Any, done: int) -> None:
    if done > bar.n:  # an update by nothing would draw the bar again
        bar.update(done - bar.n)


def _outcome(function: Callable[[Any], Any], item: Any) -> tuple[str, Any]:
    """A result, or an error of ours, which would otherwise drown in Spark's own messages."""
    try:
        return "result", function(item)
    except CepbenchError as error:
        return "error", error
