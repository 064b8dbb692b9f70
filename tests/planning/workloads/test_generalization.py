"""Common generalizations: above two queries, and the greatest that are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.planning.costs.reuse import plan_cost
from cepbench.planning.costs.virtual import VirtualStatistics
from cepbench.planning.workloads.generalization import common_generalizations
from cepbench.planning.workloads.refinement import embeddings
from tests.engines.reuse.test_reuse import HIERARCHY, chains, frames
from tests.naive.refinement import unrefuted

TRADES = cep.ConceptHierarchy({"Company": {"Computer": ["INTC", "DELL"], "Finance": ["QQQ"]}})


def of(*texts: str) -> cep.Workload:
    written = [text if "WITHIN" in text else f"{text} WITHIN 5 s" for text in texts]
    queries = {f"q{number}": f"PATTERN {text}" for number, text in enumerate(written, 1)}
    return cep.Workload(queries, hierarchy=TRADES)


#: Queries, and their greatest generalizations; in a window of 5 seconds where none is written.
EXAMPLES = {
    "names": (["SEQ(A a, B b, C c)", "SEQ(A x, B y, D z)"], ["SEQ(A x1, B x2)"]),
    "the longer window": (
        ["SEQ(A a, B b, C c)", "SEQ(A a, B b, D c) WITHIN 9 s"],
        ["SEQ(A x1, B x2) WITHIN 9 s"],
    ),
    "conditions of both": (
        [
            "SEQ(A a, B b, C c) WHERE [id] AND a.x < 3 AND a.x < b.x AND b.y = 1",
            "SEQ(A a, B b, D d) WHERE [id] AND a.x < 4 AND a.x <= b.x AND d.x = 1",
        ],
        ["SEQ(A x1, B x2) WHERE [id] AND x1.x < 4 AND x1.x <= x2.x"],
    ),
    "a negation between": (
        ["SEQ(A a, NOT(N n), B b, C c)", "SEQ(A a, NOT(N m), B b, D d)"],
        ["SEQ(A x1, NOT(N x2), B x3)"],
    ),
    "a negation of one": (
        ["SEQ(A a, NOT(N n), B b, C c)", "SEQ(A a, B b, D d)"],
        ["SEQ(A x1, B x2)"],
    ),
    "Kleene items": (["SEQ(A a, KL(B b), C c)", "SEQ(A a, KL(B b), D d)"], ["SEQ(A x1, KL(B x2))"]),
    "AND": (["AND(A a, B b, C c)", "AND(D d, B b, A a)"], ["AND(A x1, B x2)"]),
    "items between": (
        ["SEQ(A a, X b, B c, C d)", "SEQ(A a, B b, Y d, C e)"],
        ["SEQ(A x1, B x2, C x3)"],
    ),
    "the lowest concept": (
        ["SEQ(INTC a, AMAT b, C c)", "SEQ(DELL a, AMAT b, C c)"],
        ["SEQ(AMAT x1, C x2)", "SEQ(Computer x1, AMAT x2, C x3)"],
    ),
    "the root": (["SEQ(INTC a, AMAT b)", "SEQ(QQQ a, AMAT b)"], ["SEQ(Company x1, AMAT x2)"]),
    "what three have in common": (
        ["SEQ(A a, B b, C c, D d)", "SEQ(A a, B b, C c, E d)", "SEQ(A a, B b, F d)"],
        ["SEQ(A x1, B x2)", "SEQ(A x1, B x2, C x3)"],
    ),
    "one above the other": (["SEQ(A a, B b)", "SEQ(A a, B b, C c)"], []),
    "equal ones": (["SEQ(A a, B b)", "SEQ(A x, B y)"], []),
    "one item": (["SEQ(A a, B b)", "SEQ(A a, C b)"], []),
    "OR, and a strategy": (
        ["OR(A a, B b)", "SEQ(A a, B b, C c) STRATEGY next", "SEQ(A a, B b, D c)"], []
    ),
    "SEQ and AND": (["SEQ(A a, B b, C c)", "AND(A a, B b, D c)"], []),
}  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples(example: str) -> None:
    texts, expected = EXAMPLES[example]
    found = {its.pattern for its in common_generalizations(of(*texts))}
    assert found == {*of(*expected).patterns.values()} if expected else not found


@given(chains(), chains(), st.lists(frames(), min_size=2, max_size=3))
def test_each_is_above_two_queries_at_least(queries, more, streams: Sequence) -> None:
    drawn = (*queries[-2:], *more[-2:])
    texts = [str(replace(its, order=queries[0].order)) for its in drawn]
    workload = cep.Workload({f"q{k}": its for k, its in enumerate(texts)}, hierarchy=HIERARCHY)
    for its in common_generalizations(workload):
        below = [
            query
            for query, pattern in workload.patterns.items()
            if embeddings(its.pattern, pattern, HIERARCHY)
        ]
        assert len(below) > 1 and its.member in below
        general = its.pattern.with_hierarchy(HIERARCHY)
        for query in below:
            assert [*unrefuted(general, workload.patterns[query], streams)]
        member = workload.patterns[its.member]
        assert {*its.names} == {*its.pattern.names}
        assert {*its.names.values()} <= {*member.names}


def test_statistics_are_those_of_the_queries_below() -> None:
    workload = of(
        "SEQ(INTC a, AMAT b, C c) WHERE a.x < b.x AND a.y = b.y WITHIN 5 s",
        "SEQ(DELL p, AMAT q, D r) WHERE p.x < q.x AND q.z = 1 WITHIN 5 s",
    )
    statistics = {
        "q1": cep.Statistics(
            rates={"a": 2, "b": 3, "c": 4}, selectivities={("a", "b"): 0.25}, stream_rate=50
        ),
        "q2": cep.Statistics(cardinalities={"p": 35, "q": 15, "r": 5}),
    }
    (its,) = common_generalizations(workload)
    assert str(
        its.pattern
    ) == "PATTERN SEQ(Computer x1, AMAT x2) WHERE x1.x < x2.x WITHIN 5 s".replace(
        "5 s", "5 seconds"
    )
    found = VirtualStatistics(workload, statistics).of(its)
    assert found is not None and found.stream_rate == 50
    # INTC 2 and DELL 35 / 5 per second; one of two conditions is kept.
    assert found.rates == {"x1": 9.0, "x2": 3.0}
    assert found.selectivities == {("x1", "x2"): pytest.approx(0.5)}
    # Of AMAT and QQQ below Company only one is known.
    alone = of("SEQ(INTC a, C b) WITHIN 5 s", "SEQ(QQQ a, C b) WITHIN 5 s")
    rates = dict.fromkeys(("q1", "q2"), cep.Statistics(rates={"a": 1, "b": 1}))
    (root,) = common_generalizations(alone)
    assert VirtualStatistics(alone, rates).of(root) is None


def test_equality_holds_between_items_that_were_not_neighbours() -> None:
    workload = of(
        "SEQ(A a, B b, C c) WHERE [id] WITHIN 5 s", "SEQ(A a, D b, C c) WHERE [id] WITHIN 5 s"
    )
    measured = cep.Statistics(
        rates={"a": 1, "b": 1, "c": 1}, selectivities={("a", "b"): 0.1, ("b", "c"): 0.2}
    )
    (its,) = common_generalizations(workload)
    found = VirtualStatistics(workload, {"q1": measured, "q2": measured}).of(its)
    assert found is not None and found.selectivity("x1", "x2") == 0.2


def test_a_plan_has_a_cost_without_statistics_of_its_virtual_queries() -> None:
    workload = of(
        "SEQ(INTC a, NOT(N n), C b, D c) WITHIN 5 s", "SEQ(DELL a, NOT(N n), C b, E c) WITHIN 5 s"
    )
    measured = cep.Statistics(rates=dict.fromkeys("anbc", 1))
    statistics = {"q1": measured, "q2": measured}
    virtual = "PATTERN SEQ(Computer x, NOT(N m), C y) WITHIN 6 s"
    plan = cep.WorkloadPlan(
        workload, sources={"q1": "v", "q2": "v", "v": None}, virtual={"v": virtual}
    )
    own = cep.Statistics(rates={"x": 2, "m": 1, "y": 1})
    for cost in ("calibrated", "e-cube"):
        found = plan_cost(plan, statistics, cost)
        assert found == plan_cost(plan, {**statistics, "v": own}, cost) > 0
    lower = cep.WorkloadPlan(
        workload,
        sources={"q1": "v", "q2": None, "v": None},
        virtual={"v": "PATTERN SEQ(F f, INTC x, NOT(N m), C y, D z) WITHIN 5 s"},
    )
    with pytest.raises(cep.CepbenchError, match="no statistics of query 'v'"):
        plan_cost(lower, statistics, "calibrated")
