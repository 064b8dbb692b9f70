"""Notebooks side by side: what measures is not disturbed, what is read is there, errors end it."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from cepbench.errors import ReportError
from cepbench.reporting.side_by_side import ALL_CORES, NOTHING, ONE_CORE, Task, run_side_by_side


class Running:
    """Runs nothing, and notes who ran beside whom and in which order all ended."""

    def __init__(self, tasks: list[Task]) -> None:
        self.measures = {task.stem: task.measures for task in tasks}
        self.now: set[str] = set()
        self.together: list[Counter[str]] = []
        self.ended: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, stem: str) -> float:
        with self._lock:
            self.now.add(stem)
            self.together.append(Counter(self.measures[one] for one in self.now))
        time.sleep(0.01)
        with self._lock:
            self.now.remove(stem)
            self.ended.append(stem)
        return 1.0


TASKS = [
    Task("whole", ALL_CORES),
    Task("ledger", NOTHING, frozenset({"a/one", "a/two", "not asked for"})),
    *(Task(f"a/{name}", NOTHING) for name in ("one", "three", "four")),
    *(Task(f"a/{name}", ONE_CORE) for name in ("two", "five", "six")),
]


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_measurements_are_not_disturbed_and_what_is_read_is_there(cores: int) -> None:
    running = Running(TASKS)
    said: list[str] = []
    run_side_by_side(
        TASKS, running, on_progress=lambda *line: said.append(": ".join(line)), cores=cores
    )
    assert sorted(running.ended) == sorted(task.stem for task in TASKS)
    for together in running.together:
        assert together.total() <= cores and together[ONE_CORE] <= 1
        assert together[ALL_CORES] == 0 or together.total() == 1
    assert (max(together.total() for together in running.together) > 1) == (cores > 1)
    assert {"a/one", "a/two"} <= set(running.ended[: running.ended.index("ledger")])
    assert said.count("ledger: running") == said.count("ledger: 1 s") == 1


def test_after_an_error_nothing_more_begins() -> None:
    begun = []

    def run(stem: str) -> float:
        begun.append(stem)
        raise ReportError(f"{stem} failed")

    with pytest.raises(ReportError, match="a/two failed"):
        run_side_by_side(TASKS, run, on_progress=lambda what, state: None, cores=1)
    assert begun == ["a/two"]


def test_notebooks_that_wait_for_one_another_are_an_error() -> None:
    tasks = [Task("a", NOTHING, frozenset("b")), Task("b", NOTHING, frozenset("a"))]
    with pytest.raises(ReportError, match="after another: a, b"):
        run_side_by_side(tasks, lambda stem: 0.0, cores=2)


def test_a_notebook_runs_alone_unless_its_metadata_say_otherwise() -> None:
    assert Task.of("own", {}) == Task("own", ALL_CORES)
    assert Task.of("own", {"measures": "nothing"}, ["x"]) == Task("own", NOTHING, frozenset("x"))
    with pytest.raises(
        ReportError, match=r"own\.ipynb.*'nothin'; it can measure .*; did you mean 'nothing'\?"
    ):
        Task.of("own", {"measures": "nothin"})
