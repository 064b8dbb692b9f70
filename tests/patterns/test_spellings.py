"""Every spelling of the literature, and the canonical text of the pattern that it stands for."""

import re
from typing import Any

import pytest

from cepbench.errors import PatternError, PatternNameError, PatternSyntaxError
from cepbench.patterns.parse import parse


def canonical(text: str, **parameters: Any) -> str:
    pattern = parse(text, parameters)
    assert parse(str(pattern)) == pattern
    return str(pattern)


def structure_of(text: str) -> str:
    return canonical(f"PATTERN {text} WITHIN 9 s").removeprefix("PATTERN ")[
        : -len(" WITHIN 9 seconds")
    ]


def conditions_of(where: str, items: str = "SEQ(A a, KL(B b), NOT(C c), D d)") -> list[str]:
    pattern = parse(f"PATTERN {items} WHERE {where} WITHIN 9 s")
    return [str(clause) for clause in pattern.expanded.conditions]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *(
            (f"SEQ(A a, {item}, C c)", "SEQ(A a, NOT(B b), C c)")
            for item in [
                "NOT(B b)",
                "NOT B b",
                "!B b",
                "!(B b)",
                "~B b",
                "~(B b)",
                "¬B b",
                "not (B b)",
            ]
        ),
        *(
            (f"SEQ(A a, {item}, C c)", "SEQ(A a, KL(B b), C c)")
            for item in [
                "KL(B b)",
                "kl (B b)",
                "B+ b[]",
                "B+ b",
                "B b+",
                "B b[]",
                "B b[ ] +",
                "(B b)+",
            ]
        ),
        *(
            (f"SEQ(A a, {item}, D d)", "SEQ(A a, NOT(B b), NOT(C c), D d)")
            for item in [
                "NOT(OR(B b, C c))",
                "!(B b | C c)",
                "NOT((B b ∨ C c))",
                "~OR(OR(B b), (C c))",
            ]
        ),
        ("AND(A, !(B | B | C))", "AND(A A, NOT(B B), NOT(B B2), NOT(C C))"),
        ("A | B; !(C | D)", "OR(A A, SEQ(B B, NOT(C C), NOT(D D)))"),
        ("SEQ(ANY a, KL(any b), !Any c)", "SEQ(ANY a, KL(ANY b), NOT(ANY c))"),
        ("SEQ(ANY, A, ANY)", "SEQ(ANY ANY, A A, ANY ANY2)"),
        ('SEQ("ANY" a, "any" ANY, "any" b)', 'SEQ("ANY" a, "any" ANY, "any" b)'),
        ("SEQ(A, NOT(B), C, D)", "SEQ(A A, NOT(B B), C C, D D)"),
        ("SEQ(A, B+, A)", "SEQ(A A, KL(B B), A A2)"),
        ("SEQ(A, A+, !A, A[])", "SEQ(A A, KL(A A2), NOT(A A3), KL(A A4))"),
        ("OR(SEQ(A, B), SEQ(A, C), A)", "OR(SEQ(A A, B B), SEQ(A A, C C), A A)"),
        ("OR(SEQ(A, B), SEQ(A+, C))", "OR(SEQ(A A, B B), SEQ(KL(A A2), C C))"),
        ("AND(OR(A, B), A)", "AND(OR(A A, B B), A A2)"),
        ("A a", "SEQ(A a)"),
        ("B+ b[]", "SEQ(KL(B b))"),
        ("A a; B b; C c", "SEQ(A a, B b, C c)"),
        ("A a & B b", "AND(A a, B b)"),
        ("A a | B b", "OR(A a, B b)"),
        ("A a AND B b ∧ C c", "AND(A a, B b, C c)"),
        ("A a OR B b ∨ C c", "OR(A a, B b, C c)"),
        ("A; B & C; D | E", "OR(AND(SEQ(A A, B B), SEQ(C C, D D)), E E)"),
        ("A; (B & C | D); !E; F+", "SEQ(A A, OR(AND(B B, C C), D D), NOT(E E), KL(F F))"),
        ("(A; B); C", "SEQ(SEQ(A A, B B), C C)"),
        ("SEQ(A a, B b & C c, (D d | E e))", "SEQ(A a, AND(B b, C c), OR(D d, E e))"),
        ("IBM;!Sun;Oracle", "SEQ(IBM IBM, NOT(Sun Sun), Oracle Oracle)"),
        ("SEQ(G, ¬ DBusStation, A)", "SEQ(G G, NOT(DBusStation DBusStation), A A)"),
        ("SEQ(A a, B' b, C'' c)", "SEQ(A a, B' b, C'' c)"),
        ("SEQ(KL kl, sum count)", "SEQ(KL kl, sum count)"),
        ('SEQ("strategy" a, "TRUE" b, "or\'" c)', 'SEQ("strategy" a, "TRUE" b, "or\'" c)'),
    ],
)
def test_structures(written: str, meant: str) -> None:
    assert structure_of(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("b[i].x < a.x", ["b.x < a.x"]),
        ("b[].x < a.x", ["b.x < a.x"]),
        ("b[i].x < b[i-1].x", ["b[i].x < b[i-1].x"]),
        ("b.x < b[ I - 1 ].x", ["b[i].x < b[i-1].x"]),
        ("b[1].x < b[last].x", ["b[1].x < b[last].x"]),
        ("b[2..].x < a.x", ["b[2..].x < a.x"]),
        ("b[ 2 .. ].x < b.x OR a.x = 2", ["b[2..].x < b[i].x OR a.x = 2"]),
        ("a.x % 500 = 0", ["a.x % 500 = 0"]),
        ("a.x%d.x*2 = (a.x % (d.x * 2)) % (-a.x)", ["a.x % d.x * 2 = a.x % (d.x * 2) % (-a.x)"]),
        ("a.x % (-5) < 5% - 3", ["a.x % (-5) < 0.05 - 3"]),
        ("a.x < 80% and (a.y < 8%or a.z < 5 % 3)", ["a.x < 0.8", "a.y < 0.08 OR a.z < 5 % 3"]),
        ("a.x < 80 % (a.y) AND a.y < 80%*a.z", ["a.x < 80 % a.y", "a.y < 0.8 * a.z"]),
        ("b[b.LEN].x > a.x", ["b[last].x > a.x"]),
        ("avg(b.x) < SUM ( b[].x )", ["avg(b[].x) < sum(b[].x)"]),
        ("-count(b[i].x) < max(b.x) - min(b.x)", ["-count(b[].x) < max(b[].x) - min(b[].x)"]),
        ("b[i].x > avg(b[..i-1].x)", ["b[i].x > avg(b[..i-1].x)"]),
        ("b.x < 1 OR b.x > b[i-1].x", ["b[i].x < 1 OR b[i].x > b[i-1].x"]),
        ("a.x ≤ 1 ∧ a.y ≥ 2 ∧ a.z ≠ 3", ["a.x <= 1", "a.y >= 2", "a.z != 3"]),
        ("a.x = 1 ∨ ¬ a.y = 2", ["a.x = 1 OR a.y != 2"]),
        ("!(a.x = 1) AND ~ (a.y = 2)", ["a.x != 1", "a.y != 2"]),
        ("a.x=d.x=\n\n=2", ["a.x = d.x", "d.x = 2"]),
        ("(true)", []),
        ("true AND a.x = 1", ["a.x = 1"]),
        ("[x] OR a.y = 1", [f"a.x = {other}.x OR a.y = 1" for other in "dbc"]),
        (
            "[x, y] AND a.z = 1",
            [
                "a.x = d.x",
                "a.x = b.x",
                "a.x = c.x",
                "a.y = d.y",
                "a.y = b.y",
                "a.y = c.y",
                "a.z = 1",
            ],
        ),
        (
            "a.x = 1 // the first\n and /* not\n a.y */ d.x = 2 # and so on\n",
            ["a.x = 1", "d.x = 2"],
        ),
    ],
)
def test_conditions(written: str, meant: list[str]) -> None:
    assert conditions_of(written) == meant


