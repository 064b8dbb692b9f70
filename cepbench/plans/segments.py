"""Segments of sequences, and which of them are computed together.

A query SEQ(A, B, C, D) may be chopped into the segments (A, B) and (C, D), whose counts are connected
[qi2014]_, section 4.2. Counts of a segment are kept in a table with a row for each event that begins
it, and a column for each item. Segments of several queries can share columns from the first one on,
as in the PreTree of section 4.1: the columns of a table form a tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from cepbench.errors import PlanError
from cepbench.patterns.model import (
    Attribute,
    Clause,
    Comparison,
    Expression,
    Kind,
    Pattern,
    Variable,
    Window,
)

#: A condition: its comparisons as texts, with places of items for names of variables.
Condition = frozenset[str]

#: A NOT: the type, and the conditions on the event.
Negation = tuple[str | None, frozenset[Condition]]

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}


@dataclass(frozen=True)
class Step:
    """An item of a segment, without the names of variables: equal steps count the same events.

    Attributes
    ----------
    type : str or None
        None for an event of any type.
    kind : Kind
    conditions : frozenset
        Those on this item alone, or on it and the first one.
    negations : frozenset
        Each NOT before the next item, which may be that of the next segment: ``(A, B)`` and
        ``(A, B, !C)`` are counted apart [qi2014]_, section 3.3.
    """

    type: str | None
    kind: Kind
    conditions: frozenset[Condition]
    negations: frozenset[Negation]

    @property
    def is_set(self) -> bool:
        """Whether a match has a set of its events."""
        return self.kind is Kind.KLEENE

    def __str__(self) -> str:
        name = Variable("", self.type).type_text + "+" * self.is_set
        forbidden = sorted(Variable("", type).type_text for type, _ in self.negations)
        return " ".join([name, *(f"!{type}" for type in forbidden)])


@dataclass(frozen=True)
class Segment:
    """Neighbouring items of a query.

    Attributes
    ----------
    query : str
    number : int
        0 for the first segment of the query.
    names : tuple of str
        Its positive variables.
    equivalences : frozenset of str
        The attributes of ``[attr]`` and GROUP BY, over which the query is partitioned.
    leading : frozenset
        Each NOT before the first item of the query, with the window in which it looks back.
    steps : tuple of Step
        One for each variable.
    """

    query: str
    number: int
    names: tuple[str, ...]
    equivalences: frozenset[str]
    leading: frozenset[tuple[Negation, Window]]
    steps: tuple[Step, ...]

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for segments with equal counts, except for the window."""
        return self.equivalences, self.leading, self.steps

    @property
    def start(self) -> tuple[object, ...]:
        """Equal for segments with equal rows, those of the events that begin them."""
        return self.equivalences, self.leading, replace(self.steps[0], negations=frozenset())

    def prefixes(self) -> Iterator[tuple[Step, ...]]:
        """Its columns, each the steps from the first one on."""
        return (self.steps[: k + 1] for k in range(len(self.steps)))

    def __str__(self) -> str:
        return ", ".join(map(str, self.steps))


@dataclass(frozen=True)
class SegmentTable:
    """Segments that are counted together: a row for each event that begins them.

    Attributes
    ----------
    segments : tuple of Segment
        In the order of the queries.
    """

    segments: tuple[Segment, ...]

    @cached_property
    def columns(self) -> tuple[tuple[Step, ...], ...]:
        """The steps of each column from the first one on, each after those that it continues."""
        return tuple(dict.fromkeys(p for each in self.segments for p in each.prefixes()))

    @property
    def is_shared(self) -> bool:
        """Whether several segments have a column in common."""
        return len(self.columns) < sum(len(each.steps) for each in self.segments)

    def users(self, column: tuple[Step, ...]) -> tuple[Segment, ...]:
        """The segments that need a column."""
        return tuple(s for s in self.segments if s.steps[: len(column)] == column)


