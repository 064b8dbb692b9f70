"""Equivalent patterns with fewer or cheaper operators [mei2009]_, section 5.2.1.

Every rule yields patterns with the same matches. One is taken if it has fewer operators, or as many
and cheaper ones, as C_DIS < C_SEQ < C_CON, or else less nesting.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeGuard

from cepbench.arguments import text as text_from
from cepbench.errors import PatternError, UnsupportedPatternError
from cepbench.markup import Html
from cepbench.patterns.expressions import Aggregate, Attribute, Clause, Comparison, Expression
from cepbench.patterns.given import pattern_from
from cepbench.patterns.model import Pattern
from cepbench.patterns.structure import Kind, Operator, Structure, Variable

Item = Variable | Structure

#: Order of the costs of operators of two operands: C_DIS < C_SEQ < C_CON.
_RANK = {Operator.OR: 0, Operator.SEQ: 1, Operator.AND: 2}


@dataclass(frozen=True)
class Rule:
    """A rewrite rule."""

    name: str
    #: What it does, with an example in the notation of [mei2009]_.
    about: str
    #: (pattern, attribute that holds the timestamps or None) → patterns with the same matches.
    candidates: Callable[[Pattern, str | None], Iterator[Pattern]]


@dataclass(frozen=True)
class Step:
    """A rule that was applied, with the patterns before and after it."""

    rule: Rule
    before: Pattern
    after: Pattern


_TABLE = Html(
    """<table class="cep-rewriting"><tr><th>rule</th><th>pattern</th></tr>
