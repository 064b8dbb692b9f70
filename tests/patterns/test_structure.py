"""Negation, Kleene closure, disjunction and nesting in the pattern model, and what is refused."""

import pytest

from cepbench.errors import (
    PatternError,
    UnsupportedPatternError,
)
from cepbench.patterns.model import (
    ANY,
    Aggregate,
    Attribute,
    Clause,
    Comparison,
    Constant,
    Kind,
    Operator,
    Pattern,
    Strategy,
    Structure,
    Variable,
    Window,
)
from cepbench.patterns.parse import parse


def pattern_of(text: str) -> Pattern:
    return parse(f"PATTERN {text} WITHIN 9 s")


def test_kinds_and_what_a_match_binds() -> None:
    pattern = pattern_of("SEQ(A a, NOT(B n), KL(C k), AND(D d, NOT(A m)))")
    assert [v.kind.value for v in pattern.variables] == [
        "plain",
        "negated",
        "kleene",
        "plain",
        "negated",
    ]
    assert pattern.names == ("a", "n", "k", "d", "m")
    assert pattern.positive_names == ("a", "k", "d")
    assert pattern.negated == (Variable("n", "B", Kind.NEGATED), Variable("m", "A", Kind.NEGATED))
    assert pattern.strategy == ANY
    assert pattern.branches() == (pattern,)


def test_types_of_the_items() -> None:
    assert pattern_of("SEQ(B a, NOT(C n), OR(A b, B c))").types == ("B", "C", "A")
    some = pattern_of('SEQ(A a, ANY b, NOT(ANY n), "ANY" c)')
    assert [v.type for v in some.variables] == ["A", None, None, "ANY"]
    assert some.types is None
    assert some.overlap(Variable("a", "A"), Variable("b", "A"))
    assert some.overlap(Variable("a", None), Variable("b", "A"))
    assert some.overlap(Variable("a", "A"), Variable("b", None))
    assert not some.overlap(Variable("a", "A"), Variable("b", "ANY"))


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("SEQ(A a, B b, C c)", "ab ac bc"),
        ("AND(A a, B b)", ""),
        ("SEQ(A a, AND(B b, SEQ(C c, D d)), E e)", "ab ac ad ae be cd ce de"),
        ("AND(SEQ(A a, B b), SEQ(C c, D d))", "ab cd"),
        ("SEQ(A a, NOT(N n), B b)", "an ab nb"),
        ("SEQ(NOT(N n), A a, NOT(M m))", "na am"),
        # Two negated items in a row: each by itself between a and b.
        ("SEQ(A a, NOT(N n), NOT(M m), B b)", "an am ab nb mb"),
        ("AND(A a, SEQ(NOT(N n), KL(B b)))", "nb"),
        ("SEQ(A a, AND(B b, NOT(N n)), C c)", "ab an ac bc nc"),
    ],
)
def test_precedence(text: str, pairs: str) -> None:
    found = pattern_of(text).structure.precedence()
    assert found == {(pair[0], pair[1]) for pair in pairs.split()}


@pytest.mark.parametrize(
    ("text", "branches"),
    [
        ("OR(A a, B b)", ["SEQ(A a)", "SEQ(B b)"]),
        ("OR(A a, OR(SEQ(B b, C c), A a))", ["SEQ(A a)", "SEQ(B b, C c)"]),
        (
            "SEQ(A a, OR(B b, SEQ(C c, KL(D d))), E e)",
            ["SEQ(A a, B b, E e)", "SEQ(A a, SEQ(C c, KL(D d)), E e)"],
        ),
        (
            "AND(OR(A a, B b), OR(C c, NOT(D d)))",
            ["AND(A a, C c)", "AND(A a, NOT(D d))", "AND(B b, C c)", "AND(B b, NOT(D d))"],
        ),
        ("OR(SEQ(A a, B b), SEQ(B b, A a))", ["SEQ(A a, B b)", "SEQ(B b, A a)"]),
        ("OR(A a)", ["SEQ(A a)"]),
    ],
)
def test_branches_are_the_disjunctive_normal_form(text: str, branches: list[str]) -> None:
    assert [str(branch.structure) for branch in pattern_of(text).branches()] == branches


def test_branches_take_their_conditions_window_and_strategy() -> None:
    pattern = parse(
        "PATTERN OR(SEQ(A a, B b), SEQ(A a, C c)) WHERE a.x < 1 AND a.x < b.x AND c.x = 2 "
        "STRATEGY consuming WITHIN 9 s"
    )
    assert pattern.names == ("a", "b", "c")
    assert [str(branch) for branch in pattern.branches()] == [
        "PATTERN SEQ(A a, B b) WHERE a.x < 1 AND a.x < b.x STRATEGY consuming WITHIN 9 seconds",
        "PATTERN SEQ(A a, C c) WHERE a.x < 1 AND c.x = 2 STRATEGY consuming WITHIN 9 seconds",
    ]


