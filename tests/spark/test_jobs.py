"""Spark jobs: results in order, and errors that a person can read."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from cepbench.errors import DatasetError, StreamError
from cepbench.spark.jobs import run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _double(number: int) -> int:
    return 2 * number


def _refuse(number: int) -> int:
    raise StreamError(f"row {number} is out of order")


def _divide(number: int) -> float:
    try:
        return 1 / number
    except ZeroDivisionError as error:
        raise ValueError("nothing to divide by") from error


def _sleep(seconds: float) -> None:
    time.sleep(seconds)


def _die(number: int) -> None:
    os._exit(1)


def _task_of(item: int) -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


# Workers cannot import test modules, so the functions go to them by value.
for function in (_double, _refuse, _divide, _sleep, _die, _task_of):
    function.__module__ = "__main__"


def test_results_come_in_the_order_of_the_items(spark: SparkSession) -> None:
    assert run_job(spark, _double, [3, 1, 2], name="double", partitions=2) == [6, 2, 4]
    assert run_job(spark, _double, [], name="double") == []


def test_tasks_are_few_and_the_last_ones_short(spark: SparkSession) -> None:
    items = range(60)
    tasks = run_job(spark, _task_of, items, name="tasks")
    sizes = [*Counter(tasks).values()]
    assert tasks == sorted(tasks) and sizes == sorted(sizes, reverse=True)
    assert (
        sizes[0] == math.ceil(60 / (2 * spark.sparkContext.defaultParallelism)) and sizes[-1] == 1
    )
    equal = Counter(run_job(spark, _task_of, items, name="tasks", partitions=8))
    assert sorted(equal.values()) == [7] * 4 + [8] * 4


def test_what_is_finished_is_asked_for_where_it_can_be(spark: SparkSession) -> None:
    asked = []
    run_job(spark, _sleep, [0.5] * 2, name="sleep", finished=lambda: asked.append(0) or len(asked))
    assert asked


def test_an_error_of_ours_arrives_as_it_is(spark: SparkSession) -> None:
    with pytest.raises(StreamError, match=r"^row 7 is out of order$"):
        run_job(spark, _refuse, [7], name="refuse")


def test_another_error_tells_job_cause_and_place(spark: SparkSession) -> None:
    with pytest.raises(DatasetError) as caught:
        run_job(spark, _divide, [1, 0], name="divide")
    expected = "the Spark job 'divide' failed: ValueError: nothing to divide by (in _divide, "
    assert str(caught.value).startswith(expected)
    assert "test_jobs.py line " in str(caught.value)


def test_a_worker_that_dies(spark: SparkSession) -> None:
    with pytest.raises(DatasetError) as caught:
        run_job(spark, _die, [0], name="die")
    told = str(caught.value)
    assert told.startswith("the Spark job 'die' failed: Python worker exited unexpectedly")
    assert "memory" in told
    assert "\n" not in told


def test_an_interrupt_cancels_the_job(spark: SparkSession) -> None:
    # As in a notebook: PySpark's own handler would cancel all jobs of the session.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT))
    began = time.monotonic()
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run_job(spark, _sleep, [60.0] * 2, name="sleep")
    finally:
        signal.signal(signal.SIGINT, before)
    assert time.monotonic() - began < 30
    assert run_job(spark, _double, [4], name="double") == [8]
