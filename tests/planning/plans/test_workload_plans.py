"""Plans of workloads: cuts, what is equal, how they are shown."""

from __future__ import annotations

import copy
import json
import pickle
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import PlanError
from tests.engines.aggregation.cases import aggregate_cases, methods_for
from tests.engines.detection.strategies import Case

#: Example 6 of [qi2014].
EXAMPLE = cep.Workload.parse(
    """
Q1 = SEQ(VKindle, BKindle, VCase, BCase)
Q2 = SEQ(VKindle, BKindle, VKindleFire)
Q3 = SEQ(VKindle, BKindle, VCase, BCase, VeBook, BeBook)
Q4 = SEQ(VKindle, BKindle, VCase, BCase, VLight, BLight)
Q5 = SEQ(ViPad, VKindleFire, VKindle, BKindle)
""",
    aggregate="COUNT",
    within="1 hour",
    dialect="a-seq",
)


def workload(**patterns: str) -> cep.Workload:
    return cep.Workload(
        {name: f"PATTERN {text} AGG COUNT WITHIN 5 s" for name, text in patterns.items()}
    )


def tails(one: str, other: str) -> tuple[object, object]:
    """The last segments of two queries that are cut after their first items, as they are compared."""
    plan = cep.WorkloadPlan(workload(Q1=one, Q2=other), {"Q1": [1], "Q2": [1]})
    first, second = (plan.segments(query)[-1] for query in ("Q1", "Q2"))
    assert (len(plan.tables) == 3) == (first.signature == second.signature)
    return first.signature, second.signature


def test_a_plan_by_hand() -> None:
    plan = cep.WorkloadPlan(EXAMPLE, {"Q3": [2, 4], "Q5": (2,)})
    assert plan.cuts == {"Q1": (), "Q2": (), "Q3": (2, 4), "Q4": (), "Q5": (2,)}
    assert plan.planner is plan.cost is None and not plan.shares_prefixes
    assert [its.names for its in plan.segments("Q3")] == [
        ("VKindle", "BKindle"), ("VCase", "BCase"), ("VeBook", "BeBook")
    ]  # fmt: skip
    # First segments are not shared without prefixes, nor with those behind a cut.
    assert all(len(table.segments) == 1 for table in plan.tables)
    assert plan == cep.WorkloadPlan(EXAMPLE, {"Q5": [2], "Q3": [2, 4]}, planner="X", cost=3.0)
    assert plan != cep.WorkloadPlan(EXAMPLE, {"Q5": [2], "Q3": [2, 4]}, True)
    assert plan != cep.WorkloadPlan(EXAMPLE, {"Q5": [2]})
    assert hash(plan) == hash(cep.WorkloadPlan.from_dict(plan.to_dict()))


def test_the_prefix_tree_of_figure_9() -> None:
    plan = cep.WorkloadPlan(EXAMPLE, {"Q5": (2,)}, shares_prefixes=True)
    tree, other = plan.tables
    assert [str(its) for its in other.segments] == ["ViPad, VKindleFire"]
    columns = {", ".join(map(str, c)): [u.query for u in tree.users(c)] for c in tree.columns}
    assert columns == {
        "VKindle": ["Q1", "Q2", "Q3", "Q4", "Q5"],
        "VKindle, BKindle": ["Q1", "Q2", "Q3", "Q4", "Q5"],
        "VKindle, BKindle, VCase": ["Q1", "Q3", "Q4"],
        "VKindle, BKindle, VCase, BCase": ["Q1", "Q3", "Q4"],
        "VKindle, BKindle, VKindleFire": ["Q2"],
        "VKindle, BKindle, VCase, BCase, VeBook": ["Q3"],
        "VKindle, BKindle, VCase, BCase, VeBook, BeBook": ["Q3"],
        "VKindle, BKindle, VCase, BCase, VLight": ["Q4"],
        "VKindle, BKindle, VCase, BCase, VLight, BLight": ["Q4"],
    }
    assert plan.describe().splitlines()[-2:] == [
        "  shared: VKindle, BKindle by Q1, Q2, Q3, Q4, Q5",
        "  shared: VKindle, BKindle, VCase, BCase by Q1, Q3, Q4",
    ]


EQUAL = {
    "names": ("SEQ(A a, B b, C c)", "SEQ(D d, B x, C y)"),
    "conditions": (
        "SEQ(A a, B b, C c) WHERE c.x > 3 AND b.y < 2 AND a.x = 1",
        "SEQ(D d, B x, C y) WHERE 2 > x.y AND y.x > 3",
    ),
    "alternatives": (
        "SEQ(A a, B b, C c) WHERE (c.x > 3 OR c.y < 2)",
        "SEQ(D d, B x, C y) WHERE (y.y < 2 OR 3 < y.x)",
    ),
    "negation": (
        "SEQ(A a, B b, NOT(N n), C c) WHERE n.x > 2",
        "SEQ(D d, B x, NOT(N z), C y) WHERE 2 < z.x",
    ),
    "negation at the cut": ("SEQ(A a, NOT(N n), B b, C c)", "SEQ(D d, B x, C y)"),
    "Kleene": ("SEQ(A a, B b, KL(C c)) WHERE c.x > 1", "SEQ(D d, B x, KL(C y)) WHERE y.x > 1"),
    "partitions": ("SEQ(A a, B b, C c) WHERE [k, m]", "SEQ(D d, B x, C y) WHERE [m, k]"),
}  # fmt: skip

