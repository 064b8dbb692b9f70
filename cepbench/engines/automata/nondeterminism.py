"""Where runs of an automaton may split, and how many there can be.

Source: [agrawal2008]_, sections 4.1 and 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import pandas as pd

from cepbench.engines.automata.states import Edge, Formula, State
from cepbench.markup import Html
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.expressions import OPPOSITE
from cepbench.patterns.model import Aggregate, Attribute, Clause
from cepbench.patterns.orders import Order

#: The four kinds, as pairs of edges of one state.
KINDS = ("take-proceed", "ignore-proceed", "take-ignore", "begin-ignore")

#: Budget of a comparison of two formulas, in steps along known orders.
_MOST_STEPS = 10_000


@dataclass(frozen=True)
class Nondeterminism:
    """What :meth:`Automaton.nondeterminism` returns."""

    states: tuple[str, ...]  #: All but the final one
    #: For each state, those of :data:`KINDS` that can occur: one event may satisfy both edges.
    kinds: tuple[tuple[str, ...], ...]

    @property
    def exponents(self) -> tuple[float, ...]:
        """For each state k, where a run splits into at most W^k: 0, 1 or, for exponential, inf.

        W is the number of events of a partition within a window [agrawal2008]_, Propositions 4.1
        and 4.2.
        """
        return tuple(
            math.inf if "take-ignore" in kinds else float(bool(kinds)) for kinds in self.kinds
        )

    @property
    def exponent(self) -> float:
        """k, where a window of W events has at most W^k runs; inf for exponential.

        Any of the events may begin a run. At most the number of states, without exponential ones
        [agrawal2008]_, Corollary 4.3.
        """
        return 1 + sum(self.exponents)

    @property
    def bound(self) -> str:
        """``exponent`` as text."""
        return f"at most {_power(self.exponent)} runs in a window of W events"

    def table(self) -> pd.DataFrame:
        """A row for each state: a column for each kind, and the most runs that one splits into."""
        found = pd.DataFrame({"state": self.states})
        for kind in KINDS:
            found[kind] = [kind in kinds for kinds in self.kinds]
        return found.assign(splits=[_power(exponent) for exponent in self.exponents])

    def describe(self) -> str:
        """The kinds at each state, and the bound on runs."""
        width = max(map(len, self.states))
        lines = [
            f"  {state:<{width}}  {', '.join(kinds) or 'deterministic'}: {_power(exponent)}"
            for state, kinds, exponent in zip(self.states, self.kinds, self.exponents, strict=True)
        ]
        return "\n".join([self.bound, *lines])

    def _repr_html_(self) -> str:
        return str(_PAGE(bound=self.bound, rows=self.table().to_dict("records"), kinds=KINDS))


_PAGE = Html(
    """<table class="cep-nondeterminism"><caption>{{ bound }}</caption>
<tr><th>state</th>{% for kind in kinds %}<th>{{ kind }}</th>{% endfor %}<th>splits</th></tr>
{% for row in rows %}
<tr><td>{{ row.state }}</td>{% for kind in kinds %}<td>{{ "yes" if row[kind] else "" }}</td>
{% endfor %}<td>{{ row.splits }}</td></tr>
{% endfor %}</table>"""
)


def _power(exponent: float) -> str:
    if math.isinf(exponent):
        return "exponentially many"
    return {0.0: "1", 1.0: "W"}.get(exponent, f"W^{exponent:g}")


def nondeterminism(
    states: Iterable[State], edges: Iterable[Edge], hierarchy: ConceptHierarchy | None
) -> Nondeterminism:
    """The kinds of nondeterminism at each state, unless formulas are known to exclude each other.

    A loop before F proceeds after each event that it takes.
    """
    states, edges = tuple(states), tuple(edges)
    kinds = []
    for number in range(len(states) - 1):
        here = {edge.kind: edge for edge in edges if edge.state == number}
        found = []
        for kind in KINDS:
            one, other = (here.get(name) for name in kind.split("-"))
            if one is None or other is None:
                continue
            if other.kind == "proceed" and states[other.target].kind == "final":
                if one.kind == "take":
                    found.append(kind)
            elif not _exclude(one.formula, other.formula, hierarchy):
                found.append(kind)
        kinds.append(tuple(found))
    return Nondeterminism(tuple(state.name for state in states[:-1]), tuple(kinds))


def _exclude(one: Formula, other: Formula, hierarchy: ConceptHierarchy | None) -> bool:
    """Whether no event satisfies both formulas of edges of one state."""
    one, other = _peeked(one), _peeked(other)
    if one.never or other.never:
        return True
    for formula, against in ((one, other), (other, one)):
        if formula.negated is not None and _implies(against, formula.negated, hierarchy):
            return True
    if not (_is_of(one, other, hierarchy) or _is_of(other, one, hierarchy)):
        return True
    clauses = [*_neutral(one), *_neutral(other)]
    order = _order(clauses)
    return bool(order.contradiction()) or any(
        all(map(order.excludes, clause.comparisons)) for clause in clauses
    )


def _is_of(one: Formula, other: Formula, hierarchy: ConceptHierarchy | None) -> bool:
    """Whether all events of the type of ``one`` are of that of ``other``, as far as is known."""
    if other.type is None or one.type is None or hierarchy is None:
        return other.type in (None, one.type)
    return hierarchy.is_a(one.type, other.type)


def _implies(one: Formula, other: Formula, hierarchy: ConceptHierarchy | None) -> bool:
    """Whether an event that satisfies ``one`` is known to satisfy ``other``, both of one state."""
    clauses = _neutral(one)
    order = _order(clauses)
    known = {term for clause in clauses for term in clause.terms() if len(clause.comparisons) == 1}

    def follows(clause: Clause) -> bool:
        if clause in clauses:
            return True
        # A comparison may fail although its opposite does: a value may be missing.
        return any(
            known.issuperset(comparison.terms())
            and order.excludes(replace(comparison, operator=OPPOSITE[comparison.operator]))
            for comparison in clause.comparisons
        )

    return (
        _is_of(one, other, hierarchy)
        and (other.ordered is None or other.ordered == one.ordered)
        and set(one.equivalences).issuperset(other.equivalences)
        and not order.contradiction()
        and all(map(follows, _neutral(other)))
    )


def _peeked(formula: Formula) -> Formula:
    """A proceed formula with the formula that it peeks at as one on the current event."""
    if formula.peek is None:
        return formula
    return replace(formula.peek, clauses=(*formula.peek.clauses, *formula.clauses))


def _neutral(formula: Formula) -> list[Clause]:
    """The clauses of a formula, with the same term for one value whatever the state names it."""

    def renamed(term: Attribute | Aggregate) -> Attribute | Aggregate:
        if formula.reads_event(term):
            assert isinstance(term, Attribute)
            return Attribute("", term.name)
        if isinstance(term, Aggregate):
            return replace(term, before=False)
        return replace(term, element="last") if term.element == "previous" else term

    return [clause.with_terms(renamed) for clause in formula.clauses]


def _order(clauses: Iterable[Clause]) -> Order:
    """The order that the clauses without alternatives imply."""
    facts = [(c.comparisons[0], c) for c in clauses if len(c.comparisons) == 1]
    return Order(facts, _MOST_STEPS)
