"""Random patterns with negation, Kleene closure, disjunction, nesting and selection strategies."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from hypothesis import strategies as st

from cepbench.engines.automata.compilation import automaton
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.detection.tasks import constructs_of
from cepbench.errors import PatternOperatorError, UnsupportedPatternError
from cepbench.patterns.concepts import ConceptHierarchy
from cepbench.patterns.model import (
    ANY,
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Expression,
    Kind,
    Operator,
    Pattern,
    Strategy,
    Structure,
    Variable,
    Window,
)
from cepbench.patterns.negations import Check, groups_formed
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from tests.engines.detection.strategies import (
    MORNING,
    OPERATORS,
    TYPES,
    Case,
    comparisons,
    event_frames,
    order_plans,
    tree_plans,
    types_of_items,
    windows,
)
from tests.naive.concepts import types_of_event

#: Ways to bind events that the brute-force twin is asked to go through.
AFFORDABLE = 2_000


@dataclass(frozen=True)
class Family:
    """What the patterns of a family may contain.

    Attributes
    ----------
    kinds : tuple of Kind
        Kinds to draw the variables' kinds from, as often as they are given.
    operators : tuple of Operator
    nested : bool
        Whether operators may stand inside operators.
    strategies : tuple of str
    types : tuple of int
        How many event types there may be.
    several_ways : bool
        Whether patterns are ORs of many ways to put the same few variables together, so that
        branches over equal names and over different ones bind the same events.
    rows : tuple of tuple of Kind
        Kinds of the first variables, one row to be drawn; by default they are drawn by themselves.
    """

    kinds: tuple[Kind, ...] = (Kind.PLAIN,)
    operators: tuple[Operator, ...] = (Operator.SEQ, Operator.AND)
    nested: bool = False
    strategies: tuple[str, ...] = ("any",)
    types: tuple[int, ...] = (2, 3, 1, 4)
    several_ways: bool = False
    rows: tuple[tuple[Kind, ...], ...] = ()


_NOT = (Kind.PLAIN, Kind.NEGATED)
_KL = (Kind.PLAIN, Kind.KLEENE)
_BOTH = (Kind.PLAIN, Kind.KLEENE, Kind.NEGATED)
#: Kinds of items in order, with groups where they mostly have a meaning.
_GROUPS = tuple(
    tuple({"p": Kind.PLAIN, "n": Kind.NEGATED, "g": Kind.GROUP}[letter] for letter in row)
    for row in ("pgpn", "gpnp", "pngp", "pgpg", "npgp", "pgnp", "gpgp", "ppgn")
)
_CONTIGUOUS = ("strict_contiguity", "partition_contiguity")

_ELEMENTS = ("each", "first", "last", "whole", "previous", "before", "rest")

#: One for each construct, and all of them together.
FAMILIES = {
    "negation": Family(_NOT),
    "nested negation": Family(_NOT, nested=True),
    "Kleene": Family(_KL),
    "nested Kleene": Family(_KL, nested=True),
    "Kleene and negation": Family(_BOTH, nested=True),
    "disjunction": Family(operators=(Operator.OR, *Operator), nested=True),
    "twins": Family(_BOTH, types=(1, 2), several_ways=True),
    "consuming twins": Family(_KL, types=(1, 2), several_ways=True, strategies=("consuming",)),
    "consuming disjunction": Family(
        _BOTH, (Operator.OR, *Operator), nested=True, strategies=("consuming",)
    ),
    "contiguity": Family(_BOTH, nested=True, strategies=_CONTIGUOUS, types=(2, 1)),
    "consuming": Family(_BOTH, nested=True, strategies=("consuming",)),
    "everything": Family(
        _BOTH,
        tuple(Operator),
        nested=True,
        strategies=("any", "any", "consuming", *_CONTIGUOUS),
    ),
}

#: Patterns that an automaton runs, with the strategies that the others have too, and with next.
AUTOMATA = {
    "automaton": Family(
        _BOTH, (Operator.SEQ,), types=(2, 1, 3), strategies=("any", "any", *_CONTIGUOUS)
    ),
    "automata": Family(
        _BOTH,
        (Operator.OR, Operator.SEQ, Operator.SEQ),
        nested=True,
        types=(2, 1),
        strategies=("any", "any", *_CONTIGUOUS),
    ),
}
NEXT = {name: replace(family, strategies=("next",)) for name, family in AUTOMATA.items()}

#: The same for groups, which not every engine runs.
GROUP_FAMILIES = {
    "groups": Family(
        rows=_GROUPS, operators=(Operator.SEQ, Operator.SEQ, Operator.AND), nested=True
    ),
    "groups in a sequence": Family(rows=_GROUPS, operators=(Operator.SEQ,)),
    "groups and disjunction": Family(
        rows=_GROUPS, operators=tuple(Operator), nested=True, types=(2, 1)
    ),
    "consuming groups": Family(
        rows=_GROUPS,
        operators=(Operator.SEQ, Operator.SEQ, Operator.AND),
        strategies=("consuming",),
    ),
    "consuming groups and disjunction": Family(
        rows=_GROUPS,
        operators=(Operator.OR, *Operator),
        nested=True,
        types=(2, 1),
        strategies=("consuming",),
    ),
}


@st.composite
def construct_cases(
    draw: st.DrawFn,
    family: Family,
    *,
    hierarchy: ConceptHierarchy | None = None,
    sizes: tuple[int, int] = (1, 4),
    conditions: tuple[int, int] = (0, 2),
    division: bool = True,
    orders: tuple[str, ...] = ("time", "time", "arrival"),
) -> Case:
    """A pattern of the family, maybe under a hierarchy, with a stream of up to 14 events."""
    types = TYPES[: draw(st.sampled_from(family.types))]
    size = draw(st.integers(*sizes))
    kinds = st.tuples(*[st.sampled_from(family.kinds)] * size)
    if family.rows:
        size = max(2, size)
        kinds = st.sampled_from(family.rows)
    variables = tuple(
        _sized(Variable(name, draw(types_of_items(types)), kind), draw)
        for name, kind in zip("abcdefg"[:size], draw(kinds), strict=False)
    )
    structure = draw((_several_ways if family.several_ways else _structures)(variables, family))
    if _fewest_positive(structure) == 0:
        structure = _without_negation(structure)
    for variable in variables[:: draw(st.sampled_from([1, -1]))]:
        # One group after the other becomes plain, until the others may stay.
        if variable.kind is Kind.GROUP and not _is_allowed(structure):
            structure = _with_plain(structure, variable.name)
    groups = _variables_of_branches(structure)
    is_datetime = draw(st.booleans())
    pattern = Pattern(
        structure,
        tuple(
            clause
            for clause in draw(
                st.lists(
                    _clauses(groups, division=division),
                    min_size=conditions[0],
                    max_size=conditions[1],
                )
            )
            if _is_allowed(structure, clause)
        ),
        draw(windows("seconds" if is_datetime else "units", (8, 20, 5, 12, 3, 20, 1, 0))),
        draw(_strategies(family)),
        equivalences=draw(st.sampled_from([(), (), (), ("y",), ("s",), ("x", "y")])),
        order=draw(st.sampled_from(orders)),
    )
    branches = pattern.branches()
    if (
        pattern.strategy.name == "consuming"
        and len(branches) > 1
        and waits(pattern)
        and not any(branch.groups for branch in branches)
    ):
        pattern = replace(pattern, strategy=ANY)  # the other one is refused
    pattern = pattern.with_hierarchy(hierarchy)
    events = draw(event_frames(types, most=14))
    if is_datetime:
        events["time"] = MORNING + events["time"] * 10**9
    return Case(pattern, affordable(pattern, events))


def _sized(variable: Variable, draw: st.DrawFn) -> Variable:
    """A group with a size; other variables as they are."""
    if variable.kind is not Kind.GROUP:
        return variable
    return replace(variable, size=draw(st.sampled_from(["+", "*", 2, "+", "*", 1, 3])))


def _is_allowed(structure: Structure, *clauses: Clause) -> bool:
    """Whether groups stand where they have a meaning, and conditions compare no two of them."""
    try:
        Pattern(structure, clauses, Window(1, "units"))
    except PatternOperatorError:
        return False
    return True


def waits(pattern: Pattern) -> bool:
    """Whether matches wait for an event of a NOT or a group that may come when all others have."""
    for branch in pattern.branches():
        before = branch.structure.precedence()
        followed = {x for x, y in before if y in branch.positive_names}
        if {variable.name for variable in branch.negated} - followed:
            return True
        closed = {x for x, y in before if y in branch.planned_names}
        if {variable.name for variable in branch.groups} - closed:
            return True
    return False


def able(pattern: Pattern) -> list[str]:
    """The evaluators that run the pattern's constructs and its selection strategy."""
    needed = constructs_of(pattern)
    return [
        e.name
        for e in EVALUATORS.values()
        if pattern.strategy.name in e.strategies
        and needed <= set(e.constructs)
        and ("automaton" not in e.kinds or _has_automaton(pattern))
    ]


