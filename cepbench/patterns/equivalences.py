"""The equivalence test ``[attr]`` [agrawal2008]_, section 2, as comparisons of two variables, and back."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence

from cepbench.patterns.expressions import Attribute, Clause, Comparison
from cepbench.patterns.structure import Kind, Structure, Variable


def comparisons_of(
    attributes: Iterable[str], branches: Iterable[Structure]
) -> Iterator[Comparison]:
    """The comparisons that make each attribute equal all over every branch, without duplicates.

    Parameters
    ----------
    attributes : iterable of str
    branches : iterable of Structure
        Without OR.
    """
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
    """The attributes of some variables that conditions together make equal.

    Parameters
    ----------
    clauses : iterable of Clause
        All of them hold.
    names : collection of str
        The variables; equality through others is left out.
    """
    found: list[list[Attribute]] = []
    for clause in clauses:
        sides = equated(clause)
        if sides and {*clause.variables} <= {*names}:
            joined = [its for its in found if sides & {*its}]
            terms = [*(term for its in joined for term in its), *sorted(sides, key=str)]
            found = [its for its in found if its not in joined]
            found.append([*dict.fromkeys(terms)])
    return found
