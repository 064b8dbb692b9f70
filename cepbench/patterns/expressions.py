"""Expressions and conditions of a WHERE clause: frozen values whose ``str`` parses back."""

from __future__ import annotations

import itertools
import re
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from cepbench.errors import PatternError, UnsupportedPatternError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*'*\Z")
_LARGEST_FLOAT = int(sys.float_info.max)
_RESERVED = frozenset(
    {"PATTERN", "WHERE", "STRATEGY", "OUTPUT", "AGG", "WITHIN", "RETURN"}
    | {"SEQ", "AND", "OR", "NOT", "TRUE", "FALSE"}
)

#: Limit of nested operators and chained terms, so that the rest of the code may recurse.
MAXIMUM_DEPTH = 60
TOO_DEEP = f"nested, or chained by + - * / %, more than {MAXIMUM_DEPTH} deep; write it flatter"

#: Which events of a Kleene set an attribute is read from, and the notation.
ELEMENTS = {"each": "", "rest": "[2..]", "previous": "[i-1]", "first": "[1]", "last": "[last]"}

#: Length of each time unit in nanoseconds; ``units`` counts ticks of an integer time column.
NANOSECONDS = {
    "nanoseconds": 1,
    "microseconds": 10**3,
    "milliseconds": 10**6,
    "seconds": 10**9,
    "minutes": 60 * 10**9,
    "hours": 3600 * 10**9,
    "days": 86_400 * 10**9,
    "weeks": 7 * 86_400 * 10**9,
}

#: The functions over a Kleene variable's set.
AGGREGATES = ("sum", "avg", "min", "max", "count")


class _Written:
    """An expression that ``str`` writes in the pattern language."""

    __slots__ = ()

    def __str__(self) -> str:
        return text_of(self)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Attribute(_Written):
    """``variable.name``: an attribute of the event bound to a variable.

    ``element`` selects events of a Kleene variable's set, ordered by position: ``each`` (``b.x``
    or ``b[i].x``; a condition must hold for every event), ``rest`` (``b[2..].x``: for every event
    but the first), ``previous`` (``b[i-1].x``), ``first`` (``b[1].x``) or ``last`` (``b[last].x``,
    ``b[b.LEN].x``). For other variables it is ``each``.
    """

    variable: str
    name: str
    element: str = "each"

    @property
    def is_running(self) -> bool:
        """Whether it is read for each event but the first."""
        return self.element in ("rest", "previous")


@dataclass(frozen=True, slots=True)
class Aggregate(_Written):
    """``function(variable[].name)``: one value over the set of a Kleene variable.

    With ``before`` it is over the events before ``b[i]`` only, ``avg(b[..i-1].x)``, and its
    condition must hold for each i > 1. ``count`` is the number of events, whatever their values;
    the other functions are missing if any event's value is.
    """

    function: str
    attribute: Attribute
    before: bool = False

    @property
    def variable(self) -> str:
        """The variable whose set it is over."""
        return self.attribute.variable

    @property
    def is_running(self) -> bool:
        """Whether it has a value for each event but the first."""
        return self.before


@dataclass(frozen=True, slots=True, eq=False)
class Constant(_Written):
    """A number, a text or a boolean; ``true`` is not equal to 1."""

    value: float | str | bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._compared == other._compared

    def __hash__(self) -> int:
        return hash(self._compared)

    @property
    def _compared(self) -> tuple[float | str | bool, bool]:
        return self.value, isinstance(self.value, bool)

    def __post_init__(self) -> None:
        if isinstance(self.value, int) and abs(self.value) > _LARGEST_FLOAT:
            raise PatternError("a number beyond the range of a float; use a smaller one")
        if isinstance(self.value, int) and float(self.value) != self.value:
            raise PatternError(f"{self.value} would be rounded to {float(self.value)!r}, a float")


@dataclass(frozen=True, slots=True)
class Duration(Constant):
    """A length of time in a condition: ``value`` nanoseconds, or ticks of an integer time column."""

    is_datetime: bool = True


