"""Patterns whose aggregates can be computed without matches, as tables for the kernels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cepbench.aggregators.protocol import AggregationTask
from cepbench.aggregators.semirings import Total
from cepbench.automata.compilation import automaton
from cepbench.errors import UnsupportedPatternError
from cepbench.evaluators.plan_runs.engine import BranchTask
from cepbench.evaluators.sase.counting import CountLayout, count_layout
from cepbench.kernels.sequence_counts import tables
from cepbench.patterns.model import Kind, Pattern
from cepbench.streams.numeric import NumericReader


@dataclass(frozen=True)
class CountedSequence:
    """A pattern as a sequence of items, whose histories are counted.

    Attributes
    ----------
    pattern : Pattern
        Of the matches, without AGG.
    layout : CountLayout
    scope : str
        See :class:`~cepbench.aggregators.protocol.AggregationTask`.
    """

    pattern: Pattern
    layout: CountLayout
    scope: str

    @property
    def last_flags(self) -> int:
        """Flags of the events that may complete a match."""
        sequence = self.layout.sequence
        return int(sequence.begins[-1] | sequence.takes[-1])

    def tables(self, total: Total, *, is_float: bool) -> tuple[tables.Sequence, int]:
        """The tables of a total, and its number of columns."""
        sequence, width = self.layout.sequence, self.layout.width
        columns, final, changes = sequence.columns, -1, sequence.changes
        if self.scope == "window":
            looks_back = bool(sequence.prevents[0])
            if columns[-1] < 0 and not looks_back:
                columns = np.append(columns[:-1], width)
                changes |= int(sequence.begins[-1])
            final = int(columns[-1])
            if looks_back:
                # What the matches in the window go on from is not what they are.
                final = width
            width = max(width, final + 1)
        weighted, picked = -1, 0
        if total.variable is not None:
            weighted = self.pattern.positive_names.index(total.variable)
            if self.pattern.positive[weighted].is_set and not total.is_maximum:
                picked = width
        zero, one = total.units(is_float=is_float)
        its = sequence._replace(
            columns=columns, changes=changes, final=final, weighted=weighted, picked=picked,
            zero=zero, one=one, is_maximum=total.is_maximum,
        )  # fmt: skip
        return its, 2 * width if picked else width


def sequence_of(
    task: AggregationTask, reader: NumericReader, name: str, *, by_start: bool
) -> CountedSequence:
    """The sequence of a pattern.

    Parameters
    ----------
    task : AggregationTask
    reader : NumericReader
        Assigns codes to texts.
    name : str
        Of the method, for errors.
    by_start : bool
        Whether counts are kept by the first event of a match.

    Raises
    ------
    UnsupportedPatternError
        If its matches differ in more than what is counted; the error names the construct.
    """

    def refuse(construct: str) -> UnsupportedPatternError:
        return UnsupportedPatternError(
            f"{name} cannot aggregate {construct}; use the method two-step"
        )

    pattern = task.pattern.without_aggregate()
    if pattern.strategy.name != "any":
        raise refuse(f"STRATEGY {pattern.strategy.name}")
    if pattern.output != "all":
        raise refuse(f"OUTPUT {pattern.output}")
    if len(pattern.branches()) > 1:
        raise refuse("OR")
    if pattern.groups:
        raise refuse(f"the group {pattern.groups[0]}")
    for key in task.pattern.group_by:
        if key.attribute not in pattern.equivalences:
            raise refuse(
                f"GROUP BY {key}, which only labels matches, unless all of their events share it by "
                f"GROUP BY {key.attribute} or [{key.attribute}]"
            )
    grouped = {key.attribute for key in task.pattern.group_by}
    if len(pattern.positive) == 1 and not grouped.issuperset(pattern.equivalences):
        raise refuse(f"[{', '.join(pattern.equivalences)}] with a single item")
    try:
        layout = _layout(pattern, reader)
    except UnsupportedPatternError as error:
        raise UnsupportedPatternError(f"{name}, unlike the method two-step: {error}") from None
    if layout is None:
        raise refuse(_condition(pattern, reader))
    sequence = layout.sequence
    if sequence.by_start and not by_start:
        raise UnsupportedPatternError(
            f"{name} keeps no first events, and cannot aggregate the condition "
            f"{_condition_on_first(pattern)}; use the method a-seq or two-step"
        )
    if sequence.prevents[0] and task.scope == "window" and not by_start:
        raise UnsupportedPatternError(
            f"{name} cannot tell when a NOT before the first item has been decided, in scope window; "
            "use the method a-seq or two-step"
        )
    layout = replace(layout, sequence=sequence._replace(by_start=by_start))
    return CountedSequence(pattern, layout, task.scope)


def _layout(pattern: Pattern, reader: NumericReader) -> CountLayout | None:
    task = BranchTask(
        [pattern], [automaton(pattern)], [()], pattern.positive_names, reader,
        reports=False, limit=0, timed=False, watched=False,
    )  # fmt: skip
    return count_layout(task)


def _condition(pattern: Pattern, reader: NumericReader) -> str:
    """The first condition without which the sequence could be counted."""
    for clause in pattern.conditions:
        if _layout(replace(pattern, conditions=(clause,)), reader) is None:
            return f"the condition {clause}"
    raise AssertionError(pattern)  # pragma: no cover


def _condition_on_first(pattern: Pattern) -> Any:
    return next(
        clause
        for clause in pattern.conditions
        if len({(a.variable, a.element) for a in clause.attributes()}) > 1
        and not any(
            v.kind is Kind.NEGATED and v.name in clause.variables for v in pattern.variables
        )
    )
