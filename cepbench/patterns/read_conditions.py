"""The WHERE clause: conditions, expressions, and the shorthand ``[attr]``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from cepbench.errors import (
    PatternError,
    PatternNameError,
    PatternSyntaxError,
    UnsupportedPatternError,
    did_you_mean,
)
from cepbench.patterns.equivalences import comparisons_of, equalities
from cepbench.patterns.expressions import (
    ELEMENTS,
    MIRRORED,
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Duration,
    Expression,
    Negative,
    depth_of,
    kind_of_constant,
)
from cepbench.patterns.model import Window
from cepbench.patterns.normal_form import Condition, Conjunction, Disjunction, Negation
from cepbench.patterns.pattern_text import (
    PatternText,
    decimal_of,
    name_of,
    names_in,
    nodes_of,
    parts_of_duration,
    tokens_of,
    without_brackets,
)
from cepbench.patterns.structure import Structure

if TYPE_CHECKING:
    from lark import Token

    from cepbench.patterns.pattern_text import Node

#: Limit of the comparisons that one ``[attribute]`` expands to, over all branches.
MAXIMUM_EQUALITIES = 50_000

_ABBREVIATIONS = {
    "nanoseconds": ("nanosecond", "nanos", "nsecs", "nsec", "ns"),
    "microseconds": ("microsecond", "micros", "usecs", "usec", "us", "\u00b5s", "\u03bcs"),
    "milliseconds": ("millisecond", "millis", "msecs", "msec", "ms"),
    "seconds": ("second", "secs", "sec", "s"),
    "minutes": ("minute", "mins", "min", "m"),
    "hours": ("hour", "hrs", "hr", "h"),
    "days": ("day", "d"),
    "weeks": ("week", "wks", "wk", "w"),
    "units": ("unit",),
}
#: Spelling of a unit → its name.
UNITS = {spelling: unit for unit, others in _ABBREVIATIONS.items() for spelling in (unit, *others)}

_COMPARISONS = {"==": "=", "<>": "!=", "≤": "<=", "≥": ">=", "≠": "!="}


class ConditionReader:
    """Builds conditions from parse trees, for the variables of a structure.

    In ZStream's dialect a chain of equalities holds between any two of its sides; in SASE+'s
    ``a[i]`` is every event but the first.
    """

    def __init__(
        self, source: PatternText, structure: Structure, dialect: str | None = None
    ) -> None:
        self._source = source
        self._dialect = dialect
        self._branches = structure.alternatives()
        self._kinds = {v.name: v.kind for v in structure.variables()}
        #: In A-Seq's dialect the lower-case names of items that are named after their types.
        self._aliases = {
            v.name.lower(): v.name
            for v in structure.variables()
            if dialect == "a-seq" and v.type and v.name.startswith(v.type)
        }

    @cached_property
    def _equalities(self) -> int:
        """How many comparisons make one attribute equal everywhere."""
        return len(equalities(self._branches))

    def read(self, tree: Node) -> Condition:
        """The condition of a parse tree."""
        return self._condition(tree, 1)

    def value(self, tree: Node) -> str | Expression:
        """The value of a column of RETURN: a variable's name, or an expression."""
        names = names_in(tree) if tree.data in ("parameter", "quoted") else []
        return self.known(names[0]) if names else self._expression(tree, 1)

    def known(self, token: Token) -> str:
        """The name of a variable of the pattern."""
        (name,) = self.resolved([token])
        if name not in self._kinds:
            self._source.fail(
                PatternNameError,
                f"unknown variable {name!r}; the pattern has {', '.join(self._kinds)}"
                f"{did_you_mean(name, self._kinds)}",
                token,
            )
        return name

    def resolved(self, tokens: Sequence[Token]) -> list[str]:
        """The names of a variable and an attribute; in A-Seq's dialect ``C.c.x`` is ``C.x``."""
        names = list(map(name_of, tokens))
        if len(names) == 3:
            if self._aliases.get(names[1]) != names[0]:
                self._source.fail(
                    PatternNameError,
                    f"{'.'.join(names)}: the event of {names[0]} is {names[0]}.{names[0].lower()}",
                    tokens[1],
                )
            del names[1]
        if names and names[0] not in self._kinds:
            names[0] = self._aliases.get(names[0], names[0])
        return names

    def _condition(self, tree: Node, depth: int) -> Condition:
        self._source.check_depth(depth, tree)
        negated = False
        tree = without_brackets(tree)
        while tree.data == "negation":
            negated = not negated
            tree = without_brackets(nodes_of(tree)[0])
        condition = self._positive(tree, depth)
        return Negation(condition) if negated else condition

    def _positive(self, tree: Node, depth: int) -> Condition:
        """The condition below any number of NOTs."""
        match tree.data:
            case "comparison":
                return self._comparison(tree)
            case "equality" | "same":
                return Conjunction(tuple(comparisons_of(self.equivalences(tree), self._branches)))
            case "bare":
                return self._bare(nodes_of(tree)[0])
            case "truth":
                is_true = tokens_of(tree)[0].type == "TRUE"
                return Conjunction(()) if is_true else Disjunction(())
        parts = tuple(self._condition(part, depth + 1) for part in nodes_of(tree))
        return Conjunction(parts) if tree.data == "conjunction" else Disjunction(parts)

    def _bare(self, tree: Node) -> Condition:
        """A boolean by itself: ``true``, or ``a.flag``, which is ``a.flag = true``."""
        is_value = without_brackets(tree).data in ("attribute", "truth", "parameter")
        value = self._expression(tree, 1) if is_value else None
        if isinstance(value, Attribute):
            return Comparison("=", value, Constant(True))
        if not (isinstance(value, Constant) and isinstance(value.value, bool)):
            self._source.fail(
                PatternSyntaxError,
                "a value is no condition; expected a comparison (<, <=, >, >=, =, !=) after it",
                tree,
            )
        return Conjunction(()) if value.value else Disjunction(())

    def equivalences(self, tree: Node) -> tuple[str, ...]:
        """The attributes that ``[x, y]``, or ZStream's ``same x``, makes equal everywhere.

        Raises UnsupportedPatternError if they would take more than :data:`MAXIMUM_EQUALITIES`
        comparisons.
        """
        names = list(dict.fromkeys(map(name_of, names_in(tree))))
        if tree.data == "same":
            first, *words = names
            if first.lower() != "same":
                self._source.fail(
                    PatternSyntaxError,
                    f"unexpected {words[0]!r}; expected a comparison, or same and the name of an "
                    "attribute",
                    names_in(tree)[1],
                )
            names = [" ".join(words)]
        number = len(names) * self._equalities
        if number > MAXIMUM_EQUALITIES:
            self._source.fail(
                UnsupportedPatternError,
                f"equality of {len(names)} attributes expands to {number} comparisons, and the "
                f"limit is {MAXIMUM_EQUALITIES}; use fewer attributes, or split the pattern",
                tree,
            )
        return tuple(names)

    def _comparison(self, tree: Node) -> Condition:
        sides = nodes_of(tree)
        if next(tree.find_data("duration"), None) is not None:
            return self._of_times(tree)
        expressions = [self._expression(side, 1) for side in sides]
        found = []
        for number, symbol in enumerate(map(_symbol, tokens_of(tree))):
            left, right = expressions[number], expressions[number + 1]
            # None: numbers and attributes.
            kinds = [kind_of_constant(left), kind_of_constant(right)]
            kind = kinds[0] or kinds[1]
            if kind and symbol not in ("=", "!="):
                self._source.fail(
                    PatternError,
                    f"{symbol} orders a {kind}; {kind}s can only be = or !=",
                    sides[number + kinds.index(kind)],
                )
            if kind and any(
                its != kind and not isinstance(side, Attribute)
                for side, its in zip((left, right), kinds, strict=True)
            ):
                other = next((its for its in kinds if its != kind), None) or "number"
                self._source.fail(
                    PatternError, f"{left} {symbol} {right} compares a {kind} with a {other}", tree
                )
            found.append(Comparison(symbol, left, right))
        if self._dialect == "zstream" and all(comparison.operator == "=" for comparison in found):
            # Also where a negated variable stands between two others.
            found += [
                Comparison("=", left, right)
                for place, left in enumerate(expressions)
                for right in expressions[place + 2 :]
            ]
        return found[0] if len(found) == 1 else Conjunction(tuple(found))

    # -- times ----------------------------------------------------------------------------------

    def _of_times(self, tree: Node) -> Condition:
        """Comparisons with durations, as ``later - earlier <= duration``."""
        sides = nodes_of(tree)
        found = []
        for number, symbol in enumerate(map(_symbol, tokens_of(tree))):
            times: list[tuple[int, Attribute]] = []
            lengths: list[Window] = []
            total = self._added(sides[number], 1, times, lengths)
            total += self._added(sides[number + 1], -1, times, lengths)
            kinds = {length.is_datetime for length in lengths}
            names = {attribute.name for _, attribute in times}
            if len(kinds) != 1 or len(names) != 1 or sorted(sign for sign, _ in times) != [-1, 1]:
                self._source.fail(
                    PatternError,
                    "a length of time is compared with the difference of two times, as in b.ts - a.ts "
                    "<= 10 seconds, or a.ts + 10 seconds < b.ts",
                    tree,
                )
            later, earlier = (its for _, its in sorted(times, key=lambda its: -its[0]))
            if total > 0:  # later - earlier + total < 0: earlier - later > total
                later, earlier, total, symbol = earlier, later, -total, MIRRORED[symbol]
            left = Arithmetic("-", later, earlier)
            found.append(Comparison(symbol, left, Duration(-total, kinds.pop())))
        return found[0] if len(found) == 1 else Conjunction(tuple(found))

    def _added(
        self, tree: Node, sign: int, times: list[tuple[int, Attribute]], lengths: list[Window]
    ) -> int:
        """The ticks of the durations in a sum; its times are added to ``times``, with their signs."""
        tree = without_brackets(tree)
        match tree.data:
            case "duration":
                amount, unit = parts_of_duration(tokens_of(tree)[0])
                try:
                    lengths.append(Window(decimal_of(amount), UNITS[unit.lower()]))
                except PatternError as error:
                    self._source.fail(PatternError, str(error).removeprefix("WITHIN "), tree)
                return sign * lengths[-1].length
            case "attribute":
                attribute = self._expression(tree, 1)
                assert isinstance(attribute, Attribute)
                times.append((sign, attribute))
                return 0
            case "negative":
                return self._added(nodes_of(tree)[0], -sign, times, lengths)
            case "sum":
                signs = [sign, *(-sign if its.type == "MINUS" else sign for its in tokens_of(tree))]
                parts = zip(nodes_of(tree), signs, strict=True)
                return sum(self._added(part, its, times, lengths) for part, its in parts)
        return self._source.fail(
            PatternError,
            "next to a length of time only times of events, other lengths, + and - may stand: b.ts - "
            "a.ts <= 10 seconds",
            tree,
        )

    # -- expressions ----------------------------------------------------------------------------

    def _expression(self, tree: Node, depth: int) -> Expression:
        tree = without_brackets(tree)
        match tree.data:
            case "attribute":
                attribute, before = self._attribute(tree)
                if before:
                    self._source.fail(
                        PatternSyntaxError,
                        "the events before b[i] are a set; apply a function, as in avg(b[..i-1].x)",
                        tree,
                    )
                has_i = any(tokens_of(index)[0].type != "EMPTY" for index in nodes_of(tree))
                if self._dialect == "sase+" and has_i and attribute.element == "each":
                    return replace(attribute, element="rest")
                return attribute
            case "aggregate":
                attribute, before = self._attribute(nodes_of(tree)[0])
                if self._dialect == "sase+" and attribute.element == "previous":
                    attribute, before = replace(attribute, element="each"), True
                return Aggregate(tokens_of(tree)[0].lower(), attribute, before)
            case "negative":
                self._source.check_depth(depth, tree)
                operand = nodes_of(tree)[0]
                inner = self._operand(operand, depth + 1)
                # -5 is a constant, -(5) the negative of one.
                literal = operand.data in ("number", "percentage", "parameter")
                if literal and isinstance(inner, Constant):
                    # Neither a text nor a boolean, see _operand.
                    return Constant(-float(inner.value))
                self._source.check_depth(1 + depth_of(inner), tree)
                return Negative(inner)
            case "sum" | "product":
                operators = tokens_of(tree)
                self._source.check_depth(max(depth, len(operators)), tree)
                result, *terms = (self._operand(term, depth + 1) for term in nodes_of(tree))
                for operator, term in zip(operators, terms, strict=True):
                    self._source.check_depth(1 + max(depth_of(result), depth_of(term)), tree)
                    result = Arithmetic(str(operator), result, term)
                return result
            case "duration":
                self._source.fail(
                    PatternError,
                    "a length of time is compared with the difference of two times, as in b.ts - a.ts "
                    "<= 10 seconds",
                    tree,
                )
            case "parameter" if (name := str(tokens_of(tree)[0])) in self._kinds:
                self._source.fail(
                    PatternSyntaxError,
                    f"{name} is a variable; expected a dot and an attribute after it, as in "
                    f"{name}.price",
                    tree,
                )
        return Constant(self._source.constant(tree))

    def _operand(self, tree: Node, depth: int) -> Expression:
        expression = self._expression(tree, depth)
        if kind := kind_of_constant(expression):
            self._source.fail(
                PatternError, f"arithmetic on a {kind}; {kind}s can only be = or !=", tree
            )
        return expression

    def _attribute(self, tree: Node) -> tuple[Attribute, bool]:
        """An attribute, and whether it ranges over all events before ``b[i]``."""
        variable, *_ = names_in(tree)
        _, attribute = self.resolved(names_in(tree))
        name = self.known(variable)
        indices = nodes_of(tree)
        element = self._element(indices[0], name) if indices else "each"
        before = element == "before"
        return Attribute(name, attribute, "each" if before else element), before

    def _element(self, tree: Node, variable: str) -> str:
        written = "".join(str(token) for token in tokens_of(tree)[1:-1]).lower()
        if tokens_of(tree)[0].type == "EMPTY":
            return "each"
        known = {"..i-1": "before"} | {text[1:-1] or "i": which for which, text in ELEMENTS.items()}
        length = [name_of(token) for token in names_in(tree)]
        if len(length) == 2 and length[0] == variable and length[1].upper() == "LEN":
            return "last"
        if written not in known:
            self._source.fail(
                PatternSyntaxError,
                f"unknown index; an event of {variable} is {variable}[i], {variable}[i-1], "
                f"{variable}[1], {variable}[last] or {variable}[{variable}.LEN], all but the first "
                f"are {variable}[2..], and all before b[i] are {variable}[..i-1]",
                tree,
            )
        return known[written]


def without_needless_rest(clause: Clause) -> Clause:
    """The clause with ``b[i]`` for ``b[2..]`` where ``b[i-1]`` or ``b[..i-1]`` says that i > 1."""

    def as_each(term: Attribute | Aggregate) -> Expression:
        if isinstance(term, Attribute) and term.element == "rest":
            return replace(term, element="each")
        return term

    shorter = clause.with_terms(as_each)
    return shorter if shorter.running_variables() == clause.running_variables() else clause


def conjoined(tree: Node) -> list[Node]:
    """The top-level conjuncts of a condition's parse tree, in order."""
    found, waiting = [], [tree]
    while waiting:
        part = waiting.pop()
        if part.data in ("conjunction", "brackets"):
            waiting.extend(reversed(nodes_of(part)))
        else:
            found.append(part)
    return found


def _symbol(token: Token) -> str:
    """The operator of a comparison, from any of its spellings."""
    written = "".join(token.split())
    return _COMPARISONS.get(written, written)
