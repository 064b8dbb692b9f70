"""The language of E-Cube: its queries as printed, and what only the dialect reads."""

import pytest

import cepbench as cep
from cepbench.errors import PatternError, PatternOperatorError, PatternSyntaxError
from cepbench.patterns.parse import parse

#: Figure 1 of [liu2011], as our text has it.
FIGURE_1 = """
q1:  SEQ(TX, OK)

Where TX.person_id = OK.person_id  // [id]
Groupby age-group

Within 48 h

q2:  SEQ(D, T)

Where [id]

Within 48 h

q6: SEQ(G, A, D, T)

Where [id]

Within 48h

q4: SEQ(G,
¬ DBusStation, A)

Where [id]

Within 48 h

q7: SEQ(G,  ¬D, A, T)
Where [id]

Within 48 h
"""

#: Section VII, which prints no windows.
SECTION_7 = """
q1 = SEQ(INTC,Finance,EDUCATION)
q2 = SEQ(DELL,INTC,Finance,EDUCATION)
q11 = SEQ(DELL,-QQQ,AMAT,EFC,OREL)
q12 = SEQ(DELL,-FINANCE,AMAT,EFC,OREL)
"""


def test_figure_1() -> None:
    assert str(cep.Workload.parse(FIGURE_1, dialect="e-cube")) == (
        "q1 = PATTERN SEQ(TX TX, OK OK) WHERE TX.person_id = OK.person_id "
        'GROUP BY "age-group" AGG COUNT WITHIN 48 hours\n'
        "q2 = PATTERN SEQ(D D, T T) WHERE [id] WITHIN 48 hours\n"
        "q6 = PATTERN SEQ(G G, A A, D D, T T) WHERE [id] WITHIN 48 hours\n"
        "q4 = PATTERN SEQ(G G, NOT(DBusStation DBusStation), A A) WHERE [id] WITHIN 48 hours\n"
        "q7 = PATTERN SEQ(G G, NOT(D D), A A, T T) WHERE [id] WITHIN 48 hours"
    )


def test_section_7() -> None:
    workload = cep.Workload.parse(SECTION_7, dialect="e-cube", within="10 seconds")
    assert str(workload.patterns["q11"]) == (
        "PATTERN SEQ(DELL DELL, NOT(QQQ QQQ), AMAT AMAT, EFC EFC, OREL OREL) WITHIN 10 seconds"
    )
    assert cep.Workload.parse(str(workload)) == workload


def test_section_7_refined() -> None:
    """q12, without any Finance, is below q11, without QQQ."""
    hierarchy = cep.ConceptHierarchy({"FINANCE": ["QQQ", "FCF"]})
    workload = cep.Workload.parse(
        SECTION_7, dialect="e-cube", within="10 seconds", hierarchy=hierarchy
    )
    assert [*workload.refinements.itertuples(index=False, name=None)] == [
        ("q1", "q2", "pattern", True),
        ("q11", "q12", "concept", True),
    ]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("PATTERN SEQ(A a, - B b, C c)", "SEQ(A a, NOT(B b), C c)"),
        ("SEQ(A, B) WHERE A.x - B.x > 3", "SEQ(A A, B B) WHERE A.x - B.x > 3"),
        ("SEQ(A, B) GROUPBY x-y, A.z", 'SEQ(A A, B B) GROUP BY "x-y", A.z AGG COUNT'),
        ("SEQ(A, B) GROUP BY z AGG SUM(A.x)", "SEQ(A A, B B) GROUP BY z AGG SUM(A.x)"),
        ("SEQ(A, B) GROUPBY A, x-y", 'SEQ(A A, B B) GROUP BY type(A), "x-y" AGG COUNT'),
        ("SEQ(A, B, A) GROUPBY A", "SEQ(A A, B B, A A2) GROUP BY type(A), type(A2) AGG COUNT"),
        ("SEQ(A, B) GROUPBY type(A, 1)", "SEQ(A A, B B) GROUP BY type(A, 1) AGG COUNT"),
        ("SEQ(groupby, B)", "SEQ(groupby groupby, B B)"),
    ],
)
def test_spellings(text: str, canonical: str) -> None:
    pattern = parse(text, dialect="e-cube", within="3 s")
    assert str(pattern) == f"PATTERN {canonical} WITHIN 3 seconds"
    assert parse(str(pattern)) == pattern


def test_what_is_given() -> None:
    given = {"dialect": "e-cube", "aggregate": "COUNT(A)", "within": "9 s"}
    assert str(parse("SEQ(A, B)", **given)) == "PATTERN SEQ(A A, B B) AGG COUNT(A) WITHIN 9 seconds"
    assert str(parse("SEQ(A, B) WITHIN 3 s", **given)) == (
        "PATTERN SEQ(A A, B B) AGG COUNT(A) WITHIN 3 seconds"
    )


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("SEQ(A, B)", PatternSyntaxError, "the query has no window; add WITHIN 10 seconds"),
        ("SEQ(A, -B, C) GROUPBY B WITHIN 3 s", PatternOperatorError, "the negated variable 'B'"),
        ("SEQ(A, B) WITHIN 3 s GROUPBY x", PatternSyntaxError, "unexpected 'GROUPBY'"),
    ],
)
def test_errors(text: str, kind: type[PatternError], words: str) -> None:
    with pytest.raises(kind, match=words):
        parse(text, dialect="e-cube")
