"""Matches of two or three compared events counted without runs, for automata under ``any``, and for AND.

See :mod:`cepbench.engines.sequence_counts.kernels.order_statistics`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cepbench.engines.plan_runs.engine import BranchTask
from cepbench.engines.plan_runs.programs import COMPARISONS
from cepbench.engines.runs.matches import Found
from cepbench.engines.sase.counting import CountLayout, WindowEngine, count_layout
from cepbench.engines.sase.kernels.tables import STARTED
from cepbench.engines.sequence_counts.kernels.tables import Events
from cepbench.engines.sequence_counts.order_statistics import (
    Closing,
    Compared,
    ComparedWindow,
    warm_up,
)
from cepbench.patterns.model import Expression, Operator
from cepbench.patterns.neighbours import Sides, neighbours_of


@dataclass(frozen=True)
class ComparedLayout:
    """A SEQ of two or three plain items, with NOT between them, whose matches can be counted by ranks of values."""

    layout: CountLayout  #: without the conditions between events
    compared: tuple[Compared | None, Compared | None]  #: see :class:`ComparedWindow`
    closing: Closing | None


def compared_layout(task: BranchTask) -> ComparedLayout | None:
    """The tables of a task's pattern; None if ranks do not tell its matches, see
    :func:`cepbench.patterns.neighbours.neighbours_of`.
    """
    (given,) = task.trees
    found = neighbours_of(given.pattern)
    if found is None:
        return None
    layout = count_layout(task, without_rules=True, without_checks=True)
    if layout is None:
        return None
    columns, items = [*layout.of_events.columns], layout.items
    first, second = (its and _compared(its, columns) for its in found.compared)
    closing: Closing | None = None
    if found.closing is not None:
        name, sides = found.closing
        earlier, later, operator = _compared(sides, columns)
        negated = [v.name for v in given.pattern.negated]
        flag = layout.of_events.passing[negated.index(name) - len(negated)].flag
        closing = Closing(flag, later, earlier, operator)
        prevents = items.prevents.copy()
        prevents[-1] ^= flag
        items = items._replace(prevents=prevents)
    of_events = replace(layout.of_events, columns=tuple(columns))
    layout = replace(layout, items=items, of_events=of_events)
    return ComparedLayout(layout, (first, second), closing)


def _compared(sides: Sides, columns: list[Expression]) -> Compared:
    """The comparison of two columns, which are added where they are missing."""
    columns += [its for its in dict.fromkeys((sides.earlier, sides.later)) if its not in columns]
    return columns.index(sides.earlier), columns.index(sides.later), COMPARISONS[sides.operator]


class ComparedEngine(WindowEngine):
    """Counts matches by ranks of values; see :class:`AutomatonEngine`."""

    SAVED = ("_window",)

    _window: ComparedWindow

    def __init__(self, task: BranchTask, layout: ComparedLayout) -> None:
        (branch,), items = task.branches, layout.layout.items
        window = ComparedWindow(
            items.begins,
            layout.compared,
            items.window,
            prevents=items.prevents,
            closing=layout.closing,
            counts_window=False,
            is_ordered=branch.operator is Operator.SEQ,
        )
        super().__init__(task, layout.layout, window)
        warm_up()

    @property
    def work(self) -> dict[str, int]:
        """None: sums of a tree are no counters of the papers."""
        return {}

    def _found(self) -> Found:
        return Found(self._window.take(), (None,))

    def _push(self, events: Events) -> None:
        _, (begun, _, _) = self._window.push(events, 0)
        self.tallies[STARTED] += begun

    def _live(self) -> int:
        return 0

    def _bytes(self) -> int:
        return super()._bytes() + self._window.bytes
