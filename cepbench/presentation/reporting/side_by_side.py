"""Notebooks run side by side, one per core.

A notebook whose metadata say ``"uses": "one core"`` runs beside others of its kind. One that uses
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
from cepbench.presentation.reporting.forked_kernels import kill_kernels, quiet_kernels

ONE_CORE, ALL_CORES = USES = ("one core", "all cores")


@dataclass(frozen=True, slots=True)
class Task:
    """A notebook to run, how many cores it :data:`uses <USES>`, and the stems of those that run earlier, if at all."""

    stem: str
    uses: str = ALL_CORES
    after: frozenset[str] = frozenset()

    @classmethod
    def of(cls, stem: str, metadata: Mapping[str, Any], after: Sequence[str] = ()) -> Task:
        """Read a task from a notebook's metadata; ``uses`` other than :data:`USES` is a :class:`ReportError`."""
        uses = metadata.get("uses", ALL_CORES)
        if uses not in USES:
            raise ReportError(
                f'{stem}.ipynb: unknown value {uses!r} of "uses" in its metadata'
                f"; use one of {', '.join(USES)}{did_you_mean(uses, USES)}"
            )
        return cls(stem, uses, frozenset(after))


def run_side_by_side(
    tasks: Sequence[Task],
    run: Callable[[str], float],
    *,
    on_progress: Callable[[str, str], object] = print,
    cores: int | None = None,
) -> None:
    """Run notebooks, each as soon as a core is free and the notebooks that it reads have ended.

    They are started in the order given, those that run alone last; ``run`` takes a stem, in a
    thread, and returns the seconds. Progress is reported in this thread, with the stem of a
    notebook and its state, when it begins and ends.

    Raises ReportError if notebooks wait for one another, and the first error of ``run``, after the
    running notebooks have ended; no others begin.
    """
    pending = sorted(tasks, key=lambda task: USES.index(task.uses))
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
                    raise ReportError(f"these notebooks wait for one another: {names}")
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    task = running.pop(future)
                    on_progress(task.stem, f"{future.result():.0f} s")
        except Exception:
            wait(running)
            raise
        except BaseException:  # interrupted by the user: end the kernels, and so the threads
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
    """The first task that may run beside those that are running."""
    if len(running) >= workers or any(task.uses == ALL_CORES for task in running):
        return None
    waited_for = {task.stem for task in (*pending, *running)}
    for task in pending:
        alone = task.uses == ALL_CORES and running
        if not (alone or task.after & waited_for - {task.stem}):
            return task
    return None