def test_too_many_branches() -> None:
    pairs = ", ".join(f"OR(A a{n}, B b{n})" for n in range(9))
    with pytest.raises(UnsupportedPatternError, match=r"column 9: .* 512 branches without OR"):
        pattern_of(f"AND({pairs})")


@pytest.mark.parametrize(
    ("where", "elementwise", "running"),
    [
        ("k.x < a.x", True, set()),
        ("k[1].x < a.x", False, set()),
        ("k[i].x < k[i-1].x", False, {"k"}),
        ("sum(k.x) < a.x", False, set()),
        ("a.x < 1 OR k.x > avg(k[..i-1].x)", False, {"k"}),
        ("a.x < 1", True, set()),
    ],
)
def test_what_conditions_range_over(where: str, elementwise: bool, running: set[str]) -> None:
    (clause,) = pattern_of(f"SEQ(A a, KL(K k)) WHERE {where}").conditions
    assert clause.is_elementwise == elementwise
    assert clause.running_variables() == running
    assert clause.is_running == bool(running)


# -- built by hand ------------------------------------------------------------------------------

A, B = Variable("a", "A"), Variable("b", "B")
NO_B = Variable("b", "B", Kind.NEGATED)
AX = Attribute("a", "x")


def by_hand(
    operator: Operator, *items: Variable | Structure, where: Comparison | None = None
) -> Pattern:
    clauses = () if where is None else (Clause((where,)),)
    return Pattern(Structure(operator, items), clauses, Window(1, "units"))


@pytest.mark.parametrize(
    ("operator", "items", "words"),
    [
        (Operator.SEQ, (), "at least one variable"),
        (Operator.SEQ, (A, Variable("a", "C")), "'a' is used for two items"),
        (Operator.OR, (A, Structure(Operator.SEQ, (B, Variable("a", "C")))), "A a in one branch"),
        (Operator.SEQ, (NO_B,), "has only negated items"),
    ],
)
def test_structures_by_hand_are_checked_too(operator: Operator, items: tuple, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        by_hand(operator, *items)


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (Constant(3), "mentions no variable"),
        (Attribute("c", "x"), "unknown variable 'c'"),
        (Attribute("a", "x", "first"), "needs a set of events"),
        (Attribute("a", "x", "second"), "the element of an attribute is one of .*, not 'second'"),
        (Aggregate("median", AX), "the function of an aggregate is one of .*, not 'median'"),
        (Aggregate("sum", Attribute("a", "x", "last")), "is over a single event"),
    ],
)
def test_conditions_by_hand_are_checked_too(left: object, words: str) -> None:
    with pytest.raises(PatternError, match=words) as refused:
        by_hand(Operator.SEQ, A, B, where=Comparison("<", left, Constant(1)))  # type: ignore
    assert isinstance(refused.value.culprit, Clause)


@pytest.mark.parametrize(
    ("name", "attribute", "words"),
    [
        ("first", None, "the strategy is one of any, consuming, .*, next, not 'first'"),
        ("next", "x", "takes no attribute"),
        ("partition_contiguity", None, "needs the attribute"),
        ("consuming", "x", "takes no attribute; leave out 'x'"),
    ],
)
def test_strategies_by_hand_are_checked_too(name: str, attribute: str | None, words: str) -> None:
    with pytest.raises(PatternError, match=words):
        Strategy(name, attribute)


def test_groups() -> None:
    pattern = pattern_of(
        "SEQ(A a, GROUP(B b, +), C c, NOT(N n), group(D, 5), E e) WHERE b.x < sum(D.x)"
    )
    assert str(pattern).startswith(
        "PATTERN SEQ(A a, GROUP(B b, +), C c, NOT(N n), GROUP(D D, 5), E e)"
    )
    assert [v.size for v in pattern.variables] == [None, "+", None, None, 5, None]
    assert pattern.positive_names == ("a", "b", "c", "D", "e")
    assert pattern.planned_names == ("a", "c", "e")
    plain = pattern.without(pattern.groups)
    assert str(plain) == "PATTERN SEQ(A a, C c, NOT(N n), E e) WITHIN 9 seconds"
    nested = pattern_of("SEQ(A a, SEQ(GROUP(B b, *)), AND(C c, D d))")
    assert str(nested.without(nested.groups).structure) == "SEQ(A a, AND(C c, D d))"
    for size in (0, True, "?", -1, None):
        items = (Variable("a", "A"), Variable("b", "B", Kind.GROUP, size))
        with pytest.raises(PatternError):
            Pattern(Structure(Operator.SEQ, items), (), Window(1, "units"))
    with pytest.raises(PatternError, match="only a group has a size"):
        Pattern(Structure(Operator.SEQ, (Variable("a", "A", size=2),)), (), Window(1, "units"))


def test_outputs_by_hand_are_checked_too() -> None:
    structure = Structure(Operator.SEQ, (A,))
    with pytest.raises(PatternError, match="the output is one of all, non_overlap, not 'some'"):
        Pattern(structure, (), Window(9, "units"), output="some")
