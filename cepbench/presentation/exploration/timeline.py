"""Timelines of matches: an attribute over time, and the events of matches on its curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from cepbench.arguments import kind_of, number, whole
from cepbench.engines.runs.result import Result
from cepbench.errors import EvaluationError, StreamError
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.presentation.exploration.open_time import OpenTime, without_pauses
from cepbench.streams.columns import declared_kind
from cepbench.streams.event_stream import EventStream
from cepbench.streams.fit import check_no_time, check_types, under_one_hierarchy
from cepbench.streams.given import stream_from

#: A pause is cut out if it exceeds this multiple of the median time between events.
_LONG_PAUSE = 100

#: Maximum numbers of points, over all curves (altair's limit is 5000), and of matches drawn.
_MOST_POINTS, _MOST_MATCHES = 4500, 300


@dataclass(frozen=True)
class Timeline:
    """The result of :func:`timeline`."""

    #: That of the curves; None, and every value 0, if no attribute is a number.
    attribute: str | None
    #: One row per event drawn: ``type``, ``position`` in the stream, ``time``, ``value``.
    curves: pd.DataFrame
    #: One row per match and event: ``match`` (its number), ``variable``, ``type``, ``position``, ``time``,
    #: ``value``, ``highlighted``.
    events: pd.DataFrame
    #: What was left out.
    remarks: tuple[str, ...]
    #: The time shown, without pauses of the whole stream; no pauses if time is in ticks.
    hours: OpenTime

    @property
    def span(self) -> tuple[Any, Any] | None:
        """First and last time of the highlighted match; None without one."""
        times = self.events.loc[self.events["highlighted"], "time"]
        return (times.min(), times.max()) if len(times) else None


def timeline(
    stream: EventStream,
    matches: pd.DataFrame | Result,
    pattern: Pattern | str,
    *,
    highlight: int = 0,
    attribute: str | None = None,
    windows: float | None = None,
) -> Timeline:
    """The data of :func:`cepbench.match_timeline`; parameters and errors are the same."""
    pattern, stream = under_one_hierarchy(pattern_from(pattern), stream_from(stream))
    table = matches.positions if isinstance(matches, Result) else matches
    if not isinstance(table, pd.DataFrame):
        raise EvaluationError(
            f"matches must be a Result or its DataFrame of matches, not {kind_of(table)}"
        )
    ends = _checked_ends(table, pattern, stream)
    highlight = whole(highlight, "highlight", EvaluationError)
    if windows is not None:
        windows = number(windows, "windows", EvaluationError, least=0.0)
    if not len(stream):
        raise StreamError("an empty stream has no timeline")
    check_types(pattern, stream)
    name, values = _values(stream, pattern, attribute)
    if len(table) and highlight not in range(len(table)):
        raise EvaluationError(
            f"highlight = {highlight!r}, but matches have the numbers 0 … {len(table) - 1}"
        )
    low, high = 0, len(stream)
    if windows is not None and len(table):
        positions = [place for _, place in _bound(table, highlight, pattern)]
        reach = round(windows * pattern.window.length)
        first, last = (int(stream.timestamps[end(positions)]) for end in (min, max))
        low = int(np.searchsorted(stream.timestamps, first - reach, "left"))
        high = int(np.searchsorted(stream.timestamps, last + reach, "right"))
    remarks: list[str] = []
    shown, left_out = _shown_matches(*ends, highlight, low, high)
    if not len(table):
        remarks.append("no matches")
    elif left_out:
        remarks.append(f"{len(shown)} of {len(shown) + left_out} matches here marked")
    times = stream.timestamps[low:high] if stream.is_datetime else stream.timestamps[:0]
    # An empty or single-event span has no median.
    usual = int(np.median(np.diff(times))) if len(times) > 1 else 0
    hours = without_pauses(times, _LONG_PAUSE * max(1, usual))
    if hours.pauses:
        remarks.append("time without any event left out")
    bound = [(number, *pair) for number in shown for pair in _bound(table, number, pattern)]
    places = np.array([place for _, _, place in bound], dtype=np.int64)
    events = _events(stream, values, places)
    # Of items of any type and of concepts, the types of their events.
    explicit = [v.type for v in pattern.variables if v.type in stream.type_names]
    types = list(dict.fromkeys([*explicit, *events["type"]]))
    rows, every = _thinned(stream, types, low, high)
    if every > 1:
        remarks.append(
            f"of {name} one update in {every} drawn" if name else f"one event in {every} drawn"
        )
    if name is None:
        remarks.append("no attribute is a number: ticks are events")
    curves = _events(stream, values, rows)[["type", "position", "time", "value"]]
    events.insert(0, "match", [number for number, _, _ in bound])
    events.insert(1, "variable", [variable for _, variable, _ in bound])
    events["highlighted"] = events["match"] == highlight
    return Timeline(name, curves, events, tuple(remarks), hours)


def _values(
    stream: EventStream, pattern: Pattern, wanted: str | None
) -> tuple[str | None, np.ndarray]:
    """The attribute of the curves and its values; None and zeros if there is no number."""
    if wanted is not None:
        check_no_time(wanted, stream)
        column = stream.column(wanted)
        if (kind := declared_kind(column)) != "number":
            raise StreamError(f"attribute {wanted!r} is a {kind}; a curve needs a number")
        return wanted, np.asarray(column)
    used = [term.name for clause in pattern.expanded.conditions for term in clause.attributes()]
    for name in ("price", *used, *stream.attributes):
        found = stream.attributes.get(name)
        if found is None or declared_kind(found) != "number":
            continue
        values = np.asarray(found)
        if not (len(values) and pd.isna(values).all()):
            return name, values
    return None, np.zeros(len(stream), np.int64)


def _shown_matches(
    first: np.ndarray, last: np.ndarray, highlight: int, low: int, high: int
) -> tuple[list[int], int]:
    """Numbers of the matches within ``low … high``, evenly thinned; and how many were dropped."""
    inside = np.flatnonzero((first >= low) & (last < high))
    every = max(1, -(-len(inside) // _MOST_MATCHES))
    shown = {*inside[::every].tolist(), *([highlight] if len(first) else [])}
    return sorted(shown), len(inside) - len(shown)


def _checked_ends(
    table: pd.DataFrame, pattern: Pattern, stream: EventStream
) -> tuple[np.ndarray, np.ndarray]:
    """First and last position of each match; an EvaluationError unless they fit pattern and stream."""
    missing = [name for name in pattern.positive_names if name not in table.columns]
    if missing:
        raise EvaluationError(
            f"the matches have no column {missing[0]!r}; pass the matches of this pattern, as "
            "cep.evaluate returns them"
        )
    try:
        columns = [table[name] for name in pattern.positive_names]
        first = np.nanmin([_places(column, 0) for column in columns], axis=0)
        last = np.nanmax([_places(column, -1) for column in columns], axis=0)
    except (TypeError, ValueError) as error:
        raise EvaluationError(
            "the matches hold other values than positions; pass them as cep.evaluate returns them"
        ) from error
    if len(table) and not (first.min() >= 0 and last.max() < len(stream)):
        raise EvaluationError(
            f"the matches have positions beyond the stream's {len(stream):,} events; pass the "
            "stream in which they were found"
        )
    return first, last


def _places(column: pd.Series, which: int) -> np.ndarray:
    """The position in each match, of several that of this number; NaN for none."""
    if column.dtype != object:
        return column.to_numpy(float, na_value=np.nan)
    return np.array([c[which] if isinstance(c, tuple) and c else np.nan for c in column], float)


def _bound(table: pd.DataFrame, number: int, pattern: Pattern) -> list[tuple[str, int]]:
    """Variable and position of each event of a match; Kleene variables have several."""
    found = []
    for name in pattern.positive_names:
        cell = table[name].iloc[number]
        if isinstance(cell, Sequence):
            found += [(name, int(place)) for place in cell]
        elif not pd.isna(cell):
            found.append((name, int(cell)))
    return found


def _thinned(
    stream: EventStream, types: Sequence[str], low: int, high: int
) -> tuple[np.ndarray, int]:
    """Positions of the events to draw: the first of every ``n`` events per type; and ``n``."""
    codes = [stream.type_names.index(name) for name in types]
    rows = [low + np.flatnonzero(stream.type_codes[low:high] == code) for code in codes]
    every = max(1, -(-sum(map(len, rows)) // _MOST_POINTS))
    drawn = [its[::every] for its in rows]
    return np.sort(np.concatenate([np.empty(0, np.int64), *drawn])), every


def _events(stream: EventStream, values: np.ndarray, rows: np.ndarray) -> pd.DataFrame:
    times = stream.timestamps[rows]
    return pd.DataFrame(
        {
            "type": [stream.type_names[code] for code in stream.type_codes[rows]],
            "position": rows,
            "time": times.view("datetime64[ns]") if stream.is_datetime else times,
            "value": values[rows],
        }
    )
