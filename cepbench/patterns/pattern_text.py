"""The text being parsed: positions, errors that mark them, parameters and numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from typing import TYPE_CHECKING, Any, NoReturn

from cepbench.arguments import MOST, decimal, is_real
from cepbench.errors import PatternError, PatternNameError, PatternSyntaxError, did_you_mean
from cepbench.patterns.diagnosis import Span, error_at
from cepbench.patterns.expressions import MAXIMUM_DEPTH, TOO_DEEP

if TYPE_CHECKING:
    from lark import Token, Tree

    Node = Tree[Token]


#: So many significant digits tell any float apart; more of them are those of another number.
_DIGITS = 17

_SURROGATE = re.compile("[\ud800-\udfff]")

_CLAUSE = r"(?:where|group\s+by|agg|within)(?!\w)"
_BRACKET = re.compile(
    rf"""
    '[^']*' | "[^"]*" | “[^”]*”  # texts and names in quotes stay as they are
    # "<" where no comparison can be: after a keyword, a bracket, a comma, or = and !=
    | (?: (?<!\w)(?:pattern|{_CLAUSE}) | [(,=] )\s*(?P<less><)(?=\s*[\w"([])
    | (?P<greater>>)(?=[\s\]]*\[?\s*(?:{_CLAUSE}|\Z))
    | (?P<opening>\[)(?P<clause>(?=\s*{_CLAUSE}))?
    | (?P<closing>\])
    """,
    re.IGNORECASE | re.VERBOSE,
)


class PatternText:
    """A pattern's text and the values of its parameters."""

    def __init__(self, text: str, parameters: Mapping[str, float | str]) -> None:
        self.text = text
        self._parameters = parameters
        self._unused = set(parameters)
        half = _SURROGATE.search(text)
        if half is not None:
            raise error_at(
                PatternSyntaxError,
                f"{half[0]!r} is half of a surrogate pair, not a character; the text was decoded "
                "wrongly, so decode it again",
                text,
                Span(*half.span()),
            )

    def fail(self, kind: type[PatternError], message: str, place: Node | Token) -> NoReturn:
        """Raise an error of this kind that marks ``place``."""
        raise error_at(kind, message, self.text, span_of(place)) from None

    def check_depth(self, depth: int, place: Node) -> None:
        """Raise if the nesting is too deep."""
        if depth > MAXIMUM_DEPTH:
            self.fail(PatternSyntaxError, TOO_DEEP, place)

    def check_parameters_used(self) -> None:
        """Raise if a parameter does not occur in the text."""
        if self._unused:
            name = min(self._unused)
            raise PatternNameError(
                f"parameter {name!r} is given but the pattern has no :{name}; remove it, or use "
                "it in WHERE or WITHIN"
            )

    def constant(self, tree: Node) -> float | str | bool:
        """The value of a number, percentage, text, ``true``, ``false`` or parameter."""
        if tree.data == "parameter":
            return self.parameter(tree)
        if tree.data == "percentage":
            return self._percentage(nodes_of(tree)[0])
        token = str(tokens_of(tree)[0])
        if tree.data == "truth":
            return token.lower() == "true"
        if tree.data == "text":
            return token[1:-1].replace("''", "'")
        try:
            return number_of(token)
        except PatternError as error:
            self.fail(PatternError, str(error), tree)

    def amount(self, tree: Node) -> Decimal | str:
        """The value of a number or parameter of WITHIN: an exact decimal, or a parameter's text."""
        written = str(tokens_of(tree)[0])
        if tree.data == "number":
            return decimal_of(written)
        name = written.removeprefix(":")
        given = self._parameters.get(name)
        if not is_real(given):
            value = self.constant(tree)
            if isinstance(value, str):
                return value
        self._unused.discard(name)
        try:
            return decimal(given, f"parameter {written}", PatternError)
        except PatternError as error:
            self.fail(PatternError, str(error), tree)

    def _percentage(self, tree: Node) -> float:
        value = self.constant(tree)
        if isinstance(value, str | bool):
            kind = "text" if isinstance(value, str) else "boolean"
            self.fail(PatternError, f"a percentage of the {kind} {value!r}", tree)
        # Decimal: 7% is the float nearest to 0.07, which 7 * 0.01 is not.
        digits = str(tokens_of(tree)[0]) if tree.data == "number" else repr(value)
        return float(Decimal(digits).scaleb(-2)) if value else value

    def parameter(self, tree: Node) -> float | str | bool:
        """The value of ``:name`` or of a bare ``name``."""
        written = str(tokens_of(tree)[0])
        name = written.removeprefix(":")
        if name not in self._parameters and name.upper() in ("NULL", "NAN", "NONE"):
            self.fail(
                PatternNameError,
                f"the language has no {name}: a missing value satisfies no comparison; remove "
                "this, or write a.x = a.x to require a value",
                tree,
            )
        if name not in self._parameters:
            self.fail(
                PatternNameError,
                f"parameter {written} has no value; give it as parse(text, {name}=…)"
                f"{did_you_mean(name, self._parameters)}",
                tree,
            )
        self._unused.discard(name)
        value: Any = self._parameters[name]
        if isinstance(value, str):
            if _SURROGATE.search(value):
                self.fail(PatternError, f"parameter {written} holds half a surrogate pair", tree)
            return str(value)
        if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):  # also NumPy's
            return bool(value)
        if not is_real(value):
            self.fail(
                PatternError,
                f"parameter {written} is a {type(value).__name__}; it must be a finite number or a "
                "text, or True or False",
                tree,
            )
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        except ValueError:  # a signaling NaN
            number = math.nan
        if not math.isfinite(number):
            self.fail(
                PatternError,
                f"parameter {written} is {number}; it must be a finite number or a text",
                tree,
            )
        given = int(value) if isinstance(value, Integral) else value
        if not _is_float(given, number):
            self.fail(PatternError, _rounded(f"parameter {written}", number), tree)
        return number


def number_of(written: str) -> float:
    """The float that a text says, or that is nearest to one of few digits; a PatternError if there is none."""
    value = float(written)
    if math.isinf(value):
        raise PatternError("a number beyond the range of a float; use a smaller one")
    exact = decimal_of(written)
    is_whole = exact == exact.to_integral_value()
    is_short = value and not is_whole and len(exact.as_tuple().digits) <= _DIGITS
    if not is_short and not _is_float(exact, value):
        raise PatternError(_rounded(written, value))
    return value


def _rounded(written: str, value: float) -> str:
    return (
        f"{written[:40]} has more digits than a float holds, and would be rounded to {value!r}; write "
        "fewer digits, or subtract a common origin from the attribute"
    )


def _is_float(given: object, nearest: float) -> bool:
    """Whether a number is a float exactly, or is what its shortest text says."""
    shortest = Decimal(repr(nearest)) if isinstance(given, Decimal) else Fraction(repr(nearest))
    return given in (nearest, shortest)


def nodes_of(tree: Node) -> list[Node]:
    """The children that are trees."""
    return [child for child in tree.children if not isinstance(child, str)]


def tokens_of(tree: Node) -> list[Token]:
    """The children that are tokens."""
    return [child for child in tree.children if isinstance(child, str)]


def parts_of_duration(token: Token) -> tuple[Token, Token]:
    """The number and the unit of a duration, each where it stands."""
    from lark import Token

    found = re.fullmatch(r"(.*[0-9.])\s*([^\W\d]+)", token, re.DOTALL)
    assert found is not None and token.start_pos is not None
    begin = token.start_pos
    number, unit = (
        Token(kind, found[group], begin + found.start(group), end_pos=begin + found.end(group))
        for group, kind in ((1, "NUMBER"), (2, "NAME"))
    )
    return number, unit


def decimal_of(written: str) -> Decimal:
    """The number of a text; of an exponent that no Decimal has, one that is far beyond all floats and windows."""
    mantissa, _, exponent = written.lower().partition("e")
    sign, digits = "-" if "-" in exponent else "", exponent.lstrip("+-0") or "0"
    return Decimal(f"{mantissa}e{sign}{digits if len(digits) < 7 else 999_999}")


def whole_number(token: Token) -> int | None:
    """The number of a token without point and exponent, up to :data:`MOST`; None for others."""
    digits = token.lstrip("0") or "0"
    # Python refuses to convert more than 4,300 digits.
    if not digits.isdecimal() or len(digits) > len(str(MOST)):
        return None
    return int(digits) if int(digits) <= MOST else None


def name_of(token: Token) -> str:
    """The name of a plain or quoted token."""
    return token[1:-1].replace('""', '"') if token.type == "QUOTED" else str(token)


def names_in(tree: Node) -> list[Token]:
    """The tokens among the children that are names."""
    return [token for token in tokens_of(tree) if token.type in ("NAME", "QUOTED")]


def without_brackets(tree: Node) -> Node:
    """The tree without the brackets around it."""
    while tree.data == "brackets":
        tree = nodes_of(tree)[0]
    return tree


def span_of(place: Node | Token) -> Span:
    """The span of a tree or token: from its first to its last token."""
    first = last = place
    while not isinstance(first, str):
        first = first.children[0]
    while not isinstance(last, str):
        last = last.children[-1]
    assert first.start_pos is not None and last.end_pos is not None
    return Span(first.start_pos, last.end_pos)


def without_clause_brackets(text: str) -> str:
    """An A-Seq query with blanks for the brackets ``[…]`` and ``<…>`` around and in its clauses.

    So [qi2014]_ prints them. ``[id]`` in a condition stays. Positions do not change.
    """
    kept = list(text)
    opened: list[int | None] = []
    for part in _BRACKET.finditer(text):
        for name in ("less", "greater"):
            if part[name]:
                kept[part.start(name)] = " "
        if part["opening"]:
            opened.append(part.start() if part["clause"] is not None else None)
        elif part["closing"] and opened:
            start = opened.pop()
            if start is not None:
                kept[start] = kept[part.start()] = " "
    return "".join(kept)
