"""Whether a pattern can have a match at all: conditions that contradict, windows too short.

Only contradictions that hold on every stream are found, and not all of those: what is said here
of a pattern is true, what is not said may be. The conditions are read as an order over
expressions, see :mod:`cepbench.patterns.orders`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cepbench.errors import UnsatisfiablePatternError
from cepbench.patterns.arrays import expression_values
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
    attributes_of,
)
from cepbench.patterns.orders import Fact, Order

#: When to stop looking for alternatives that contradict the rest, in steps along known orders:
#: after a hundred conditions that decide each other one by one, or a few rounds over thousands.
MOST_STEPS = 200_000

#: What looking at a comparison anew costs, in such steps.
_STEPS_PER_COMPARISON = 10

#: Of how many alternatives it is worked out why each cannot hold.
_MOST_ALTERNATIVES = 10

#: How many conditions an error shows.
_MOST_SHOWN = 4


def check_satisfiable(pattern: Pattern) -> None:
    """Refuse a pattern that can have no match, whatever the stream.

    Found are contradictions between conditions (``a.x < b.x AND b.x <= a.x``, ``a.x < 3 AND a.x
    > 5``, ``a.s = 'p' AND a.s = 'q'``, also over several steps and where each alternative of a
    disjunction contradicts the rest), and sequences longer than their window. A pattern with OR
    is refused only if all its branches are impossible. Conditions on negated variables are left
    alone: one that is never true only makes the negation idle. So are conditions with ``b[i-1]``,
    which say nothing of a set of one event. Among thousands of conditions, alternatives of
    disjunctions are looked at for :data:`MOST_STEPS` only.

    Raises
    ------
    UnsatisfiablePatternError
        Naming the conditions that contradict each other.
    """
    first: UnsatisfiablePatternError | None = None
    # Sets of variables whose conditions contradict each other, in whatever branch they are.
    impossible: list[set[str]] = []
    for branch in pattern.iter_branches():
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
    """The error of a sequence that does not fit into its window."""
    times = _times(branch.structure) - 1
    if times <= branch.window.length:
        return None
    ticks = "nanoseconds" if branch.window.is_datetime else "units"
    return UnsatisfiablePatternError(
        f"{branch.structure} needs {times + 1} timestamps, each later than the one before, and "
        f"these do not fit into WITHIN {branch.window}; widen the window to {times} {ticks} or "
        "more, or write AND for events at the same time",
        culprit=branch.window,
    )


def _times(item: Variable | Structure) -> int:
    """How many different timestamps the positive variables of a pattern without OR need."""
    if isinstance(item, Variable):
        return int(item.kind is not Kind.NEGATED)
    inner = map(_times, item.items)
    return sum(inner) if item.operator is Operator.SEQ else max(inner, default=0)


def _error(clauses: list[Clause], branch: Pattern) -> UnsatisfiablePatternError:
    """The error that says of these clauses that they cannot all hold."""
    chosen = set(clauses)
    found = [clause for clause in branch.conditions if clause in chosen]
    if len(found) == 1:
        what, advice = f"condition {found[0]} is never true", "correct it, or leave it out"
    else:
        shown = [f"({c})" if len(c.comparisons) > 1 else f"{c}" for c in found]
        if len(shown) > _MOST_SHOWN:
            shown[_MOST_SHOWN - 1 :] = ["others"]
        what = f"the conditions {', '.join(shown[:-1])} and {shown[-1]} contradict each other"
        advice = "correct or leave out one of them"
    return UnsatisfiablePatternError(
        f"{what}, so that the pattern can have no match; {advice}", culprit=found[-1]
    )


def _contradiction(branch: Pattern) -> tuple[list[Clause], list[Clause]]:
    """Clauses of a branch that cannot all hold, if any are found.

    Twice: as an error names them, and with all that may be needed.
    """
    negated = {variable.name for variable in branch.negated}
    clauses = [
        clause
        for clause in branch.conditions
        if negated.isdisjoint(clause.variables) and not clause.is_running
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
        # An alternative that contradicts what must hold anyway can be left out; a last one must
        # hold.
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
    """Clauses because of which none of the first of these comparisons can hold."""
    found: list[Clause] = []
    for comparison in excluded[:_MOST_ALTERNATIVES]:
        alternative = Clause((comparison,))
        order = Order([*facts, (comparison, alternative)], 0)
        found += (clause for clause in order.contradiction() if clause is not alternative)
    return found


def _instances(
    clause: Clause, elements: Mapping[str, set[str]]
) -> Iterator[tuple[Comparison, ...]]:
    """What ``clause`` says of any one event of each set, and of the first and last of those."""
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
    """``expression`` for one event of each set, with its constant parts calculated."""
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
    return Constant(float(expression_values(expression, _no_value, _no_code)))


def _no_value(attribute: Attribute) -> np.ndarray:
    raise AssertionError(f"{attribute} is no constant")


def _no_code(text: str) -> float:
    raise AssertionError(f"the text {text!r} cannot be calculated with")