@dataclass(frozen=True, slots=True)
class Negative(_Written):
    """Unary minus."""

    operand: Expression
    #: Nesting depth of operators.
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _checked_depth(self.operand))


@dataclass(frozen=True, slots=True)
class Arithmetic(_Written):
    """``left operator right`` with one of ``+ - * / %``.

    ``%`` has the sign of the dividend and is missing for the divisor 0.
    """

    operator: str
    left: Expression
    right: Expression
    #: Nesting depth of operators.
    depth: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "depth", _checked_depth(self.left, self.right))


Expression = Attribute | Aggregate | Constant | Negative | Arithmetic


def _checked_depth(*operands: Expression) -> int:
    """The depth of an operator over these operands; an error beyond the limit."""
    depth = 1 + max(map(depth_of, operands))
    if depth > MAXIMUM_DEPTH:
        raise UnsupportedPatternError(f"an expression is {TOO_DEEP}")
    return depth


def kind_of_constant(expression: Expression) -> str | None:
    """``text`` or ``boolean``; None for a number, and for what is no constant."""
    if not isinstance(expression, Constant):
        return None
    return {str: "text", bool: "boolean"}.get(type(expression.value))


def depth_of(expression: Expression) -> int:
    """Nesting depth of operators; 0 without any."""
    return expression.depth if isinstance(expression, Negative | Arithmetic) else 0


_TIGHTNESS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}


def text_of(expression: Expression, indexed: Container[str] = ()) -> str:
    """``expression`` in the pattern language, with ``b[i].x`` for ``indexed`` variables."""
    match expression:
        case Attribute(variable, name, element):
            index = "[i]" if element == "each" and variable in indexed else ELEMENTS[element]
            return f"{quoted_unless_plain(variable)}{index}.{quoted_unless_plain(name)}"
        case Aggregate(function, Attribute(variable, name), before):
            span = "[..i-1]" if before else "[]"
            return f"{function}({quoted_unless_plain(variable)}{span}.{quoted_unless_plain(name)})"
        case Duration(value, is_datetime):
            if not is_datetime:
                return f"{value} units"
            fitting = (unit for unit, size in NANOSECONDS.items() if value % size == 0)
            unit = max(fitting, key=NANOSECONDS.__getitem__) if value else "seconds"
            return f"{value // NANOSECONDS[unit]} {unit}"  # type: ignore[operator]
        case Constant(str(text)):
            return "'" + text.replace("'", "''") + "'"
        case Constant(bool(value)):
            return str(value).lower()
        case Constant(value):
            whole = float(value).is_integer() and abs(float(value)) < 1e15
            return str(int(value)) if whole else repr(float(value))
        case Negative(operand):
            # -(5), the negative of a constant, is not the constant -5.
            inner = text_of(operand, indexed)
            return f"-{inner}" if isinstance(operand, Attribute | Aggregate) else f"-({inner})"
        case Arithmetic(operator, left, right):
            sides = [text_of(left, indexed), text_of(right, indexed)]
            # Operators associate to the left.
            for place, part in enumerate((left, right)):
                if isinstance(part, Arithmetic):
                    looser = _TIGHTNESS[part.operator] < _TIGHTNESS[operator] + place
                    sides[place] = f"({sides[place]})" if looser else sides[place]
            if operator == "%" and sides[1].startswith("-"):
                sides[1] = f"({sides[1]})"  # 5% - 3 is a percentage less 3
            return f"{sides[0]} {operator} {sides[1]}"


def terms_of(expression: Expression) -> Iterator[Attribute | Aggregate]:
    """The attributes and aggregates of an expression, left to right."""
    match expression:
        case Attribute() | Aggregate():
            yield expression
        case Negative(operand):
            yield from terms_of(operand)
        case Arithmetic(_, left, right):
            yield from terms_of(left)
            yield from terms_of(right)


