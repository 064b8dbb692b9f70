"""The state of a total over the events of one partition: counts of histories in a window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cepbench.kernels.sequence_counts import numbers, tables
from cepbench.kernels.sequence_counts.advance import count_matches

_BEFORE_ALL = np.iinfo(np.int64).min
_NEVER = np.iinfo(np.int64).max

#: Arrays of the state that a snapshot has.
_KEPT = ("times", "marks", "values", "cells", "back", "spans", "weights")


class CountingWindow:
    """Histories of a sequence in the window.

    Parameters
    ----------
    sequence : cepbench.kernels.sequence_counts.tables.Sequence
    columns : int
    dtype : type
        Of its numbers.
    """

    def __init__(self, sequence: tables.Sequence, columns: int, dtype: type) -> None:
        self._plan = sequence
        self._is_exact = dtype is np.int64 and not sequence.is_maximum
        cells: np.ndarray = np.zeros((columns, 0), dtype)
        back: np.ndarray = np.full((columns, columns), sequence.zero, dtype)
        np.fill_diagonal(back, sequence.one)
        self._state = self._with_working_space(
            tables.State(
                times=np.zeros(0, np.int64),
                marks=np.zeros(0, np.int64),
                values=np.zeros((len(sequence.kept), 0)),
                cells=cells,
                back=back,
                suffix=back,
                spans=np.array([[0, 0, 0, _BEFORE_ALL, 0]]),
                fits=np.zeros(0, np.int64),
                found=cells,
                progress=np.zeros(tables.PROGRESS, np.int64),
                weights=np.zeros(0, dtype),
                out=cells,
            )
        )

    def begin(self) -> None:
        """Add the history without events, as one that never expires."""
        self._make_room(1)
        state = self._state
        state.times[0] = _NEVER
        state.cells[:, 0] = self._plan.zero
        state.cells[0, 0] = self._plan.one
        state.spans[0, : tables.PREVENTED] = 0, 1, 1
        state.spans[0, tables.PEAK] = 1

    def peaks(self) -> tuple[int, int]:
        """The maximum number of rows, and of counters, since this was asked last."""
        columns, span = len(self._state.cells), self._state.spans[0]
        rows = int(span[tables.PEAK])
        if self._plan.by_start:
            span[tables.PEAK] = span[tables.HIGH] - span[tables.LOW]
            return rows, columns * rows
        # A row in front of the middle has a counter for each column, as each row of the back has.
        span[tables.PEAK] = max(0, span[tables.MIDDLE] - span[tables.LOW])
        return rows + columns, columns * (columns + rows)

    @property
    def prevented(self) -> int:
        """Timestamp of the latest event that prevents later starts."""
        return int(self._state.spans[0, tables.PREVENTED])

    @property
    def bytes(self) -> int:
        """The size of its state."""
        return sum(array.nbytes for array in self.arrays().values())

    def push(self, events: tables.Events, samples: int) -> tuple[list[Any], int]:
        """Process some events; returns the totals after some of them, and the number of updates.

        Parameters
        ----------
        events : cepbench.kernels.sequence_counts.tables.Events
        samples : int
            How many there are in ``events.samples``.
        """
        self._make_room(len(events.rows))
        progress = self._state.progress
        progress[:] = 0
        progress[tables.ITEM] = len(self._plan.begins) - 1
        self._set_out(np.zeros((samples, self._digits), self._state.found.dtype))
        ended = False
        while not ended:
            ended = count_matches(self._plan, self._state, events)
            if progress[tables.IS_LARGE]:
                self.widen()
        out = self._state.out
        if not self._is_exact:
            return out[:, 0].tolist(), int(progress[tables.UPDATES])
        return integers(out), int(progress[tables.UPDATES])

    def copy(self) -> CountingWindow:
        """One that changes apart from this."""
        other = CountingWindow.__new__(CountingWindow)
        other._plan, other._is_exact = self._plan, self._is_exact
        other._state = self._state._replace(
            **{name: array.copy() for name, array in self.arrays().items()}
        )
        return other

    def widen(self) -> None:
        """Give numbers more digits."""
        state = self._state
        state.progress[tables.IS_LARGE] = 0
        out, found = state.out, state.found
        state = state._replace(cells=numbers.widened(state.cells), back=numbers.widened(state.back))
        self._state = self._with_working_space(state)
        self._set_out(numbers.with_digits(out, self._digits))
        self._state.found[:] = numbers.with_digits(found, self._digits)

    def arrays(self) -> dict[str, np.ndarray]:
        """The state between pushes."""
        state = self._state._asdict()
        return {name: state[name] for name in _KEPT}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Resume from the arrays that :meth:`arrays` gave."""
        copies = {name: array.copy() for name, array in arrays.items()}
        self._state = self._with_working_space(self._state._replace(**copies))

    def _set_out(self, out: np.ndarray) -> None:
        self._state = self._state._replace(out=out)

    def _with_working_space(self, state: tables.State) -> tables.State:
        return state._replace(
            suffix=np.zeros_like(state.back),
            fits=np.zeros(len(state.times), np.int64),
            **working_sums(state.cells, self._plan.zero, is_exact=self._is_exact),
        )

    @property
    def _digits(self) -> int:
        return self._state.out.shape[1]

    def _make_room(self, more: int) -> None:
        """Move the rows in the window, if there is no room for more."""
        state = self._state
        low, high = state.spans[0, tables.LOW], state.spans[0, tables.HIGH]
        if high + more <= len(state.times):
            return
        size = int(high - low)
        # So that the time of copying is proportional to that for the events.
        capacity = size + more + max(size, more)

        def moved(array: np.ndarray, axis: int) -> np.ndarray:
            shape = (*array.shape[:axis], capacity, *array.shape[axis + 1 :])
            room = np.zeros(shape, array.dtype)
            np.moveaxis(room, axis, 0)[:size] = np.moveaxis(array, axis, 0)[low:high]
            return room

        spans = state.spans.copy()
        spans[0, : tables.PREVENTED] -= low
        self._state = state._replace(
            times=moved(state.times, 0),
            marks=moved(state.marks, 0),
            values=moved(state.values, 1),
            cells=moved(state.cells, 1),
            weights=moved(state.weights, 0) if self._plan.weighted >= 0 else state.weights,
            fits=np.zeros(capacity, np.int64),
            spans=spans,
        )


def working_sums(cells: np.ndarray, zero: float, *, is_exact: bool) -> dict[str, np.ndarray]:
    """``found`` and ``out`` for the numbers of a table.

    Parameters
    ----------
    cells : ndarray
    zero : float
        Of the semiring.
    is_exact : bool
        Whether sums may have more digits.
    """
    digits = numbers.found_digits(cells) if is_exact else 1
    is_float = cells.dtype == np.float64
    found = np.zeros((2, 1) if is_float else (2, 1, digits), cells.dtype)
    if not is_exact:
        found[:] = zero
    return {"found": found, "out": np.zeros((0, digits), cells.dtype)}


def integers(digits: np.ndarray) -> list[int]:
    """Rows of digits as integers."""
    top = 1 << numbers.DIGIT_BITS
    if not digits[:, 2:].any() and (digits[:, 1] < top).all():
        low: list[int] = (digits[:, 0] + digits[:, 1] * top).tolist()
        return low
    return [numbers.number_of(row) for row in digits]
