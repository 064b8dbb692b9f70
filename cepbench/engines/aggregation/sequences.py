"""Patterns whose aggregates can be computed without matches, as tables for the kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from cepbench.engines.aggregation.digits import DigitWindow
from cepbench.engines.aggregation.event_graphs import graph_layout
from cepbench.engines.aggregation.protocol import AggregationTask
from cepbench.engines.aggregation.semirings import Total
from cepbench.engines.automata.compilation import automaton
from cepbench.engines.detection.tasks import constructs_of
from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.sase.counting import CountLayout, count_layout
from cepbench.engines.sase.layout import MOST_FLAGS
from cepbench.engines.sequence_counts.kernels import tables
from cepbench.engines.sequence_counts.order_statistics import Closing, Compared, ComparedWindow
from cepbench.engines.sequence_counts.windows import CountingWindow
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import EventType, Kind, Pattern
from cepbench.streams.numeric import NumericReader


@dataclass(frozen=True)
class CountedSequence:
    """A pattern as a sequence of items, whose histories are counted."""

    pattern: Pattern  #: of the matches, without AGG
    layout: CountLayout
    scope: str

    def items(self) -> tuple[tables.Items, int, int]:
        """The items, the number of columns, and that of all matches in the window or -1."""
        items, width = self.layout.items, self.layout.width
        if self.scope != "window":
            return items, width, -1
        if items.prevents[0]:
            # What the matches in the window go on from is not what they are.
            return items, width + 1, width
        if items.columns[-1] < 0:
            items = items._replace(
                columns=np.append(items.columns[:-1], width),
                changes=items.changes | int(items.begins[-1]),
            )
            return items, width + 1, width
        return items, width, int(items.columns[-1])

    def window(self, total: Total, *, is_float: bool) -> CountingWindow:
        """The state of a total, of one partition."""
        items, width, final = self.items()
        weighted, picked = -1, 0
        if total.variable is not None:
            item = self.pattern.positive_names.index(total.variable)
            # From behind, because another item may stand before all.
            weighted = len(items.begins) - len(self.pattern.positive) + item
            if self.pattern.positive[item].is_set and not total.is_maximum:
                picked = width
        units, is_maximum = total.units(is_float=is_float), total.is_maximum
        sequence = tables.sequence_of(items, final, weighted, picked, units, is_maximum=is_maximum)
        columns = 2 * width if picked else width
        return CountingWindow(sequence, columns, total.dtype(is_float=is_float))


@dataclass(frozen=True)
class ComparedSequence:
    """A SEQ or an AND of two or three plain items, whose neighbours are compared, with NOT between those of a SEQ."""

    #: Of the matches, without AGG; of an AND, a SEQ in which those that are compared are neighbours.
    pattern: Pattern
    layout: CountLayout  #: without the conditions between events
    compared: tuple[Compared | None, Compared | None]
    closing: Closing | None
    scope: str
    is_ordered: bool  #: SEQ

    def window(self, total: Total, *, is_float: bool) -> ComparedWindow | DigitWindow:
        """The state of a total."""
        items = self.layout.items
        count = ComparedWindow(
            items.begins,
            self.compared,
            items.window,
            prevents=items.prevents,
            closing=self.closing,
            counts_window=self.scope == "window",
            is_ordered=self.is_ordered,
        )
        if total.variable is None:
            return count
        item = self.pattern.positive_names.index(total.variable)
        if total.is_maximum:
            return count.weighing(item, is_maximum=True)
        return DigitWindow(total, count, item, int(items.begins[item]), is_float=is_float)


def check_items(task: AggregationTask, name: str, *, in_order: bool = True) -> Pattern:
    """The pattern of the matches of a task, which are those of a sequence (or not ``in_order``, of an AND),
    whatever its conditions.

    An UnsupportedPatternError if not; the error names the construct.
    """

    def refuse(construct: str) -> UnsupportedPatternError:
        return _refusal(name, construct)

    pattern = task.pattern.without_aggregate()
    if pattern.strategy.name != "any":
        raise refuse(f"STRATEGY {pattern.strategy.name}")
    if pattern.output != "all":
        raise refuse(f"OUTPUT {pattern.output}")
    if len(pattern.branches()) > 1:
        raise refuse("OR")
    if in_order and "AND" in constructs_of(pattern) and len(pattern.positive) > 1:
        raise refuse("AND")
    if pattern.groups:
        raise refuse(f"the group {pattern.groups[0]}")
    for key in task.pattern.group_by:
        if isinstance(key.attribute, EventType):
            if any(v.name == key.variable and v.type is None for v in pattern.positive):
                raise refuse(f"GROUP BY {key}, of an item of any type")
        elif key.attribute not in pattern.equivalences:
            raise refuse(
                f"GROUP BY {key}, which only labels matches, unless all of their events share it by "
                f"GROUP BY {key.attribute} or [{key.attribute}]"
            )
    grouped = {str(key.attribute) for key in task.pattern.group_by}
    if len(pattern.positive) == 1 and not grouped.issuperset(pattern.equivalences):
        raise refuse(f"[{', '.join(pattern.equivalences)}] with a single item")
    return pattern


def counted_task(pattern: Pattern, reader: NumericReader) -> BranchTask:
    """The task of an engine that counts the matches of a pattern without AGG."""
    return BranchTask(
        [pattern], [automaton(pattern)], [()], pattern.positive_names, reader,
        reports=False, limit=0, timed=False, watched=False,
    )  # fmt: skip


_L = TypeVar("_L")


def counted_layout(
    pattern: Pattern,
    reader: NumericReader,
    name: str,
    layout_of: Callable[[BranchTask], _L | None],
) -> _L:
    """The tables of a pattern; ``layout_of`` gives None for conditions for which there are none.

    An UnsupportedPatternError if there are none; the error names the condition, and the method.
    """

    try:
        found = layout_of(counted_task(pattern, reader))
    except UnsupportedPatternError as error:
        raise UnsupportedPatternError(f"{name}, unlike the method two-step: {error}") from None
    if found is None:
        for clause in pattern.conditions:
            its = counted_task(replace(pattern, conditions=(clause,)), reader)
            if layout_of(its) is None:
                others = "two-step" if graph_layout(its) is None else "greta or two-step"
                raise _refusal(name, f"the condition {clause}", others)
        raise _refusal(name, f"more than {MOST_FLAGS} kinds of events")
    return found


def _refusal(name: str, construct: str, others: str = "two-step") -> UnsupportedPatternError:
    return UnsupportedPatternError(f"{name} cannot aggregate {construct}; use the method {others}")


def sequence_of(
    task: AggregationTask, reader: NumericReader, name: str, *, by_start: bool
) -> CountedSequence:
    """The sequence of a pattern, counted by the first event of a match or not.

    An UnsupportedPatternError if its matches differ in more than what is counted; the error names
    the construct.
    """
    pattern = check_items(task, name)
    layout = counted_layout(pattern, reader, name, count_layout)
    items = layout.items
    if items.by_start and not by_start:
        raise UnsupportedPatternError(
            f"{name} keeps no first events, and cannot aggregate the condition "
            f"{_condition_on_first(pattern)}; use the method a-seq or two-step"
        )
    if items.prevents[0] and task.scope == "window" and not by_start:
        raise UnsupportedPatternError(
            f"{name} cannot tell when a NOT before the first item has been decided, in scope window; "
            "use the method a-seq or two-step"
        )
    layout = _of_read_columns(replace(layout, items=items._replace(by_start=by_start)))
    return CountedSequence(pattern, layout, task.scope)


def _of_read_columns(layout: CountLayout) -> CountLayout:
    """Without the columns of events that no condition reads: partitions have their own keys."""
    items, of_events = layout.items, layout.of_events
    rules, number = items.rules.copy(), len(items.rules)
    read, places = np.unique(np.append(rules[:, 0], items.kept), return_inverse=True)
    rules[:, 0] = places[:number]
    return replace(
        layout,
        items=items._replace(rules=rules, kept=places[number:]),
        of_events=replace(of_events, columns=tuple(of_events.columns[place] for place in read)),
    )


def _condition_on_first(pattern: Pattern) -> Any:
    return next(
        clause
        for clause in pattern.conditions
        if len({(a.variable, a.element) for a in clause.attributes()}) > 1
        and not any(
            v.kind is Kind.NEGATED and v.name in clause.variables for v in pattern.variables
        )
    )
