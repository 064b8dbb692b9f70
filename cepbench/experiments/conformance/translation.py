"""Patterns in the languages of outside engines: each text means what the pattern means, or there is none.

One thing no text says: CORE cannot compare times, so that its sequences are in the order of arrival, and an
event forbidden before another one ends a run of Flink though both have one timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise, permutations
from typing import Any

from cepbench.errors import CannotSayError, UnsupportedPatternError
from cepbench.experiments.conformance.cases import CANNOT, LANGUAGES
from cepbench.patterns.model import (
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Duration,
    Expression,
    Kind,
    Operator,
    Pattern,
    Structure,
    Variable,
)
from cepbench.patterns.row_pattern import RowPattern
from cepbench.planning.sql.to_sql import to_sql


def texts_of(pattern: Pattern | RowPattern, kinds: Mapping[str, str]) -> dict[str, str]:
    """A pattern in every language: a text, or ``cannot say`` and the reason.

    Parameters
    ----------
    pattern : Pattern or RowPattern
        Over the columns ``id``, ``type``, ``ts`` and attributes.
    kinds : mapping of str to str
        Attribute -> ``number`` or ``text``.
    """
    found = {}
    for language in LANGUAGES:
        try:
            if isinstance(pattern, RowPattern):
                if language != "match_recognize":
                    raise CannotSayError("it is a query with MATCH_RECOGNIZE")
                found[language] = str(pattern)
            else:
                found[language] = _WRITERS[language](pattern, kinds)
        except (CannotSayError, UnsupportedPatternError) as error:
            found[language] = f"{CANNOT}{error}"
    return found


def _sql(pattern: Pattern, kinds: Mapping[str, str]) -> str:
    # Nobody else sorts the matches.
    query = to_sql(
        pattern, dialect="standard", type_column="type", time_column="ts", position_column="id"
    )
    return query.rpartition("\nORDER BY")[0]


def _sequence(pattern: Pattern, *, kinds: tuple[Kind, ...]) -> tuple[Variable, ...]:
    """The items of a SEQ of items of some kinds; CannotSayError if it is none."""
    structure = pattern.structure
    if structure.operator is not Operator.SEQ:
        raise CannotSayError(f"{structure.operator} is no part of the language")
    for item in structure.items:
        if isinstance(item, Structure):
            raise CannotSayError(f"{item.operator} is no part of the language")
        if item.kind not in kinds:
            word = {Kind.NEGATED: "NOT", Kind.KLEENE: "KL", Kind.GROUP: "GROUP"}[item.kind]
            raise CannotSayError(f"{word} is no part of the language")
    return structure.items  # type: ignore[return-value]


def _all_matches(pattern: Pattern, *strategies: str) -> None:
    if pattern.strategy.name not in strategies:
        raise CannotSayError(f"no strategy of the language is {pattern.strategy}")
    if pattern.output != "all":
        raise CannotSayError(f"nothing in the language is OUTPUT {pattern.output}")


def _open(pattern: Pattern) -> int:
    """The length of the window for an engine whose windows are open: times are whole numbers."""
    return pattern.window.length + 1


def _due(pattern: Pattern, order: list[str]) -> Iterator[tuple[str, Clause]]:
    """Each condition with the last of its variables in an order."""
    for clause in pattern.expanded.conditions:
        yield max(clause.variables, key=order.index), clause


# -- MATCH_RECOGNIZE ---------------------------------------------------------------------------------


def _match_recognize(pattern: Pattern, kinds: Mapping[str, str]) -> str:
    """A contiguous sequence of single events: every start has at most one match.

    ``to_sql`` would write the window into DEFINE, so that engines agree on it; here WITHIN itself is asked
    for, over whole numbers as time, which an adapter reads in its unit.
    """
    items = _sequence(pattern, kinds=(Kind.PLAIN,))
    _all_matches(pattern, "strict_contiguity", "partition_contiguity")
    key = pattern.strategy.attribute
    defined = {item.name: [f"{item.name}.type = '{item.type}'"] for item in items if item.type}
    for before, item in pairwise(items):
        if pattern.order == "time":
            defined.setdefault(item.name, []).append(f"{item.name}.ts > {before.name}.ts")
    for name, clause in _due(pattern, [item.name for item in items]):
        defined.setdefault(name, []).append(clause.bracketed().replace("!=", "<>"))
    return (
        "SELECT * FROM events MATCH_RECOGNIZE (\n"
        f"  {f'PARTITION BY {key} ' if key else ''}ORDER BY ts\n"
        f"  MEASURES {', '.join(f'{item.name}.id AS {item.name}_id' for item in items)}\n"
        "  ONE ROW PER MATCH AFTER MATCH SKIP TO NEXT ROW\n"
        f"  PATTERN ({' '.join(item.name for item in items)}) WITHIN {_open(pattern)}\n"
        f"  DEFINE {', '.join(f'{name} AS {_and(its)}' for name, its in defined.items())}\n)"
    )


def _and(texts: list[str]) -> str:
    return " AND ".join(texts)


# -- CEQL ----------------------------------------------------------------------------------------------


def _ceql(pattern: Pattern, kinds: Mapping[str, str]) -> str:
    """CORE's language: sequences and iterations, with conditions on single events."""
    _all_matches(pattern, "any", "strict_contiguity", "partition_contiguity")
    structure, contiguous = pattern.structure, pattern.strategy.name != "any"
    keys = {*pattern.equivalences, pattern.strategy.attribute} - {None}
    if len(keys) > 1 or (contiguous and keys != {pattern.strategy.attribute} - {None}):
        raise CannotSayError("partitions by one key, and neighbours are those of a partition")
    if structure.operator is Operator.AND and not contiguous:
        if not all(isinstance(i, Variable) and i.kind is Kind.PLAIN for i in structure.items):
            raise CannotSayError("AND is no part of the language; it has only a union of sequences")
        if len({item.type for item in structure.variables()}) < len(structure.items):
            raise CannotSayError("a match does not say which event is which of two of a type")
        formula = " OR ".join(
            f"({_iterated(items, ';')})" for items in permutations(structure.items)
        )
    else:
        items = _sequence(pattern, kinds=(Kind.PLAIN, Kind.KLEENE))
        formula = f"({_iterated(items, ':' if contiguous else ';')})"
    filters = []
    for clause in pattern.conditions:
        if len(clause.variables) != 1 or not clause.is_elementwise:
            raise CannotSayError(f"{clause}: a condition is on one event")
        tests = " OR ".join(_ceql_test(its) for its in clause.comparisons)
        filters.append(f"{clause.variables[0]}[{tests}]")
    return (
        f"SELECT * FROM S WHERE {f'({formula})' if filters else formula}"
        f"{f' FILTER {_and(filters)}' if filters else ''}"
        f"{''.join(f' PARTITION BY [{key}]' for key in keys)}"
        f" WITHIN {_open(pattern)} [ts]"
    )


