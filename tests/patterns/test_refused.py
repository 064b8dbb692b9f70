"""Patterns that are refused: by which error, in which words, and at which place of the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from cepbench.errors import (
    PatternError,
    PatternNameError,
    PatternOperatorError,
    PatternSyntaxError,
    UnsatisfiablePatternError,
    UnsupportedPatternError,
)
from cepbench.patterns.parse import parse

OF_SETS = "SEQ(A a, NOT(N n), NOT(M m), KL(K k), KL(L l)) WHERE a.y = 1 AND {}"
RETURNED = 'AND(OR(SEQ(A a, NOT(N n), KL(B b)), D d), C "c c") WITHIN 9 s RETURN {}'

#: Of a group the frame, into which a text is written, with a window of 9 s where it has none, and the
#: error. Of a text the words of the error, in which … stands for anything; its column or the marked
#: part, where not all of the text is marked; and the error, where it is not that of the group.
REFUSED: dict[str, tuple[str, type[PatternError], dict[str, Any]]] = {
    "operators where they have no meaning": ("{}", PatternOperatorError, {
        "NOT(A a)": ("a match would bind no event", 13),
        "SEQ(NOT(A a), !B b)": ("add an item without NOT", 17),
        "OR(A a, NOT(B b))": ("SEQ(NOT(B b)) has only negated items", 21),
        "OR(A a, NOT(B b)) WHERE [x]": ("has only negated items", 21),
        "AND(NOT(A a), OR(B b, NOT(C c)))": ("has only negated items", 17),
        "NOT(OR(A a, B b))": ("a match would bind no event", 16),
        "SEQ(A a, NOT(SEQ(B b, C c)))": ("an OR of event types, not to SEQ", 18),
        "SEQ(A a, !(B b & C c))": ("an OR of event types, not to AND", 18),
        "SEQ(A a, NOT(OR(B b, SEQ(C c, D d))))": ("an OR of event types, not to SEQ", 18),
        "SEQ(A a, NOT(OR(B b, NOT(C c))))": ("NOT of NOT", 18),
        "SEQ(A a, NOT(KL(B b)))": ("means no event at all", 18),
        "SEQ(A a, !B+ b[])": ("means no event at all", 18),
        "SEQ(A a, NOT(NOT(B b)))": ("NOT of NOT", 18),
        "SEQ(A a, KL(NOT(B b)))": ("an absent event cannot be repeated", 18),
        "SEQ(A a, KL(SEQ(B b, C c)))": ("KL applies to a single event type, not to SEQ", 18),
        "SEQ(A a, (B b | C c)+)": ("KL applies to a single event type, not to OR", 18),
        "SEQ(A a, KL(B b+))": ("Kleene closure of a Kleene closure", 18),
    }),
    "groups where they have no meaning": ("{}", PatternOperatorError, {
        "SEQ(GROUP(B b, +))": ("has only groups", 19),
        "SEQ(NOT(A n), GROUP(B b, +))": ("has only groups", 29),
        "SEQ(A a, GROUP(B b, +), GROUP(C c, 2), D d)": ("are side by side", 24),
        "SEQ(A a, GROUP(B b, +), !N n, GROUP(C c, 2), D d)": ("are side by side", 24),
        "SEQ(A a, SEQ(B b, GROUP(C c, +)), GROUP(D d, +))": ("are side by side", 33),
        "SEQ(GROUP(B b, +), A a, GROUP(C c, *))": ("groups b and c are at both ends", 39),
        "AND(SEQ(GROUP(B b, +), A a), SEQ(C c, GROUP(D d, +)))": ("at both ends", 53),
        "AND(A a, GROUP(B b, +))": ("directly under AND", 24),
        "AND(A a, SEQ(GROUP(B b, +)))": ("directly under AND", 28),
        "SEQ(A a, GROUP(B b, +), C+ c)": ("together with KL", 24),
        "SEQ(A a, NOT(GROUP(B b, +)))": ("NOT of a group", 18),
        "SEQ(A a, KL(GROUP(B b, +)))": ("Kleene closure of a group", 18),
        "SEQ(A a, GROUP(KL(B b), +))": ("a group of a Kleene closure", 18),
        "SEQ(A a, GROUP(B b+, +))": ("a group of a Kleene closure", 18),
        "SEQ(A a, GROUP(NOT(B b), +))": ("a group of NOT", 18),
        "SEQ(A a, GROUP(SEQ(B b, C c), +))":
            ("GROUP applies to a single event type, not to SEQ", 18),
        "SEQ(A a, GROUP(B b | C c, 2))": ("GROUP applies to a single event type, not to OR", 18),
        "SEQ(A a, GROUP(B b, 0), C c)": ("a group of 0 events; its size is +, *", 29),
        "SEQ(A a, GROUP(B b, 2.5), C c)": ("a group of 2.5 events", 29),
        "SEQ(A a, GROUP(B b, +)) STRATEGY strict_contiguity": ("under strict_contiguity", 24),
        "SEQ(A a, GROUP(B b, +), C c, GROUP(D d, +)) WHERE b.x < d.x": ("event by event", 59),
    }),
    "the dialect's notation of groups": ("A; {}; C", UnsupportedPatternError, {
        "B*": ("write GROUP(B b, …), or parse with dialect", 13),
        "B^5": ("write GROUP(B b, …), or parse with dialect", 13),
    }),
    "what runs of an automaton cannot bind": ("{} STRATEGY next", PatternOperatorError, {
        "AND(A a, B b)": ("AND under next, whose runs bind the items of a SEQ one by one", 13),
        "SEQ(A a, OR(B b, AND(C c, D d)))": ("AND under next", 13),
        "SEQ(A a, GROUP(B b, +))": ("GROUP(B b, +) under next", 24),
    }),
    "conditions where they have no meaning": (OF_SETS, PatternOperatorError, {
        "a[i-1].x < 3": "a[i-1].x needs a set of events…write a.x, or…KL(A a)",
        "a[1].x < 3": "needs a set of events",
        "n[last].x < 3": "needs a set of events",
        "avg(a.x) < 3": "avg(a[].x) needs a set of events",
        "a.x < sum(k[1].x)": "sum(k[1].x) is over a single event; write k[1].x",
        "k[i].x < l[i-1].x": "range over two Kleene variables, k and l",
        "l.x < avg(k[..i-1].x)": "may mention only one",
        "n.x < m.x": "the negated variables n and m…relate both to an item without NOT",
        "k[..i-1].x = 1": ("apply a function, as in avg", 74, PatternSyntaxError),
    }),
    "unknown indices": ("SEQ(A a, KL(K k)) WHERE k{}.x = 1", PatternSyntaxError,
        dict.fromkeys(["[2]", "[j]", "[i-2]", "[a.LEN]", "[k.SIZE]", "[i-1.5]"],
                      "unknown index; an event of k is k[i]")),
    "variables of different branches, or of two items": ("{}", PatternNameError, {
        "OR(A a, B b) WHERE a.x < b.x":
            ("a and b are in different branches of OR", 28, PatternError),
        "SEQ(A a, OR(B b, C c)) WHERE a.x < 1 AND c.x = b.x":
            ("c and b are in different", 50, PatternError),
        "OR(A a, B a)": ("'a' is already used for A a in another branch", 19),
        "OR(A a, SEQ(KL(A a), B b))": ("'a' is already used for A a in another branch", 26),
        "SEQ(A a, OR(B b, C a))": ("'a' is already used for another item", 28),
        "AND(OR(A a, B b), OR(C c, B b))": ("'b' is already used for another item", 37),
        "SEQ(A a, B b, AND(A a))": ("variable 'a' is already used", 29),
        "SEQ(A price, B b) WHERE prise.x < b.x":
            ("unknown variable 'prise'; …did you mean 'price'", 33),
    }),
    "conditions over three variables": ("SEQ(A a, B b, C c) WHERE {}", UnsupportedPatternError, {
        "a.x < 1 AND a.x + b.x < c.x": ("the variables a, b and c", "a.x + b.x < c.x"),
        "a.x < 1 AND (a.x < b.x OR b.x < c.x)":
            ("one pattern for each alternative", "a.x < b.x OR b.x < c.x"),
    }),
    "conditions that are never true": ("SEQ(A a, B b, C c) WHERE {}", UnsatisfiablePatternError, {
        "2 < 1": "never true",
        "a.x < 1 AND 'x' = 'y'": ("never true", 46),
        "NOT (1 < 2 OR a.x < 1)": "never true",
        "0 / 0 = 0 / 0": "never true",
        "NOT 0 / 0 = 0 / 0": "never true",
        "0 / 0 != 0 / 0": "never true",
    }),
    "constants that make no sense": ("SEQ(A a, B b, C c) WHERE {}", PatternError, {
        "a.x < 'text'": ("< orders a text", 40),
        "'a' < 'b'": ("< orders a text", 34),
        "a.x + 'text' = 1": ("arithmetic on a text", 40),
        "-'text' = a.x": ("arithmetic on a text", 35),
        "1 = 'text'": "compares a text with a number",
        "a.x + 1 = 'text'": "compares a text with a number",
        "a.x < 1e999": ("beyond the range of a float", 40),
        "a.x < 1e99999999999999999999%": ("beyond the range of a float", 40),
        "a.x > 1e-400": ("would be rounded to 0.0", 40),
        "a.x > 1e-99999999999999999999%": ("would be rounded to 0.0", 40),
    }),
    "half a surrogate pair": ("{}", PatternSyntaxError, {
        "SEQ(A \"\ud800\")": ("is half of a surrogate pair", 16),
        "SEQ(A a) WHERE a.x = '\udfff'": ("is half of a surrogate pair", 31),
        "\ud800": "is half of a surrogate pair",
    }),
    "windows beyond the range of timestamps": ("A a WITHIN {}", PatternError, {
        "1e300 days": ("the largest window is 26687 days", "1e300"),
        "1e300 ms": ("the largest window is 2305843009213 milliseconds", "1e300"),
        "1e300 units": ("the largest window is 2305843009213693952 units", "1e300"),
        "26688 days": ("the largest window is 26687 days", "26688"),
        "1e400 s": ("the largest window is 2305843009 seconds", "1e400"),
        "9" * 100_000 + " days": ("the largest window is 26687 days", 20),
        "1e999999999 s": ("the largest window is 2305843009 seconds", "1e999999999"),
    }),
    "sequences longer than their window": ("{}", UnsatisfiablePatternError, {
        "SEQ(A a, B b) WITHIN 0 minutes": ("needs 2 timestamps", "0"),
        "SEQ(A a, B b, C c) WITHIN 1 units": ("needs 3 timestamps", "1"),
        "SEQ(A a, AND(B b, C c), NOT(N n), KL(D d)) WITHIN 1 units": ("to 2 units", "1"),
        "OR(SEQ(A a, B b), SEQ(C c, B b)) WITHIN 0 s": ("SEQ(A a, B b) needs", "0"),
        "OR(A a, B b) WHERE a.x < a.x AND b.x = 'p' AND b.x = 'q'":
            ("condition a.x < a.x is never true", "a.x < a.x"),
    }),
    "strategies that are none": ("SEQ(A a, B b) {}", PatternSyntaxError, {
        "STRATEGY consumming": ("did you mean 'consuming'", 32, PatternNameError),
        "OUTPUT non_overlaps": ("did you mean 'non_overlap'", 30, PatternNameError),
        "OUTPUT 5": ("expected all or non_overlap", 30),
        "OUTPUT all STRATEGY any": ("STRATEGY comes before OUTPUT", 34),
        "STRATEGY partition_contiguity":
            ("needs the attribute that its partitions share", None, PatternError),
        "STRATEGY any(x)": ("strategy any takes no attribute", None, PatternError),
        "STRATEGY": ("expected a strategy", 32),
        "STRATEGY partition_contiguity(1)": ("expected the name of an attribute", 53),
        "WHERE skip_till_last_match(a, b) { a.x < 1 }":
            ("unknown strategy 'skip_till_last", 29, PatternNameError),
        "WHERE skip_till_any_match(a, c) { a.x < 1 }":
            ("unknown variable 'c'", 52, PatternNameError),
        "WHERE skip_till_any_match(b) { a.x < 1 }":
            ("variable a is not listed", 48, PatternNameError),
        "WHERE partition_contiguity(a, b) { a.x < 1 }": ("found none", 29, PatternError),
        "WHERE partition_contiguity(a, b) { [x] and [y] }": ("found x, y", 29, PatternError),
        "WHERE strict_contiguity { [x] } STRATEGY any": ("already names a strategy", 55),
        "WHERE strict_contiguity { [x] ": ("expected a closing brace", 54),
    }),
    "comparisons of times": ("SEQ(A a, B b, C c) WHERE {}", PatternError, {
        "b.ts * 2 > 5 s": ("only times of events, other lengths, + and - may stand", 34),
        "b.ts > 5 s": "is compared with the difference of two times",
        "b.ts - a.tx > 5 s": "is compared with the difference of two times",
        "b.ts - a.ts > 0.5 ns": ("not a whole number of nanoseconds", 48),
        "b.ts - a.ts > 105 days": "at most 104 days",
        "b.ts - a.ts > 5 units": "the window is in a unit of time",
    }),
    "comparisons of SQL": ("SEQ(A a) WHERE {}", PatternSyntaxError, {
        "a.x BETWEEN 1 AND 2": ("no BETWEEN; write a.x >= 1 AND a.x <= 2", "BETWEEN"),
        "a.x NOT BETWEEN 1 AND 2": ("no BETWEEN; write (a.x < 1 OR a.x > 2)", "NOT"),
        "a.x between 1 and 2": ("no BETWEEN; write a.x >= 1", "between"),
        'a.x > 1 AND a."y z" IN (1, 2)': ('write (a."y z" = 1 OR a."y z" = 2)', "IN"),
        "a.x IN(1, 2)": ("no IN; write (a.x = 1 OR a.x = 2)", "IN"),
        "a.x NOT IN (1)": ("no IN; write a.x != 1 AND a.x != 2", "NOT"),
        "a.x LIKE 'p%'": ("texts can only be = or !=; precompute", "LIKE"),
        "a.x not ilike 'p'": ("no ILIKE, texts can only be", "not"),
        "a.x IS NULL": ("a missing value satisfies no comparison", "IS"),
        "a.x IS NOT NULL": ("for IS NOT NULL write a.x = a.x", "IS"),
        "a.x = NULL": ("the language has no NULL: a missing value", "NULL", PatternNameError),
    }),
    "what is known from the papers but not built yet": ("{}", UnsupportedPatternError, {
        "A; B WITHIN 5 s HAVING A": ("not supported yet: the clause HAVING", 25),
        "SEQ(A, B) WITHIN 5 s LIMIT 5": ("not supported yet: the clause LIMIT", 30),
        "SEQ(A a) WHERE a.x < log(a.y) WITHIN 5 s": ("not supported yet: the function log(", 30),
        "SEQ(A a) WHERE abs(a.x - 1) > 2 WITHIN 5 s": ("not supported yet: the function abs(", 24),
        "SEQ(A a) WHERE abs(5) > a.x WITHIN 5 s": ("not supported yet: the function abs(", 24),
    }),
    "clauses of aggregates": ("SEQ(A a, NOT(B n), KL(C c), D d) {}", PatternSyntaxError, {
        "AGG COUNT(z)":
            ("AGG of an unknown variable 'z'; the pattern has a", "COUNT(z)", PatternNameError),
        "AGG COUNT, SUM(n.x)":
            ("AGG of the negated variable 'n'", "SUM(n.x)", PatternOperatorError),
        "AGG MEDIAN(a.x)":
            ("unknown aggregate 'MEDIAN'; use one of COUNT, SUM, AVG, MIN, MAX", "MEDIAN(a.x)",
             PatternNameError),
        "AGG CUONT": ("did you mean 'COUNT'", "CUONT", PatternNameError),
        "AGG SUM(a)": ("SUM(a) has no attribute; write SUM(a.price)", "SUM(a)"),
        "AGG AVG": ("AVG has no attribute; write AVG(a.price)", "AVG"),
        "AGG MIN(*)": ("MIN has no attribute", "MIN(*)"),
        "GROUP BY x": ("GROUP BY without AGG", "x"),
        "GROUP BY z.x AGG COUNT": ("GROUP BY of an unknown variable 'z'", "z.x", PatternNameError),
        "GROUP BY n.x AGG COUNT":
            ("GROUP BY of the negated variable 'n'", "n.x", PatternOperatorError),
        "GROUP BY c.x AGG COUNT": ("c has a set of events", "c.x", PatternOperatorError),
        "GROUP BY type(c) AGG COUNT":
            ("c has a set of events with a value each; group by another variable", "type(c)",
             PatternOperatorError),
        "GROUP BY type(z) AGG COUNT":
            ("GROUP BY of an unknown variable 'z'", "type(z)", PatternNameError),
        "GROUP BY kind(a) AGG COUNT":
            ("or by the type of an item's events, type(a)", "kind", PatternNameError),
        "GROUP BY type(a, 1.5) AGG COUNT": ("the level of a type is 0, 1, 2", "1.5"),
        "GROUP BY AGG COUNT": ("write GROUP BY symbol AGG COUNT", "GROUP"),
        "GROUPBY x AGG COUNT": ("write GROUP BY symbol AGG COUNT", "GROUPBY"),
        "AGG COUNT GROUP BY x": ("GROUP BY comes before AGG", "GROUP BY"),
        "AGG": ("expected an aggregate such as COUNT or SUM(a.price)", "WITHIN"),
        "AGG COUNT STRATEGY any": ("STRATEGY comes before AGG", "STRATEGY"),
    }),
    "aggregates of matches that are decided too late": ("{} AGG COUNT", UnsupportedPatternError, {
        "SEQ(A a, NOT(B n))": ("AGG with NOT(B n), which no other item follows", 32),
        "AND(A a, NOT(B n))": ("AGG with NOT(B n), which no other item follows", 32),
        "SEQ(A a, B b, GROUP(C g, *))": ("AGG with GROUP(C g, *), which no other item follows", 42),
        "OR(D d, SEQ(A a, NOT(B n)))": ("AGG with NOT(B n), which no other item follows", 41),
        "SEQ(A a, NOT(B n), GROUP(C g, +))": ("AGG with NOT(B n), which no other item follows", 47),
    }),
    "names that are a keyword": ("{}", PatternSyntaxError, {
        "SEQ(AGG a)": ("as a name it needs double quotes", "AGG"),
        "AGG a; B b": ("as a name it needs double quotes", "AGG"),
        "SEQ(A agg)": ("as a name it needs double quotes", "agg"),
        "SEQ(A a) WHERE a.agg > 3": ("as a name it needs double quotes", "agg"),
        "SEQ(A a) WHERE [agg]": ("as a name it needs double quotes", "agg"),
        "SEQ(A a) WHERE Agg.x > 3": ("as a name it needs double quotes", "Agg"),
    }),
    "columns that cannot be returned": (RETURNED, PatternOperatorError, {
        "a, n": ("the negated variable 'n', which a match binds to no event", "n"),
        "a, n.x + 1": ("the negated variable 'n'", "n.x + 1"),
        "a, q": ("unknown variable 'q'; the pattern has a, n, b, d, c c", "q", PatternNameError),
        "q.x": ("unknown variable 'q'", "q", PatternNameError),
        "a, b, a": ("two columns named 'a'; rename one of them: a AS other", "a", PatternNameError),
        'a.x, b[1].x AS "a.x"': ("two columns named 'a.x'", 'b[1].x AS "a.x"', PatternNameError),
        "5": ("mentions no variable", None, PatternError),
        "a.x - d.x": ("in different branches of OR", None, PatternError),
        "b.x + 1": "arithmetic on b.x, which has a value for each event of b",
        "b[i-1].x": "a value for each event of b but the first",
        "avg(b[..i-1].x)": "a value for each event of b but the first",
        "b[2..].x": "a value for each event of b but the first",
        "a[1].x": "a[1].x needs a set of events",
        "sum(a.x)": "needs a set of events",
        "a.x + 'p'": ("arithmetic on a text", "'p'", PatternError),
        "a x b": ("unexpected 'x'; expected", "x", PatternSyntaxError),
        "a total": ("expected AS and the name of the column", "", PatternSyntaxError),
        "a,": ("expected a variable, or a value such as a.price or sum", "", PatternSyntaxError),
        "median(a.x)": ("the function median", "median", UnsupportedPatternError),
    }),
    "clauses that go with no other": ("SEQ(A a) {}", PatternSyntaxError, {
        "AGG COUNT WITHIN 5 units RETURN a": ("RETURN with AGG", "a"),
        "RETURN a WITHIN 9 s": ("RETURN comes after WITHIN", "RETURN"),
    }),
    "numbers beyond the range of a float": ("SEQ(A a, B b, C c) WHERE {}", PatternError, {
        "a.x < 1e400": ("a number beyond the range of a float", 40),
        f"a.x < {10**400}": ("a number beyond the range of a float", 40),
        "a.x < " + "9" * 100_000: ("a number beyond the range of a float", 40),
        "a.x = -1e999 + 1": ("a number beyond the range of a float", 41),
        "a.x < 1e400%": ("a number beyond the range of a float", 40),
    }),
}  # fmt: skip


def texts_of(group: str) -> Iterator[Any]:
    frame, usual, rows = REFUSED[group]
    for written, told in rows.items():
        words, place, error = (*told, usual)[:3] if isinstance(told, tuple) else (told, None, usual)
        text = f"PATTERN {frame.format(written)}"
        text = text if "WITHIN" in text else f"{text} WITHIN 9 s"
        place = written if place is None else place
        yield pytest.param(text, words, place, error, id=f"{group}: {written:.80}")


@pytest.mark.parametrize(
    ("text", "words", "place", "error"), [text for group in REFUSED for text in texts_of(group)]
)
def test_refused(text: str, words: str, place: int | str, error: type[PatternError]) -> None:
    with pytest.raises(error) as refused:
        parse(text)
    found = refused.value
    assert type(found) is error
    assert re.search(".*".join(map(re.escape, words.split("…"))), str(found))
    assert found.line == 1 and place in (found.column, found.offending)
    assert len(str(found)) < 1000
    str(found).encode("utf-8")
