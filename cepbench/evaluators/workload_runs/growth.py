"""Matches of a part of a query's variables, extended until they are matches of the query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from cepbench.errors import PartialMatchLimitError
from cepbench.evaluators.plan_runs.engine import read_only
from cepbench.evaluators.plan_runs.programs import (
    COMPARISONS,
    FLIPPED,
    ProgramWriter,
    Rule,
    separated_sides,
    variables_of,
)
from cepbench.evaluators.workload_runs.events import Events
from cepbench.kernels import instructions
from cepbench.kernels.instructions import RULE_COLUMNS
from cepbench.kernels.match_extension import Probe, extended, extensible
from cepbench.patterns.model import Clause, Expression, Pattern
from cepbench.patterns.negations import Check

_NO_TIMES = read_only(np.empty(0, np.int64))


class Query:
    """A query without OR, Kleene variables and groups, as the reuse of matches reads it.

    Parameters
    ----------
    pattern : Pattern

    Attributes
    ----------
    pattern : Pattern
        Its only branch.
    variables : dict of str to Variable
    before : set of (str, str)
        The pattern's precedence.
    last : str or None
        The positive variable that follows all others.
    checks : list of Check
        Those of its negated variables.
    """

    def __init__(self, pattern: Pattern) -> None:
        (self.pattern,) = pattern.branches()
        self.names = self.pattern.positive_names
        self.variables = {variable.name: variable for variable in self.pattern.variables}
        self.before = self.pattern.structure.precedence()
        follows = (
            name
            for name in self.names
            if all((other, name) in self.before for other in self.names if other != name)
        )
        self.last = next(follows, None)
        self.checks = [Check.of(self.pattern, each.name) for each in self.pattern.negated]
        self.conditions = self.pattern.conditions
        self.window = self.pattern.window.length

    def neighbours(self, name: str, bound: Collection[str]) -> tuple[list[str], list[str]]:
        """Those of some variables that come next before, and next after, a variable."""
        after = [x for x in bound if (x, name) in self.before]
        before = [y for y in bound if (name, y) in self.before]
        return (
            [x for x in after if not any((x, z) in self.before for z in after)],
            [y for y in before if not any((z, y) in self.before for z in before)],
        )

    def filters(self, name: str) -> tuple[Clause, ...]:
        """The conditions on one variable alone."""
        return tuple(clause for clause in self.conditions if {*clause.variables} == {name})


class Growth:
    """Partial matches of a query that grow by one variable at a time.

    Parameters
    ----------
    query : Query
    events : Events
    names : sequence of str
        The variables bound.
    matches : int64 array, shape (variables, matches)
        Positions, which satisfy all that the query asks of these variables, but for its negations.
    limit : int
        Maximum number of partial matches.
    since : int
        Positions from here on are those of the last event; 0 for any. Restricts the variable that
        follows all others.
    """

    def __init__(
        self,
        query: Query,
        events: Events,
        names: Sequence[str],
        matches: np.ndarray,
        limit: int,
        since: int = 0,
    ) -> None:
        self.query = query
        self.since = since
        self.events = events
        self.names = list(names)
        self.matches = matches
        self.limit = limit
        #: Something known of each match, which those that extend it inherit.
        self.labels = np.arange(matches.shape[1])
        self.unchecked = list(query.checks)

    def column(self, name: str) -> np.ndarray:
        """The positions of the events of a variable."""
        found: np.ndarray = self.matches[self.names.index(name)]
        return found

    def keep(self, which: np.ndarray) -> None:
        """Drop all matches but those of a mask."""
        if not which.all():
            self.matches = np.ascontiguousarray(self.matches[:, which])
            self.labels = self.labels[which]

    def grow(self, missing: Iterable[str]) -> None:
        """Bind more variables, and test negations as soon as they can be."""
        self.check()
        left = list(missing)
        while left:
            name = min(left, key=lambda each: len(self._candidates(each)))
            left.remove(name)
            self.extend(name)
            self.check()

    def extend(self, name: str, gap: tuple[str, np.ndarray] | None = None) -> None:
        """Bind one more variable.

        Parameters
        ----------
        name : str
        gap : (str, int64 array), optional
            A variable bound, and ascending timestamps: of the new variable's events only those are
            taken that are not before the last of these timestamps before that variable's event.
        """
        complete = len(self.names) + 1 == len(self.query.names)
        limit = np.iinfo(np.int64).max if complete else self.limit
        parents, found = extended(self.matches, self._probe(name, gap), limit)
        if len(parents) > limit:
            raise PartialMatchLimitError(
                f"more than {self.limit:,} partial matches over ({', '.join([*self.names, name])}) "
                "have to be stored; choose another source, or allow more with partial_match_limit"
            )
        grown = np.empty((len(self.names) + 1, len(found)), np.int64)
        np.take(self.matches, parents, axis=1, out=grown[:-1], mode="clip")
        grown[-1] = found
        self.matches = grown
        self.labels = self.labels[parents]
        self.names.append(name)

    def check(self) -> None:
        """Test the negations of which all that they depend on is bound."""
        bound = {*self.names}
        for check in [each for each in self.unchecked if each.is_exact_at(bound)]:
            self.unchecked.remove(check)
            self.keep(~self.extensible(check.name))

    def extensible(self, name: str) -> np.ndarray:
        """Which matches have an event that fits one more variable, as bools."""
        found: np.ndarray = extensible(self.matches, self._probe(name))
        return found

    def completed(self) -> np.ndarray:
        """The matches, in the query's order of variables."""
        order = [self.names.index(name) for name in self.query.names]
        return self.matches if order == sorted(order) else np.ascontiguousarray(self.matches[order])

    def _candidates(self, name: str) -> np.ndarray:
        query = self.query
        found = self.events.fitting(query.variables[name], query.filters(name))
        if self.since and name == query.last:
            found = found[np.searchsorted(found, self.since) :]
        return found

    def _probe(self, name: str, gap: tuple[str, np.ndarray] | None = None) -> Probe:
        before, names = self.query.before, self.names
        candidates = self._candidates(name)

        def rows(chosen: Iterable[str]) -> np.ndarray:
            return np.array([names.index(each) for each in chosen], np.int64)

        after, behind = self.query.neighbours(name, names)
        clauses = [
            clause
            for clause in self.query.conditions
            if name in clause.variables
            and len(clause.variables) > 1
            and {*clause.variables} <= {*names, name}
        ]
        compared, program, constants = _conditions(name, names, clauses, self.events)
        return Probe(
            times=self.events.times,
            candidates=candidates,
            candidate_times=read_only(self.events.times[candidates]),
            after=rows(after),
            before=rows(behind),
            first=rows(x for x in names if not any((z, x) in before for z in names)),
            last=rows(x for x in names if not any((x, z) in before for z in names)),
            window=self.query.window,
            gap=_NO_TIMES if gap is None else gap[1],
            gap_end=-1 if gap is None else names.index(gap[0]),
            distinct=rows(x for x in names if {(x, name), (name, x)}.isdisjoint(before)),
            compared=compared,
            program=program,
            constants=constants,
            values=self.events.values,
        )


def _conditions(
    name: str, names: Sequence[str], clauses: Iterable[Clause], events: Events
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rules and constants of conditions between a new event and the bound ones."""
    writer = ProgramWriter(events.reader.code)

    def load(expression: Expression) -> Rule | None:
        mentioned = variables_of(expression)
        if len(mentioned) != 1:
            return None
        (its,) = mentioned
        if its == name:
            return instructions.LOAD_RIGHT, events.value(expression), 0, 0
        return instructions.LOAD_LEFT, events.value(expression), names.index(its), 0

    compared: list[Rule] = []
    program: list[Rule] = []
    for clause in clauses:
        sides = separated_sides(clause)
        if sides is None:
            program += writer.instructions(clause, load)
            continue
        first, operator, second = sides
        if first[0] == name:
            first, operator, second = second, FLIPPED[operator], first
        left, right = events.value(first[1]), events.value(second[1])
        compared.append((names.index(first[0]), left, COMPARISONS[operator], right))
    return (
        np.array(compared, np.int64).reshape(-1, RULE_COLUMNS),
        np.array(program, np.int64).reshape(-1, RULE_COLUMNS),
        np.array(writer.constants, np.float64),
    )
