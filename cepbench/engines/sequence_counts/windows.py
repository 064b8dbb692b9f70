"""The state of a total over the events of all partitions: counts of histories in a window."""

from __future__ import annotations

import numpy as np

from cepbench.engines.sequence_counts.integers import integers
from cepbench.engines.sequence_counts.kernels import numbers, tables
from cepbench.engines.sequence_counts.kernels.advance import count_matches
from cepbench.engines.sequence_counts.kernels.plain import count_plain
from cepbench.state import Stateful

_BEFORE_ALL = np.iinfo(np.int64).min
_NEVER = np.iinfo(np.int64).max

#: Rows that a partition at least has room for.
_SPARE = 8

#: Arrays of the state that a snapshot has.
_KEPT = ("times", "marks", "values", "cells", "back", "spans", "weights")


class CountingWindow(Stateful):
    """Histories of a sequence in the window, by partition; ``dtype`` is that of their numbers."""

    SAVED = tuple(f"state.{name}" for name in _KEPT)

    def __init__(self, sequence: tables.Sequence, columns: int, dtype: type) -> None:
        self._plan = sequence
        self._is_exact = dtype is np.int64 and not sequence.is_maximum
        self._is_plain = self._is_exact and _is_plain(sequence, columns)
        cells: np.ndarray = np.zeros((columns, 0), dtype)
        self.state = self._with_working_space(
            tables.State(
                times=np.zeros(0, np.int64),
                marks=np.zeros(0, np.int64),
                values=np.zeros((len(sequence.kept), 0)),
                cells=cells,
                back=cells,
                suffix=cells,
                spans=np.zeros((0, tables.SPAN_COLUMNS), np.int64),
                fits=np.zeros(0, np.int64),
                found=cells,
                progress=np.zeros(tables.PROGRESS, np.int64),
                weights=np.zeros(0, dtype),
                out=cells,
            )
        )
        #: Behind the rows that each partition has room for, and behind all of them.
        self._ends = np.zeros(0, np.int64)
        self._top = 0

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._ends)

    def add(self, number: int) -> None:
        """Add so many partitions without events."""
        state, columns = self.state, len(self.state.cells)
        back: np.ndarray = np.full((columns, columns), self._plan.zero, state.cells.dtype)
        np.fill_diagonal(back, self._plan.one)
        if state.cells.ndim == 3:
            back = numbers.with_digits(back[..., None], state.cells.shape[2])
        spans = np.zeros((number, tables.SPAN_COLUMNS), np.int64)
        spans[:, tables.PREVENTED] = _BEFORE_ALL
        self._ends = np.append(self._ends, np.zeros(number, np.int64))
        self.state = state._replace(
            back=np.concatenate([state.back, *[back] * number], axis=1),
            spans=np.concatenate((state.spans, spans)),
        )

    def begin(self, partition: int) -> None:
        """Add the history without events to a new partition, as one that never expires."""
        self.make_room(np.array([partition]), np.array([1]))
        state = self.state
        row = state.spans[partition, tables.HIGH]
        state.times[row] = _NEVER
        state.cells[:, row] = self._plan.zero
        state.cells[0, row] = self._plan.one
        if state.cells.ndim == 3:
            state.cells[0, row, 1:] = 0
        state.spans[partition, [tables.HIGH, tables.MIDDLE]] = row + 1
        state.spans[partition, tables.PEAK] = 1

    def peaks(self) -> np.ndarray:
        """The maximum number of rows, and of counters, since this was asked last, each summed over partitions."""
        columns, spans = len(self.state.cells), self.state.spans
        rows = int(spans[:, tables.PEAK].sum())
        end = spans[:, tables.HIGH if self._plan.by_start else tables.MIDDLE]
        spans[:, tables.PEAK] = np.maximum(0, end - spans[:, tables.LOW])
        if not self._plan.by_start:
            # A row in front of the middle has a counter for each column, as each row of the back has.
            rows += columns * len(spans)
        return np.array([rows, columns * rows])

    def are_active(self, earliest: int) -> np.ndarray:
        """Whether each partition has events from some time on."""
        spans = self.state.spans
        found = spans[:, tables.PREVENTED] >= earliest
        some = np.flatnonzero(spans[:, tables.HIGH] > spans[:, tables.LOW])
        found[some] |= self.state.times[spans[some, tables.HIGH] - 1] >= earliest
        return found

    def keep(self, partitions: np.ndarray) -> None:
        """Keep some partitions, numbered anew."""
        state, (columns, _, *digits) = self.state, self.state.back.shape
        back = state.back.reshape(columns, -1, columns, *digits)[:, partitions]
        self._ends = self._ends[partitions]
        self._top = int(self._ends.max(initial=0))
        self.state = state._replace(
            back=back.reshape(columns, -1, *digits), spans=state.spans[partitions]
        )

    @property
    def bytes(self) -> int:
        """The size of its state."""
        return self.state_bytes() + self._ends.nbytes

    def active(self, earliest: int) -> int:
        """How many rows are of events from some time on."""
        spans = self.state.spans[:, [tables.LOW, tables.HIGH]].tolist()
        return sum(int((self.state.times[low:high] >= earliest).sum()) for low, high in spans)

    def push(self, events: tables.Events, samples: int) -> tuple[np.ndarray, np.ndarray]:
        """Process some events; returns the totals (int64, float64 or Python ints) after those of them that
        are in ``events.samples``, of which there are so many, and the rows begun, the counters changed
        and the rows read, int64 (3,).
        """
        self.make_room(events.parts, np.diff(events.spans))
        progress = self.state.progress
        progress[:] = 0
        progress[tables.ITEM] = len(self._plan.begins) - 1
        out: np.ndarray = np.zeros((samples, self.state.out.shape[1]), self.state.out.dtype)
        self.state = self.state._replace(out=out)
        ended, kernel = False, count_matches
        if self._is_plain and len(self._ends) == 1 and self.state.cells.ndim == 2:
            kernel = count_plain
        while not ended:
            ended, kernel = kernel(self._plan, self.state, events), count_matches
            if progress[tables.IS_LARGE]:
                self.widen()
        out = self.state.out
        totals = integers(out) if self._is_exact and samples else out[:, 0]
        return totals, progress[tables.STARTED :].copy()

    def widen(self) -> None:
        """Give numbers more digits."""
        state = self.state
        state.progress[tables.IS_LARGE] = 0
        cells, back = numbers.widened(state.cells), numbers.widened(state.back)
        wide = self._with_working_space(state._replace(cells=cells, back=back))
        digits = wide.out.shape[1]
        wide.found[:] = numbers.with_digits(state.found, digits)
        self.state = wide._replace(out=numbers.with_digits(state.out, digits))

    def resumed(self) -> None:
        """What is not saved is working space, and room for more rows."""
        self.state = self._with_working_space(self.state)
        self._ends = self.state.spans[:, tables.HIGH].copy()
        self._top = int(self._ends.max(initial=0))

    def _with_working_space(self, state: tables.State) -> tables.State:
        columns, _, *digits = state.cells.shape
        return state._replace(
            suffix=np.zeros((columns, columns, *digits), state.cells.dtype),
            fits=np.zeros(len(state.times), np.int64),
            **working_sums(
                state.cells,
                self._plan.zero,
                is_exact=self._is_exact,
                are_weighted=self._plan.weighted >= 0,
            ),
        )

    def make_room(self, parts: np.ndarray, more: np.ndarray) -> None:
        """Let some partitions have room for so many more rows each.

        The rows of one that has not are moved behind all others, or, if there is no room left, all are moved to
        the front.
        """
        state, spans = self.state, self.state.spans
        is_full = spans[parts, tables.HIGH] + more > self._ends[parts]
        if not is_full.any():
            return
        sizes = spans[parts, tables.HIGH] - spans[parts, tables.LOW]
        # So that the time of moving is proportional to that for the events.
        capacity = sizes + more + np.maximum(np.maximum(sizes, more), _SPARE)
        total, is_enough = self._top + int(capacity[is_full].sum()), True
        if total <= len(state.times):
            parts, sizes, capacity = parts[is_full], sizes[is_full], capacity[is_full]
        else:
            room = spans[:, tables.HIGH] - spans[:, tables.LOW]
            others = int(room.sum() - sizes.sum())
            sizes = room.copy()
            room[parts] = capacity
            parts, capacity, self._top = np.arange(len(spans)), room, 0
            total = int(room.sum()) + others
            # New memory costs more than moving.
            is_enough = total <= len(state.times) <= 2 * total
        behind = self._top + np.cumsum(capacity)
        low, old = behind - capacity, spans[parts, tables.LOW]
        steps = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows, new = steps + np.repeat(old, sizes), steps + np.repeat(low, sizes)
        spans[parts, : tables.PREVENTED] += (low - old)[:, None]
        self._ends[parts], self._top = behind, int(behind[-1])

        def moved(array: np.ndarray, axis: int) -> np.ndarray:
            room = array
            if not is_enough:
                room = np.zeros((*array.shape[:axis], total, *array.shape[axis + 1 :]), array.dtype)
            np.moveaxis(room, axis, 0)[new] = np.moveaxis(array, axis, 0)[rows]
            return room

        self.state = state._replace(
            times=moved(state.times, 0),
            marks=moved(state.marks, 0),
            values=moved(state.values, 1),
            cells=moved(state.cells, 1),
            weights=moved(state.weights, 0) if self._plan.weighted >= 0 else state.weights,
            fits=state.fits if is_enough else np.zeros(total, np.int64),
        )


