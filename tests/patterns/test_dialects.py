"""The languages of ZStream and SASE+: queries as printed, and what only the dialects read."""

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import PatternError, PatternOperatorError, PatternSyntaxError
from cepbench.patterns.parse import parse
from tests.naive.matcher import naive_matches

#: Queries of [mei2009], with the parameters that their letters stand for; T2^5 has lost its
#: superscript in Query 3 of our text, and stands as T25 there.
QUERIES = {
    1: (
        """
PATTERN  T1;T2;T3
WHERE    T1.name = T3.name
AND      T2.name = 'Google'
AND      T1.price > (1 + x%) * T2.price
AND      T3.price < (1 - y%) * T2.price
WITHIN   10 secs
RETURN   T1, T2, T3
""",
        {"x": 5, "y": 10},
        "PATTERN SEQ(T1 T1, T2 T2, T3 T3) WHERE T1.name = T3.name AND T2.name = 'Google' AND "
        "T1.price > (1 + 0.05) * T2.price AND T3.price < (1 - 0.1) * T2.price WITHIN 10 seconds "
        "RETURN T1, T2, T3",
    ),
    2: (
        """
PATTERN  T1;!T2;T3
WHERE    T1.name = T2.name = T3.name
AND      T1.price > x
AND      T2.price < x
AND      T3.price > x * (1 + 20%)
WITHIN   10 secs
RETURN   T1, T3
""",
        {"x": 50},
        "PATTERN SEQ(T1 T1, NOT(T2 T2), T3 T3) WHERE T1.name = T2.name AND T2.name = T3.name AND "
        "T1.name = T3.name AND T1.price > 50 AND T2.price < 50 AND T3.price > 50 * (1 + 0.2) "
        "WITHIN 10 seconds RETURN T1, T3",
    ),
    3: (
        """
PATTERN  T1;T2^5;T3
WHERE    T1.name = T3.name
WHERE    T2.name = 'Google'
AND      sum(T2.volume) > v
AND      T3.price > (1 + 20%) * T1.price
WITHIN   10 secs
RETURN   T1, sum(T2.volume), T3
""",
        {"v": 100},
        "PATTERN SEQ(T1 T1, GROUP(T2 T2, 5), T3 T3) WHERE T1.name = T3.name AND T2.name = 'Google' "
        "AND sum(T2[].volume) > 100 AND T3.price > (1 + 0.2) * T1.price WITHIN 10 seconds "
        "RETURN T1, sum(T2[].volume), T3",
    ),
    4: (
        """
PATTERN  IBM; Sun; Oracle
WHERE    IBM.price > Sun.price
WITHIN   200 units
""",
        {},
        "PATTERN SEQ(IBM IBM, Sun Sun, Oracle Oracle) WHERE IBM.price > Sun.price WITHIN 200 units",
    ),
    5: (
        """
PATTERN IBM; Sun; Oracle
WITHIN  200 units
""",
        {},
        "PATTERN SEQ(IBM IBM, Sun Sun, Oracle Oracle) WITHIN 200 units",
    ),
    6: (
        """
PATTERN  IBM; Sun; Oracle; Google
WHERE    Oracle.price > Sun.price
AND      Oracle.price > Google.price
WITHIN  100 units
""",
        {},
        "PATTERN SEQ(IBM IBM, Sun Sun, Oracle Oracle, Google Google) WHERE Oracle.price > Sun.price "
        "AND Oracle.price > Google.price WITHIN 100 units",
    ),
    7: (
        """
PATTERN  IBM;!Sun;Oracle
WITHIN   200 units
""",
        {},
        "PATTERN SEQ(IBM IBM, NOT(Sun Sun), Oracle Oracle) WITHIN 200 units",
    ),
    8: (
        """
PATTERN  Publication; Project; Course
WHERE    same IP address
WITHIN   10 hours
""",
        {},
        'PATTERN SEQ(Publication Publication, Project Project, Course Course) WHERE ["IP address"] '
        "WITHIN 10 hours",
    ),
}


@pytest.mark.parametrize("number", QUERIES)
def test_queries_as_printed(number: int) -> None:
    text, values, canonical = QUERIES[number]
    pattern = parse(text, values, dialect="zstream")
    assert pattern == parse(canonical) == parse(str(pattern))


def test_what_classes_stand_for() -> None:
    text, values, _ = QUERIES[1]
    some = parse(text, values, dialect="zstream", classes="ANY")
    assert str(some.structure) == "SEQ(ANY T1, ANY T2, ANY T3)"
    assert parse(str(some)) == some
    mapped = parse(text, values, dialect="zstream", classes={"T1": "STOCK", "T3": "Google tick"})
    assert str(mapped.structure) == 'SEQ(STOCK T1, T2 T2, "Google tick" T3)'
    twice = parse("PATTERN T;T;T x WITHIN 1 s", dialect="zstream", classes={"T": "S"})
    assert str(twice.structure) == "SEQ(S T, S T2, S x)"


