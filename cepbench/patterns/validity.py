"""Whether the parts of a pattern fit together: names, negation, Kleene closure, branches.

Errors carry the variable or clause at fault as ``culprit``; the parser turns that into a place in
the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cepbench.errors import PatternError, PatternOperatorError, UnsupportedPatternError
from cepbench.patterns.expressions import AGGREGATES, ELEMENTS, Aggregate, Attribute, Clause
from cepbench.patterns.structure import Kind, Structure, Variable


def check_structures(branches: Sequence[Structure]) -> list[set[str]]:
    """Refuse branches that cannot be matched for their variables; the names of each branch.

    Raises
    ------
    PatternError
        If a name stands for two items of a branch, or for different items in two branches, or if
        there is no variable at all.
    PatternOperatorError
        If a branch has negated variables only.
    """
    known: dict[str, Variable] = {}
    scopes = []
    for branch in branches:
        names: set[str] = set()
        variables = list(branch.variables())
        if not variables:
            raise PatternError("a pattern needs at least one variable")
        for variable in variables:
            if variable.name in names:
                raise PatternError(
                    f"variable {variable.name!r} stands for two items; rename one of them",
                    culprit=variable,
                )
            names.add(variable.name)
            if known.setdefault(variable.name, variable) != variable:
                raise PatternError(
                    f"variable {variable.name!r} stands for {known[variable.name]} in one branch "
                    f"of OR and for {variable} in another; rename one of them",
                    culprit=variable,
                )
        if all(variable.kind is Kind.NEGATED for variable in variables):
            raise PatternOperatorError(
                f"{branch} only says what must not be there, so that nothing is left for a match "
                "to bind; add an item without NOT beside it, as in SEQ(A a, NOT(B b))",
                culprit=variables[0],
            )
        scopes.append(names)
    return scopes


def check_clause(
    clause: Clause, variables: Mapping[str, Variable], scopes: Sequence[set[str]]
) -> None:
    """Refuse a condition that can never be checked, or that nobody can give a meaning.

    Parameters
    ----------
    clause : Clause
    variables : mapping of str to Variable
        All variables of the pattern, by name.
    scopes : sequence of set of str
        Names of the variables of each branch.

    Raises
    ------
    PatternError
        For an unknown variable, or none at all; for variables that no branch has together.
    PatternOperatorError
        For elements and aggregates of a variable that is not a Kleene one, an index that would
        run over two sets, and two negated variables.
    UnsupportedPatternError
        For more than two variables.
    """
    names = clause.variables
    for name in names:
        if name not in variables:
            raise PatternError(f"unknown variable {name!r} in condition {clause}", culprit=clause)
    if not names:
        raise PatternError(f"condition {clause} mentions no variable; leave it out", culprit=clause)
    if len(names) > 2:
        advice = (
            "compute part of it beforehand as an attribute of one event"
            if len(clause.comparisons) == 1
            else "write one pattern for each alternative"
        )
        raise UnsupportedPatternError(
            f"the conjunct {clause} ties the variables {', '.join(names[:-1])} and {names[-1]} "
            f"together, and a conjunct may tie at most two; {advice}",
            culprit=clause,
        )
    for term in clause.terms():
        _check_term(term, clause, variables)
    kleene = [name for name in names if variables[name].kind is Kind.KLEENE]
    if clause.is_running and len(kleene) > 1:
        raise PatternOperatorError(
            f"in condition {clause} the index i would run over the events of two Kleene "
            f"variables, {kleene[0]} and {kleene[1]}; a condition with [i-1] or [..i-1] may mention "
            "no second Kleene variable",
            culprit=clause,
        )
    if all(variables[name].kind is Kind.NEGATED for name in names) and len(names) > 1:
        raise PatternOperatorError(
            f"condition {clause} ties the negated variables {names[0]} and {names[1]} together, "
            "but each of them is looked for by itself; tie both to an item without NOT",
            culprit=clause,
        )
    if not any(scope.issuperset(names) for scope in scopes):
        raise PatternError(
            f"condition {clause} can never be checked: {names[0]} and {names[-1]} are in different "
            "branches of OR; write a condition for each branch",
            culprit=clause,
        )


def _check_term(
    term: Attribute | Aggregate, clause: Clause, variables: Mapping[str, Variable]
) -> None:
    attribute = term.attribute if isinstance(term, Aggregate) else term
    if isinstance(term, Aggregate):
        if term.function not in AGGREGATES:
            raise PatternError(
                f"unknown function {term.function!r}; use one of {', '.join(AGGREGATES)}",
                culprit=clause,
            )
        if attribute.element != "each":
            raise PatternOperatorError(
                f"{term.function}({attribute}) is over one event; write {attribute} itself",
                culprit=clause,
            )
    if attribute.element not in ELEMENTS:
        raise PatternError(
            f"unknown element {attribute.element!r}; use one of {', '.join(ELEMENTS)}",
            culprit=clause,
        )
    variable = variables[attribute.variable]
    if variable.kind is not Kind.KLEENE and (
        isinstance(term, Aggregate) or attribute.element != "each"
    ):
        plain = Attribute(attribute.variable, attribute.name)
        raise PatternOperatorError(
            f"{term} asks for a set of events, but {variable.name} stands for a single one; write "
            f"{plain}, or make it a Kleene variable: KL({variable.type} {variable.name})",
            culprit=clause,
        )
