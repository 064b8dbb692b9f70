"""Texts of any length are read in time in proportion to them, or refused with the limit.

The forms of growth are those of the benchmark. Work is counted in lines of Python, which no other
program on the machine can change.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from cepbench.errors import (
    CepbenchError,
    PatternError,
    PatternSyntaxError,
    UnsatisfiablePatternError,
    UnsupportedPatternError,
)
from cepbench.patterns import contradictions
from cepbench.patterns.contradictions import check_satisfiable
from cepbench.patterns.expressions import MAXIMUM_DEPTH, Arithmetic, Attribute, Constant, Negative
from cepbench.patterns.model import Operator, Structure, Variable
from cepbench.patterns.normal_form import MAXIMUM_CONJUNCTS
from cepbench.patterns.parse import parse, reread
from cepbench.patterns.structure import MAXIMUM_BRANCH_ITEMS, MAXIMUM_BRANCHES

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "bench_parsing.py"
_spec = importlib.util.spec_from_file_location("bench_parsing", SCRIPT)
assert _spec is not None and _spec.loader is not None
bench = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bench)

FORMS = pytest.mark.parametrize("form", bench.FORMS)

#: What each form that is refused at 500 pieces is refused with.
REFUSED = {
    "a number of n digits": (PatternError, "more digits than a float holds"),
    "OR of n items": (UnsupportedPatternError, "the limit is 256"),
    "a | b | …": (UnsupportedPatternError, "the limit is 256"),
    "SEQ(AND(SEQ(… nested n deep": (PatternSyntaxError, "more than 60 deep; write it flatter"),
    "NOT NOT … A": (PatternError, "NOT of NOT"),
    "KL(KL(… A": (PatternError, "write KL or [+] once"),
    "n times (x AND y) under OR": (UnsupportedPatternError, "use fewer ANDs inside ORs"),
    "n times (x OR y) under NOT": (UnsupportedPatternError, "use fewer ANDs inside ORs"),
    "(… OR (… AND (… nested n deep": (PatternSyntaxError, "more than 60 deep; write it flatter"),
    "n brackets, none closed": (PatternSyntaxError, "a closing bracket"),
    "a.x + a.y + …": (PatternSyntaxError, "more than 60 deep; write it flatter"),
    "- - … a.x": (PatternSyntaxError, "more than 60 deep; write it flatter"),
    "n conjuncts and a syntax error": (PatternSyntaxError, "expected a condition"),
    "n conjuncts, the last one impossible": (UnsatisfiablePatternError, "a.x0 < b.x and a.x0 > "),
    "a circle of n conjuncts": (UnsatisfiablePatternError, "and others contradict each other"),
}


#: Forms that are tried with more pieces than Python has frames.
MORE = (
    "SEQ of n variables",
    "n types without names",
    "n disjuncts of texts, as IN",
    "n brackets around a condition",
)


#: So many pieces at least of these, and 50 of others.
LEAST = {
    "200 branches of n items in all": 200,
    "n conjuncts, one decides the next": 100,  # fewer do not reach the limit
    "100 times IN over n / 100 texts": 100,
}


def lines_run(text: str) -> int:
    """How many lines of Python are run to parse a text."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        parse(text)
    except CepbenchError:
        pass
    finally:
        sys.settrace(before)
    return count


@FORMS
def test_the_work_grows_as_the_text(form: str) -> None:
    parse("PATTERN A a WHERE a.x < 1 WITHIN 1 s")  # loads the grammar
    few, many = (lines_run(bench.FORMS[form](n * LEAST.get(form, 50))) for n in (1, 3))
    assert many < 3.1 * few


@FORMS
def test_many_pieces_are_read_and_written_or_refused_with_the_limit(form: str) -> None:
    text = bench.FORMS[form](3_000 if form in MORE else 500)
    if form in REFUSED:
        kind, words = REFUSED[form]
        with pytest.raises(kind, match=words) as refused:
            parse(text)
        assert len(str(refused.value)) < 1000
        return
    pattern = parse(text)
    assert reread(str(pattern)) == pattern


