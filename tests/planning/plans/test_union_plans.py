"""Plans of patterns with OR: one for each branch, their costs together, and how they are shown."""

from __future__ import annotations

import math
import pickle
import xml.etree.ElementTree as ET

import pytest

from cepbench.errors import PlanError, StatisticsError
from cepbench.patterns.model import Kind, Operator, Pattern, Structure, Variable, Window
from cepbench.planning.planners.generate import plan
from cepbench.planning.planners.registry import PLAN_GENERATORS
from cepbench.planning.plans.model import OrderPlan, TreePlan, UnionPlan
from cepbench.planning.statistics.model import Statistics
from tests.generators import UNIVERSAL

NAMES = "abcdefg"
STATISTICS = Statistics(
    cardinalities={name: 2.0 + 3 * i for i, name in enumerate(NAMES)},
    selectivities={("a", "b"): 0.25, ("c", "e"): 0.1, ("d", "d"): 0.5, ("f", "g"): 0.01},
)


def structure(operator: str, *items: str | Structure) -> Structure:
    made = [Variable(one, one.upper()) if isinstance(one, str) else one for one in items]
    return Structure(Operator(operator), tuple(made))


def pattern(whole: Structure) -> Pattern:
    return Pattern(whole, (), Window(10, "units"))


THREE = pattern(
    structure(
        "OR",
        structure("SEQ", "a", "b", "c"),
        structure("AND", "d", "e"),
        structure("SEQ", "f", "g"),
    )
)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 100.0])
@pytest.mark.parametrize("name", UNIVERSAL)
def test_each_branch_is_planned_by_itself(name, alpha) -> None:
    made = plan(THREE, STATISTICS, name, seed=5, alpha=alpha, last="e")
    assert isinstance(made, UnionPlan)
    alone = [
        plan(branch, STATISTICS, name, seed=5, alpha=alpha, last=last)
        for branch, last in zip(THREE.branches(), [None, "e", None], strict=True)
    ]
    assert made.parts == tuple(alone)
    assert made.kind == PLAN_GENERATORS[name].kind
    assert (made.generator, made.seed, made.alpha) == (name, 5, alpha)
    assert made.cost_model == alone[0].cost_model
    assert set(made.names) == set(NAMES)
    throughput = sum(math.exp(part.log_throughput) for part in alone)
    assert math.exp(made.log_throughput) == pytest.approx(throughput)
    if alpha:
        latency = max(math.exp(part.log_latency) for part in alone)
        assert math.exp(made.log_latency) == pytest.approx(latency)
        assert made.cost == pytest.approx(throughput + alpha * latency)
    else:
        assert made.log_latency is None
        assert made.cost == pytest.approx(throughput)


def test_nested_alternatives_become_one_plan_each() -> None:
    nested = pattern(structure("AND", "a", "b", structure("OR", "c", structure("SEQ", "d", "e"))))
    made = plan(nested, STATISTICS, "DP-LD")
    assert [set(part.names) for part in made.parts] == [set("abc"), set("abde")]
    assert made.names == tuple(dict.fromkeys([*made.parts[0].names, *made.parts[1].names]))


def test_a_single_branch_has_a_single_plan() -> None:
    one = plan(pattern(structure("SEQ", "a", "b")), STATISTICS, "DP-LD")
    assert isinstance(one, OrderPlan) and one.parts == (one,)
    twice = structure("OR", structure("SEQ", "a", "b"), structure("SEQ", "a", "b"))
    assert plan(pattern(twice), STATISTICS, "DP-LD") == one
    tree = TreePlan(("a", "b"))
    assert tree.parts == (tree,)


