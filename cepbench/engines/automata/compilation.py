"""Compilation of patterns to automata, in the six steps of the paper.

Source: [agrawal2008]_, section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NoReturn

from cepbench.arguments import flag, shown
from cepbench.engines.automata.model import Automaton
from cepbench.engines.automata.states import Edge, Formula, State
from cepbench.errors import PlanError, PlanGeneratorError, UnsupportedPatternError
from cepbench.patterns.expressions import MIRRORED
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import (
    Aggregate,
    Attribute,
    Clause,
    Comparison,
    Expression,
    Kind,
    Operator,
    Pattern,
    Structure,
    quoted_unless_plain,
    terms_of,
)
from cepbench.patterns.times import in_parts
from cepbench.planning.plans.kinds import PLAN_KINDS, PlanKind
from cepbench.planning.plans.model import UnionPlan


def automaton(
    pattern: Pattern | str, *, push_window: bool = True, peek: bool = True
) -> Automaton | UnionPlan:
    """The automaton NFA^b of a pattern [agrawal2008]_, section 3: a plan of its runs.

    Parameters
    ----------
    pattern : Pattern or str
        SEQ of plain, Kleene and negated items, or OR of such. Negated items are not in the
        automaton: matches of the others are filtered [agrawal2008]_, section 3.1.
    push_window : bool
        Whether the window is tested on every edge (step 5), or only on those to F.
    peek : bool
        Whether a run leaves a loop only on an event that begins the next item (step 6).

    Returns
    -------
    Automaton or UnionPlan
        With OR an automaton for each branch.

    Raises
    ------
    PatternError
        If it is not a valid pattern.
    UnsupportedPatternError
        For AND, groups, STRATEGY consuming, and conditions that need all values of a Kleene
        variable's events instead of an aggregate.
    PlanError
        For ``peek=False`` where STRATEGY next would give other matches.

    Notes
    -----
    Differs from [agrawal2008]_: step 6 also constrains proceed edges that have a condition; under
    STRATEGY next it is part of the strategy's meaning, since a run that proceeds without peeking
    may skip an event that the loop would take. The paper's opportunistic move, made where neither
    take nor ignore is possible, is left out: the next state could then only begin, which peeking
    allows, or fail. A loop before F proceeds as soon as it has taken an event. Conditions with
    ``a.x`` for a Kleene variable a that is complete when they are tested are over its least or
    greatest value.

    Examples
    --------
    >>> import cepbench as cep
    >>> print(cep.automaton("PATTERN SEQ(A a, KL(B b)) WHERE b.x > a.x WITHIN 5 units").describe())
    automaton a, b[1], b[i], F
      a     begin    to b[1]  A a
      b[1]  begin    to b[i]  B b[1] AND a.ts < b[1].ts AND b[1].x > a.x AND WITHIN 5 units
      b[1]  ignore   to b[1]  WITHIN 5 units
      b[i]  take     to b[i]  B b[i] AND b[i].x > a.x AND WITHIN 5 units
      b[i]  proceed  to F     WITHIN 5 units
      b[i]  ignore   to b[i]  WITHIN 5 units
    """
    pattern = pattern_from(pattern)
    options = {
        "push_window": flag(push_window, "push_window", PlanError),
        "peek": flag(peek, "peek", PlanError),
    }
    compiled = [_compiled(branch, **options) for branch in pattern.iter_branches()]
    return compiled[0] if len(compiled) == 1 else UnionPlan(compiled)


@lru_cache(maxsize=256)
def _compiled(branch: Pattern, *, push_window: bool, peek: bool) -> Automaton:
    found = Automaton(branch, (), (), push_window, peek, generator="compilation")
    for step in STEPS:
        found = step(found)
    return found


# -- step 1 -----------------------------------------------------------------------------------------


def structure(automaton: Automaton) -> Automaton:
    """Step 1: a state for each plain item and two for each Kleene item, in a line, with edges.

    An UnsupportedPatternError for AND and groups.
    """
    pattern = automaton.pattern
    positive = pattern.without(pattern.negated)
    _check_sequence(positive.structure)
    states: list[State] = []
    for variable in positive.variables:
        name = quoted_unless_plain(variable.name)
        if variable.kind is Kind.GROUP:
            raise UnsupportedPatternError(
                f"{variable}: an automaton has no groups; write KL for all subsets, or evaluate "
                "with zstream or tree",
                culprit=variable,
            )
        if variable.kind is Kind.KLEENE:
            states.append(State(f"{name}[1]", variable.name, "begin"))
            states.append(State(f"{name}[i]", variable.name, "loop"))
        else:
            states.append(State(name, variable.name, "begin"))
    edges: list[Edge] = []
    for number, state in enumerate(states):
        event = Formula(first=states[0], event=state)
        if state.kind == "begin":
            edges.append(Edge(number, "begin", number + 1, event))
        else:
            edges.append(Edge(number, "take", number, event))
            edges.append(Edge(number, "proceed", number + 1, Formula(first=states[0])))
        if number > 0:
            edges.append(Edge(number, "ignore", number, event))
    final = State("F", None, "final")
    return replace(automaton, states=(*states, final), edges=tuple(edges))


def _check_sequence(structure: Structure) -> None:
    if structure.operator is Operator.AND and len(structure.items) > 1:
        raise UnsupportedPatternError(
            f"{structure}: an automaton reads items in one order; write OR of SEQs, or evaluate "
            "with lazy-nfa or tree"
        )
    for item in structure.items:
        if isinstance(item, Structure):
            _check_sequence(item)


# -- step 2 -----------------------------------------------------------------------------------------


def predicates(automaton: Automaton) -> Automaton:
    """Step 2: types, the order of items, equivalence tests, and each conjunct at its last identifier.

    An UnsupportedPatternError for a conjunct that compares every event of a complete Kleene
    variable with something, where neither the least nor the greatest value decides.
    """
    pattern = automaton.pattern
    variables = {variable.name: variable for variable in pattern.positive}
    shared = pattern.equivalences
    if pattern.strategy.attribute is not None:
        shared = tuple(dict.fromkeys((*shared, pattern.strategy.attribute)))
    formulas: dict[tuple[int, str], Formula] = {}
    for edge in automaton.edges:
        state, formula = automaton.states[edge.state], edge.formula
        if edge.writes and state.variable is not None:
            # A run reads later events only, which is all that ORDER BY arrival asks for.
            follows = edge.kind == "begin" and edge.state > 0 and pattern.order == "time"
            formula = replace(
                formula,
                type=variables[state.variable].type,
                ordered=automaton.states[edge.state - 1] if follows else None,
                equivalences=shared if edge.state > 0 else (),
            )
        formulas[edge.state, edge.kind] = formula
    for clause in _conjuncts(pattern):
        for place, placed in _placed(clause, automaton.states):
            formula = formulas[place]
            formulas[place] = replace(formula, clauses=(*formula.clauses, placed))
    return automaton.with_formulas(lambda edge: formulas[edge.state, edge.kind])


def _conjuncts(pattern: Pattern) -> Iterator[Clause]:
    """The conditions on positive variables alone."""
    positive = pattern.positive_names
    conditions = map(in_parts, pattern.conditions)
    yield from (clause for clause in conditions if {*clause.variables} <= {*positive})
    if pattern.strategy.attribute is not None and len(positive) == 1:
        # A missing value is in no partition: it differs from itself.
        itself = Attribute(positive[0], pattern.strategy.attribute)
        yield Clause((Comparison("=", itself, itself),))


def _placed(clause: Clause, states: tuple[State, ...]) -> Iterator[tuple[tuple[int, str], Clause]]:
    """The edges of a conjunct, by state and kind, each with the conjunct as it is tested there."""
    begins = {state.variable: k for k, state in enumerate(states) if state.kind == "begin"}
    loops = {state.variable: k for k, state in enumerate(states) if state.kind == "loop"}
    *earlier, last = sorted(clause.variables, key=begins.__getitem__)
    edges: list[tuple[int, str]]
    if last not in loops:
        edges = [(begins[last], "begin")]
    else:
        take, begin = (loops[last], "take"), (begins[last], "begin")
        elements = {_element(term) for term in clause.terms() if _variable(term) == last}
        if not elements.isdisjoint({"last", "all"}):
            edges = [(loops[last], "proceed")]
        elif clause.is_running or "rest" in elements:
            edges = [take]
        else:
            edges = [begin, take] if "each" in elements else [begin]
    for edge in edges:
        complete = [*earlier, last] if edge[1] == "proceed" else earlier
        own = "first" if edge[1] == "begin" and last in loops else "each"
        for part in over_complete(clause, [name for name in complete if name in loops]):
            yield edge, part.with_terms(partial(_of_event, variable=last, element=own))


def _element(term: Attribute | Aggregate) -> str:
    if isinstance(term, Aggregate):
        return "before" if term.before else "all"
    return term.element


def _variable(term: Attribute | Aggregate) -> str:
    return term.attribute.variable if isinstance(term, Aggregate) else term.variable


def _of_event(term: Attribute | Aggregate, variable: str, element: str) -> Expression:
    """An attribute of the current event, which is ``variable``'s, as that of ``element``."""
    if _variable(term) == variable and _element(term) in ("each", "rest"):
        assert isinstance(term, Attribute)
        return replace(term, element=element)
    return term


