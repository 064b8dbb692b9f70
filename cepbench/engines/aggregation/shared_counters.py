"""The counters of several totals over the events of one partition."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from cepbench.engines.aggregation.kernels.shared_counts import lanes, tables, walk
from cepbench.engines.aggregation.shared_programs import SharedProgram
from cepbench.kernels.counts import LANES
from cepbench.state import Stateful

#: Columns do not lie whole pages apart.
_PADDING = 8

#: Arrays of the state that a snapshot has.
_KEPT = (
    "times", "cells", "lows", "seen", "highs", "bounds", "logs", "log_weights", "log_highs", "marks",
)  # fmt: skip

#: Rows of a table and entries of a log that there is room for at first.
_ROOM, _LOG_ROOM = 16, 64


class SharedCounters(Stateful):
    """The state of a program.

    Numbers are of 64 bits until one might become larger. From then on they are Python integers, and
    the kernel is interpreted.
    """

    SAVED = (*(f"_state.{name}" for name in _KEPT), "_state.progress[:]")

    def __init__(self, shared: SharedProgram) -> None:
        self._program = shared.program
        self._dtype: Any = shared.dtype
        program = self._program
        highs, lefts, room = np.zeros(len(program.columns) - 1, np.int64), len(program.lefts), _ROOM
        self._state = tables.State(
            room=room,
            times=np.zeros((len(highs), room), np.int64),
            cells=self._cells(len(program.inits), room),
            lows=np.zeros(len(program.horizons), np.int64),
            seen=highs.copy(),
            highs=highs,
            bounds=np.zeros(len(program.inits)),
            largest=np.zeros(1),
            log_room=_LOG_ROOM,
            logs=np.zeros((lefts, _LOG_ROOM, tables.LOG_COLUMNS), np.int64),
            log_weights=self._cells(lefts, _LOG_ROOM, padding=0),
            log_highs=np.zeros(lefts, np.int64),
            marks=np.zeros((lefts, room), np.int64),
            **self._working_space(room),
            queue=np.zeros((0, 2), np.int64),
            ends=np.zeros(program.orders // 2 + 1, np.int64),
            progress=np.zeros(tables.PROGRESS, np.int64),
            out=self._cells(0),
        )

    def push(self, events: tables.Events) -> np.ndarray:
        """Process some events; returns the values asked for."""
        progress = self._state.progress
        progress[: tables.UPDATES] = 0
        spans = (self._program.later_spans, self._program.create_spans)
        most = int(sum(np.diff(its)[events.symbols].sum() for its in spans))
        self._state = self._state._replace(
            out=self._cells(len(events.asks), padding=0), queue=np.empty((most, 2), np.int64)
        )
        if self._dtype is object:
            events = events._replace(weights=events.weights.astype(object))
        while (status := self._kernel("count_shared")(self._program, self._state, events)) != (
            tables.ENDED
        ):
            if status == tables.NEEDS_ROOM:
                self._grow()
            elif status == tables.NEEDS_LOG:
                self._grow_logs()
            else:
                self._widen()
                events = events._replace(weights=events.weights.astype(object))
        return self._state.out

    def values_at(self, time: int) -> np.ndarray:
        """All values at a time, which changes nothing."""
        state = self._state
        number = len(self._program.demands)
        asked = state._replace(
            lows=state.lows.copy(), progress=state.progress.copy(), bounds=state.bounds.copy(),
            out=self._cells(number, padding=0), **self._working_space(state.room),
        )  # fmt: skip
        if not self._kernel("values_at")(self._program, asked, time):
            self._widen()
            return self.values_at(time)
        return asked.out

    @property
    def bytes(self) -> int:
        """The size of its state."""
        return self.state_bytes() - self.progress.nbytes

    @property
    def progress(self) -> np.ndarray:
        """Updates, and the most rows and counters at a time."""
        return self._state.progress

    def resumed(self) -> None:
        """Kernels are interpreted for integers of any size; what is not saved is working space."""
        state = self._state
        room, log_room = state.times.shape[1], state.logs.shape[1]
        self._state = state._replace(room=room, log_room=log_room, **self._working_space(room))
        if state.cells.dtype == object:
            self._widen()

    # -- room -----------------------------------------------------------------------------------

    def _cells(self, *shape: int, padding: int = _PADDING) -> np.ndarray:
        return np.zeros((*shape[:-1], shape[-1] + padding), self._dtype)

    def _working_space(self, room: int) -> dict[str, Any]:
        """Lanes that have not begun."""
        program, links = self._program, len(self._program.links)
        return {
            "replays": np.full((len(program.lefts), tables.REPLAY_COLUMNS), -LANES),
            "lanes": self._cells(len(program.left_inits), LANES, padding=0),
            "lane_bounds": np.zeros(len(program.left_inits)),
            "panels": self._cells(links, LANES // tables.TILE, room, tables.TILE, padding=0),
            "tops": np.zeros(links),
            "firsts": np.full(links, -1),
        }

    def _grow(self) -> None:
        """Double the room of all tables."""
        old = self._state
        room = 2 * old.room
        cells = self._cells(len(old.cells), room)
        cells[:, :room] = _doubled(old.cells[:, : old.room])
        self._state = old._replace(
            room=room,
            times=_doubled(old.times),
            cells=cells,
            marks=_doubled(old.marks),
            **self._working_space(room),
        )

    def _grow_logs(self) -> None:
        """Double the room of all logs."""
        old = self._state
        self._state = old._replace(
            log_room=2 * old.log_room,
            logs=_doubled(old.logs),
            log_weights=_doubled(old.log_weights),
        )

    # -- digits ---------------------------------------------------------------------------------

    def _widen(self) -> None:
        """Go on with Python integers."""
        self._dtype = object
        state = self._state
        self._state = state._replace(
            cells=state.cells.astype(object),
            log_weights=state.log_weights.astype(object),
            out=state.out.astype(object),
            **self._working_space(state.room),
        )
        self._program = self._program._replace(limit=np.inf)

    def _kernel(self, name: str) -> Callable[..., Any]:
        if self._dtype is object:
            return _interpreted()[name]
        found: Callable[..., Any] = getattr(walk, name)
        return found


def _doubled(rings: np.ndarray) -> np.ndarray:
    """Rings of twice the room: row ``k % room`` becomes ``k % (2 * room)``, one of its two copies."""
    return np.concatenate((rings, rings), axis=1)


@cache
def _interpreted() -> dict[str, Callable[..., Any]]:
    """The functions of the kernel as Python functions, which take arrays of objects."""
    functions: dict[str, Callable[..., Any]] = {}
    for module in (lanes, walk):
        # What a module imports from the one before is interpreted, too.
        names = dict(vars(module)) | functions
        for name, its in vars(module).items():
            function = getattr(its, "py_func", its)
            if isinstance(function, FunctionType) and function.__module__ == module.__name__:
                functions[name] = names[name] = FunctionType(
                    function.__code__, names, name, function.__defaults__
                )
    return functions