def _iterated(items: Sequence[Any], then: str) -> str:
    if any(item.type is None for item in items):
        raise CannotSayError("ANY is no part of the language")
    plus = {Kind.PLAIN: "", Kind.KLEENE: ":+" if then == ":" else "+"}
    return f" {then} ".join(f"{item.type}{plus[item.kind]} as {item.name}" for item in items)


def _ceql_test(comparison: Comparison) -> str:
    sides = []
    for side in (comparison.left, comparison.right):
        match side:
            case Attribute(_, name):
                sides.append(name)
            case Constant(str(value)):
                sides.append(f"'{value}'")
            case Constant(value) if not isinstance(value, bool):
                sides.append(str(float(value)))
            case _:
                raise CannotSayError(f"{comparison}: no condition of the language")
    return f"{sides[0]} {comparison.operator} {sides[1]}"


# -- Flink CEP -----------------------------------------------------------------------------------------


def _flink_cep(pattern: Pattern, kinds: Mapping[str, str]) -> str:
    """A ``PatternStream`` over the events, in Java; see ``peers/FlinkPeer.java`` for the helpers."""
    items = _sequence(pattern, kinds=(Kind.PLAIN, Kind.NEGATED, Kind.KLEENE))
    _all_matches(pattern, "any", "strict_contiguity", "partition_contiguity", "next")
    if items[0].kind is Kind.NEGATED:
        raise CannotSayError("a pattern cannot begin with notFollowedBy")
    strategy, key = pattern.strategy.name, pattern.strategy.attribute
    contiguous = strategy.endswith("contiguity")
    conditions = dict[str, list[str]]((item.name, []) for item in items)
    order = [item.name for item in items]
    by_name = {item.name: item for item in items}
    for name, clause in _due(pattern, order):
        negated = [n for n in clause.variables if by_name[n].kind is Kind.NEGATED]
        if negated and name != negated[0]:
            raise CannotSayError(f"{clause}: a condition of NOT is on events before it")
        conditions[name].append(_Java(by_name, name, kinds).clause(clause))
    then = {"any": "followedByAny", "next": "followedBy"}.get(strategy, "next")
    steps: list[str] = []
    bound = ""
    for item in items:
        call, tests = ("begin" if not steps else then), conditions[item.name]
        if item.kind is Kind.NEGATED:
            call = "notNext" if contiguous else "notFollowedBy"
        if bound and pattern.order == "time":
            tests.insert(0, f'e.ts > last(c, "{bound}").ts')
        step = f'.{call}("{item.name}")'
        if item.type:
            step += f'.where(type("{item.type}"))'
        step += "".join(f".where(when((e, c) -> {test}))" for test in tests)
        if item.kind is Kind.KLEENE:
            step += ".oneOrMore()" + (
                ".consecutive()" if contiguous else ".allowCombinations()" * (strategy == "any")
            )
        if item.kind is not Kind.NEGATED:
            bound = item.name
        elif contiguous:
            raise CannotSayError("NOT between neighbours is no part of the language")
        steps.append(step)
    steps.append(f".within(Duration.ofSeconds({_open(pattern)}))")
    events = f'events.keyBy(e -> e.key("{key}"))' if key else "events"
    chain = "\n  ".join(["Pattern.<Event>" + steps[0][1:], *steps[1:]])
    return f"CEP.pattern({events}, {chain})"


