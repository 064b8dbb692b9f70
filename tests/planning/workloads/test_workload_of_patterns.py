"""Workloads: several queries by name."""

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import HierarchyError, PatternError, PatternNameError, PatternSyntaxError
from cepbench.patterns.concepts import ConceptHierarchy

#: Example 6 of [qi2014].
EXAMPLE = """
Q1 = SEQ(VKindle,BKindle,VCase,BCase)
Q2 = SEQ(VKindle,BKindle,VKindleFire)
Q3 = SEQ(VKindle,BKindle,VCase,BCase,VeBook,BeBook)
Q4 = SEQ(VKindle,BKindle,VCase,BCase,VLight,BLight)
Q5 = SEQ(ViPad,VKindleFire,VKindle,BKindle)
"""

#: Section 6.2.
NEGATION = """
q1 = (DELL, IPIX, AMAT)
q2 = (DELL, IPIX, !QQQ, AMAT)
"""


def test_example_6() -> None:
    workload = cep.Workload.parse(EXAMPLE, aggregate="COUNT", within="1 hour", dialect="a-seq")
    assert list(workload.patterns) == ["Q1", "Q2", "Q3", "Q4", "Q5"]
    assert str(workload.patterns["Q5"]) == (
        "PATTERN SEQ(ViPad ViPad, VKindleFire VKindleFire, VKindle VKindle, BKindle BKindle) "
        "AGG COUNT WITHIN < 1 hours"
    )
    assert cep.Workload.parse(str(workload)) == workload
    assert cep.Workload(workload.patterns) == workload


def test_the_queries_of_the_negation_test() -> None:
    workload = cep.Workload.parse(NEGATION, aggregate="COUNT", within="1 s", dialect="a-seq")
    one, other = workload.patterns.values()
    assert one == other.without(other.negated)


def test_queries_over_several_lines() -> None:
    workload = cep.Workload.parse(
        """
        first = PATTERN SEQ(A a, B b)
            WHERE a.x > 3 AND b.x
            = 5
            WITHIN 5 s
        "the other" = PATTERN A a WITHIN 3 s
        """
    )
    assert str(workload) == (
        "first = PATTERN SEQ(A a, B b) WHERE a.x > 3 AND b.x = 5 WITHIN 5 seconds\n"
        '"the other" = PATTERN SEQ(A a) WITHIN 3 seconds'
    )
    assert cep.Workload.parse(str(workload)) == workload
    assert hash(workload) == hash(cep.Workload(workload.patterns))
    shown = workload._repr_html_()
    assert "a.x &gt; 3" in shown


def test_the_order_of_queries_counts() -> None:
    queries = {"one": "PATTERN A a WITHIN 3 s", "two": "PATTERN B b WITHIN 3 s"}
    workload, other = cep.Workload(queries), cep.Workload(dict(reversed(queries.items())))
    assert workload != other
    assert workload != queries


@pytest.mark.parametrize(
    ("queries", "kind", "words"),
    [
        ({}, PatternError, "at least one query"),
        (["PATTERN A a WITHIN 3 s"], PatternError, "are a mapping such as"),
        ({3: "PATTERN A a WITHIN 3 s"}, PatternError, "the name of a query must be a text"),
        ({"": "PATTERN A a WITHIN 3 s"}, PatternError, "the name of a query must be a text"),
        ({"Q1": 5}, PatternError, "query 'Q1': pattern must be a Pattern"),
        (
            {"Q1": "PATTERN A a WITHIN 3 s", "Q2": "PATTERN A a AGG SUM(z.x) WITHIN 3 s"},
            PatternNameError,
            "query 'Q2': line 1, column 17: AGG of an unknown variable 'z'",
        ),
    ],
)
def test_errors(queries, kind: type[PatternError], words: str) -> None:
    with pytest.raises(kind, match=words):
        cep.Workload(queries)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("", PatternSyntaxError, "begins with the name of a query"),
        ("PATTERN A a WITHIN 3 s", PatternSyntaxError, "begins with the name of a query"),
        ("Q1 = SEQ(A a) WITHIN 3 s", PatternSyntaxError, "begins with the name of a query"),
        (
            "x\nQ1 = PATTERN SEQ(A a) WITHIN 3 s",
            PatternSyntaxError,
            "begins with the name of a query",
        ),
        (
            "Q = PATTERN A a WITHIN 3 s\nQ = PATTERN B b WITHIN 3 s",
            PatternNameError,
            "two queries are named 'Q'",
        ),
        ("Q = PATTERN A a WITHIN 3", PatternSyntaxError, "query 'Q': line 1, column 21"),
        (b"Q = PATTERN A a WITHIN 3 s", PatternError, "not from a bytes"),
    ],
)
def test_errors_of_texts(text, kind: type[PatternError], words: str) -> None:
    with pytest.raises(kind, match=words):
        cep.Workload.parse(text)


