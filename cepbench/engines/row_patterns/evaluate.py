"""Evaluation of a row pattern on a finite stream."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter

import numpy as np
import pandas as pd
import pyarrow as pa

from cepbench.engines.row_patterns.automaton import Automaton, automaton_of
from cepbench.engines.row_patterns.conditions import Columns, ConditionWriter, bits_of
from cepbench.engines.row_patterns.kernels import search
from cepbench.engines.row_patterns.measures import measured_table
from cepbench.engines.row_patterns.table import EventTable
from cepbench.engines.runs.result import Metrics
from cepbench.engines.runs.returned import frame_of
from cepbench.errors import EvaluationError, PartialMatchLimitError, StreamError
from cepbench.kernels.instructions import STACK
from cepbench.patterns.row_pattern import SKIPS, RowPattern
from cepbench.streams.event_stream import EventStream

#: Matches and mapped rows for which there is room at first.
_ROOM = 1024

#: Rows that are printed.
_SHOWN = 10


@dataclass(frozen=True)
class RowResult:
    """What a row pattern returns on a stream: a row a match, or the rows of each."""

    pattern: RowPattern
    #: The rows by partition, in the order of first appearance, and then by match.
    arrow: pa.Table = field(repr=False)
    #: Time, events and matches; ``rows_tried`` among the details is how many rows were mapped on the way.
    metrics: Metrics = field(repr=False)

    @cached_property
    def matches(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        return frame_of(self.arrow)

    def __len__(self) -> int:
        return self.arrow.num_rows

    def describe(self) -> str:
        """The number of matches and rows, in one line."""
        its = self.metrics
        return (
            f"{its.matches:,} matches in {its.events:,} events, {len(self):,} rows, in "
            f"{its.seconds:.3g} s"
        )

    def __repr__(self) -> str:
        return f"{self.describe()}\n{frame_of(self.arrow.slice(0, _SHOWN)).to_string()}"

    def _repr_html_(self) -> str:
        shown = frame_of(self.arrow.slice(0, _SHOWN))
        return f"<p>{html.escape(self.describe())}</p>{shown.to_html(escape=True)}"


@np.errstate(all="ignore")  # what is no number is a missing value
def evaluate_rows(pattern: RowPattern, stream: EventStream, limit: int) -> RowResult:
    """The result of a row pattern.

    Parameters
    ----------
    limit : int
        Maximum number of rows that are mapped in the search for one match, and of those of all
        matches.

    Raises
    ------
    StreamError
        If the stream lacks a column, values do not fit their use, or rows are not in the order of ORDER BY.
    PartialMatchLimitError
        If the search for a match, or all matches together, exceed the limit.
    EvaluationError
        If AFTER MATCH SKIP leads to no row, or back to the first one of the match.
    """
    table = EventTable(stream, pattern)
    if pattern.within is not None and pattern.within.is_datetime != stream.is_datetime:
        raise StreamError(
            f"WITHIN is in {pattern.within.unit}, and the time of this stream is "
            + (
                "a datetime; write INTERVAL '10' MINUTE"
                if stream.is_datetime
                else "an integer; write a number"
            )
        )
    if len(stream) and int(stream.timestamps[-1]) - int(stream.timestamps[0]) > 2**62:
        raise StreamError("the times of this stream are too far apart to be subtracted in 64 bits")
    columns, automaton = Columns(table), automaton_of(pattern)
    alone, others = ConditionWriter(pattern, columns).programs()
    rows = search.Rows(columns.arrays(), table.times, np.zeros(len(table), np.int64), table.bounds)
    path = _path(automaton, others, rows)
    begin = perf_counter()
    search.admit(alone, automaton, rows, path)
    found, progress = _found(pattern, automaton, others, rows, path, limit, table)
    arrow = measured_table(pattern, columns, automaton, found)
    metrics = Metrics(
        seconds=perf_counter() - begin,
        events=len(stream),
        matches=len(found.starts),
        details={"rows_tried": int(progress[search.STEPS])},
    )
    return RowResult(pattern, arrow, metrics)


def _path(automaton: Automaton, programs: search.Programs, rows: search.Rows) -> search.Path:
    longest = int(np.diff(rows.bounds).max(initial=0)) + 1
    deep = longest if len(programs.rules) else 0
    states = len(automaton.begins) - 1
    remembered = 0 if deep else len(rows.times) + len(rows.bounds)
    return search.Path(
        places=np.empty(longest, np.int64),
        states=np.empty(longest, np.int64),
        edges=np.empty(longest, np.int64),
        lasts=np.empty((len(programs.tracks), deep), np.int64),
        firsts=np.empty((len(programs.tracks), deep), np.int64),
        numbers=np.empty((len(programs.aggregates), deep), np.int64),
        totals=np.empty((len(programs.aggregates), deep)),
        failed=np.zeros((remembered, states // search.WORD + 1), np.int64),
        stack=np.empty(STACK),
    )


def _found(
    pattern: RowPattern,
    automaton: Automaton,
    programs: search.Programs,
    rows: search.Rows,
    path: search.Path,
    limit: int,
    table: EventTable,
) -> tuple[search.Found, np.ndarray]:
    """All matches, for which room is made until the limit."""
    progress = np.zeros(search.PROGRESS, np.int64)
    window = -1 if pattern.within is None else pattern.within.length
    bits = 0 if pattern.skip_to is None else bits_of(pattern, pattern.skip_to)
    room = np.empty(_ROOM, np.int64)
    found = search.Found(room, room.copy(), room.copy())
    while True:
        search.find(
            automaton, programs, rows, path, found, window, SKIPS.index(pattern.skip), bits, limit, progress
        )  # fmt: skip
        matches, mapped = progress[search.MATCHES], progress[search.MAPPED]
        if progress[search.ENDED] == search.DONE:
            return search.Found(
                found.starts[:matches], found.ends[:matches], found.places[:mapped]
            ), progress
        if progress[search.ENDED] != search.FULL:
            _fail(
                pattern,
                int(progress[search.ENDED]),
                int(table.order[progress[search.START]]),
                limit,
            )
        if matches == len(found.starts):
            found = found._replace(
                starts=_larger(found.starts, 2 * matches), ends=_larger(found.ends, 2 * matches)
            )
        else:
            room_for_one = mapped + len(path.places)
            found = found._replace(places=_larger(found.places, max(2 * mapped, room_for_one)))


def _larger(array: np.ndarray, size: int) -> np.ndarray:
    """The array with room for so many."""
    found = np.empty(size, array.dtype)
    found[: len(array)] = array
    return found


def _fail(pattern: RowPattern, ended: int, row: int, limit: int) -> None:
    """Raise what ended the search for the match from a row on."""
    if ended == search.TOO_LONG:
        raise PartialMatchLimitError(
            f"row {row}: the search for its match tried more than {limit:,} rows, the limit; write WITHIN, "
            "compare with PREV rather than with other variables, or raise partial_match_limit"
        )
    if ended == search.TOO_MANY:
        raise PartialMatchLimitError(
            f"row {row}: the matches have more than {limit:,} rows in all, the limit; write AFTER MATCH SKIP "
            "PAST LAST ROW or WITHIN, or raise partial_match_limit"
        )
    which = (
        f"a row of {pattern.skip_to}, which the match has not"
        if ended == search.SKIPS_NOWHERE
        else "the first row of the match, which would be found for ever"
    )
    raise EvaluationError(
        f"row {row}: AFTER MATCH SKIP {pattern.skip} {pattern.skip_to} leads to {which}; use SKIP TO NEXT "
        "ROW or PAST LAST ROW"
    )