@pytest.mark.parametrize(
    ("items", "meant"),
    [
        ("SEQ(A a)", []),
        ("SEQ(NOT(A n), A a)", ["a.x = n.x"]),
        ("SEQ(A a, A b, A c)", ["a.x = b.x", "b.x = c.x"]),
        ("SEQ(KL(A a))", ["a[i].x = a[i-1].x"]),
        ("SEQ(KL(A a), NOT(B n), KL(C c))", ["a.x = c.x", "a.x = n.x"]),
        ("OR(SEQ(A a, B b), SEQ(A a, C c), D d)", ["a.x = b.x", "a.x = c.x"]),
        ("SEQ(A a, OR(KL(B b), NOT(C c)), D d)", ["a.x = d.x", "a.x = b.x", "a.x = c.x"]),
    ],
)
def test_equal_everywhere(items: str, meant: list[str]) -> None:
    assert conditions_of("[x]", items) == meant
    pattern = parse(f"PATTERN {items} WHERE [x] AND [x] WITHIN 9 s")
    assert (pattern.equivalences, pattern.conditions, pattern.attributes) == (("x",), (), ("x",))
    for branch, its in zip(pattern.branches(), pattern.iter_branches(), strict=True):
        assert (branch.equivalences, its.conditions) == ((), ())
        assert its.equivalences == ("x",)


