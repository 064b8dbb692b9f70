"""``str`` of a pattern parses back to an equal pattern, whatever its names and numbers."""

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cepbench.errors import (
    CepbenchError,
    PatternError,
    PatternOperatorError,
    UnsatisfiablePatternError,
)
from cepbench.patterns.aggregation import FUNCTIONS
from cepbench.patterns.contradictions import check_satisfiable
from cepbench.patterns.expressions import AGGREGATES, ELEMENTS
from cepbench.patterns.model import (
    ANY,
    NANOSECONDS,
    OUTPUTS,
    Aggregate,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Expression,
    Grouping,
    Kind,
    MatchAggregate,
    Negative,
    Operator,
    Pattern,
    Returned,
    Strategy,
    Structure,
    Variable,
    Window,
)
from cepbench.patterns.parse import parse, reread
from tests.budgets import examples

# Surrogates cannot be written to a file; everything else can stand in quotes.
characters = st.characters(exclude_categories=["Cs"])
names = st.one_of(
    st.sampled_from(
        [
            "a",
            "b1",
            "within",
            "AND",
            "Seq",
            "_",
            "e5",
            "BRK.B",
            "",
            '"',
            "''",
            "KL",
            "b'",
            "seq'",
            "true",
            "LEN",
            "any",
        ]
    ),
    st.text(characters, max_size=5),
)
numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
)


# Strategies over two places, named when the variables are known: building a recursive strategy
# for each draw takes longer than everything else here.
attributes = st.builds(
    Attribute, st.sampled_from(["first", "second"]), names, st.sampled_from([*ELEMENTS])
)
aggregates = st.builds(
    Aggregate,
    st.sampled_from(AGGREGATES),
    st.builds(Attribute, st.sampled_from(["first", "second"]), names),
    st.booleans(),
)
expressions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(attributes, attributes, aggregates, numbers.map(Constant)),
    lambda inner: st.one_of(
        st.builds(Negative, inner),
        st.builds(Arithmetic, st.sampled_from("+-*/%"), inner, inner),
    ),
    max_leaves=5,
)
comparisons = st.one_of(
    # One that mentions no variable would be decided at once, and disappear.
    st.builds(
        Comparison, st.sampled_from(["<", "<=", ">", ">=", "=", "!="]), expressions, expressions
    ).filter(lambda comparison: any(comparison.attributes())),
    st.builds(
        Comparison,
        st.sampled_from(["=", "!="]),
        st.builds(Attribute, st.just("first"), names),
        st.text(characters, max_size=5).map(Constant),
    ),
)
disjunctions = st.lists(st.lists(comparisons, min_size=1, max_size=3), max_size=3)
pairs = st.tuples(st.integers(0, 3), st.integers(0, 3))


def renamed(part: Any, places: dict[str, Variable]) -> Any:
    """A comparison or expression with variables in its places, sets only of Kleene ones."""
    match part:
        case Attribute(place, name, element):
            variable = places[place]
            return Attribute(
                variable.name, name, element if variable.kind is Kind.KLEENE else "each"
            )
        case Aggregate(function, attribute, before):
            inner = Attribute(places[attribute.variable].name, attribute.name)
            is_set = places[attribute.variable].kind is Kind.KLEENE
            return Aggregate(function, inner, before) if is_set else inner
        case Negative(operand):
            return Negative(renamed(operand, places))
        case Arithmetic(operator, left, right) | Comparison(operator, left, right):
            return type(part)(operator, renamed(left, places), renamed(right, places))
    return part


#: Columns of RETURN: an expression, or None for a variable; places of variables; an alias.
columns = st.lists(st.tuples(expressions | st.none(), pairs, names | st.none()), max_size=2)
whole = st.integers(0, 10_000).map(float)
#: Amounts of a unit that are whole numbers of nanoseconds, up to nine decimal places of seconds, and
#: to as many weeks as fit a timestamp.
fractions = st.integers(0, 3812 * 10**9).map(lambda ns: Decimal(ns).scaleb(-9))
units = st.sampled_from([*NANOSECONDS, "units"])
long_units = st.sampled_from(["seconds", "minutes", "hours", "days", "weeks"])
#: Keys of GROUP BY, and aggregates of AGG, over the same two places.
places = st.sampled_from(["first", "second"])
keys = st.builds(Grouping, names, places | st.none())
totals = st.one_of(
    st.just(MatchAggregate("COUNT")),
    st.builds(MatchAggregate, st.just("COUNT"), places),
    st.builds(MatchAggregate, st.sampled_from(FUNCTIONS), places, names),
)
windows = st.one_of(
    st.builds(Window, whole, units),
    st.builds(Window, fractions, long_units),
    # No window is shorter than WITHIN < a tick.
    st.builds(Window, fractions.filter(bool), long_units, st.just(True)),
)
strategies = st.one_of(
    st.just(ANY),
    st.just(Strategy("next")),
    st.builds(Strategy, st.sampled_from(["consuming", "strict_contiguity"])),
    st.builds(Strategy, st.just("partition_contiguity"), names),
)