def test_last_is_asked_for_where_the_pattern_leaves_it_open() -> None:
    with pytest.raises(StatisticsError, match=r"OutputProfiler\(pattern\)"):
        plan(THREE, STATISTICS, alpha=1)
    by_branch = plan(THREE, STATISTICS, "DP-LD", alpha=1, last=[None, "d", None])
    assert by_branch == plan(THREE, STATISTICS, "DP-LD", alpha=1, last="d")
    assert by_branch != plan(THREE, STATISTICS, "DP-LD", alpha=1, last="e")
    assert plan(THREE, STATISTICS, "DP-LD", alpha=1, last=("c", "d", "g")) == by_branch
    with pytest.raises(StatisticsError, match=r"'z', but the pattern binds no such .* a, b, c"):
        plan(THREE, STATISTICS, last="z")
    with pytest.raises(StatisticsError, match=r"one for each|each of the pattern's 3 branches"):
        plan(THREE, STATISTICS, last=["c", "d"])
    with pytest.raises(StatisticsError, match=r"another event always follows it; .* that of c"):
        plan(THREE, STATISTICS, last="a")


def test_what_a_union_is_made_of() -> None:
    order, tree = OrderPlan(["a", "b"]), TreePlan("c")
    union = UnionPlan([order, OrderPlan(["b", "c"])])
    assert union.plans == union.parts == (order, OrderPlan(["b", "c"]))
    assert union.names == ("a", "b", "c")
    assert eval(repr(union)) == union
    assert pickle.loads(pickle.dumps(union)) == union and len({union, union}) == 1
    assert union.cost is union.log_cost is union.generator is union.seed is None
    assert union.describe().splitlines()[0] == "union of 2 order plans by hand"
    for wrong, message in (
        ([], "at least one"),
        ([order, tree], "of one kind"),
        ([order, "abc"], "not of 'abc'"),
        ([union, order], "not of a UnionPlan"),
        (3, "not 3"),
    ):
        with pytest.raises(PlanError, match=message):
            UnionPlan(wrong)


def test_costs_that_are_not_known_of_every_part_are_not_known() -> None:
    known, unknown = OrderPlan(["a"], log_cost=1.0), OrderPlan(["b"])
    assert UnionPlan([known, unknown]).cost is None
    assert UnionPlan([known, known]).log_cost == pytest.approx(1 + math.log(2))
    huge = OrderPlan(["a"], log_cost=2000.0)
    assert UnionPlan([huge, known]).cost == math.inf
    assert UnionPlan([huge, huge]).log_cost == pytest.approx(2000 + math.log(2))


@pytest.mark.parametrize("name", ["GREEDY", "DP-B"])
def test_a_union_is_shown_branch_by_branch(name) -> None:
    made = plan(THREE, STATISTICS, name)
    lines = made.describe().splitlines()
    assert lines[0].startswith(f"union of 3 {made.kind} plans by {name}, seed 0, estimated cost ")
    assert [line.strip() for line in lines if "branch" in line] == [f"branch {i}" for i in range(3)]
    for part in made.parts:
        for line in part.describe().splitlines()[1:]:
            assert f"  {line}" in lines
    root = ET.fromstring(made._repr_html_())
    drawings = [element for element in root.iter() if element.tag.endswith("}svg")]
    assert len(drawings) == 3
    assert [e.text.split(":")[0] for e in root.iter("figcaption")][1:] == [
        f"branch {i}" for i in range(3)
    ]
    hostile = UnionPlan([OrderPlan(["<b>"], generator="<script>")])
    assert "<script" not in hostile._repr_html_() and "<b>" not in hostile._repr_html_()


@pytest.mark.parametrize("name", UNIVERSAL)
def test_negated_variables_take_no_part_and_are_remarked(name) -> None:
    items = (
        Variable("a", "A"),
        Variable("n", "N", Kind.NEGATED),
        Variable("b", "B", Kind.KLEENE),
        Variable("c", "C"),
    )
    without = tuple(item for item in items if item.kind is not Kind.NEGATED)
    made, same = (
        plan(pattern(Structure(Operator.SEQ, some)), STATISTICS, name) for some in (items, without)
    )
    assert set(made.names) == set("abc")
    assert (made.names, made.log_cost, made.estimates) == (
        same.names,
        same.log_cost,
        same.estimates,
    )
    assert made.remarks == (
        "NOT(N n): negated, not a step of the plan",
        "KL(B b): sets of events",
    )
    assert made.describe().endswith("\n  ".join(["", *made.remarks]))
    assert "NOT(N n)" in made._repr_html_()
