"""The clauses GROUP BY and AGG."""

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import (
    PatternNameError,
    PatternOperatorError,
    PatternSyntaxError,
    UnsupportedPatternError,
)
from cepbench.patterns.model import EventType, Grouping, MatchAggregate, Pattern
from cepbench.patterns.parse import parse

TEXT = (
    "PATTERN SEQ(DELL a, NOT(QQQ n), AMAT c) WHERE a.price > 10 GROUP BY venue, a.book "
    "AGG COUNT, AVG(c.price), MAX(a.volume), COUNT(a) WITHIN < 1 seconds"
)
#: The clauses after a structure of each kind, and after it a window.
FRAME = "PATTERN SEQ(A a, NOT(B n), KL(C c), D d) {} WITHIN 5 units"


def test_the_clauses() -> None:
    pattern = parse(TEXT)
    assert pattern.group_by == (Grouping("venue"), Grouping("book", "a"))
    assert pattern.aggregates == (
        MatchAggregate("COUNT"),
        MatchAggregate("AVG", "c", "price"),
        MatchAggregate("MAX", "a", "volume"),
        MatchAggregate("COUNT", "a"),
    )
    assert str(pattern) == TEXT
    assert pattern.attributes == ("price", "venue", "book", "volume")


def test_types_of_events() -> None:
    pattern = parse(FRAME.format("GROUP BY type(a), TYPE(d, 2), x AGG COUNT"))
    types = Grouping(EventType(), "a"), Grouping(EventType(2), "d")
    assert pattern.group_by == (*types, Grouping("x"))
    assert " GROUP BY type(a), type(d, 2), x AGG " in str(pattern)
    assert parse(str(pattern)) == pattern
    assert pattern.attributes == ("x",)
    assert pattern.without_aggregate() == parse(FRAME.format("WHERE [x]"))
    with pytest.raises(PatternSyntaxError, match=r"write GROUP BY type\(a\)"):
        Grouping(EventType())


def test_the_matches_that_count() -> None:
    matches = parse(TEXT).without_aggregate()
    assert matches == parse(
        "PATTERN SEQ(DELL a, NOT(QQQ n), AMAT c) WHERE [venue] AND a.price > 10 WITHIN < 1 s"
    )
    assert matches.without_aggregate() == matches


def test_branches_have_no_aggregates() -> None:
    pattern = parse("PATTERN OR(SEQ(A a, B b), C c) AGG SUM(b.x) WITHIN 3 units")
    assert [branch.aggregates for branch in pattern.branches()] == [(), ()]


def test_repetitions() -> None:
    assert parse(FRAME.format("GROUP BY x, a.x, x AGG COUNT")).group_by == (
        Grouping("x"),
        Grouping("x", "a"),
    )
    with pytest.raises(PatternNameError, match="AGG lists COUNT twice"):
        parse(FRAME.format("AGG COUNT, SUM(a.x), count(*)"))


def test_a_key_that_an_alternative_lacks() -> None:
    with pytest.raises(PatternOperatorError, match=r"SEQ\(C c\), an alternative of OR, has no a"):
        parse("PATTERN OR(SEQ(A a, B b), C c) GROUP BY a.x AGG COUNT WITHIN 3 units")
    parse("PATTERN OR(SEQ(A a, B b), SEQ(C c, A a)) GROUP BY a.x AGG COUNT(b) WITHIN 3 units")


@pytest.mark.parametrize(
    "structure",
    [
        "SEQ(NOT(B n), A a)",
        "SEQ(AND(A a, NOT(B n)), C c)",
        "SEQ(A a, NOT(B n), KL(C c))",
        "SEQ(GROUP(B b, *), NOT(C n), A a)",
    ],
)
def test_matches_that_are_decided_in_time(structure: str) -> None:
    assert parse(f"PATTERN {structure} AGG COUNT WITHIN 5 units").aggregates


STREAM = cep.EventStream.from_pandas(
    pd.DataFrame({"kind": ["A", "B"], "at": [1, 2]}), type="kind", time="at"
)
PATTERN = parse("PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 units")


@pytest.mark.parametrize("pattern", [PATTERN, str(PATTERN)], ids=["pattern", "text"])
@pytest.mark.parametrize(
    "function",
    [
        lambda pattern: cep.evaluate(pattern, STREAM),
        lambda pattern: cep.Detector(pattern),
        lambda pattern: cep.plan(pattern, cep.Statistics(rates={"a": 1.0, "b": 1.0})),
        lambda pattern: cep.to_sql(pattern),
        lambda pattern: cep.explain(pattern, cep.OrderPlan(("a", "b")), STREAM),
        lambda pattern: cep.automaton(pattern),
        lambda pattern: cep.rewrite(pattern),
        lambda pattern: cep.adapt(pattern, STREAM),
        lambda pattern: cep.AdaptiveDetector(pattern),
        lambda pattern: cep.measure_statistics(pattern, STREAM),
        lambda pattern: cep.match_batches(pattern, STREAM),
        lambda pattern: cep.trace(pattern, STREAM),
        lambda pattern: cep.predicate_graph(pattern),
    ],
)  # fmt: skip
def test_functions_over_single_matches_refuse(function, pattern: Pattern | str) -> None:
    with pytest.raises(
        UnsupportedPatternError, match=r"AGG COUNT .*pattern\.without_aggregate\(\)"
    ):
        function(pattern)


@pytest.mark.parametrize(
    "structure",
    [
        "SEQ(group by, A count)",
        "SEQ(COUNT sum, MIN max)",
        'SEQ("AGG" a, A "agg")',
        "SEQ(A group, A by)",
    ],
)
def test_names_that_stay_free(structure: str) -> None:
    assert (
        str(parse(f"PATTERN {structure} WITHIN 5 units")) == f"PATTERN {structure} WITHIN 5 units"
    )
    parse(f"PATTERN {structure[4:-1].replace(',', ' AND')} WITHIN 5 units")
