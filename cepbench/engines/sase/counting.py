"""Matches counted without runs, for automata under ``any`` that remember their start only.

Under ``any`` every run may ignore an event, so if no formula reads more of V than the values of the
first event, the runs of a state differ in their start alone. Then their numbers say all: by start if
a condition compares the first event with others, and else as a product over the window. NOT before
or between items is part of the count if its conditions are on the negated event alone.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.automata.model import Automaton
from cepbench.engines.plan_runs.compiled import CompiledBranch
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.runs.matches import Found, ranges_of
from cepbench.engines.sase.automaton_engine import (
    AutomatonEngine,
    joined,
    no_events,
    with_more,
)
from cepbench.engines.sase.kernels import tables as automata
from cepbench.engines.sase.kernels.profile import empty_profile
from cepbench.engines.sase.layout import MOST_FLAGS, AutomatonLayout, Passing, automaton_layout
from cepbench.engines.sase.partitions import Partitions, side_by_side
from cepbench.engines.sequence_counts.kernels import numbers, tables
from cepbench.engines.sequence_counts.order_statistics import ComparedWindow
from cepbench.engines.sequence_counts.windows import CountingWindow
from cepbench.kernels.arrays import read_only
from cepbench.patterns.model import Pattern

#: Partitions without events that are not dropped yet.
_IDLE = 16


@dataclass(frozen=True)
class CountLayout:
    """A pattern whose matches can be counted without runs."""

    of_events: AutomatonLayout  #: with the events that are forbidden
    items: tables.Items
    width: int  #: columns of counts
    #: int64 (items, 2); of the automaton: of the first event of an item, and of further elements;
    #: -1 for none.
    edges: np.ndarray


def count_layout(
    task: BranchTask, *, without_rules: bool = False, without_checks: bool = False
) -> CountLayout | None:
    """The tables of a task's pattern; None if its runs differ in more than their start, by
    conditions between events unless these are left out, or those between a forbidden one and others
    unless they are, ``without_checks``.
    """
    (given,) = task.trees
    if given.pattern.strategy.name != "any":
        return None
    plain = automaton(given.pattern) if given.forbidden else given
    assert isinstance(plain, Automaton)
    layout = automaton_layout(plain, task.reader.code, counts=True, reports=False)
    plan = layout.plan
    firsts = np.flatnonzero(plan.kinds == automata.SINGLE)
    is_set = np.append(plan.kinds, automata.SINGLE)[firsts + 1] == automata.LOOP
    # The last item may have no loop, so that there is no such edge.
    edges = np.stack((automata.EDGES * firsts + automata.BEGIN, automata.EDGES * (firsts + 1)), 1)
    edges[:, 1] += automata.TAKE
    edges[~is_set, 1] = -1
    forbidden = _forbidden(given.pattern, len(layout.passing), without_checks=without_checks)
    rules = _without_rules(edges) if without_rules else _rules(plain, plan, edges.ravel())
    if rules is None or forbidden is None:
        return None
    prevents = np.zeros(len(firsts) + 1, np.int64)
    for item, passing in forbidden:
        prevents[item] |= passing.flag
    # In C order, as kernels are compiled for one order alone.
    begins, takes = np.ascontiguousarray(np.append(plan.bits, 0)[edges.T])
    # Column 0 and then those of each item.
    is_kept = np.append(np.ones(len(firsts) - 1, bool), is_set[-1])
    is_apart = is_set & (prevents[1:] > 0)
    ends = np.cumsum(is_kept * (1 + is_apart))
    columns = np.where(is_kept, ends - is_apart, -1)
    items = tables.Items(
        len(rules[1]) > 0,
        begins,
        takes,
        prevents[:-1],
        np.append(0, columns[:-1]),
        columns,
        np.where(is_set, ends, -1),
        int(np.bitwise_or.reduce(np.concatenate((begins[is_kept], takes, prevents)))),
        *rules,
        window=plan.window,
    )
    of_events = replace(layout, passing=(*layout.passing, *(its for _, its in forbidden)))
    return CountLayout(of_events, items, int(ends[-1]) + 1, edges)


def _without_rules(edges: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """As :func:`_rules`, of no conditions."""
    none = np.zeros(0, np.int64)
    return np.zeros(edges.size + 1, np.int64), none.reshape(0, 3), none


def _forbidden(
    pattern: Pattern, flags: int, *, without_checks: bool
) -> list[tuple[int, Passing]] | None:
    """The events that each NOT forbids, and before which item; None if that is not known at once."""
    branch, found = CompiledBranch.of(pattern), []
    for flag, check in enumerate(branch.checks, flags):
        if check.is_late or (check.clauses and not without_checks) or flag >= MOST_FLAGS:
            return None
        type = branch.variables[check.name].type
        found.append((len(check.earlier), Passing(type, branch.filters[check.name], 1 << flag)))
    return found


def _rules(
    compiled: Automaton, plan: automata.Plan, edges: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The spans, rules and kept columns of conditions between the first event and others that pass
    some edges, -1 for none; None if there are other conditions.
    """
    begun = slice(plan.update_spans[automata.BEGIN], plan.update_spans[automata.BEGIN + 1])
    sources = {
        column: source
        for column, source, _ in plan.updates[begun].tolist()
        if (compiled.vector[column].state, compiled.vector[column].operation) == (0, "value")
    }
    spans = plan.spans[edges]
    compared = (spans[:, automata.PROGRAM] - spans[:, automata.COMPARE]) * (edges >= 0)
    rules = plan.rules.tolist()
    # All others are programs, or test a finished set.
    if compared.sum() < len(rules) or not {rule[1] for rule in rules} <= sources.keys():
        return None
    kept = [*dict.fromkeys(sources[column] for _, column, *_ in rules)]
    found = [(value, kept.index(sources[column]), operator) for value, column, operator, _ in rules]
    return (
        np.append(0, np.cumsum(compared)),
        np.array(found, np.int64).reshape(-1, 3),
        np.array(kept, np.int64),
    )