def segments_of(query: str, pattern: Pattern, cuts: tuple[int, ...]) -> tuple[Segment, ...]:
    """The segments of a query.

    Parameters
    ----------
    query : str
    pattern : Pattern
    cuts : tuple of int
        After how many of its positive items it is chopped, in ascending order.

    Raises
    ------
    PlanError
        If it is not a SEQ of plain, Kleene and negated items under any match, or a condition is
        neither on one item alone nor on the first one of a segment and another one of it.
    """
    construct = _obstacle(pattern)
    if construct is not None:
        raise PlanError(f"query {query!r} has {construct}, and is not counted by segments")
    matches = pattern.without_aggregate()
    names = matches.positive_names
    places = {name: place for place, name in enumerate(names)}
    first_of = [max((cut for cut in cuts if cut <= place), default=0) for place in places.values()]
    conditions: list[set[Condition]] = [set() for _ in names]
    for clause in matches.conditions:
        on = sorted(places[name] for name in clause.variables if name in places)
        if not on and len(clause.variables) == 1:
            continue  # of a NOT
        if not 0 < len(clause.variables) == len(on) or not _is_counted(
            clause, on, first_of, matches
        ):
            raise PlanError(
                f"query {query!r}: the condition {clause} is neither on one item nor on the first "
                f"item of a segment and another one of it; the segments begin at "
                f"{', '.join(names[k] for k in sorted({*first_of}))}"
            )
        conditions[on[-1]].add(_canonical(clause, {name: places[name] for name in names}, first_of))
    negations: list[set[Negation]] = [set() for _ in range(len(names) + 1)]
    for variable in matches.negated:
        own = (c for c in matches.conditions if c.variables == (variable.name,))
        forbidden = frozenset(_canonical(clause, {variable.name: 0}, [0]) for clause in own)
        negations[_place(variable, matches)].add((variable.type, forbidden))
    steps = tuple(
        Step(variable.type, variable.kind, frozenset(its), frozenset(behind))
        for variable, its, behind in zip(
            matches.positive, conditions, [*negations[1:]], strict=True
        )
    )
    leading = frozenset((each, matches.window) for each in negations[0])
    return tuple(
        Segment(
            query, number, names[begin:end], frozenset(matches.equivalences),
            leading if number == 0 else frozenset(), steps[begin:end],
        )
        for number, (begin, end) in enumerate(pairwise((0, *cuts, len(names))))
    )  # fmt: skip


def tables_of(segments: Iterable[Segment], *, shares_prefixes: bool) -> tuple[SegmentTable, ...]:
    """The tables of all segments of a workload, in the order of their first segments.

    Parameters
    ----------
    segments : iterable of Segment
    shares_prefixes : bool
        Whether all segments that begin with the same events are in one table; otherwise only equal
        ones after the first cut of their queries are.
    """
    found: dict[object, list[Segment]] = {}
    for each in segments:
        alone = each.query if each.number == 0 else None
        key = each.start if shares_prefixes else (each.signature, alone)
        found.setdefault(key, []).append(each)
    return tuple(SegmentTable(tuple(each)) for each in found.values())


def _obstacle(pattern: Pattern) -> str | None:
    """The first construct because of which a query is not counted by segments; None if there is none."""
    matches = pattern.without_aggregate()
    if matches.strategy.name != "any":
        return f"STRATEGY {matches.strategy.name}"
    if matches.output != "all":
        return f"OUTPUT {matches.output}"
    if len(matches.structure.alternatives()) > 1:
        return "OR"
    if matches.groups:
        return f"the group {matches.groups[0]}"
    before = matches.structure.precedence()
    if not all(pair in before for pair in pairwise(matches.positive_names)):
        return "AND"
    for variable in matches.negated:
        if _place(variable, matches) == len(matches.positive):
            return f"{variable}, at the end"
    grouped = {key.attribute for key in pattern.group_by}
    apart = grouped.difference(matches.equivalences)
    if apart:
        return f"GROUP BY {min(apart)} of one item"
    if len(matches.positive) == 1 and not grouped.issuperset(matches.equivalences):
        return f"[{', '.join(matches.equivalences)}] of a single item"
    return None


def _place(variable: Variable, pattern: Pattern) -> int:
    """How many positive items stand before a negated one."""
    before = pattern.structure.precedence()
    return sum((name, variable.name) in before for name in pattern.positive_names)


def _is_counted(clause: Clause, on: list[int], first_of: list[int], pattern: Pattern) -> bool:
    """Whether a condition can be tested on an event alone, or with the event that began its row."""
    if not all(isinstance(term, Attribute) for term in clause.terms()):
        return False
    elements = {attribute.element for attribute in clause.attributes()}
    if len(on) == 1:
        return len(elements) == 1 and elements <= {"each", "first", "rest"}
    first, other = on
    kinds = {pattern.positive[first].kind}
    compared = [(c.left, c.right) for c in clause.comparisons]
    return (
        first == first_of[other]
        and kinds == {Kind.PLAIN}
        and elements == {"each"}
        and len(compared) == 1
        and all(isinstance(side, Attribute) for side in compared[0])
    )


def _canonical(clause: Clause, places: dict[str, int], first_of: list[int]) -> Condition:
    """A clause with places in the segment for names, each comparison with its lesser side first."""

    def placed(term: Expression) -> Expression:
        assert isinstance(term, Attribute)
        place = places[term.variable]
        return replace(term, variable=f"_{place - first_of[place]}")

    return frozenset(
        str(min(c, _mirrored(c), key=str)) for c in clause.with_terms(placed).comparisons
    )


def _mirrored(comparison: Comparison) -> Comparison:
    return Comparison(_MIRRORED[comparison.operator], comparison.right, comparison.left)
