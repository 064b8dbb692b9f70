"""Matches of a part of a query's variables, extended until they are matches of the query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from cepbench.engines.plan_runs.programs import Compared, ProgramWriter, Rule
from cepbench.engines.reuse.events import Candidates, Events
from cepbench.engines.reuse.kept import KeptMatches
from cepbench.engines.reuse.kernels.columns import gathered
from cepbench.engines.reuse.kernels.extend import Probe, extended, extensions, in_range
from cepbench.engines.reuse.queries import Query
from cepbench.engines.runs.matches import ranges_of
from cepbench.errors import PartialMatchLimitError
from cepbench.kernels import instructions
from cepbench.kernels.arrays import read_only
from cepbench.kernels.instructions import RULE_COLUMNS
from cepbench.patterns.equivalences import Derived
from cepbench.patterns.model import Clause

_NO_TIMES = read_only(np.empty(0, np.int64))
_NO_KEYS = read_only(np.empty(0, np.float64))
_ALL = np.iinfo(np.int64).max

#: Tests of a pair in the time in which an event is sorted by a key.
_TESTS = 30


class Sought(NamedTuple):
    """Which matches are sought: those whose last, or whose first, event is at some positions."""

    #: The positions, from ``begin`` to ``end`` - 1.
    begin: int = 0
    end: int = np.iinfo(np.int64).max
    by_first: bool = False  #: whether they are those of the first event

    def variable(self, query: Query) -> str | None:
        """The variable of a query that has this event in every match; None for none or all matches."""
        if self == ALL:
            return None
        return query.first if self.by_first else query.last

    def mask(self, matches: np.ndarray) -> np.ndarray:
        """Which of some matches, shape (variables, matches), are sought, as bools."""
        ends = matches.min(axis=0) if self.by_first else matches.max(axis=0)
        return np.asarray((self.begin <= ends) & (ends < self.end))

    def among(self, matches: KeptMatches) -> KeptMatches:
        """Those of some matches that are sought."""
        return matches.taken(self.mask(matches.table)) if self != ALL else matches


ALL = Sought()

#: A run is tried if it has at most so many combinations of events for each pair of a match and an event,
#: and joined first if at most this share of them satisfies the conditions.
PAIRS_OF_RUN, KEPT_OF_RUN = 1.0, 0.1


class Growth:
    """Partial matches of a query that grow by one variable at a time: rows of others, and events added.

    ``begun``, positions, int32 (variables, matches), have all that the query asks of these variables but
    for its negations. ``sought`` restricts the variable that precedes, or follows, all others.
    """

    def __init__(
        self,
        query: Query,
        events: Events,
        names: Sequence[str],
        begun: np.ndarray,
        limit: int,
        sought: Sought = ALL,
    ) -> None:
        self.query = query
        self.sought = sought
        self.events = events
        self.begun = begun
        self.limit = limit
        #: int32 (matches,); the number of the match that each began as; None for all, in order.
        self.rows: np.ndarray | None = None
        #: int32 (matches,); positions of the events of the variables added.
        self.own: dict[str, np.ndarray] = {}
        #: (matches,); something known of each match, which those that extend it inherit.
        self.labels: np.ndarray | None = None
        self.unchecked = list(query.checks)
        self._places = {name: place for place, name in enumerate(names)}

    @classmethod
    def of_one(cls, query: Query, events: Events, name: str, limit: int, sought: Sought) -> Self:
        """The events of one variable."""
        growth = cls(query, events, [name], np.empty((1, 0), np.int32), limit, sought)
        growth.begun = growth.candidates(name).positions[None].astype(np.int32)
        return growth

    def __len__(self) -> int:
        return self.begun.shape[1] if self.rows is None else len(self.rows)

    @property
    def names(self) -> set[str]:
        """The variables bound."""
        return self._places.keys() | self.own.keys()

    def column(self, name: str) -> np.ndarray:
        """The positions of the events of a variable."""
        if name in self.own:
            return self.own[name]
        found: np.ndarray = self.begun[self._places[name]]
        return found if self.rows is None else found[self.rows]

    def table(self, names: Sequence[str]) -> np.ndarray:
        """The positions of some variables, int32, shape (variables, matches)."""
        if self.rows is None:
            return np.ascontiguousarray(self.begun[[self._places[name] for name in names]])
        found = np.empty((len(names), len(self)), np.int32)
        places = [self._places.get(name, -1) for name in names]
        gathered(self.begun, np.array(places, np.int64), self.rows, found)
        for row, name in enumerate(names):
            if name in self.own:
                found[row] = self.own[name]
        return found

    def keep(self, which: np.ndarray) -> None:
        """Drop all matches but those of a mask."""
        if not which.all():
            self._take(np.flatnonzero(which).astype(np.int32))

    def _take(self, kept: np.ndarray) -> None:
        """Replace the matches by those of these numbers."""
        self.rows = kept if self.rows is None else self.rows[kept]
        self.own = {name: its[kept] for name, its in self.own.items()}
        if self.labels is not None:
            self.labels = self.labels[kept]

    def grow(self, missing: Iterable[str], order: Sequence[str] = ()) -> None:
        """Bind more variables in an order, by default as :meth:`_order`; negations are tested early."""
        self.check()
        for name in order or self._order(missing):
            self.extend(name)
            self.check()

    def _order(self, missing: Iterable[str]) -> list[str]:
        """Bind the runs that are joined first; returns the other variables, those of fewest events first."""
        left = [*missing]
        for run in self.runs(left):
            self._extend_by(run)
            self.check()
            left = [name for name in left if name not in run.names]
        return self.in_order(left)

    def runs(self, missing: Collection[str]) -> list[Growth]:
        """Runs of variables that are joined with each other before they are with the matches.

        Successive variables between bound ones, with conditions among them that few combinations of
        their events satisfy, if there are also fewer such combinations than pairs of a match and an event.
        """
        stretches: list[list[str]] = [[]]
        for name in self.query.names:
            if name in missing:
                stretches[-1].append(name)
            elif stretches[-1]:
                stretches.append([])
        joined = (self._joined(each) for each in stretches if len(each) > 1)
        return [run for run in joined if run is not None]

    def _joined(self, run: Sequence[str]) -> Growth | None:
        """The combinations of events of a run, if they are to be joined first."""
        mentioned = ({*clause.variables} for clause in self.query.conditions)
        if not any(len(its) > 1 and its <= {*run} for its in mentioned):
            return None
        first, *others = self.in_order(run)
        pairs = self._pairs(run)
        if pairs > PAIRS_OF_RUN * in_range(*self._probe(first)):
            return None
        joined = Growth.of_one(self.query, self.events, first, self.limit, self.sought)
        joined.grow(others, others)
        return joined if len(joined) <= KEPT_OF_RUN * pairs else None

    def _pairs(self, run: Sequence[str]) -> float:
        """The expected number of combinations of events of a run, by order and window alone."""
        first, *others = (self.candidates(name).times for name in run)
        found, window = float(len(first)), self.query.window
        for (name, times), (other, others_times) in pairwise(
            zip(run, (first, *others), strict=True)
        ):
            early = times if (name, other) in self.query.before else times - window - 1
            ends = np.searchsorted(others_times, times + window, side="right")
            count = (ends - np.searchsorted(others_times, early, side="right")).sum()
            found *= count / max(len(times), 1)
        return found

    def _extend_by(self, joined: Growth) -> None:
        """Bind the variables of a run by one join with their combinations [liu2011]_, equation 9."""
        query, bound = self.query, tuple(name for name in self.query.names if name in self.names)
        run = [name for name in query.names if name in joined.names]
        first, *others = run if query.relations(run[0], bound).after else run[::-1]
        order = np.argsort(joined.column(first), kind="stable")
        starts = joined.column(first)[order]
        self.extend(first, among=Candidates(np.unique(starts), self.events.times))
        begin = np.searchsorted(starts, self.own[first])
        sizes = np.searchsorted(starts, self.own[first], side="right") - begin
        self._take(np.repeat(np.arange(len(sizes), dtype=np.int32), sizes))
        self.events.work.assembled += len(self)
        its = order[ranges_of(begin, sizes)]
        for name in others:
            self.own[name] = joined.column(name)[its]
        for place, name in enumerate(others):
            # Conditions may mention several variables of the run, and others.
            self.keep(self._fits(name, (*bound, first, *others[:place])))

    def _fits(self, name: str, others: tuple[str, ...]) -> np.ndarray:
        """Whether the event of a variable has all that is asked of it and some others, as bools."""
        its, window = self.query.relations(name, others), self.query.window
        own, times = self.column(name), self.events.times
        found = np.ones(len(self), bool)
        for other in its.after:
            found &= times[self.column(other)] < times[own]
        for other in its.before:
            found &= times[own] < times[self.column(other)]
        for other in its.first:
            found &= times[own] - times[self.column(other)] <= window
        for other in its.last:
            found &= times[self.column(other)] - times[own] <= window
        for other in its.distinct:
            found &= own != self.column(other)
        for clause in its.conditions:
            at = {each: self.column(each) for each in clause.variables}
            found &= self.events.holds(clause, at)
        return found

    def in_order(self, missing: Iterable[str]) -> list[str]:
        """Variables, those of fewest events first."""
        return sorted(missing, key=lambda each: len(self.candidates(each).positions))

    def number(self, missing: Iterable[str], order: Sequence[str] = ()) -> int:
        """How many matches there would be after :meth:`grow`."""
        order = order or self._order(missing)
        self.grow(order[:-1], order[:-1])
        if self.unchecked or not order:
            self.grow(order[-1:])
            return len(self)
        number = int(extensions(*self._probe(order[-1]), _ALL).sum())
        self.events.work.assembled += number
        return number

    def extend(
        self,
        name: str,
        gap: tuple[str, np.ndarray] | None = None,
        among: Candidates | None = None,
    ) -> None:
        """Bind one more variable, to events ``among`` some, by default all.

        ``gap``: a variable bound, and ascending timestamps, before the last of which before that
        variable's event no event is taken.
        """
        complete = len(self.names) + 1 == len(self.query.names)
        limit = _ALL if complete else self.limit
        table, probe = self._probe(name, gap, among)
        parents, found = extended(table, probe, limit)
        if len(parents) > limit:
            bound = ", ".join([*sorted(self.names, key=self.query.leaf_of.__getitem__), name])
            raise PartialMatchLimitError(
                f"more than {self.limit:,} partial matches over ({bound}) "
                "have to be stored; choose another source, or allow more with partial_match_limit"
            )
        self.events.work.assembled += len(parents)
        self._take(parents)
        self.own[name] = found

    def check(self) -> None:
        """Test the negations of which all that they depend on is bound."""
        for check in [each for each in self.unchecked if each.is_exact_at(self.names)]:
            self.unchecked.remove(check)
            self.keep(~self.extensible(check.name))

    def extensible(self, name: str) -> np.ndarray:
        """Which matches have an event that fits one more variable, as bools."""
        found: np.ndarray = extensions(*self._probe(name), 1) > 0
        return found

    def candidates(self, name: str) -> Candidates:
        """The events that a variable may be bound to."""
        query = self.query
        found = self.events.candidates(query.variables[name], query.filters[name])
        if name == self.sought.variable(query):
            return found.between(self.sought.begin, self.sought.end)
        return found

    def _probe(
        self,
        name: str,
        gap: tuple[str, np.ndarray] | None = None,
        among: Candidates | None = None,
    ) -> tuple[np.ndarray, Probe]:
        """The positions that a new event is compared with, and how."""
        names = tuple(each for each in self.query.names if each in self.names)
        its = self.query.relations(name, names)
        siblings = self.query.siblings.get(name, ((), ()))
        earlier, later = ([x for x in names if x in side] for side in siblings)
        candidates = among or self.candidates(name)
        if self.rows is None:
            table, read = self.begun, [*self._places]
        else:
            needed = its.mentioned.union(earlier, later, () if gap is None else gap[:1])
            read = [each for each in names if each in needed]
            table = self.table(read)

        def rows(chosen: Iterable[str]) -> np.ndarray:
            return np.array([read.index(each) for each in chosen], np.int64)

        compared, program, constants = _conditions(name, read, its.conditions, self.events)
        probe = Probe(
            times=self.events.times,
            candidates=candidates.positions,
            candidate_times=candidates.times,
            keys=_NO_KEYS,
            starts=_NO_TIMES,
            key=(-1, -1),
            after=rows(its.after),
            before=rows(its.before),
            first=rows(its.first),
            last=rows(its.last),
            window=self.query.window,
            gap=_NO_TIMES if gap is None else gap[1],
            gap_end=-1 if gap is None else read.index(gap[0]),
            distinct=rows(x for x in its.distinct if x not in {*earlier, *later}),
            earlier=rows(earlier),
            later=rows(later),
            compared=compared,
            program=program,
            constants=constants,
            values=self.events.values,
        )
        equal = compared[compared[:, 2] == instructions.EQUAL]
        # Sorting by the key takes about as long as this many tests of each event.
        tests = _TESTS * len(candidates.positions)
        if len(equal) and in_range(table, probe) > tests:
            row, value, _, own = equal[0].tolist()
            by_key = candidates.by_key(own, self.events.values[own])
            probe = probe._replace(
                candidates=by_key.positions,
                candidate_times=by_key.times,
                keys=by_key.keys,
                starts=by_key.starts,
                key=(row, value),
            )
        return table, probe


def _conditions(
    name: str, names: Sequence[str], clauses: Iterable[Clause], events: Events
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rules and constants of conditions between a new event and the bound ones."""
    writer = ProgramWriter(events.reader.code)

    def compare(found: Compared) -> Rule:
        (other, value), operator, (_, own) = found
        return names.index(other), events.value(value), operator, events.value(own)

    def load(value: Derived) -> Rule:
        if value[0] == name:
            return instructions.LOAD_RIGHT, events.value(value[1]), 0, 0
        return instructions.LOAD_LEFT, events.value(value[1]), names.index(value[0]), 0

    rules, programs = writer.conditions(clauses, names, compare, load)
    return (
        np.array(rules, np.int64).reshape(-1, RULE_COLUMNS),
        np.array(programs, np.int64).reshape(-1, RULE_COLUMNS),
        np.array(writer.constants, np.float64),
    )
