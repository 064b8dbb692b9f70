"""Pattern texts and the patterns they stand for."""

import re
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cepbench.errors import (
    PatternError,
    PatternNameError,
    PatternSyntaxError,
    UnsatisfiablePatternError,
)
from cepbench.patterns.model import (
    Arithmetic,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Negative,
    Operator,
    Pattern,
    Structure,
    Variable,
    Window,
)
from cepbench.patterns.parse import parse

A, B, C = Variable("a", "A"), Variable("b", "B"), Variable("c", "C")
AX, BX, CX = Attribute("a", "x"), Attribute("b", "x"), Attribute("c", "x")


def conditions(where: str, **parameters: Any) -> tuple[Clause, ...]:
    text = f"PATTERN SEQ(A a, B b, C c) WHERE {where} WITHIN 1 minutes"
    return parse(text, parameters).conditions


def clause(*comparisons: tuple[str, Any, Any]) -> Clause:
    return Clause(tuple(Comparison(*comparison) for comparison in comparisons))


def test_the_example_of_the_public_surface() -> None:
    pattern = parse(
        "PATTERN SEQ(MSFT a, GOOG b, INTC c) WHERE a.difference < b.difference WITHIN 20 minutes"
    )
    assert pattern == Pattern(
        Structure(
            Operator.SEQ, (Variable("a", "MSFT"), Variable("b", "GOOG"), Variable("c", "INTC"))
        ),
        (clause(("<", Attribute("a", "difference"), Attribute("b", "difference"))),),
        Window(20, "minutes"),
    )
    assert pattern.window.length == 20 * 60 * 10**9


def test_conjunction_without_conditions() -> None:
    pattern = parse("PATTERN AND(A a, B b) WITHIN 4 units")
    assert pattern.operator is Operator.AND
    assert pattern.conditions == ()
    assert (pattern.window.length, pattern.window.is_datetime) == (4, False)


def test_nested_operators() -> None:
    pattern = parse("PATTERN SEQ(A a, AND(B b, SEQ(C c, A d))) WITHIN 4 units")
    inner = Structure(Operator.SEQ, (C, Variable("d", "A")))
    assert pattern.structure == Structure(Operator.SEQ, (A, Structure(Operator.AND, (B, inner))))


def test_keywords_in_any_case_over_several_lines_with_comments() -> None:
    text = """
        pattern Seq(A a,  -- the first
                    B b)  # the second
        Where a.x < 1 aNd nOT b.x < 2 oR b.x = 3
        within 2 Hours
    """
    written = "PATTERN SEQ(A a, B b) WHERE (a.x < 1 AND NOT b.x < 2) OR b.x = 3 WITHIN 2 hours"
    assert parse(text) == parse(written)


def test_names_in_double_quotes() -> None:
    text = 'PATTERN SEQ("BRK.B" a, "say ""hi""" "the b", "WITHIN" c) WHERE a."bid price" < "the b".'
    pattern = parse(text + '"and" WITHIN 2 units')
    assert [v.type for v in pattern.variables] == ["BRK.B", 'say "hi"', "WITHIN"]
    assert pattern.names == ("a", "the b", "c")
    assert pattern.conditions == (
        clause(("<", Attribute("a", "bid price"), Attribute("the b", "and"))),
    )
    assert parse(str(pattern)) == pattern


