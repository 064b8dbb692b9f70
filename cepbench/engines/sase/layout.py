"""Compilation of an automaton to the tables that the kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cepbench.engines.automata.model import Automaton
from cepbench.engines.automata.states import Edge, Formula
from cepbench.engines.automata.vector import Column
from cepbench.engines.plan_runs.by_type import TypeFlags, TypeRows
from cepbench.engines.plan_runs.programs import (
    COMPARISONS,
    Codes,
    ProgramWriter,
    Rule,
    rule_tables,
)
from cepbench.engines.sase.kernels import tables
from cepbench.errors import UnsupportedPatternError
from cepbench.kernels.instructions import LOAD_LEFT, LOAD_RIGHT
from cepbench.patterns.expressions import MIRRORED, of_any_variable, with_terms
from cepbench.patterns.model import (
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Expression,
    Variable,
    terms_of,
)

_KINDS = {"begin": tables.BEGIN, "take": tables.TAKE, "proceed": tables.PROCEED}

#: Operations on the first event of an item, and on further ones of a loop.
_FIRST = {"count": tables.SET_ONE}
_FURTHER = {
    "value": tables.SET, "sum": tables.ADD, "count": tables.ADD_ONE,
    "min": tables.LEAST, "max": tables.GREATEST,
}  # fmt: skip

#: Least and greatest values that an event does not change if the comparison with them holds.
_BOUNDS = {
    COMPARISONS[">"]: tables.LEAST, COMPARISONS[">="]: tables.LEAST,
    COMPARISONS["<"]: tables.GREATEST, COMPARISONS["<="]: tables.GREATEST,
}  # fmt: skip

#: Edges that an event may pass by itself, one bit each.
MOST_FLAGS = 62


@dataclass(frozen=True)
class Passing:
    """The events of a type, None for any, that satisfy what an edge asks of the event alone, and
    their bit.
    """

    type: str | None
    clauses: tuple[Clause, ...]
    flag: int


@dataclass(frozen=True)
class AutomatonLayout:
    """A compiled automaton."""

    plan: tables.Plan
    passing: tuple[Passing, ...]  #: of each edge that writes or forbids an event
    columns: tuple[Expression, ...]  #: what is read of events, in attributes of the variable ``""``
    variables: tuple[Variable, ...]  #: the positive ones, in written order
    width: int  #: columns of V

    @cached_property
    def rows(self) -> TypeRows:
        """The events of the types that are asked."""
        return TypeRows({its.type for its in self.passing})

    @cached_property
    def flags(self) -> TypeFlags:
        """The bits of events whose type alone is asked."""
        return TypeFlags((its.type, its.flag) for its in self.passing)


def automaton_layout(
    automaton: Automaton,
    code: Codes,
    *,
    counts: bool,
    reports: bool,
    returned: Sequence[Column] = (),
) -> AutomatonLayout:
    """The tables of an automaton.

    ``counts`` if matches have no graph, but are counted by start; ``reports`` if they are more than
    counted, with the values of V ``returned``.

    Raises
    ------
    UnsupportedPatternError
        If it has too many states, or a condition is too deep.
    """
    return _Compilation(automaton, code).layout(counts=counts, reports=reports, returned=returned)


class _Compilation:
    def __init__(self, automaton: Automaton, code: Codes) -> None:
        self.automaton = automaton
        pattern = automaton.pattern
        self.states = automaton.states[:-1]
        strategy = pattern.strategy
        self.keys = pattern.equivalences
        if "contiguity" in strategy.name:
            # The other attributes must be equal, but do not decide what is contiguous.
            self.keys = () if strategy.attribute is None else (strategy.attribute,)
        self.columns: dict[Expression, int] = {}
        self.writer = ProgramWriter(code)

    def _check_flags(self) -> None:
        passed = sum(edge.kind not in ("ignore", "proceed") for edge in self.automaton.edges)
        if passed > MOST_FLAGS:
            # STRATEGY next is run by automata alone.
            is_any = self.automaton.pattern.strategy.name != "next"
            raise UnsupportedPatternError(
                f"the pattern has {passed} edges that events must pass, and an automaton that is run has "
                f"at most {MOST_FLAGS}, one for each item, two for KL and one for NOT; use fewer items"
                f"{', or evaluate with lazy-nfa or tree, which have no such limit' * is_any}"
            )

    def layout(self, *, counts: bool, reports: bool, returned: Sequence[Column]) -> AutomatonLayout:
        automaton, states = self.automaton, self.states
        pattern = automaton.pattern
        number = len(states)
        variables = pattern.without(pattern.negated).positive
        names = [variable.name for variable in variables]
        forbids = [edge for edge in automaton.edges if edge.kind == "forbid"]
        forbids.sort(key=lambda edge: edge.state)
        self._check_flags()
        bits = np.zeros(tables.EDGES * number + len(forbids), np.int64)
        written: list[dict[int, list[Rule]]] = [{} for _ in bits]
        updates: list[list[tuple[int, int, int]]] = [[] for _ in bits]
        passing: list[Passing] = []
        for edge in automaton.edges:
            if edge.kind == "ignore":
                continue
            if edge.kind == "forbid":
                place = tables.EDGES * number + forbids.index(edge)
            else:
                place = tables.EDGES * edge.state + _KINDS[edge.kind]
            alone, others = self._split(edge.formula)
            written[place] = self._rules(edge.formula, others)
            if edge.kind != "proceed":
                bits[place] = 1 << len(passing)
                passing.append(Passing(edge.formula.type, alone, int(bits[place])))
            if edge.writes:
                effects = set(map(_without_effect, written[place][tables.COMPARE]))
                updates[place] = [u for u in self._updates(edge) if u not in effects]
        is_loop = [state.kind in ("loop", "blocked") for state in states]
        targets = [
            automaton.edge(k, "take" if loop else "begin").target for k, loop in enumerate(is_loop)
        ]
        bit = bits[: tables.EDGES * number].reshape(number, tables.EDGES)
        forbidden = np.zeros(number, np.int64)
        np.bitwise_or.at(forbidden, [e.state for e in forbids], bits[tables.EDGES * number :])
        relevant = bit[:, tables.BEGIN] | bit[:, tables.TAKE] | forbidden
        begins_next = np.append(bit[1:, tables.BEGIN], 0)
        relevant |= np.where(is_loop, begins_next, 0)
        spans, rules = rule_tables(written, tables.RULE_KINDS)
        masks = np.logical_or.accumulate(automaton.masks[::-1])[::-1][:number]
        masks[:, [self._is_key(column) for column in automaton.vector]] = False
        name = pattern.strategy.name
        # Whose copies need no V and are no matches: they are only counted together.
        unites = [
            counts
            and name == "any"
            and not is_loop[k]
            and not forbidden[k]
            and targets[k] < number
            and not masks[targets[k]].any()
            and not (is_loop[targets[k]] and targets[k] == number - 1)
            for k in range(number)
        ]
        plan = tables.Plan(
            states=number,
            kinds=np.where(is_loop, tables.LOOP, tables.SINGLE),
            targets=np.array(targets, np.int64),
            items=np.array([names.index(state.variable or "") for state in states], np.int64),
            accepts=np.array([*[False] * (number - 1), is_loop[-1], False], np.int64),
            unites=np.array(unites),
            bits=bits,
            relevant=relevant,
            forbidden=forbidden,
            forbid_spans=np.searchsorted([e.state for e in forbids], np.arange(number + 1)),
            spans=spans,
            rules=rules,
            constants=np.array(self.writer.constants),
            update_spans=np.cumsum([0, *map(len, updates)]),
            updates=np.array([u for its in updates for u in its], np.int64).reshape(-1, 3),
            masked_spans=np.append(0, np.cumsum(masks.sum(axis=1))),
            # A copy, since nonzero gives columns, for which kernels would be compiled again.
            masked=np.nonzero(masks)[1].copy(),
            keys=np.array([self._column(Attribute("", key)) for key in self.keys], np.int64),
            window=pattern.window.length,
            ignores=name == "any",
            dies="contiguity" in name,
            counts=counts,
            reports=reports,
            returned=np.array([automaton.vector.index(column) for column in returned], np.int64),
        )
        return AutomatonLayout(
            plan, tuple(passing), tuple(self.columns), variables, len(automaton.vector)
        )

    def _is_key(self, column: Column) -> bool:
        """Whether a column is equal in all runs of a partition."""
        return (column.state, column.operation) == (0, "value") and column.attribute in self.keys

    def _split(self, formula: Formula) -> tuple[tuple[Clause, ...], list[Clause]]:
        """The clauses on the event alone, and the others."""
        alone: list[Clause] = []
        others: list[Clause] = []
        for clause in formula.clauses:
            of_event = formula.event is not None and all(
                formula.reads_event(term) for term in clause.terms()
            )
            (alone if of_event else others).append(clause)
        return tuple(alone), others

    def _rules(self, formula: Formula, clauses: list[Clause]) -> dict[int, list[Rule]]:
        """The rules of an edge for what reads V."""
        compared: list[Rule] = []
        for name in formula.equivalences:
            if name not in self.keys:
                first = self.automaton.vector.index(Column(0, name, "value"))
                compared.append((self._column(Attribute("", name)), first, COMPARISONS["="], 0))
        programs: list[Rule] = []
        for clause in clauses:
            rule = self._comparison(formula, clause)
            if rule is not None:
                compared.append(rule)
            else:
                whole = clause.with_terms(_average)
                programs += self.writer.instructions(whole, lambda e: self._load(formula, e))
        return {tables.COMPARE: compared, tables.PROGRAM: programs}

    def _comparison(self, formula: Formula, clause: Clause) -> Rule | None:
        """The clause as a comparison of the event with a column of V, the fastest test."""
        if len(clause.comparisons) > 1:
            return None
        (comparison,) = clause.comparisons
        for event, operator, other in (
            (comparison.left, comparison.operator, comparison.right),
            (comparison.right, MIRRORED[comparison.operator], comparison.left),
        ):
            if not isinstance(other, Attribute | Aggregate) or formula.reads_event(other):
                continue
            columns = self.automaton.columns_of(formula, other)
            if len(columns) == 1 and self._is_of_event(formula, event):
                return self._event_column(event), columns[0], COMPARISONS[operator], 0
        return None

    def _load(self, formula: Formula, expression: Expression) -> Rule | None:
        if self._is_of_event(formula, expression):
            return LOAD_RIGHT, self._event_column(expression), 0, 0
        if isinstance(expression, Attribute | Aggregate):
            (column,) = self.automaton.columns_of(formula, expression)
            return LOAD_LEFT, column, 0, 0
        return None

    def _is_of_event(self, formula: Formula, expression: Expression) -> bool:
        terms = list(terms_of(expression))
        return bool(terms) and all(formula.reads_event(term) for term in terms)

    def _event_column(self, expression: Expression) -> int:
        return self._column(with_terms(expression, of_any_variable))

    def _column(self, expression: Expression) -> int:
        return self.columns.setdefault(expression, len(self.columns))

    def _updates(self, edge: Edge) -> list[tuple[int, int, int]]:
        """What an edge writes to V."""
        found = []
        state = self.states[edge.state]
        for number, column in enumerate(self.automaton.vector):
            its = self.automaton.states[column.state]
            if its.variable != state.variable or (edge.kind == "take" and its.kind != "loop"):
                continue
            source = -1
            if column.attribute is not None:
                source = self._column(Attribute("", column.attribute))
            operation = (
                _FURTHER[column.operation]
                if edge.kind == "take"
                else _FIRST.get(column.operation, tables.SET)
            )
            found.append((number, source, operation))
        return found


def _without_effect(rule: Rule) -> tuple[int, int, int]:
    """The update of V, if any, that an event makes without effect by passing a comparison."""
    source, column, operator, _ = rule
    return column, source, _BOUNDS.get(operator, -1)


def _average(term: Attribute | Aggregate) -> Expression:
    """An average as the quotient of sum and count, which V has."""
    if isinstance(term, Aggregate) and term.function == "avg":
        total, count = (
            Aggregate(function, term.attribute, term.before) for function in ("sum", "count")
        )
        return Arithmetic("/", total, count)
    return term