@pytest.mark.parametrize(
    ("structure", "canonical"),
    [
        ("A;B+;C", "SEQ(A A, GROUP(B B, +), C C)"),
        ("A;B*;C", "SEQ(A A, GROUP(B B, *), C C)"),
        ("A;B^2;C", "SEQ(A A, GROUP(B B, 2), C C)"),
        ("A;!(B|C);D", "SEQ(A A, NOT(B B), NOT(C C), D D)"),
        ("A;(!B&!C);D", "SEQ(A A, AND(NOT(B B), NOT(C C)), D D)"),
        ("(A;B)|(C&D)", "OR(SEQ(A A, B B), AND(C C, D D))"),
    ],
)
def test_operators(structure: str, canonical: str) -> None:
    pattern = parse(f"PATTERN {structure} WITHIN 1 s", dialect="zstream")
    assert str(pattern.structure) == canonical


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("PATTERN A;B^0;C WITHIN 1 s", PatternOperatorError, "a group of 0 events"),
        ("PATTERN A|!B WITHIN 1 s", PatternOperatorError, "has only negated items"),
        ("PATTERN !A* ; B WITHIN 1 s", PatternOperatorError, "NOT of a"),
        ("PATTERN A+;B+;C WITHIN 1 s", PatternOperatorError, "side by side"),
        ("PATTERN A;B WHERE other name WITHIN 1 s", PatternSyntaxError, "same and the name"),
        ("PATTERN A;B WHERE same x WITHIN 1 s RETURN q", PatternError, "unknown variable 'q'"),
    ],
)
def test_what_the_dialect_refuses(text: str, error: type[PatternError], words: str) -> None:
    with pytest.raises(error, match=words):
        parse(text, dialect="zstream")


def test_arguments() -> None:
    text = "PATTERN A;B WITHIN 1 s"
    with pytest.raises(
        PatternError,
        match=r"one of zstream, sase\+, a-seq, e-cube, match_recognize, eql, sigma, not .* did you mean 'zstream'",
    ):
        parse(text, dialect="z-stream")
    with pytest.raises(PatternError, match='give dialect="zstream" too'):
        parse(text, classes="ANY")
    for wrong in ("ALL", {"A": 1}, 5):
        with pytest.raises(PatternError, match='classes is "ANY", or a mapping'):
            parse(text, dialect="zstream", classes=wrong)
    for plain in ("PATTERN A;B*;C WITHIN 1 s", "PATTERN A;B WHERE same x WITHIN 1 s"):
        with pytest.raises(PatternError):
            parse(plain)
    assert str(parse("PATTERN A;B+;C WITHIN 1 s").structure) == "SEQ(A A, KL(B B), C C)"


@pytest.mark.kernel
@pytest.mark.parametrize("number", [2, 3])
def test_queries_over_one_stream_of_stocks(number: int) -> None:
    """Classes are conditions over one stream, so items are of any type."""
    events = pd.DataFrame(
        {
            "type": "STOCK",
            "time": range(12),
            "name": [
                "IBM",
                "Google",
                *["Google"] * 4,
                "IBM",
                "Google",
                "Sun",
                "IBM",
                "Google",
                "Sun",
            ],
            "price": [60.0, 40, 55, 61, 49, 70, 80, 90, 10, 65, 95, 65],
            "volume": range(10, 22),
        }
    )
    text, values, _ = QUERIES[number]
    text = text.replace("10 secs", "11 units").partition("RETURN")[0]
    values = values if number == 2 else {"v": 50}
    pattern = parse(text, values, dialect="zstream", classes="ANY")
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    plan = cep.plan(pattern, cep.measure_statistics(pattern, stream))
    expected = naive_matches(pattern, events)
    assert expected
    for evaluator in ("tree", "lazy-nfa", "tree-instances"):
        found = cep.evaluate(pattern, stream, plan, evaluator=evaluator).matches
        assert set(found.itertuples(index=False, name=None)) == expected