def test_per_cent_and_modulo_before_words_that_begin_like_keywords() -> None:
    where = "orders.x % orders.y = 5 % android.x AND android.x < 5% AND orders.x < 5%"
    assert conditions_of(where, "SEQ(A orders, B android)") == [
        "orders.x % orders.y = 5 % android.x", "android.x < 0.05", "orders.x < 0.05"
    ]  # fmt: skip
    text = "PATTERN SEQ(A a) WITHIN 9 s RETURN a.x + 5% AS b, a.x % a.y AS c"
    assert str(parse(text)).endswith("RETURN a.x + 0.05 AS b, a.x % a.y AS c")


#: As printed in the five papers, but for the prose around them.
PRINTED = [
    # Kolchinsky & Schuster 2018
    (
        "PATTERN SEQ(A a,B b,C c,D d)WHERE(a.vehicleID=b.vehicleID=\n\n"
        "=c.vehicleID=d.vehicleID)WITHIN W.",
        "SEQ(A a, B b, C c, D d) WHERE a.vehicleID = b.vehicleID AND b.vehicleID = c.vehicleID "
        "AND c.vehicleID = d.vehicleID WITHIN 20 minutes",
    ),
    (
        "PATTERN SEQ(A a,B b,C c)WHERE(a.x=c.x) WITHIN W.",
        "SEQ(A a, B b, C c) WHERE a.x = c.x WITHIN 20 minutes",
    ),
    (
        "PATTERN AND(A a,KL(B b),C c)WHERE (true ) WITHIN 10 seconds,",
        "AND(A a, KL(B b), C c) WITHIN 10 seconds",
    ),
    (
        "PATTERN AND(A a,B' b,C c)WHERE (true ) WITHIN 10 seconds.",
        "AND(A a, B' b, C c) WITHIN 10 seconds",
    ),
    (
        "PATTERN AND(MSFTStock m, GOOGStock g, INTCStock i)WHERE (m.difference < g.difference)"
        "WITHIN 20 minutes.",
        "AND(MSFTStock m, GOOGStock g, INTCStock i) WHERE m.difference < g.difference "
        "WITHIN 20 minutes",
    ),
    # SASE+ 2008, Figure 1, with an unambiguous strategy in place of skip_till_next_match
    (
        "PATTERN SEQ(Shelf a, ~(Register b), Exit c) WHERE consuming(a, b, c) {\n"
        "a.tag_id = b.tag_id\nand\na.tag_id = c.tag_id\n/* equivalently, [tag_id] */ }\n"
        "WITHIN 12 hours",
        "SEQ(Shelf a, NOT(Register b), Exit c) WHERE a.tag_id = b.tag_id AND a.tag_id = c.tag_id "
        "STRATEGY consuming WITHIN 12 hours",
    ),
    (
        "PATTERN SEQ(Alert a, Shipment+ b[]) WHERE skip_till_any_match(a, b[]) {\n"
        "a.type = 'contaminated' and b[1].from = a.site and b[i].from = b[i-1].to }\n"
        "WITHIN 3 hours",
        "SEQ(Alert a, KL(Shipment b)) WHERE a.type = 'contaminated' AND b[1].from = a.site AND "
        "b[i].from = b[i-1].to WITHIN 3 hours",
    ),
    (
        "PATTERN SEQ(Stock+ a[], Stock b) WHERE consuming(a[], b) {\n[symbol] and "
        "a[1].volume > 1000 and a[i].price > avg(a[..i-1].price) and "
        "b.volume < 80%*a[a.LEN].volume }\nWITHIN 1 hour",
        "SEQ(KL(Stock a), Stock b) WHERE [symbol] AND a[1].volume > 1000 AND "
        "a[i].price > avg(a[..i-1].price) AND b.volume < 0.8 * a[last].volume "
        "STRATEGY consuming WITHIN 1 hours",
    ),
    # ZStream 2009, queries 1, 2 (without RETURN), 4 and 7
    (
        "PATTERN  T1;T2;T3\nWHERE    T1.name = T3.name\nAND      T2.name = 'Google'\n"
        "AND      T1.price > (1 + x%) * T2.price\nAND      T3.price < (1 - y%) * T2.price\n"
        "WITHIN   10 secs",
        "SEQ(T1 T1, T2 T2, T3 T3) WHERE T1.name = T3.name AND T2.name = 'Google' AND "
        "T1.price > (1 + 0.07) * T2.price AND T3.price < (1 - 0.025) * T2.price "
        "WITHIN 10 seconds",
    ),
    (
        "PATTERN  T1;!T2;T3\nWHERE    T1.name = T2.name = T3.name\nAND      T1.price > x\n"
        "AND      T2.price < x\nAND      T3.price > x * (1 + 20%)\nWITHIN   10 secs",
        "SEQ(T1 T1, NOT(T2 T2), T3 T3) WHERE T1.name = T2.name AND T2.name = T3.name AND "
        "T1.price > 7 AND T2.price < 7 AND T3.price > 7 * (1 + 0.2) WITHIN 10 seconds",
    ),
    (
        "PATTERN  IBM; Sun; Oracle\nWHERE    IBM.price > Sun.price\nWITHIN   200 units",
        "SEQ(IBM IBM, Sun Sun, Oracle Oracle) WHERE IBM.price > Sun.price WITHIN 200 units",
    ),
    (
        "PATTERN  IBM;!Sun;Oracle\nWITHIN   200 units",
        "SEQ(IBM IBM, NOT(Sun Sun), Oracle Oracle) WITHIN 200 units",
    ),
    # A-Seq 2014
    (
        "Pattern SEQ(TypeUsername a, TypePassword b, ClickSubmit c) WITHIN 5s",
        "SEQ(TypeUsername a, TypePassword b, ClickSubmit c) WITHIN 5 seconds",
    ),
    ("PATTERN SEQ(E1, !Ei, En) WITHIN 10s", "SEQ(E1 E1, NOT(Ei Ei), En En) WITHIN 10 seconds"),
    # E-Cube 2011, queries 1 and 7, with the keyword of its grammar in front
    (
        "PATTERN SEQ(TX, OK)\nWhere TX.person_id = OK.person_id  // [id]\nWithin 48 h",
        "SEQ(TX TX, OK OK) WHERE TX.person_id = OK.person_id WITHIN 48 hours",
    ),
    (
        "PATTERN SEQ(G,  ¬D, A, T)\nWhere [id] \n\nWithin 48 h",
        "SEQ(G G, NOT(D D), A A, T T) WHERE [id] WITHIN 48 hours",
    ),
]


