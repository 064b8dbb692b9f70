"""Notebooks side by side: one per core, after those that they read, until the first error."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from cepbench.errors import ReportError
from cepbench.presentation.reporting.side_by_side import ALL_CORES, ONE_CORE, Task, run_side_by_side


class Running:
    """Runs nothing, and notes who ran beside whom and in which order all ended."""

    def __init__(self, tasks: list[Task]) -> None:
        self.uses = {task.stem: task.uses for task in tasks}
        self.now: set[str] = set()
        self.together: list[Counter[str]] = []
        self.ended: list[str] = []
        self._lock = threading.Lock()

    def __call__(self, stem: str) -> float:
        with self._lock:
            self.now.add(stem)
            self.together.append(Counter(self.uses[one] for one in self.now))
        time.sleep(0.01)
        with self._lock:
            self.now.remove(stem)
            self.ended.append(stem)
        return 1.0


TASKS = [
    Task("whole", ALL_CORES),
    Task("ledger", ONE_CORE, frozenset({"a/one", "a/two", "not asked for"})),
    *(Task(f"a/{name}", ONE_CORE) for name in ("two", "one", "three", "four")),
]


@pytest.mark.parametrize("cores", [1, 2, 8])
def test_one_notebook_runs_per_core_after_those_that_it_reads(cores: int) -> None:
    running = Running(TASKS)
    said: list[str] = []
    run_side_by_side(
        TASKS, running, on_progress=lambda *line: said.append(": ".join(line)), cores=cores
    )
    assert sorted(running.ended) == sorted(task.stem for task in TASKS)
    for together in running.together:
        assert together.total() <= cores
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
    tasks = [Task("a", ONE_CORE, frozenset("b")), Task("b", ONE_CORE, frozenset("a"))]
    with pytest.raises(ReportError, match="wait for one another: a, b"):
        run_side_by_side(tasks, lambda stem: 0.0, cores=2)


def test_a_notebook_runs_alone_unless_its_metadata_say_otherwise() -> None:
    assert Task.of("own", {}) == Task("own", ALL_CORES)
    assert Task.of("own", {"uses": "one core"}, ["x"]) == Task("own", ONE_CORE, frozenset("x"))
    with pytest.raises(ReportError, match=r"own\.ipynb.*'one cor'.*did you mean 'one core'\?"):
        Task.of("own", {"uses": "one cor"})