def test_words_that_only_begin_like_keywords_are_names() -> None:
    pattern = parse("PATTERN SEQ(ORCL android, ANDE note, SEQQ within_1) WITHIN 2 units")
    assert pattern.names == ("android", "note", "within_1")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        *((symbol, symbol) for symbol in ("<", "<=", ">", ">=", "=", "!=")),
        ("==", "="),
        ("<>", "!="),
    ],
)
def test_comparison_operators(written: str, meant: str) -> None:
    assert conditions(f"a.x {written} b.x") == (clause((meant, AX, BX)),)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5", 5),
        ("0.25", 0.25),
        (".5", 0.5),
        ("5.", 5),
        ("1e3", 1000),
        ("2.5E-3", 0.0025),
        ("5%", 0.05),
        ("0.1 %", 0.001),
        ("7e1%", 0.7),
        ("7%", 0.07),
        ("0e99999999999999999999%", 0),
        ("-5", -5),
        ("-5%", -0.05),
        ("'text'", "text"),
        ("'it''s -- no # comment'", "it's -- no # comment"),
        ("''", ""),
    ],
)
def test_constants(written: str, value: float | str) -> None:
    assert conditions(f"a.x = {written}") == (clause(("=", AX, Constant(value))),)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a.x + b.x * 2", Arithmetic("+", AX, Arithmetic("*", BX, Constant(2)))),
        ("(a.x + b.x) * 2", Arithmetic("*", Arithmetic("+", AX, BX), Constant(2))),
        ("a.x - b.x - 2", Arithmetic("-", Arithmetic("-", AX, BX), Constant(2))),
        ("a.x - (b.x - 2)", Arithmetic("-", AX, Arithmetic("-", BX, Constant(2)))),
        ("a.x / b.x / 2", Arithmetic("/", Arithmetic("/", AX, BX), Constant(2))),
        ("-a.x * b.x", Arithmetic("*", Negative(AX), BX)),
        ("-(a.x * b.x)", Negative(Arithmetic("*", AX, BX))),
        ("a.x--5", Arithmetic("-", AX, Constant(-5))),
        ("- -a.x", Negative(Negative(AX))),
        ("-(5) + a.x", Arithmetic("+", Negative(Constant(5)), AX)),
        ("((a.x))", AX),
    ],
)
def test_arithmetic_binds_as_in_mathematics(written: str, meant: object) -> None:
    assert conditions(f"{written} < 1") == (clause(("<", meant, Constant(1))),)
    assert conditions(f"1 < {written}") == (clause(("<", Constant(1), meant)),)


def test_brackets_around_expressions_and_around_conditions() -> None:
    assert conditions("((a.x + 1) < (b.x))") == conditions("a.x + 1 < b.x")
    assert conditions("(((a.x) < 1) AND (b.x < 2))") == conditions("a.x < 1 AND b.x < 2")


def test_chained_comparisons() -> None:
    assert conditions("a.x = b.x = c.x") == (clause(("=", AX, BX)), clause(("=", BX, CX)))
    assert conditions("1 < a.x <= b.x") == (
        clause(("<", Constant(1), AX)),
        clause(("<=", AX, BX)),
    )


def test_parameters_from_a_mapping_and_from_keywords() -> None:
    text = "PATTERN SEQ(A a) WHERE a.x < :most AND a.name = :who AND a.y > -:most WITHIN :long s"
    pattern = parse(text, {"most": 3, "who": "it's"}, long=1.5)
    assert str(pattern) == (
        "PATTERN SEQ(A a) WHERE a.x < 3 AND a.name = 'it''s' AND a.y > -3 WITHIN 1.5 seconds"
    )


def test_a_parameter_of_numpy_type() -> None:
    import numpy as np

    assert conditions("a.x < :p", p=np.int64(3)) == conditions("a.x < 3")
    assert conditions("a.x < :p", p=np.float32(0.5)) == conditions("a.x < 0.5")


def test_parameters_may_be_called_like_the_arguments() -> None:
    pattern = parse("PATTERN SEQ(A a) WHERE a.x < :text WITHIN :parameters s", text=1, parameters=2)
    assert pattern.window == Window(2, "seconds")


@pytest.mark.parametrize(
    ("parameters", "named", "message"),
    [
        ({}, {}, "parameter :limit has no value; give it as"),
        ({"limits": 1}, {}, "has no value; .*did you mean 'limits'"),
        ({"limit": 1, "more": 2}, {}, "parameter 'more' is given but"),
        ({"limit": 1}, {"limit": 1}, "'limit' is given in the mapping and as a keyword"),
    ],
)
def test_parameters_must_fit_the_text(parameters: dict, named: dict, message: str) -> None:
    with pytest.raises(PatternNameError, match=message):
        parse("PATTERN SEQ(A a) WHERE a.x < :limit WITHIN 1 s", parameters, **named)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), [1], 1j])
