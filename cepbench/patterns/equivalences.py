"""The equivalence test ``[attr]`` [agrawal2008]_, section 2, as comparisons of two variables, and back.

Equality is transitive, missing values included, as a comparison with one is false. So a chain of
equalities implies one between any two of its values, and of the equalities between two sides of a
join one is enough.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TypeVar

from cepbench.patterns.expressions import Attribute, Clause, Comparison, Expression, attributes_of
from cepbench.patterns.structure import Kind, Structure, Variable

#: An expression over the event of one variable.
Derived = tuple[str, Expression]


def comparisons_of(
    attributes: Iterable[str], branches: Iterable[Structure]
) -> Iterator[Comparison]:
    """The comparisons that make each attribute equal all over every branch, without duplicates."""
    tied = equalities(branches)
    for name in dict.fromkeys(attributes):
        for first, second, element in tied:
            yield Comparison("=", Attribute(first, name), Attribute(second, name, element))


def equalities(branches: Iterable[Structure]) -> tuple[tuple[str, str, str], ...]:
    """The pairs of variables whose equality makes an attribute equal all over every branch.

    Each is a variable, another one, and which of the latter's events are compared. The plain
    variables of a branch form a chain, in order of appearance. Kleene and negated ones are compared
    with the nearest plain one before them, because plans join plain ones early and those late;
    without a plain one, Kleene variables form the chain, and a single one is compared with itself,
    event by event.
    """
    tied = (_in_branch(list(branch.variables())) for branch in branches)
    return tuple(dict.fromkeys(itertools.chain.from_iterable(tied)))


def _in_branch(variables: Sequence[Variable]) -> Iterator[tuple[str, str, str]]:
    plain = [v.name for v in variables if v.kind is Kind.PLAIN]
    kleene = [v.name for v in variables if v.kind is Kind.KLEENE]
    chain = plain or kleene
    for first, second in itertools.pairwise(chain):
        yield first, second, "each"
    if len(kleene) == 1 and not plain:
        yield kleene[0], kleene[0], "previous"
    nearest_before, chained = chain[0], set(chain)
    for variable in variables:
        if variable.name in chained:
            nearest_before = variable.name
        else:
            yield nearest_before, variable.name, "each"


def equated(clause: Clause) -> set[Attribute]:
    """The two attributes that a condition equates; none for another condition."""
    first, *others = clause.comparisons
    sides = {its for its in (first.left, first.right) if isinstance(its, Attribute)}
    return sides if first.operator == "=" and not others and len(sides) == 2 else set()


def equal_attributes(clauses: Iterable[Clause], names: Collection[str]) -> list[list[Attribute]]:
    """The attributes of some variables that conditions, which all hold, together make equal.

    Equality through other variables is left out.
    """
    within = (clause for clause in clauses if {*clause.variables} <= {*names})
    return closed(sorted(sides, key=str) for clause in within if (sides := equated(clause)))


_V = TypeVar("_V", bound=Hashable)


def closed(equal: Iterable[Sequence[_V]]) -> list[list[_V]]:
    """The classes of values that are equal, or linked otherwise, closed transitively."""
    found: list[list[_V]] = []
    for values in equal:
        joined = [its for its in found if not set(its).isdisjoint(values)]
        found = [its for its in found if its not in joined]
        found.append([*dict.fromkeys([*itertools.chain(*joined), *values])])
    return found


def variables_of(expression: Expression) -> set[str]:
    """Names of the variables that an expression reads."""
    return {attribute.variable for attribute in attributes_of(expression)}


def separated_sides(clause: Clause) -> tuple[Derived, str, Derived] | None:
    """The clause as ``value of one variable, operator, value of another``, if it is one.

    Such a clause is a comparison of two columns, the fastest test.
    """
    if len(clause.comparisons) > 1:
        return None
    comparison = clause.comparisons[0]
    left, right = variables_of(comparison.left), variables_of(comparison.right)
    if len(left) == len(right) == 1 and left != right:
        return ((left.pop(), comparison.left), comparison.operator, (right.pop(), comparison.right))
    return None


def equal_values(clauses: Iterable[Clause]) -> list[list[Derived]]:
    """Values of single variables that the clauses make equal, closed transitively.

    Each class has all values that are equal to each other, at least two, in order of appearance.
    Clauses other than an equality of values of two variables are ignored.
    """
    return closed(
        (sides[0], sides[2])
        for sides in map(separated_sides, clauses)
        if sides is not None and sides[1] == "="
    )


class Equalities:
    """The equalities of values of two variables that conditions, which all hold, imply.

    The variables are plain and Kleene ones of one branch; equality through others, which need not
    have an event, is left out. That of a Kleene variable is equality of each of its events.
    """

    def __init__(self, clauses: Iterable[Clause], names: Collection[str]) -> None:
        self._written: dict[Clause, tuple[Derived, Derived]] = {}
        for clause in clauses:
            if any(its.operator != "=" for its in clause.comparisons[:1]):
                continue  # before what takes longer
            sides = separated_sides(clause)
            if sides is not None and clause.is_elementwise and {*clause.variables} <= {*names}:
                self._written[clause] = sides[0], sides[2]

    @cached_property
    def classes(self) -> list[list[Derived]]:
        """Values that are equal in every match, see :func:`equal_values`."""
        return equal_values(self._written)

    def __len__(self) -> int:
        """How many are written."""
        return len(self._written)

    @property
    def tied(self) -> list[tuple[frozenset[str], frozenset[frozenset[str]]]]:
        """The variables of each class, and the pairs of them between which equalities are written.

        Classes that are written between the same pairs, as those of ``[x, y]`` are, are one.
        """
        pairs = [
            frozenset(
                frozenset((one[0], other[0]))
                for one, other in self._written.values()
                if one in values and other in values
            )
            for values in map(set, self.classes)
        ]
        return [(frozenset().union(*its), its) for its in dict.fromkeys(pairs)]

    def __contains__(self, clause: Clause) -> bool:
        """Whether a condition is one of these equalities, as written."""
        return clause in self._written

    def between(
        self, left: Collection[str], right: Collection[str], avoided: Collection[str] = ()
    ) -> list[Clause]:
        """The equalities to test where two sets of variables are joined, as few as possible.

        With those of the joins below, they imply all equalities among the variables joined: one of
        each class, unless a side has several values of a single variable.

        Values of the variables ``avoided`` are used only if a side has no other.
        """
        found = []
        for equal in self.classes:
            mine = [value for value in equal if value[0] in left]
            its = [value for value in equal if value[0] in right]
            if not mine or not its:
                continue
            first, ends = self._chosen(mine, its, avoided)
            found.append(first)
            for side, other in ((mine, its), (its, mine)):
                if len({name for name, _ in side}) > 1:
                    continue  # equal by a join below
                hub = [value for value in other if value in ends]
                found += [
                    self._chosen([value], hub, avoided)[0] for value in side if value not in ends
                ]
        return found

    def _chosen(
        self, mine: Sequence[Derived], its: Sequence[Derived], avoided: Collection[str]
    ) -> tuple[Clause, tuple[Derived, Derived]]:
        """An equality of a value of each side, and the two; one that is written if possible."""

        def is_avoided(value: Derived) -> bool:
            return value[0] in avoided

        one, other = min(mine, key=is_avoided), min(its, key=is_avoided)
        implied = Clause((Comparison("=", one[1], other[1]),)), (one, other)
        left, right = {*mine}, {*its}
        written = (
            (clause, ends)
            for clause, ends in self._written.items()
            if (ends[0] in left and ends[1] in right) or (ends[0] in right and ends[1] in left)
        )
        return min((*written, implied), key=lambda found: sum(map(is_avoided, found[1])))