class WindowEngine(AutomatonEngine):
    """Counts matches without runs, by a window whose partitions stay between rounds; see
    :class:`AutomatonEngine`.

    Partitions without events in the window are dropped when they are as many as the others, or a window
    has passed.
    """

    SAVED: ClassVar[tuple[str, ...]] = (
        "_held.times", "_held.flags", "_held.values", "_partitions.values", "_updates",
    )  # fmt: skip

    def __init__(
        self, task: BranchTask, layout: CountLayout, window: CountingWindow | ComparedWindow
    ) -> None:
        super().__init__(task, by_start=True, layout=layout.of_events)
        self._items = layout.items
        self._updates = 0
        #: When events were let go last.
        self._cleared = 0
        self.profile = empty_profile(self.layout.plan, watched=False)
        self._partitions = Partitions(self.layout.plan)
        self._window = window
        #: The time at which partitions have been dropped, and how many were left then.
        self._dropped = self._left = 0
        #: The events of the last timestamp, which may go on.
        self._held = no_events(len(self.layout.columns))

    def _is_due(self) -> bool:
        # So that no event is kept for longer than two windows.
        return self._until - self._cleared > self._items.window

    def _advance(self, events: automata.Events) -> bool:
        self._cleared = self._until
        held, times = self._held, events.times
        if len(held.times) and held.times[0] == times[0]:
            events = joined(held, events)
        elif len(held.times):
            self._count(held, int(times[0]))
        self._count(events, self._until)
        now = events.rows[_number_before(events, self._until) :]
        self._held = automata.Events(
            rows=np.arange(len(now)),
            times=events.times[now],
            flags=events.flags[now] | tables.COUNTED,
            values=np.ascontiguousarray(events.values[:, now]),
            first=0,
        )
        return True

    def _count(self, events: automata.Events, until: int) -> None:
        """Process some events, all of them if they are before ``until``."""
        its, window = self._partitions.of(events), self._window
        more = self._partitions.number - window.partitions
        if more > 0:
            window.add(max(more, window.partitions))
        order, numbers, spans = side_by_side(its)
        none = np.zeros(0, np.int64)
        self._push(
            tables.Events(
                events.rows[order], read_only(events.times), events.flags, events.values, spans,
                until, none, none, numbers,
            )
        )  # fmt: skip
        if len(self.layout.plan.keys):
            self._drop(until, its[_number_before(events, until) :])

    def _drop(self, until: int, held: np.ndarray) -> None:
        """Drop partitions that are not active, but for those of the events held."""
        earliest, number = until - self._items.window, self._partitions.number
        if earliest < self._dropped and number <= 2 * self._left + _IDLE:
            return
        is_kept = self._window.are_active(earliest)[:number]
        is_kept[held] = True
        # An event alone is followed by none.
        is_kept &= ~np.isnan(self._partitions.values).any(axis=1)
        kept = np.flatnonzero(is_kept)
        self._partitions.values = self._partitions.values[kept]
        self._window.keep(kept)
        self._dropped, self._left = until, len(kept)

    @abstractmethod
    def _push(self, events: tables.Events) -> None:
        """Process some events of numbered partitions."""

    def resumed(self) -> None:
        """What is not saved is working space."""
        self._held = self._held._replace(rows=np.arange(len(self._held.times)))


