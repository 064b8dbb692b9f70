"""Negated variables and groups: what a match must have for the check of one to be exact.

A plan may check a negated variable at any node that has the events on which the check depends. It
is then a filter of the node's rows, ZStream's NEG; or it is tied to one neighbour, at a node on one
side of the gap, ZStream's NSEQ [mei2009]_, section 4.4.2. A group can be formed at such nodes too,
ZStream's KSEQ [mei2009]_, section 4.4.5; unless the plan places it, it is at the lowest one, where its
start and end meet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from cepbench.arguments import shown
from cepbench.errors import PlanError, did_you_mean
from cepbench.patterns.model import Clause, Kind, Pattern, Variable
from cepbench.patterns.structure import first_of, last_of


@dataclass(frozen=True)
class Check:
    """A test of rows against the events of a negated variable, or the formation of a group."""

    name: str
    #: Its neighbours: variables of the row that its event follows, and precedes.
    after: tuple[str, ...]
    before: tuple[str, ...]
    #: Whether the window bounds it from below and from above.
    within: tuple[bool, bool]
    #: Variables of overlapping types, whose events are excluded.
    distinct: tuple[str, ...]
    #: Conditions on it and the row.
    clauses: tuple[Clause, ...]
    #: All positive variables that precede it, and follow it; of a group only plain ones.
    earlier: frozenset[str]
    later: frozenset[str]
    #: All positive variables but itself; of a group only plain ones.
    names: frozenset[str]
    precedence: AbstractSet[tuple[str, str]]

    @classmethod
    def of(cls, pattern: Pattern, name: str) -> Check:
        """The check of a negated variable or a group of a pattern without OR."""
        variables = {variable.name: variable for variable in pattern.variables}
        if variables[name].kind is Kind.GROUP:
            others = (*pattern.groups, *pattern.negated)
            pattern = pattern.without(v for v in others if v.name != name)
        precedence = pattern.structure.precedence()
        positive = frozenset(pattern.positive_names) - {name}
        earlier = frozenset(x for x in positive if (x, name) in precedence)
        later = frozenset(y for y in positive if (name, y) in precedence)
        return cls(
            name=name,
            after=tuple(sorted(last_of(earlier, precedence))),
            before=tuple(sorted(first_of(later, precedence))),
            # Times between two events of a match are within its window.
            within=(not earlier, not later),
            distinct=tuple(
                sorted(
                    x
                    for x in positive - earlier - later
                    if pattern.overlap(variables[x], variables[name])
                )
            ),
            clauses=tuple(
                clause
                for clause in pattern.conditions
                if name in clause.variables and len(clause.variables) > 1
            ),
            earlier=earlier,
            later=later,
            names=positive,
            precedence=precedence,
        )

    @property
    def is_late(self) -> bool:
        """Whether it must wait until all events within the window have been seen."""
        return not self.later

    @cached_property
    def mentioned(self) -> frozenset[str]:
        """The other variables that its conditions mention."""
        return frozenset(x for clause in self.clauses for x in clause.variables) - {self.name}

    def is_exact_at(self, inside: AbstractSet[str]) -> bool:
        """Whether rows over these variables can be filtered by it: NEG."""
        if not self.mentioned.union(self.after, self.before, self.distinct) <= inside:
            return False
        outside = self.names - inside
        if self.is_late and outside:
            return False
        # The latest timestamp is known if all missing variables are earlier.
        return not self.within[0] or all(
            any((x, y) in self.precedence for y in inside) for x in outside
        )

    def is_tied_to(self, inside: AbstractSet[str]) -> bool:
        """Whether rows over these variables determine the event that negates them: NSEQ.

        They are on one side of its gap with all neighbours of that side, and its conditions mention
        at most one variable, which is among them.
        """
        if not (self.after and self.before) or len(self.mentioned) > 1:
            return False
        if not self.mentioned <= inside:
            return False
        return any(
            neighbours <= inside <= side
            for neighbours, side in (
                (set(self.after), self.earlier),
                (set(self.before), self.later),
            )
        )


def waits_for_negated(pattern: Pattern) -> bool:
    """Whether matches of a pattern are known only at the end of their window."""
    return any(
        Check.of(branch, variable.name).is_late
        for branch in pattern.branches()
        for variable in branch.negated
    )


@dataclass(frozen=True)
class PlacedGroup:
    """A group of a branch, and where a plan forms it."""

    pattern: Pattern
    name: str
    #: The variables that the plan puts below its node; none if it does not place it.
    placed: frozenset[str]

    @property
    def restricts(self) -> bool:
        """Whether there are matches without it: it must not be empty, or a condition tests it."""
        (size,) = (group.size for group in self.pattern.groups if group.name == self.name)
        return size != "*" or any(
            self.name in clause.variables and not clause.is_elementwise
            for clause in self.pattern.conditions
        )

    def is_formed_at(self, inside: AbstractSet[str]) -> bool:
        """Whether it is formed at or below the node over some plain variables."""
        return self.placed <= inside and Check.of(self.pattern, self.name).is_exact_at(inside)


def groups_formed(
    pattern: Pattern, inside: AbstractSet[str], placements: Mapping[str, Collection[str]]
) -> set[str]:
    """The groups of a branch that are formed at or below the node over some plain variables."""
    places = (
        PlacedGroup(pattern, group.name, frozenset(placements.get(group.name, ())))
        for group in pattern.groups
    )
    return {place.name for place in places if place.is_formed_at(inside)}


def negated_apart(pattern: Pattern) -> list[Variable]:
    """The negated variables of a branch whose check depends on no group and no end of the window."""
    groups = {group.name for group in pattern.groups}
    checks = {variable: Check.of(pattern, variable.name) for variable in pattern.negated}
    return [
        variable
        for variable, its in checks.items()
        if not any(its.within)
        and groups.isdisjoint(its.mentioned.union(its.after, its.before, its.distinct))
    ]


def check_placements(pattern: Pattern, placements: Iterable[tuple[str, Sequence[str]]]) -> None:
    """Check that a plan places only negated variables and groups of a branch, each where it can be.

    Each is placed by the plain variables below its node.

    Raises PlanError if a variable is neither, or the node does not allow NSEQ, NEG or KSEQ.
    """
    placed = dict(placements)
    groups = [variable.name for variable in pattern.groups]
    negated = [variable.name for variable in pattern.negated]
    for name, below in placed.items():
        if name not in negated + groups:
            has = [f"negates {', '.join(negated) or 'nothing'}"]
            has += [f"has the group{'s' * (len(groups) > 1)} {', '.join(groups)}"] * bool(groups)
            raise PlanError(
                f"the plan places {shown(name)}, which the pattern does not negate; it "
                f"{' and '.join(has)}{did_you_mean(name, negated + groups)}"
            )
        check = Check.of(pattern, name)
        needed = _listed(sorted(check.mentioned.union(check.after, check.before)))
        if name in groups and not check.is_exact_at({*below}):
            raise PlanError(
                f"the plan places {shown(name)}, a group, at the node over {_listed(below)}; place "
                f"it at a node over {needed}, where its start, its end and all that its events and "
                "its conditions depend on have met, such as the root"
            )
        inside = groups_formed(pattern, {*below}, placed).union(below)
        if name in negated and not (check.is_exact_at(inside) or check.is_tied_to(inside)):
            raise PlanError(
                f"the plan places {shown(name)} at the node over {_listed(below)}; place it at a "
                f"node over {needed} with all that its time depends on, such as the root, or beside "
                "its gap, with the neighbours of that side and the only variable that its conditions "
                "mention"
            )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "all variables"
