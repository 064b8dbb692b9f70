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
            "PATTERN SEQ(A a) WHERE strict_contiguity(a.x) WITHIN 5 s",
            43,
            "expected a comma or a closing",
        ),
        ("PATTERN SEQ(A a) WHERE a.x % -2 = 1 WITHIN 5 s", 28, "takes brackets, as in a.x % (-2)"),
        (
            "PATTERN SEQQ(A a) WITHIN 5 s",
            9,
            "expected SEQ, AND, OR, NOT, KL or GROUP; did you mean 'SEQ'?",
        ),
        ("PATTERN op (T1 e1, T2 e2) WITHIN 5 s", 9, "unknown operator 'op'"),
        ("PATTERN SEQ() WITHIN 5 s", 13, "expected an item (a type and a variable name"),
        ("PATTERN SEQ(A a, ) WITHIN 5 s", 18, "expected an item"),
        ("PATTERN SEQ(A a B b) WITHIN 5 s", 17, "expected a comma or a closing bracket"),
        ("PATTERN SEQ(A a WITHIN 5 s", 17, "expected a comma or a closing bracket"),
        (
            "PATTERN SEQ(A a)) WITHIN 5 s",
            17,
            "expected WITHIN, WHERE, ORDER BY, STRATEGY, OUTPUT, GROUP BY or AGG",
        ),
        ("PATTERN SEQ(A within) WITHIN 5 s", 15, 'as a name it needs double quotes: "within"'),
        ("PATTERN SEQ(A a) WHERE a.and < 1 WITHIN 5 s", 26, 'needs double quotes: "and"'),
        ("PATTERN SEQ(A-B a) WITHIN 5 s", 14, "need double quotes"),
        ("PATTERN SEQ(BRK.B a) WITHIN 5 s", 16, "need double quotes"),
        ("PATTERN SEQ(A a, 300 b) WITHIN 5 s", 18, "need double quotes"),
        ('PATTERN SEQ("A a) WITHIN 5 s', 13, 'the quote " is not closed'),
        ("PATTERN SEQ(A a) WHERE WITHIN 5 s", 24, "expected a condition such as"),
        ("PATTERN SEQ(A a) WHERE a.x + 1 WITHIN 5 s", 24, "expected a comparison (<, <=, >, >="),
        ("PATTERN SEQ(A a) WHERE a.x < WITHIN 5 s", 30, "expected a value such as a.price"),
        ("PATTERN SEQ(A a) WHERE a < 3 WITHIN 5 s", 24, "expected a dot and an attribute"),
        ("PATTERN SEQ(A a) WHERE a. < 3 WITHIN 5 s", 27, "expected the name of an attribute"),
        ("PATTERN SEQ(A a) WHERE a.x =< 3 WITHIN 5 s", 29, "did you mean '<='?"),
        ("PATTERN SEQ(A a) WHERE a.x => 3 WITHIN 5 s", 29, "did you mean '>='?"),
        ('PATTERN SEQ(A a) WHERE a.x = "t" WITHIN 5 s', 34, "texts take single quotes"),
        ("PATTERN SEQ(A a) WHERE a.x = 't WITHIN 5 s", 30, "the quote ' is not closed"),
        ("PATTERN SEQ(A a) WHERE a.x < 3 && a.y < 3 WITHIN 5 s", 32, "write AND"),
        ("PATTERN SEQ(A a) WHERE a.x < 3 || a.y < 3 WITHIN 5 s", 32, "write OR"),
        ("PATTERN SEQ(A a) WHERE (a.x < 3 WITHIN 5 s", 33, "a closing bracket"),
        (
            "PATTERN SEQ(A a) WHERE (a.x < 3) = 1 WITHIN 5 s",
            34,
            "expected WITHIN, ORDER BY, STRATEGY, OUTPUT, GROUP BY, AGG, AND or",
        ),
        ("PATTERN SEQ(A a) WHERE a.x < 3 WITHN 5 s", 32, "did you mean 'WITHIN'?"),
        (
            "PATTERN SEQ(A a) WHERE a.x < 3",
            31,
            "expected WITHIN, ORDER BY, STRATEGY, OUTPUT, GROUP BY, AGG, AND or",
        ),
        (
            "PATTERN SEQ(A a)",
            17,
            "the text ends here; expected WITHIN, WHERE, ORDER BY, STRATEGY, OUTPUT, GROUP BY or AGG",
        ),
        ("PATTERN SEQ(A a) WHERE a[ < 3 WITHIN 5 s", 27, "expected an index: [i], [2..], [i-1]"),
        (
            "PATTERN SEQ(A a) WHERE avg(a[..i < 3 WITHIN 5 s",
            34,
            "expected an index: [i], [2..], [i-1]",
        ),
        ("PATTERN SEQ(A a) WHERE [3] WITHIN 5 s", 25, "expected the name of an attribute"),
        ("PATTERN SEQ(A a) WHERE [x; WITHIN 5 s", 26, "a comma or a closing square bracket"),
        ("PATTERN SEQ(A a WHERE a.x < 3", 17, "expected a comma or a closing bracket"),
        ("PATTERN SEQ(A + 3)", 17, "expected a variable name"),
        ("PATTERN SEQ(A a) WITHIN five s", 25, "parameter five has no value"),
        ("PATTERN SEQ(A a) WITHIN '5' s", 25, "expected a number"),
        ("PATTERN SEQ(A a) WITHIN -5 s", 25, "expected a number"),
        ("PATTERN SEQ(A a) WITHIN 5", 26, "expected a time unit (such as seconds"),
        ("PATTERN SEQ(A a) WITHIN 5 minuets", 27, "did you mean 'minutes'?"),
        ("PATTERN SEQ(A a) WITHIN 5 fortnights", 27, "or units for integer time"),
        ("PATTERN SEQ(A a) WITHIN 5 s STRATEGY any", 29, "expected the end of the pattern"),
        ("PATTERN SEQ(A a) WITHIN 5 s STRATEGY any", 29, "STRATEGY comes before WITHIN: PATTERN"),
        ("PATTERN A a WITHIN 5 s WHERE a.x > 1", 24, "WHERE comes before WITHIN: PATTERN"),
        ("PATTERN A a STRATEGY any WHERE a.x > 1 WITHIN 5 s", 26, "WHERE comes before STRATEGY"),
        ("PATTERN A a WITHIN 5 s ORDER BY arrival", 24, "ORDER BY comes before WITHIN"),
        ("PATTERN A a ORDER BY ts WITHIN 5 s", 22, "unknown order 'ts'; use one of time, arrival"),
        ("PATTERN A a ORDER arrival WITHIN 5 s", 13, "write ORDER BY arrival after WHERE"),
    ],
)
def test_words(text: str, column: int, words: str) -> None:
    error = error_of(text)
    assert (error.line, error.column) == (1, column)
    assert words in str(error)
    assert not isinstance(error, UnsupportedPatternError)
    for token in ("NAME", "_COMMA", "_RPAR", "_LPAR", "_DOT", "COMPARE", "$END", "QUOTED"):
        assert token not in str(error)