@st.composite
def structures(draw: st.DrawFn, variables: list[Variable], depth: int = 0) -> Structure:
    """All the variables, in order, under one operator with operators inside."""
    items: list[Variable | Structure] = []
    operator = draw(st.sampled_from(Operator))
    rest = list(variables)
    while rest:
        if depth < 3 and draw(st.integers(0, 3)) == 0:
            taken = draw(st.integers(1, len(rest)))
            items.append(draw(structures(rest[:taken], depth + 1)))
        else:
            taken = 1
            items.append(rest[0])
        # An alternative may use the variables of another one.
        rest = rest[0 if operator is Operator.OR and draw(st.integers(0, 7)) == 0 else taken :]
    return Structure(operator, tuple(items))


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    kinds = st.sampled_from([Kind.PLAIN, Kind.PLAIN, Kind.KLEENE, Kind.NEGATED])
    variables = [
        Variable(name, draw(names | st.none()), draw(kinds))
        for name in draw(st.lists(names, min_size=1, max_size=4, unique=True))
    ]
    structure = draw(structures(variables))
    window, strategy = draw(windows), draw(strategies)
    try:
        Pattern(structure, (), window)
    except PatternOperatorError:  # some branch has negated variables only
        variables = [replace(v, kind=Kind.PLAIN) for v in variables]
        structure = draw(structures(variables))
    if strategy.name == "next" and structure.has(Operator.AND):
        strategy = ANY
    clauses, seen = [], set()
    for disjunction in draw(disjunctions):
        first, second = (variables[place % len(variables)] for place in draw(pairs))
        # Each comparison once, so that no conjunct implies another and is dropped.
        found: list[Comparison] = []
        for drawn in disjunction:
            comparison = renamed(drawn, {"first": first, "second": second})
            if comparison not in seen:
                seen.add(comparison)
                found.append(comparison)
        if found and is_allowed(structure, (Clause(tuple(found)),)):
            clauses.append(Clause(tuple(found)))
    returns: tuple[Returned, ...] = ()
    for value, (place, other), alias in draw(columns):
        first, second = (variables[number % len(variables)] for number in (place, other))
        value = first.name if value is None else renamed(value, {"first": first, "second": second})
        if is_allowed(structure, (), (*returns, Returned(value, alias))):
            returns += (Returned(value, alias),)
    equivalences = tuple(draw(st.lists(names, max_size=2)))
    output = draw(st.sampled_from(OUTPUTS))
    pattern = Pattern(structure, tuple(clauses), window, strategy, returns, equivalences, output)
    group_by, aggregates = draw(st.lists(keys, max_size=2)), draw(st.lists(totals, max_size=3))
    places = {"first": draw(st.sampled_from(variables)), "second": draw(st.sampled_from(variables))}
    found = {name: variable.name for name, variable in places.items()}
    asked = {
        "group_by": tuple(replace(key, variable=found.get(key.variable)) for key in group_by),
        "aggregates": tuple(
            dict.fromkeys(replace(each, variable=found.get(each.variable)) for each in aggregates)
        ),
    }
    if is_allowed(structure, (), **asked) and not returns:
        return replace(pattern, **asked)
    return pattern


def is_allowed(
    structure: Structure,
    conditions: tuple[Clause, ...],
    returns: tuple[Returned, ...] = (),
    **asked: tuple[Any, ...],
) -> bool:
    try:
        Pattern(structure, conditions, Window(1, "units"), ANY, returns, **asked)
    except PatternError:
        return False
    return True


@examples(40)
@given(patterns(), st.booleans())
def test_text_of_a_pattern_parses_back_to_it(pattern: Pattern, over_lines: bool) -> None:
    text = pattern.describe() if over_lines else str(pattern)
    assert reread(text) == pattern
    try:
        check_satisfiable(pattern)
    except UnsatisfiablePatternError as error:
        # Line breaks in names and texts are blanks there, so that the place stands below.
        words = " ".join(str(error).splitlines())
        with pytest.raises(UnsatisfiablePatternError, match=re.escape(words)):
            parse(text)
    else:
        assert parse(text) == pattern


