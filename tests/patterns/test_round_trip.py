"""``str`` of a pattern parses back to an equal pattern, whatever its names and numbers."""

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cepbench.errors import PatternError
from cepbench.patterns.model import (
    NANOSECONDS,
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Expression,
    Negative,
    Operator,
    Pattern,
    Structure,
    Variable,
    Window,
)
from cepbench.patterns.parse import parse

# Surrogates cannot be written to a file; everything else can stand in quotes.
characters = st.characters(exclude_categories=["Cs"])
names = st.one_of(
    st.sampled_from(["a", "b1", "within", "AND", "Seq", "_", "e5", "BRK.B", "", '"', "''", "KL"]),
    st.text(characters, max_size=5),
)
numbers = st.one_of(
    st.integers(-(10**20), 10**20).map(float),
    st.floats(allow_nan=False, allow_infinity=False),
)


# Strategies over two places, named when the variables are known: building a recursive strategy
# for each draw takes longer than everything else here.
expressions: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(
        st.builds(Attribute, st.sampled_from(["first", "second"]), names),
        numbers.map(Constant),
    ),
    lambda inner: st.one_of(
        st.builds(Negative, inner),
        st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
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


def renamed(part: Any, places: dict[str, str]) -> Any:
    """A comparison or expression with variables in its places."""
    match part:
        case Attribute(variable, name):
            return Attribute(places[variable], name)
        case Negative(operand):
            return Negative(renamed(operand, places))
        case Arithmetic(operator, left, right) | Comparison(operator, left, right):
            return type(part)(operator, renamed(left, places), renamed(right, places))
    return part


windows = st.builds(
    Window,
    st.one_of(st.integers(0, 10_000).map(float), st.floats(0, 10_000)),
    st.sampled_from([*NANOSECONDS, "units"]),
)


@st.composite
def structures(draw: st.DrawFn, variables: list[str], depth: int = 0) -> Structure:
    """All the variables, in order, under one operator with operators inside."""
    items: list[Variable | Structure] = []
    rest = list(variables)
    while rest:
        if depth < 3 and draw(st.integers(0, 3)) == 0:
            taken = draw(st.integers(1, len(rest)))
            items.append(draw(structures(rest[:taken], depth + 1)))
        else:
            taken = 1
            items.append(Variable(rest[0], draw(names)))
        rest = rest[taken:]
    return Structure(draw(st.sampled_from(Operator)), tuple(items))


@st.composite
def patterns(draw: st.DrawFn) -> Pattern:
    variables = draw(st.lists(names, min_size=1, max_size=4, unique=True))
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
        if found:
            clauses.append(Clause(tuple(found)))
    return Pattern(draw(structures(variables)), tuple(clauses), draw(windows))


@settings(max_examples=150, deadline=None)
@given(patterns())
def test_text_of_a_pattern_parses_back_to_it(pattern: Pattern) -> None:
    assert parse(str(pattern)) == pattern


@settings(max_examples=30, deadline=None)
@given(patterns())
def test_so_does_the_text_over_several_lines(pattern: Pattern) -> None:
    assert parse(pattern.describe()) == pattern


WORDS = ["PATTERN", "SEQ", "AND", "OR", "NOT", "WHERE", "WITHIN", "KL", "STRATEGY", "A", "a", "b.x"]
SIGNS = [*"()[]{}<>=!+-*/%:;&|~^,.'\"#\n\r\t\x00\u2028é", " ", "1", "1e5", "--", "'t'", ":p", "s"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS + SIGNS), max_size=14), st.data())
@example(["\u2028", "\n"], None)
@example(["\r", "\n", "(", "\n"], None)
def test_any_text_gives_a_pattern_or_an_error_that_points_into_it(
    pieces: list[str], data: Any
) -> None:
    """The tail of a valid text is replaced by anything at all."""
    whole = "PATTERN SEQ(A a, B b) WHERE a.x < b.x AND NOT a.y = 'u' WITHIN 5 minutes"
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
