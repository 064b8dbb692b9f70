"""Consistency of a pattern's parts: names, negation, Kleene closure, branches.

Errors carry the variable or clause at fault as ``culprit``, which the parser turns into a position
in the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from cepbench.arguments import MOST, choice, shown
from cepbench.errors import (
    PatternError,
    PatternNameError,
    PatternOperatorError,
    UnsupportedPatternError,
    did_you_mean,
)
from cepbench.patterns.expressions import (
    AGGREGATES,
    ELEMENTS,
    Aggregate,
    Attribute,
    Clause,
    Expression,
    Returned,
    terms_of,
)
from cepbench.patterns.structure import Kind, Operator, Structure, Variable


@contextmanager
def blaming(culprit: object) -> Iterator[None]:
    """Make this the culprit of the pattern errors raised inside."""
    try:
        yield
    except PatternError as error:
        error.culprit = culprit
        raise


def check_structures(branches: Sequence[Structure]) -> list[set[str]]:
    """Check the variables of all branches; returns the names of each.

    Raises PatternError if a name is used for two items of a branch, or for different items in two
    branches, or if there is no variable; PatternOperatorError if a branch has negated variables
    only.
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
                    f"variable {variable.name!r} is used for two items; rename one of them",
                    culprit=variable,
                )
            names.add(variable.name)
            if known.setdefault(variable.name, variable) != variable:
                raise PatternError(
                    f"variable {variable.name!r} is {known[variable.name]} in one branch of OR "
                    f"and {variable} in another; rename one of them",
                    culprit=variable,
                )
        if all(variable.kind is Kind.NEGATED for variable in variables):
            raise PatternOperatorError(
                f"{branch} has only negated items, so that a match would bind no event; add an "
                "item without NOT, as in SEQ(A a, NOT(B b))",
                culprit=variables[0],
            )
        scopes.append(names)
    return scopes


def check_groups(branches: Sequence[Structure], strategy: str) -> None:
    """Check that groups stand where they have a meaning, in branches without OR, under a strategy.

    Raises PatternOperatorError for a group of no events or without a size; groups alone, side by
    side, at both ends, directly under AND, together with KL, or under contiguity.
    """
    for branch in branches:
        variables = list(branch.variables())
        for variable in variables:
            if (variable.kind is Kind.GROUP) != (variable.size is not None):
                raise PatternError(f"only a group has a size, and {variable} is one without or no "
                                   "group; write GROUP(B b, +)", culprit=variable)  # fmt: skip
        groups = [variable for variable in variables if variable.kind is Kind.GROUP]
        if groups:
            _check_groups(branch, variables, groups, strategy)


def check_next(branches: Sequence[Structure]) -> None:
    """Check that runs of an automaton can bind the items of each branch one after the other.

    Raises PatternOperatorError for AND and groups.
    """
    for branch in branches:
        variables = list(branch.variables())
        group = next((v for v in variables if v.kind is Kind.GROUP), None)
        if group is not None or branch.has(Operator.AND):
            raise PatternOperatorError(
                f"{'AND' if group is None else group} under next, whose runs bind the items of a "
                "SEQ one by one; write SEQ and KL, or use another strategy",
                culprit=group or variables[0],
            )


def _check_groups(
    branch: Structure, variables: Sequence[Variable], groups: Sequence[Variable], strategy: str
) -> None:
    plain = [v.name for v in variables if v.kind is Kind.PLAIN]
    before = branch.precedence()
    open_at = {True: "", False: ""}  # the start, the end
    for group in groups:
        error = partial(PatternOperatorError, culprit=group)
        size = group.size
        if size not in ("+", "*") and not (type(size) is int and 1 <= size <= MOST):
            raise error(
                f"a group has the size +, * or a number from 1 to {MOST:,}, not {shown(size)}"
            )
        if any(variable.kind is Kind.KLEENE for variable in variables):
            raise error(
                f"{group} together with KL: a group is formed between single events; use GROUP for "
                "all of them, or KL"
            )
        if not plain:
            raise error(
                f"{branch} has only groups, which are formed between other events; add a plain item"
            )
        if "contiguity" in strategy:
            raise error(
                f"{group} under {strategy}: its events are those that fit, adjacent or not; use "
                "another strategy"
            )
        starts = any((name, group.name) in before for name in plain)
        ends = any((group.name, name) in before for name in plain)
        if not (starts or ends):
            raise error(
                f"{group} is directly under AND, where it neither follows nor precedes an item; put "
                "it into a SEQ"
            )
        for other in groups:
            between = any(
                (group.name, name) in before and (name, other.name) in before for name in plain
            )
            if (group.name, other.name) in before and not between:
                raise error(
                    f"{group} and {other} are side by side, so that it is not clear where one ends; "
                    "put a plain item between them"
                )
        for is_open, at_start in ((not starts, True), (not ends, False)):
            if is_open:
                open_at[at_start] = group.name
    if all(open_at.values()):
        raise PatternOperatorError(
            f"the groups {open_at[True]} and {open_at[False]} are at both ends of {branch}, where "
            "each would reach as far as the window allows; put a plain item at one end",
            culprit=next(g for g in groups if g.name == open_at[False]),
        )


