"""Matches of a part of a query's variables, extended until they are matches of the query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

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
from cepbench.evaluators.workload_runs.queries import Query
from cepbench.kernels import instructions
from cepbench.kernels.instructions import RULE_COLUMNS
from cepbench.kernels.match_extension import Probe, extended, extensible
from cepbench.patterns.model import Clause, Expression

_NO_TIMES = read_only(np.empty(0, np.int64))


class Growth:
    """Partial matches of a query that grow by one variable at a time.

    Parameters
    ----------
    query : Query
    events : Events
    names : sequence of str
        The variables bound; :attr:`names` has them in the order of the query.
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
        order = sorted(range(len(names)), key=lambda row: query.place[names[row]])
        self.names = [names[row] for row in order]
        self.matches = matches if order == [*range(len(names))] else matches[order]
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

    def grow(self, missing: Iterable[str], order: Sequence[str] = ()) -> None:
        """Bind more variables, and test negations as soon as they can be.

        Parameters
        ----------
        missing : iterable of str
        order : sequence of str
            In which they are bound; empty for those of fewest events first.
        """
        self.check()
        for name in order or sorted(missing, key=lambda each: len(self._candidates(each))):
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
        # Variables stay in the order of the query.
        place = sum(self.query.place[other] < self.query.place[name] for other in self.names)
        np.take(self.matches[:place], parents, axis=1, out=grown[:place], mode="clip")
        np.take(self.matches[place:], parents, axis=1, out=grown[place + 1 :], mode="clip")
        grown[place] = found
        self.matches = grown
        self.labels = self.labels[parents]
        self.names.insert(place, name)

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
            # Times between two events of a match are within its window.
            first=rows(() if behind else self.query.ends(names)[0]),
            last=rows(() if after else self.query.ends(names)[1]),
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
