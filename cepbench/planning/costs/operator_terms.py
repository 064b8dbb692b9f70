"""The numbers of a branch that costs of operators read, beyond those of a planning problem.

A planning problem has one selectivity for each pair of variables, in which the order in time is
included. An operator reads its input in order of time before it tests conditions, and tests
negations and forms groups besides, so that costs of operators need these apart [mei2009]_, section
5.1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cepbench.patterns.equivalences import separated_sides
from cepbench.patterns.model import Clause, Kind, Operator, Pattern, Structure, Variable
from cepbench.patterns.negations import Check
from cepbench.planning.costs.equal_values import EqualValues
from cepbench.planning.costs.logarithms import log
from cepbench.planning.statistics.model import Statistics

#: Probability that an event precedes another one, unless statistics say otherwise.
TIME_SELECTIVITY = 0.5

#: The indices of a structure's variables, under the operators ``"SEQ"`` and ``"AND"``.
Nested = int | tuple[str, tuple["Nested", ...]]


@dataclass(frozen=True, eq=False, kw_only=True)
class _Checked:
    """What a negated variable and a group have in common."""

    name: str
    #: The variables on which it depends; of a group those below its node. Bool, shape (n[ + g],).
    needed: np.ndarray
    #: Whether it follows, or precedes, all variables that are ordered relative to it.
    is_late: bool
    looks_back: bool
    #: ln of the probability that one of its events is between those of its neighbours.
    log_between: float
    #: Number of conditions on it and others; of a group those not evaluated by hashing.
    conjuncts: int

    def is_exact_at(self, sets: np.ndarray, precedes: np.ndarray) -> np.ndarray:
        """As :meth:`cepbench.patterns.negations.Check.is_exact_at`, of sets of this shape."""
        exact = _contain(sets, self.needed)
        if self.is_late:
            exact &= sets.all(axis=1)
        if self.looks_back:
            exact &= (sets | (sets @ precedes.T)).all(axis=1)
        return exact


@dataclass(frozen=True, eq=False, kw_only=True)
class Negation(_Checked):
    """A negated variable as numbers."""

    #: As in :class:`~cepbench.patterns.negations.Check`. Bool, shape (n + g,).
    mentioned: np.ndarray
    after: np.ndarray
    before: np.ndarray
    earlier: np.ndarray
    later: np.ndarray
    #: ln of the expected events per window that fit its conditions; NaN without a rate.
    log_fitting: float

    def is_tied_to(self, sets: np.ndarray) -> np.ndarray:
        """As :meth:`cepbench.patterns.negations.Check.is_tied_to`, of sets of shape (m, n + g)."""
        if not (self.after.any() and self.before.any()) or self.mentioned.sum() > 1:
            return np.zeros(len(sets), bool)
        left = _contain(sets, self.after) & ~(sets & ~self.earlier).any(axis=1)
        right = _contain(sets, self.before) & ~(sets & ~self.later).any(axis=1)
        return _contain(sets, self.mentioned) & (left | right)


@dataclass(frozen=True, eq=False, kw_only=True)
class Group(_Checked):
    """A group as numbers. Conditions between two groups are not among them."""

    #: Number of its events; None for all that fit.
    size: int | None
    #: Its start and its end. Bool, shape (n,).
    neighbours: np.ndarray
    #: Of the plain variables and of this group, with index n.
    structure: Nested
    #: ln of the events per window that pass its own filter; NaN if its rate is unknown.
    log_events: float
    #: ln of the selectivity of all conditions on it and plain variables, of those on single events,
    #: which choose its events, and of equalities evaluated by hashing.
    log_conditions: float
    log_choosing: float
    log_hashed: float

    def is_beside(self, sets: np.ndarray) -> np.ndarray:
        """Whether a set has its start and its end, shape (m,)."""
        return _contain(sets, self.neighbours)


@dataclass(frozen=True, eq=False)
class PairConditions:
    """The selectivity of conditions on pairs of variables."""

    #: ln P, symmetric, with zeros on the diagonal. Float64, shape (n, n).
    log_pairs: np.ndarray
    #: The equal values of which the pairs count equalities too often.
    equal: EqualValues | None

    @classmethod
    def of(cls, log_pairs: np.ndarray, equal: EqualValues | None) -> PairConditions:
        """Those given, and the equalities that follow from others."""
        return cls(log_pairs if equal is None else log_pairs + equal.log_implied.sum(axis=0), equal)

    def within(self, sets: np.ndarray) -> np.ndarray:
        """ln of the selectivity of all pairs within sets, shape (m,)."""
        found = ((sets @ self.log_pairs) * sets).sum(axis=1) / 2
        return np.asarray(found if self.equal is None else found - self.equal.log_repeated(sets))

    def between(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The same of pairs of a variable of one set and one of a disjoint other."""
        found = ((left @ self.log_pairs) * right).sum(axis=1)
        if self.equal is not None:
            found = found - self.equal.log_repeated_between(left, right)
        return np.asarray(found)


