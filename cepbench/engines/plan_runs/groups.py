"""Groups: sets of events formed between the plain events of a match [mei2009]_, section 4.4.5.

A plan joins the plain variables; each of its matches is then a row to which the events of the
groups are added, all of them or each run of so many successive ones. The remaining conditions
test the finished rows. Where no other variable chooses the events of a group, it is a
range of the candidates: its ends and its aggregates are read in place, conditions on it alone are
tested once for each run of so many events, and its events are copied only to be shown.

Differs from the paper: groups are added to matches, not to the records of the node where their
neighbours meet, which are only tested for having one, by engines that read
:attr:`~cepbench.engines.plan_runs.engine.BranchTask.groups`. Negations that depend on a group, or
on the ends of the window, are checked on the finished rows, wherever the plan places them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import combinations

import numpy as np

from cepbench.engines.plan_runs.compiled import CompiledBranch
from cepbench.engines.plan_runs.engine import BranchTask, Engine
from cepbench.engines.plan_runs.node_table import NodeCounts
from cepbench.engines.runs.matches import (
    BranchMatches,
    Column,
    Found,
    SetColumn,
    joined,
    no_matches,
    ranges_of,
)
from cepbench.errors import PartialMatchLimitError, UnsupportedPatternError
from cepbench.patterns.arrays import before_each, clause_holds, over_ranges
from cepbench.patterns.model import ANY, Aggregate, Attribute, Clause, Pattern, Variable
from cepbench.patterns.negations import Check, PlacedGroup, negated_apart
from cepbench.state import Stateful
from cepbench.streams.event_stream import EventStream
from cepbench.streams.numeric import NumericReader
from cepbench.streams.recent import RecentEvents

#: Pairs of a row and an event that are tested together.
_MOST_PAIRS = 1 << 20

#: Events are kept for so many windows: a match is decided at most one window after its last event,
#: and a negated item may look back one window from that.
_WINDOWS_KEPT = 3

_NONE = np.empty(0, np.int64)


def open_ended(branch: Pattern) -> bool:
    """Whether a group of a branch reaches forward as far as the window allows."""
    before = CompiledBranch.of(branch).before
    plain = branch.planned_names
    return any(not any((g.name, x) in before for x in plain) for g in branch.groups)


class GroupEngine(Stateful):
    """Finds the matches of branches with groups, from those of their plain variables.

    The given engine joins the plain variables; if it ``waits`` for negated items that come last, or
    ``negates`` any, they are not checked here. Latencies are not measured: an error.
    """

    SAVED = ("_used", "_recent", "_branches")

    def __init__(
        self,
        task: BranchTask,
        engine: Callable[[BranchTask], Engine | GroupEngine],
        *,
        waits: bool = True,
        negates: bool = True,
    ) -> None:
        if task.timed:
            raise UnsupportedPatternError(
                "the latency of matches with groups is not measured; leave out latency=True"
            )
        self._task = task
        self.ranks = None
        parts = zip(task.branches, task.trees, task.placements, strict=True)
        self._branches = [
            _Branch(
                replace(task, branches=[branch], trees=[tree], placements=[its]),
                engine,
                waits=waits,
                negates=negates,
            )
            for branch, tree, its in parts
        ]
        first = task.branches[0]
        self._window = first.window.length
        attributes = dict.fromkeys(name for branch in task.branches for name in branch.attributes)
        self._recent = RecentEvents(tuple(attributes), _WINDOWS_KEPT * self._window, 0)
        self._consumes = first.strategy.name == "consuming"
        #: The events used.
        self._used: set[int] = set()

    @property
    def latencies(self) -> np.ndarray:
        """Empty: latencies are not measured."""
        return self._branches[0].inner.latencies

    @property
    def peaks(self) -> np.ndarray:
        """Those of the plain variables; see :mod:`cepbench.kernels.counts`."""
        return np.asarray(np.sum([branch.inner.peaks for branch in self._branches], axis=0))

    def node_counts(self) -> Sequence[NodeCounts]:
        """Counts at the nodes of the plans, which are over the plain variables."""
        return [counts for branch in self._branches for counts in branch.inner.node_counts()]

    def run(self, batch: EventStream | None, first_position: int, *, ended: bool) -> Found:
        """Process a batch of events; see :meth:`Engine.run`."""
        if batch is not None:
            if not self._recent.pushed:
                self._recent.first = first_position
            self._recent.push(batch)
        complete = [
            branch.run(batch, first_position, self._recent, ended=ended)
            for branch in self._branches
        ]
        if self._consumes:
            complete = self._selected(complete, ended=ended)
        self._check_limit()
        count = sum(map(len, complete))
        return Found(count, tuple(part if self._task.reports else None for part in complete))

    def _selected(self, complete: list[BranchMatches], *, ended: bool) -> list[BranchMatches]:
        """Those of the complete matches that STRATEGY consuming reports."""
        known = [
            joined([branch.contending, found])
            for branch, found in zip(self._branches, complete, strict=True)
        ]
        times, first = self._recent.stream.timestamps, self._recent.first
        waits = not ended and any(branch.waits for branch in self._branches)
        order = []
        for number, matches in enumerate(known):
            names = [name for name in self._task.written if name in matches.names]
            rows = matches.in_columns(names).rows()
            for row, last in enumerate(matches.last_positions().tolist()):
                # No match that is still undecided has an earlier last event.
                if not waits or times[last - first] + self._window < times[-1]:
                    sets = [its if isinstance(its, tuple) else (its,) for its in rows[row]]
                    order.append((last, sets, number, row))
        self._used = {position for position in self._used if position >= first}
        kept: list[list[int]] = [[] for _ in known]
        decided: list[list[int]] = [[] for _ in known]
        for _, sets, number, row in sorted(order):
            decided[number].append(row)
            bound = {position for its in sets for position in its}
            if self._used.isdisjoint(bound):
                self._used |= bound
                kept[number].append(row)
        for branch, matches, done in zip(self._branches, known, decided, strict=True):
            branch.contending = matches.taken(np.setdiff1d(np.arange(len(matches)), done))
        return [
            matches.taken(np.array(rows, np.int64))
            for matches, rows in zip(known, kept, strict=True)
        ]

    def _check_limit(self) -> None:
        stored = sum(
            len(its.contending) + len(its.forming) + len(its.waiting) for its in self._branches
        )
        if stored > self._task.limit:
            raise PartialMatchLimitError(
                f"more than {self._task.limit:,} matches wait for the end of their window, to know "
                "their groups and negated events; use a shorter window or more conditions, or allow "
                "more with partial_match_limit"
            )


class _Branch(Stateful):
    """The matches of one branch, whether or not they share events."""

    SAVED = ("forming", "waiting", "contending", "inner")

    def __init__(
        self,
        task: BranchTask,
        engine: Callable[[BranchTask], Engine | GroupEngine],
        *,
        waits: bool,
        negates: bool,
    ) -> None:
        (self.branch,) = task.branches
        branch = self.branch
        checks = CompiledBranch.of(branch).checks
        self._late = tuple(check for check in checks if check.is_late)
        #: Whether the matches of ``inner`` lack groups or are to be tested for negated items.
        self.completes = (
            bool(branch.groups)
            or (bool(self._late) and not waits)
            or (bool(branch.negated) and not negates)
        )
        (placements,) = task.placements
        placed = dict(placements)
        joins = branch
        if self.completes:
            # Negations that groups do not touch are checked where the plan says.
            apart = {v.name for v in negated_apart(branch) if negates}
            left = [v for v in branch.negated if v.name not in apart]
            joins = branch.without((*branch.groups, *left))
            #: Without the negated items that ``inner`` checks for matches that it does not
            #: complete.
            self.branch = branch.without(v for v in branch.negated if v.name in apart)
            placements = tuple(its for its in placements if its[0] in apart)
        plain = replace(joins, strategy=ANY)
        #: The variables that ``inner`` joins: without groups, all of them.
        self.plain = plain.positive
        places = [
            PlacedGroup(branch, group.name, frozenset(placed.get(group.name, ())))
            for group in branch.groups
        ]
        self._formed = {
            place: FormedGroup(place, task.reader) for place in places if place.restricts
        }
        self.inner = engine(
            replace(
                task,
                branches=[plain],
                placements=[placements],
                groups=self._formed,
                written=plain.positive_names,
                reports=True,
            )
        )
        self._reader = task.reader
        here = {variable.name for variable in self.branch.negated}
        self._prompt = tuple(check for check in checks if not check.is_late and check.name in here)
        self._open_ended = open_ended(branch)
        #: Whether a match is decided only at the end of its window.
        self.waits = bool(self._late) or self._open_ended
        #: Matches of the plain variables whose groups are not complete yet.
        self.forming = no_matches(plain.positive)
        self.waiting = no_matches(branch.positive)  #: those that a negated event may still prevent
        #: Those from which others, which come first, may still take events.
        self.contending = no_matches(branch.positive)

    def run(
        self, batch: EventStream | None, first_position: int, recent: RecentEvents, *, ended: bool
    ) -> BranchMatches:
        """Process a batch of events; returns the matches that are complete."""
        for group in self._formed.values():
            group.read(recent)
        (plain,) = self.inner.run(batch, first_position, ended=ended).matches
        assert plain is not None
        if not self.completes:
            return plain
        events = Events(self.branch, recent.stream, recent.first, self._reader)
        found, self.forming = _due(
            events, joined([self.forming, plain]), ended or not self._open_ended
        )
        tested = [self.waiting]
        for block in events.blocks(found):
            tested.append(events.allowed(events.with_groups(block), self._prompt))
        complete, self.waiting = _due(events, joined(tested), ended or not self._late)
        return events.allowed(complete, self._late)


def _due(
    events: Events, matches: BranchMatches, decided: bool
) -> tuple[BranchMatches, BranchMatches]:
    """Those whose window has passed since their first event, and the others."""
    if decided:
        return matches, BranchMatches(matches.names, matches.chunks[:1]).taken(_NONE)
    window = events.branch.window.length
    passed = events.time_of(matches.first_positions()) + window < events.now
    return matches.taken(np.flatnonzero(passed)), matches.taken(np.flatnonzero(~passed))


def _pieces(work: np.ndarray) -> list[np.ndarray]:
    """The numbers of matches in blocks of about :data:`_MOST_PAIRS` pairs, by the pairs of each."""
    number = np.cumsum(work) // _MOST_PAIRS
    return np.split(np.arange(len(work)), np.flatnonzero(np.diff(number)) + 1)


class FormedGroup:
    """The test of records for having a group, see :data:`GroupTest`."""

    def __init__(self, place: PlacedGroup, reader: NumericReader) -> None:
        self._place, self._reader = place, reader
        self._recent: RecentEvents | None = None
        self._events: Events | None = None

    def read(self, recent: RecentEvents) -> None:
        """Choose among these events from now on."""
        self._recent, self._events = recent, None

    def __call__(self, names: Sequence[str], positions: np.ndarray) -> np.ndarray:
        """Whether records of some variables have the group."""
        recent, branch = self._recent, self._place.pattern
        assert recent is not None
        if self._events is None:
            kept = {*names, self._place.name}
            branch = branch.without(v for v in branch.variables if v.name not in kept)
            self._events = Events(branch, recent.stream, recent.first, self._reader)
        return self._events.have_groups(BranchMatches(names, [list(positions)]))


@dataclass(frozen=True)
class Events:
    """The latest events of a stream, the first at position ``first``, from which the matches of a
    branch are completed.
    """

    branch: Pattern
    stream: EventStream
    first: int
    reader: NumericReader

    @property
    def now(self) -> int:
        """The time of the last event."""
        return int(self.stream.timestamps[-1]) if len(self.stream) else 0

    def time_of(self, positions: np.ndarray) -> np.ndarray:
        """The times of events."""
        times: np.ndarray = self.stream.timestamps[positions - self.first]
        return times

    @cached_property
    def _before(self) -> frozenset[tuple[str, str]]:
        return CompiledBranch.of(self.branch).before

    @cached_property
    def _columns(self) -> dict[str, np.ndarray]:
        whole = slice(None)
        return {name: self.reader.read(self.stream, name, whole) for name in self.branch.attributes}

    @cached_property
    def _candidates(self) -> dict[str, np.ndarray]:
        """The positions of the events of each group and negated item, by its own conditions."""
        found = {}
        for variable in (*self.branch.groups, *self.branch.negated):
            rows = self.stream.rows_of(variable.type)
            for clause in CompiledBranch.of(self.branch).filters[variable.name]:
                held = clause_holds(clause, lambda a, at=rows: self._columns[a.name][at], self.reader.code)  # type: ignore[misc]  # fmt: skip
                rows = rows[np.broadcast_to(held, rows.shape)]
            found[variable.name] = rows + self.first
        return found

    @cached_property
    def _times(self) -> dict[str, np.ndarray]:
        """The times of the candidates."""
        return {name: self.time_of(positions) for name, positions in self._candidates.items()}

    # -- groups ---------------------------------------------------------------------------------

    def blocks(self, plain: BranchMatches) -> Iterator[BranchMatches]:
        """The matches of the plain variables in blocks that are completed together."""
        if not len(plain):
            return
        work = np.ones(len(plain), np.int64)
        for group in self.branch.groups:
            in_place = self._is_range(group) and not self._reads_members
            if in_place and not isinstance(group.size, int):
                continue
            start, stop = self._range(plain, group)
            size = group.size if isinstance(group.size, int) else 1
            work += np.maximum(stop - start - size + 1, 0) if in_place else (stop - start) * size
        yield from map(plain.taken, _pieces(work))

    def have_groups(self, plain: BranchMatches) -> np.ndarray:
        """Whether all conditions on groups hold for some choice of them, shape (matches,)."""
        found = [np.zeros(0, bool)]
        for block in self.blocks(plain):
            found.append(np.zeros(len(block), bool))
            found[-1][self._formed(block)[1]] = True
        return np.concatenate(found)

    def with_groups(self, plain: BranchMatches) -> BranchMatches:
        """The matches with every choice of groups, as far as all conditions on them hold."""
        return self._formed(plain)[0]

    def _formed(self, plain: BranchMatches) -> tuple[BranchMatches, np.ndarray]:
        """What :meth:`with_groups` returns, and for each the number of the match it comes from."""
        bound: dict[str, Column] = dict(zip(plain.names, plain.columns, strict=True))
        #: Of each row so far the match that it comes from, and of each group its set.
        match = np.arange(len(plain))
        for group in self.branch.groups:
            choices, sets = self._choices(plain, group)
            numbers = np.bincount(choices, minlength=len(plain))
            first, number = (np.cumsum(numbers) - numbers)[match], numbers[match]
            rows = np.repeat(np.arange(len(match)), number)
            chosen = ranges_of(first, number)
            bound = {
                name: column.taken(rows) if isinstance(column, SetColumn) else column[rows]
                for name, column in bound.items()
            }
            bound[group.name] = sets.taken(chosen)
            match = match[rows]
        names = self.branch.positive_names
        found = BranchMatches(names, [[bound[name] for name in names]])
        kept = self._distinct(found)
        rows = np.arange(len(found))
        tested = {clause for group in self.branch.groups for clause in self._alone(group)}
        for clause in self._testing:
            if clause not in tested:
                kept &= self._holds(found, clause, rows)
        return (found, match) if kept.all() else (found.taken(np.flatnonzero(kept)), match[kept])

    @cached_property
    def _testing(self) -> list[Clause]:
        """The conditions that test finished groups."""
        choosing = {clause for group in self.branch.groups for clause in self._choosing(group)}
        negated = {variable.name for variable in self.branch.negated}
        groups = {group.name for group in self.branch.groups}
        return [
            clause
            for clause in self.branch.conditions
            if clause not in choosing
            and not negated & {*clause.variables}
            and groups & {*clause.variables}
        ]

    @cached_property
    def _reads_members(self) -> bool:
        """Whether finding the matches takes more of a group than its ends and its aggregates."""
        return bool(self.branch.negated) or any(
            clause.running_variables()
            or any(
                isinstance(term, Attribute) and term.element in ("each", "rest", "previous")
                for term in clause.terms()
            )
            for clause in self._testing
        )

    def _is_range(self, group: Variable) -> bool:
        """Whether all candidates of a group between two times fit: no other variable chooses them,
        nor takes one of them.
        """
        name = group.name
        return all(
            (x, name) in self._before or (name, x) in self._before
            for x in self.branch.planned_names
        ) and all({*clause.variables} == {name} for clause in self._choosing(group))

    def _choices(self, plain: BranchMatches, group: Variable) -> tuple[np.ndarray, SetColumn]:
        """The groups that fitting events give: the number of the match of each, and its events."""
        fitting, size = self._fitting(plain, group), group.size
        sizes = fitting.sizes
        if not isinstance(size, int):
            match = np.arange(len(sizes)) if size == "*" else np.flatnonzero(sizes)
            return match, fitting.taken(match)
        pool, begin = fitting.pool, fitting.begin
        starts = np.arange(max(len(pool) - size + 1, 0))
        for clause in self._alone(group):
            windows = SetColumn(starts, np.full(len(starts), size), pool)
            found = BranchMatches([group.name], [[windows]])
            starts = starts[self._holds(found, clause, np.arange(len(starts)))]
        # How many of these groups begin before each place.
        before = np.zeros(len(pool) + 1, np.int64)
        before[starts + 1] = 1
        before = np.cumsum(before)
        first = before[begin]
        number = before[begin + np.maximum(sizes - size + 1, 0)] - first
        match = np.repeat(np.arange(len(sizes)), number)
        chosen = ranges_of(first, number)
        return match, SetColumn(starts[chosen], np.full(len(match), size), pool)

    def _alone(self, group: Variable) -> list[Clause]:
        """The conditions that test groups of so many events once each, whatever matches they are in."""
        if not isinstance(group.size, int) or self._reads_members:
            return []
        return [clause for clause in self._testing if {*clause.variables} == {group.name}]

    def _choosing(self, group: Variable) -> list[Clause]:
        """The conditions that choose the events of a group."""
        known = {group.name, *self.branch.planned_names}
        return [
            clause
            for clause in self.branch.conditions
            if clause.is_elementwise
            and group.name in clause.variables
            and known >= {*clause.variables}
        ]

    def _range(self, plain: BranchMatches, variable: Variable) -> tuple[np.ndarray, np.ndarray]:
        """Where the candidates of a group begin and end that are in order and in the window."""
        columns = {name: np.asarray(c) for name, c in zip(plain.names, plain.columns, strict=True)}
        times = {name: self.time_of(column) for name, column in columns.items()}
        return self._between(
            variable.name,
            [times[x] for x in times if (x, variable.name) in self._before],
            [times[x] for x in times if (variable.name, x) in self._before],
            reduce(np.minimum, times.values()),
            reduce(np.maximum, times.values()),
        )

    def _between(
        self,
        name: str,
        after: list[np.ndarray],
        before: list[np.ndarray],
        earliest: np.ndarray,
        latest: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray]:
        """The range of candidates between some times, and in the window with some others."""
        times = self._times[name]
        window = self.branch.window.length
        first = reduce(np.maximum, (time + 1 for time in after), latest - window)
        last = reduce(np.minimum, (time - 1 for time in before), earliest + window)
        start = np.searchsorted(times, first, "left")
        return start, np.maximum(start, np.searchsorted(times, last, "right"))

    def _fitting(self, plain: BranchMatches, group: Variable) -> SetColumn:
        """The events that fit a group, one set a match."""
        start, stop = self._range(plain, group)
        if self._is_range(group):
            # Only the events that are in one of the groups are read.
            begin, end = start.min(initial=len(self._times[group.name])), stop.max(initial=0)
            pool = self._candidates[group.name][begin:end]
            return SetColumn(start - begin, stop - start, pool)
        match = np.repeat(np.arange(len(plain)), stop - start)
        sizes = stop - start
        events = self._candidates[group.name][ranges_of(start, sizes)]
        fits = np.ones(len(match), bool)
        for column in plain.columns:
            fits &= events != np.asarray(column)[match]

        def values(attribute: Attribute) -> np.ndarray:
            if attribute.variable == group.name:
                return self._columns[attribute.name][events - self.first]
            column = np.asarray(plain.columns[plain.names.index(attribute.variable)])
            return self._columns[attribute.name][column[match] - self.first]

        for clause in self._choosing(group):
            fits &= clause_holds(clause, values, self.reader.code)
        counts = np.bincount(match[fits], minlength=len(plain))
        return SetColumn.of(np.concatenate(([0], np.cumsum(counts))), events[fits])

    def _distinct(self, found: BranchMatches) -> np.ndarray:
        """Whether no event is in two groups of a row."""
        kept = np.ones(len(found), bool)
        sets = [column for column in found.columns if isinstance(column, SetColumn)]
        if not all(self._are_apart(*pair) for pair in combinations(self.branch.groups, 2)):
            rows = np.concatenate([np.repeat(np.arange(len(s)), np.diff(s.offsets)) for s in sets])
            events = np.concatenate([s.positions for s in sets])
            order = np.lexsort((events, rows))
            rows, events = rows[order], events[order]
            kept[rows[1:][(rows[1:] == rows[:-1]) & (events[1:] == events[:-1])]] = False
        return kept

    def _are_apart(self, x: Variable, y: Variable) -> bool:
        """Whether a plain variable stands between two groups."""
        return any(
            {(x.name, z), (z, y.name)} <= self._before or {(y.name, z), (z, x.name)} <= self._before
            for z in self.branch.planned_names
        )

    # -- negation -------------------------------------------------------------------------------

    def allowed(self, found: BranchMatches, negated: Sequence[Check]) -> BranchMatches:
        """The matches that no event of these negated items forbids."""
        for check in negated:
            found = found.taken(np.flatnonzero(~self._forbidden(found, check)))
        return found

    def _forbidden(self, found: BranchMatches, check: Check) -> np.ndarray:
        columns = dict(zip(found.names, found.columns, strict=True))
        lasts = {name: self._end(column, last=True) for name, column in columns.items()}
        firsts = {name: self._end(column, last=False) for name, column in columns.items()}
        start, stop = self._between(
            check.name,
            [lasts[x] for x in lasts if x in check.earlier],
            [firsts[x] for x in firsts if x in check.later],
            reduce(np.minimum, firsts.values()),
            reduce(np.maximum, lasts.values()),
        )
        forbidden = np.zeros(len(found), bool)
        sizes = stop - start
        for rows in _pieces(sizes):
            row = np.repeat(rows, sizes[rows])
            events = self._candidates[check.name][ranges_of(start[rows], sizes[rows])]
            held = ~self._is_bound(found, row, events)
            row, events = row[held], events[held]
            for clause in check.clauses:
                held = self._holds(found, clause, row, events)
                row, events = row[held], events[held]
            forbidden[row] = True
        return forbidden

    def _end(self, column: Column, *, last: bool) -> np.ndarray:
        """The time of the first or last event of each row; beyond all times if there is none."""
        if not isinstance(column, SetColumn):
            return self.time_of(column)
        positions = column.last() if last else column.first()
        some = column.sizes > 0
        beyond = np.iinfo(np.int64)
        found = np.full(len(column), beyond.min if last else beyond.max)
        found[some] = self.time_of(positions[some])
        return found

    def _is_bound(self, found: BranchMatches, row: np.ndarray, events: np.ndarray) -> np.ndarray:
        """Whether each event is one of those of its row."""
        bound = np.zeros(len(row), bool)
        for column in found.columns:
            if isinstance(column, SetColumn):
                # A row and an event as one number.
                width = self.first + len(self.stream) + 1
                rows = np.repeat(np.arange(len(column)), np.diff(column.offsets))
                bound |= np.isin(row * width + events, rows * width + column.positions)
            else:
                bound |= column[row] == events
        return bound

    # -- conditions -----------------------------------------------------------------------------

    def _holds(
        self,
        found: BranchMatches,
        clause: Clause,
        row: np.ndarray,
        negated: np.ndarray | None = None,
    ) -> np.ndarray:
        """Whether a condition holds for the matches of some numbers, and the event with each that
        is the negated item's, if it mentions one.
        """
        columns = dict(zip(found.names, found.columns, strict=True))
        running = clause.running_variables()
        each = {
            term.variable
            for term in clause.terms()
            if isinstance(term, Attribute)
            and term.element == "each"
            and isinstance(columns.get(term.variable), SetColumn)
        }
        # Each entry is a row, and an event of the set that the condition goes through.
        entry, element = np.arange(len(row)), np.empty(0, np.int64)
        for name in each | running:
            column = columns[name]
            assert isinstance(column, SetColumn)
            skipped = int(bool(running))
            sizes = np.maximum(np.diff(column.offsets)[row] - skipped, 0)
            entry = np.repeat(np.arange(len(row)), sizes)
            element = ranges_of(column.offsets[:-1][row] + skipped, sizes)

        def values(attribute: Attribute) -> np.ndarray:
            values = self._columns[attribute.name]
            column = columns.get(attribute.variable)
            if column is None:
                assert negated is not None
                return values[negated[entry] - self.first]
            if not isinstance(column, SetColumn):
                return values[column[row[entry]] - self.first]
            if attribute.element in ("each", "rest", "previous"):
                places = element - (attribute.element == "previous")
                return values[column.positions[places] - self.first]
            ends = column.first() if attribute.element == "first" else column.last()
            some = column.sizes > 0
            of_row = np.full(len(column), np.nan)
            of_row[some] = values[ends[some] - self.first]
            return of_row[row[entry]]

        def over(aggregate: Aggregate) -> np.ndarray:
            column = columns[aggregate.attribute.variable]
            assert isinstance(column, SetColumn)
            read = self._columns[aggregate.attribute.name]
            if aggregate.before:
                members = read[column.positions - self.first]
                return before_each(aggregate.function, members, column.offsets)[element]
            values = read[column.pool - self.first]
            return over_ranges(aggregate.function, values, column.begin, column.sizes)[row[entry]]

        held = np.ones(len(row), bool)
        every = np.broadcast_to(clause_holds(clause, values, self.reader.code, over), entry.shape)
        held[entry[~every]] = False
        return held
