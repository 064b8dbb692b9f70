"""States, edges and formulas of an automaton, as frozen data.

Source: NFA^b of [agrawal2008]_, section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cepbench.patterns.model import Aggregate, Attribute, Clause, Variable, Window
from cepbench.patterns.model import quoted_unless_plain as quoted


@dataclass(frozen=True, slots=True)
class State:
    """A state of an automaton, named after the event for which a run waits in it."""

    name: str  #: ``b`` for a plain variable; ``a[1]`` and ``a[i]`` for a Kleene variable; ``F``.
    variable: str | None  #: The variable; None for the final state
    #: ``begin``, for the event of a plain variable or the first one of a Kleene variable; ``loop``,
    #: for further ones; ``blocked``, for further ones of a loop that cannot be left, see
    #: :func:`cepbench.engines.automata.negation.with_negation`; ``final``.
    kind: str

    @property
    def last(self) -> str:
        """The last event selected at this state, in the pattern language: ``b``, ``a[last]``."""
        return f"{quoted(self.variable or '')}[last]" if self.kind == "loop" else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Formula:
    """The condition of an edge: the conjunction of its parts, TRUE without any."""

    first: State  #: The start state, whose event is the first one of a run.
    #: The state at which the current event would be selected; None for a proceed edge.
    event: State | None = None
    type: str | None = None  #: Type of the event; None for any
    #: The state before, whose last event must have a smaller timestamp.
    ordered: State | None = None
    #: Attributes whose value must equal that of the run's first event.
    equivalences: tuple[str, ...] = ()
    #: Conditions on the event and on the vector V, see :meth:`reads_event`.
    clauses: tuple[Clause, ...] = ()
    #: The largest difference to the timestamp of the run's first event.
    window: Window | None = None
    #: The begin formula of the next state, which the current event must satisfy.
    peek: Formula | None = None
    negated: Formula | None = None  #: A formula that the current event must not satisfy.
    never: bool = False  #: FALSE

    @property
    def always(self) -> bool | None:
        """True for TRUE, False for FALSE, None for a formula that depends on run and event."""
        return False if self.never else None if self.parts() else True

    def reads_event(self, term: Attribute | Aggregate) -> bool:
        """Whether a term of its clauses is an attribute of the current event; others are in V."""
        return (
            self.event is not None
            and isinstance(term, Attribute)
            and term.variable == self.event.variable
            and (term.element == "each" or (term.element == "first" and self.event.kind == "begin"))
        )

    def parts(self) -> list[str]:
        """Its conjuncts as texts; ``ts`` is the timestamp."""
        return list(self._parts())

    def __str__(self) -> str:
        return "FALSE" if self.never else " AND ".join(self.parts()) or "TRUE"

    def _parts(self) -> Iterator[str]:
        indexed: tuple[str, ...] = ()
        if self.event is not None:
            name = self.event.name
            if self.event.kind == "loop":
                indexed = (self.event.variable or "",)
            if self.type is not None:
                yield f"{Variable(name, self.type).type_text} {name}"
            if self.ordered is not None:
                yield f"{self.ordered.last}.ts < {name}.ts"
            for shared in map(quoted, self.equivalences):
                yield f"{name}.{shared} = {self.first.name}.{shared}"
        for clause in self.clauses:
            text = " OR ".join(c.text(indexed) for c in clause.comparisons)
            yield f"({text})" if len(clause.comparisons) > 1 else text
        if self.negated is not None:
            yield f"NOT ({self.negated})"
        if self.window is not None:
            yield f"WITHIN {self.window}"
        if self.peek is not None:
            yield from self.peek._parts()


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between two states, given by their indices."""

    state: int
    #: ``begin``, ``take``, ``proceed`` or ``ignore``; ``forbid``, see
    #: :func:`cepbench.engines.automata.negation.with_negation`.
    kind: str
    target: int
    formula: Formula

    @property
    def consumes(self) -> bool:
        """Whether it consumes the event; a proceed edge leaves it to the next state."""
        return self.kind != "proceed"

    @property
    def writes(self) -> bool:
        """Whether it writes the event to the match buffer."""
        return self.kind in ("begin", "take")