@dataclass(frozen=True, eq=False)
class OperatorTerms:
    """Order in time, conditions, negations and groups of a branch as numbers.

    Plain and Kleene variables are 0 … n−1, groups n … n+g−1.
    """

    structure: Nested
    #: Whether the first variable is before the second one in every match. Bool, square.
    precedes: np.ndarray
    #: ln Pt of pairs in written order; 0 if they are not ordered. Float64, shape (n, n).
    log_time: np.ndarray
    conditions: PairConditions
    #: Of the conditions the equalities evaluated by hashing. If a pair has other conditions too,
    #: each has the same share of their common selectivity.
    hashed: PairConditions
    #: The variables of each condition over several variables that is not evaluated by hashing.
    #: Bool, shape (m, n).
    conjuncts: np.ndarray
    negations: tuple[Negation, ...]
    groups: tuple[Group, ...]

    @classmethod
    def of(cls, pattern: Pattern, statistics: Statistics) -> OperatorTerms:
        """The terms of a pattern without OR."""
        names = pattern.planned_names
        n = len(names)
        index = {name: number for number, name in enumerate(names)}
        everything = index | {group.name: n + k for k, group in enumerate(pattern.groups)}
        precedes = np.zeros((len(everything), len(everything)), bool)
        log_time = np.zeros((n, n))
        for x, y in pattern.structure.precedence():
            if x in everything and y in everything:
                precedes[everything[x], everything[y]] = True
            if x in index and y in index:
                log_time[index[x], index[y]] = log(statistics.time_selectivity(x, y))
        log_predicates = np.array(
            [[0.0 if x == y else log(statistics.selectivity(x, y)) for y in names] for x in names]
        )
        several = [clause for clause in pattern.conditions if len(set(clause.variables)) > 1]
        plain = [clause for clause in several if index.keys() >= set(clause.variables)]
        kleene = {v.name for v in pattern.positive if v.kind is Kind.KLEENE}
        hashed = [clause for clause in several if _is_hashed(clause, kleene)]
        log_hashed = np.zeros((n, n))
        for x, y in itertools.combinations(names, 2):
            share = _share(plain, hashed, {x, y})
            i, j = index[x], index[y]
            log_hashed[i, j] = log_hashed[j, i] = log_predicates[i, j] * share
        tested = [clause for clause in plain if clause not in hashed]
        conjuncts = np.zeros((len(tested), n), bool)
        for row, clause in enumerate(tested):
            conjuncts[row, [index[name] for name in set(clause.variables)]] = True
        return cls(
            _nested(pattern.structure, index),
            precedes,
            log_time,
            PairConditions.of(log_predicates, EqualValues.of(plain, statistics, names)),
            PairConditions.of(log_hashed, EqualValues.of(hashed, statistics, names)),
            conjuncts,
            tuple(_negation(pattern, statistics, v.name, everything) for v in pattern.negated),
            tuple(_group(pattern, statistics, v, index, several, hashed) for v in pattern.groups),
        )

    def placed(self, placements: Mapping[str, Sequence[int]]) -> OperatorTerms:
        """The same with groups formed only at or above the nodes where a plan places them."""
        groups = []
        for group in self.groups:
            needed = group.needed.copy()
            needed[list(placements.get(group.name, ()))] = True
            groups.append(replace(group, needed=needed))
        return replace(self, groups=tuple(groups))

    def formed(self, sets: np.ndarray) -> np.ndarray:
        """Whether each group is formed at or below the node of a set, shape (m, g)."""
        n = sets.shape[1]
        found = np.zeros((len(sets), len(self.groups)), bool)
        for number, group in enumerate(self.groups):
            found[:, number] = group.is_exact_at(sets, self.precedes[:n, :n])
        return found

    def with_groups(self, sets: np.ndarray) -> np.ndarray:
        """Sets with the groups that are formed, shape (m, n + g)."""
        return np.hstack([sets, self.formed(sets)]) if self.groups else sets

    def are_ordered(self, left: Sequence[int], right: Sequence[int]) -> bool:
        """Whether a variable of one side precedes one of the other: a join is a SEQ, not an AND."""
        return bool((self.precedes | self.precedes.T)[np.ix_(left, right)].any())

    def log_in_order(self, sets: np.ndarray) -> np.ndarray:
        """ln Pt of sets: of neighbours in written order that are ordered in time, shape (m,).

        A set of k variables of a SEQ has k − 1 of them, however it is split into joins.
        """
        places = np.where(sets, np.arange(sets.shape[1]), -1)
        before = np.full_like(places, -1)
        np.maximum.accumulate(places[:, :-1], axis=1, out=before[:, 1:])
        is_second = sets & (before >= 0)
        return np.where(is_second, self.log_time[before, places], 0.0).sum(axis=1)

    def log_permutations(self, sets: np.ndarray, structure: Nested | None = None) -> np.ndarray:
        """ln of the share of all orders of independent events that a structure allows, shape (m,).

        1/k! of k variables of a SEQ. By default the structure is that of all variables but groups.
        """
        log_factorial = np.array([math.lgamma(k + 1) for k in range(sets.shape[1] + 1)])

        def visit(part: Nested) -> tuple[np.ndarray, np.ndarray]:
            """The number of the set's variables in a part, and the logarithm of its share."""
            if isinstance(part, int):
                return sets[:, part].astype(np.int64), np.zeros(len(sets))
            sizes, shares = zip(*map(visit, part[1]), strict=True)
            size, share = np.sum(sizes, axis=0), np.sum(shares, axis=0)
            if part[0] == "SEQ":
                share += log_factorial[np.array(sizes)].sum(axis=0) - log_factorial[size]
            return size, share

        return visit(self.structure if structure is None else structure)[1]

    def tests(self, sets: np.ndarray) -> np.ndarray:
        """The number of conjuncts within sets, shape (m,)."""
        held = sets.astype(np.float64) @ self.conjuncts.T
        return np.asarray((held == self._sizes).sum(axis=1))

    @cached_property
    def _sizes(self) -> np.ndarray:
        return np.asarray(self.conjuncts.sum(axis=1))