def _has_automaton(pattern: Pattern) -> bool:
    """Whether no condition needs all events of a Kleene variable that is complete."""
    try:
        automaton(pattern)
    except UnsupportedPatternError:
        return False
    return True


def affordable(pattern: Pattern, events: pd.DataFrame) -> pd.DataFrame:
    """The events up to where trying all ways to bind them would take too long."""
    seen: Counter[str | None] = Counter()
    for position, kind in enumerate(events["type"]):
        seen.update(types_of_event(kind, pattern.hierarchy))
        if _ways(pattern.structure, seen) > AFFORDABLE:
            return events.iloc[:position]
    return events


def _ways(part: Variable | Structure, seen: Mapping[str | None, int]) -> int:
    if isinstance(part, Variable):
        count = seen[part.type]
        if part.kind is Kind.GROUP:
            return max(1, count) if isinstance(part.size, int) else 1
        return {Kind.PLAIN: count, Kind.KLEENE: 2**count - 1, Kind.NEGATED: 1}[part.kind]
    combine = sum if part.operator is Operator.OR else math.prod
    return combine(_ways(item, seen) for item in part.items)


@st.composite
def _structures(draw: st.DrawFn, variables: tuple[Variable, ...], family: Family) -> Structure:
    """An operator over the variables, maybe with operators inside.

    The items of an OR may be several ways to put the same variables together.
    """
    operator = draw(st.sampled_from(family.operators))
    if operator is Operator.OR and len(variables) > 1 and draw(st.booleans()):
        items: list[Variable | Structure] = []
        for _ in range(draw(st.integers(2, 3))):
            some = draw(st.permutations(variables))[: draw(st.integers(1, len(variables)))]
            items.append(draw(_structures(tuple(some), family)) if len(some) > 1 else some[0])
        return Structure(operator, tuple(items))
    if not family.nested or len(variables) < 2:
        return Structure(operator, variables)
    cuts = sorted(draw(st.sets(st.integers(1, len(variables) - 1), min_size=1)))
    parts = [variables[i:j] for i, j in itertools.pairwise([0, *cuts, len(variables)])]
    return Structure(
        operator,
        tuple(p[0] if len(p) == 1 else draw(_structures(p, family)) for p in parts),
    )


