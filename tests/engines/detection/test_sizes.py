"""Limits of sizes are named, and true."""

import pandas as pd
import pytest

import cepbench as cep
from cepbench.errors import (
    CepbenchError,
    EvaluationError,
    PartialMatchLimitError,
    PatternOperatorError,
    PatternSyntaxError,
    UnsupportedPatternError,
)

AUTOMATA = ("sase", "sase-basic", "sase-backtrack")
KLEENE = "PATTERN SEQ(A a, KL(B b), C c) WITHIN 1000 units"


def stream(types: list[str], times: list[int] | range) -> cep.EventStream:
    frame = pd.DataFrame({"type": types, "ts": times})
    return cep.EventStream.from_pandas(frame, type="type", time="ts")


def sets_of(size: int) -> cep.EventStream:
    return stream(["A", *["B"] * size, "C"], range(size + 2))


@pytest.mark.parametrize("size", [62, 63, 64, 65, 130])
@pytest.mark.parametrize("strategy", ["any", "next"])
def test_items_of_an_automaton(size: int, strategy: str) -> None:
    types = [f"T{number}" for number in range(size)]
    items = ", ".join(f"{kind} v{kind}" for kind in types)
    pattern = f"PATTERN SEQ({items}) STRATEGY {strategy} WITHIN {size} units"
    events = stream(types, range(size))
    for evaluator in AUTOMATA:
        if size <= 62:
            assert cep.evaluate(pattern, events, evaluator=evaluator).metrics.matches == 1
            continue
        with pytest.raises(
            UnsupportedPatternError, match=f"has {size} edges .* at most 62"
        ) as refused:
            cep.evaluate(pattern, events, evaluator=evaluator)
        assert ("lazy-nfa or tree" in str(refused.value)) is (strategy == "any")
    if strategy == "any":
        plan = cep.OrderPlan([f"v{kind}" for kind in types])
        assert cep.evaluate(pattern, events, plan, output="count").metrics.matches == 1
        counted = pattern.replace("STRATEGY any", "AGG COUNT")
        assert cep.aggregate(counted, events).values["COUNT"].tolist() == [1]


@pytest.mark.parametrize(
    ("order", "size", "limit"), [("abc", 21, 20), ("abc", 40, 20), ("acb", 70, 62)]
)
def test_sets_of_a_kleene_variable(order: str, size: int, limit: int) -> None:
    words = rf"more than 2\^{limit} sets in KL\(b\)"
    with pytest.raises(PartialMatchLimitError, match=words) as refused:
        cep.evaluate(KLEENE, sets_of(size), cep.OrderPlan([*order]), output="count")
    assert ("joins KL(b) last counts up to 2^62" in str(refused.value)) is (order == "abc")


@pytest.mark.parametrize("size", [21, 61, 70])
def test_what_the_message_advises(size: int) -> None:
    events, due = sets_of(size), 2**size - 1
    if size < 62:
        for plan in (cep.OrderPlan(["a", "c", "b"]), cep.TreePlan((("a", "c"), "b"))):
            assert cep.evaluate(KLEENE, events, plan, output="count").metrics.matches == due
    for output in ("count", "compressed"):
        found = cep.evaluate(KLEENE, events, evaluator="sase", output=output)
        assert found.metrics.matches == due
    counted = KLEENE.replace("WITHIN", "AGG COUNT WITHIN")
    assert cep.aggregate(counted, events).values["COUNT"].iloc[-1] == due


def test_a_total_beyond_64_bits_is_not_wrapped() -> None:
    """Five rows with 2^61 - 1 sets each."""
    events = stream(["A"] * 5 + ["B"] * 61 + ["C"], [0] * 5 + [*range(1, 62), 100])
    with pytest.raises(PartialMatchLimitError, match=r"2\^62"):
        cep.evaluate(KLEENE, events, cep.OrderPlan(["a", "c", "b"]), output="count")
    found = cep.evaluate(KLEENE, events, evaluator="sase", output="count")
    assert found.metrics.matches == 5 * (2**61 - 1)


@pytest.mark.parametrize("size", ["100000000000000000000", str(2**63), "9" * 5000, "0", "1e3"])
def test_sizes_of_groups(size: str) -> None:
    with pytest.raises(
        PatternOperatorError, match="a whole number from 1 to 9,223,372,036,854,775,807"
    ):
        cep.parse(f"PATTERN SEQ(A a, GROUP(B b, {size}), C c) WITHIN 9 units")


def test_the_largest_group() -> None:
    pattern = f"PATTERN SEQ(A a, GROUP(B b, {2**63 - 1}), C c) WITHIN 9 units"
    assert cep.evaluate(pattern, sets_of(3), cep.OrderPlan(["a", "c"])).metrics.matches == 0


@pytest.mark.parametrize("level", [str(2**63), "9" * 5000])
def test_levels_of_types(level: str) -> None:
    with pytest.raises(PatternSyntaxError, match="the level of a type is"):
        cep.parse(f"PATTERN SEQ(A a, B b) GROUP BY type(a, {level}) AGG COUNT WITHIN 5 units")


def test_positions_and_limits_near_the_largest_integer() -> None:
    pattern, plan = "PATTERN SEQ(A a, C c) WITHIN 9 units", cep.OrderPlan(["a", "c"])
    with pytest.raises(EvaluationError, match="position must be at most 4,611,686,018,427,387,904"):
        cep.Detector(pattern, plan, position=2**63 - 3)
    found = cep.Detector(pattern, plan, position=2**62).push(sets_of(2))
    assert found.to_numpy().tolist() == [[2**62, 2**62 + 3]]
    for evaluator in ("lazy-nfa", "tree", "lazy-nfa-instances", "tree-instances", "zstream"):
        limit = {"evaluator": evaluator, "partial_match_limit": 2**63 - 1}
        its = plan if "lazy" in evaluator else cep.TreePlan(("a", "c"))
        assert cep.evaluate(pattern, sets_of(2), its, **limit).metrics.matches == 1
    with pytest.raises(CepbenchError, match="partial_match_limit must be at most"):
        cep.evaluate(pattern, sets_of(2), plan, partial_match_limit=2**63)
