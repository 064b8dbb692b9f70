"""Segments of sequences, and which of them are computed together.

A query SEQ(A, B, C, D) may be chopped into the segments (A, B) and (C, D), whose counts are connected
[qi2014]_, section 4.2. Counts of a segment are kept in a table with a row for each event that begins
it, and a column for each item. Segments of several queries can share columns from the first one on,
as in the PreTree of section 4.1: the columns of a table form a tree.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

from cepbench.errors import PlanError
from cepbench.patterns.expressions import MIRRORED
from cepbench.patterns.model import Attribute, Clause, Comparison, Kind, Pattern, Variable

#: A condition on one event: its comparisons as texts, without the name of the variable.
Condition = frozenset[str]

#: A NOT: the type, and the conditions on the event.
Negation = tuple[str | None, frozenset[Condition]]


@dataclass(frozen=True)
class Step:
    """An item of a segment, without the names of variables: equal steps count the same events."""

    #: None for an event of any type.
    type: str | None
    kind: Kind
    conditions: frozenset[Condition]
    #: Each NOT before the next item, which may be that of the next segment: ``(A, B)`` and ``(A, B,
    #: !C)`` are counted apart [qi2014]_, section 3.3.
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
    """Neighbouring items of a query."""

    query: str
    #: 0 for the first segment of the query.
    number: int
    names: tuple[str, ...]
    #: The attributes of ``[attr]`` and GROUP BY, over which the query is partitioned.
    equivalences: frozenset[str]
    steps: tuple[Step, ...]

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for segments with equal counts, except for the window."""
        return self.equivalences, self.steps

    @property
    def start(self) -> tuple[object, ...]:
        """Equal for segments with equal rows, those of the events that begin them."""
        return self.equivalences, replace(self.steps[0], negations=frozenset())

    def prefixes(self) -> Iterator[tuple[Step, ...]]:
        """Its columns, each the steps from the first one on."""
        return (self.steps[: k + 1] for k in range(len(self.steps)))

    def __str__(self) -> str:
        return ", ".join(map(str, self.steps))


@dataclass(frozen=True)
class SegmentTable:
    """Segments that are counted together: a row for each event that begins them."""

    #: In the order of the queries.
    segments: tuple[Segment, ...]

    @cached_property
    def columns(self) -> tuple[tuple[Step, ...], ...]:
        """The steps of each column from the first one on, each after those that it continues."""
        return tuple(dict.fromkeys(p for each in self.segments for p in each.prefixes()))

    def users(self, column: tuple[Step, ...]) -> tuple[Segment, ...]:
        """The segments that need a column."""
        return tuple(s for s in self.segments if s.steps[: len(column)] == column)


class SequenceItems:
    """The items of a query, from which its segments are made.

    Raises PlanError if it is not a SEQ of plain, Kleene and negated items with conditions on single
    events.
    """

    def __init__(self, query: str, pattern: Pattern) -> None:
        construct = _obstacle(pattern)
        if construct is not None:
            raise PlanError(f"query {query!r} has {construct}, and is not counted by segments")
        self.query, self.pattern = query, pattern.without_aggregate()
        self.names = self.pattern.positive_names
        negations: list[set[Negation]] = [set() for _ in range(len(self.names) + 1)]
        for its in self.pattern.negated:
            negations[_place(its, self.pattern)].add((its.type, self._conditions(its)))
        self._steps = tuple(
            Step(its.type, its.kind, self._conditions(its), frozenset(behind))
            for its, behind in zip(self.pattern.positive, negations[1:], strict=True)
        )

    def _conditions(self, variable: Variable) -> frozenset[Condition]:
        clauses = (c for c in self.pattern.conditions if c.variables == (variable.name,))
        return frozenset(map(_canonical, clauses))

    def segments(self, cuts: Sequence[int]) -> tuple[Segment, ...]:
        """The segments of the query if it is chopped after these numbers of items."""
        shared = frozenset(self.pattern.equivalences)
        spans = enumerate(pairwise((0, *cuts, len(self.names))))
        return tuple(
            Segment(self.query, number, self.names[begin:end], shared, self._steps[begin:end])
            for number, (begin, end) in spans
        )


def tables_of(segments: Iterable[Segment], *, shares_prefixes: bool) -> tuple[SegmentTable, ...]:
    """The tables of all segments of a workload, in the order of their first segments.

    All segments that begin with the same events are in one table if prefixes are shared; otherwise
    only equal ones after the first cut of their queries are.
    """
    found: dict[object, list[Segment]] = {}
    for each in segments:
        found.setdefault(table_key(each, shares_prefixes=shares_prefixes), []).append(each)
    return tuple(SegmentTable(tuple(each)) for each in found.values())


def table_key(segment: Segment, *, shares_prefixes: bool) -> Hashable:
    """Equal for segments of one table."""
    if shares_prefixes:
        return segment.start
    return segment.signature, None if segment.number else segment.query


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
        if _place(variable, matches) in (0, len(matches.positive)):
            return f"{variable} at an end"
    for clause in matches.conditions:
        elements = {t.element if isinstance(t, Attribute) else "set" for t in clause.terms()}
        if len(clause.variables) != 1 or not (
            elements <= {"each", "rest"} or elements == {"first"}
        ):
            return f"the condition {clause}"
    grouped = {key.attribute for key in pattern.group_by}
    apart = [str(key) for key in pattern.group_by if key.attribute not in matches.equivalences]
    if apart:
        return f"GROUP BY {min(apart)}, of one item"
    if len(matches.positive) == 1 and not grouped.issuperset(matches.equivalences):
        return f"[{', '.join(matches.equivalences)}] of a single item"
    return None


def _place(variable: Variable, pattern: Pattern) -> int:
    """How many positive items stand before a negated one."""
    before = pattern.structure.precedence()
    return sum((name, variable.name) in before for name in pattern.positive_names)


def _canonical(clause: Clause) -> Condition:
    """A clause without the name of its variable, each comparison with its lesser side first."""
    return frozenset(
        min(str(c), str(Comparison(MIRRORED[c.operator], c.right, c.left)))
        for c in clause.renamed(dict.fromkeys(clause.variables, "_")).comparisons
    )
