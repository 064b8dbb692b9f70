"""Equalities that follow from others: tested at joins, and no other match for that."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.engines.detection.registry import EVALUATORS
from cepbench.engines.plan_runs.nodes import PlannedNodes
from cepbench.errors import UnsupportedPatternError
from cepbench.patterns.equivalences import Equalities, equal_values
from cepbench.planning.plans.model import UnionPlan
from tests.budgets import examples
from tests.engines.detection.checks import check, check_in_batches
from tests.engines.detection.strategies import PLANNED, Case, batches_of, order_plans, tree_plans
from tests.naive.matcher import labelled_matches

#: Equalities of two variables, other conditions on two, and filters.
EQUALITIES = (
    "{0}.x = {1}.x", "{0}.x = {1}.x", "{0}.x = {1}.y", "{0}.y = {1}.x", "{0}.s = {1}.s",
    "{0}.x + 1 = {1}.y", "{0}.x + 1 = {1}.x + 1", "{0}.x + {0}.y = {1}.x",
)  # fmt: skip
OTHERS = (
    "{0}.x <= {1}.y", "({0}.x = {1}.x OR {0}.y = {1}.y)", "{0}.x + {1}.x < 3", "{0}.x = {0}.y",
    "{0}.s != {1}.s", "{0}.x = 1",
)  # fmt: skip
STRATEGIES = ("", "", "", "STRATEGY consuming", "STRATEGY partition_contiguity(x)")


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    """Up to eight events with few values, some of them missing."""
    number = st.sampled_from([0.0, 1.0, 1.0, 2.0, float("nan")])
    text = st.sampled_from(["p", "p", "q", None])
    rows = st.tuples(st.sampled_from("AABBCD"), st.integers(0, 2), number, number, text)
    events = draw(st.lists(rows, min_size=3, max_size=8))
    found = pd.DataFrame(events, columns=["type", "time", "x", "y", "s"])
    return found.assign(
        type=pd.Categorical(found["type"], categories=list("ABCD")),
        time=found["time"].astype(np.int64).cumsum(),
        x=found["x"].astype(float),
        y=found["y"].astype(float),
        s=found["s"].astype(object),
    )


@st.composite
def equal_cases(draw: st.DrawFn, *, sets: bool) -> Case:
    """Three to four positive items, whose values several chains of equalities tie."""
    names = "abcd"[: draw(st.integers(3, 4))]
    items = [f"{draw(st.sampled_from('AABCD'))} {name}" for name in names]
    operator = draw(st.sampled_from(["SEQ", "SEQ", "AND"]))
    strategy = draw(st.sampled_from(STRATEGIES))
    special = draw(st.sampled_from(["", "", "KL", "NOT", "GROUP", "OR"]))
    mentioned = list(names)
    if special == "KL" and sets:
        for at in draw(st.sets(st.integers(0, len(items) - 1), min_size=1, max_size=2)):
            items[at] = f"KL({items[at]})"
    elif special == "NOT":
        items.insert(draw(st.integers(0, len(items))), f"NOT({draw(st.sampled_from('ABCD'))} n)")
        mentioned.append("n")
    elif special == "GROUP" and operator == "SEQ" and not strategy:
        size = draw(st.sampled_from("+*2"))
        items.insert(draw(st.integers(0, len(items))), f"GROUP(B g, {size})")
        mentioned.append("g")
    elif special == "OR":
        items[-1] = f"OR({items[-1]}, C o)"
        mentioned.append("o")
    pairs = list(itertools.permutations(mentioned, 2))
    written = [
        draw(st.sampled_from(EQUALITIES)).format(*draw(st.sampled_from(pairs)))
        for _ in range(draw(st.integers(2, 5)))
    ]
    if draw(st.booleans()):
        written.append(draw(st.sampled_from(OTHERS)).format(*draw(st.sampled_from(pairs))))
    if draw(st.booleans()):
        written.append(draw(st.sampled_from(["[x]", "[s]", "[x, y]"])))
    text = f"{operator}({', '.join(items)}) WHERE {' AND '.join(written)} {strategy}"
    try:
        pattern = cep.parse(f"PATTERN {text} WITHIN {draw(st.integers(3, 12))} units")
        branches = pattern.branches()
    except cep.CepbenchError:  # such as a condition on both sides of an OR
        assume(False)
    assume(branches)
    return Case(pattern, draw(frames()))


@pytest.mark.parametrize("evaluator", PLANNED)
@given(data=st.data())
@examples(6)
def test_any_equalities_any_plan(evaluator: str, data: st.DataObject) -> None:
    case = data.draw(equal_cases(sets=evaluator != "zstream"))
    # A union is made of plans of one kind.
    is_tree = "tree" in EVALUATORS[evaluator].kinds and data.draw(st.booleans())
    shapes = tree_plans if is_tree else order_plans
    parts = [data.draw(shapes(branch.planned_names)) for branch in case.pattern.branches()]
    plan: Any = parts[0] if len(parts) == 1 else UnionPlan(parts)
    expected = labelled_matches(case.pattern, case.events)
    try:
        check(case, expected, plan, evaluator)
    except UnsupportedPatternError:
        assume(False)
    batches = data.draw(batches_of(case.stream))
    restored = [data.draw(st.booleans()) for _ in batches]
    check_in_batches(case, expected, plan, evaluator, batches, restored)


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
    rng = np.random.default_rng(4)
    events = pd.DataFrame(
        {"type": rng.choice(list("ABC"), 300), "time": np.arange(300), "k": rng.integers(0, 9, 300)}
    )
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