@examples(20)
@given(patterns())
def test_branches_share_everything_but_the_alternatives(pattern: Pattern) -> None:
    branches = pattern.branches()
    if Operator.OR not in operators_of(pattern.structure):
        assert branches == (pattern.expanded,)
    assert {name for branch in branches for name in branch.names} == set(pattern.names)
    conditions = set(pattern.expanded.conditions)
    assert {clause for b in branches for clause in b.conditions} == conditions
    for branch in branches:
        assert Operator.OR not in operators_of(branch.structure)
        assert (branch.window, branch.strategy) == (pattern.window, pattern.strategy)
        assert branch.output == pattern.output
        assert branch.positive
        assert reread(str(branch)) == branch


def operators_of(structure: Structure) -> set[Operator]:
    inner = (operators_of(item) for item in structure.items if isinstance(item, Structure))
    return {structure.operator}.union(*inner)


WORDS = [
    "OR",
    "KL(",
    "SEQ(",
    "b[i-1].x",
    "sum(",
    "true",
    "W",
    "PATTERN",
    "SEQ",
    "AND",
    "OR",
    "NOT",
    "WHERE",
    "WITHIN",
    "KL",
    "STRATEGY",
    "A",
    "a",
    "b.x",
]
SIGNS = [*"()[]{}<>=!+-*/%:;&|~^,.'\"#\n\r\t\x00\u2028é", " ", "1", "1e5", "--", "'t'", ":p", "s"]


WHOLE = [
    "PATTERN SEQ(A a, B b) WHERE a.x < b.x AND NOT a.y = 'u' WITHIN 5 minutes",
    "PATTERN OR(SEQ(A a, NOT(C c), KL(B b)), B b+) WHERE a.x < 3 STRATEGY consuming WITHIN 5 s",
    "PATTERN A; !B & (C+ b[] | D) WHERE any_match(A) { [x] ; b[i].x < avg(b[..i-1].y) } WITHIN 5 s",
    "PATTERN SEQ(B+ b) WHERE b[1].x<b[b.LEN].y STRATEGY partition_contiguity(x) WITHIN 5 s",
    "PATTERN B+; C WHERE [y] AND B[2..].x % 5 = 0 STRATEGY next OUTPUT non_overlap WITHIN 5 s",
]


@examples(50)
@given(st.lists(st.sampled_from(WORDS + SIGNS), max_size=14), st.data())
@example(["\u2028", "\n"], None)
@example(["\r", "\n", "(", "\n"], None)
def test_any_text_gives_a_pattern_or_an_error_that_points_into_it(
    pieces: list[str], data: Any
) -> None:
    """The tail of a valid text is replaced by anything at all."""
    whole = data.draw(st.sampled_from(WHOLE)) if data is not None else ""
    cut = data.draw(st.integers(0, len(whole))) if data is not None else 0
    text = whole[:cut] + data.draw(st.sampled_from(["", " "])) if data is not None else ""
    text += "".join(pieces)
    error = None
    try:
        pattern = parse(text)
    except PatternError as caught:
        error = caught
    if error is None:
        assert parse(str(pattern)) == pattern
        return
    assert error.line is not None
    assert error.column is not None
    assert error.offending in text.expandtabs(1)
    assert len(str(error).splitlines()) == 3
    assert len(str(error)) < 1000


#: What mutations put in: words, signs, what cannot be printed or stored, and much of everything.
ODD = [
    *(" BETWEEN ", " IN ", " LIKE ", " IS NOT NULL ", " NOT ", " OR ", " AND ", "NULL", "{", "}"),
    *(
        "\ud800",
        "\udfff",
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\u0301",
        "\ufeff",
        "ſ",
        "\u212a",
        "ı",
        "𝔸",
    ),
    *("1e300", "1e400", "9" * 5_000, "0." + "0" * 5_000 + "1", "1e-400%", "(", ")", "((", "'", '"'),
    *("a" * 5_000, "'" * 999, '"' * 999, "(" * 500, "NOT " * 500, "- " * 99, "/*", "--", "\u2028"),
    *(" OR a.x = 1" * 300, " AND a.x < b.x" * 300, ", A a1" * 300, " + 1" * 300, "[" * 300),
]


@examples(50)
@given(st.data())
def test_mutated_texts_give_patterns_that_read_back_or_short_named_errors(data: Any) -> None:
    text = data.draw(st.sampled_from(WHOLE))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(st.sampled_from([*ODD, *WORDS, *SIGNS])) + text[end:]
    error = None
    try:
        pattern = parse(text)
    except CepbenchError as caught:
        error = caught
    if error is None:
        assert parse(str(pattern)) == pattern
        assert parse(pattern.describe()) == pattern
        return
    assert len(str(error)) < 1000
    str(error).encode("utf-8")