def _is_plain(sequence: tables.Sequence, columns: int) -> bool:
    """Whether each item only adds one column to the next one, and all matches are in the last one."""
    sources = np.arange(columns - 1)
    begins, ends = sequence.step_spans[:-1:2], sequence.step_spans[1::2]
    return (
        not sequence.by_start
        and sequence.weighted < 0
        and not sequence.takes.any()
        and not sequence.prevents.any()
        and sequence.count_spans[-2] == 0
        and np.array_equal(sequence.counts[:, tables.SOURCE], [columns - 1])
        and (ends - begins == 1).all()
        and np.array_equal(sequence.steps[begins, tables.SOURCE], sources)
        and np.array_equal(sequence.steps[begins, tables.TARGET], sources + 1)
    )


def working_sums(
    cells: np.ndarray, zero: float, *, is_exact: bool, are_weighted: bool
) -> dict[str, np.ndarray]:
    """``found`` and ``out`` for the numbers of a table, whose sums may have more digits (``is_exact``)."""
    digits = numbers.found_digits(cells, are_weighted=are_weighted) if is_exact else 1
    is_float = cells.dtype == np.float64
    found = np.zeros((2, 1) if is_float else (2, 1, digits), cells.dtype)
    if not is_exact:
        found[:] = zero
    return {"found": found, "out": np.zeros((0, digits), cells.dtype)}
