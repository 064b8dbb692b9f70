"""Where a plan checks negated variables: what is accepted, what is shown, where engines check."""

from __future__ import annotations

import json
import pickle
import xml.etree.ElementTree as ET
from typing import Any

import pandas as pd
import pytest

import cepbench as cep
from cepbench.engines.plan_runs.nodes import PlannedNodes
from cepbench.errors import PlanError, PlanGeneratorError
from cepbench.patterns.negations import Check
from cepbench.planning.plans.kinds import PLAN_KINDS, indices_of, plan_from_json, plan_to_json
from cepbench.presentation.explainer.estimates import explained_nodes

TREE = ("a", ("c", "d"))
PLAN = cep.TreePlan(TREE, placements={"n": ("d", "c"), "b": ["c"]})
PATTERN = "PATTERN SEQ(A a, NOT(B b), C c, D d) WHERE {} WITHIN 10 units"


def check_of(conditions: str, structure: str = "SEQ(A a, NOT(B b), C c, D d)") -> Check:
    where = f" WHERE {conditions}" if conditions else ""
    return Check.of(cep.parse(f"PATTERN {structure}{where} WITHIN 10 units"), "b")


def test_a_plan_with_placements() -> None:
    assert dict(PLAN.placements) == {"b": ("c",), "n": ("c", "d")}
    assert (
        cep.TreePlan(TREE, placements={"b": ["c"], "n": ["c", "d"]}) == PLAN != cep.TreePlan(TREE)
    )
    assert eval(repr(PLAN), {"TreePlan": cep.TreePlan}) == PLAN == pickle.loads(pickle.dumps(PLAN))
    assert len({PLAN, cep.TreePlan(TREE)}) == 2
    assert PLAN.text == "(a, (c, d)); b at c; n at c, d"
    described = plan_to_json(PLAN)
    assert plan_from_json(json.loads(json.dumps(described))) == PLAN
    assert indices_of(PLAN, ["a", "c", "d"]) == ((0, (1, 2)), {"b": (1,), "n": (1, 2)})
    assert cep.TreePlan(TREE, placements={}) == cep.TreePlan(TREE, placements=None)
    assert cep.TreePlan(TREE).placements == cep.OrderPlan(["a"]).placements == ()


def test_placements_are_shown() -> None:
    plan = cep.TreePlan(TREE, {"b": ["c", "d", "a"], "n": ["c"]})
    assert plan.describe().splitlines()[1:] == [
        "  join a, c, d, with b",
        "    a",
        "    join c, d",
        "      c, NSEQ n",
        "      d",
    ]
    texts = [element.text for element in ET.fromstring(plan._repr_html_()).iter()]
    assert {"with b", "NSEQ n"} <= set(texts)
    assert "join c, d, with n" in PLAN.describe()


@pytest.mark.parametrize(
    ("placements", "message"),
    [
        ({"x": ("c",)}, "places 'x', which the pattern does not negate; it negates b"),
        ({"b": ("d",)}, "places 'b' at the node over d; place it at a node over a, c"),
        (
            {"g": ("c", "d")},
            "places 'g', a group, at the node over c, d; place it at a node over a, c, where",
        ),
        ({"h": ("c",)}, "places 'h', which .* it negates b and has the group g"),
    ],
)
def test_a_pattern_refuses_placements(placements: dict[str, Any], message: str) -> None:
    events = pd.DataFrame({"type": ["A"], "time": [1], "x": [1.0]})
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    pattern = PATTERN
    if "g" in message:
        pattern = PATTERN.replace("C c", "GROUP(G g, +), C c")
    with pytest.raises(PlanError, match=message):
        cep.evaluate(pattern.format("a.x < c.x"), stream, cep.TreePlan(TREE, placements=placements))