DIFFERENT = {
    "types": ("SEQ(A a, B b, C c)", "SEQ(D d, B b, D c)"),
    "conditions": ("SEQ(A a, B b, C c) WHERE c.x > 3", "SEQ(D d, B b, C c) WHERE c.x >= 3"),
    "items": ("SEQ(A a, B b, B c) WHERE b.x > 3", "SEQ(D d, B b, B c) WHERE c.x > 3"),
    "negation": ("SEQ(A a, B b, NOT(N n), C c)", "SEQ(D d, B b, C c)"),
    "of the negation": (
        "SEQ(A a, B b, NOT(N n), C c)",
        "SEQ(D d, B b, NOT(N n), C c) WHERE n.x > 2",
    ),
    "Kleene": ("SEQ(A a, B b, KL(C c))", "SEQ(D d, B b, C c)"),
    "Kleene elements": (
        "SEQ(A a, B b, KL(C c)) WHERE c[1].x > 3",
        "SEQ(D d, B b, KL(C c)) WHERE c[2..].x > 3",
    ),
    "partitions": ("SEQ(A a, B b, C c) WHERE [k]", "SEQ(D d, B b, C c)"),
    "texts and numbers": (
        "SEQ(A a, B b, C c) WHERE c.x = 3",
        "SEQ(D d, B b, C c) WHERE c.x = '3'",
    ),
}


@pytest.mark.parametrize("what", EQUAL)
def test_equal_segments(what: str) -> None:
    one, other = tails(*EQUAL[what])
    assert one == other and hash(one) == hash(other)


@pytest.mark.parametrize("what", DIFFERENT)
def test_different_segments(what: str) -> None:
    one, other = tails(*DIFFERENT[what])
    assert one != other


def test_group_by_is_a_partition() -> None:
    texts = [
        "PATTERN SEQ(A a, B b) GROUP BY k AGG COUNT WITHIN 5 s",
        "PATTERN SEQ(A a, B b) WHERE [k] AGG COUNT WITHIN 9 s",
    ]
    plan = cep.WorkloadPlan(cep.Workload(dict(zip("PQ", texts, strict=True))), {}, True)
    assert [len(table.segments) for table in plan.tables] == [2]


def test_columns_with_and_without_a_negation_are_apart() -> None:
    """``(A, B)`` and ``(A, B, !N)`` [qi2014], section 3.3; their rows are the same."""
    plan = cep.WorkloadPlan(
        workload(Q1="SEQ(A a, B b, NOT(N n), C c)", Q2="SEQ(A a, B b)"), {}, True
    )
    (table,) = plan.tables
    assert [str(column[-1]) for column in table.columns] == ["A", "B !N", "C", "B"]


ALONE = {
    "OR": "OR(SEQ(A a, B b), SEQ(A a, C c))",
    "AND": "SEQ(A a, AND(B b, C c))",
    "STRATEGY consuming": "SEQ(A a, B b) STRATEGY consuming",
    "OUTPUT non_overlap": "SEQ(A a, B b) OUTPUT non_overlap",
    "the group GROUP(B b, +)": "SEQ(A a, GROUP(B b, +), C c)",
    "GROUP BY a.k, of one item": "SEQ(A a, B b) GROUP BY a.k",
    "[k] of a single item": "SEQ(A a) WHERE [k]",
    "NOT(N n) at an end": "SEQ(NOT(N n), A a, B b)",
    "the condition a.x < b.x": "SEQ(A a, B b) WHERE a.x < b.x",
    "the condition n.x < c.x": "SEQ(A a, NOT(N n), C c) WHERE n.x < c.x",
    "the condition b.x > b[i-1].x": "SEQ(A a, KL(B b)) WHERE b[i].x > b[i-1].x",
    "the condition b[last].x > 3": "SEQ(A a, KL(B b)) WHERE b[last].x > 3",
    "the condition sum(b[].x) > 3": "SEQ(A a, KL(B b)) WHERE sum(b[].x) > 3",
}