def attributes_of(expression: Expression) -> Iterator[Attribute]:
    """The attributes that an expression reads, also inside aggregates, left to right."""
    for term in terms_of(expression):
        yield term.attribute if isinstance(term, Aggregate) else term


def with_terms(
    expression: Expression, change: Callable[[Attribute | Aggregate], Expression]
) -> Expression:
    """The expression with each attribute and aggregate replaced."""
    match expression:
        case Attribute() | Aggregate():
            return change(expression)
        case Negative(operand):
            return Negative(with_terms(operand, change))
        case Arithmetic(operator, left, right):
            return Arithmetic(operator, with_terms(left, change), with_terms(right, change))
    return expression


def with_attribute(
    term: Attribute | Aggregate, change: Callable[[Attribute], Attribute]
) -> Attribute | Aggregate:
    """A term with its attribute replaced, for :func:`with_terms`."""
    if isinstance(term, Aggregate):
        return replace(term, attribute=change(term.attribute))
    return change(term)


#: What the names of the two parts of a time begin with, see :mod:`cepbench.patterns.times`.
HIGH_PART, LOW_PART = "high part of the time ", "low part of the time "


def whole_time(name: str) -> str | None:
    """The name of the time column that an attribute is a part of; None for other attributes."""
    for part in (HIGH_PART, LOW_PART):
        if name.startswith(part):
            return name.removeprefix(part)
    return None


def of_any_variable(term: Attribute | Aggregate) -> Attribute:
    """An attribute without its variable, for :func:`with_terms`: equal values have one column."""
    assert isinstance(term, Attribute)  # aggregates are of sets
    return replace(term, variable="")


#: Each operator with its sides exchanged.
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}

