"""Pattern structures: variables under operators, and their disjunctive normal form."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Container, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.expressions import MAXIMUM_DEPTH, TOO_DEEP, quoted_unless_plain

#: Stands for the type of an item that is of any type, unless it is in double quotes.
ANY_TYPE = "ANY"

#: Limit of the branches of nested disjunctions.
MAXIMUM_BRANCHES = 256

#: Limit of the items of all branches together.
MAXIMUM_BRANCH_ITEMS = 50_000

#: Beyond this, branches are not counted exactly.
_MANY = 10**9


class Operator(StrEnum):
    """The n-ary operators of a pattern [kolchinsky2018]_, section 2.1."""

    SEQ = "SEQ"
    AND = "AND"
    OR = "OR"


class Kind(StrEnum):
    """The unary operator over a variable, if any [kolchinsky2018]_, section 2.1."""

    PLAIN = "plain"
    NEGATED = "negated"
    KLEENE = "kleene"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Variable:
    """One item of a pattern: ``type name``, bound to one event of that type.

    A negated variable, ``NOT(type name)``, requires the absence of such an event. A Kleene
    variable, ``KL(type name)``, is bound to a set of one or more events: every subset of the events
    that fit is a match. A group, ``GROUP(type name, size)``, is bound to all events that fit
    between the others, or to each run of ``size`` successive ones [mei2009]_, section 4.4.5.
    """

    name: str
    #: None for an event of any type, ``ANY name``.
    type: str | None
    kind: Kind = Kind.PLAIN
    #: Of a group: ``+`` for all events that fit, at least one; ``*`` for all, maybe none; or a
    #: number. None for other kinds.
    size: str | int | None = None

    def variables(self) -> Iterator[Variable]:
        """Itself, as the only variable of an item."""
        yield self

    @property
    def is_set(self) -> bool:
        """Whether it is bound to a set of events."""
        return self.kind in (Kind.KLEENE, Kind.GROUP)

    @property
    def type_text(self) -> str:
        """The type as the pattern language writes it."""
        if self.type is None:
            return ANY_TYPE
        quoted = quoted_unless_plain(self.type)
        return f'"{quoted}"' if quoted.upper() == ANY_TYPE else quoted

    def __str__(self) -> str:
        plain = f"{self.type_text} {quoted_unless_plain(self.name)}"
        if self.kind is Kind.GROUP:
            return f"GROUP({plain}, {self.size})"
        operator = {Kind.NEGATED: "NOT", Kind.KLEENE: "KL"}.get(self.kind)
        return f"{operator}({plain})" if operator else plain


@dataclass(frozen=True, slots=True)
class Structure:
    """An operator over items, in order of appearance."""

    operator: Operator
    items: tuple[Variable | Structure, ...]
    #: Nesting depth of operators.
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        inner = (item.depth for item in self.items if isinstance(item, Structure))
        object.__setattr__(self, "depth", 1 + max(inner, default=0))
        if self.depth > MAXIMUM_DEPTH:
            raise UnsupportedPatternError(f"a structure is {TOO_DEEP}")

    def __str__(self) -> str:
        return f"{self.operator}({', '.join(map(str, self.items))})"

    def variables(self) -> Iterator[Variable]:
        """All variables, depth first, in order of appearance."""
        for item in self.items:
            yield from item.variables()

    def changed(self, change: Callable[[Variable], Variable | None]) -> Structure:
        """The structure with each variable replaced, without those for which None stands.

        Operators over nothing are left out too.
        """
        items: list[Variable | Structure] = []
        for item in self.items:
            new = item.changed(change) if isinstance(item, Structure) else change(item)
            if isinstance(new, Variable) or (new is not None and new.items):
                items.append(new)
        return Structure(self.operator, tuple(items))

    def without(self, names: Collection[str]) -> Structure:
        """The structure without some variables, and without operators over nothing."""
        return self.changed(lambda variable: None if variable.name in names else variable)

    def precedence(self) -> set[tuple[str, str]]:
        """All pairs (x, y) of names such that x's timestamps must be smaller than y's.

        For structures without OR. Pairs of two negated variables are left out, since each
        negation is checked independently of the others.
        """
        return {
            (before.name, name.name)
            for before, name in self._ordered()
            if not before.kind is name.kind is Kind.NEGATED
        }

    def _ordered(self) -> Iterator[tuple[Variable, Variable]]:
        earlier: list[Variable] = []
        for item in self.items:
            here = list(item.variables())
            if isinstance(item, Structure):
                yield from item._ordered()
            if self.operator is Operator.SEQ:
                yield from itertools.product(earlier, here)
            earlier += here

    def open_items(self, *, at_start: bool) -> list[Variable]:
        """The NOTs and groups that no other item precedes, or that none follows; without OR."""
        bound = {v.name for v in self.variables() if v.kind in (Kind.PLAIN, Kind.KLEENE)}
        pairs = (pair if at_start else pair[::-1] for pair in self.precedence())
        closed = {name for neighbour, name in pairs if neighbour in bound}
        return [v for v in self.variables() if v.name not in bound | closed]

    def has(self, operator: Operator) -> bool:
        """Whether it contains an operator, itself included."""
        inner = (item for item in self.items if isinstance(item, Structure))
        return self.operator is operator or any(item.has(operator) for item in inner)

    def alternatives(self) -> tuple[Structure, ...]:
        """The disjunctive normal form: structures without OR, in order of appearance.

        Nested SEQ and AND are kept; equal alternatives are listed once
        [kolchinsky2018]_, section 4.

        Raises UnsupportedPatternError if there are more than :data:`MAXIMUM_BRANCHES` of them, or
        several with more than :data:`MAXIMUM_BRANCH_ITEMS` items together.
        """
        size, items = _size(self)
        if size > MAXIMUM_BRANCHES:
            shown = size if size <= _MANY else f"more than {_MANY}"
            raise UnsupportedPatternError(
                f"the pattern has {shown} branches without OR, and the limit is "
                f"{MAXIMUM_BRANCHES}; use fewer ORs inside SEQ and AND, or write several patterns"
            )
        if size > 1 and items > MAXIMUM_BRANCH_ITEMS:
            raise UnsupportedPatternError(
                f"the pattern's {size} branches without OR have {items} items together, and the "
                f"limit is {MAXIMUM_BRANCH_ITEMS}; use fewer items, or write several patterns"
            )
        if size == 1 and not self.has(Operator.OR):
            return (self,)
        found = (
            item if isinstance(item, Structure) else Structure(Operator.SEQ, (item,))
            for item in _expanded(self)
        )
        return tuple(dict.fromkeys(found))


def _size(item: Variable | Structure) -> tuple[int, int]:
    """The number of alternatives, and of their items together."""
    if isinstance(item, Variable):
        return 1, 1
    sizes = [_size(part) for part in item.items]
    if item.operator is Operator.OR:
        return sum(size for size, _ in sizes), sum(items for _, items in sizes)
    product = 1
    for size, _ in sizes:
        product *= size
        if product > _MANY:
            return product, product
    # Each alternative of a part is combined with all those of the other parts.
    return product, sum(items * (product // size) for size, items in sizes if size)


def _expanded(item: Variable | Structure) -> Iterator[Variable | Structure]:
    if isinstance(item, Variable):
        yield item
    elif item.operator is Operator.OR:
        for part in item.items:
            yield from _expanded(part)
    else:
        for parts in itertools.product(*map(_expanded, item.items)):
            yield Structure(item.operator, parts)


def first_of(names: Collection[str], before: Container[tuple[str, str]]) -> list[str]:
    """The variables that none of the others precedes, by the pairs of :meth:`Structure.precedence`."""
    return [x for x in names if not any((y, x) in before for y in names)]


def last_of(names: Collection[str], before: Container[tuple[str, str]]) -> list[str]:
    """The variables that precede none of the others, by the pairs of :meth:`Structure.precedence`."""
    return [x for x in names if not any((x, y) in before for y in names)]
