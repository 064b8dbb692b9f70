"""What a pattern looks for: variables under operators, and the disjunctive normal form of that."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.expressions import MAXIMUM_DEPTH, TOO_DEEP, quoted_unless_plain

#: Largest number of branches that nested disjunctions may multiply to.
MAXIMUM_BRANCHES = 256

#: Largest number of items that these may have together.
MAXIMUM_BRANCH_ITEMS = 50_000

#: Nobody needs to know how many more.
_MANY = 10**9


class Operator(StrEnum):
    """The n-ary operators of a pattern [kolchinsky2018]_, section 2.1."""

    SEQ = "SEQ"
    AND = "AND"
    OR = "OR"


class Kind(StrEnum):
    """The unary operator over a variable [kolchinsky2018]_, section 2.1, if there is one."""

    PLAIN = "plain"
    NEGATED = "negated"
    KLEENE = "kleene"


@dataclass(frozen=True, slots=True)
class Variable:
    """One item of a pattern: ``type name``, bound to one event of that type.

    A negated one, ``NOT(type name)``, is bound to none: no event of the type may be there. A
    Kleene one, ``KL(type name)``, is bound to a set of one or more events.
    """

    name: str
    type: str
    kind: Kind = Kind.PLAIN

    def __str__(self) -> str:
        plain = f"{quoted_unless_plain(self.type)} {quoted_unless_plain(self.name)}"
        match self.kind:
            case Kind.NEGATED:
                return f"NOT({plain})"
            case Kind.KLEENE:
                return f"KL({plain})"
        return plain


@dataclass(frozen=True, slots=True)
class Structure:
    """An operator over items, in the order in which they were written."""

    operator: Operator
    items: tuple[Variable | Structure, ...]
    #: How many operators are nested in each other here.
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        inner = (item.depth for item in self.items if isinstance(item, Structure))
        object.__setattr__(self, "depth", 1 + max(inner, default=0))
        if self.depth > MAXIMUM_DEPTH:
            raise UnsupportedPatternError(f"a structure is {TOO_DEEP}")

    def __str__(self) -> str:
        return f"{self.operator}({', '.join(map(str, self.items))})"

    def variables(self) -> Iterator[Variable]:
        """All variables, depth first, in the order in which they were written."""
        for item in self.items:
            if isinstance(item, Variable):
                yield item
            else:
                yield from item.variables()

    def precedence(self) -> set[tuple[str, str]]:
        """All pairs (x, y) of names such that x's timestamps must be smaller than y's.

        Of a structure without OR. Negated variables stand against the others, but not against
        each other: each is looked for as if it were the only one.
        """
        return {
            (before.name, name.name)
            for before, name in self._ordered()
            if not before.kind is name.kind is Kind.NEGATED
        }

    def _ordered(self) -> Iterator[tuple[Variable, Variable]]:
        earlier: list[Variable] = []
        for item in self.items:
            here = [item] if isinstance(item, Variable) else list(item.variables())
            if isinstance(item, Structure):
                yield from item._ordered()
            if self.operator is Operator.SEQ:
                yield from itertools.product(earlier, here)
            earlier += here

    def alternatives(self) -> tuple[Structure, ...]:
        """The disjunctive normal form: structures without OR, in the order of writing.

        Nested SEQ and AND stay as they are; alternatives that are equal are listed once
        [kolchinsky2018]_, section 4.

        Raises
        ------
        UnsupportedPatternError
            If there are more than :data:`MAXIMUM_BRANCHES`, or more than
            :data:`MAXIMUM_BRANCH_ITEMS` items in several of them.
        """
        size, items = _size(self)
        if size > MAXIMUM_BRANCHES:
            shown = size if size <= _MANY else f"more than {_MANY}"
            raise UnsupportedPatternError(
                f"the pattern stands for {shown} patterns without OR, and at most "
                f"{MAXIMUM_BRANCHES} can be planned; use fewer ORs inside of SEQ and AND, or write "
                "several patterns"
            )
        if size > 1 and items > MAXIMUM_BRANCH_ITEMS:
            raise UnsupportedPatternError(
                f"the {size} patterns without OR that the pattern stands for have {items} items "
                f"together, and at most {MAXIMUM_BRANCH_ITEMS} can be planned; use fewer items, or "
                "write several patterns"
            )
        if size == 1 and not _has_or(self):
            return (self,)
        found = (
            item if isinstance(item, Structure) else Structure(Operator.SEQ, (item,))
            for item in _expanded(self)
        )
        return tuple(dict.fromkeys(found))


def _size(item: Variable | Structure) -> tuple[int, int]:
    """How many alternatives there are, and how many items these have together."""
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
    # Each alternative of a part stands in as many as those of the other parts multiply to.
    return product, sum(items * (product // size) for size, items in sizes if size)


def _has_or(structure: Structure) -> bool:
    inner = (item for item in structure.items if isinstance(item, Structure))
    return structure.operator is Operator.OR or any(map(_has_or, inner))


def _expanded(item: Variable | Structure) -> Iterator[Variable | Structure]:
    if isinstance(item, Variable):
        yield item
    elif item.operator is Operator.OR:
        for part in item.items:
            yield from _expanded(part)
    else:
        for parts in itertools.product(*map(_expanded, item.items)):
            yield Structure(item.operator, parts)
