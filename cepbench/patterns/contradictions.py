"""Unsatisfiable patterns: contradictory conditions, and windows too short for their sequence.

The check is sound but incomplete: a rejected pattern has no match on any stream, but not every
such pattern is rejected. Conditions are interpreted as an order over expressions, see
:mod:`cepbench.patterns.orders`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from cepbench.errors import UnsatisfiablePatternError
from cepbench.patterns.arrays import constant_value
from cepbench.patterns.expressions import attributes_of
from cepbench.patterns.model import (
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Expression,
    Kind,
    Negative,
    Operator,
    Pattern,
    Structure,
    Variable,
)
from cepbench.patterns.orders import Fact, Order

#: Budget of the search for alternatives that contradict the rest, in steps along known orders:
#: enough for a hundred conditions that decide each other, or a few rounds over thousands.
MOST_STEPS = 200_000

#: Cost of re-examining a comparison, in such steps.
_STEPS_PER_COMPARISON = 10

#: For how many alternatives the reason of the contradiction is determined.
_MOST_ALTERNATIVES = 10

#: How many conditions an error lists.
_MOST_SHOWN = 4


def check_satisfiable(pattern: Pattern) -> None:
    """Reject a pattern that cannot match on any stream.

    Detects contradictions between conditions (``a.x < b.x AND b.x <= a.x``, ``a.x < 3 AND a.x
    > 5``, ``a.s = 'p' AND a.s = 'q'``; also transitive ones, and disjunctions all of whose
    alternatives contradict the rest), and sequences longer than their window. A pattern with OR
    is rejected only if all its branches are unsatisfiable. Conditions on negated variables are
    ignored, since one that is never true only disables the negation; so are conditions with
    ``b[i-1]``, which do not constrain a set of one event. The search through disjunctions is
    bounded by :data:`MOST_STEPS`.

    Raises UnsatisfiablePatternError, which lists the conditions that contradict each other.
    """
    first: UnsatisfiablePatternError | None = None
    # Sets of variables whose conditions contradict each other in any branch.
    impossible: list[set[str]] = []
    for branch in pattern.expanded.iter_branches():
        error = _too_long(branch)
        if error is None and not any(names.issubset(branch.names) for names in impossible):
            named, needed = _contradiction(branch)
            if not named:
                return
            impossible.append({name for clause in needed for name in clause.variables})
            error = _error(named, branch)
        first = first or error
    assert first is not None
    raise first


def _too_long(branch: Pattern) -> UnsatisfiablePatternError | None:
    """The error for a sequence that does not fit its window."""
    times = _times(branch.structure) - 1
    if branch.order == "arrival" or times <= branch.window.length:
        return None
    window = branch.window
    ticks = "nanoseconds" if window.is_datetime else "units"
    return UnsatisfiablePatternError(
        f"{branch.structure} needs {times + 1} timestamps, each later than the one before, and "
        f"these do not fit into WITHIN {window}; widen the window to {times + window.exclusive} "
        f"{ticks} or more, or write AND, or ORDER BY arrival, for events at the same time",
        culprit=window,
    )


def _times(item: Variable | Structure) -> int:
    """How many distinct timestamps the variables of a pattern without OR need."""
    if isinstance(item, Variable):
        return int(item.kind is not Kind.NEGATED and item.size != "*")
    inner = map(_times, item.items)
    return sum(inner) if item.operator is Operator.SEQ else max(inner, default=0)


def _error(clauses: list[Clause], branch: Pattern) -> UnsatisfiablePatternError:
    """The error for clauses that cannot all hold."""
    chosen = set(clauses)
    found = [clause for clause in branch.conditions if clause in chosen]
    if len(found) == 1:
        what, advice = f"condition {found[0]} is never true", "correct it, or leave it out"
    else:
        shown = [clause.bracketed() for clause in found]
        if len(shown) > _MOST_SHOWN:
            shown[_MOST_SHOWN - 1 :] = ["others"]
        what = f"the conditions {', '.join(shown[:-1])} and {shown[-1]} contradict each other"
        advice = "correct or leave out one of them"
    return UnsatisfiablePatternError(
        f"{what}, so that the pattern can have no match; {advice}", culprit=found[-1]
    )


def _contradiction(branch: Pattern) -> tuple[list[Clause], list[Clause]]:
    """Clauses of a branch that contradict each other: those to report, and all that may matter."""
    # Conditions on what may be empty need not hold for any event.
    empty = {v.name for v in branch.variables if v.kind is Kind.NEGATED or v.size == "*"}
    clauses = [
        clause
        for clause in branch.conditions
        if empty.isdisjoint(clause.variables) and not clause.is_running
    ]
    elements: dict[str, set[str]] = {name: {"each"} for name in branch.names}
    for clause in clauses:
        for attribute in clause.attributes():
            elements[attribute.variable].add(attribute.element)
    facts: list[Fact] = []
    open_ones: list[tuple[Clause, tuple[Comparison, ...]]] = []
    for clause in clauses:
        for comparisons in _instances(clause, elements):
            if len(comparisons) == 1:
                facts.append((comparisons[0], clause))
            else:
                open_ones.append((clause, comparisons))
    steps = MOST_STEPS
    while True:
        order = Order(facts, steps)
        found = order.contradiction()
        if found or not open_ones:
            return found, found
        # Drop alternatives that contradict the facts; one that remains alone becomes a fact.
        undecided, decided = [], []
        for clause, comparisons in open_ones:
            possible = itertools.islice((c for c in comparisons if not order.excludes(c)), 2)
            match list(possible):
                case []:
                    named = [clause, *_reasons(facts, comparisons)]
                    complete = len(comparisons) <= _MOST_ALTERNATIVES
                    return named, named if complete else [clause, *(why for _, why in facts)]
                case [only]:
                    decided.append((only, clause))
                case _:
                    undecided.append((clause, comparisons))
        compared = len(facts) + sum(len(comparisons) for _, comparisons in open_ones)
        steps = order.steps_left - _STEPS_PER_COMPARISON * compared
        if not decided or steps <= 0:
            return [], []
        facts += decided
        open_ones = undecided


def _reasons(facts: list[Fact], excluded: Sequence[Comparison]) -> list[Clause]:
    """The clauses that exclude the first few of these comparisons."""
    found: list[Clause] = []
    for comparison in excluded[:_MOST_ALTERNATIVES]:
        alternative = Clause((comparison,))
        order = Order([*facts, (comparison, alternative)], 0)
        found += (clause for clause in order.contradiction() if clause is not alternative)
    return found


def _instances(
    clause: Clause, elements: Mapping[str, set[str]]
) -> Iterator[tuple[Comparison, ...]]:
    """``clause`` for any one event of each Kleene set, and for the first and last events."""
    everywhere = {a.variable for a in clause.attributes() if a.element == "each"}
    named = [
        sorted(elements[name]) if name in everywhere else ["each"] for name in clause.variables
    ]
    for chosen in itertools.product(*named):
        places = dict(zip(clause.variables, chosen, strict=True))
        yield tuple(
            Comparison(c.operator, _settled(c.left, places), _settled(c.right, places))
            for c in clause.comparisons
        )


def _settled(expression: Expression, places: Mapping[str, str]) -> Expression:
    """``expression`` for one event of each set, with constants folded."""
    match expression:
        case Attribute(variable, name, "each") if places[variable] != "each":
            return Attribute(variable, name, places[variable])
        case Negative(operand):
            expression = Negative(_settled(operand, places))
        case Arithmetic(operator, left, right):
            expression = Arithmetic(operator, _settled(left, places), _settled(right, places))
        case _:
            return expression
    if next(attributes_of(expression), None) is not None:
        return expression
    return Constant(constant_value(expression))
