"""Plans as data: what they accept, what they say, and how they are drawn."""

from __future__ import annotations

import itertools
import math
import pickle
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cepbench.errors import PlanError
from cepbench.planning.plans.drawing import tree_diagram
from cepbench.planning.plans.kinds import PLAN_KINDS, plan_from_json
from cepbench.planning.plans.model import OrderPlan, TreePlan, shown_log
from cepbench.planning.plans.tree import Either, leaves, post_order

HOSTILE = "<script>alert(\"1\")</script>&'x'"


def parsed(html: str) -> ET.Element:
    """The whole output as XML: an unescaped name would break it or add elements."""
    return ET.fromstring(html)


def texts(html: str) -> list[str]:
    return [element.text for element in parsed(html).iter() if element.tag.endswith("}text")]


def test_an_order_plan() -> None:
    plan = OrderPlan(["c", "a", "b"])
    assert plan.kind == "order"
    assert plan.order == ["c", "a", "b"] and plan.names == ("c", "a", "b")
    assert plan.tree == (("c", "a"), "b")
    assert plan.nodes() == [("c",), ("c", "a"), ("c", "a", "b")]
    assert str(plan) == repr(plan) == "OrderPlan(['c', 'a', 'b'])"
    assert eval(repr(plan)) == plan
    assert OrderPlan(["a"]).tree == "a"


def test_a_tree_plan() -> None:
    plan = TreePlan((("a", "c"), "b"))
    assert plan.kind == "tree"
    assert plan.tree == (("a", "c"), "b") and plan.names == ("a", "c", "b")
    assert plan.nodes() == [("a",), ("c",), ("a", "c"), ("b",), ("a", "c", "b")]
    assert str(plan) == repr(plan) == "TreePlan((('a', 'c'), 'b'))"
    assert eval(repr(plan)) == plan
    assert TreePlan([["a", "c"], "b"]) == plan
    assert TreePlan("a").nodes() == [("a",)]


def test_plans_made_by_hand_have_no_notes() -> None:
    for plan in (OrderPlan(["a", "b"]), TreePlan(("a", "b"))):
        assert plan.cost is plan.log_cost is plan.generator is plan.seed is plan.cost_model is None
        assert plan.estimates == ()
        assert plan.describe().splitlines()[0] == f"{plan.kind} plan by hand"


def test_plans_compare_hash_and_pickle_by_value_and_stay_as_they_are() -> None:
    for plan in (OrderPlan(["a", "b"], log_cost=1.0), TreePlan(("a", "b"), seed=3)):
        assert pickle.loads(pickle.dumps(plan)) == plan
        assert len({plan, pickle.loads(pickle.dumps(plan))}) == 1
        with pytest.raises(AttributeError):
            plan.seed = 4
    assert OrderPlan(["a", "b"]) != OrderPlan(["b", "a"])
    assert TreePlan(("a", "b")) != TreePlan(("b", "a"))
    order = OrderPlan(["a", "b"])
    order.order.append("c")
    assert order.order == ["a", "b"]


ITSELF: list[Any] = ["a"]
ITSELF.append(ITSELF)
PLACED = ("a", ("c", "d"))


def many(pairs: int) -> Any:
    tree: Any = Either("a0", "b0")
    for k in range(1, pairs):
        tree = (tree, Either(f"a{k}", f"b{k}"))
    return tree