class _Java:
    """Conditions at the item ``here``, whose event is ``e``, with the events before it in ``c``."""

    def __init__(self, items: Mapping[str, Variable], here: str, kinds: Mapping[str, str]) -> None:
        self._items, self._here, self._kinds = items, here, kinds

    def clause(self, clause: Clause) -> str:
        """A disjunction, for all events of a set bound before."""
        test = " || ".join(self._comparison(its) for its in clause.comparisons)
        sets = [
            name
            for name in clause.variables
            if name != self._here and self._items[name].kind is Kind.KLEENE
            if any(its.variable == name and its.element == "each" for its in clause.attributes())
        ]
        for name in sets:
            test = f'all(c, "{name}", {name} -> {test})'
        if self._here in clause.running_variables():
            test = f'(none(c, "{self._here}") || {test})'
        elif clause.is_running:
            raise CannotSayError(f"{clause}: a condition on a set is tested at its events")
        return test

    def _comparison(self, comparison: Comparison) -> str:
        sides = (comparison.left, comparison.right)
        if any(isinstance(side, Duration) for side in sides):
            raise CannotSayError(f"{comparison}: lengths of time are not translated")
        if any(self._is_text(side) for side in sides):
            left, right = (self._text(side) for side in sides)
            return f"{'same' if comparison.operator == '=' else 'differ'}({left}, {right})"
        left, right = (self._number(side) for side in sides)
        if comparison.operator == "!=":  # NaN, which is missing, differs from all numbers
            return f"({left} < {right} || {left} > {right})"
        return f"{left} {'==' if comparison.operator == '=' else comparison.operator} {right}"

    def _is_text(self, side: Expression) -> bool:
        if isinstance(side, Attribute):
            return self._kinds.get(side.name) == "text"
        return isinstance(side, Constant) and isinstance(side.value, str)

    def _event(self, its: Attribute) -> str:
        if its.variable == self._here:
            if its.element == "previous":
                return f'last(c, "{its.variable}")'
            if its.element in ("each", "rest"):
                return "e"
            raise CannotSayError(f"{its}: a condition on a set is tested at its events")
        if self._items[its.variable].kind is Kind.KLEENE and its.element == "each":
            return its.variable
        function = "first" if its.element == "first" else "last"
        return f'{function}(c, "{its.variable}")'

    def _text(self, side: Expression) -> str:
        match side:
            case Attribute(_, name):
                return f'{self._event(side)}.text("{name}")'
            case Constant(str(value)):
                return f'"{value}"'
        raise CannotSayError(f"{side}: not a text")

    def _number(self, side: Expression) -> str:
        match side:
            case Attribute(_, name):
                return f'{self._event(side)}.number("{name}")'
            case Constant(value) if not isinstance(value, bool | str):
                return str(float(value))
            case Arithmetic("+" | "-" | "*" as sign, left, right):
                return f"({self._number(left)} {sign} {self._number(right)})"
        raise CannotSayError(f"{side}: not translated")


_WRITERS: dict[str, Callable[[Pattern, Mapping[str, str]], str]] = {
    "sql": _sql,
    "match_recognize": _match_recognize,
    "flink_cep": _flink_cep,
    "ceql": _ceql,
}
