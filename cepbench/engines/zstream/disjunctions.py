"""Branches that differ in single leaves, which one tree counts together [mei2009]_, section 4.4.4.

The leaf of ``OR(A a, B b)`` is a buffer of the events of both sides, merged in the order of time. The
joins above it are made once.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import permutations

from cepbench.engines.plan_runs.compiled import CompiledBranch
from cepbench.patterns.model import Aggregate, Attribute, Expression, Pattern, Variable
from cepbench.planning.plans.model import Plan
from cepbench.planning.plans.tree import relabel


def groups_of(branches: Sequence[Pattern], plans: Sequence[Plan]) -> list[list[int]]:
    """The numbers of the branches that one tree counts together, each branch once.

    The plans of such branches are the same but for the variables at some places, and so are the
    conditions and negations, but for the conditions on one of these variables alone. They have
    every choice of variables, and no event can be at a disjunction and at another place that is not
    ordered in time. Branches with groups are counted by themselves, and so are those over the same
    variables, whose matches are compared.
    """
    if len(branches) == 1:
        return [[0]]
    bound = [frozenset(branch.positive_names) for branch in branches]
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for number, (branch, plan) in enumerate(zip(branches, plans, strict=True)):
        is_alone = branch.groups or bound.count(bound[number]) > 1
        alike[number if is_alone else _shape(branch, plan)].append(number)
    found = []
    for numbers in alike.values():
        whole = _is_whole([branches[number] for number in numbers])
        found += [numbers] if whole else [[number] for number in numbers]
    return found


def _shape(branch: Pattern, plan: Plan) -> Hashable:
    """What a branch and its plan are, whatever the positive variables."""
    names = (*branch.positive_names, *(variable.name for variable in branch.negated))
    place = {name: str(number) for number, name in enumerate(names)}

    def renamed(term: Attribute | Aggregate) -> Expression:
        assert isinstance(term, Attribute)  # of no set
        return replace(term, variable=place[term.variable])

    return (
        relabel(plan.tree, place.__getitem__),
        frozenset((place[x], *map(place.__getitem__, below)) for x, below in plan.placements),
        tuple(variable.type for variable in branch.negated),
        frozenset((place[x], place[y]) for x, y in CompiledBranch.of(branch).before),
        frozenset(
            clause.with_terms(renamed)
            for clause in branch.conditions
            if not any({*clause.variables} == {name} for name in branch.positive_names)
        ),
    )


def _columns(branches: Sequence[Pattern]) -> list[tuple[Variable, ...]]:
    """The variables at each place of branches of one shape, each once; negated ones last."""
    leaves = (CompiledBranch.of(branch).leaves for branch in branches)
    return [tuple(dict.fromkeys(column)) for column in zip(*leaves, strict=True)]


def _is_whole(branches: Sequence[Pattern]) -> bool:
    """Whether branches of one shape are all choices, which can be told apart."""
    columns = _columns(branches)
    if math.prod(map(len, columns)) != len(branches):
        return False
    before = CompiledBranch.of(branches[0]).before
    return not any(
        branches[0].overlap(x, y)
        for one, other in permutations(columns, 2)
        if len(one) > 1
        and (one[0].name, other[0].name) not in before
        and (other[0].name, one[0].name) not in before
        for x in one
        for y in other
    )


class Sides:
    """The disjunctions of branches that are counted together."""

    def __init__(self, branches: Sequence[Pattern]) -> None:
        columns = enumerate(_columns(branches)) if len(branches) > 1 else ()
        #: The variables of each place that has several, in the order of appearance.
        self.choices = {place: its for place, its in columns if len(its) > 1}
        names = {variable.name for its in self.choices.values() for variable in its}
        #: The conditions on each of these variables alone.
        self.filters = {
            name: CompiledBranch.of(branch).filters[name]
            for branch in branches
            for name in names.intersection(branch.positive_names)
        }

    @property
    def most(self) -> int:
        """How many rows an event may be in a buffer."""
        return max(map(len, self.choices.values()), default=1)

    def label(self, name: str) -> str:
        """The variables at the place of one of the first branch."""
        found = (its for its in self.choices.values() if its[0].name == name)
        return " | ".join(variable.name for variable in next(found, ())) or name