@pytest.mark.parametrize(
    ("plan", "given", "message"),
    [
        (OrderPlan, ["abc"], "list of variable names"),
        (OrderPlan, [[]], "at least one variable"),
        (OrderPlan, [["a", "a"]], "'a' twice"),
        (OrderPlan, [["a", 1]], "1 is none"),
        (OrderPlan, [["a", None]], "None is none"),
        (OrderPlan, [["a", ""]], "'' is none"),
        (OrderPlan, [["a", ("b", "c")]], "is none"),
        (TreePlan, [()], r"\(\) is not a tree"),
        (TreePlan, [("a",)], "is not a tree"),
        (TreePlan, [("a", "b", "c")], "is not a tree"),
        (TreePlan, [(("a", "b"), ("c",))], r"\('c',\) is not a tree"),
        (TreePlan, [("a", 1)], "1 is not a tree"),
        (TreePlan, [None], "None is not a tree"),
        (TreePlan, [{"a", "b"}], "is not a tree"),
        (TreePlan, [("a", ("b", "a"))], "'a' twice"),
        (TreePlan, [("a", "")], "'' is none"),
        (TreePlan, [ITSELF], "too deep, or holds itself"),
        (TreePlan, [Either("a", "a")], "variable 'a' twice"),
        (TreePlan, [(Either("a", "b"), "c"), {"n": "c"}], "no node of"),
        (TreePlan, [(Either("a", "b"), "c"), {"n": ["c"]}], "write a UnionPlan"),
        (TreePlan, [Either("a", 3)], "is not a tree"),
        (TreePlan, [many(9)], "the tree has 512 alternatives"),
        (TreePlan, [PLACED, "b"], "placements is a mapping such as"),
        (TreePlan, [PLACED, {"b": 1}], "placements is a mapping such as"),
        (TreePlan, [PLACED, {"b": "c"}], "'b'. = 'c' is no node of"),
        (TreePlan, [PLACED, {"b": ("a", "c")}], "is no node of .a, .c, d"),
        (TreePlan, [PLACED, {"b": ("c", "c")}], "is no node of"),
        (TreePlan, [PLACED, {"b": ()}], "is no node of"),
        (TreePlan, [PLACED, {"a": ("c",)}], "'a', a leaf of the tree"),
        (TreePlan, [PLACED, {"": ("c",)}], "no variable's name"),
    ],
)
def test_what_is_no_plan(plan: Any, given: list[Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan(*given)


def test_estimates_fit_the_nodes() -> None:
    assert OrderPlan(["a", "b"], estimates=[1.0, 2.0]).estimates == (1.0, 2.0)
    with pytest.raises(PlanError, match="3 numbers for a plan of 2 nodes"):
        OrderPlan(["a", "b"], estimates=(1.0, 2.0, 3.0))
    with pytest.raises(PlanError, match="2 numbers for a plan of 3 nodes"):
        TreePlan(("a", "b"), estimates=(1.0, 2.0))


@pytest.mark.parametrize("plan", [OrderPlan(["a", "b"]), TreePlan(("a", "b"))])
def test_a_plan_is_checked_against_a_pattern(plan) -> None:
    plan.check(["b", "a"])
    with pytest.raises(PlanError, match="lacks variable 'c'; it has a, b"):
        plan.check(["a", "b", "c"])
    with pytest.raises(PlanError, match="variable 'b' that the pattern has not"):
        plan.check(["a"])


def test_describe_an_order() -> None:
    plan = OrderPlan(
        ["long", "a"],
        log_cost=math.log(12),
        cost_model="order-throughput",
        generator="GREEDY",
        seed=3,
        estimates=(math.log(10), math.log(2)),
    )
    assert plan.cost == pytest.approx(12)
    assert plan.describe() == (
        "order plan by GREEDY, seed 3, estimated cost 12 (order-throughput)\n"
        "   1. long  10\n"
        "   2. a     2"
    )


def test_describe_a_tree() -> None:
    sizes = {"a": 3, "c": 4, "ac": 6, "b": 5, "d": 7, "bd": 8, "acbd": 9}
    plan = TreePlan((("a", "c"), ("b", "d")), estimates=[math.log(s) for s in sizes.values()])
    lines = [line.rsplit(maxsplit=1) for line in plan.describe().splitlines()[1:]]
    assert lines == [
        ["  join a, c, b, d", "9"],
        ["    join a, c", "6"],
        ["      a", "3"],
        ["      c", "4"],
        ["    join b, d", "8"],
        ["      b", "5"],
        ["      d", "7"],
    ]
    assert TreePlan(("a", "b")).describe() == "tree plan by hand\n  join a, b\n    a\n    b"


@pytest.mark.parametrize(
    ("logarithm", "shown"),
    [(0.0, "1"), (math.log(1234.4), "1234"), (-2000.0, "10^-868.6"), (2000.0, "10^868.6")],
)
def test_numbers_of_any_size_are_shown(logarithm, shown) -> None:
    assert shown_log(logarithm) == shown


def test_a_cost_beyond_a_float_is_infinite_only_as_a_plain_number() -> None:
    plan = OrderPlan(["a"], log_cost=2000.0, cost_model="order-throughput")
    assert plan.cost == math.inf and plan.log_cost == 2000.0
    assert "10^868.6" in plan.describe()


def test_the_drawing_shows_every_variable_and_estimate_in_its_place() -> None:
    tree = TreePlan((("a", "c"), "b"), estimates=[math.log(s) for s in (3, 4, 6, 5, 9)])
    assert sorted(texts(tree._repr_html_())) == sorted(["a", "c", "b", "3", "4", "6", "5", "9"])
    tips = [e.text for e in parsed(tree._repr_html_()).iter() if e.tag.endswith("}title")]
    assert tips == ["plan tree", "a: 3", "c: 4", "6", "b: 5", "9"]
    # An order is drawn as the left-deep tree that it is, with the sizes of its prefixes.
    order = OrderPlan(["c", "a", "b"], estimates=[math.log(s) for s in (3, 6, 9)])
    tips = [e.text for e in parsed(order._repr_html_()).iter() if e.tag.endswith("}title")]
    assert [tip or "" for tip in tips] == ["plan tree", "c: 3", "a", "6", "b", "9"]


def test_parents_stand_above_the_middle_of_their_children() -> None:
    drawn = tree_diagram((("a", "b"), ("c", "d")), [[], [], ["six"], ["5", "five"], [], [], []])
    a, b, left, c, d, right, root = drawn.boxes
    assert [its.texts[0].text for its in (a, b, c, d)] == [*"abcd"]
    assert a.x < b.x < c.x < d.x and {its.y for its in (a, b, c, d)} == {0}
    assert left.x == (a.x + b.x) / 2 and right.x == (c.x + d.x) / 2
    assert root.x == (left.x + right.x) / 2 and root.y < left.y == right.y < 0
    assert [line.ends[1] for line in drawn.lines] == [
        its.at(0, 0) for its in (a, b, c, d, left, right)
    ]
    # Texts are on the side away from the line to the parent.
    assert [(text.text, text.anchor) for text in left.texts] == [("six", "end")]
    assert right.texts == () and [text.text for text in d.texts] == ["d"]
    assert [text.text for text in c.texts] == ["c", "5", "five"] and c.tip == "c: 5; five"


def test_texts_of_a_tree_are_apart() -> None:
    names = [f"variable_{number}" for number in range(6)]
    notes = [["123,456,789 expected", "456 measured"]] * 11
    boxes = tree_diagram(OrderPlan(names).tree, notes).boxes
    texts = [text.points for box in boxes for text in box.texts]
    assert len(texts) == 6 + 22
    for ((x1, y1), (x2, y2)), ((x3, y3), (x4, y4)) in itertools.combinations(texts, 2):
        assert x2 < x3 or x4 < x1 or y2 <= y3 or y4 <= y1


@pytest.mark.parametrize("name", [HOSTILE, "ä<b>", "]]>", "--><svg onload=x>", 'x" onclick="y'])
def test_hostile_names_are_only_text(name) -> None:
    for plan in (OrderPlan([name, "b"]), TreePlan((name, "b")), TreePlan(name)):
        shown = plan._repr_html_()
        assert "<script" not in shown and "<b>" not in shown and "<svg onload" not in shown
        allowed = {"figure", "figcaption", "svg", "title", "g", "line", "circle", "text"}
        for element in parsed(shown).iter():
            assert element.tag.rpartition("}")[2] in allowed
            assert not any(key.startswith("on") for key in element.keys())  # noqa: SIM118
        assert name in [e.text for e in parsed(shown).iter()]
    hostile = OrderPlan(["a"], generator=HOSTILE, log_cost=1.0, cost_model=HOSTILE)
    assert "<script" not in hostile._repr_html_()
    assert HOSTILE in "".join(parsed(hostile._repr_html_()).itertext())


def test_the_drawing_asks_nothing_of_the_page() -> None:
    shown = TreePlan((("a", "c"), "b"))._repr_html_()
    for word in ("href", "src", "<style", "url(", "@import", "id="):
        assert word not in shown
    assert shown.count("http") == shown.count('xmlns="http://www.w3.org/2000/svg"') == 1


def test_large_plans_are_still_drawn() -> None:
    names = [f"variable_number_{i}" for i in range(200)]
    for shown in (OrderPlan(names)._repr_html_(), OrderPlan(names).describe()):
        assert "variable_number_199"[:10] in shown
    svg = next(e for e in parsed(OrderPlan(names)._repr_html_()).iter() if e.tag.endswith("}svg"))
    assert float(svg.get("viewBox").split()[3]) < 800 * 4
    assert len(TreePlan(OrderPlan(names).tree).describe().splitlines()) == 400


trees = st.recursive(st.just(None), lambda below: st.tuples(below, below), max_leaves=12)


@given(trees)
def test_any_tree_lists_and_draws_its_nodes(shape) -> None:
    count = 0

    def name(node):
        nonlocal count
        if node is None:
            count += 1
            return f"x{count}"
        return (name(node[0]), name(node[1]))

    plan = TreePlan(name(shape))
    assert plan.names == tuple(f"x{i + 1}" for i in range(count)) == tuple(leaves(plan.tree))
    assert len(plan.nodes()) == 2 * count - 1 == len(list(post_order(plan.tree)))
    assert plan.nodes()[-1] == plan.names
    assert sorted(texts(plan._repr_html_())) == sorted(plan.names)
    assert len(plan.describe().splitlines()) == 2 * count


def test_kinds_of_plan_are_added_but_built_in_ones_not_replaced() -> None:
    class Mine(OrderPlan):
        pass

    mine = replace(PLAN_KINDS["order"], plan=Mine)
    with pytest.raises(PlanError, match="order is the name of a built-in kind of plan"):
        PLAN_KINDS.add(mine)
    with pytest.raises(PlanError, match="does not describe a plan"):
        plan_from_json({"kind": "mine", "shape": ["b", "a"]})
    with PLAN_KINDS.restored():
        PLAN_KINDS.add(replace(mine, name="mine"))
        assert plan_from_json({"kind": "mine", "shape": ["b", "a"]}) == Mine(["b", "a"])
        assert PLAN_KINDS.find("MINE").named([1, 0], ["a", "b"]) == Mine(["b", "a"])
    assert "mine" not in PLAN_KINDS
