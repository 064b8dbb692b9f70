"""Aggregation in two steps: the matches are constructed, then aggregated [qi2014]_, section 2.2.

The baseline of A-Seq, over any evaluator, and exact for every pattern. Each match is folded into
the aggregate of its first event (START), and dropped from the value when this event expires.

Differs from the paper: an aggregate for each START instead of a list of matches, and a current
value for each group, from which that of an expired START is subtracted or which, where this is not
exact, is computed anew from the STARTs that are left.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial

import numpy as np

from cepbench.engines.aggregation.folds import (
    CompletedMatches,
    FirstEvents,
    Matches,
    Weights,
    joined,
    no_matches,
    of_sets,
)
from cepbench.engines.aggregation.partitions import numbered
from cepbench.engines.aggregation.protocol import (
    AggregateMetrics,
    AggregationMethod,
    AggregationTask,
    Key,
)
from cepbench.engines.aggregation.rows import Rows
from cepbench.engines.aggregation.semirings import Total, has_floats
from cepbench.engines.aggregation.valuation import Valuation
from cepbench.engines.detection.detector import Detector
from cepbench.engines.detection.registry import EVALUATORS, evaluator_for
from cepbench.engines.detection.rounds import Rounds
from cepbench.engines.detection.tasks import constructs_of, evaluator_without_plan, runs_some
from cepbench.engines.runs.matches import BranchMatches, Found, SetColumn
from cepbench.engines.runs.result import Metrics
from cepbench.errors import EvaluationError
from cepbench.patterns.model import Kind, Pattern
from cepbench.planning.plans.model import AnyPlan, OrderPlan, TreePlan, UnionPlan
from cepbench.planning.plans.tree import right_deep
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.recent import RecentEvents

_DEFAULT = "stack-nfa"


class TwoStepRun(Stateful):
    """A run of ``two-step``.

    It finds the matches by the evaluator of the task; or, if it does not, :meth:`folded` is given them.
    """

    SAVED = (
        "_known_kinds",
        "_updates",
        "_position",
        "_detector",
        "_recent",
        "_valuation",
        "_folds",
    )

    def __init__(self, task: AggregationTask, *, finds: bool = True) -> None:
        warm_up()
        self._task = task
        pattern = task.pattern
        #: None if a batch is not to be divided.
        self._rounds: Rounds | None = None
        self._detector: Detector | None = None
        if finds:
            matches = pattern.without_aggregate()
            plan, evaluator = matching(matches, task.evaluator)
            self._opened = partial(Detector, matches, plan, evaluator=evaluator)
            self._detector = self._opened()
            # A user-defined evaluator may report a match after the round of its last event.
            self._rounds = Rounds() if EVALUATORS[evaluator].is_builtin else None
        self._ends = {frozenset(b.positive_names): _ends_of(b) for b in pattern.branches()}
        self._group_by = pattern.group_by
        keys = tuple(key.attribute for key in pattern.group_by)
        attributes = {its for its in keys if isinstance(its, str)}
        attributes |= {each.attribute for each in pattern.aggregates if each.attribute}
        self._recent = RecentEvents(attributes, pattern.window.length, 0)
        branches = pattern.structure.alternatives()
        plain = {
            variable.name
            for variable in pattern.positive
            if not variable.is_set and all(variable in its.variables() for its in branches)
        }
        self._valuation = Valuation(task, keys, plain, counts_values=True)
        totals = self._valuation.totals
        #: Whether each total is over floats.
        self._floats = [False] * len(totals)
        self._folds = (
            FirstEvents(totals, pattern.window.length)
            if task.scope == "window"
            else CompletedMatches(totals, stays=task.scope == "stream")
        )
        self._updates = 0

    def push(self, batch: EventStream) -> Rows:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.push`."""
        assert self._detector is not None
        parts: Iterable[EventStream] = [batch]
        if self._rounds is not None:
            parts = self._rounds.parts(batch, lambda: self._updates)
        return Rows.joined([self.folded(part, self._detector.take(part)) for part in parts])

    def folded(self, batch: EventStream, found: Found) -> Rows:
        """The rows of the next events, with the matches that they complete."""
        first = self._valuation.position
        self._recent.push(batch)
        self._note_floats(batch)
        matches = self._matches(found, first)
        if len(matches.rows) and matches.rows.min() < 0:
            assert self._detector is not None
            raise EvaluationError(
                f"the evaluator {self._detector.evaluator} reported a match after the batch of its "
                "last event; use cep.aggregate, which takes the whole stream"
            )
        self._updates += len(matches.rows)
        known = self._recent.stream.timestamps
        changes = self._folds.push(batch.timestamps, matches, known, self._recent.first)
        return self._valuation.push(batch, changes, np.arange(len(self._valuation.keys)))

    def value(self, time: int) -> Rows:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.value`."""
        groups, totals = self._folds.at(time)
        return self._valuation.at(time, totals, groups)

    def metrics(self) -> AggregateMetrics:
        """See :meth:`cepbench.engines.aggregation.protocol.AggregationRun.metrics`."""
        found = Metrics() if self._detector is None else self._detector.metrics()
        buffered = found.peak_buffered_events
        return AggregateMetrics(
            updates=self._updates,
            peak_counters=self._folds.peak_counters,
            peak_objects=self._folds.peak_matches + (0 if buffered != buffered else int(buffered)),
            peak_bytes=found.peak_bytes,
            work=found.work,
        )

    @property
    def _position(self) -> int | None:
        """From where a detector goes on that is restored."""
        return None if self._detector is None else self._detector.position

    @_position.setter
    def _position(self, position: int | None) -> None:
        if position is not None:
            self._detector = self._opened(position=position)

    @property
    def _known_kinds(self) -> list[bool]:
        return self._floats

    @_known_kinds.setter
    def _known_kinds(self, floats: list[bool]) -> None:
        self._floats = floats
        self._valuation.begin(floats)
        self._folds.to_floats(floats)

    @property
    def _kinds(self) -> list[tuple[Total, bool]]:
        """The totals, and whether each is over floats."""
        return [*zip(self._valuation.totals, self._floats, strict=True)]

    # -- matches --------------------------------------------------------------------------------

    def _matches(self, found: Found, first: int) -> Matches:
        """The matches of a batch that begins at a position, those that have a group."""
        listed = [its for its in found.matches if its is not None and len(its)]
        if not listed:
            return no_matches([total.dtype(is_float=its) for total, its in self._kinds])
        keyed = [self._keys(matches) for matches in listed]
        # Groups that are first seen with the same event come in the order of their keys.
        self._valuation.groups(sorted({key for _, keys in keyed for key in keys}))
        parts = []
        for matches, (codes, keys) in zip(listed, keyed, strict=True):
            firsts, lasts = self._ends[frozenset(matches.names)]
            groups = self._valuation.groups(keys)
            part = Matches(
                matches.in_columns(lasts).last_positions() - first,
                # With one, they are zeros already.
                np.append(groups, -1)[codes] if self._group_by else codes,
                matches.in_columns(firsts).first_positions(),
                [
                    self._weights(total, matches, is_float=is_float)
                    for total, is_float in self._kinds
                ],
            )
            parts.append(part.taken(np.flatnonzero(codes >= 0)) if (codes < 0).any() else part)
        return joined(parts)

    def _keys(self, matches: BranchMatches) -> tuple[np.ndarray, list[Key]]:
        """The number of each match's group, -1 if it misses a value, and the groups."""
        if not self._group_by:
            return np.zeros(len(matches), np.int64), [()]
        events, lowest = self._recent.stream, self._recent.first
        names = [key.attribute for key in self._group_by]
        rows = {}
        for variable in {key.variable for key in self._group_by}:
            names_of = self._ends[frozenset(matches.names)][0] if variable is None else [variable]
            rows[variable] = matches.in_columns(names_of).first_positions() - lowest
        if len(rows) > 1:
            return numbered(events, names, [rows[key.variable] for key in self._group_by])
        # Events are fewer than matches.
        (own,) = rows.values()
        used = np.flatnonzero(np.bincount(own))
        codes = np.empty(len(events), np.int64)
        codes[used], keys = numbered(events, names, used)
        return codes[own], keys

    def _weights(self, total: Total, matches: BranchMatches, *, is_float: bool) -> Weights:
        """What matches of a branch add to a total."""
        name, dtype = total.variable, total.dtype(is_float=is_float)
        if name is None or name not in matches.names:
            zero, one = total.units(is_float=is_float)
            same = np.zeros(len(matches), np.int64)
            return Weights(np.array([one if name is None else zero], dtype), same)
        events, lowest = self._recent.stream, self._recent.first
        read = None if total.attribute is None else events.column(total.attribute)
        values = total.weights(read, np.arange(len(events)), is_float=is_float)
        (column,) = matches.in_columns([name]).columns
        if isinstance(column, SetColumn):
            return of_sets(total, values, column, lowest)
        return Weights(values, np.require(column, np.int64, ("C", "W")), lowest)

    def _note_floats(self, batch: EventStream) -> None:
        """Turn totals to floats whose values are floats from now on."""
        before = False if self._valuation.position else None
        floats = [
            known
            or (
                total.attribute is not None
                and has_floats(batch.column(total.attribute), before=before)
            )
            for total, known in self._kinds
        ]
        if floats != self._floats:
            self._floats = floats
            self._valuation.to_floats(floats)
            self._folds.to_floats(floats)


def _ends_of(branch: Pattern) -> tuple[list[str], list[str]]:
    """The variables of which one has the first event of a match, and the last one."""
    before = branch.structure.precedence()
    # A group may have no events.
    sure = [v.name for v in branch.positive if v.kind is not Kind.GROUP]
    names = branch.positive_names
    return (
        [name for name in names if not any((other, name) in before for other in sure)],
        [name for name in names if not any((name, other) in before for other in sure)],
    )


@cache
def warm_up() -> None:
    """Compile the kernels of integers and floats, or load them from the disk cache."""
    zeros = np.zeros(1, np.int64)
    for is_float in (False, True):
        total = Total("SUM", "a", "x")
        folds = FirstEvents([total], 0)
        folds.to_floats([is_float])
        weights = Weights(zeros.astype(total.dtype(is_float=is_float)), zeros)
        folds.push(zeros, Matches(zeros, zeros, zeros, [weights]), zeros, 0)


def matching(pattern: Pattern, evaluator: str | None) -> tuple[AnyPlan | None, str]:
    """How the matches of a pattern are found: a plan, in the written order, and an evaluator.

    By default ``stack-nfa``, the automaton of section 2.2, or where it does not support the pattern
    the default evaluator without plans for its strategy, or ``lazy-nfa``.

    An EvaluationError if the evaluator is unknown.
    """
    if evaluator is not None:
        entry = evaluator_for(evaluator)
    else:
        entry = EVALUATORS[_DEFAULT]
        if not (
            constructs_of(pattern) <= set(entry.constructs)
            and pattern.strategy.name in entry.strategies
        ):
            entry = evaluator_without_plan(pattern.strategy.name) or EVALUATORS["lazy-nfa"]
    if entry.without_plan:
        return None, entry.name
    plans = [
        OrderPlan(branch.planned_names)
        if runs_some(entry, "order")
        else TreePlan(right_deep(branch.planned_names))
        for branch in pattern.branches()
    ]
    return plans[0] if len(plans) == 1 else UnionPlan(plans), entry.name


TWO_STEP = AggregationMethod(
    "two-step", TwoStepRun, lists_matches=True, source="[qi2014]_, section 2.2"
)
