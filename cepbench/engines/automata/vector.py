"""The vector V of a run: the values by which later formulas compare events with earlier ones.

Source: [agrawal2008]_, sections 5.2.1 (Figure 5a) and 5.2.2 (Figure 6b).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cepbench.engines.automata.states import Edge, Formula, State
from cepbench.patterns.model import Aggregate, Attribute


@dataclass(frozen=True, slots=True)
class Column:
    """A column of V."""

    state: int  #: Where events enter it. Columns of ``a[i]`` also take the event of ``a[1]``.
    attribute: str | None  #: What is read of an event; None for ``count``.
    #: ``value``, of the event at the state: at ``a[i]`` the last one; ``sum``, ``count``, ``min``
    #: or ``max`` over all events of the variable so far, missing if a value is.
    operation: str


def columns_of(
    states: Sequence[State], formula: Formula, term: Attribute | Aggregate
) -> tuple[Column, ...]:
    """The columns from which a formula takes a term of its clauses: sum and count for an average,
    else one; none for an attribute of the current event.
    """
    return () if formula.reads_event(term) else columns_of_term(states, term)


def columns_of_term(states: Sequence[State], term: Attribute | Aggregate) -> tuple[Column, ...]:
    """The columns that a term is taken from after all events that it reads."""
    if isinstance(term, Attribute):
        kind = "loop" if term.element in ("previous", "last") else "begin"
        return (Column(_state(states, term.variable, kind), term.name, "value"),)
    state = _state(states, term.attribute.variable, "loop")
    operations = ("sum", "count") if term.function == "avg" else (term.function,)
    return tuple(
        Column(state, None if name == "count" else term.attribute.name, name) for name in operations
    )


def needed(states: Sequence[State], formula: Formula) -> Iterator[Column]:
    """The columns that a formula reads, with repetitions; of a peeked one too."""
    for name in formula.equivalences:
        yield Column(states.index(formula.first), name, "value")
    for clause in formula.clauses:
        for term in clause.terms():
            yield from columns_of(states, formula, term)
    for inner in (formula.negated, formula.peek):
        if inner is not None:
            yield from needed(states, inner)


def vector_of(states: Sequence[State], edges: Sequence[Edge]) -> tuple[Column, ...]:
    """All columns, by state and, within one, in the order in which edges need them."""
    found = dict.fromkeys(column for edge in edges for column in needed(states, edge.formula))
    return tuple(sorted(found, key=lambda column: column.state))


def masks_of(
    states: Sequence[State], edges: Sequence[Edge], vector: Sequence[Column]
) -> np.ndarray:
    """The columns that are relevant at each state, bool, shape (states, columns).

    A peeked formula counts for its own state. Relevant at a state or later is
    ``np.logical_or.accumulate(masks[::-1])[::-1]``.
    """
    masks = np.zeros((len(states), len(vector)), dtype=bool)
    place = {column: number for number, column in enumerate(vector)}
    for edge in edges:
        formula = edge.formula
        for column in needed(states, replace(formula, peek=None)):
            masks[edge.state, place[column]] = True
    return masks


def _state(states: Sequence[State], variable: str, kind: str) -> int:
    """The index of a variable's state of a kind."""
    return next(
        number
        for number, state in enumerate(states)
        if state.kind == kind and state.variable == variable
    )
