"""The columns of RETURN from V [agrawal2008]_, section 5.2.1, without matches or their graph.

All histories of a run that accepts have the same last event and, in the columns of V that keep runs
apart, the same values. Where RETURN needs no more, the run is counted, and writes its values once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cepbench.engines.automata.model import Automaton
from cepbench.engines.automata.vector import Column, columns_of_term
from cepbench.engines.runs.kernels.values import MAX, MIN, SUM, Rows
from cepbench.engines.runs.returned import aggregates_of
from cepbench.patterns.expressions import terms_of
from cepbench.patterns.model import Aggregate, Attribute, Returned

_NAMES = {SUM: "sum", MIN: "min", MAX: "max"}


def returned_columns(
    automaton: Automaton, returns: Sequence[Returned]
) -> tuple[Column, ...] | None:
    """The columns of V that RETURN, without lists, needs besides the last event; see
    :func:`cepbench.engines.runs.returned.values_suffice`.

    None if merged runs may differ in a column. It could be added to V, but that keeps runs apart
    whether or not they accept, and makes it up to a hundred times slower than the graph where few
    do.
    """
    columns = [*_columns(automaton, returns)]
    if any(column is None or not _keeps_apart(automaton, column) for column in columns):
        return None
    return tuple(dict.fromkeys(column for column in columns if column is not None))


def _columns(automaton: Automaton, returns: Sequence[Returned]) -> Iterator[Column | None]:
    """The columns for each term; None for what only earlier events have."""
    last = automaton.states[-2]
    for returned in returns:
        value = returned.value
        for term in [Attribute(value, "")] if isinstance(value, str) else terms_of(value):
            if isinstance(term, Aggregate):
                yield from columns_of_term(automaton.states, term)
            elif (
                # The last event has it, too.
                term.name not in automaton.pattern.equivalences
                and automaton.states[columns_of_term(automaton.states, term)[0].state] != last
            ):
                yield None


def _keeps_apart(automaton: Automaton, column: Column) -> bool:
    """Whether runs are merged only if a column is equal, from its state on."""
    if column not in automaton.vector:
        return False
    read = automaton.masks[:, automaton.vector.index(column)]
    until = np.flatnonzero(read).max(initial=-1)
    held = [e.target for e in automaton.edges if e.kind in ("begin", "take", "forbid")]
    return bool(max(its for its in held if its < len(automaton.states) - 1) <= until)


def returned_rows(
    automaton: Automaton, returns: Sequence[Returned], roots: np.ndarray, values: np.ndarray
) -> Rows:
    """The values of matches, in the order in which they were found.

    ``roots`` has how many matches have some values, and the position of their last event;
    ``values`` are the columns of :func:`returned_columns`. The first and last event of an item are
    that of the match where only ``[attribute]`` is read of them.
    """
    lasts, values = np.repeat(roots[1], roots[0]), np.repeat(values, roots[0], axis=1)
    states, names = automaton.states, automaton.names
    columns = dict(zip(returned_columns(automaton, returns) or (), values, strict=True))
    ends = np.tile(lasts, (len(names), 1))
    sizes = np.ones_like(ends)
    for column, its in columns.items():
        if column.operation == "count":
            sizes[names.index(states[column.state].variable or "")] = its
    aggregates = [
        columns[column]
        for function, attribute in aggregates_of(returns)
        for column in columns_of_term(states, Aggregate(_NAMES[function], attribute))
    ]
    return Rows(ends, ends, sizes, np.array(aggregates).reshape(len(aggregates), len(lasts)))