@pytest.mark.parametrize(("text", "meant"), PRINTED)
def test_patterns_as_printed(text: str, meant: str) -> None:
    values = {"W": "20 minutes", "x": 7, "y": 2.5}
    # ``a.x`` is an attribute, a bare x a parameter.
    words = re.findall(r"\w+", text.replace(".x", ""))
    used = {name: value for name, value in values.items() if name in words}
    assert canonical(text, **used) == f"PATTERN {meant}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "PATTERN op (T1 e1, T2 e2, · · · , Tn en)WHERE (c1,1 ∧ c1,2 ∧ · · · ∧ cn,n−1 ∧ cn,n)"
            "WITHIN W.",
            "column 9: unknown operator 'op'; expected SEQ, AND, OR, NOT, KL or GROUP",
        ),
        (
            "PATTERN SEQ (T1 e1, T2 e2, · · · , Tn en)WHERE (c1,1 ∧ c1,2 ∧ · · · ∧ cn,n)",
            "column 28: unexpected '·'.*write out the parts",
        ),
        ("PATTERN SEQ (T1 e1, T2 e2)WHERE (c1,1 ∧ c1,2)", "column 36: unexpected ','"),
    ],
)
def test_schematic_patterns_stand_for_none(text: str, words: str) -> None:
    with pytest.raises(PatternSyntaxError, match=words):
        parse(text)