#: The aggregates that decide whether ``b.x operator y`` for all events of b.
_DECISIVE = {"<": ("max",), "<=": ("max",), ">": ("min",), ">=": ("min",), "=": ("min", "max")}


def over_complete(clause: Clause, variables: Iterable[str]) -> list[Clause]:
    """A conjunct on complete Kleene variables, as conjuncts on aggregates of them.

    An UnsupportedPatternError if it needs all values of a variable.
    """
    clauses = [clause]
    for name in variables:
        clauses = [part for whole in clauses for part in _over_all(whole, name)]
    return clauses


def _over_all(clause: Clause, variable: str) -> Iterator[Clause]:
    """A conjunct on a complete Kleene variable, with the least or greatest value for ``b.x``."""

    def of_each(side: Expression) -> bool:
        return any(
            _variable(term) == variable and _element(term) in ("each", "rest", "previous", "before")
            for term in terms_of(side)
        )

    mentioning = [c for c in clause.comparisons if of_each(c.left) or of_each(c.right)]
    if not mentioning:
        yield clause
        return
    comparison = mentioning[0]
    operator, left, right = comparison.operator, comparison.left, comparison.right
    if of_each(right):
        operator, left, right = MIRRORED[operator], right, left
    if (
        len(mentioning) > 1
        or of_each(right)
        or operator not in _DECISIVE
        or not (isinstance(left, Attribute) and left.element == "each")
    ):
        raise _unbounded(clause, variable)
    for function in _DECISIVE[operator]:
        decisive = Comparison(operator, Aggregate(function, left), right)
        yield Clause(tuple(decisive if c == comparison else c for c in clause.comparisons))


