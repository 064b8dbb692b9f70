"""The pattern model: an operator over typed variables, conditions in CNF, and a window.

Everything is frozen and compares by value; ``str`` writes text that parses back to an equal
object. A ``Structure`` may hold structures, and an item may later be something other than a
plain variable, so that negation, Kleene closure, disjunction and nesting have their place.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from cepbench.errors import PatternError, UnsupportedPatternError

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")

#: Length of each time unit in nanoseconds; ``units`` counts ticks of an integer time column.
NANOSECONDS = {
    "milliseconds": 10**6,
    "seconds": 10**9,
    "minutes": 60 * 10**9,
    "hours": 3600 * 10**9,
    "days": 86_400 * 10**9,
}

_RESERVED = frozenset({"PATTERN", "WHERE", "WITHIN", "SEQ", "AND", "OR", "NOT"})


class Operator(StrEnum):
    """The n-ary operators of a pattern [kolchinsky2018]_, section 2.1."""

    SEQ = "SEQ"
    AND = "AND"


@dataclass(frozen=True, slots=True)
class Variable:
    """One item of a pattern: ``type name``, bound to one event of that type."""

    name: str
    type: str

    def __str__(self) -> str:
        return f"{quoted_unless_plain(self.type)} {quoted_unless_plain(self.name)}"


@dataclass(frozen=True, slots=True)
class Structure:
    """An operator over items, in the order in which they were written."""

    operator: Operator
    items: tuple[Variable | Structure, ...]

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
        """All pairs (x, y) of names such that x's timestamp must be smaller than y's."""
        pairs: set[tuple[str, str]] = set()
        earlier: list[str] = []
        for item in self.items:
            if isinstance(item, Structure):
                pairs |= item.precedence()
                names = [variable.name for variable in item.variables()]
            else:
                names = [item.name]
            if self.operator is Operator.SEQ:
                pairs |= {(before, name) for before in earlier for name in names}
            earlier += names
        return pairs


@dataclass(frozen=True, slots=True)
class Attribute:
    """``variable.name``: an attribute of the event bound to a variable."""

    variable: str
    name: str

    def __str__(self) -> str:
        return f"{quoted_unless_plain(self.variable)}.{quoted_unless_plain(self.name)}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a text."""

    value: float | str

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return "'" + self.value.replace("'", "''") + "'"
        if float(self.value).is_integer() and abs(self.value) < 1e15:
            return str(int(self.value))
        return repr(float(self.value))


@dataclass(frozen=True, slots=True)
class Negative:
    """Unary minus."""

    operand: Expression

    def __str__(self) -> str:
        # Brackets keep -(5), the negative of a constant, apart from the constant -5.
        bare = isinstance(self.operand, Attribute)
        return f"-{self.operand}" if bare else f"-({self.operand})"


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left operator right`` with one of ``+ - * /``."""

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        def side(part: Expression, *, is_right: bool) -> str:
            if not isinstance(part, Arithmetic):
                return str(part)
            tight = {"+": 1, "-": 1, "*": 2, "/": 2}
            mine, its = tight[self.operator], tight[part.operator]
            # The grammar associates to the left, so an equally tight right side needs brackets.
            return f"({part})" if its < mine or (is_right and its == mine) else str(part)

        left, right = side(self.left, is_right=False), side(self.right, is_right=True)
        return f"{left} {self.operator} {right}"


Expression = Attribute | Constant | Negative | Arithmetic


def attributes_of(expression: Expression) -> Iterator[Attribute]:
    """The attributes that an expression reads, left to right."""
    match expression:
        case Attribute():
            yield expression
        case Negative(operand):
            yield from attributes_of(operand)
        case Arithmetic(_, left, right):
            yield from attributes_of(left)
            yield from attributes_of(right)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``left operator right`` with one of ``< <= > >= = !=``.

    False where either side is missing (NaN, null), as in SQL.
    """

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"

    def attributes(self) -> Iterator[Attribute]:
        """The attributes that either side reads, left to right."""
        yield from attributes_of(self.left)
        yield from attributes_of(self.right)


#: A disjunction of comparisons; the empty one is never true.
Conjunct = tuple[Comparison, ...]


def without_implied(conjuncts: Iterable[Conjunct]) -> tuple[Conjunct, ...]:
    """``conjuncts`` without those that repeat or are weaker than another one."""
    written: dict[frozenset[Comparison], Conjunct] = {}
    for conjunct in conjuncts:
        written.setdefault(frozenset(conjunct), conjunct)
    if frozenset() in written:
        return ((),)
    # Shorter ones first, as only they can imply; each under one comparison that whatever it
    # implies must have too.
    kept: set[frozenset[Comparison]] = set()
    under: dict[Comparison, list[frozenset[Comparison]]] = {}
    for candidate in sorted(written, key=len):
        if not any(shorter <= candidate for part in candidate for shorter in under.get(part, ())):
            kept.add(candidate)
            under.setdefault(written[candidate][0], []).append(candidate)
    return tuple(conjunct for found, conjunct in written.items() if found in kept)


