"""Equalities that follow from others: tested at joins, and no other match for that."""

from __future__ import annotations

from typing import Any

import pytest

import cepbench as cep
from cepbench.engines.plan_runs.nodes import PlannedNodes
from cepbench.patterns.equivalences import Equalities, equal_values
from tests.drawn_events import below, drawn_events
from tests.engines.detection.strategies import PLANNED


def joined(text: str, tree: Any) -> list[list[str]]:
    """The conditions at each join of a plan, as texts."""
    pattern = cep.parse(f"PATTERN {text} WITHIN 9 units").expanded
    planned = PlannedNodes(pattern, tree, positions=False)
    return [
        [str(clause) for clause in (*node.joined, *node.steps, *node.rows)]
        for node in planned.nodes[planned.inner :]
    ]


def test_a_join_tests_one_equality_of_a_class() -> None:
    chain = "SEQ(A a, B b, C c, D d) WHERE [k]"
    # As written, one neighbour after the other.
    written = [["a.k = b.k"], ["b.k = c.k"], ["c.k = d.k"]]
    assert joined(chain, ((("a", "b"), "c"), "d")) == written
    assert joined(chain, ((("d", "a"), "c"), "b")) == [["d.k = a.k"], ["c.k = d.k"], ["a.k = b.k"]]
    assert joined(chain, (("a", "c"), ("b", "d"))) == [["a.k = c.k"], ["b.k = d.k"], ["a.k = b.k"]]
    # What is written twice is tested once.
    both = "SEQ(A a, B b, C c) WHERE a.k = b.k AND b.k = c.k AND a.k = c.k AND a.x < c.x"
    assert joined(both, (("a", "b"), "c")) == [["a.k = b.k"], ["b.k = c.k", "a.x < c.x"]]


def test_equalities_go_through_expressions_and_other_attributes() -> None:
    text = "AND(A a, B b, C c) WHERE a.x + 1 = b.y AND b.y = c.z"
    assert joined(text, (("a", "c"), "b")) == [["a.x + 1 = c.z"], ["a.x + 1 = b.y"]]
    # Of two values of one variable each has to be compared.
    text = "AND(A a, B b, C c) WHERE a.x = b.y AND a.z = c.y AND b.y = c.y"
    assert joined(text, (("a", "b"), "c")) == [["a.z = b.y", "a.x = b.y"], ["a.z = c.y"]]


def test_no_equality_goes_through_a_negated_variable_a_group_or_an_or() -> None:
    text = "SEQ(A a, NOT(N n), C c) WHERE a.k = n.k AND n.k = c.k"
    assert joined(text, ("a", "c")) == [[]]
    text = "SEQ(A a, B b, C c) WHERE (a.k = b.k OR a.x = b.x) AND b.k = c.k"
    assert joined(text, (("a", "c"), "b"))[0] == []
    pattern = cep.parse(
        "PATTERN SEQ(A a, GROUP(B g, *), C c) WHERE a.k = g.k AND g.k = c.k WITHIN 9 units"
    )
    assert Equalities(pattern.conditions, pattern.planned_names).classes == []


def test_each_event_of_a_set_is_compared_as_it_is_added() -> None:
    text = "SEQ(A a, KL(B b), C c) WHERE [k]"
    assert joined(text, ("a", ("b", "c"))) == [["c.k = b.k"], ["a.k = c.k"]]
    # Plain variables are compared with each other, which is faster than with every event of a set.
    text = "SEQ(A a, KL(B b), C c) WHERE a.k = b.k AND b.k = c.k"
    assert joined(text, (("a", "b"), "c")) == [["a.k = b.k"], ["a.k = c.k"]]
    # Those of a single event of a set are not equalities of all.
    text = "SEQ(A a, KL(B b), C c) WHERE a.k = b[1].k AND b[last].k = c.k"
    assert joined(text, (("a", "b"), "c")) == [["a.k = b[1].k"], ["b[last].k = c.k"]]


@pytest.mark.parametrize("evaluator", PLANNED)
def test_an_order_against_the_chain_makes_no_cross_products(evaluator: str) -> None:
    """SEQ(a, b, c) WHERE [k] in the order c, a, b: pairs of equal keys only."""
    events = drawn_events(300, "ABC", seed=4, k=below(9))
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    found = cep.evaluate(
        "PATTERN SEQ(A a, B b, C c) WHERE [k] WITHIN 40 units", stream,
        cep.OrderPlan(["c", "a", "b"]), evaluator=evaluator, output="count",
    )  # fmt: skip
    a, c = (events[events["type"] == kind] for kind in "AC")
    pairs = a.merge(c, on="k")
    apart = pairs["time_y"] - pairs["time_x"]
    of_pairs = int(((apart > 0) & (apart <= 40)).sum())
    created = found.nodes["created"][found.nodes["variables"] == "a, c"]
    assert created.tolist() == [of_pairs]


def test_equal_values_join_chains() -> None:
    clauses = cep.parse(
        "PATTERN AND(A a, B b, C c, D d) WHERE a.x = b.x AND c.x = d.x AND d.x = a.x AND b.y = c.y WITHIN 9 units"
    ).conditions
    assert [[f"{its}" for _, its in one] for one in equal_values(clauses)] == [
        ["a.x", "b.x", "c.x", "d.x"], ["b.y", "c.y"],
    ]  # fmt: skip