@st.composite
def _several_ways(draw: st.DrawFn, variables: tuple[Variable, ...], family: Family) -> Structure:
    """An OR over SEQs and ANDs of a few of the variables, each way drawn for itself."""
    items = []
    for _ in range(draw(st.integers(2, 5))):
        some = draw(st.permutations(variables))[: draw(st.integers(1, min(2, len(variables))))]
        items.append(Structure(draw(st.sampled_from(family.operators)), tuple(some)))
    return Structure(Operator.OR, tuple(items))


def _fewest_positive(part: Variable | Structure) -> int:
    if isinstance(part, Variable):
        return int(part.kind is not Kind.NEGATED)
    combine = min if part.operator is Operator.OR else sum
    return combine(_fewest_positive(item) for item in part.items)


def _without_negation(part: Any) -> Any:
    if isinstance(part, Structure):
        return replace(part, items=tuple(map(_without_negation, part.items)))
    return replace(part, kind=Kind.PLAIN) if part.kind is Kind.NEGATED else part


def _with_plain(part: Any, name: str) -> Any:
    if isinstance(part, Structure):
        return replace(part, items=tuple(_with_plain(item, name) for item in part.items))
    return Variable(part.name, part.type) if part.name == name else part


def _variables_of_branches(part: Variable | Structure) -> list[dict[str, Kind]]:
    """For every choice at the ORs the variables there are, with their kinds."""
    if isinstance(part, Variable):
        return [{part.name: part.kind}]
    parts = [_variables_of_branches(item) for item in part.items]
    if part.operator is Operator.OR:
        return list(itertools.chain(*parts))
    return [
        {name: kind for group in groups for name, kind in group.items()}
        for groups in itertools.product(*parts)
    ]


