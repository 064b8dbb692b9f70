"""The language of A-Seq: its queries as printed, and what only the dialect reads."""

import pytest

import cepbench as cep
from cepbench.errors import PatternError, PatternNameError, PatternSyntaxError
from cepbench.patterns.parse import parse
from cepbench.patterns.pattern_text import without_clause_brackets

#: Queries of [qi2014] by section, as our text has them, and what they leave out; the brackets
#: before TypeUsername and TypePassword are not closed there.
QUERIES = {
    "1, network security": (
        """
PATTERN <SEQ(<TypeUsername,<TypePassword,ClickSubmit)>
  WHERE <TypePassword.value!=<TypeUsername.Password>
  GROUP BY <IP>
  [AGG COUNT] [WITHIN 10s]
""",
        {},
        "PATTERN SEQ(TypeUsername TypeUsername, TypePassword TypePassword, ClickSubmit ClickSubmit) "
        "WHERE TypePassword.value != TypeUsername.Password GROUP BY IP AGG COUNT WITHIN < 10 seconds",
    ),
    "1, e-commerce": (
        """
PATTERN <SEQ(Kindle, KindleCase, Stylus)>
  WHERE <Kindle.userId=KindleCase.userId=Stylus.userId>
  [AGG COUNT] [WITHIN 1hour]
""",
        {},
        "PATTERN SEQ(Kindle Kindle, KindleCase KindleCase, Stylus Stylus) WHERE "
        "Kindle.userId = KindleCase.userId AND KindleCase.userId = Stylus.userId "
        "AGG COUNT WITHIN < 1 hours",
    ),
    "2.2": (
        "Pattern SEQ(TypeUsername a, TypePassword b, ClickSubmit c)\nWITHIN 5s",
        {"aggregate": "COUNT"},
        "PATTERN SEQ(TypeUsername a, TypePassword b, ClickSubmit c) AGG COUNT WITHIN < 5 seconds",
    ),
    "3.3": (
        "(VK, BK, !REC, VC, BC)",
        {"aggregate": "COUNT", "within": "1 hour"},
        "PATTERN SEQ(VK VK, BK BK, NOT(REC REC), VC VC, BC BC) AGG COUNT WITHIN < 1 hours",
    ),
    "3.4": (
        "(Kindle, Stylus) WHERE Kindle.model = “touch”",
        {"within": "1 hour"},
        "PATTERN SEQ(Kindle Kindle, Stylus Stylus) WHERE Kindle.model = 'touch' WITHIN < 1 hours",
    ),
    "5": (
        "(A, B, C, D) AGG SUM(C.c.weight), AVG(c.weight) WITHIN 7s",
        {},
        "PATTERN SEQ(A A, B B, C C, D D) AGG SUM(C.weight), AVG(C.weight) WITHIN < 7 seconds",
    ),
    "6.2": (
        "(DELL, IPIX, !QQQ, AMAT)",
        {"aggregate": "COUNT", "within": "1000 ms"},
        "PATTERN SEQ(DELL DELL, IPIX IPIX, NOT(QQQ QQQ), AMAT AMAT) AGG COUNT "
        "WITHIN < 1000 milliseconds",
    ),
}


@pytest.mark.parametrize("section", QUERIES)
def test_queries_as_printed(section: str) -> None:
    text, missing, canonical = QUERIES[section]
    pattern = parse(text, dialect="a-seq", **missing)
    assert str(pattern) == canonical
    assert parse(canonical) == pattern


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("[WHERE <[id] AND A.x > 3>] [AGG <COUNT>]", " WHERE  [id] AND A.x > 3    AGG  COUNT  "),
        ("WHERE [id]\n[GROUP BY id] [AGG COUNT]", "WHERE [id]\n GROUP BY id   AGG COUNT "),
        ("WHERE a.x <b.x AND a.y < b.y", "WHERE a.x <b.x AND a.y < b.y"),
        ("WHERE a.x = '[AGG <' AND b.y > 3", "WHERE a.x = '[AGG <' AND b.y > 3"),
        ("[AGG COUNT", "[AGG COUNT"),
    ],
)
def test_brackets_of_clauses(text: str, plain: str) -> None:
    assert without_clause_brackets(text) == plain


def test_the_dialect_s_spellings() -> None:
    pattern = parse(
        "(A, B, A) WHERE a.x < B.b.x AND A2.x > a2.y GROUP BY b AGG COUNT(a2) WITHIN 3 units",
        dialect="a-seq",
    )
    assert str(pattern) == (
        "PATTERN SEQ(A A, B B, A A2) WHERE A.x < B.x AND A2.x > A2.y GROUP BY b AGG COUNT(A2) "
        "WITHIN < 3 units"
    )
    # A variable of the pattern goes before the name of an item without one.
    named = parse("(A, B a) WHERE a.x > 3 WITHIN 3 units", dialect="a-seq")
    assert named.conditions[0].variables == ("a",)
    assert parse("SEQ(A a) WITHIN < 3 units", dialect="a-seq").window.length == 2


def test_what_a_query_has_goes_before_what_is_given() -> None:
    given = {"aggregate": "SUM(B.x)", "within": "9 s"}
    assert str(parse("(A, B) AGG COUNT WITHIN 3 s", dialect="a-seq", **given)) == (
        "PATTERN SEQ(A A, B B) AGG COUNT WITHIN < 3 seconds"
    )
    assert str(parse("(A, B) WITHIN 3 s -- as printed", dialect="a-seq", **given)) == (
        "PATTERN SEQ(A A, B B) AGG SUM(B.x) WITHIN < 3 seconds"
    )
    assert str(parse("(A, B) -- as printed", dialect="a-seq", **given)) == (
        "PATTERN SEQ(A A, B B) AGG SUM(B.x) WITHIN < 9 seconds"
    )


@pytest.mark.parametrize(
    ("text", "given", "kind", "words"),
    [
        ("(A, B)", {}, PatternSyntaxError, "the query has no window; add WITHIN 10 seconds"),
        ("(A, B)", {"within": "3 fortnights"}, PatternNameError, "unknown time unit 'fortnights'"),
        ("(A, B)", {"within": "3 s", "aggregate": "MEDIAN(a.x)"}, PatternNameError, "unknown aggregate"),
        ("(A, B) AGG SUM(B.a.x) WITHIN 3 s", {}, PatternNameError, "B.a.x: the event of B is B.b"),
        ("(A, B) WHERE A.c.x > 3 WITHIN 3 s", {}, PatternNameError, "A.c.x: the event of A is A.a"),
        ("(A, B) [AGG COUNT WITHIN 3 s", {}, PatternSyntaxError, "unexpected '['"),
        ("(A, B) WITHIN 3 s", {"within": 3}, PatternError, "within is a text such as 'COUNT'"),
    ],
)  # fmt: skip
def test_errors(text: str, given: dict, kind: type[PatternError], words: str) -> None:
    with pytest.raises(kind) as refused:
        parse(text, dialect="a-seq", **given)
    assert words in str(refused.value)


def test_what_is_left_out_in_other_languages() -> None:
    with pytest.raises(PatternError, match="write WITHIN '3 s' in the pattern, or give dialect="):
        cep.parse("PATTERN SEQ(A, B)", within="3 s")
    with pytest.raises(PatternError, match="aggregate is for the queries of a dialect"):
        cep.parse("PATTERN SEQ(A, B) WITHIN 3 s", dialect="sase+", aggregate="COUNT")
