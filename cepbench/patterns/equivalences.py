"""The equivalence test ``[attr]`` [agrawal2008]_, section 2, as comparisons of two variables."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from cepbench.patterns.expressions import Attribute, Comparison
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