@dataclass(frozen=True, slots=True)
class Clause:
    """One conjunct of the WHERE clause: a disjunction of comparisons over at most two variables."""

    comparisons: Conjunct

    def __post_init__(self) -> None:
        object.__setattr__(self, "comparisons", tuple(dict.fromkeys(self.comparisons)))

    def __str__(self) -> str:
        return " OR ".join(map(str, self.comparisons))

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables it mentions, each once, in order of first mention."""
        found = (a.variable for comparison in self.comparisons for a in comparison.attributes())
        return tuple(dict.fromkeys(found))

    def attributes(self) -> Iterator[Attribute]:
        """The attributes that any comparison reads."""
        for comparison in self.comparisons:
            yield from comparison.attributes()


@dataclass(frozen=True, slots=True)
class Window:
    """WITHIN: the largest allowed difference of two timestamps of a match (closed).

    ``unit`` is a key of :data:`NANOSECONDS`, or ``units`` for ticks of an integer time column.
    """

    amount: float
    unit: str

    def __post_init__(self) -> None:
        if self.unit != "units" and self.unit not in NANOSECONDS:
            known = ", ".join([*NANOSECONDS, "units"])
            raise PatternError(f"unknown window unit {self.unit!r}; use one of {known}")
        if not 0 <= self.amount < float("inf"):
            raise PatternError(f"WITHIN {self.amount}: a window must be finite and not negative")
        if self.length > 2**61:
            raise PatternError(f"WITHIN {self}: longer than the 73 years that fit a timestamp")

    @property
    def is_datetime(self) -> bool:
        """Whether the window is meant for datetime columns (else for integer time)."""
        return self.unit != "units"

    @property
    def length(self) -> int:
        """In nanoseconds, or in ticks for ``units``; fractions of those never matter."""
        return int(round(self.amount * NANOSECONDS.get(self.unit, 1), 6))

    @property
    def seconds(self) -> float:
        """In seconds, or in ticks for ``units``: the scale on which arrival rates are given."""
        return self.length / 1e9 if self.is_datetime else float(self.length)

    def __str__(self) -> str:
        return f"{Constant(self.amount)} {self.unit}"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern: ``PATTERN structure WHERE conditions WITHIN window``.

    Attributes
    ----------
    structure : Structure
        SEQ or AND over variables.
    conditions : tuple of Clause
        The WHERE clause in conjunctive normal form; empty if there is none. Conjuncts that repeat
        or are weaker than another one are left out.
    window : Window
        The WITHIN clause.
    """

    structure: Structure
    conditions: tuple[Clause, ...]
    window: Window

    def __post_init__(self) -> None:
        names = self.names
        if not names:
            raise PatternError("a pattern needs at least one variable")
        for name in names:
            if names.count(name) > 1:
                raise PatternError(f"variable {name!r} stands for two items; rename one of them")
        kept = without_implied(clause.comparisons for clause in self.conditions)
        object.__setattr__(self, "conditions", tuple(map(Clause, kept)))
        for clause in self.conditions:
            unknown = [name for name in clause.variables if name not in names]
            if unknown:
                raise PatternError(f"unknown variable {unknown[0]!r} in condition {clause}")
            if len(clause.variables) > 2:
                raise UnsupportedPatternError(
                    f"condition {clause} ties {len(clause.variables)} variables together; "
                    "a condition may mention at most two"
                )
            if not clause.variables:
                raise PatternError(f"condition {clause} mentions no variable; leave it out")

    @property
    def variables(self) -> tuple[Variable, ...]:
        """All variables in the order in which they were written."""
        return tuple(self.structure.variables())

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all variables in the order in which they were written."""
        return tuple(variable.name for variable in self.structure.variables())

    @property
    def operator(self) -> Operator:
        """The outermost operator."""
        return self.structure.operator

    @property
    def is_simple(self) -> bool:
        """Whether it has a single n-ary operator [kolchinsky2018]_, section 2.1."""
        return all(isinstance(item, Variable) for item in self.structure.items)

    def clauses_between(self, first: str, second: str) -> tuple[Clause, ...]:
        """The conditions over exactly these two variables, or over one if both are the same."""
        wanted = {first, second}
        return tuple(clause for clause in self.conditions if set(clause.variables) == wanted)

    def __str__(self) -> str:
        # Brackets only where a disjunction stands beside other conjuncts: NOT, AND, OR bind in
        # this order, as in SQL.
        parts = [
            f"({clause})"
            if len(clause.comparisons) > 1 and len(self.conditions) > 1
            else f"{clause}"
            for clause in self.conditions
        ]
        where = f" WHERE {' AND '.join(parts)}" if parts else ""
        return f"PATTERN {self.structure}{where} WITHIN {self.window}"

    def describe(self) -> str:
        """The pattern over several lines, one conjunct a line."""
        lines = [f"PATTERN {self.structure}"]
        for number, clause in enumerate(self.conditions):
            text = f"({clause})" if len(clause.comparisons) > 1 else f"{clause}"
            lines.append(f"{'WHERE  ' if number == 0 else '   AND '} {text}")
        return "\n".join([*lines, f"WITHIN  {self.window}"])

    def _repr_html_(self) -> str:
        return f'<pre class="cep-pattern">{html.escape(self.describe())}</pre>'


def quoted_unless_plain(name: str) -> str:
    """``name`` as the pattern language writes it: in double quotes unless it is an identifier."""
    if _IDENTIFIER.match(name) and name.upper() not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'
