"""Negated items as edges on which runs end, where an event forbids a match as soon as it comes.

A run that waits for item y after item x ends at an event that a NOT between the two forbids: all its
matches would bind y later. In the loop of a Kleene item x it goes on, but may leave the loop only
after a further event of x, behind which the forbidden event no longer stands.

Source: the future work of [agrawal2008]_, section 8, whose own evaluation (section 3.1) filters
complete matches.
"""

from __future__ import annotations

from dataclasses import replace

from cepbench.engines.automata.compilation import over_complete
from cepbench.engines.automata.model import Automaton
from cepbench.engines.automata.states import Edge, Formula, State
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.model import Clause, Variable, quoted_unless_plain
from cepbench.patterns.times import in_parts


def with_negation(automaton: Automaton) -> Automaton:
    """The automaton with a forbid edge for each NOT that is decided when its event comes.

    These stand between two positive items, and their conditions mention no later item. A forbid edge
    leads from the state of the next item to the final state, where the run ends without a match;
    from a loop to a state of kind ``blocked`` that only a take edge leaves.

    Returns
    -------
    Automaton
        Its other states and edges are those of ``automaton``.
    """
    formulas: dict[int, list[Formula]] = {}
    for variable in automaton.pattern.negated:
        found = _decided(automaton, variable)
        if found is not None:
            at, formula = found
            formulas.setdefault(at, []).append(formula)
    states: list[State] = []
    number: list[int] = []
    for at, state in enumerate(automaton.states):
        if at in formulas and state.kind == "loop":
            states.append(replace(state, name=f"{state.name} blocked", kind="blocked"))
        number.append(len(states))
        states.append(state)
    edges: list[Edge] = []
    for edge in automaton.edges:
        at = edge.state
        edge = replace(edge, state=number[at], target=number[edge.target])
        if edge.kind == "take" and at in formulas:
            edges.append(replace(edge, state=number[at] - 1))
        edges.append(edge)
    for at, its in formulas.items():
        target = number[at] - 1 if automaton.states[at].kind == "loop" else len(states) - 1
        edges += [Edge(number[at], "forbid", target, formula) for formula in its]
    return replace(automaton, states=tuple(states), edges=tuple(edges))


def _decided(automaton: Automaton, negated: Variable) -> tuple[int, Formula] | None:
    """The state at which runs are in the gap of a NOT, and the formula of the events that it forbids.

    None if matches that are not complete do not decide it.
    """
    pattern, names = automaton.pattern, automaton.names
    order = pattern.structure.precedence()
    before = [name for name in names if (name, negated.name) in order]
    attribute = pattern.strategy.attribute
    if (
        not 0 < len(before) < len(names)
        # Events of other partitions, which no run of this one reads, are forbidden, too.
        or (attribute is not None and attribute not in pattern.equivalences)
    ):
        return None
    loops = {state.variable for state in automaton.states if state.kind == "loop"}
    clauses: list[Clause] = []
    for clause in map(in_parts, pattern.conditions):
        if negated.name not in clause.variables:
            continue
        if not {*clause.variables} <= {negated.name, *before}:
            return None
        try:
            clauses += over_complete(clause, [name for name in before if name in loops])
        except UnsupportedPatternError:
            return None  # a filter reads each event of a Kleene variable
    last = max(k for k, state in enumerate(automaton.states) if state.variable == before[-1])
    event = State(quoted_unless_plain(negated.name), negated.name, "begin")
    formula = Formula(
        first=automaton.states[0],
        event=event,
        type=negated.type,
        ordered=automaton.states[last] if pattern.order == "time" else None,
        equivalences=pattern.equivalences,
        clauses=tuple(clauses),
    )
    return (last if automaton.states[last].kind == "loop" else last + 1), formula