def test_parameters_are_finite_numbers_or_texts(value: object) -> None:
    with pytest.raises(PatternError, match="must be a finite number or a text"):
        conditions("a.x < :p", p=value)


@pytest.mark.parametrize(
    ("unit", "nanoseconds"),
    [
        ("ms", 10**6),
        ("millisecond", 10**6),
        ("s", 10**9),
        ("sec", 10**9),
        ("seconds", 10**9),
        ("m", 60 * 10**9),
        ("min", 60 * 10**9),
        ("Minute", 60 * 10**9),
        ("h", 3600 * 10**9),
        ("hrs", 3600 * 10**9),
        ("HOURS", 3600 * 10**9),
        ("d", 86400 * 10**9),
        ("day", 86400 * 10**9),
    ],
)
def test_time_units(unit: str, nanoseconds: int) -> None:
    assert parse(f"PATTERN SEQ(A a) WITHIN 2 {unit}").window.length == 2 * nanoseconds
    assert parse(f"PATTERN SEQ(A a) WITHIN 0.5{unit}").window.length == nanoseconds // 2


def test_a_conjunct_of_three_variables_may_follow_from_another() -> None:
    assert conditions("(a.x < b.x OR b.x < c.x) AND a.x < b.x") == (clause(("<", AX, BX)),)


def test_a_condition_that_is_always_true_is_left_out() -> None:
    assert conditions("1 < 2 AND a.x < 1") == conditions("a.x < 1")
    assert conditions("a.x < 1 OR 'x' = 'x'") == ()


@pytest.mark.parametrize(
    ("within", "parameters"),
    [(":w days", {"w": -1}), ("1e9 days", {}), (":w s", {"w": "20 minutes"}), ("1e999 s", {})],
)
def test_windows_that_make_no_sense(within: str, parameters: dict) -> None:
    with pytest.raises(PatternError, match="line 1, column 25"):
        parse(f"PATTERN SEQ(A a) WITHIN {within}", parameters)


@pytest.mark.parametrize(
    ("where", "condition"),
    [
        ("(" * 3000 + "a.x" + ")" * 3000 + " < 1", "a.x < 1"),
        ("(" * 3000 + "a.x < 1" + ")" * 3000, "a.x < 1"),
        ("NOT " * 3000 + "a.x < 1", "a.x < 1"),
        ("NOT (" * 3001 + "a.x < 1" + ")" * 3001, "a.x >= 1"),
    ],
)
def test_brackets_and_double_negations_are_no_depth(where: str, condition: str) -> None:
    assert [str(found) for found in conditions(where)] == [condition]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "not from NoneType; pass a text such as 'PATTERN SEQ"),
        (b"PATTERN A a WITHIN 1 s", "not from bytes; decode it"),
        (Path("pattern.txt"), "Path; read the file"),
        (pd.DataFrame({"type": ["A"]}), "not from DataFrame; for a stream from a table"),
        (parse("PATTERN A a WITHIN 1 s"), "not from Pattern; it is already parsed"),
        (5, "not from int"),
        (["PATTERN A a WITHIN 1 s"], "not from list"),
    ],
)
def test_only_texts_are_parsed(given: Any, words: str) -> None:
    with pytest.raises(PatternError, match=re.escape(words)):
        parse(given)


