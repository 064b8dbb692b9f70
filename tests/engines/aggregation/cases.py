"""Random patterns with AGG."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from hypothesis import assume
from hypothesis import strategies as st

from cepbench.engines.aggregation.protocol import AggregationTask
from cepbench.engines.aggregation.registry import AGGREGATORS
from cepbench.errors import UnsatisfiablePatternError, UnsupportedPatternError
from cepbench.patterns.aggregation import FUNCTIONS
from cepbench.patterns.model import (
    EventType,
    Grouping,
    Kind,
    MatchAggregate,
    Operator,
    Pattern,
    Structure,
    Variable,
)
from cepbench.patterns.parse import parse
from tests.engines.detection.constructs import (
    FAMILIES,
    GROUP_FAMILIES,
    NEXT,
    Family,
    able,
    affordable,
    construct_cases,
)
from tests.engines.detection.strategies import OPERATORS, Case, event_frames
from tests.engines.detection.test_concepts import HIERARCHIES

_ALL = FAMILIES | GROUP_FAMILIES | NEXT


#: Patterns of which some methods need no matches.
SEQUENCES = {
    "sequence": Family(
        (Kind.PLAIN, Kind.PLAIN, Kind.KLEENE, Kind.NEGATED), (Operator.SEQ,), types=(2, 3, 1)
    )
}


@st.composite
def aggregate_cases(
    draw: st.DrawFn, families: dict[str, Family] = _ALL, *, typed: bool = False
) -> Case:
    """Patterns with GROUP BY and AGG; ``y`` is an integer, ``s`` a text.

    Those that are ``typed`` are under a hierarchy or none, and may group by types of events.
    """
    hierarchy = draw(st.sampled_from([*HIERARCHIES, None])) if typed else None
    family = families[draw(st.sampled_from([*families]))]
    case = draw(construct_cases(family, hierarchy=hierarchy))
    pattern = case.pattern
    if families is _ALL and draw(st.integers(0, 5)) == 0:
        pattern = replace(pattern, output="non_overlap")
    try:
        replace(pattern, aggregates=(MatchAggregate("COUNT"),))
    except UnsupportedPatternError:
        # What could be decided too late stands before another item.
        last = Variable("z", draw(st.sampled_from("AB")))
        pattern = replace(pattern, structure=Structure(Operator.SEQ, (pattern.structure, last)))
    # STRATEGY next has engines of automata only.
    assume(able(pattern))
    names = st.sampled_from(pattern.positive_names)
    values = st.one_of(
        st.just(MatchAggregate("COUNT")),
        st.builds(MatchAggregate, st.just("COUNT"), names),
        st.builds(MatchAggregate, st.just("COUNT"), names, st.just("s")),
        st.builds(MatchAggregate, st.sampled_from(FUNCTIONS), names, st.sampled_from("xy")),
    )
    asked = replace(
        pattern, aggregates=tuple(draw(st.lists(values, min_size=1, max_size=3, unique=True)))
    )
    single = _with_one_event(pattern)
    keys = st.builds(Grouping, st.sampled_from("xys"), st.none() | st.sampled_from(single))
    if typed and single[1:]:
        types = st.builds(EventType, st.none() | st.integers(0, 2))
        keys |= st.builds(Grouping, types, st.sampled_from(single[1:]))
    group_by = tuple(draw(st.lists(keys, max_size=2)))
    return Case(replace(asked, group_by=group_by), affordable(pattern, case.events))


@st.composite
def neighbour_cases(draw: st.DrawFn) -> Case:
    """Sequences with conditions between events that follow each other in a match, and on its first."""
    case = draw(aggregate_cases(SEQUENCES))
    positive = case.pattern.positive
    kinds = st.tuples(st.sampled_from(OPERATORS), st.sampled_from(["x", "y", "x - 1", "2 * x"]))
    texts = []
    for place, variable in enumerate(positive):
        others = []
        if place:
            before = positive[place - 1]
            others.append(
                (before.name + "[last]" * before.is_set, variable.name + "[1]" * variable.is_set)
            )
            others.append((positive[0].name + "[1]" * positive[0].is_set, variable.name))
        if variable.is_set:
            others += [(f"{variable.name}[i-1]", f"{variable.name}[i]")]
            others += [(f"{variable.name}[last]", "")] * (place > 0)
        for one, two in others:
            if draw(st.booleans()):
                operator, value = draw(kinds)
                right = value.replace("x", f"{two}.x").replace("y", f"{two}.y") if two else "1"
                texts.append(f"{one}.x {operator} {right}")
    pattern = replace(case.pattern, conditions=())
    if texts:
        plain = f"PATTERN {pattern.structure} WHERE {' AND '.join(texts)} WITHIN 99 units"
        with suppress(UnsatisfiablePatternError):
            pattern = replace(pattern, conditions=parse(plain).conditions)
    return Case(pattern, case.events)


_ITEMS = st.sampled_from(["A", "B", "ANY", "ANY"])
_COMPARED = st.sampled_from(OPERATORS)


@st.composite
def compared_cases(draw: st.DrawFn, structures: tuple[str, ...] = ("SEQ",)) -> Case:
    """Two or three plain items, of which neighbours are compared, once or not; in a SEQ also NOT between them."""
    names = "abc"[: draw(st.sampled_from([3, 2, 3]))]
    structure = draw(st.sampled_from(structures))
    items, barred = [f"{draw(_ITEMS)} {names[0]}"], []
    for name in names[1:]:
        if structure == "SEQ" and draw(st.booleans()):
            items.append(f"NOT({draw(_ITEMS)} n{name})")
            # Where all events are forbidden, there are few matches.
            forbidden = ["{}.x > 2", "{}.y = -1", "{}.x < 0", "{}.x > 0", None]
            if name == names[-1]:
                forbidden += [f"{{}}.x {its} {names[-2]}.y" for its in ("<", "<=", ">", ">=")]
            if (its := draw(st.sampled_from(forbidden))) is not None:
                barred.append(its.format(f"n{name}"))
        items.append(f"{draw(_ITEMS)} {name}")
    own = {name: draw(st.sampled_from(["{}.x", "{}.y", "{}.y * 2 - 1"])) for name in names}
    pairs = [*pairwise(names)]
    if len(pairs) == 2:
        pairs = draw(st.sampled_from([pairs, pairs, pairs[:1], pairs[1:]]))
    written = []
    for pair in pairs:
        left, right = draw(st.permutations(pair))
        sides = (own[name].format(name) for name in (left, right))
        written.append(f" {draw(_COMPARED)} ".join(sides))
    written += draw(st.sampled_from([[], [], ["[s]"], ["[y]"], ["a.x > 0"], ["[s]", "b.x != 1"]]))
    written += barred
    length = draw(st.sampled_from(["5 units", "< 4 units", "20 units", "2 units"]))
    text = f"PATTERN {structure}({', '.join(items)}) WHERE {' AND '.join(written)} WITHIN {length}"
    try:
        pattern = parse(text)
    except UnsatisfiablePatternError:  # such as a.y < b.y * 2 - 1 and b.x = 1 with [y]
        assume(False)
    if structure == "AND" and len(names) == 3:
        outer = [v.type for v in pattern.variables if v.name != "b"]
        assume(None not in outer and outer[0] != outer[1])
    return Case(pattern, draw(event_frames(("A", "B"))))


def _with_one_event(pattern: Pattern) -> list[str | None]:
    """The variables that every match binds to one event."""
    branches = pattern.structure.alternatives()
    return [None] + [
        variable.name
        for variable in pattern.variables
        if variable.kind is Kind.PLAIN and all(variable in b.variables() for b in branches)
    ]


def methods_for(pattern: Pattern, scope: str) -> list[str]:
    """The methods that run a pattern, without ``dpc``, which needs a stream within the window."""
    found = []
    for entry in (entry for entry in AGGREGATORS.values() if entry.expires):
        with suppress(UnsupportedPatternError):
            entry.open(AggregationTask(pattern, "trigger", scope))
            found.append(entry.name)
    return found
