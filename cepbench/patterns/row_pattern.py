"""Row patterns: the clause MATCH_RECOGNIZE of SQL:2016 as frozen data that ``str`` writes as SQL.

Source: ISO/IEC 9075-2, features R010 and R020; ISO/IEC TR 19075-5 explains them. What a row pattern
means is in docs/sql.md. :func:`cepbench.parse` with ``dialect="match_recognize"`` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import factorial
from typing import ClassVar, Literal

from cepbench.errors import PatternError
from cepbench.patterns.diagnosis import Span, error_at
from cepbench.patterns.expressions import NANOSECONDS, Constant, Duration
from cepbench.patterns.model import Window

#: What comes out: a row a match, or the rows of each match.
ROWS = (
    "ONE ROW PER MATCH",
    "ALL ROWS PER MATCH SHOW EMPTY MATCHES",
    "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
)

#: Where the next match may begin; the last two name a variable.
SKIPS = ("PAST LAST ROW", "TO NEXT ROW", "TO FIRST", "TO LAST")

#: The functions over the rows of a variable.
ROW_AGGREGATES = ("COUNT", "SUM", "AVG", "MIN", "MAX")

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9]*\Z")
#: Words that SQL does not read as a name.
_RESERVED = re.compile(
    "(?:ALL|AND|ARRAY|AS|ASC|BETWEEN|BY|CASE|CAST|CROSS|CURRENT_.*|DEFINE|DESC|DISTINCT|ELSE|END|EXCEPT|EXISTS|"
    "FALSE|FINAL|FOR|FROM|FULL|GROUP|HAVING|IF|IN|INNER|INTERSECT|INTERVAL|INTO|IS|JOIN|LEFT|LIKE|LIMIT|MATCH|"
    "MEASURES|NATURAL|NOT|NULL|ON|ONE|OR|ORDER|OUTER|PARTITION|PATTERN|PERMUTE|RIGHT|ROW|RUNNING|SELECT|"
    "SUBSET|TABLE|THEN|TRUE|UNION|USING|VALUES|WHEN|WHERE|WITH|WITHIN|AFTER)$"
)

_LOOSENESS = {"OR": 0, "AND": 1, "NOT": 2, "+": 4, "-": 4, "*": 5, "/": 5, "%": 5}


@dataclass(frozen=True, slots=True)
class Reference:
    """The value of a column in one row; without a column the variable of that row, ``CLASSIFIER()``.

    Of the rows of ``variable`` (of a match, if there is none) the last, or with ``from_first`` the
    first one, ``offset`` rows of the variable nearer to the other end; from there ``shift`` rows of the
    partition further, or back. Only the rows up to the current one are known, unless ``is_final``.
    """

    column: str | None
    variable: str | None = None
    from_first: bool = False
    offset: int = 0
    shift: int = 0
    is_final: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether it is written without a function."""
        return self == Reference(self.column, self.variable)

    def __str__(self) -> str:
        if self.column is None:
            text = f"CLASSIFIER({'' if self.variable is None else variable_text(self.variable)})"
        else:
            text = column_text(self.column)
            if self.variable is not None:
                text = f"{variable_text(self.variable)}.{text}"
        if self.from_first or self.offset or self.is_final:
            function = "FIRST" if self.from_first else "LAST"
            text = f"{'FINAL ' * self.is_final}{function}({text}{_more(self.offset, 0)})"
        if self.shift:
            text = f"{'NEXT' if self.shift > 0 else 'PREV'}({text}{_more(abs(self.shift), 1)})"
        return text


def _more(number: int, usual: int) -> str:
    return "" if number == usual else f", {number}"


@dataclass(frozen=True, slots=True)
class RowAggregate:
    """A function over the rows of a variable, or of a match; without an argument ``COUNT(*)``."""

    function: str
    argument: RowExpression | None = None
    variable: str | None = None
    is_final: bool = False

    def __str__(self) -> str:
        inside = str(self.argument)
        if self.argument is None:
            inside = "*" if self.variable is None else f"{variable_text(self.variable)}.*"
        return f"{'FINAL ' * self.is_final}{self.function}({inside})"


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """``MATCH_NUMBER()``: 1 for the first match of a partition."""

    def __str__(self) -> str:
        return "MATCH_NUMBER()"