<tr><td></td><td><code>{{ first }}</code></td></tr>{% for step in steps %}
<tr><td>{{ step.rule.about }}</td><td><code>{{ step.after }}</code></td></tr>{% endfor %}</table>"""
)


@dataclass(frozen=True)
class Rewriting:
    """What became of a pattern."""

    pattern: Pattern
    #: The rules that were applied; empty if the pattern stayed as it was.
    steps: tuple[Step, ...]

    def describe(self) -> str:
        """The patterns, each with the rule that led to it."""
        first = self.steps[0].before if self.steps else self.pattern
        lines = [f"{first}"]
        for step in self.steps:
            lines += [f"  {step.rule.name}: {step.rule.about}", f"{step.after}"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        first = self.steps[0].before if self.steps else self.pattern
        return str(_TABLE(first=first, steps=self.steps))


def rewrite(pattern: Pattern | str, *, time: str | None = None) -> Rewriting:
    """A pattern with the same matches and fewer or cheaper operators.

    The rules are :data:`RULES`. The first candidate that is simpler is taken, until there is none.
    ``time`` is the attribute that holds the timestamp of each event; without it, conditions on
    times are conditions like others.

    Raises PatternError if it is not a valid pattern.

    Source: [mei2009]_, section 5.2.1, which names two of the rules and the criterion. A group of
    one event becomes a single one, so that its column holds positions instead of lists of one.
    Branches that become equal are one, which changes the numbers of those after it.

    Differs from [mei2009]_: evaluators run the branches of the disjunctive normal form, which
    factoring leaves as they were. What it saves is in plans with
    :class:`~cepbench.planning.plans.tree.Either`, whose shared operators count once in
    ``cost="zstream"``. NOT(B b), NOT(C c) side by side is the canonical form of NOT(OR(B b, C c)).
    """
    pattern = pattern_from(pattern)
    if time is not None:
        time = text_from(time, "time", PatternError)
    steps: list[Step] = []
    while (step := _next_step(pattern, time)) is not None:
        steps.append(step)
        pattern = step.after
    return Rewriting(pattern, tuple(steps))


def _next_step(pattern: Pattern, time: str | None) -> Step | None:
    size = _size(pattern.structure)
    names = pattern.positive_names if pattern.selects else None
    for rule in RULES:
        try:
            for candidate in rule.candidates(pattern, time):
                # Of matches that share events, the first in the order of variables is taken.
                keeps = names is None or candidate.positive_names == names
                if _size(candidate.structure) < size and keeps:
                    return Step(rule, pattern, candidate)
        except UnsupportedPatternError:
            continue  # nested too deep
    return None


def _size(item: Item) -> tuple[int, int, int]:
    """Operators of one or two operands, the sum of their ranks, and operators as written."""
    if isinstance(item, Variable):
        return int(item.kind is not Kind.PLAIN), 0, 0
    binary = max(len(item.items) - 1, 0)
    sizes = [(binary, binary * _RANK[item.operator], 1), *map(_size, item.items)]
    operators, ranks, written = (sum(part) for part in zip(*sizes, strict=True))
    return operators, ranks, written


def _changed(structure: Structure, change: Callable[[Structure], Iterator[Item]]) -> Iterator[Item]:
    """The structure with one of its operators, itself included, replaced."""
    yield from change(structure)
    for place, item in enumerate(structure.items):
        if isinstance(item, Structure):
            for new in _changed(item, change):
                yield _with(structure, place, new)


def _with(structure: Structure, place: int, *new: Item) -> Structure:
    """The structure with other items at the place of one."""
    items = structure.items
    return Structure(structure.operator, (*items[:place], *new, *items[place + 1 :]))


def _structural(
    change: Callable[[Structure], Iterator[Item]],
) -> Callable[[Pattern, str | None], Iterator[Pattern]]:
    """The candidates of a rule that leaves the conditions as they are."""

    def candidates(pattern: Pattern, time: str | None) -> Iterator[Pattern]:
        for item in _changed(pattern.structure, change):
            root = item if isinstance(item, Structure) else Structure(Operator.SEQ, (item,))
            yield replace(pattern, structure=root)

    return candidates


def _single(operator: Operator, items: tuple[Item, ...]) -> Item:
    return items[0] if len(items) == 1 else Structure(operator, items)


# -- rules ------------------------------------------------------------------------------------------


def _flat(structure: Structure) -> Iterator[Item]:
    for place, item in enumerate(structure.items):
        if isinstance(item, Structure) and (
            item.operator is structure.operator or len(item.items) == 1
        ):
            yield _with(structure, place, *item.items)
    if len(structure.items) == 1 and isinstance(structure.items[0], Structure):
        yield structure.items[0]


def _negations_together(structure: Structure) -> Iterator[Item]:
    """Negated items are checked one by one, so that it is the same place in a SEQ or an AND."""
    if structure.operator is Operator.OR:
        return
    for place, item in enumerate(structure.items):
        if (
            isinstance(item, Structure)
            and item.operator is Operator.AND
            and all(variable.kind is Kind.NEGATED for variable in item.variables())
        ):
            yield _with(structure, place, *item.variables())


def _distinct_alternatives(structure: Structure) -> Iterator[Item]:
    if structure.operator is Operator.OR:
        yield _single(Operator.OR, tuple(dict.fromkeys(structure.items)))


def _common_items(structure: Structure) -> Iterator[Item]:
    if structure.operator is not Operator.OR:
        return
    for operator, end in ((Operator.SEQ, -1), (Operator.SEQ, 0), (Operator.AND, None)):
        parts = {
            place: part
            for place, part in enumerate(structure.items)
            if isinstance(part, Structure) and part.operator is operator
        }
        for common in dict.fromkeys(
            item
            for part in parts.values()
            for item in (part.items if end is None else (part.items[end],))
        ):
            rests = {}
            for place, part in parts.items():
                at = part.items.index(common) if common in part.items else None
                if at is not None and end in (None, 0 if at == 0 else at - len(part.items)):
                    rest = (*part.items[:at], *part.items[at + 1 :])
                    if any(_is_bound(v) for item in rest for v in item.variables()):
                        rests[place] = _single(operator, rest)
            if len(rests) > 1:
                either = Structure(Operator.OR, tuple(rests.values()))
                first, *others = rests
                leads = parts[first].items[0] == common
                pair = (common, either) if leads else (either, common)
                items = [
                    Structure(operator, pair) if place == first else item
                    for place, item in enumerate(structure.items)
                    if place not in others
                ]
                yield _single(Operator.OR, tuple(items))


def _is_bound(variable: Variable) -> bool:
    """Whether an alternative with it has a meaning of its own."""
    return variable.kind in (Kind.PLAIN, Kind.KLEENE)


def _distinct_negations(pattern: Pattern, time: str | None) -> Iterator[Pattern]:
    def is_repeated(variable: Variable, other: Variable) -> bool:
        conditions = {
            name: [clause for clause in pattern.conditions if name in clause.variables]
            for name in (variable.name, other.name)
        }
        renamed = {c.renamed({other.name: variable.name}) for c in conditions[other.name]}
        return variable.type == other.type and {*conditions[variable.name]} == renamed

    def change(structure: Structure) -> Iterator[Item]:
        if structure.operator is Operator.OR:
            return
        for place, item in enumerate(structure.items):
            for later, other in enumerate(structure.items[place + 1 :], place + 1):
                if not _is_negated(item) or not _is_negated(other):
                    # In a SEQ they are at one place if no other item is between them.
                    if structure.operator is Operator.SEQ:
                        break
                elif is_repeated(item, other):
                    yield _with(structure, later)

    for item in _changed(pattern.structure, change):
        assert isinstance(item, Structure)  # only negated items are left out
        left = {variable.name for variable in item.variables()}
        conditions = tuple(c for c in pattern.conditions if left.issuperset(c.variables))
        yield replace(pattern, structure=item, conditions=conditions)


def _is_negated(item: Item) -> TypeGuard[Variable]:
    return isinstance(item, Variable) and item.kind is Kind.NEGATED


def _single_groups(pattern: Pattern, time: str | None) -> Iterator[Pattern]:
    for group in pattern.groups:
        name = group.name
        is_returned = any(name in column.variables for column in pattern.returns)
        is_counted = any(
            isinstance(term, Aggregate)
            and term.function == "count"
            and term.attribute.variable == name
            for clause in pattern.conditions
            for term in clause.terms()
        )
        # Another group would be formed without the event that is bound to this one.
        is_alone = all(
            len(branch.groups) == 1 for branch in pattern.branches() if group in branch.groups
        )
        if group.size != 1 or is_returned or is_counted or not is_alone:
            continue

        def of_one(term: Attribute | Aggregate, name: str = name) -> Expression:
            attribute = term.attribute if isinstance(term, Aggregate) else term
            return Attribute(name, attribute.name) if attribute.variable == name else term

        def single(variable: Variable, group: Variable = group) -> Variable:
            return Variable(group.name, group.type) if variable == group else variable

        yield replace(
            pattern,
            structure=pattern.structure.changed(single),
            # Conditions on i > 1 hold for one event.
            conditions=tuple(
                clause.with_terms(of_one)
                for clause in pattern.conditions
                if name not in clause.running_variables()
            ),
        )


def _ordered_by_time(pattern: Pattern, time: str | None) -> Iterator[Pattern]:
    earlier = {clause: pair for clause in pattern.conditions if (pair := _in_time(clause, time))}

    def change(structure: Structure) -> Iterator[Item]:
        if structure.operator is not Operator.AND or not earlier:
            return
        parts = [item for item in structure.items if _is_chainable(item)]
        # What alternatives bind, or nothing, does not order what is around it.
        bound = {variable.name for part in parts for variable in part.variables()}
        known = {pair for pair in earlier.values() if bound.issuperset(pair)}
        for part in parts:
            known |= part.precedence() if isinstance(part, Structure) else set()
        known = _closed(known)
        follows = {
            (x, y)
            for x, y in itertools.permutations(parts, 2)
            if all((v.name, w.name) in known for v in x.variables() for w in y.variables())
        }
        for x, y in sorted(follows, key=lambda pair: [*map(parts.index, pair)]):
            if not any((x, z) in follows and (z, y) in follows for z in parts):
                pair = Structure(Operator.SEQ, (x, y))
                rest = (item for item in structure.items if item not in (x, y))
                yield _single(Operator.AND, (pair, *rest))

    for item in _changed(pattern.structure, change):
        assert isinstance(item, Structure)  # an AND of two items or more
        branches = [
            ({v.name for v in branch.variables()}, branch.precedence())
            for branch in item.alternatives()
        ]
        implied = {
            clause
            for clause, pair in earlier.items()
            # In the order of arrival events of one time may follow each other.
            if pattern.order == "time"
            and all(pair in ordered for names, ordered in branches if names.issuperset(pair))
        }
        conditions = tuple(clause for clause in pattern.conditions if clause not in implied)
        yield replace(pattern, structure=item, conditions=conditions)


def _in_time(clause: Clause, time: str | None) -> tuple[str, str] | None:
    """The variables of a condition that the events of one are before those of the other."""
    match clause.comparisons:
        case (Comparison("<" | ">" as sign, Attribute(x, left), Attribute(y, right)),):
            if clause.is_elementwise and left == right == time and x != y:
                return (x, y) if sign == "<" else (y, x)
    return None


def _is_chainable(item: Item) -> bool:
    """Whether an item is bound as a whole, without alternatives and what has no event of its own."""
    has_or = isinstance(item, Structure) and item.has(Operator.OR)
    return not has_or and all(map(_is_bound, item.variables()))


def _closed(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The transitive closure."""
    while more := {(x, z) for x, y in pairs for w, z in pairs if y == w} - pairs:
        pairs = pairs | more
    return pairs


#: The rules, in the order in which they are tried.
RULES = (
    Rule("single", "B^1 is B", _single_groups),
    Rule("flatten", "A;(B;C) is A;B;C, and so are & and |", _structural(_flat)),
    Rule("negations", "!B & !C is !(B|C)", _structural(_negations_together)),
    Rule("alternatives", "A|A is A", _structural(_distinct_alternatives)),
    Rule("repeated negations", "!B, !B at one place is !B", _distinct_negations),
    Rule(
        "common item",
        "(A;C)|(B;C) is (A|B);C, on either side, and for &",
        _structural(_common_items),
    ),
    Rule("order", "A & B where A is before B is A;B", _ordered_by_time),
)
