"""Notebooks run side by side where that disturbs no measurement.

The metadata of a notebook state what it measures: ``"measures": "nothing"`` may run beside
anything, ``"one core"`` takes times on one core and runs beside notebooks that measure nothing, and
``"all cores"``, the default, runs alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import Context
from dataclasses import dataclass
from typing import Any

from jupyter_core.utils import ensure_event_loop

from cepbench.errors import ReportError, did_you_mean
from cepbench.reporting.notebooks import kill_kernels, quiet_kernels

NOTHING, ONE_CORE, ALL_CORES = MEASURES = ("nothing", "one core", "all cores")


@dataclass(frozen=True, slots=True)
class Task:
    """A notebook to run.

    Attributes
    ----------
    stem : str
    measures : str
        One of :data:`MEASURES`.
    after : frozenset of str
        Stems of those that must have been run, if they are run at all.
    """

    stem: str
    measures: str = ALL_CORES
    after: frozenset[str] = frozenset()

    @classmethod
    def of(cls, stem: str, metadata: Mapping[str, Any], after: Sequence[str] = ()) -> Task:
        """As a notebook's metadata say.

        Raises
        ------
        ReportError
            If ``measures`` is none of :data:`MEASURES`.
        """
        measures = metadata.get("measures", ALL_CORES)
        if measures not in MEASURES:
            raise ReportError(
                f"{stem}.ipynb: its metadata say that it measures {measures!r}"
                f"; it can measure {', '.join(MEASURES)}{did_you_mean(measures, MEASURES)}"
            )
        return cls(stem, measures, frozenset(after))


def run_side_by_side(
    tasks: Sequence[Task],
    run: Callable[[str], float],
    *,
    on_progress: Callable[[str, str], object] = print,
    cores: int | None = None,
) -> None:
    """Run notebooks, each as soon as it disturbs no measurement and its inputs are there.

    Parameters
    ----------
    tasks : sequence of Task
        Of those that may run, earlier ones go first.
    run : callable
        Runs the notebook of a stem, in a thread, and returns how many seconds that took.
    on_progress : callable
        Called in this thread with the stem of a notebook and its state, when it begins and ends.
    cores : int, optional
        How many may run at the same time; by default as many as this machine has cores.

    Raises
    ------
    ReportError
        If notebooks wait for one another.
    Exception
        The first that ``run`` raises, once those that had begun have ended; no others begin.
    """
    # What takes times goes first: there is one lane for all of it.
    pending = sorted(tasks, key=lambda task: (ONE_CORE, NOTHING, ALL_CORES).index(task.measures))
    running: dict[Future[float], Task] = {}
    workers = cores or os.cpu_count() or 1
    with quiet_kernels(), ThreadPoolExecutor(workers) as pool:
        try:
            while pending or running:
                while task := _next(pending, list(running.values()), workers):
                    pending.remove(task)
                    on_progress(task.stem, "running")
                    running[pool.submit(_in_own_loop, run, task.stem)] = task
                if not running:
                    names = ", ".join(task.stem for task in pending)
                    raise ReportError(f"each of these notebooks is to run after another: {names}")
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    task = running.pop(future)
                    on_progress(task.stem, f"{future.result():.0f} s")
        except Exception:
            wait(running)
            raise
        except BaseException:  # the user ends it: so do the kernels, and the threads with them
            kill_kernels()
            raise


def _in_own_loop(run: Callable[[str], float], stem: str) -> float:
    """Run a notebook in a thread whose event loop, which papermill makes, is closed in the end."""

    def call() -> float:
        try:
            return run(stem)
        finally:
            ensure_event_loop().close()

    return Context().run(call)


def _next(pending: Sequence[Task], running: Sequence[Task], workers: int) -> Task | None:
    """The first that may run beside those that are running."""
    measured = {task.measures for task in running}
    if len(running) >= workers or ALL_CORES in measured:
        return None
    waited_for = {task.stem for task in (*pending, *running)}
    for task in pending:
        alone = task.measures == ALL_CORES and running
        disturbing = task.measures == ONE_CORE and ONE_CORE in measured
        if not (alone or disturbing or task.after & waited_for - {task.stem}):
            return task
    return None