def test_generators_return_placements() -> None:
    kind = PLAN_KINDS["tree"]
    names = ("a", "c", "d")
    shape = kind.checked([[0, [1, 2]], {"b": [1, 2]}], names, "MINE")
    assert kind.named(shape, names) == cep.TreePlan(TREE, {"b": ("c", "d")})
    for wrong in ({"b": [0, 1]}, {"b": [3]}):
        with pytest.raises(PlanGeneratorError, match="MINE"):
            kind.checked(((0, (1, 2)), wrong), names, "MINE")


def test_where_a_filter_is_exact() -> None:
    assert check_of("").is_exact_at({"a", "c"})
    assert not check_of("").is_exact_at({"c", "d"})
    assert not check_of("b.x < d.x").is_exact_at({"a", "c"})
    assert check_of("b.x < d.x").is_exact_at({"a", "c", "d"})
    leading = check_of("", "SEQ(NOT(B b), C c, D d)")
    # The window ends at d.
    assert not leading.is_exact_at({"c"}) and leading.is_exact_at({"c", "d"})
    trailing = check_of("", "SEQ(C c, D d, NOT(B b))")
    assert not trailing.is_exact_at({"d"}) and trailing.is_exact_at({"c", "d"})


def test_where_one_side_is_enough() -> None:
    for conditions, nodes in {
        "": ["a", "c", "cd"],
        "b.x < d.x": ["cd"],
        "b.x < c.x": ["c", "cd"],
        "b.x < a.x": ["a"],
        "b.x < a.x AND b.x < c.x": [],
        "b.x < c.x AND b.x < d.x": [],
    }.items():
        check = check_of(conditions)
        assert [n for n in ("a", "c", "d", "ac", "cd", "acd") if check.is_tied_to({*n})] == nodes
    both = check_of("", "SEQ(A a, NOT(B b), AND(C c, D d))")
    assert both.is_tied_to({"c", "d"}) and not both.is_tied_to({"c"})
    for structure in ("SEQ(NOT(B b), C c)", "SEQ(C c, NOT(B b))", "AND(C c, NOT(B b))"):
        assert not check_of("", structure).is_tied_to({"c"})


@pytest.mark.parametrize(
    ("tree", "placed", "node"),
    [
        ((("a", "c"), "d"), None, {"a", "c"}),
        ((("a", "c"), "d"), ("c",), {"a", "c"}),
        ((("a", "c"), "d"), ("a", "c", "d"), {"a", "c", "d"}),
        (("a", ("c", "d")), ("c", "d"), {"a", "c", "d"}),
    ],
)
def test_engines_check_at_the_lowest_exact_node_above(
    tree: Any, placed: tuple[str, ...] | None, node: set[str]
) -> None:
    plan = cep.TreePlan(tree, {} if placed is None else {"b": placed})
    planned = PlannedNodes(
        cep.parse(PATTERN.format("a.x < c.x")),
        plan.tree,
        positions=False,
        placements=plan.placements,
    )
    assert [{*n.variables} for n in planned.nodes if n.checks] == [node]


def test_fewer_rows_if_pushed_down() -> None:
    rows = [(kind, time) for time, kind in enumerate("ABCACBCDABCD")]
    events = pd.DataFrame(rows, columns=["type", "time"])
    stream = cep.EventStream.from_pandas(events, type="type", time="time")
    pattern = "PATTERN SEQ(A a, NOT(B b), C c, D d) WITHIN 20 units"
    tree = (("a", "c"), "d")
    low, high = (cep.TreePlan(tree, {"b": below}) for below in (("a", "c"), ("a", "c", "d")))
    for evaluator in ("tree", "tree-instances"):
        runs = [cep.evaluate(pattern, stream, plan, evaluator=evaluator) for plan in (low, high)]
        created = [run.metrics.partial_matches_created for run in runs]
        assert created[0] < created[1]
        assert runs[0].metrics.matches == runs[1].metrics.matches > 0
    # Nodes in post-order, then b.
    parents = [explained_nodes(cep.parse(pattern), plan)[-1].parent for plan in (low, high)]
    assert parents == [2, 4]