@dataclass(frozen=True, slots=True)
class Operation:
    """``operator`` over its operands: ``+ - * / %``, comparisons, ``AND``, ``OR``, ``NOT``, ``IS NULL``."""

    operator: str
    operands: tuple[RowExpression, ...]

    def __str__(self) -> str:
        own = _LOOSENESS.get(self.operator, 3)
        # Operators associate to the left; comparisons do not at all.
        sides = [
            f"({_sql(part)})" if _looseness(part) < own + (place > 0 or own == 3) else _sql(part)
            for place, part in enumerate(self.operands)
        ]
        if self.operator == "IS NULL":
            return f"{sides[0]} IS NULL"
        if len(sides) == 1:
            gap = " " if self.operator == "NOT" else ""
            return f"{self.operator}{gap}({_sql(self.operands[0])})"
        return f" {self.operator} ".join(sides)


RowExpression = Reference | RowAggregate | MatchNumber | Operation | Constant


def _looseness(expression: RowExpression) -> int:
    if isinstance(expression, Operation):
        return _LOOSENESS.get(expression.operator, 3) if len(expression.operands) > 1 else 3
    return 9


def _sql(expression: RowExpression) -> str:
    if not isinstance(expression, Duration):
        return str(expression)
    if not expression.is_datetime:
        return f"{expression.value}"
    return f"INTERVAL {interval_text(int(expression.value))}"


def interval_text(nanoseconds: int) -> str:
    """A length of time as SQL has it after INTERVAL, in the largest unit that holds it."""
    unit = max(
        (its for its, size in NANOSECONDS.items() if nanoseconds % size == 0),
        key=NANOSECONDS.__getitem__,
    )
    return f"'{nanoseconds // NANOSECONDS[unit]}' {unit.removesuffix('s').upper()}"


def parts_of(expression: RowExpression) -> Iterator[RowExpression]:
    """The expression and all inside it, those in aggregates too."""
    yield expression
    inside: tuple[RowExpression, ...] = ()
    if isinstance(expression, Operation):
        inside = expression.operands
    elif isinstance(expression, RowAggregate) and expression.argument is not None:
        inside = (expression.argument,)
    for part in inside:
        yield from parts_of(part)


@dataclass(frozen=True, slots=True)
class RowTerm:
    """A part of PATTERN.

    ``kind`` is ``variable``, ``sequence``, ``alternatives``, ``PERMUTE``, ``exclusion``, ``quantified``, or
    ``^``, ``$`` and ``()``, which map no row. Quantified is ``least`` to ``most`` times, without an end
    for None; as often as possible, or with ``is_reluctant`` as seldom.
    """

    kind: Literal[
        "variable", "sequence", "alternatives", "PERMUTE", "exclusion", "quantified", "^", "$", "()"
    ]
    parts: tuple[RowTerm, ...] = ()
    name: str = ""
    least: int = 1
    most: int | None = 1
    is_reluctant: bool = False

    def variables(self) -> Iterator[str]:
        """The names of its variables, in written order, with repetition."""
        if self.kind == "variable":
            yield self.name
        for part in self.parts:
            yield from part.variables()

    @property
    def size(self) -> int:
        """How many places for a row it has, permutations and repetitions, of nothing too, written out."""
        inside = sum(part.size for part in self.parts)
        match self.kind:
            case "variable":
                return 1
            case "PERMUTE":
                return inside * factorial(len(self.parts))
            case "quantified":
                return max(1, inside) * max(1, self.least if self.most is None else self.most)
        return inside

    def __str__(self) -> str:
        match self.kind:
            case "variable":
                return variable_text(self.name)
            case "sequence":
                return " ".join(part.enclosed("sequence", "alternatives") for part in self.parts)
            case "alternatives":
                return " | ".join(part.enclosed("alternatives") for part in self.parts)
            case "PERMUTE":
                return f"PERMUTE({', '.join(map(str, self.parts))})"
            case "exclusion":
                return f"{{- {self.parts[0]} -}}"
            case "quantified":
                part = self.parts[0].enclosed("sequence", "alternatives", "quantified")
                return f"{part}{self._quantifier}{'?' * self.is_reluctant}"
        return self.kind

    def enclosed(self, *kinds: str) -> str:
        """Its text, in brackets if it is of these kinds."""
        return f"({self})" if self.kind in kinds else f"{self}"

    @property
    def _quantifier(self) -> str:
        short = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((self.least, self.most))
        if short:
            return short
        if self.least == self.most:
            return f"{{{self.least}}}"
        return f"{{{self.least},{'' if self.most is None else self.most}}}"


@dataclass(frozen=True, slots=True)
class Measure:
    """``expression AS name``."""

    expression: RowExpression
    name: str

    def __str__(self) -> str:
        return f"{_sql(self.expression)} AS {column_text(self.name)}"


