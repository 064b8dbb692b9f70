"""What a user reads about a text that is no pattern: where, what, and what instead."""

import pytest

from cepbench.errors import PatternError, PatternSyntaxError, UnsupportedPatternError
from cepbench.patterns.parse import parse


def error_of(text: str) -> PatternError:
    with pytest.raises(PatternError) as caught:
        parse(text)
    return caught.value


def test_line_column_and_marker() -> None:
    error = error_of("PATTERN SEQ(A a,\n            B b)\nWHERE a.x << b.x\nWITHIN 1 s")
    assert isinstance(error, PatternSyntaxError)
    assert (error.line, error.column, error.offending) == (3, 12, "<")
    assert str(error).splitlines() == [
        "line 3, column 12: unexpected '<'; expected a value such as a.price, 5 or 'text'",
        "  WHERE a.x << b.x",
        "             ^",
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r", "\u2028"])
def test_lines_are_counted_as_they_are_shown(line_end: str) -> None:
    error = error_of(line_end.join(["PATTERN SEQ(A a)", "WHERE a.x < b.x", "WITHIN 1 s"]))
    assert (error.line, error.column, error.offending) == (2, 13, "b")


def test_the_marker_spans_what_is_wrong() -> None:
    error = error_of("PATTERN SEQ(A a, B b) WITHIN 5 fortnights")
    _, shown, marker = str(error).splitlines()
    assert shown[marker.index("^") : marker.rindex("^") + 1] == "fortnights"


@pytest.mark.parametrize("text", ["", " \n ", "-- only a comment", "# and another\n"])
def test_nothing_at_all(text: str) -> None:
    assert "the text ends here; expected PATTERN" in str(error_of(text))


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("PATERN SEQ(A a) WITHIN 5 s", 1, "expected PATTERN; did you mean 'PATTERN'?"),
        (
            "PATTERN SEQQ(A a) WITHIN 5 s",
            9,
            "expected SEQ, AND, OR, NOT or KL; did you mean 'SEQ'?",
        ),
        ("PATTERN op (T1 e1, T2 e2) WITHIN 5 s", 9, "unknown operator 'op'"),
        ("PATTERN SEQ() WITHIN 5 s", 13, "expected an item (a type and a variable name"),
        ("PATTERN SEQ(A a, ) WITHIN 5 s", 18, "expected an item"),
        ("PATTERN SEQ(A a B b) WITHIN 5 s", 17, "expected a comma or a closing bracket"),
        ("PATTERN SEQ(A a WITHIN 5 s", 17, "expected a comma or a closing bracket"),
        ("PATTERN SEQ(A a)) WITHIN 5 s", 17, "expected WITHIN, WHERE or STRATEGY"),
        ("PATTERN SEQ(A within) WITHIN 5 s", 15, 'as a name it needs double quotes: "within"'),
        ("PATTERN SEQ(A a) WHERE a.and < 1 WITHIN 5 s", 26, 'needs double quotes: "and"'),
        ("PATTERN SEQ(É a) WITHIN 5 s", 13, "stand in double quotes"),
        ("PATTERN SEQ(BRK.B a) WITHIN 5 s", 16, "stands in double quotes"),
        ("PATTERN SEQ(A a, 300 b) WITHIN 5 s", 18, "stands in double quotes"),
        ('PATTERN SEQ("A a) WITHIN 5 s', 13, 'the quote " is not closed'),
        ("PATTERN SEQ(A a) WHERE WITHIN 5 s", 24, "expected a condition such as"),
        ("PATTERN SEQ(A a) WHERE a.x WITHIN 5 s", 28, "expected a comparison (<, <=, >, >="),
        ("PATTERN SEQ(A a) WHERE a.x < WITHIN 5 s", 30, "expected a value such as a.price"),
        ("PATTERN SEQ(A a) WHERE a < 3 WITHIN 5 s", 24, "expected a dot and an attribute"),
        ("PATTERN SEQ(A a) WHERE a. < 3 WITHIN 5 s", 27, "expected the name of an attribute"),
        ("PATTERN SEQ(A a) WHERE a.x =< 3 WITHIN 5 s", 29, "did you mean '<='?"),
        ("PATTERN SEQ(A a) WHERE a.x => 3 WITHIN 5 s", 29, "did you mean '>='?"),
        ('PATTERN SEQ(A a) WHERE a.x = "t" WITHIN 5 s', 34, "texts stand in single quotes"),
        ("PATTERN SEQ(A a) WHERE a.x = 't WITHIN 5 s", 30, "the quote ' is not closed"),
        ("PATTERN SEQ(A a) WHERE a.x < 3 && a.y < 3 WITHIN 5 s", 32, "write AND"),
        ("PATTERN SEQ(A a) WHERE a.x < 3 || a.y < 3 WITHIN 5 s", 32, "write OR"),
        ("PATTERN SEQ(A a) WHERE (a.x < 3 WITHIN 5 s", 33, "a closing bracket"),
        (
            "PATTERN SEQ(A a) WHERE (a.x < 3) = 1 WITHIN 5 s",
            34,
            "expected WITHIN, STRATEGY, AND or OR",
        ),
        ("PATTERN SEQ(A a) WHERE a.x < 3 WITHN 5 s", 32, "did you mean 'WITHIN'?"),
        ("PATTERN SEQ(A a) WHERE a.x < 3", 31, "expected WITHIN, STRATEGY, AND or OR"),
        ("PATTERN SEQ(A a)", 17, "the text ends here; expected WITHIN, WHERE or STRATEGY"),
        ("PATTERN SEQ(A a) WHERE a[ < 3 WITHIN 5 s", 27, "expected an index: [i], [i-1]"),
        ("PATTERN SEQ(A a) WHERE avg(a[..i < 3 WITHIN 5 s", 34, "expected an index: [i], [i-1]"),
        ("PATTERN SEQ(A a) WHERE [3] WITHIN 5 s", 25, "expected the name of an attribute"),
        ("PATTERN SEQ(A a) WHERE [x; WITHIN 5 s", 26, "a comma or a closing square bracket"),
        ("PATTERN SEQ(A a WHERE a.x < 3", 17, "expected a comma or a closing bracket"),
        ("PATTERN SEQ(A + 3)", 17, "expected a variable name"),
        ("PATTERN SEQ(A a) WITHIN five s", 25, "parameter five has no value"),
        ("PATTERN SEQ(A a) WITHIN '5' s", 25, "expected a number"),
        ("PATTERN SEQ(A a) WITHIN -5 s", 25, "expected a number"),
        ("PATTERN SEQ(A a) WITHIN 5", 26, "expected a time unit (such as seconds"),
        ("PATTERN SEQ(A a) WITHIN 5 minuets", 27, "did you mean 'minutes'?"),
        ("PATTERN SEQ(A a) WITHIN 5 fortnights", 27, "or units for a plain integer time"),
        ("PATTERN SEQ(A a) WITHIN 5 s STRATEGY any", 29, "expected the end of the pattern"),
    ],
)
def test_words(text: str, column: int, words: str) -> None:
    error = error_of(text)
    assert (error.line, error.column) == (1, column)
    assert words in str(error)
    assert not isinstance(error, UnsupportedPatternError)
    for token in ("NAME", "_COMMA", "_RPAR", "_LPAR", "_DOT", "COMPARE", "$END", "QUOTED"):
        assert token not in str(error)


@pytest.mark.parametrize(
    ("text", "column", "words"),
    [
        ("PATTERN SEQ(A a, B* b) WITHIN 5 s", 19, "a closure that may be empty"),
        ("PATTERN A; B^5; C WITHIN 5 s", 13, "a closure of a given size"),
        ("PATTERN A; B WITHIN 5 s RETURN A, B", 25, "the clause RETURN"),
        ("PATTERN SEQ(A, B) WHERE [id] GROUPBY x WITHIN 5 s", 30, "the clause GROUPBY"),
        ("PATTERN SEQ(A, B) AGG count WITHIN 5 s", 19, "the clause AGG"),
        ("PATTERN SEQ(A a) WHERE a.x < log(a.y) WITHIN 5 s", 30, "the function log(…)"),
    ],
)
def test_known_from_the_papers_but_not_built_yet(text: str, column: int, words: str) -> None:
    error = error_of(text)
    assert isinstance(error, UnsupportedPatternError)
    assert (error.line, error.column) == (1, column)
    assert f"not supported yet: {words}" in str(error)
