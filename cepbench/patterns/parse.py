"""Pattern text → :class:`~cepbench.patterns.model.Pattern`.

``grammar.lark`` says what a sentence is, :mod:`cepbench.patterns.diagnosis` what to tell the
user about one that is none; here a parse tree becomes a pattern. The language is that of
[kolchinsky2018]_, section 2.1, with the time units, texts and parameters that data need.
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from numbers import Real
from typing import TYPE_CHECKING, NoReturn

from cepbench.errors import (
    PatternError,
    PatternNameError,
    PatternSyntaxError,
    UnsupportedPatternError,
)
from cepbench.patterns.diagnosis import Span, error_at, syntax_error
from cepbench.patterns.model import (
    NANOSECONDS,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Conjunct,
    Constant,
    Expression,
    Negative,
    Operator,
    Pattern,
    Structure,
    Variable,
    Window,
    without_implied,
)
from cepbench.patterns.normal_form import (
    Condition,
    Conjunction,
    Disjunction,
    Negation,
    conjunctive_normal_form,
)

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

    Node = Tree[Token]

_ABBREVIATIONS = {
    "milliseconds": ("millisecond", "millis", "msec", "ms"),
    "seconds": ("second", "sec", "secs", "s"),
    "minutes": ("minute", "min", "mins", "m"),
    "hours": ("hour", "hr", "hrs", "h"),
    "days": ("day", "d"),
    "units": ("unit",),
}
_UNITS = {spelling: unit for unit, others in _ABBREVIATIONS.items() for spelling in (unit, *others)}

#: Deeper brackets, and longer sums, than anybody writes; the rest of the code may recurse.
MAXIMUM_DEPTH = 60


def parse(
    text: str, parameters: Mapping[str, float | str] | None = None, /, **named: float | str
) -> Pattern:
    """Read a pattern.

    Parameters
    ----------
    text : str
        ``PATTERN SEQ(Type name, …) WHERE condition WITHIN amount unit``; SEQ and AND may be
        nested, WHERE may be missing. ``:name`` stands for the value of a parameter.
    parameters, named : mapping of str to float or str
        Values of the parameters, as a mapping or as keywords.

    Returns
    -------
    Pattern
        Its conditions in conjunctive normal form; ``str`` of it parses back to an equal pattern.

    Raises
    ------
    PatternSyntaxError
        If the text is not a sentence of the language.
    PatternNameError
        For an unknown variable, unit or parameter, a variable that stands for two items, and a
        parameter that is given but not used.
    UnsupportedPatternError
        For a condition that ties more than two variables together, and for operators which are
        known from the literature but not built yet.
    PatternError
        For a condition that can never be true, a text where a number must stand, or a window
        beyond the range of timestamps.

    Examples
    --------
    >>> str(parse("pattern seq(MSFT a, GOOG b) where a.price < :most within 20 min", most=30))
    'PATTERN SEQ(MSFT a, GOOG b) WHERE a.price < 30 WITHIN 20 minutes'
    """
    if not isinstance(text, str):
        raise TypeError(f"a pattern is parsed from a str, not from {type(text).__name__}")
    twice = set(parameters or ()) & set(named)
    if twice:
        raise PatternNameError(
            f"parameter {min(twice)!r} is given in the mapping and as a keyword; give it once"
        )
    return _Builder(text, {**(parameters or {}), **named}).pattern(_tree(text))


@functools.cache
def _parser() -> Lark:
    # Imported and built at first use: importing cepbench must stay quick.
    from lark import Lark

    grammar = importlib.resources.files("cepbench.patterns").joinpath("grammar.lark")
    # The basic lexer reserves keywords everywhere; a contextual one would read a misplaced
    # WITHIN as a name and complain about the next word.
    return Lark(grammar.read_text("utf-8"), parser="lalr", lexer="basic", propagate_positions=True)


def _tree(text: str) -> Node:
    from lark.exceptions import UnexpectedInput

    try:
        return _parser().parse(text)
    except UnexpectedInput as error:
        raise syntax_error(text, error) from None


class _Builder:
    """One pattern under construction: its text, for error messages, and its names."""

    def __init__(self, text: str, parameters: Mapping[str, float | str]) -> None:
        self._text = text
        self._parameters = parameters
        self._unused = set(parameters)
        self._names: list[str] = []

    def pattern(self, tree: Node) -> Pattern:
        parts = {part.data: part for part in _nodes(tree)}
        structure = self._structure(parts["structure"], 1)
        conditions = self._where(parts["where"]) if "where" in parts else ()
        window = self._window(parts["within"])
        if self._unused:
            raise PatternNameError(
                f"parameter {min(self._unused)!r} is given but the pattern has no "
                f":{min(self._unused)}; remove it, or use it in WHERE or WITHIN"
            )
        return Pattern(structure, conditions, window)

    def _fail(self, kind: type[PatternError], message: str, place: Node | Token) -> NoReturn:
        raise error_at(kind, message, self._text, _span(place)) from None

    def _check_depth(self, depth: int, place: Node) -> None:
        if depth > MAXIMUM_DEPTH:
            self._fail(
                PatternSyntaxError,
                f"nested, or chained by + - * /, more than {MAXIMUM_DEPTH} deep; write it flatter",
                place,
            )

    # -- structure ------------------------------------------------------------------------------

    def _structure(self, tree: Node, depth: int) -> Structure:
        self._check_depth(depth, tree)
        items: list[Variable | Structure] = []
        for item in _nodes(tree):
            if item.data == "structure":
                items.append(self._structure(item, depth + 1))
            else:
                items.append(self._variable(item))
        return Structure(Operator(_tokens(tree)[0].upper()), tuple(items))

    def _variable(self, tree: Node) -> Variable:
        type_name, name = _tokens(tree)
        shown = _name(name)
        if shown in self._names:
            self._fail(
                PatternNameError,
                f"variable {shown!r} already stands for another item; give this one another name",
                name,
            )
        self._names.append(shown)
        return Variable(shown, _name(type_name))

    # -- conditions -----------------------------------------------------------------------------

    def _where(self, tree: Node) -> tuple[Clause, ...]:
        places: dict[Conjunct, Node] = {}
        for part in _conjoined(_nodes(tree)[0]):
            condition = self._condition(part, 1)
            try:
                conjuncts = conjunctive_normal_form(condition)
            except UnsupportedPatternError as error:
                self._fail(UnsupportedPatternError, str(error), part)
            for conjunct in conjuncts:
                places.setdefault(conjunct, part)
        kept = without_implied(places)
        for conjunct in kept:
            self._check_conjunct(conjunct, places[conjunct])
        return tuple(Clause(conjunct) for conjunct in kept)

    def _check_conjunct(self, conjunct: Conjunct, place: Node) -> None:
        if not conjunct:
            self._fail(
                PatternError,
                "this condition is never true, so the pattern can have no match; correct it, or "
                "leave it out",
                place,
            )
        clause = Clause(conjunct)
        variables = clause.variables
        if len(variables) > 2:
            listed = f"{', '.join(variables[:-1])} and {variables[-1]}"
            advice = (
                "compute part of it beforehand as an attribute of one event"
                if len(conjunct) == 1
                else "write one pattern for each alternative"
            )
            self._fail(
                UnsupportedPatternError,
                f"the conjunct {clause} ties the variables {listed} together, and a conjunct may "
                f"tie at most two; {advice}",
                place,
            )

    def _condition(self, tree: Node, depth: int) -> Condition:
        self._check_depth(depth, tree)
        match tree.data:
            case "comparison":
                return self._comparison(tree)
            case "negation":
                return Negation(self._condition(_nodes(tree)[0], depth + 1))
        parts = tuple(self._condition(part, depth + 1) for part in _nodes(tree))
        return Conjunction(parts) if tree.data == "conjunction" else Disjunction(parts)

    def _comparison(self, tree: Node) -> Condition:
        sides = _nodes(tree)
        expressions = [self._expression(side, 1) for side in sides]
        found = []
        for number, operator in enumerate(_tokens(tree)):
            symbol = {"==": "=", "<>": "!="}.get(str(operator), str(operator))
            left, right = expressions[number], expressions[number + 1]
            texts = [_is_text(left), _is_text(right)]
            if any(texts) and symbol not in ("=", "!="):
                self._fail(
                    PatternError,
                    f"{symbol} orders a text; texts can only be = or !=",
                    sides[number + texts.index(True)],
                )
            others = (left, right)
            if any(texts) and any(
                not is_text and not isinstance(other, Attribute)
                for is_text, other in zip(texts, others, strict=True)
            ):
                self._fail(
                    PatternError, f"{left} {symbol} {right} compares a text with a number", tree
                )
            found.append(Comparison(symbol, left, right))
        return found[0] if len(found) == 1 else Conjunction(tuple(found))

    # -- expressions ----------------------------------------------------------------------------

    def _expression(self, tree: Node, depth: int) -> Expression:
        self._check_depth(depth, tree)
        match tree.data:
            case "attribute":
                return self._attribute(tree)
            case "bracketed":
                return self._expression(_nodes(tree)[0], depth + 1)
            case "negative":
                operand = _nodes(tree)[0]
                inner = self._operand(operand, depth + 1)
                # -5 is a constant, -(5) the negative of one.
                literal = operand.data in ("number", "percentage", "parameter")
                if literal and isinstance(inner, Constant):
                    return Constant(-float(inner.value))
                return Negative(inner)
            case "sum" | "product":
                operators = _tokens(tree)
                depth += len(operators)
                self._check_depth(depth, tree)
                result, *terms = (self._operand(term, depth + 1) for term in _nodes(tree))
                for operator, term in zip(operators, terms, strict=True):
                    result = Arithmetic(str(operator), result, term)
                return result
        return Constant(self._constant(tree))

    def _operand(self, tree: Node, depth: int) -> Expression:
        expression = self._expression(tree, depth)
        if _is_text(expression):
            self._fail(PatternError, "calculates with a text; texts can only be = or !=", tree)
        return expression

    def _attribute(self, tree: Node) -> Attribute:
        variable, attribute = _tokens(tree)
        name = _name(variable)
        if name not in self._names:
            self._fail(
                PatternNameError,
                f"unknown variable {name!r}{nearest(name, self._names)}; the pattern has "
                f"{', '.join(self._names)}",
                variable,
            )
        return Attribute(name, _name(attribute))

    def _constant(self, tree: Node) -> float | str:
        if tree.data == "parameter":
            return self._parameter(tree)
        token = str(_tokens(tree)[0])
        if tree.data == "text":
            return token[1:-1].replace("''", "'")
        value = float(token)
        if math.isinf(value):
            self._fail(PatternError, "a number beyond the range of a float", tree)
        if tree.data == "percentage" and value:
            # Decimal, as 0.07 is the float nearest to 7% where 7 * 0.01 is not.
            value = float(Decimal(token).scaleb(-2))
        return value

    def _parameter(self, tree: Node) -> float | str:
        name = str(_tokens(tree)[0])[1:]
        if name not in self._parameters:
            self._fail(
                PatternNameError,
                f"parameter :{name} has no value{nearest(name, self._parameters)}; give it as "
                f"parse(text, {name}=…)",
                tree,
            )
        self._unused.discard(name)
        value: object = self._parameters[name]
        if isinstance(value, str):
            return str(value)
        if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
            self._fail(
                PatternError,
                f"parameter :{name} is {value!r}; it must be a finite number or a text",
                tree,
            )
        return float(value)

    # -- window ---------------------------------------------------------------------------------

    def _window(self, tree: Node) -> Window:
        amount = _nodes(tree)[0]
        unit = _tokens(tree)[-1]
        value = self._constant(amount)
        if isinstance(value, str):
            self._fail(PatternError, f"a window is a number, not the text {value!r}", amount)
        spelled = str(unit).lower()
        if spelled not in _UNITS:
            known = ", ".join(NANOSECONDS)
            self._fail(
                PatternNameError,
                f"unknown time unit {str(unit)!r}{nearest(spelled, _UNITS)}; use {known}, or units "
                "for a plain integer time",
                unit,
            )
        try:
            return Window(value, _UNITS[spelled])
        except PatternError as error:
            self._fail(PatternError, str(error), amount)


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint at the known name that looks most like ``name``, or nothing."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def _is_text(expression: Expression) -> bool:
    return isinstance(expression, Constant) and isinstance(expression.value, str)


def _nodes(tree: Node) -> list[Node]:
    return [child for child in tree.children if not isinstance(child, str)]


def _tokens(tree: Node) -> list[Token]:
    return [child for child in tree.children if isinstance(child, str)]


def _conjoined(tree: Node) -> list[Node]:
    """The parts of a condition that AND joins outside of everything else, in order."""
    found, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        if part.data == "conjunction":
            waiting.extend(reversed(_nodes(part)))
        else:
            found.append(part)
    return found


def _name(token: Token) -> str:
    return token[1:-1].replace('""', '"') if token.type == "QUOTED" else str(token)


def _span(place: Node | Token) -> Span:
    where = place if isinstance(place, str) else place.meta
    assert where.start_pos is not None and where.end_pos is not None
    return Span(where.start_pos, where.end_pos)
