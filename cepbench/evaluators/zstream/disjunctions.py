"""Branches that differ in single leaves, which one tree finds together [mei2009]_, section 4.4.4.

The leaf of ``OR(A a, B b)`` is a buffer of the events of both sides, merged in the order of time. The
joins above it are made once. Each row knows its side, so that a match knows its branch.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from itertools import pairwise, permutations

import numpy as np

from cepbench.kernels.zstream.sides import split
from cepbench.patterns.model import Aggregate, Attribute, Expression, Pattern, Variable
from cepbench.plans.model import Plan
from cepbench.plans.tree import Tree, leaves, post_order, relabel


def groups_of(
    branches: Sequence[Pattern], plans: Sequence[Plan], *, reports: bool
) -> list[list[int]]:
    """The numbers of the branches that one tree finds together, each branch once.

    The plans of such branches are the same but for the variables at some places, and so are the
    conditions and negations, but for the conditions on one of these variables alone. They have every
    choice of variables, and no event can be at a disjunction and at another place that is not
    ordered in time. Branches with groups are found by themselves. So are those that make no records in
    common, if matches are listed: telling their branches apart would take longer than it saves.

    Parameters
    ----------
    branches : sequence of Pattern
        Without OR and KL.
    plans : sequence of Plan
        One for each.
    reports : bool
        Whether matches are listed, or only counted.
    """
    alike: dict[Hashable, list[int]] = defaultdict(list)
    for number, (branch, plan) in enumerate(zip(branches, plans, strict=True)):
        alike[number if branch.groups else _shape(branch, plan)].append(number)
    found = []
    for numbers in alike.values():
        its = [branches[number] for number in numbers]
        together = _is_whole(its) and (not reports or _share_records(its, plans[numbers[0]].tree))
        found += [numbers] if together else [[number] for number in numbers]
    return found


def _share_records(branches: Sequence[Pattern], tree: Tree[str]) -> bool:
    """Whether a join two levels below the root or deeper does not have all disjunctions below it.

    Neither the root nor the join below it, see :mod:`cepbench.evaluators.zstream.operators`, makes records.
    """
    chosen = {its[0].name for its in _columns(branches) if len(its) > 1}
    return any(
        isinstance(node, tuple) and node is not half and not chosen <= {*leaves(node)}
        for half in tree
        if isinstance(half, tuple)
        for node in post_order(half)
    )


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
        frozenset((place[x], place[y]) for x, y in branch.structure.precedence()),
        frozenset(
            clause.with_terms(renamed)
            for clause in branch.conditions
            if not any({*clause.variables} == {name} for name in branch.positive_names)
        ),
    )


def _columns(branches: Sequence[Pattern]) -> list[tuple[Variable, ...]]:
    """The variables at each place of branches of one shape, each once; negated ones last."""
    leaves = ((*branch.positive, *branch.negated) for branch in branches)
    return [tuple(dict.fromkeys(column)) for column in zip(*leaves, strict=True)]


def _is_whole(branches: Sequence[Pattern]) -> bool:
    """Whether branches of one shape are all choices, which can be told apart."""
    columns = _columns(branches)
    if math.prod(map(len, columns)) != len(branches):
        return False
    before = branches[0].structure.precedence()
    return not any(
        x.overlaps(y)
        for one, other in permutations(columns, 2)
        if len(one) > 1
        and (one[0].name, other[0].name) not in before
        and (other[0].name, one[0].name) not in before
        for x in one
        for y in other
    )


class Sides:
    """The disjunctions of branches that are found together.

    The last bits of a position in the buffer of a place with several sides are the number of the side.

    Parameters
    ----------
    branches : sequence of Pattern
        Those of one group.

    Attributes
    ----------
    choices : dict of int to tuple of Variable
        The variables of each place that has several, in the order of appearance.
    shifts : ndarray of int64, shape (places,)
        How many bits of a position at each place are the number of the side.
    filters : dict of str to tuple of Clause
        The conditions on each positive variable alone.
    """

    def __init__(self, branches: Sequence[Pattern]) -> None:
        columns = _columns(branches)[: len(branches[0].positive)]
        self.choices = {place: its for place, its in enumerate(columns) if len(its) > 1}
        self.shifts = np.array([(len(its) - 1).bit_length() for its in columns], np.int64)
        self.filters = {
            v.name: tuple(c for c in branch.conditions if {*c.variables} == {v.name})
            for branch in branches
            for v in branch.positive
        }
        self._branches = len(branches)
        #: The number of the branch for the sides of all places, one behind the other.
        self._branch_of = np.zeros(1 << int(self.shifts.sum()), np.int64)
        for number, branch in enumerate(branches):
            sides = 0
            for its, variable, bits in zip(columns, branch.positive, self.shifts, strict=True):
                sides = sides << int(bits) | its.index(variable)
            self._branch_of[sides] = number

    @property
    def most(self) -> int:
        """How many rows an event may be in a buffer."""
        return max(map(len, self.choices.values()), default=1)

    def label(self, name: str) -> str:
        """The variables at the place of one of the first branch."""
        found = (its for its in self.choices.values() if its[0].name == name)
        return " | ".join(variable.name for variable in next(found, ())) or name

    def split(self, found: np.ndarray) -> list[np.ndarray]:
        """The positions of each branch's matches, shape (places, some).

        Parameters
        ----------
        found : ndarray of int64, shape (places, matches)
            Positions, with sides.
        """
        ends = np.zeros(self._branches + 1, np.int64)
        positions = np.empty_like(found)
        targets = np.empty(found.shape[1], np.int64)
        split(found, self.shifts, self._branch_of, targets, ends, ends[1:].copy(), positions)
        return [positions[:, begin:end] for begin, end in pairwise(ends.tolist())]