class CountingEngine(WindowEngine):
    """Counts by start or as a product, by the layout of the task unless one is given."""

    SAVED = (
        "_state.times", "_state.marks", "_state.values", "_state.cells", "_state.back", "_state.spans",
        "_starts",
    )  # fmt: skip

    _window: CountingWindow

    def __init__(self, task: BranchTask, layout: CountLayout | None = None) -> None:
        layout = layout or count_layout(task)
        assert layout is not None
        window = CountingWindow(tables.sequence_of(layout.items), layout.width, np.int64)
        super().__init__(task, layout, window)
        #: Timestamps of the starts in the window, if counts are kept by them.
        self._starts = np.empty(0, np.int64)

    @property
    def _state(self) -> tables.State:
        return self._window.state

    @_state.setter
    def _state(self, state: tables.State) -> None:
        self._window.state = state

    @property
    def work(self) -> dict[str, int]:
        """See :class:`AutomatonEngine`; there are no runs to visit."""
        return {"counters_updated": self._updates}

    def _found(self) -> Found:
        number = numbers.number_of(self._state.found[0, 0])
        self._state.found[:] = 0
        return Found(number, (None,))

    def _push(self, events: tables.Events) -> None:
        if self._items.by_start:
            self._window.make_room(events.parts, np.diff(events.spans))
            before = self._state.spans[events.parts, tables.HIGH]
        self._window.push(events, 0)
        self.tallies[automata.STARTED] += self._state.progress[tables.STARTED]
        self._updates += int(self._state.progress[tables.UPDATES])
        if self._items.by_start:
            rows = ranges_of(before, self._state.spans[events.parts, tables.HIGH] - before)
            self._count_active(np.sort(self._state.times[rows]), events.until)

    def _count_active(self, fresh: np.ndarray, until: int) -> None:
        """Tally the greatest number of starts in a window, of which some are new."""
        window, number = self._items.window, len(self._starts)
        self._starts = with_more(self._starts, fresh)
        behind = np.arange(number + 1, len(self._starts) + 1)
        active = behind - np.searchsorted(self._starts, fresh - window)
        peak = active.max(initial=self.tallies[automata.PEAK_RUNS])
        self.tallies[automata.PEAK_RUNS] = peak
        self._starts = self._starts[np.searchsorted(self._starts, until - window) :]

    def widen(self) -> None:
        """Give numbers more digits."""
        self._window.widen()

    def _live(self) -> int:
        return len(self._starts)

    def resumed(self) -> None:
        """What is not saved is working space."""
        super().resumed()
        self._window.resumed()


def _number_before(events: automata.Events, until: int) -> int:
    """How many of the chosen events are before a timestamp."""
    return int(np.searchsorted(events.rows, np.searchsorted(events.times, until)))
