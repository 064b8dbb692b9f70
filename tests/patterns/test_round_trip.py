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
    attributes_of,
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


def expressions(variables: list[str]) -> st.SearchStrategy[Expression]:
    attributes = st.builds(Attribute, st.sampled_from(variables), names)
    return st.recursive(
        st.one_of(attributes, numbers.map(Constant)),
        lambda inner: st.one_of(
            st.builds(Negative, inner),
            st.builds(Arithmetic, st.sampled_from("+-*/"), inner, inner),
        ),
        max_leaves=5,
    )


@st.composite
def comparisons(draw: st.DrawFn, variables: list[str]) -> Comparison:
    """A comparison that mentions a variable (others are decided at once, and disappear)."""
    if draw(st.integers(0, 4)) == 0:
        attribute = Attribute(draw(st.sampled_from(variables)), draw(names))
        text = Constant(draw(st.text(characters, max_size=5)))
        return Comparison(draw(st.sampled_from(["=", "!="])), attribute, text)
    left, right = draw(expressions(variables)), draw(expressions(variables))
    if not [*attributes_of(left), *attributes_of(right)]:
        left = Arithmetic("+", Attribute(variables[0], draw(names)), left)
    operator = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
    return Comparison(operator, left, right)


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
    pair = st.lists(st.sampled_from(variables), min_size=1, max_size=2, unique=True)
    clauses, seen = [], set()
    for _ in range(draw(st.integers(0, 3))):
        two = draw(pair)
        # Each comparison once, so that no conjunct implies another and is dropped.
        found: list[Comparison] = []
        for comparison in draw(st.lists(comparisons(two), min_size=1, max_size=3)):
            if comparison not in seen:
                seen.add(comparison)
                found.append(comparison)
        if found:
            clauses.append(Clause(tuple(found)))
    unit = draw(st.sampled_from([*NANOSECONDS, "units"]))
    amount = draw(st.one_of(st.integers(0, 10_000), st.floats(0, 10_000)))
    return Pattern(draw(structures(variables)), tuple(clauses), Window(float(amount), unit))


@settings(max_examples=300, deadline=None)
@given(patterns())
def test_text_of_a_pattern_parses_back_to_it(pattern: Pattern) -> None:
    assert parse(str(pattern)) == pattern


@settings(max_examples=100, deadline=None)
@given(patterns())
def test_so_does_the_text_over_several_lines(pattern: Pattern) -> None:
    assert parse(pattern.describe()) == pattern


WORDS = ["PATTERN", "SEQ", "AND", "OR", "NOT", "WHERE", "WITHIN", "KL", "STRATEGY", "A", "a", "b.x"]
SIGNS = [*"()[]{}<>=!+-*/%:;&|~^,.'\"#\n\r\t\x00\u2028é", " ", "1", "1e5", "--", "'t'", ":p", "s"]


@settings(max_examples=500, deadline=None)
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