def test_the_advice_against_sql_parses() -> None:
    for where in ("a.x BETWEEN 1 AND 2", "a.x NOT IN (1)", "a.x IN (1)", "a.x NOT BETWEEN 1 AND 2"):
        words = str(error_of(f"PATTERN SEQ(A a) WHERE {where} WITHIN 5 s")).splitlines()[0]
        parse(f"PATTERN SEQ(A a) WHERE a.y = 1 AND {words.split('write ')[1]} WITHIN 5 s")


def test_a_query_of_sql_is_told_what_a_pattern_looks_like() -> None:
    assert "this is not SQL: PATTERN SEQ(A a, B b)" in str(error_of("SELECT * FROM A WHERE x < 1"))


LONG = 100_000


@pytest.mark.parametrize(
    "text",
    [
        f"PATTERN SEQ(A a) WITHIN {'9' * LONG} s",
        f"PATTERN SEQ(A a) WITHIN 5 {'s' * LONG}",
        f"PATTERN SEQ({'A' * LONG} a, B a) WITHIN 5 s",
        f"PATTERN SEQ(A {'a' * LONG}, B {'a' * LONG}) WITHIN 5 s",
        f"PATTERN SEQ(A {'a' * LONG}) WHERE {'a' * (LONG - 1)}.x < 1 WITHIN 5 s",
        f"PATTERN SEQ({', '.join(f'A a{n}' for n in range(5_000))}) WHERE b.x < 1 WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE a.x < {'a' * LONG} WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE a.x < {'f' * LONG}(1) WITHIN 5 s",
        f"PATTERN {'f' * LONG}(A a) WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE a.{'x' * LONG} < 1 {'y' * LONG} WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE a.{'x' * LONG} IN (1) WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE a.x = '{'t' * LONG}' AND a.x = '{'u' * LONG}' WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE a.x < '{'t' * LONG}' WITHIN 5 s",
        "PATTERN SEQ(A a) WHERE a.x = '" + "\n" * LONG + "' AND a.x = 't' WITHIN 5 s",
        "PATTERN SEQ(A a) WHERE a.x = '" + "\u2028" * LONG + "' AND a.x = 't' WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE a.x = '{'t' * LONG} WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE {' OR '.join(['a.x < a.x'] * 3_000)} AND a.x > b.x WITHIN 5 s",
        f"PATTERN SEQ({', '.join(f'A a{n}' for n in range(3_000))}) WITHIN 5 units",
        f"PATTERN SEQ({', '.join(f'NOT(A a{n})' for n in range(3_000))}) WITHIN 5 units",
        f"PATTERN AND(A a, B b) WHERE {' + '.join(['a.x'] * 50)} < 'text' WITHIN 5 s",
        f"PATTERN SEQ(A a) STRATEGY {'s' * LONG} WITHIN 5 s",
        f"PATTERN SEQ(A a) STRATEGY any({'s' * LONG}) WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE any({'s' * LONG}) {{ a.x < 1 }} WITHIN 5 s",
        f"PATTERN SEQ(A a) WHERE a[{'i' * LONG}].x < 1 WITHIN 5 s",
        f"{'x' * LONG}",
        "(" * LONG,
        "\x00" * LONG,
        "\ud800" * LONG,
        "€" * LONG,
    ],
    ids=range(29),
)
def test_messages_stay_short_whatever_they_quote(text: str) -> None:
    error = error_of(text)
    shown = str(error)
    assert len(shown) < 1000
    first, line, marker = shown.splitlines()
    assert first.startswith(f"line {error.line}, column {error.column}: ")
    assert len(line) <= 110
    assert set(marker.strip()) == {"^"}
    # What is marked is the beginning of what is wrong.
    marked = line[marker.index("^") :][:3]
    wrong = "".join(c if c.isprintable() else "\ufffd" for c in error.offending[:3])
    assert marked.startswith(wrong[: len(marked)])


def test_the_place_stands_in_what_is_shown_of_a_long_line() -> None:
    before = " AND ".join(f"a.x{n} < 1" for n in range(1_000))
    error = error_of(f"PATTERN SEQ(A a) WHERE {before} AND a.y << 1 AND {before} WITHIN 1 s")
    _, line, marker = str(error).splitlines()
    assert line[marker.index("^")] == "<"
    assert "AND a.y <<" in line
    assert line.startswith("  … ") and line.endswith(" …")
