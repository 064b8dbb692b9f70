"""Tables of the kernels that count matches of a sequence: the pattern, the state, the events."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from typing import NamedTuple

import numpy as np

from cepbench.engines.sequence_counts.kernels.numbers import LARGE

#: A flag of events that have been counted as the last ones of matches.
COUNTED = 1 << 62

# Columns of SPANS, by partition.
LOW, HIGH = 0, 1  # its rows, without the last one
MIDDLE = 2  # by start: the first row that a leading NOT prevents; else the first one of the back
PREVENTED = 3  # timestamp of the latest event that prevents later starts
PEAK = 4  # the maximum number of rows with counters
SPAN_COLUMNS = 5

# PROGRESS[...].
PLACE, FIRST, ITEM, AT, IS_LARGE = range(5)
STARTED, UPDATES, READ, PROGRESS = range(5, 9)  # rows begun, counters changed, rows read for values

# Columns of STEPS.
TARGET, SOURCE = 0, 1  # a column of histories is added to another one
IS_WEIGHTED = 2  # times the weight of the event
IS_ALLOWED = 3  # only for the starts before MIDDLE
STEP_COLUMNS = 4


class Items(NamedTuple):
    """The items of a SEQ of plain and Kleene items.

    The histories of a column end in one item, without a negated event since. A Kleene item with a NOT
    behind it has a second column, of all histories that a further element extends. Column 0 is that
    of the one history without events.
    """

    by_start: bool  #: whether counts are kept by start
    begins: np.ndarray  #: int64 (items,): the flag of events that may begin an item
    takes: np.ndarray  #: int64 (items,): the flag of further elements; 0 for plain items
    prevents: np.ndarray  #: int64 (items,): flags of events that are forbidden before an item
    sources: np.ndarray  #: int64 (items,): the column of histories that an item continues
    columns: np.ndarray  #: int64 (items,): the column of histories that end in it; -1 for none
    loops: np.ndarray  #: int64 (items,): the column that further elements extend; -1 for none
    changes: int  #: flags of events that change the product
    spans: np.ndarray  #: int64 (2 * items + 1,): rules of an item's begin, and of its take
    rules: np.ndarray  #: int64 (rules, 3): column of the event, of the start, operator
    kept: np.ndarray  #: int64: the columns of an event whose values a start keeps
    window: int


class Sequence(NamedTuple):
    """Items with what their events do.

    Edge 2 * item is the first event of an item, and edge 2 * item + 1 a further element.
    """

    by_start: bool
    begins: np.ndarray
    takes: np.ndarray
    prevents: np.ndarray
    sources: np.ndarray
    changes: int
    spans: np.ndarray
    rules: np.ndarray
    kept: np.ndarray
    window: int
    steps: np.ndarray  #: int64 (steps, STEP_COLUMNS): those of all edges
    step_spans: np.ndarray  #: int64 (2 * items + 1,)
    #: int64 (counts, STEP_COLUMNS): the columns that are counted as matches, by edge, and at last
    #: for all matches in the window.
    counts: np.ndarray
    count_spans: np.ndarray  #: int64 (2 * items + 2,)
    begun: np.ndarray  #: int64 (columns, STEP_COLUMNS): the columns of a start that are not zero
    weighted: int  #: the item whose events have weights; -1 for none
    #: Columns from here on are of the same histories, times the weight of one of their events; 0 if
    #: the weight of the one event of the item is a factor in all columns.
    picked: int
    zero: float  #: of the semiring, a number of the type of its tables
    one: float
    limit: int | None  #: of numbers that need more digits; None for floats
    is_maximum: bool


def sequence_of(
    items: Items,
    final: int = -1,
    weighted: int = -1,
    picked: int = 0,
    units: tuple[float, float] = (0, 1),
    *,
    is_maximum: bool = False,
) -> Sequence:
    """The steps of a sequence.

    ``final`` is the column of all matches in the window, -1 if only those of each event are wanted;
    ``units`` are zero and one of the semiring.
    """
    last, steps, counts = len(items.begins) - 1, [], []
    for edge in range(2 * len(items.begins)):
        item = edge // 2
        source = int((items.loops if edge % 2 else items.sources)[item])
        targets = [int(items.columns[item]), int(items.loops[item])]
        if item == last and final >= 0:
            targets.insert(0, final)
        own = item == weighted
        its: list[tuple[int, ...]] = []
        for target in dict.fromkeys(each for each in targets if each >= 0):
            is_allowed = target == final and target != items.columns[item]
            if picked:
                # From behind, because both may be the same column.
                its.append((target + picked, source + picked, False, is_allowed))
            if picked and own:
                its.append((target + picked, source, True, is_allowed))
            its.append((target, source, own and not picked, is_allowed))
        counted: list[tuple[int, ...]] = []
        if item == last and final < 0:
            if own or not picked:
                counted.append((-1, source, own, True))
            if picked:
                counted.append((-1, source + picked, False, True))
        steps.append(its)
        counts.append(counted)
    counts.append([(-1, final + picked, False, False)] if final >= 0 else [])
    begun: list[tuple[int, ...]] = []
    ends = [final] if last == 0 and final >= 0 else []
    for column in dict.fromkeys([int(items.columns[0]), int(items.loops[0]), *ends]):
        if column < 0:
            continue
        is_allowed = column == final and column != items.columns[0]
        begun.append((column, -1, weighted == 0 and not picked, is_allowed))
        if picked and weighted == 0:
            begun.append((column + picked, -1, True, is_allowed))
    return Sequence(
        items.by_start, items.begins, items.takes, items.prevents, items.sources, items.changes,
        items.spans, items.rules, items.kept, items.window,
        table_of([each for its in steps for each in its], STEP_COLUMNS), spans_of(steps),
        table_of([each for its in counts for each in its], STEP_COLUMNS), spans_of(counts),
        table_of(begun, STEP_COLUMNS),
        weighted, picked, *units, None if isinstance(units[1], float) else LARGE, is_maximum,
    )  # fmt: skip


def table_of(rows: Iterable[Iterable[int]], columns: int) -> np.ndarray:
    """Rows of so many columns, of which there may be none."""
    return np.array([*rows], np.int64).reshape(-1, columns)


def spans_of(parts: Iterable[Sized]) -> np.ndarray:
    """Where each part begins if they are one after the other, and where the last one ends."""
    return np.cumsum([0, *map(len, parts)])


class Events(NamedTuple):
    """Some events."""

    rows: np.ndarray  #: int64: those that concern the pattern, by partition and then by position
    times: np.ndarray  #: int64 (n,)
    flags: np.ndarray  #: int64 (n,)
    values: np.ndarray  #: float64 (columns, n)
    spans: np.ndarray  #: int64 (parts + 1,): of ``rows``
    until: int  #: more events of this timestamp may follow
    weights: np.ndarray  #: (n,): factors of the weighted item; empty if there is none
    #: int64 (len(rows),): the row of ``out`` for the value after an event, -1 for none; empty if
    #: there is one value, after all events.
    samples: np.ndarray
    parts: np.ndarray  #: int64: the partition of each span


class State(NamedTuple):
    """Counts of histories.

    By start, a row is an event that may begin a match. Else it is an event of the window, with row 0 of
    the product of the matrices from its timestamp to the middle, see
    :mod:`cepbench.engines.sequence_counts.kernels.window_product`.
    """

    times: np.ndarray  #: int64 (rows,)
    marks: np.ndarray  #: int64 (rows,): PREVENTED before a start; else the flags of an event
    values: np.ndarray  #: float64 (kept, rows): of starts
    cells: np.ndarray  #: int64 (columns, rows[, digits])
    back: (
        np.ndarray
    )  #: int64 (columns, partitions * columns[, digits]): the product since the middle
    suffix: np.ndarray  #: int64 (columns, columns[, digits]): working space
    spans: np.ndarray  #: int64 (partitions, SPAN_COLUMNS)
    fits: np.ndarray  #: int64 (rows,): working space
    found: np.ndarray  #: see :func:`~cepbench.engines.sequence_counts.kernels.numbers.add_total`
    progress: np.ndarray  #: int64 (PROGRESS,)
    weights: np.ndarray  #: (rows,): those of the events in the window; empty if there are none
    out: np.ndarray  #: (samples, digits): values after events