def _unbounded(clause: Clause, variable: str) -> UnsupportedPatternError:
    return UnsupportedPatternError(
        f"condition {clause} compares each event of {variable} when the set is complete, for which "
        f"an automaton would have to store all of them; compare {variable}[1], {variable}[last] or "
        "an aggregate; lazy-nfa and tree run it under STRATEGY any",
        culprit=clause,
    )


# -- steps 3 to 6 -----------------------------------------------------------------------------------


def event_selection(automaton: Automaton) -> Automaton:
    """Step 3: ignore edges, by the event selection strategy.

    An UnsupportedPatternError for STRATEGY consuming.
    """
    strategy = automaton.pattern.strategy

    def ignored(edge: Edge) -> Formula:
        formula = edge.formula
        if edge.kind != "ignore":
            return formula
        match strategy.name:
            case "any":
                return formula
            case "strict_contiguity":
                return replace(formula, never=True)
            case "partition_contiguity":
                assert strategy.attribute is not None
                its_partition = replace(formula, equivalences=(strategy.attribute,))
                return replace(formula, negated=its_partition)
            case "next":
                kind = "take" if automaton.states[edge.state].kind == "loop" else "begin"
                selected = automaton.edge(edge.state, kind).formula
                if selected.always:
                    return replace(formula, never=True)
                return replace(formula, negated=selected)
        raise UnsupportedPatternError(
            f"STRATEGY {strategy} chooses among complete matches, which an automaton has no edge "
            "for; use STRATEGY next, or evaluate with lazy-nfa or tree"
        )

    return automaton.with_formulas(ignored)