#: Figure 1 of [agrawal2008].
SASE = {
    1: (
        """
PATTERN SEQ(Shelf a, ~(Register b), Exit c)
WHERE skip_till_next_match(a, b, c) {
          a.tag_id = b.tag_id
  and     a.tag_id = c.tag_id
  /* equivalently, [tag_id] */ }
WITHIN  12 hours
""",
        "SEQ(Shelf a, NOT(Register b), Exit c) WHERE a.tag_id = b.tag_id AND a.tag_id = c.tag_id "
        "STRATEGY next WITHIN 12 hours",
    ),
    2: (
        """
PATTERN SEQ(Alert a, Shipment+ b[])
WHERE skip_till_any_match(a, b[]) {
          a.type = 'contaminated'
  and     b[1].from = a.site
  and     b[i].from = b[i-1].to }
WITHIN  3 hours
""",
        "SEQ(Alert a, KL(Shipment b)) WHERE a.type = 'contaminated' AND b[1].from = a.site AND "
        "b[i].from = b[i-1].to WITHIN 3 hours",
    ),
    3: (
        """
PATTERN SEQ(Stock+ a[], Stock b)
WHERE skip_till_next_match(a[], b) {
          [symbol]
  and     a[1].volume > 1000
  and     a[i].price > avg(a[..i-1].price)
  and     b.volume < 80%*a[a.LEN].volume }
WITHIN  1 hour
""",
        "SEQ(KL(Stock a), Stock b) WHERE [symbol] AND a[1].volume > 1000 AND "
        "a[i].price > avg(a[..i-1].price) AND b.volume < 0.8 * a[last].volume "
        "STRATEGY next WITHIN 1 hours",
    ),
    "prototype": (
        """
PATTERN SEQ(stock+ a[ ], stock b)
WHERE partition-contiguity
AND [symbol]
AND a[1].price % 500 = 0
AND a[i].price > a[i-1].price
AND b.volume < 150
WITHIN 500
""",
        "SEQ(KL(stock a), stock b) WHERE [symbol] AND a[1].price % 500 = 0 AND "
        "a[i].price > a[i-1].price AND b.volume < 150 STRATEGY partition_contiguity(symbol) "
        "WITHIN 500 units",
    ),
}


@pytest.mark.parametrize("number", SASE)
def test_queries_of_sase_as_printed(number: int | str) -> None:
    text, canonical = SASE[number]
    pattern = parse(text, dialect="sase+")
    assert str(pattern) == f"PATTERN {canonical}"
    assert parse(str(pattern)) == pattern


@pytest.mark.parametrize(
    ("strategy", "selected"),
    [
        ("skip_till_next_match", "next"),
        ("skip-till-next-match", "next"),
        ("partition-contiguity", "partition_contiguity(symbol)"),
        ("Partition_Contiguity", "partition_contiguity(symbol)"),
        ("strict_contiguity", "strict_contiguity"),
    ],
)
@pytest.mark.parametrize(
    ("predicate", "meant"),
    [
        ("true", ""),
        ("a[i].price > a[i-1].price", "a[i].price > a[i-1].price AND "),
        ("a[i].price > max(a[i-1].price)", "a[i].price > max(a[..i-1].price) AND "),
        ("a[i].price > avg(a[..i-1].price)", "a[i].price > avg(a[..i-1].price) AND "),
        ("a[i].price > 100", "a[2..].price > 100 AND "),
        ("a[].price > a[i].volume", "a[i].price > a[2..].volume AND "),
        ("a.price > 100", "a.price > 100 AND "),
    ],
)
def test_template_of_the_experiments(
    strategy: str, selected: str, predicate: str, meant: str
) -> None:
    text = (
        f"PATTERN(STOCK+ a[ ], STOCK b) where {strategy} {{[symbol] ∧ a[1].price %500==0 ∧ "
        f"{predicate} ∧ b.volume <150}} within W"
    )
    pattern = parse(text, dialect="sase+", W=1000)
    assert str(pattern) == (
        f"PATTERN SEQ(KL(STOCK a), STOCK b) WHERE [symbol] AND a[1].price % 500 = 0 AND {meant}"
        f"b.volume < 150 STRATEGY {selected} WITHIN 1000 units"
    )


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        ("(A a, B b) STRATEGY skip-till-next-match OUTPUT non_overlap WITHIN 5 units", ""),
        ("(A a, (B b, C c) | D d) WHERE skip_till_any_match WITHIN 5", ""),
        ("(A a, B b) WHERE consuming(a, b) { a.x = 1 } WITHIN W", ""),
        ("(A a, B b) WHERE skip-till-last-match WITHIN 5", "expected a comparison"),
        ("(A a, B b) WHERE partition-contiguity AND a.x = 1 WITHIN 5", "found none"),
        ("(A a, B b) WHERE strict-contiguity(a) { a.x = 1 } WITHIN 5", "b is not listed"),
        ("(A a, B+ b) WHERE avg(b[2..].x) > 1 WITHIN 5", "all events but the first"),
    ],
)
def test_what_else_is_read_and_refused(rest: str, words: str) -> None:
    values = {"W": "9 min"} if "WITHIN W" in rest else {}
    if words:
        with pytest.raises(PatternError, match=words):
            parse(f"PATTERN {rest}", values, dialect="sase+")
    else:
        pattern = parse(f"PATTERN {rest}", values, dialect="sase+")
        assert parse(str(pattern)) == pattern
    with pytest.raises(PatternError):
        parse(f"PATTERN {rest}", values)
