"""Conditions on time itself: ``b.ts - a.ts <= 10 seconds``, of the time column of the stream.

Engines calculate with floats, which do not hold nanoseconds since 1970. They read a time in two parts
of 32 bits, of which differences are exact up to 2^53 ticks, and beyond that larger than any duration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np

from cepbench.errors import PatternError
from cepbench.patterns.expressions import (
    HIGH_PART,
    LOW_PART,
    Arithmetic,
    Clause,
    Comparison,
    Constant,
    Duration,
    whole_time,
)

#: The longest duration in a condition, in ticks.
LONGEST = 2**53 - 1

_BITS = 32


def in_parts(clause: Clause) -> Clause:
    """The clause with differences of times as those of their parts."""

    def changed(comparison: Comparison, length: Duration) -> Comparison:
        if comparison.left != comparison.difference():
            return comparison  # in parts already
        high, low = (comparison.difference(part.__add__) for part in (HIGH_PART, LOW_PART))
        whole = Arithmetic("+", Arithmetic("*", high, Constant(2.0**_BITS)), low)
        return replace(comparison, left=whole)

    return _with_lengths(clause, changed)


def of_column(clause: Clause, name: str) -> Clause:
    """The clause with differences of the column of this name for those of parts of times."""
    return _with_lengths(clause, lambda its, _: replace(its, left=its.difference(lambda _: name)))


def in_ticks(clause: Clause) -> Clause:
    """The clause with nanoseconds for lengths of time, for a window in units."""
    return _with_lengths(
        clause, lambda its, length: replace(its, right=replace(length, is_datetime=False))
    )


def _with_lengths(clause: Clause, change: Callable[[Comparison, Duration], Comparison]) -> Clause:
    """The clause with each comparison with a length of time replaced."""
    if not any(isinstance(its.right, Duration) for its in clause.comparisons):
        return clause
    changed = (
        change(its, its.right) if isinstance(its.right, Duration) else its
        for its in clause.comparisons
    )
    return Clause(tuple(changed))


def part_of_times(name: str, times: np.ndarray) -> np.ndarray:
    """The part of this name of times in ticks."""
    return times >> _BITS if name.startswith(HIGH_PART) else times & (2**_BITS - 1)


def in_order(times: np.ndarray) -> np.ndarray:
    """Floats that compare as the times do, which are no times: those whose bits the times are."""
    # Without the smallest floats, with which processors may calculate as zeros.
    positive = (np.abs(times) + (1 << 53)).view(np.float64)
    return np.where(times < 0, -positive, positive)


def read_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The attributes that are columns by themselves, and no parts of the time."""
    return tuple(name for name in names if whole_time(name) is None)


def check_durations(clause: Clause, *, is_datetime: bool) -> None:
    """Check that durations are of the kind of the window and not too long; PatternError if not."""
    for comparison in clause.comparisons:
        duration = comparison.right
        if not isinstance(duration, Duration):
            continue
        if duration.is_datetime is not is_datetime:
            raise PatternError(
                f"{comparison}: the window is in {'a unit of time' if is_datetime else 'units'}, so "
                "write this duration in one, too"
            )
        if abs(duration.value) > LONGEST:  # type: ignore[arg-type]
            raise PatternError(
                f"{comparison}: a duration in a condition is at most 104 days, or 2^53 - 1 units"
            )