def test_the_benchmark_prints_and_writes_a_row_for_each_form(tmp_path, capsys) -> None:
    import pandas as pd

    forms = ["n conjuncts", "OR of n items"]
    rows = tmp_path / "rows.parquet"
    bench.main(["--forms", *forms, "--sizes", "300", "600", "--out", str(rows)])
    shown = capsys.readouterr().out
    assert all(len(re.findall(f"^{form} ", shown, re.MULTILINE)) == 1 for form in forms)
    assert "UnsupportedPatternError" in shown and "4 rows in" in shown
    written = pd.read_parquet(rows)
    assert list(written["n"]) == [300, 600] * 2
    assert written["read_back"].notna().tolist() == [True, True, False, False]


def test_a_fitted_exponent_is_that_of_the_seconds() -> None:
    rows = [{"n": n, "seconds": 1e-9 * n**1.5} for n in (1_000, 2_000, 5_000)]
    assert bench.exponent(rows, "seconds") == pytest.approx(1.5)
    assert bench.exponent(rows[:1], "seconds") is None


# -- limits -----------------------------------------------------------------------------------------


def test_the_limit_of_branches_and_of_their_items() -> None:
    items = ", ".join(f"B b{n}" for n in range(MAXIMUM_BRANCHES))
    parse(f"PATTERN SEQ(A a, OR({items})) WITHIN 1 s")
    shared = ", ".join(f"A a{n}" for n in range(MAXIMUM_BRANCH_ITEMS // MAXIMUM_BRANCHES))
    with pytest.raises(UnsupportedPatternError, match=f"the limit is {MAXIMUM_BRANCH_ITEMS}"):
        parse(f"PATTERN SEQ({shared}, OR({items})) WITHIN 1 s")
    pairs = ", ".join(f"OR(A a{n}, B b{n})" for n in range(5_000))
    with pytest.raises(UnsupportedPatternError, match="more than 1000000000 branches without OR"):
        parse(f"PATTERN SEQ({pairs}) WITHIN 1 s")


def test_equalities_of_many_attributes_over_many_variables() -> None:
    items, names = (", ".join(f"{x}{n}" for n in range(400)) for x in ("A a", "x"))
    with pytest.raises(UnsupportedPatternError, match=r"400 attributes .* 159600 comparisons"):
        parse(f"PATTERN SEQ({items}) WHERE [{names}] WITHIN 1 s")


def test_distribution_takes_what_is_alike_together() -> None:
    """No blow-up where the alternatives have a part in common, or are the same."""
    where = " OR ".join(f"(a.x = 1 AND a.y = {n})" for n in range(2_000))
    pattern = parse(f"PATTERN A a WHERE {where} WITHIN 1 s")
    assert [len(clause.comparisons) for clause in pattern.conditions] == [1, 2_000]
    where = " OR ".join(["(a.x = 1 AND a.y = 2)"] * 2_000)
    assert len(parse(f"PATTERN A a WHERE {where} WITHIN 1 s").conditions) == 2


def test_ten_pairs_are_as_many_conjuncts_as_can_be() -> None:
    where = " OR ".join(f"(a.x = {n} AND b.x = {n})" for n in range(10))
    pattern = parse(f"PATTERN AND(A a, B b) WHERE {where} WITHIN 1 s")
    assert len(pattern.conditions) == MAXIMUM_CONJUNCTS
    assert str(pattern.conditions[0]) == " OR ".join(f"a.x = {n}" for n in range(10))
    assert reread(str(pattern)) == pattern


@pytest.mark.parametrize("make", [Negative, lambda part: Arithmetic("+", part, Constant(1))])
def test_expressions_by_hand_have_the_depth_of_those_read(make: Any) -> None:
    expression: Any = Attribute("a", "x")
    for _ in range(MAXIMUM_DEPTH):
        expression = make(expression)
    text = f"PATTERN A a WHERE {expression} < 1 WITHIN 1 s"
    assert parse(text).conditions[0].comparisons[0].left == expression
    with pytest.raises(UnsupportedPatternError, match="more than 60 deep"):
        make(expression)
    with pytest.raises(PatternSyntaxError, match="more than 60 deep"):
        parse(text.replace("a.x", "(a.x + 1)"))


@pytest.mark.parametrize("operator", Operator)
def test_structures_by_hand_have_the_depth_of_those_read(operator: Operator) -> None:
    item: Variable | Structure = Variable("a", "A")
    for _ in range(MAXIMUM_DEPTH):
        item = Structure(operator, (item,))
    text = f"PATTERN {item} WITHIN 1 s"
    assert parse(text).structure == item
    with pytest.raises(UnsupportedPatternError, match="more than 60 deep"):
        Structure(operator, (item,))
    with pytest.raises(PatternSyntaxError, match="more than 60 deep"):
        parse(text.replace("A a", "AND(A a)"))


# -- contradictions among many ---------------------------------------------------------------------


def test_a_branch_is_looked_at_until_one_can_match(monkeypatch) -> None:
    looked_at = []
    find = contradictions._contradiction
    monkeypatch.setattr(
        contradictions, "_contradiction", lambda b: looked_at.append(b.structure) or find(b)
    )
    items = ", ".join(f"B b{n}" for n in range(200))
    pattern = parse(f"PATTERN SEQ(A a, OR({items})) WHERE a.x < 1 WITHIN 1 s")
    assert len(looked_at) == 1
    check_satisfiable(pattern)
    # What contradicts itself in one branch is not worked out again in the others.
    del looked_at[:]
    with pytest.raises(UnsatisfiablePatternError, match=r"a\.x < 1 and a\.x > 1 contradict"):
        parse(f"PATTERN SEQ(A a, OR({items})) WHERE a.x < 1 AND a.x > 1 WITHIN 1 s")
    assert len(looked_at) == 1


@pytest.mark.parametrize(
    ("where", "named"),
    [
        (
            "a.s = 't' AND (" + " OR ".join(f"a.s = 't{n}'" for n in range(50)) + ")",
            "the conditions a.s = 't' and (a.s = 't0' OR ",
        ),
        # The equality of two texts follows from steps that are no equalities.
        ("a.s = 'p' AND b.s = 'q' AND a.s <= b.s AND b.s <= a.s", "a.s = 'p', b.s = 'q', a.s <="),
        ("a.x != b.x AND a.x <= b.x AND a.x >= b.x", "a.x != b.x, a.x <= b.x and a.x >= b.x"),
        # A step over a text, and a bound over several steps.
        (
            "a.s <= b.s AND b.s = 't' AND b.s <= c.s AND (c.s < a.s OR a.y < a.y)",
            "a.s <= b.s, b.s <= c.s and (c.s < a.s OR",
        ),
        (
            "a.x < b.x AND b.x <= c.x AND c.x < 3 AND (a.x >= 3 OR a.y < a.y)",
            "a.x < b.x, b.x <= c.x, c.x < 3 and (a.x >= 3 OR a.y < a.y) contradict",
        ),
        ("a.x < 3 AND b.x > 3 AND (a.x >= b.x OR a.x = b.x)", "a.x < 3, b.x > 3 and (a.x >="),
        ("a.x >= 1 AND (a.x < b.x OR a.x < 0) AND b.x < 1", "a.x >= 1, (a.x < b.x OR a.x < 0) "),
    ],
)
def test_alternatives_that_contradict_what_must_hold(where: str, named: str) -> None:
    with pytest.raises(UnsatisfiablePatternError, match=re.escape(named)):
        parse(f"PATTERN AND(A a, B b, C c) WHERE {where} WITHIN 1 s")


@pytest.mark.parametrize(
    "where",
    [
        "a.x < b.x AND b.x <= c.x AND c.x < 3 AND (a.x >= 2 OR a.y < a.y)",
        "a.x <= 3 AND b.x >= 3 AND (a.x = b.x OR a.x > b.x)",
        "a.x <= b.x AND (b.x <= a.x OR a.y < a.y)",
        "a.s <= b.s AND b.s = 't' AND b.s <= c.s AND (c.s <= a.s OR a.y < a.y)",
    ],
)
def test_alternatives_that_can_hold(where: str) -> None:
    parse(f"PATTERN AND(A a, B b, C c) WHERE {where} WITHIN 1 s")


def test_alternatives_that_decide_each_other_one_by_one_are_found_out() -> None:
    n = 90
    where = " AND ".join(f"(a.x{i} < 0 OR a.x{i + 1} > {i + 1})" for i in reversed(range(n)))
    parse(f"PATTERN A a WHERE a.x0 > 0 AND {where} WITHIN 1 s")
    with pytest.raises(UnsatisfiablePatternError):
        parse(f"PATTERN A a WHERE a.x0 > 0 AND {where} AND a.x{n} < 0 WITHIN 1 s")
