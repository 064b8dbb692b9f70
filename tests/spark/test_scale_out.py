"""The model of more cores: list scheduling, and jobs whose times are known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import EvaluationError
from cepbench.spark.balance import Slices
from cepbench.spark.scale_out import (
    Overheads,
    Scaling,
    expected_tasks,
    job_seconds,
    list_schedule,
    spread,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = st.lists(st.integers(0, 6), max_size=9)
CORES = st.integers(1, 5)
FREE = Overheads(job=0.0, dispatch=0.0, task=0.0)


def second_by_second(tasks: list[int], cores: int, dispatch: int) -> int:
    """A twin that looks in every second whether a core is free."""
    now, ends = 0, [0]
    while len(ends) <= len(tasks):
        number = len(ends) - 1
        if sum(end > now for end in ends) < cores and number * dispatch <= now:
            ends.append(now + tasks[number])
        else:
            now += 1
    return max(ends)


def slices_of(work: list[float], parts: int = 1) -> Slices:
    """Slices of this expected work."""
    starts = tuple(range(1, len(work)))
    return Slices(starts, parts, "k" * (parts > 1) or None, table=pd.DataFrame({"work": work}))


@given(TASKS, CORES, st.integers(0, 2))
def test_each_task_starts_on_the_first_free_core(
    tasks: list[int], cores: int, dispatch: int
) -> None:
    assert list_schedule(tasks, cores, dispatch) == second_by_second(tasks, cores, dispatch)


@given(TASKS, CORES, st.integers(0, 2), st.data())
def test_more_cores_and_shorter_tasks_never_take_longer(
    tasks: list[int], cores: int, dispatch: int, data: st.DataObject
) -> None:
    seconds = list_schedule(tasks, cores, dispatch)
    assert list_schedule(tasks, cores + 1, dispatch) <= seconds
    shorter = [data.draw(st.integers(0, its)) for its in tasks]
    assert list_schedule(shorter, cores, dispatch) <= seconds
    assert list_schedule(tasks, cores) <= seconds
    fewest = max([sum(tasks) / cores, *tasks])
    assert fewest <= list_schedule(tasks, cores) <= sum(tasks) / cores + max(tasks, default=0)


WORK = st.lists(st.floats(0.0, 1e9), min_size=1, max_size=6)


@given(WORK, st.integers(1, 3), st.floats(0.0, 1.0), st.data())
def test_measured_slices_are_expected_as_measured(
    work: list[float], parts: int, constant: float, data: st.DataObject
) -> None:
    measured = slices_of([its + 1.0 for its in work], parts)
    seconds = constant + np.repeat([data.draw(st.floats(0.0, 100.0)) for _ in work], parts)
    found = expected_tasks(measured, measured, seconds, constant)
    np.testing.assert_allclose(found, seconds, atol=1e-9)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=12), st.data())
def test_other_slices_of_the_same_work_take_the_same_seconds(
    work: list[int], data: st.DataObject
) -> None:
    """However the cuts lie: each piece takes what its part of a measured slice took for its work."""
    rate = [data.draw(st.sampled_from([0.5, 1.0, 4.0])) for _ in work]
    cuts = sorted(data.draw(st.sets(st.integers(1, sum(work) - 1))))
    found = expected_tasks(
        slices_of(np.diff([0, *cuts, sum(work)]).tolist()),
        slices_of([float(its) for its in work]),
        np.array(work) * rate + 0.25,
        0.25,
    )
    units = np.split(np.repeat(rate, work), cuts)
    np.testing.assert_allclose(found, [its.sum() + 0.25 for its in units])


def test_slices_that_copy_more_take_longer() -> None:
    one, two = slices_of([100.0]), slices_of([60.0, 60.0])
    assert expected_tasks(two, one, np.array([10.5]), 0.5).tolist() == [6.5, 6.5]
    # Parts by key share the work of a slice, and each has the constant.
    parts = expected_tasks(slices_of([60.0], 3), one, np.array([10.5]), 0.5)
    assert parts.tolist() == [2.5, 2.5, 2.5]


def test_a_stream_without_work() -> None:
    found = expected_tasks(slices_of([0.0, 0.0]), slices_of([0.0]), np.array([0.5]), 0.5)
    assert found.tolist() == [0.5, 0.5]


def test_a_job_waits_for_what_comes_before_its_slices() -> None:
    tasks, before = np.full(8, 2.0), np.array([3.0, 1.0])
    assert job_seconds(tasks, before, 1, FREE) == 20.0
    assert job_seconds(tasks, before, 2, FREE) == 11.0
    assert job_seconds(tasks, spread(before, 4), 4, FREE) == 5.0
    slow = Overheads(job=7.0, dispatch=0.5, task=0.0)
    # 1,000 cores wait for the driver, which starts the last of eight tasks after 3.5 seconds.
    assert job_seconds(tasks, before[:0], 1000, slow) == 7.0 + 3.5 + 2.0


def scaling_of(seconds: list[float]) -> Scaling:
    table = pd.DataFrame({"cores": [1, 10, 100], "seconds": seconds})
    table = table.assign(tasks=4, copied=0.5, speedup=seconds[0] / table["seconds"])
    return Scaling(slices_of([1.0]), 1, 8.0, np.array([4.0, 6.0]), np.zeros(0), FREE, table)


@pytest.mark.parametrize(
    ("seconds", "enough", "words"),
    [
        ([10.0, 2.0, 1.0], 100, "100 cores still save a tenth of the time or more"),
        ([10.0, 2.0, 1.9], 10, "enough: 10 cores; more save less than a tenth of the time"),
        ([10.0, 2.0, 4.0], 10, "enough: 10 cores; more save less than a tenth of the time"),
        # A step that saves little does not end it if a later one saves more.
        ([10.0, 9.5, 1.0], 100, "100 cores still save a tenth of the time or more"),
        ([10.0, 9.5, 9.4], 1, "enough: 1 core; more save less than a tenth of the time"),
    ],
)
def test_how_many_cores_are_enough(seconds: list[float], enough: int, words: str) -> None:
    found = scaling_of(seconds)
    assert found.enough == enough
    text = found.describe()
    assert text.endswith(words)
    assert "2 tasks on 1 core took 8 s; by the model 10 s (+25%)" in text
    assert found.error == 0.25 and found.of_measured(2) == 6.0


@pytest.fixture(scope="module")
def trades(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    path = tmp_path_factory.mktemp("scaling") / "trades.parquet"
    pd.DataFrame(
        {"symbol": rng.choice(list("ABC"), 600), "at": np.sort(rng.integers(0, 3000, 600))}
    ).to_parquet(path, index=False)
    return path


@pytest.mark.parametrize("of", ["files", "DataFrame"])
def test_a_job_is_timed_and_predicted(spark: SparkSession, trades: Path, of: str) -> None:
    events = trades if of == "files" else spark.read.parquet(str(trades))
    pattern = "PATTERN SEQ(A a, B b) WITHIN 20 units"
    found = cep.spark.scaling(events, pattern, time="at", type="symbol", cores=[8, 2])
    assert len(found.tasks) == found.slices.tasks and (found.tasks > 0).all()
    assert (len(found.before) > 0) == (of == "DataFrame")
    assert max(found.tasks) < found.seconds
    assert found.table["cores"].tolist() == [1, 2, 8] and found.cores == 2
    for number, its in zip((1, 2, 8), found.table["tasks"], strict=True):
        assert number <= its <= 4 * number
    made = cep.spark.slices(
        events, pattern, time="at", type="symbol", output="count", tasks=int(its)
    )
    assert made.tasks == its
    assert found.table["speedup"][0] == found.table["efficiency"][0] == 1.0
    its = found.overheads
    assert its.job >= 0 and 0 < its.dispatch < its.task


def test_cores_are_checked_before_anything_runs(trades: Path) -> None:
    with pytest.raises(EvaluationError, match="cores must be at least 1, not 0"):
        cep.spark.scaling(trades, "PATTERN SEQ(A a, B b)", time="at", type="symbol", cores=[0])
