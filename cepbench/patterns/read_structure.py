"""The PATTERN clause: prefix and infix operators, NOT, KL, and variable names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from cepbench.arguments import MOST
from cepbench.errors import PatternNameError, PatternOperatorError
from cepbench.patterns.pattern_text import (
    PatternText,
    name_of,
    names_in,
    nodes_of,
    tokens_of,
    whole_number,
    without_brackets,
)
from cepbench.patterns.structure import ANY_TYPE, Kind, Operator, Structure, Variable

if TYPE_CHECKING:
    from lark import Token

    from cepbench.patterns.pattern_text import Node

_OPERATORS = {
    "SEQ": Operator.SEQ,
    "AND": Operator.AND,
    "OR": Operator.OR,
    "succession": Operator.SEQ,
    "together": Operator.AND,
    "alternatives": Operator.OR,
}

#: NOT, KL or GROUP → the error over an n-ary operator, and over another one of them.
_OVER_OPERATOR = {
    "negated": "NOT applies to an event type or an OR of event types, not to {}; name the event type "
    "that must be missing, as in SEQ(A a, NOT(B b))",
    "kleene": "KL applies to a single event type, not to {}; write KL over one of its items, as in "
    "SEQ(A a, KL(B b))",
    "group": "GROUP applies to a single event type, not to {}; write GROUP over one of its items, as "
    "in SEQ(A a, GROUP(B b, +))",
}
_NESTED = {
    ("negated", "negated"): "NOT of NOT; write the item without both",
    ("negated", "kleene"): "NOT of a Kleene closure, which means no event at all; write NOT over "
    "the type alone, as in NOT(B b)",
    ("kleene", "negated"): "a Kleene closure of NOT: an absent event cannot be repeated; write "
    "NOT(B b) alone, or KL(B b) alone",
    ("kleene", "kleene"): "a Kleene closure of a Kleene closure; write KL or + once",
    ("negated", "group"): "NOT of a group, which means no event at all; write NOT over the type "
    "alone, as in NOT(B b)",
    ("kleene", "group"): "a Kleene closure of a group; write KL(B b), or GROUP(B b, +)",
    ("group", "negated"): "a group of NOT: an absent event cannot be repeated; write NOT(B b) "
    "alone, or GROUP(B b, +) alone",
    ("group", "kleene"): "a group of a Kleene closure; write GROUP(B b, +)",
    ("group", "group"): "a group of a group; write GROUP once",
}


class StructureReader:
    """Builds a structure from a parse tree, and records the position of each variable.

    ``B+`` is of the kind ``closure``. Classes are types by the names that stand for them, where
    they differ; None if all are of any type.
    """

    def __init__(
        self, source: PatternText, closure: Kind, classes: Mapping[str, str] | None
    ) -> None:
        self._source = source
        self._closure = closure
        self._classes = classes
        self.variables: dict[str, Variable] = {}
        #: The latest occurrence of each name.
        self.places: dict[str, Node] = {}
        #: Names that can be in a match with the next item, the latest one last.
        self._used: dict[str, None] = {}
        #: Type → the first number that may be free for an item named after it; a dict for each
        #: enclosing alternative.
        self._numbers: list[dict[str, int]] = [{}]

    def read(self, tree: Node) -> Structure:
        """The structure; a single item is put under SEQ."""
        item = self._item(without_brackets(tree), 1)
        return item if isinstance(item, Structure) else Structure(Operator.SEQ, (item,))

    def _item(self, tree: Node, depth: int) -> Variable | Structure:
        match tree.data:
            case "variable":
                if _has_mark(tree) and self._closure is Kind.GROUP:
                    return self._variable(tree, Kind.GROUP, self._size(tokens_of(tree)[-1]))
                return self._variable(tree, self._closure if _has_mark(tree) else Kind.PLAIN)
            case "negated":
                negated = tuple(self._negated(tree))
                return negated[0] if len(negated) == 1 else Structure(Operator.AND, negated)
            case "kleene":
                operand = without_brackets(nodes_of(tree)[0])
                self._check_operand("kleene", operand, tree)
                return self._variable(operand, Kind.KLEENE)
            case "group":
                return self._group(tree)
        self._source.check_depth(depth, tree)
        operator = _operator_of(tree)
        assert operator is not None
        parts = map(without_brackets, nodes_of(tree))
        if operator is Operator.OR:
            items = self._alternatives(list(parts), depth + 1)
        else:
            items = [item for part in parts for item in self._items(part, depth + 1)]
        return Structure(operator, tuple(items))

    def _items(self, tree: Node, depth: int) -> Iterator[Variable | Structure]:
        """The items that a part of SEQ or AND stands for: a NOT of OR is several NOTs."""
        if tree.data == "negated":
            yield from self._negated(tree)
        else:
            yield self._item(tree, depth)

    def _negated(self, tree: Node) -> Iterator[Variable]:
        """A negated variable for each alternative below NOT."""
        waiting = [nodes_of(tree)[0]]
        while waiting:
            operand = without_brackets(waiting.pop())
            if _operator_of(operand) is Operator.OR:
                waiting += reversed(nodes_of(operand))
                continue
            self._check_operand("negated", operand, tree)
            yield self._variable(operand, Kind.NEGATED)

    def _group(self, tree: Node) -> Variable:
        operand = without_brackets(nodes_of(tree)[0])
        self._check_operand("group", operand, tree)
        return self._variable(operand, Kind.GROUP, self._size(tokens_of(tree)[-2]))

    def _size(self, token: Token) -> str | int:
        """The size of a group; that of ``B[]`` is +."""
        if token.type != "NUMBER":
            return "*" if token.type == "STAR" else "+"
        size = whole_number(token)
        if not size:
            self._source.fail(
                PatternOperatorError,
                f"a group of {token} events; its size is +, * or a whole number from 1 to {MOST:,}",
                token,
            )
        return size

    def _check_operand(self, outer: str, operand: Node, tree: Node) -> None:
        """Raise if an operand of NOT, KL or GROUP is another operator."""
        operator = _operator_of(operand)
        inner = "kleene" if operand.data == "variable" and _has_mark(operand) else operand.data
        message = _NESTED.get((outer, inner), "")
        if operator is not None:
            message = _OVER_OPERATOR[outer].format(operator)
        if message:
            self._source.fail(PatternOperatorError, message, tree)

    def _alternatives(self, parts: list[Node], depth: int) -> list[Variable | Structure]:
        """The items of an OR, which may share names because a match has only one of them."""
        items = []
        before = len(self._used)
        used: dict[str, None] = {}
        latest: dict[str, int] = {}
        for part in parts:
            self._numbers.append({})
            items.append(self._item(part, depth))
            while len(self._used) > before:
                name, _ = self._used.popitem()
                used[name] = None
            for type_name, number in self._numbers.pop().items():
                latest[type_name] = max(number, latest.get(type_name, 1))
        self._used |= used
        self._numbers[-1] |= latest
        return items

    def _variable(self, tree: Node, kind: Kind, size: str | int | None = None) -> Variable:
        type_token, *name_tokens = names_in(tree)
        is_any = type_token.type == "NAME" and type_token.upper() == ANY_TYPE
        name = ANY_TYPE if is_any else name_of(type_token)
        classes = None if is_any else self._classes
        type_name = None if classes is None else classes.get(name, name)
        if name_tokens:
            variable = Variable(name_of(name_tokens[0]), type_name, kind, size)
            self._check_name(variable, tree)
        else:
            variable = self._named_after(name, Variable(name, type_name, kind, size))
        self._used[variable.name] = None
        self.variables[variable.name] = variable
        self.places[variable.name] = tree
        return variable

    def _check_name(self, variable: Variable, tree: Node) -> None:
        place = names_in(tree)[-1]
        if variable.name in self._used:
            self._source.fail(
                PatternNameError,
                f"variable {variable.name!r} is already used for another item; rename this one",
                place,
            )
        known = self.variables.get(variable.name, variable)
        if known != variable:
            self._source.fail(
                PatternNameError,
                f"variable {variable.name!r} is already used for {known} in another branch; a name "
                "has one type and kind, so rename this one",
                place,
            )

    def _named_after(self, first: str, unnamed: Variable) -> Variable:
        """A variable without a name of its own, named after its type or class."""
        number = next((n[first] for n in reversed(self._numbers) if first in n), 1)
        while True:
            name = first if number == 1 else f"{first}{number}"
            variable = replace(unnamed, name=name)
            number += 1
            if name not in self._used and self.variables.get(name, variable) == variable:
                self._numbers[-1][first] = number
                return variable


def _operator_of(tree: Node) -> Operator | None:
    """The n-ary operator at the root of a tree, if there is one."""
    keyword = tokens_of(tree)[0].type if tree.data == "structure" else tree.data
    return _OPERATORS.get(keyword)


def _has_mark(tree: Node) -> bool:
    """Whether a variable is written with ``+`` or ``[]``."""
    return len(names_in(tree)) < len(tokens_of(tree))