def time_window(automaton: Automaton) -> Automaton:
    """Step 4: the window on the edge to F."""
    return _within(automaton, lambda edge: automaton.states[edge.target].kind == "final")


def push_time_window(automaton: Automaton) -> Automaton:
    """Step 5: the window on all edges that consume an event, so that old runs end early."""
    if not automaton.push_window:
        return automaton
    return _within(automaton, lambda edge: edge.consumes and not edge.formula.never)


def _within(automaton: Automaton, applies: Callable[[Edge], bool]) -> Automaton:
    """The automaton with the window on some edges, but for that of a run's first event."""
    window = automaton.pattern.window
    return automaton.with_formulas(
        lambda edge: (
            replace(edge.formula, window=window)
            if edge.state > 0 and applies(edge)
            else edge.formula
        )
    )


def constrain_proceed(automaton: Automaton) -> Automaton:
    """Step 6: proceed edges peek at the current event, which must begin the next item.

    A PlanError for ``peek=False`` under STRATEGY next.
    """

    def constrained(edge: Edge) -> Formula:
        if edge.kind != "proceed" or automaton.states[edge.target].kind == "final":
            return edge.formula
        if automaton.peek:
            return replace(edge.formula, peek=automaton.edge(edge.target, "begin").formula)
        if automaton.pattern.strategy.name == "next":
            raise PlanError(
                f"peek=False: under STRATEGY next a run in {automaton.states[edge.state].name} "
                "would leave the loop on any event and miss matches; leave out peek=False"
            )
        return edge.formula

    return automaton.with_formulas(constrained)


#: The steps of compilation, in their order.
STEPS = (
    structure,
    predicates,
    event_selection,
    time_window,
    push_time_window,
    constrain_proceed,
)


# -- the kind of plan -------------------------------------------------------------------------------


def _from_shape(shape: Any, **notes: Any) -> Automaton:
    """The automaton of a shape: what it is compiled from."""
    match shape:
        case {
            "pattern": str() as text,
            "push_window": bool() as push_window,
            "peek": bool() as peek,
        }:
            found = automaton(text, push_window=push_window, peek=peek)
            if isinstance(found, Automaton):
                return replace(found, **notes)
    raise PlanError(
        f"{shown(shape)} describes no automaton; it is a mapping of the pattern, without OR, "
        "push_window and peek"
    )


def _refused(found: Any, names: Any, who: str) -> NoReturn:
    raise PlanGeneratorError(
        f"{who} generates automata, which are compiled from patterns by cep.automaton; choose a "
        'kind with alternatives, such as kind="order"'
    )


def _unlabelled(shape: Any, label: Any) -> NoReturn:
    raise PlanError("an automaton has no cost; costs are those of order plans and tree plans")


PLAN_KINDS.add(PlanKind("automaton", _from_shape, _refused, _unlabelled))
