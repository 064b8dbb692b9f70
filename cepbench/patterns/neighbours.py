"""Two or three plain items whose neighbours are compared: ranks of values tell how many matches there are.

Of a SEQ neighbours follow each other. The items of an AND may be put in any order, so that those that are
compared are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise, permutations
from typing import NamedTuple

from cepbench.patterns.expressions import MIRRORED, of_any_variable, terms_of, with_terms
from cepbench.patterns.model import (
    Clause,
    Expression,
    Kind,
    Operator,
    Pattern,
    Structure,
    Variable,
)
from cepbench.patterns.negations import Check


class Sides(NamedTuple):
    """One comparison of neighbours."""

    place: int  #: of the earlier one
    operator: str  #: with the later one on its left
    #: The values of either, as attributes of the variable ``""``.
    earlier: Expression
    later: Expression


@dataclass(frozen=True)
class Neighbours:
    """What is compared in a SEQ, or in an AND in one of its orders."""

    pattern: Pattern  #: a SEQ
    compared: tuple[Sides | None, Sides | None]  #: the first two items, and the last two of three
    #: A NOT before the last item, and how its event is compared with that of the item before it.
    closing: tuple[str, Sides] | None


@lru_cache(maxsize=256)
def neighbours_of(branch: Pattern) -> Neighbours | None:
    """What is compared in a pattern without OR; None if ranks do not tell its matches.

    Each two neighbours have one comparison at most, of a value of either; the middle one of three events has one
    value in both. A NOT between two of them has conditions on its own event, or before the last one
    a single comparison with the item before it.
    """
    orders = in_orders(branch) if branch.operator is Operator.AND else [branch]
    return next((its for order in orders if (its := _in_order(order)) is not None), None)


def in_orders(pattern: Pattern) -> Iterator[Pattern]:
    """An AND of two or three plain items as a SEQ, in each order in which no event is of both ends of three."""
    items = [its for its in pattern.structure.items if isinstance(its, Variable)]
    if len(items) not in (2, 3) or len(items) < len(pattern.structure.items):
        return
    for order in permutations(items):
        types = {its.type for its in (order[0], order[-1])}
        if len(items) == 2 or not (len(types) == 1 or {None, *pattern.concepts} & types):
            yield replace(pattern, structure=Structure(Operator.SEQ, order))


def _in_order(pattern: Pattern) -> Neighbours | None:
    names, before = pattern.positive_names, pattern.structure.precedence()
    if (
        len(names) not in (2, 3)
        or pattern.strategy.name != "any"
        or any(v.kind not in (Kind.PLAIN, Kind.NEGATED) for v in pattern.variables)
        or any(pair not in before for pair in pairwise(names))
    ):
        return None
    checks = {v.name: Check.of(pattern, v.name) for v in pattern.negated}
    if any(not (its.earlier and its.later) for its in checks.values()):
        return None
    found: list[Sides | None] = [None, None]
    closing: tuple[str, Sides] | None = None
    for clause in pattern.conditions:
        if len(clause.variables) == 1:
            continue
        barred = [name for name in checks if name in clause.variables]
        sides = _sides(clause, (names[-2], *barred) if barred else names)
        if sides is None:
            return None
        if barred:
            is_last = len(checks[barred[0]].later) == 1
            if closing or not is_last or sides.operator in ("=", "!="):
                return None
            closing = barred[0], sides
        elif found[sides.place] is not None:
            return None
        else:
            found[sides.place] = sides
    first, second = found
    if first and second and first.later != second.earlier:
        return None
    return Neighbours(pattern, (first, second), closing)


def _sides(clause: Clause, names: tuple[str, ...]) -> Sides | None:
    """The sides of a single comparison of neighbours."""
    if len(clause.comparisons) > 1:
        return None
    (comparison,) = clause.comparisons
    reads = [
        {term.variable for term in terms_of(its)} for its in (comparison.left, comparison.right)
    ]
    if any(len(its) != 1 for its in reads) or not set.union(*reads) <= {*names}:
        return None
    (left,), (right,) = reads
    one, two = names.index(left), names.index(right)
    if abs(one - two) != 1:
        return None
    values = [with_terms(its, of_any_variable) for its in (comparison.left, comparison.right)]
    if one > two:
        return Sides(two, comparison.operator, values[1], values[0])
    return Sides(one, MIRRORED[comparison.operator], values[0], values[1])
