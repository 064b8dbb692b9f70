"""The RETURN clause: its columns, their names, and what it cannot return."""

import pytest

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