@pytest.mark.parametrize(
    ("clause", "meant"),
    [
        ("STRATEGY any", ""),
        ("STRATEGY consuming", " STRATEGY consuming"),
        ("strategy Strict_Contiguity", " STRATEGY strict_contiguity"),
        ("STRATEGY partition_contiguity(x)", " STRATEGY partition_contiguity(x)"),
        ('STRATEGY partition_contiguity ("a b")', ' STRATEGY partition_contiguity("a b")'),
        ("STRATEGY skip_till_any_match", ""),
        ("STRATEGY Next", " STRATEGY next"),
        ("WHERE next(a, b) { a.x < 1 }", " WHERE a.x < 1 STRATEGY next"),
        ("OUTPUT All", ""),
        ("STRATEGY next output NON_overlap", " STRATEGY next OUTPUT non_overlap"),
        ("WHERE any { [x] } OUTPUT non_overlap", " WHERE [x] OUTPUT non_overlap"),
        ("WHERE skip_till_any_match(a, b) { a.x < 1 }", " WHERE a.x < 1"),
        ("WHERE skip_till_any_match { a.x < 1 ; b.x < 2 }", " WHERE a.x < 1 AND b.x < 2"),
        ("WHERE strict_contiguity(b, a) { true }", " STRATEGY strict_contiguity"),
        (
            "WHERE partition_contiguity(a, b) { [x] ∧ a.y < 1; }",
            " WHERE [x] AND a.y < 1 STRATEGY partition_contiguity(x)",
        ),
        ("WHERE a.x < 1 STRATEGY consuming", " WHERE a.x < 1 STRATEGY consuming"),
    ],
)
def test_strategies(clause: str, meant: str) -> None:
    text = canonical(f"PATTERN SEQ(A a, B b) {clause} WITHIN 9 s")
    assert text == f"PATTERN SEQ(A a, B b){meant} WITHIN 9 seconds"


@pytest.mark.parametrize(
    "clause",
    [
        "STRATEGY skip_till_next_match",
        "STRATEGY Skip_Till_Next_Match",
        "WHERE skip_till_next_match(a, b) { a.x < 1 }",
        "WHERE skip_till_next_match { a.x < 1 }",
    ],
)
def test_a_strategy_of_two_meanings_is_refused_with_both(clause: str) -> None:
    with pytest.raises(PatternNameError, match="two meanings") as error:
        parse(f"PATTERN SEQ(A a, B b) {clause} WITHIN 9 s")
    message = str(error.value)
    assert "`consuming`" in message and "`next`" in message
    assert "STRATEGY next or STRATEGY consuming" in message and "line 1" in message


@pytest.mark.parametrize(
    ("within", "parameters", "meant"),
    [
        ("W", {"W": "20 minutes"}, "20 minutes"),
        ("W.", {"W": " 1.5h "}, "1.5 hours"),
        (":W", {"W": "3 units"}, "3 units"),
        ("W minutes", {"W": 20}, "20 minutes"),
        (":W secs;", {"W": 1e3}, "1000 seconds"),
        ("48h", {}, "48 hours"),
        ("10 msecs.", {}, "10 milliseconds"),
    ],
)
def test_windows(within: str, parameters: dict, meant: str) -> None:
    text = canonical(f"PATTERN SEQ(A a) WITHIN {within}", **parameters)
    assert text == f"PATTERN SEQ(A a) WITHIN {meant}"


@pytest.mark.parametrize(
    ("within", "parameters", "words"),
    [
        ("W", {"W": 20}, "the window 20 has no unit; write WITHIN W minutes"),
        ("W", {}, "parameter W has no value"),
        ("W", {"W": "20 minuets"}, "did you mean 'minutes'"),
        ("W", {"W": "minutes"}, "a text must be a number and a unit"),
        ("W", {"W": "1.2.3 s"}, "not the text '1.2.3 s'; a text must be a number and a unit"),
        ("W", {"W": "99999999999 days"}, "longer than"),
        ("W s", {"W": "20 s"}, "a window is a number"),
    ],
)
def test_windows_that_are_none(within: str, parameters: dict, words: str) -> None:
    with pytest.raises(PatternError, match=words) as refused:
        parse(f"PATTERN SEQ(A a) WITHIN {within}", parameters)
    assert refused.value.column == 25


def test_parameters_without_a_colon() -> None:
    pattern = parse("PATTERN SEQ(A a) WHERE a.x > low AND a.s = who WITHIN 1 s", low=-3, who="p")
    assert [str(clause) for clause in pattern.conditions] == ["a.x > -3", "a.s = 'p'"]
    with pytest.raises(PatternNameError, match="parameter low has no value"):
        parse("PATTERN SEQ(A a) WHERE a.x > low WITHIN 1 s")
    with pytest.raises(
        PatternSyntaxError, match="a is a variable; expected a dot and an attribute"
    ):
        parse("PATTERN SEQ(A a) WHERE a.x > a WITHIN 1 s", a=1)
