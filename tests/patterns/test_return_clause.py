"""The RETURN clause: its columns, their names, and what it cannot return."""

import pytest

from cepbench.errors import PatternError
from cepbench.patterns.model import Aggregate, Attribute, Pattern, Returned
from cepbench.patterns.parse import parse


def pattern_of(columns: str) -> Pattern:
    items = 'AND(OR(SEQ(A a, NOT(N n), KL(B b)), D d), C "c c")'
    return parse(f"PATTERN {items} WITHIN 9 s RETURN {columns}")


@pytest.mark.parametrize(
    ("written", "canonical", "names"),
    [
        ("a, b", "a, b", ["a", "b"]),
        ('a.x, "c c", "c c".y', 'a.x, "c c", "c c".y', ["a.x", "c c", '"c c".y']),
        ("b[].x, b[i].y", "b.x, b.y", ["b.x", "b.y"]),
        ("b[1].x, b[b.LEN].x", "b[1].x, b[last].x", ["b[1].x", "b[last].x"]),
        ("sum(b.x) as total", "sum(b[].x) AS total", ["total"]),
        ('COUNT(b[].x) AS "how many"', 'count(b[].x) AS "how many"', ["how many"]),
        ("(a.x + 5%) * 2", "(a.x + 0.05) * 2", ["(a.x + 0.05) * 2"]),
        ("-avg(b.x) / :W;", "-avg(b[].x) / 4", ["-avg(b[].x) / 4"]),
        ('a AS as, b AS "within", d AS a', 'a AS as, b AS "within", d AS a', ["as", "within", "a"]),
    ],
)
def test_columns(written: str, canonical: str, names: list[str]) -> None:
    items = 'AND(OR(SEQ(A a, NOT(N n), KL(B b)), D d), C "c c")'
    values = {"W": 4} if ":W" in written else {}
    pattern = parse(f"PATTERN {items} WITHIN 9 s RETURN {written}", values)
    assert [column.name for column in pattern.returns] == names
    assert str(pattern).partition(" RETURN ")[2] == canonical
    assert parse(str(pattern)) == pattern == parse(pattern.describe())


def test_what_columns_read() -> None:
    pattern = pattern_of("a, sum(b.x) AS s, b[1].y")
    assert [column.variables for column in pattern.returns] == [("a",), ("b",), ("b",)]
    assert pattern.returns[1] == Returned(Aggregate("sum", Attribute("b", "x")), "s")
    assert pattern.attributes == ("x", "y")
    assert all(branch.returns == () for branch in pattern.branches())


@pytest.mark.parametrize(
    ("columns", "words", "offending"),
    [
        ("a, n", "the negated variable 'n', which a match binds to no event", "n"),
        ("a, n.x + 1", "the negated variable 'n'", "n.x + 1"),
        ("a, q", "unknown variable 'q'; the pattern has a, n, b, d, c c", "q"),
        ("q.x", "unknown variable 'q'", "q"),
        ("a, b, a", r"two columns named 'a'; rename one of them: a AS other", "a"),
        ('a.x, b[1].x AS "a.x"', "two columns named 'a.x'", 'b[1].x AS "a.x"'),
        ("5", "mentions no variable", "5"),
        ("a.x - d.x", "in different branches of OR", "a.x - d.x"),
        ("b.x + 1", "arithmetic on b.x, which has a value for each event of b", "b.x + 1"),
        ("b[i-1].x", "a value for each event of b but the first", "b[i-1].x"),
        ("avg(b[..i-1].x)", "a value for each event of b but the first", "avg(b[..i-1].x)"),
        ("b[2..].x", "a value for each event of b but the first", "b[2..].x"),
        ("a[1].x", r"a\[1\].x needs a set of events", "a[1].x"),
        ("sum(a.x)", "needs a set of events", "sum(a.x)"),
        ("a.x + 'p'", "arithmetic on a text", "'p'"),
        ("a x b", "unexpected 'x'; expected", "x"),
        ("a total", "expected AS and the name of the column", ""),
        ("a,", "expected a variable, or a value such as a.price or sum", ""),
        ("median(a.x)", "the function median", "median"),
    ],
)
def test_what_cannot_be_returned(columns: str, words: str, offending: str) -> None:
    with pytest.raises(PatternError, match=words) as refused:
        pattern_of(columns)
    assert refused.value.offending == offending


def test_return_before_within() -> None:
    with pytest.raises(PatternError, match="RETURN comes after WITHIN"):
        parse("PATTERN SEQ(A a) RETURN a WITHIN 9 s")