def test_arguments_are_those_of_parse() -> None:
    with pytest.raises(PatternError, match="query 'Q': within is for the queries of a dialect"):
        cep.Workload.parse("Q = PATTERN A a", within="3 s")
    with pytest.raises(PatternError, match="query 'Q': dialect is one of zstream"):
        cep.Workload.parse("Q = PATTERN A a WITHIN 3 s", dialect="a_seq")


def test_a_hierarchy_is_that_of_all_queries() -> None:
    h = ConceptHierarchy({"A": ["B", "C"]})
    queries = {
        "general": "PATTERN SEQ(A a, D d) WITHIN 5 units",
        "leaf": "PATTERN SEQ(B b) WITHIN 5 units",
    }
    text = "\n".join(f"{name} = {query}" for name, query in queries.items())
    workload = cep.Workload.parse(text, hierarchy=h)
    assert workload.hierarchy == h
    assert workload.patterns["general"].hierarchy == h
    assert workload.types == ("A", "B", "C", "D")
    assert workload == cep.Workload(workload.patterns, hierarchy=h)
    assert workload != cep.Workload.parse(text)
    for other in (None, ConceptHierarchy({"A": ["B"]})):
        with pytest.raises(PatternError, match="query 'general': it has a concept hierarchy"):
            cep.Workload(workload.patterns, hierarchy=other)
    with pytest.raises(HierarchyError, match="must be a ConceptHierarchy, not a dict"):
        cep.Workload(workload.patterns, hierarchy={"A": ["B"]})  # type: ignore[arg-type]


def test_parameters_are_those_of_all_queries() -> None:
    text = """
    Q1 = PATTERN A a WHERE a.x > :low WITHIN :length seconds
    Q2 = PATTERN B b WHERE b.x > :lower WITHIN :length seconds
    """
    found = cep.Workload.parse(text, {"low": 1, "lower": 2, "length": 3})
    assert str(found) == (
        "Q1 = PATTERN SEQ(A a) WHERE a.x > 1 WITHIN 3 seconds\n"
        "Q2 = PATTERN SEQ(B b) WHERE b.x > 2 WITHIN 3 seconds"
    )
    with pytest.raises(PatternNameError, match="'high' is given but no query has :high"):
        cep.Workload.parse(text, {"low": 1, "lower": 2, "length": 3, "high": 4})
    with pytest.raises(PatternNameError, match=r"query 'Q2': .*lower"):
        cep.Workload.parse(text, {"low": 1, "length": 3})


def test_a_pattern_is_a_workload_of_one_query_without_a_name() -> None:
    """Both are asked in the same words, and errors about a pattern name no query."""
    h = ConceptHierarchy({"C": ["A", "B"]})
    pattern = cep.parse("PATTERN SEQ(C c, D d) WHERE c.x < d.x WITHIN 5 units")
    workload = cep.Workload({"q": pattern})
    assert (pattern.queries, pattern.by_query) == ({"": pattern}, False)
    assert (workload.queries, workload.by_query) == ({"q": pattern}, True)
    for asked in (pattern, workload):
        under = asked.with_hierarchy(h)
        assert under.hierarchy == h and under.with_hierarchy(h) is under
        assert {its.hierarchy for its in under.queries.values()} == {h}
        assert under.with_hierarchy(None) == asked
        assert str(pattern.structure) in asked.describe()
    frame = pd.DataFrame({"type": list("ADBDAD"), "time": range(6), "x": [1, 2, 3, 4, 5, 3]})
    stream = cep.EventStream.from_pandas(frame, type="type", time="time", hierarchy=h)
    measured = cep.measure_statistics(workload, stream)
    assert measured == {"q": cep.measure_statistics(pattern, stream)}
    assert 0 < measured["q"].selectivity("c", "d") < 1
    without = cep.EventStream.from_pandas(frame[["type", "time"]], type="type", time="time")
    for asked, message in ((pattern, "^(?!query)"), (workload, "^query 'q': ")):
        with pytest.raises(cep.errors.StreamError, match=f"{message}.*'x'"):
            cep.measure_statistics(asked, without)