@st.composite
def _clauses(draw: st.DrawFn, groups: list[dict[str, Kind]], *, division: bool) -> Clause:
    """One or two comparisons over one or two variables of a branch, at most one of them negated."""
    kinds = draw(st.sampled_from(groups))
    names = draw(st.permutations(list(kinds)))[: draw(st.integers(1, 2))]
    if all(kinds[name] is Kind.NEGATED for name in names):
        names = names[:1]
    count = draw(st.sampled_from([1, 1, 1, 2]))
    sets = [name for name in names if kinds[name] in (Kind.KLEENE, Kind.GROUP)]
    return Clause(
        tuple(
            draw(
                _set_comparisons(names, sets)
                if sets and draw(st.integers(0, 3))
                else comparisons(names, division=division)
            )
            for _ in range(count)
        )
    )


@st.composite
def _set_comparisons(draw: st.DrawFn, names: Sequence[str], sets: Sequence[str]) -> Comparison:
    """A comparison of something of a set with something of the same or another variable."""
    # An index that runs over the elements of two sets is refused.
    elements = _ELEMENTS if len(sets) == 1 else _ELEMENTS[:-3]
    left = draw(_of_set(sets[0], elements))
    other = names[-1] if names[-1] != sets[0] else names[0]
    right = draw(
        _of_set(other, elements)
        if other in sets
        else st.builds(Attribute, st.just(other), st.sampled_from("xy"))
        | st.integers(-1, 4).map(lambda value: Constant(float(value)))
    )
    if draw(st.integers(0, 3)) == 0:
        right = Arithmetic(draw(st.sampled_from("+-*")), right, Constant(2.0))
    return Comparison(draw(st.sampled_from(OPERATORS)), left, right)


@st.composite
def _of_set(draw: st.DrawFn, name: str, elements: Sequence[str]) -> Expression:
    element = draw(st.sampled_from(elements))
    column = draw(st.sampled_from("xy"))
    if element in ("whole", "before"):
        function = draw(st.sampled_from(["sum", "avg", "min", "max", "count"]))
        return Aggregate(function, Attribute(name, column), before=element == "before")
    return Attribute(name, column, element)


@st.composite
def _strategies(draw: st.DrawFn, family: Family) -> Strategy:
    name = draw(st.sampled_from(family.strategies))
    if name == "any":
        return ANY
    if name == "partition_contiguity":
        return Strategy(name, draw(st.sampled_from("ssyx")))
    return Strategy(name)


@st.composite
def placed_plans(draw: st.DrawFn, branch: Pattern) -> TreePlan:
    """A tree, and nodes for some of the groups and negated variables of a pattern without OR."""
    plan = draw(tree_plans(branch.planned_names))
    placements: dict[str, tuple[str, ...]] = {}
    for variable in (*branch.groups, *branch.negated):
        check = Check.of(branch, variable.name)
        grouped = {node: groups_formed(branch, {*node}, placements) for node in plan.nodes()}
        nodes = [node for node in grouped if check.is_exact_at({*node} | grouped[node])]
        if variable.kind is Kind.NEGATED:
            nodes += [node for node in grouped if check.is_tied_to({*node} | grouped[node])]
        if draw(st.booleans()):
            placements[variable.name] = draw(st.sampled_from(nodes))
    return replace(plan, placements=placements)


@st.composite
def plans_of_kind(draw: st.DrawFn, kind: str, pattern: Pattern) -> OrderPlan | TreePlan | UnionPlan:
    """Any plan of orders, or of trees with placements: of each branch one."""
    plans = [
        draw(placed_plans(branch) if kind == "tree" else order_plans(branch.planned_names))
        for branch in pattern.branches()
    ]
    return plans[0] if len(plans) == 1 else UnionPlan(tuple(plans))


@st.composite
def branch_plans(
    draw: st.DrawFn, evaluator: str, pattern: Pattern
) -> OrderPlan | TreePlan | UnionPlan | None:
    """Plans that the evaluator runs: of each branch one, all of them orders or all trees."""
    kinds = [kind for kind in ("order", "tree") if kind in EVALUATORS[evaluator].kinds]
    if not kinds:
        return None
    return draw(plans_of_kind(draw(st.sampled_from(kinds)), pattern))