#: The negation of each operator.
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "=": "!=", "!=": "="}


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left operator right`` with one of ``< <= > >= = !=``.

    False where either side is missing (NaN, null), as in SQL.
    """

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return self.text()

    def text(self, indexed: Container[str] = ()) -> str:
        """In the pattern language, with ``b[i].x`` for ``indexed`` variables."""
        left = self.left
        if isinstance(self.right, Duration):
            # Engines have the times in parts.
            left = self.difference(lambda name: whole_time(name) or name)
        return f"{text_of(left, indexed)} {self.operator} {text_of(self.right, indexed)}"

    def difference(self, named: Callable[[str], str] = str) -> Arithmetic:
        """``later - earlier`` of a comparison with a length of time, with other names of the times."""
        later, earlier, *_ = self.attributes()
        return Arithmetic("-", *(replace(its, name=named(its.name)) for its in (later, earlier)))

    def terms(self) -> Iterator[Attribute | Aggregate]:
        """The attributes and aggregates of both sides, left to right."""
        yield from terms_of(self.left)
        yield from terms_of(self.right)

    def attributes(self) -> Iterator[Attribute]:
        """The attributes that both sides read, left to right."""
        yield from attributes_of(self.left)
        yield from attributes_of(self.right)


#: A disjunction of comparisons; the empty one is never true.
Conjunct = tuple[Comparison, ...]


def without_implied(conjuncts: Iterable[Conjunct]) -> tuple[Conjunct, ...]:
    """``conjuncts`` without duplicates and without those implied by another one."""
    written: dict[frozenset[Comparison], Conjunct] = {}
    for conjunct in conjuncts:
        written.setdefault(frozenset(conjunct), conjunct)
    if frozenset() in written:
        return ((),)
    if len(written) == 1:
        return tuple(written.values())
    # Only a shorter conjunct can imply another; each is indexed by its rarest comparison, which
    # every conjunct that it implies must contain.
    number = Counter(itertools.chain.from_iterable(written))
    kept: set[frozenset[Comparison]] = set()
    under: dict[Comparison, list[frozenset[Comparison]]] = {}
    for candidate in sorted(written, key=len):
        if not any(shorter <= candidate for part in candidate for shorter in under.get(part, ())):
            kept.add(candidate)
            under.setdefault(min(written[candidate], key=number.__getitem__), []).append(candidate)
    return tuple(conjunct for found, conjunct in written.items() if found in kept)


@dataclass(frozen=True, slots=True)
class Clause:
    """One conjunct of the WHERE clause: a disjunction of comparisons over at most two variables.

    With a Kleene variable's ``each`` it must hold for each event of the set; with ``rest``,
    ``previous`` or an aggregate ``before``, for each i > 1.
    """

    comparisons: Conjunct
    #: Names of its variables, in order of first mention.
    variables: tuple[str, ...] = field(init=False, compare=False, repr=False)
    #: Whether each event of a Kleene set can be tested by itself.
    is_elementwise: bool = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "comparisons", tuple(dict.fromkeys(self.comparisons)))
        names = dict.fromkeys(attribute.variable for attribute in self.attributes())
        object.__setattr__(self, "variables", tuple(names))
        each = all(isinstance(t, Attribute) and t.element == "each" for t in self.terms())
        object.__setattr__(self, "is_elementwise", each)

    def __str__(self) -> str:
        indexed = self.running_variables()
        return " OR ".join(c.text(indexed) for c in self.comparisons)

    def bracketed(self) -> str:
        """Its text, in brackets if it is a disjunction."""
        return f"({self})" if len(self.comparisons) > 1 else f"{self}"

    def with_terms(self, change: Callable[[Attribute | Aggregate], Expression]) -> Clause:
        """The clause with each attribute and aggregate replaced."""
        return Clause(
            tuple(
                Comparison(c.operator, with_terms(c.left, change), with_terms(c.right, change))
                for c in self.comparisons
            )
        )

    def with_attributes(self, change: Callable[[Attribute], Attribute]) -> Clause:
        """The clause with each attribute replaced, also inside aggregates."""
        return self.with_terms(partial(with_attribute, change=change))

    def renamed(self, names: Mapping[str, str]) -> Clause:
        """The clause with other names of some variables."""
        return self.with_attributes(
            lambda its: replace(its, variable=names.get(its.variable, its.variable))
        )

    def terms(self) -> Iterator[Attribute | Aggregate]:
        """The attributes and aggregates of all comparisons."""
        for comparison in self.comparisons:
            yield from comparison.terms()

    def attributes(self) -> Iterator[Attribute]:
        """The attributes that its comparisons read."""
        for comparison in self.comparisons:
            yield from comparison.attributes()

    @property
    def is_running(self) -> bool:
        """Whether it ranges over i > 1: it has ``b[2..]``, ``b[i-1]`` or ``b[..i-1]``."""
        return bool(self.running_variables())

    def running_variables(self) -> set[str]:
        """The variables whose index i > 1 it ranges over; at most one in a valid pattern."""
        return {term.variable for term in self.terms() if term.is_running}


@dataclass(frozen=True, slots=True)
class Returned:
    """One column of the RETURN clause: ``value AS alias``."""

    #: The name of a variable, for the position of its event or the positions of its set; or an
    #: expression over the events of the match.
    value: str | Expression
    alias: str | None = None

    @property
    def name(self) -> str:
        """The name of the column: the alias, the variable, or the text of the expression."""
        if self.alias is not None:
            return self.alias
        return self.value if isinstance(self.value, str) else text_of(self.value)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of its variables, in order of first mention."""
        if isinstance(self.value, str):
            return (self.value,)
        return tuple(dict.fromkeys(attribute.variable for attribute in self.attributes()))

    def attributes(self) -> Iterator[Attribute]:
        """The attributes that it reads."""
        return iter(()) if isinstance(self.value, str) else attributes_of(self.value)

    def __str__(self) -> str:
        value = self.value
        text = quoted_unless_plain(value) if isinstance(value, str) else text_of(value)
        return text if self.alias is None else f"{text} AS {quoted_unless_plain(self.alias)}"


def quoted_unless_plain(name: str) -> str:
    """``name`` as the pattern language writes it: in double quotes unless it is an identifier."""
    if _IDENTIFIER.match(name) and name.rstrip("'").upper() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'
