"""Patterns of structures that engines treat in ways of their own, with any conditions."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

import cepbench as cep
from tests.budgets import INTERPRETED
from tests.contract.cases import ContractCase
from tests.engines.detection.constructs import affordable, waits
from tests.engines.detection.strategies import OPERATORS, event_frames

#: Gaps behind a plain item, in and behind a loop, several, and some that are tested at the end.
GAPS = (
    "SEQ(A a, NOT(B n), C c)",
    "SEQ(A a, NOT(B n), A c)",
    "SEQ(KL(A a), NOT(B n), C c)",
    "SEQ(KL(A a), NOT(A n), C c)",
    "SEQ(KL(A a), NOT(B n), KL(C c))",
    "SEQ(C c, KL(A a), NOT(B n), A d)",
    "SEQ(A a, NOT(OR(B n, C m)), A c)",
    "SEQ(A a, NOT(B n), C c, NOT(A m), B d)",
    "SEQ(A a, NOT(ANY n), ANY c)",
    "SEQ(NOT(B m), A a, NOT(B n), C c)",
    "SEQ(KL(A a), NOT(B n), C c, NOT(A m))",
    "OR(SEQ(A a, NOT(B n), C c), SEQ(C d, NOT(A m), B b))",
)

STRUCTURES = (
    *GAPS,
    "SEQ(NOT(C n), A a, KL(B b), C c, NOT(B m))",
    "SEQ(A a, A b, NOT(C n), ANY c)",
    "SEQ(ANY a, NOT(A n), B b, B c)",
    "SEQ(A a, B b, A c, NOT(C n))",
    # Loops between plain items, one after the other, at the end.
    "SEQ(A a, KL(B b), C c)",
    "SEQ(A a, KL(B b), NOT(A n), C c)",
    "SEQ(A a, KL(B b), KL(B d), C c)",
    "SEQ(A a, KL(B b), A d, C c)",
    "SEQ(KL(A a), KL(B b))",
    "SEQ(A a, KL(ANY b), A c)",
    "KL(ANY a)",
    "OR(SEQ(A a, KL(B b), C c), SEQ(C d, KL(ANY e), A f))",
    # Operators inside operators: rows of any node may come last.
    "AND(SEQ(A a, B b, C c), D d)",
    "AND(SEQ(A a, B b), SEQ(C c, A d))",
    "AND(D d, SEQ(A a, AND(B b, C c)))",
    # Branches over equal variables, of which some wait, in every order.
    "OR(SEQ(A a, B b, NOT(C n)), SEQ(A a, B b))",
    "OR(SEQ(A a, B b), SEQ(A a, B b, NOT(C n)))",
    "OR(AND(A a, B b, NOT(C n)), AND(A a, B b, NOT(D m)))",
    "OR(SEQ(A a, NOT(B n)), SEQ(A a))",
    "OR(SEQ(A a), SEQ(A a, NOT(B n)))",
    "OR(SEQ(A a, B b), AND(A a, B b, NOT(B n)), AND(A a, B b))",
    "OR(SEQ(A a, B b, NOT(A n)), AND(A a, B b), AND(B b, A a, NOT(A m)))",
    "OR(SEQ(A a, NOT(A n)), AND(A a, NOT(B m)))",
    "OR(SEQ(A a, NOT(B n)), SEQ(A b, NOT(B m)), SEQ(A a), SEQ(A b))",
    "OR(SEQ(KL(A a), B b, NOT(A n)), AND(KL(A a), B b))",
    "OR(SEQ(A a, B b, C c), SEQ(B b, A a, C c), AND(C c, A a))",
    "OR(SEQ(A a, B b), SEQ(B c, A d), SEQ(A a, D e))",
    "OR(SEQ(A a, B b), SEQ(KL(C c), B d), AND(A e, KL(B f)))",
    "OR(SEQ(A a, NOT(C n), B b), SEQ(B c, NOT(A m), NOT(C k), A d))",
    # Groups beside sets, negations and other groups.
    "OR(SEQ(A a, GROUP(B b, +), C c), SEQ(A a, KL(B k), C c))",
    "OR(SEQ(A a, C c, NOT(B n)), SEQ(B d, GROUP(A b, 2), C c))",
    "OR(SEQ(A a, GROUP(B b, *)), SEQ(GROUP(A g, +), C c), SEQ(C c, B d, NOT(A n)))",
    "SEQ(A a, GROUP(B b, +), AND(C c, D d))",
    "AND(SEQ(A a, GROUP(B b, *), C c), D d)",
    "SEQ(A a, GROUP(B b, 2), C c, GROUP(B h, +), D d)",
    "SEQ(A a, GROUP(B b, +), NOT(D n), C c, B d)",
    # Alternatives of one item.
    "SEQ(OR(A a, B b), C c, D d)",
    "SEQ(C c, OR(A a, ANY b, B e), D d)",
    "SEQ(OR(A a, B b), C c, OR(A d, D e))",
    "SEQ(C c, NOT(B n), OR(A a, D b), NOT(C m))",
    "AND(NOT(D n), SEQ(OR(A a, B b), C c))",
)

_ENDS = (
    "", "", "", "STRATEGY next", "STRATEGY next", "STRATEGY consuming", "STRATEGY strict_contiguity",
    "STRATEGY partition_contiguity(s)", "OUTPUT non_overlap", "ORDER BY arrival",
    "ORDER BY arrival STRATEGY next OUTPUT non_overlap",
)  # fmt: skip


@st.composite
def structure_cases(draw: st.DrawFn, structure: str) -> ContractCase:
    """Patterns of a structure, and streams with many ties."""
    items = re.findall(r"(KL\(|GROUP\(|NOT\(|)(?:[A-D]|ANY) (\w)", structure)
    conditions = draw(st.lists(_conditions(sorted({*items})), max_size=3, unique=True))
    end = draw(st.sampled_from(_ENDS))
    window = draw(st.sampled_from(["9", "4", "6", "< 7", "20", "2"]))
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    try:
        pattern = cep.parse(f"PATTERN {structure} {where}{end} WITHIN {window} units")
    except cep.CepbenchError:  # such as a condition over two alternatives
        assume(False)
    if pattern.strategy.name == "consuming" and len(pattern.branches()) > 1:
        grouped = any(branch.groups for branch in pattern.branches())
        assume(grouped or not waits(pattern))  # which is refused
    types = re.findall(r"\b[A-D]\b", structure) or ["A", "B"]
    bound = re.findall(r"(?<!NOT\()\b[A-D]\b", structure)
    most = 8 if INTERPRETED else 14
    events = draw(event_frames([*types, *bound], most=most))
    return ContractCase(pattern, affordable(pattern, events))


@st.composite
def _conditions(draw: st.DrawFn, items: list[tuple[str, str]]) -> str:
    """On one item, on two of them, on all, and on the events of a set."""
    (kind, one), (_, two) = draw(st.sampled_from(items)), draw(st.sampled_from(items))
    if kind in ("KL(", "GROUP(") and draw(st.booleans()):
        of_set: list[Any] = [
            "{0}[i].x >= {0}[i-1].x", "{0}[i].x > max({0}[..i-1].x)", "{0}[i].x < avg({0}[..i-1].x)",
            "sum({0}[].x) > {1}.x", "count({0}[].x) < 3", "{0}[1].y <= {0}[last].y",
            "{1}.x >= min({0}[].x)", "{1}.x != {0}[last].x",
        ]  # fmt: skip
        return draw(st.sampled_from(of_set)).format(one, two)
    if one == two:
        return f"{one}.{draw(st.sampled_from('xy'))} {draw(st.sampled_from(OPERATORS))} 1"
    pairs = (
        "{0}.x {2} {1}.x", "{0}.y = {1}.y", "{0}.s = {1}.s", "{0}.x + {1}.y {2} 1", "[s]", "[y]",
        "({0}.x {2} {1}.x OR {0}.y = 1)", "{0}.x = {1}.y", "{0}.x + 1 = {1}.y",
    )  # fmt: skip
    return draw(st.sampled_from(pairs)).format(one, two, draw(st.sampled_from(OPERATORS)))
