"""The counters of several totals over the events of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np

from cepbench.aggregators.shared_programs import SharedProgram
from cepbench.kernels.shared_counts import tables, walk

#: Columns do not lie whole pages apart.
_PADDING = 8

#: Arrays of the state that a snapshot has.
_KEPT = ("times", "cells", "lows", "seen", "highs", "bounds", "snapshots", "ends", "sizes", "tops")


class SharedCounters:
    """The state of a program.

    Numbers are of 64 bits until one might become larger. From then on they are Python integers, and
    the kernel is interpreted.

    Parameters
    ----------
    shared : SharedProgram
    """

    def __init__(self, shared: SharedProgram) -> None:
        self._program = shared.program
        self._dtype: Any = shared.dtype
        program = self._program
        highs, links = np.zeros(len(program.columns) - 1, np.int64), len(program.links)
        room = tables.BLOCK
        self._state = tables.State(
            room=room,
            times=np.zeros((len(highs), room), np.int64),
            cells=self._cells(len(program.inits), room),
            lows=np.zeros(len(program.horizons), np.int64),
            seen=highs.copy(),
            highs=highs,
            bounds=np.zeros(len(program.inits)),
            largest=np.zeros(1),
            snapshots=self._cells(links, room, room),
            ends=np.zeros((links, room), np.int64),
            sizes=np.zeros((links, room)),
            tops=np.zeros(links),
            firsts=np.zeros(len(program.demands), np.int64),
            **self._working_space(room),
            progress=np.zeros(tables.PROGRESS, np.int64),
            out=self._cells(0),
        )

    def push(self, events: tables.Events) -> np.ndarray:
        """Process some events; returns the values asked for.

        Parameters
        ----------
        events : cepbench.kernels.shared_counts.tables.Events
        """
        progress = self._state.progress
        progress[: tables.UPDATES] = 0
        self._state = self._state._replace(out=self._cells(len(events.asks), padding=0))
        if self._dtype is object:
            events = events._replace(weights=events.weights.astype(object))
        while (status := self._kernel("count_shared")(self._program, self._state, events)) != (
            tables.ENDED
        ):
            if status == tables.NEEDS_ROOM:
                self._grow()
            else:
                self._widen()
                events = events._replace(weights=events.weights.astype(object))
        return self._state.out

    def values_at(self, time: int) -> np.ndarray:
        """All values at a time, which changes nothing."""
        state = self._state
        number = len(self._program.demands)
        asked = state._replace(
            lows=state.lows.copy(), firsts=state.firsts.copy(), progress=state.progress.copy(),
            tops=state.tops.copy(), bounds=state.bounds.copy(), out=self._cells(number, padding=0),
            **self._working_space(state.room),
        )  # fmt: skip
        if not self._kernel("values_at")(self._program, asked, time):
            self._widen()
            return self.values_at(time)
        return asked.out

    @property
    def is_empty(self) -> bool:
        """Whether there is no row."""
        number = len(self._state.highs)
        return bool((self._state.lows[:number] == self._state.highs).all())

    @property
    def bytes(self) -> int:
        """The size of its state."""
        return sum(array.nbytes for array in self.arrays().values())

    @property
    def progress(self) -> np.ndarray:
        """Updates, and the most rows and counters at a time."""
        return self._state.progress

    def arrays(self) -> dict[str, np.ndarray]:
        """The state between pushes."""
        state = self._state._asdict()
        return {
            name: state[name].astype(str) if state[name].dtype == object else state[name]
            for name in _KEPT
        }

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Resume from the arrays that :meth:`arrays` gave."""
        copies = {name: arrays[name].copy() for name in _KEPT}
        for name in ("cells", "snapshots"):
            if copies[name].dtype.kind == "U":
                copies[name] = _integers(copies[name])
                self._dtype = object
        room = copies["times"].shape[1]
        self._state = self._state._replace(room=room, **copies, **self._working_space(room))
        self._set_limit()

    # -- room -----------------------------------------------------------------------------------

    def _cells(self, *shape: int, padding: int = _PADDING) -> np.ndarray:
        return np.zeros((*shape[:-1], shape[-1] + padding), self._dtype)

    def _working_space(self, room: int) -> dict[str, Any]:
        demands = len(self._program.demands)
        linked = demands if len(self._program.links) else 0
        return {
            "panels": self._cells(linked, tables.BLOCK, room),
            "filled": np.full((demands, 2), -1),
        }

    def _grow(self) -> None:
        """Double the room of all tables."""
        old = self._state
        room = 2 * old.room
        state = old._replace(
            room=room,
            times=np.zeros((len(old.times), room), np.int64),
            cells=self._cells(len(old.cells), room),
            snapshots=self._cells(len(old.snapshots), room, room),
            ends=np.zeros((len(old.ends), room), np.int64),
            sizes=np.zeros((len(old.sizes), room)),
            **self._working_space(room),
        )
        program = self._program
        kept = [np.arange(*its) for its in zip(old.lows, old.highs, strict=False)]
        for table, rows in enumerate(kept):
            here, there = rows & (old.room - 1), rows & (room - 1)
            columns = slice(*program.columns[table : table + 2])
            state.times[table, there] = old.times[table, here]
            state.cells[columns, there] = old.cells[columns, here]
            for link in range(*program.link_spans[table : table + 2]):
                starts = kept[program.links[link, tables.START]]
                state.ends[link, there] = old.ends[link, here]
                state.sizes[link, there] = old.sizes[link, here]
                state.snapshots[link][np.ix_(there, starts & (room - 1))] = old.snapshots[link][
                    np.ix_(here, starts & (old.room - 1))
                ]
        self._state = state

    # -- digits ---------------------------------------------------------------------------------

    def _widen(self) -> None:
        """Go on with Python integers."""
        self._dtype = object
        state = self._state
        self._state = state._replace(
            cells=state.cells.astype(object),
            snapshots=state.snapshots.astype(object),
            out=state.out.astype(object),
            **self._working_space(state.room),
        )
        self._set_limit()

    def _set_limit(self) -> None:
        if self._dtype is object:
            self._program = self._program._replace(limit=np.inf)

    def _kernel(self, name: str) -> Callable[..., Any]:
        if self._dtype is object:
            return _interpreted()[name]
        found: Callable[..., Any] = getattr(walk, name)
        return found


@cache
def _interpreted() -> dict[str, Callable[..., Any]]:
    """The functions of the kernel as Python functions, which take arrays of objects."""
    functions = dict(vars(walk))
    for name, function in _functions_of(walk):
        made = FunctionType(function.__code__, functions, name, function.__defaults__)
        functions[name] = made
    return functions


def _functions_of(module: Any) -> Iterator[tuple[str, Any]]:
    for name, its in vars(module).items():
        function = getattr(its, "py_func", its)
        if isinstance(function, FunctionType) and function.__module__ == module.__name__:
            yield name, function


def _integers(texts: np.ndarray) -> np.ndarray:
    found = np.empty(texts.shape, object)
    found.ravel()[:] = [int(text) for text in texts.flat]
    return found