def check_clause(
    clause: Clause, variables: Mapping[str, Variable], scopes: Sequence[set[str]]
) -> None:
    """Check that a condition can be evaluated in some branch and has a meaning.

    Scopes are the names of the variables of each branch.

    Raises PatternError for an unknown variable, no variable, or variables that no branch has
    together; PatternOperatorError for indices and aggregates of a variable that is not a Kleene
    one, an index over two sets, and two negated variables; UnsupportedPatternError for more than
    two variables.
    """
    names = clause.variables
    for name in names:
        if name not in variables:
            raise PatternError(f"unknown variable {name!r} in condition {clause}")
    if not names:
        raise PatternError(f"condition {clause} mentions no variable; remove it")
    if len(names) > 2:
        advice = (
            "precompute part of it as an attribute of one event"
            if len(clause.comparisons) == 1
            else "write one pattern for each alternative"
        )
        raise UnsupportedPatternError(
            f"the conjunct {clause} relates the variables {', '.join(names[:-1])} and {names[-1]}, "
            f"and a conjunct may relate at most two; {advice}"
        )
    for term in clause.terms():
        _check_term(term, variables)
    kleene = [name for name in names if variables[name].is_set]
    each = {
        term.variable
        for term in clause.terms()
        if isinstance(term, Attribute) and term.element == "each"
    }
    if len([name for name in kleene if name in each and variables[name].kind is Kind.GROUP]) > 1:
        raise PatternOperatorError(
            f"condition {clause} relates the groups {kleene[0]} and {kleene[1]} event by event; "
            "compare single events or aggregates of one of them, as in "
            f"{kleene[0]}[1].x or sum({kleene[0]}.x)"
        )
    if clause.is_running and len(kleene) > 1:
        raise PatternOperatorError(
            f"in condition {clause} the index i would range over two Kleene variables, "
            f"{kleene[0]} and {kleene[1]}; a condition with [2..], [i-1] or [..i-1] may mention only one"
        )
    if all(variables[name].kind is Kind.NEGATED for name in names) and len(names) > 1:
        raise PatternOperatorError(
            f"condition {clause} relates the negated variables {names[0]} and {names[1]}, but each "
            "negation is checked by itself; relate both to an item without NOT"
        )
    if not any(scope.issuperset(names) for scope in scopes):
        raise PatternError(
            f"condition {clause} is never evaluated: {names[0]} and {names[-1]} are in different "
            "branches of OR; write one condition per branch"
        )


def check_returns(
    returns: Sequence[Returned], variables: Mapping[str, Variable], scopes: Sequence[set[str]]
) -> None:
    """Check that each column of the RETURN clause has a name of its own and values.

    Raises PatternNameError for an unknown variable, and two columns of one name;
    PatternOperatorError for a negated variable, and for what has no value for a match as a whole;
    PatternError for an expression without variables, or over variables that no branch has together.
    """
    names: set[str] = set()
    for column in returns:
        with blaming(column):
            for name in column.variables:
                check_bound("RETURN", name, variables)
            if not column.variables:
                raise PatternError(f"RETURN of {column}, which mentions no variable; leave it out")
            if not isinstance(column.value, str):
                _check_returned(column.value, variables)
            if not any(scope.issuperset(column.variables) for scope in scopes):
                raise PatternError(
                    f"{column} never has a value: its variables are in different branches of OR; "
                    "return one column for each branch"
                )
            if column.name in names:
                raise PatternNameError(
                    f"RETURN has two columns named {column.name!r}; rename one of them: "
                    f"{Returned(column.value)} AS other"
                )
            names.add(column.name)


def check_bound(clause: str, name: str, variables: Mapping[str, Variable]) -> None:
    """Check that a variable in RETURN, GROUP BY or AGG is known, and bound by a match."""
    if name not in variables:
        raise PatternNameError(
            f"{clause} of an unknown variable {name!r}; the pattern has "
            f"{', '.join(variables)}{did_you_mean(name, variables)}"
        )
    if variables[name].kind is Kind.NEGATED:
        raise PatternOperatorError(
            f"{clause} of the negated variable {name!r}, which a match binds to no event; leave it out"
        )


def _check_returned(value: Expression, variables: Mapping[str, Variable]) -> None:
    """Check the value of a column that is an expression."""
    for term in terms_of(value):
        _check_term(term, variables)
        name = term.variable
        if term.is_running:
            raise PatternOperatorError(
                f"RETURN of {term}, which has a value for each event of {name} but the first; return {name}[1], {name}[last], all values or an aggregate"
            )
        is_list = isinstance(term, Attribute) and term.element == "each"
        if is_list and variables[name].is_set and term != value:
            raise PatternOperatorError(
                f"RETURN of arithmetic on {term}, which has a value for each event of {name}; "
                f"return the values alone, or use {name}[1], {name}[last] or an aggregate"
            )


def _check_term(term: Attribute | Aggregate, variables: Mapping[str, Variable]) -> None:
    attribute = term.attribute if isinstance(term, Aggregate) else term
    if isinstance(term, Aggregate):
        choice(term.function, "the function of an aggregate", AGGREGATES, PatternError)
        if attribute.element == "rest":
            raise PatternOperatorError(
                f"{term.function}({attribute}) is over all events but the first, which no function "
                "is over; write all, or those before b[i] as in avg(b[..i-1].x)"
            )
        if attribute.element != "each":
            raise PatternOperatorError(
                f"{term.function}({attribute}) is over a single event; write {attribute}"
            )
    choice(attribute.element, "the element of an attribute", ELEMENTS, PatternError)
    variable = variables[attribute.variable]
    if not variable.is_set and (isinstance(term, Aggregate) or attribute.element != "each"):
        plain = Attribute(attribute.variable, attribute.name)
        raise PatternOperatorError(
            f"{term} needs a set of events, but {variable.name} is bound to a single one; write "
            f"{plain}, or make it a Kleene variable: KL({variable.type} {variable.name})"
        )
