"""Twins that count work by hand: the runs of SASE+ and the prefix counters of A-Seq, event by event."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple


class Event(NamedTuple):
    """An event of a stream."""

    type: str
    time: int
    x: float


#: The events that a run has chosen, and the next one → whether a condition holds.
Condition = Callable[[Sequence[Event], Event], bool]


@dataclass(frozen=True)
class Query:
    """A SEQ: types of items, ``+`` behind those of Kleene items.

    ``begin`` and ``take`` are conditions of the second item's first event, and of its further ones; of
    ``read`` two runs in a state must agree to be merged.
    """

    text: str
    items: tuple[str, ...]
    strategy: str = "any"
    begin: Condition = lambda chosen, event: True
    take: Condition = lambda chosen, event: True
    read: Callable[[Run, bool], Any] = lambda run, is_loop: None

    @property
    def pattern(self) -> str:
        """The text with its strategy."""
        return f"PATTERN {self.text} STRATEGY {self.strategy} WITHIN 5 units"


@dataclass(frozen=True)
class Run:
    """A run in the loop of an item, or before its first event."""

    item: int
    is_loop: bool
    chosen: tuple[Event, ...]
    start: int

    @property
    def last(self) -> int:
        """The timestamp of its last event."""
        return self.chosen[-1].time


def sase(events: Sequence[Event], query: Query, engine: str, window: int = 5) -> Counter[str]:
    """The work of ``sase-basic``, ``sase-backtrack`` or ``sase`` (whose runs are merged)."""
    work: Counter[str] = Counter()
    runs: list[Run] = []
    for place, event in enumerate(events):
        is_first = place == 0 or events[place - 1].time < event.time
        if engine == "sase" and is_first:
            runs = merged(runs, query)
        new: list[Run] = []
        kept: list[Run] = []
        for run in runs:
            if run.start < event.time - window:
                continue
            if not concerns(run, event, query):
                kept.append(run)
                continue
            stays, others, edges = moves(run, event, query)
            # Where it may move in several ways, a run that backtracks reads the event for each.
            reads = max(1, stays + len(others)) if engine == "sase-backtrack" else 1
            work["run_visits"] += reads
            work["edges_evaluated"] += reads * edges
            kept += [run] * stays
            for state in others:
                new += selected(replace(run, item=state[0], is_loop=state[1]), event, query, work)
        if event.type == query.items[0][0]:
            begun = Run(0, len(query.items[0]) > 1, (), event.time)
            new += selected(begun, event, query, work)
        runs = kept + new
        if engine == "sase":
            runs = merged(runs, query, by_time=True)
    return work


def concerns(run: Run, event: Event, query: Query) -> bool:
    """Whether the event passes an edge of the run's state by itself, and is not too early for it."""
    if not run.is_loop and run.last == event.time:
        return False
    following = query.items[run.item + 1 : run.item + 2] if run.is_loop else ()
    return event.type in {its[0] for its in (query.items[run.item], *following)}


def moves(run: Run, event: Event, query: Query) -> tuple[bool, list[tuple[int, bool]], int]:
    """Whether the run stays as it is, the items that choose the event, and the edges evaluated."""
    chosen: list[tuple[int, bool]] = []
    edges = 1
    if run.is_loop:
        takes = event.type == query.items[run.item][0]
        own = takes and (run.item != 1 or query.take(run.chosen, event))
        if run.item + 1 < len(query.items):
            edges += 1
            if begins(run, run.item + 1, event, query):
                edges += 1  # proceed, which always holds
                chosen.append((run.item + 1, len(query.items[run.item + 1]) > 1))
        chosen += [(run.item, True)] * own
    else:
        own = begins(run, run.item, event, query)
        chosen += [(run.item, len(query.items[run.item]) > 1)] * own
    return query.strategy == "any" or not own, chosen, edges


def begins(run: Run, item: int, event: Event, query: Query) -> bool:
    """Whether the event may be the first one of an item."""
    fits = event.type == query.items[item][0] and run.last < event.time
    return fits and (item != 1 or query.begin(run.chosen, event))


def selected(run: Run, event: Event, query: Query, work: Counter[str]) -> list[Run]:
    """The run behind an event that its item has chosen, none if it has ended."""
    work["buffer_writes"] += 1
    run = replace(run, chosen=(*run.chosen, event))
    is_last = run.item == len(query.items) - 1
    work["edges_evaluated"] += is_last and run.is_loop
    if is_last:
        work["pointers_followed"] += len(run.chosen) - 1
    if run.is_loop:
        return [run]
    return [] if is_last else [replace(run, item=run.item + 1)]


def merged(runs: list[Run], query: Query, *, by_time: bool = False) -> list[Run]:
    """One run for those that are equivalent, with the youngest start."""
    found: dict[Any, Run] = {}
    for run in runs:
        key = (run.item, run.is_loop, query.read(run, run.is_loop), by_time and run.last)
        other = found.setdefault(key, run)
        found[key] = replace(other, start=max(other.start, run.start))
    return [*found.values()]


def a_seq(events: Sequence[Event], items: Sequence[str], window: int, totals: int) -> Counter[str]:
    """The work of so many totals; what the events of the last timestamp begin is not yet counted."""
    work: Counter[str] = Counter(rows_created=0, rows_expired=0, rows_read=0, counters_updated=0)
    starts: list[int] = []
    for now, together in groupby(events, lambda event: event.time):
        types = [event.type for event in together]
        active = totals * sum(start >= now - window for start in starts)
        triggers = types.count(items[-1])
        work["rows_read"] += triggers * active
        work["counters_updated"] += triggers * active
        if now < events[-1].time:
            for item in items[1:-1]:
                work["counters_updated"] += types.count(item) * active
            starts += [now] * types.count(items[0])
    work["rows_created"] = totals * len(starts)
    if events:
        earliest = events[-1].time - window
        work["rows_expired"] = totals * sum(start < earliest for start in starts)
    return work
