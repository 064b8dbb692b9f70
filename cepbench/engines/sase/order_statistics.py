"""Matches of two or three compared events counted without runs, for automata under ``any``.

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
from cepbench.patterns.expressions import MIRRORED, of_any_variable, terms_of, with_terms
from cepbench.patterns.model import Clause, Expression


@dataclass(frozen=True)
class ComparedLayout:
    """A SEQ of two or three plain items, with NOT between them, whose matches can be counted by ranks of values."""

    layout: CountLayout  #: without the conditions between events
    compared: tuple[Compared | None, Compared | None]  #: see :class:`ComparedWindow`
    closing: Closing | None


def compared_layout(task: BranchTask) -> ComparedLayout | None:
    """The tables of a task's pattern; None if ranks do not tell its matches.

    Each two neighbours have one comparison at most, of a value of either; the middle one of three events has one
    value in both. A NOT between two of them has conditions on its own event, or before the last one
    a single comparison with the item before it.
    """
    (given,) = task.trees
    names = given.pattern.positive_names
    if len(names) not in (2, 3) or any(v.is_set for v in given.pattern.positive):
        return None
    layout = count_layout(task, without_rules=True, without_checks=True)
    if layout is None or layout.items.prevents[0]:
        return None
    columns, negated = [*layout.of_events.columns], [v.name for v in given.pattern.negated]
    prevents = layout.items.prevents.copy()
    found: list[Compared | None] = [None, None]
    closing: Closing | None = None
    for clause in given.pattern.conditions:
        if len(clause.variables) == 1:
            continue
        barred = [name for name in negated if name in clause.variables]
        sides = _sides(clause, (names[-2], *barred) if barred else names)
        if sides is None:
            return None
        place, operator, *values = sides
        for value in values:
            if value not in columns:
                columns.append(value)
        earlier, later = map(columns.index, values)
        if barred:
            flag = layout.of_events.passing[negated.index(barred[0]) - len(negated)].flag
            if closing or prevents[-1] & flag == 0 or operator in ("=", "!="):
                return None
            closing = Closing(flag, later, earlier, COMPARISONS[operator])
            prevents[-1] ^= flag
        elif found[place] is not None:
            return None
        else:
            found[place] = earlier, later, COMPARISONS[operator]
    before, behind = found
    if before and behind and before[1] != behind[0]:
        return None
    of_events = replace(layout.of_events, columns=tuple(columns))
    items = layout.items._replace(prevents=prevents)
    return ComparedLayout(
        replace(layout, items=items, of_events=of_events), (before, behind), closing
    )


def _sides(
    clause: Clause, names: tuple[str, ...]
) -> tuple[int, str, Expression, Expression] | None:
    """Of one comparison of neighbours: the number of the earlier, the operator with the later one on its left,
    and the values of the earlier and of the later one.
    """
    if len(clause.comparisons) > 1:
        return None
    (comparison,) = clause.comparisons
    reads = [
        {term.variable for term in terms_of(its)} for its in (comparison.left, comparison.right)
    ]
    if any(len(its) != 1 for its in reads) or not set.union(*reads) <= {*names}:
        return None
    (left,), (right,) = reads
    one, two = names.index(left), names.index(right)
    if abs(one - two) != 1:
        return None
    values = [with_terms(its, of_any_variable) for its in (comparison.left, comparison.right)]
    if one > two:
        return two, comparison.operator, values[1], values[0]
    return one, MIRRORED[comparison.operator], values[0], values[1]


class ComparedEngine(WindowEngine):
    """Counts matches by ranks of values; see :class:`AutomatonEngine`."""

    SAVED = ("_window",)

    _window: ComparedWindow

    def __init__(self, task: BranchTask, layout: ComparedLayout) -> None:
        items = layout.layout.items
        window = ComparedWindow(
            items.begins,
            layout.compared,
            items.window,
            prevents=items.prevents,
            closing=layout.closing,
            counts_window=False,
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