@dataclass(frozen=True)
class Written:
    """A query as its author wrote it, so that errors are under its words.

    ``places`` has the clauses by name, and the expressions: each by itself, where it stands first, and
    with the measure or the variable in whose condition it stands, ``("DEFINE", "A", expression)``.
    """

    text: str
    places: Mapping[object, Span]

    def error(self, kind: type[PatternError], message: str, *places: object) -> PatternError:
        """An error that marks the first of these places that is written, else the whole query."""
        known = (self.places[place] for place in places if place in self.places)
        return error_at(kind, message, self.text, next(known, Span(0, len(self.text))))


@dataclass(frozen=True)
class RowPattern:
    """``SELECT … FROM … MATCH_RECOGNIZE (…)``: which rows follow each other, and what to return of them.

    Equal ones mean the same; names of columns are as written, and found in a stream whatever their
    case if they are not found as they are.
    """

    #: What PATTERN says.
    term: RowTerm
    #: The condition of each variable in DEFINE; one without a condition may be any row.
    define: tuple[tuple[str, RowExpression], ...] = ()
    measures: tuple[Measure, ...] = ()
    partition_by: tuple[str, ...] = ()
    order_by: tuple[str, ...] = ()
    #: One of :data:`ROWS`.
    rows: str = ROWS[0]
    #: One of :data:`SKIPS`, and the variable that it names.
    skip: str = SKIPS[0]
    skip_to: str | None = None
    #: The variables that each name in SUBSET stands for.
    subsets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    #: The last row is less than this after the first one, as Flink reads WITHIN.
    within: Window | None = None
    #: The columns that SELECT takes, and their names there; None for all.
    columns: tuple[tuple[str, str], ...] | None = None
    #: The columns that the ORDER BY of the query names, and whether each is descending.
    sorted_by: tuple[tuple[str, bool], ...] = ()
    #: The query that was read; no part of what it means.
    written: Written | None = field(default=None, compare=False)

    #: A row pattern is one query.
    by_query: ClassVar[Literal[False]] = False

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of all variables of PATTERN, in order of appearance."""
        return tuple(dict.fromkeys(self.term.variables()))

    def covered(self, name: str | None) -> tuple[str, ...]:
        """The variables that a name stands for: itself, those of a subset, or all for None."""
        if name is None:
            return self.variables
        return dict(self.subsets).get(name, (name,))

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        return " ".join(self._lines(""))

    def describe(self) -> str:
        """The SQL over several lines, one per clause."""
        return "\n".join(self._lines("  "))

    def _lines(self, indent: str) -> Iterator[str]:
        listed = "*"
        if self.columns is not None:
            listed = ", ".join(
                column_text(name) + (f" AS {column_text(alias)}" if alias != name else "")
                for name, alias in self.columns
            )
        yield f"SELECT {listed} FROM events MATCH_RECOGNIZE ("
        if self.partition_by:
            yield f"{indent}PARTITION BY {', '.join(map(column_text, self.partition_by))}"
        if self.order_by:
            yield f"{indent}ORDER BY {', '.join(map(column_text, self.order_by))}"
        if self.measures:
            yield f"{indent}MEASURES {', '.join(map(str, self.measures))}"
        yield indent + self.rows
        to = "" if self.skip_to is None else f" {variable_text(self.skip_to)}"
        yield f"{indent}AFTER MATCH SKIP {self.skip}{to}"
        yield f"{indent}PATTERN ({self.term})"
        if self.within is not None:
            length = self.within.length + 1
            exact = f"INTERVAL {interval_text(length)}" if self.within.is_datetime else f"{length}"
            yield f"{indent}WITHIN {exact}"
        if self.subsets:
            texts = (
                f"{variable_text(name)} = ({', '.join(map(variable_text, its))})"
                for name, its in self.subsets
            )
            yield f"{indent}SUBSET {', '.join(texts)}"
        conditions = [f"{variable_text(name)} AS {_sql(its)}" for name, its in self.define]
        yield f"{indent}DEFINE {', '.join(conditions)})" if conditions else ")"
        if self.sorted_by:
            keys = (f"{column_text(name)}{' DESC' * falls}" for name, falls in self.sorted_by)
            yield f"ORDER BY {', '.join(keys)}"


def column_text(name: str) -> str:
    """The name of a column as SQL writes it: in double quotes unless it is an identifier."""
    if _PLAIN.match(name) and not _RESERVED.match(name.upper()):
        return name
    return '"' + name.replace('"', '""') + '"'


def variable_text(name: str) -> str:
    """The name of a variable, which is in capital letters unless it was quoted."""
    return column_text(name) if name == name.upper() else '"' + name.replace('"', '""') + '"'