@pytest.mark.parametrize("parameters", [5, ["W"], "W", {1: 2}, {None: 2, "W": 3}])
def test_parameters_are_a_mapping_of_names(parameters: Any) -> None:
    with pytest.raises(PatternError, match="are a mapping from names to values"):
        parse("PATTERN A a WITHIN 1 s", parameters)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (10**400, ":low is inf; it must be a finite number"),
        (10**5000, ":low is inf; it must be a finite number"),
        (Fraction(10**400), ":low is inf; it must be a finite number"),
        (float("nan"), ":low is nan"),
        (Decimal("sNaN"), ":low is nan"),
        (None, ":low is a NoneType"),
        (pd.DataFrame({"low": range(1000)}), ":low is a DataFrame"),
        ("\ud800", "half a surrogate pair"),
    ],
    ids=range(8),
)
def test_values_that_no_parameter_can_have(value: Any, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        conditions("a.x = :low", low=value)


@pytest.mark.parametrize(
    "amount", [10**400, 10**5000, 1e300, float("nan"), -1, None, "5", True], ids=range(8)
)
def test_windows_by_hand(amount: Any) -> None:
    with pytest.raises(PatternError, match="WITHIN"):
        Window(amount, "days")


@pytest.mark.parametrize(
    ("within", "length", "canonical"),
    [
        ("< 20 min", 20 * 60 * 10**9 - 1, "< 20 minutes"),
        ("<1 unit", 0, "< 1 units"),
        ("< 8.2 s", 8_200_000_000 - 1, "< 8.2 seconds"),
        ("< 0.5 us", 499, "< 0.5 microseconds"),
    ],
)
def test_half_open_windows(within: str, length: int, canonical: str) -> None:
    window = parse(f"PATTERN A a WITHIN {within}").window
    assert (window.length, str(window)) == (length, canonical)


def test_half_open_windows_by_parameters() -> None:
    closed, half_open = (
        parse(f"PATTERN A a WITHIN {sign} W", W="3 s").window for sign in ("", "<")
    )
    assert closed == Window(3, "seconds")
    assert half_open == Window(3, "seconds", exclusive=True) == parse(
        "PATTERN A a WITHIN < W s", W=3
    ).window  # fmt: skip


def test_empty_half_open_windows() -> None:
    with pytest.raises(PatternError, match="WITHIN < 0 seconds is empty") as no:
        parse("PATTERN A a WITHIN < 0 s")
    assert no.value.offending == "0"
    # Two timestamps need a difference of a tick.
    with pytest.raises(
        UnsatisfiablePatternError, match="do not fit into WITHIN < 1 units; widen the window to 2 "
    ):
        parse("PATTERN SEQ(A a, B b) WITHIN < 1 units")
    with pytest.raises(PatternSyntaxError, match="WITHIN <=; a window is") as unknown:
        parse("PATTERN A a WITHIN <= 5 s")
    assert unknown.value.offending == "<="


def test_the_largest_window_can_be_written() -> None:
    assert parse("PATTERN A a WITHIN 26687 days").window.length < 2**61
    assert parse(f"PATTERN A a WITHIN {2**61} units").window.length == 2**61


def test_constants_by_hand_are_in_the_range_of_a_float() -> None:
    with pytest.raises(PatternError, match="a number beyond the range of a float"):
        Constant(10**400)


def test_importing_the_parser_does_not_import_the_grammar_library() -> None:
    code = "import sys, cepbench.patterns.parse; sys.exit('lark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_tables_of_the_grammar_are_kept_and_built_anew_where_they_are_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    text = "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 units"
    code = "import sys; from cepbench.patterns.parse import parse; print(repr(parse(sys.argv[1])))"

    def read_by_a_new_process() -> str:
        return subprocess.check_output([sys.executable, "-c", code, text], text=True).strip()

    pattern = repr(parse(text))
    assert read_by_a_new_process() == pattern
    (kept,) = (tmp_path / "cepbench").glob("*.tables")
    whole = kept.read_bytes()
    for damaged in (b"", b"no tables", whole[: len(whole) // 2]):
        kept.write_bytes(damaged)
        assert read_by_a_new_process() == pattern
        assert len(kept.read_bytes()) > len(whole) // 2  # whole again, in whatever order
    assert read_by_a_new_process() == pattern
