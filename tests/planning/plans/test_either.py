"""Disjunctions in tree plans: what is accepted, shown, run and counted."""

from __future__ import annotations

import itertools
import json
import pickle
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PlanError, PlanGeneratorError
from cepbench.patterns.model import Kind, Operator, Structure, Variable
from cepbench.planning.plans.kinds import PLAN_KINDS, plan_from_json, plan_to_json
from cepbench.planning.plans.tree import alternatives
from tests.budgets import examples
from tests.engines.detection.checks import check
from tests.engines.detection.constructs import FAMILIES, able, construct_cases
from tests.naive.matcher import labelled_matches

PLAN = cep.TreePlan((cep.Either("a", "b"), ("c", "d")))
TEXT = "PATTERN SEQ(OR(A a, B b), C c, D d) WITHIN 10 units"


def test_a_plan_with_a_disjunction() -> None:
    assert PLAN.text == "((a | b), (c, d))"
    assert PLAN.names == ("a", "b", "c", "d")
    assert eval(repr(PLAN), {"TreePlan": cep.TreePlan, "Either": cep.Either}) == PLAN
    assert pickle.loads(pickle.dumps(PLAN)) == PLAN
    assert plan_from_json(json.loads(json.dumps(plan_to_json(PLAN)))) == PLAN
    joined = cep.TreePlan((("a", "b"), ("c", "d")))
    assert joined != PLAN and len({PLAN, joined}) == 2
    for one, other in itertools.permutations([cep.Either("a", "b"), ("a", "b")]):
        assert one != other
        assert len({one, other}) == 2
    assert PLAN.describe().splitlines()[1:3] == ["  join a, b, c, d", "    either a, b"]
    texts = [element.text for element in ET.fromstring(PLAN._repr_html_()).iter()]
    assert "DISJ" in texts


def test_the_choices() -> None:
    tree = (cep.Either("a", ("b", "c")), cep.Either("d", cep.Either("e", "f")))
    assert alternatives(tree) == [
        ("a", "d"), ("a", "e"), ("a", "f"), (("b", "c"), "d"), (("b", "c"), "e"), (("b", "c"), "f"),
    ]  # fmt: skip
    assert alternatives("a") == ["a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("PATTERN SEQ(A a, C c, D d) WITHIN 9 units", "1 branches and the plan 2"),
        ("PATTERN SEQ(OR(A a, B x), C c, D d) WITHIN 9 units", "lacks variable 'x'"),
        ("PATTERN SEQ(OR(A a, B b, E e), C c, D d) WITHIN 9 units", "3 branches and the plan 2"),
    ],
)
def test_a_pattern_refuses_plans(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        cep.Detector(text, PLAN)


def test_generators_do_not_return_disjunctions() -> None:
    with pytest.raises(PlanGeneratorError, match="MINE"):
        PLAN_KINDS["tree"].checked((cep.Either(0, 1), 2), ("a", "b", "c"), "MINE")


@st.composite
def trees(draw: st.DrawFn, item: Variable | Structure) -> Any:
    """Any tree for a structure, in any order, with a disjunction for each OR; None for NOT alone."""
    if isinstance(item, Variable):
        return item.name if item.kind in (Kind.PLAIN, Kind.KLEENE) else None
    node = cep.Either if item.operator is Operator.OR else lambda left, right: (left, right)

    def over(part: list[Any]) -> Any:
        if len(part) == 1:
            return part[0]
        cut = draw(st.integers(1, len(part) - 1))
        return node(over(part[:cut]), over(part[cut:]))

    below = [tree for each in item.items if (tree := draw(trees(each))) is not None]
    return over(draw(st.permutations(below))) if below else None


@pytest.mark.kernel
@pytest.mark.parametrize("family", ["disjunction", "consuming disjunction", "everything"])
@given(data=st.data())
@examples(4)
def test_any_engine_runs_any_tree(family: str, data: st.DataObject) -> None:
    case = data.draw(construct_cases(FAMILIES[family]))
    planned = case.pattern.planned_names
    # Alternatives that share a variable, or differ in negated ones alone, are no tree.
    names = [v.name for v in case.pattern.structure.variables() if v.name in planned]
    assume(len(names) == len({*names}))
    plan = cep.TreePlan(data.draw(trees(case.pattern.structure)))
    assume(len(plan.alternatives()) == len(case.pattern.branches()))
    expected = labelled_matches(case.pattern, case.events)
    for evaluator in able(case.pattern):
        if "tree" in cep.EVALUATORS[evaluator].kinds:
            check(case, expected, plan, evaluator)


def test_shared_operators_cost_once() -> None:
    statistics = cep.Statistics(cardinalities={"a": 10, "b": 20, "c": 30, "d": 5})
    found = cep.plan_cost(TEXT, PLAN, statistics, cost="zstream")
    assert found[["branch", "operator", "variables"]].values.tolist() == [
        [0, "SEQ", ("c", "d")],
        [0, "SEQ", ("a", "c", "d")],
        [1, "SEQ", ("b", "c", "d")],
        [-1, "DISJ", ("a", "b")],
    ]
    assert found["cost"].tolist() == pytest.approx([150, 750, 1500, 60])
    union = cep.UnionPlan(PLAN.alternatives())
    apart = cep.plan_cost(TEXT, union, statistics, cost="zstream")
    assert apart["cost"].tolist() == pytest.approx([150, 750, 150, 1500, 2250])
    same = cep.plan_cost(TEXT, PLAN, statistics)
    assert same["cost"].sum() == pytest.approx(cep.plan_cost(TEXT, union, statistics)["cost"].sum())
    explained = cep.explain(TEXT, PLAN, statistics, cost="zstream")
    assert explained.plan.parts[1].text == "(b, (c, d))"
    assert explained.remarks == (
        "Shown and measured are the alternatives of ((a | b), (c, d)), one by one.",
    )
    assert cep.explain(TEXT, union, statistics).remarks == ()
    assert cep.to_sql(TEXT, PLAN) == cep.to_sql(TEXT, union)