@pytest.mark.parametrize("construct", ALONE)
def test_what_is_not_counted_by_segments_runs_alone(construct: str) -> None:
    its = workload(Q1=ALONE[construct], Q2="SEQ(A a, B b)")
    plan = cep.WorkloadPlan(its, {}, True)
    assert plan.segments("Q1") == () and len(plan.tables) == 1
    assert "Q1: runs alone" in plan.describe() and "Q1 alone" in plan._repr_html_()
    if len(its.patterns["Q1"].positive) > 1:
        with pytest.raises(PlanError) as caught:
            cep.WorkloadPlan(its, {"Q1": [1]})
        # The index of an element is written where it matters.
        said = str(caught.value).replace("[i].", ".")
        assert said == f"query 'Q1' has {construct}, and is not counted by segments"


@given(aggregate_cases())
def test_what_is_counted_by_segments_needs_no_first_events(case: Case) -> None:
    plan = cep.WorkloadPlan(cep.Workload({"Q": case.pattern}), {}, True)
    assert bool(plan.segments("Q")) == ("window-product" in methods_for(case.pattern, "window"))


MISTAKES = [
    ({"Q9": [1]}, "query 'Q9' that the workload has not; it has Q1, Q2, Q3, Q4, Q5"),
    ({"Q1": [0]}, "'Q1' are numbers of positive items, from 1 to 3, not 0: it has 4"),
    ({"Q1": [4]}, "from 1 to 3, not 4"),
    ({"Q3": [3, 3]}, r"ascending order, without repetition, not \[3, 3\]"),
    ({"Q3": [4, 2]}, "ascending order"),
    ({"Q1": 2}, r"must be a list such as \(3, 5\), not 2"),
    ({"Q1": [1.5]}, "each of the cuts of query 'Q1'"),
    ({"Q1": "12"}, "must be a list"),
    ([1], "cuts is a mapping of queries"),
]


@pytest.mark.parametrize(("cuts", "message"), MISTAKES, ids=str)
def test_errors_of_cuts(cuts, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        cep.WorkloadPlan(EXAMPLE, cuts)


def test_other_errors() -> None:
    with pytest.raises(PlanError, match=r"a cep\.Workload, not a dict"):
        cep.WorkloadPlan({"Q1": "PATTERN SEQ(A a)"})
    with pytest.raises(PlanError, match="shares_prefixes"):
        cep.WorkloadPlan(EXAMPLE, {}, "yes")
    for data in ({}, {"workload": {"Q1": "PATTERN SEQ(A a) WITHIN 5 s"}}, []):
        with pytest.raises(PlanError, match="not a result of"):
            cep.WorkloadPlan.from_dict(data)


@given(st.data())
def test_plans_return_from_json_and_are_drawn(data: st.DataObject) -> None:
    cuts = {
        query: sorted(data.draw(st.sets(st.integers(1, len(pattern.positive) - 1))))
        for query, pattern in EXAMPLE.patterns.items()
    }
    plan = cep.WorkloadPlan(EXAMPLE, cuts, data.draw(st.booleans()))
    assert cep.WorkloadPlan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    for query, pattern in EXAMPLE.patterns.items():
        names = [name for its in plan.segments(query) for name in its.names]
        assert tuple(names) == pattern.positive_names
    listed = [its for table in plan.tables for its in table.segments]
    assert sorted(map(str, listed)) == sorted(str(s) for q in cuts for s in plan.segments(q))
    drawing = ET.fromstring(plan._repr_html_())
    boxes = [e for e in drawing.iter() if e.tag.endswith("}rect")]
    assert len(boxes) == sum(len(table.columns) for table in plan.tables)
    ends = [e.text for e in drawing.iter() if e.get("font-weight") == "600"]
    assert sorted(q for text in ends for q in text.split(", ")) == sorted(EXAMPLE.patterns)


def test_hostile_names_are_escaped() -> None:
    its = cep.Workload({"<b>&": 'PATTERN SEQ("<i>" a, B b) AGG COUNT WITHIN 5 s'})
    plan = cep.WorkloadPlan(its, {"<b>&": [1]}, planner="<u>", cost=2.5)
    text = "".join(ET.fromstring(plan._repr_html_()).itertext())
    assert "<b>&" in text and "<i>" in text and "by <u>, estimated cost 2.5" in text


def test_workloads_and_their_plans_are_pickled_and_copied() -> None:
    hierarchy = cep.ConceptHierarchy({"X": ["A", "B"]})
    workload = cep.Workload(
        {"q": "PATTERN SEQ(A a, X x) WITHIN 9 units", "r": "PATTERN SEQ(A a, B b) WITHIN 9 units"},
        hierarchy=hierarchy,
    )
    counts = cep.Workload({"q": "PATTERN SEQ(A a, B b, C c) AGG COUNT WITHIN 9 units"})
    plan = cep.WorkloadPlan(
        workload, sources={"q": None, "r": "q"}, plans={"q": cep.OrderPlan(["a", "x"])}
    )
    for made in (workload, counts, plan, cep.WorkloadPlan(counts, {"q": (1,)})):
        _ = getattr(made, "refinements", None)  # cached
        for again in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
            assert again == made
            assert str(again) == str(made)
            assert hash(again) == hash(made)