def _contain(sets: np.ndarray, part: np.ndarray) -> np.ndarray:
    return np.asarray((sets | ~part).all(axis=1))


def _nested(part: Structure | Variable, index: dict[str, int]) -> Nested:
    if isinstance(part, Variable):
        return index[part.name]
    items = (item for item in part.items if any(v.name in index for v in item.variables()))
    return str(Operator(part.operator)), tuple(_nested(item, index) for item in items)


def _is_hashed(clause: Clause, kleene: set[str]) -> bool:
    """Whether a condition equates values of two events, so that hashing finds them."""
    if kleene.intersection(clause.variables) or not clause.is_elementwise:
        return False
    sides = separated_sides(clause)
    return sides is not None and sides[1] == "="


def _share(clauses: Sequence[Clause], chosen: Sequence[Clause], pair: set[str]) -> float:
    """The share of the conditions on a pair of variables that are among the chosen ones."""
    its = [clause in chosen for clause in clauses if set(clause.variables) == pair]
    return sum(its) / len(its) if its else 0.0


def _members(names: Iterable[str], index: Mapping[str, int]) -> np.ndarray:
    found = np.zeros(len(index), bool)
    found[[index[name] for name in names]] = True
    return found


def _checked(
    check: Check,
    pattern: Pattern,
    statistics: Statistics,
    index: Mapping[str, int],
    *,
    missing: float,
) -> dict[str, Any]:
    """The fields of :class:`_Checked` but the conjuncts; Pt is ``missing`` at an end of the pattern."""
    sides = (
        max(check.after, key=pattern.names.index, default=None),
        min(check.before, key=pattern.names.index, default=None),
    )
    return {
        "name": check.name,
        "needed": _members(check.mentioned.union(check.after, check.before, check.distinct), index),
        "is_late": check.is_late,
        "looks_back": check.within[0],
        "log_between": math.fsum(
            log(missing if side is None else statistics.time_selectivity(check.name, side))
            for side in sides
        ),
    }


def _negation(
    pattern: Pattern, statistics: Statistics, name: str, index: Mapping[str, int]
) -> Negation:
    check = Check.of(pattern, name)
    fitting = math.nan
    if name in statistics.names:
        events = statistics.cardinality(name, pattern.window.seconds)
        fitting = log(events) + math.fsum(
            log(statistics.selectivity(name, other)) for other in (name, *sorted(check.mentioned))
        )
    return Negation(
        # A neighbour that is missing counts like any other.
        **_checked(check, pattern, statistics, index, missing=TIME_SELECTIVITY),
        mentioned=_members(check.mentioned, index),
        after=_members(check.after, index),
        before=_members(check.before, index),
        earlier=_members(check.earlier, index),
        later=_members(check.later, index),
        log_fitting=fitting,
        conjuncts=len(check.clauses),
    )


def _group(
    pattern: Pattern,
    statistics: Statistics,
    variable: Variable,
    index: Mapping[str, int],
    several: Sequence[Clause],
    hashed: Sequence[Clause],
) -> Group:
    name = variable.name
    check = Check.of(pattern, name)
    events = math.nan
    if name in statistics.names:
        cardinality = statistics.cardinality(name, pattern.window.seconds)
        events = log(cardinality) + log(statistics.selectivity(name, name))
    choosing = [clause for clause in several if clause.is_elementwise]

    def log_part(chosen: Sequence[Clause]) -> float:
        return math.fsum(
            log(statistics.selectivity(name, x)) * _share(several, chosen, {name, x}) for x in index
        )

    return Group(
        **_checked(check, pattern, statistics, index, missing=1.0),
        size=variable.size if isinstance(variable.size, int) else None,
        neighbours=_members((*check.after, *check.before), index),
        structure=_nested(pattern.structure, {**index, name: len(index)}),
        log_events=events,
        log_conditions=math.fsum(log(statistics.selectivity(name, x)) for x in index),
        log_choosing=log_part(choosing),
        log_hashed=log_part(hashed),
        conjuncts=sum(clause not in hashed for clause in check.clauses),
    )
