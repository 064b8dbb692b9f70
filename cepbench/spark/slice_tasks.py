"""Spark tasks, one for each slice of a stream or part of one, that hand back what takes too long."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import pyarrow as pa
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import SparkSession

from cepbench.engines.detection.slices import Batch, Budget, Slice, SliceDetection
from cepbench.errors import StreamError
from cepbench.spark.balance import Slices

#: A slice is cut when it takes so many times the expected seconds.
_TIMES = 2.0

#: Windows of a rest: of a shorter one most would be done twice.
_LEAST_WINDOWS = 2

#: Events of a batch for a detector, and rows of a batch of matches.
_BATCH, _ROWS = 20_000, 100_000


class Part(NamedTuple):
    """What a task detects.

    Attributes
    ----------
    slice : Slice
    of_key, parts : int
        Which of how many parts of the values of the key.
    """

    slice: Slice
    of_key: int = 0
    parts: int = 1


def parts_of(made: Slices) -> list[Part]:
    """The tasks of all slices, with numbers of their own."""
    return [
        Part(replace(its, number=its.number * made.parts + part), part, made.parts)
        for its in made.slices()
        for part in range(made.parts)
    ]


class _Joined(AccumulatorParam):
    """An accumulator of lists."""

    def zero(self, value: list[tuple[int, int]]) -> list[tuple[int, int]]:
        return []

    def addInPlace(
        self, value1: list[tuple[int, int]], value2: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        return value1 + value2


@dataclass(frozen=True)
class TimeLimit:
    """When tasks cut their slices, and where they did.

    Attributes
    ----------
    seconds : float
    least : int
        Ticks of the shortest rest.
    cuts : Accumulator
        The place of a part in the list of all, and the time at which its rest starts.
    """

    seconds: float
    least: int
    cuts: Accumulator[list[tuple[int, int]]]

    @classmethod
    def of(cls, spark: SparkSession, made: Slices, window: int) -> Self:
        """The limit for slices of which something is expected, with no cuts yet."""
        seconds = 0.0 if made.table is None else float(made.table["seconds"].max()) / made.parts
        limit = max(made.patience, _TIMES * seconds) if made.by_time else float("inf")
        cuts = spark.sparkContext.accumulator([], _Joined())
        return cls(limit, max(1, _LEAST_WINDOWS * window), cuts)

    def rests(self, parts: Sequence[Part], end: int, wanted: int) -> list[Part]:
        """What is left of the parts that were cut, divided into so many if windows allow it.

        Parameters
        ----------
        parts : sequence of Part
        end : int
            The tick after the last event.
        wanted : int
        """
        found = []
        rests = [(parts[place], cut) for place, cut in sorted(self.cuts.value) if cut < end]
        for part, cut in rests:
            last = end if part.slice.end is None else part.slice.end
            number = max(1, min(-(-wanted // len(rests)), (last - cut) // self.least))
            bounds = [cut + (last - cut) * k // number for k in range(number + 1)]
            found += [
                part._replace(slice=replace(part.slice, start=start, end=stop))
                for start, stop in itertools.pairwise(bounds)
            ]
        return found


def _for_spark(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table in the types of Spark.

    Raises
    ------
    StreamError
        If a timestamp is not a whole microsecond.
    """
    try:
        return table.cast(schema)
    except pa.ArrowInvalid as error:
        raise StreamError(
            f"a column of the matches does not fit Spark's types, whose times have microseconds: "
            f"{error}; give nanoseconds as integers"
        ) from error


def run_part(
    detection: SliceDetection,
    parts: Sequence[Part],
    place: int,
    events: Iterable[Batch],
    schema: pa.Schema,
    limit: TimeLimit | None,
) -> Iterator[pa.RecordBatch]:
    """What is detected in one of the parts; in a Spark worker."""
    budget = None if limit is None else Budget(limit.seconds, limit.least)
    its = parts[place].slice
    batches = (
        (stream[row : row + _BATCH], None if names is None else names[row : row + _BATCH])
        for stream, names in events
        for row in range(0, len(stream), _BATCH)
    )
    found: Iterable[pa.Table] = (
        [detection.count(its, batches, budget)]
        if detection.counts
        else detection.matches(its, batches, budget)
    )
    for table in found:
        yield from _for_spark(table, schema).to_batches(max_chunksize=_ROWS)
    if limit is not None and budget is not None and budget.cut is not None:
        limit.cuts.add([(place, budget.cut)])
