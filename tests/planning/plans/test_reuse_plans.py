"""Plans of workloads that reuse matches: sources, order, how they are shown."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepbench as cep
from cepbench.errors import EvaluationError, PlanError
from cepbench.planning.plans.reuse import reuses

#: q2, q3 and q6 of Figure 1 of [liu2011], and one that goes on after the last item of q6.
QUERIES = {"q6": "GADT", "q2": "DT", "q3": "GAT", "q8": "GADTX"}
SCRATCH: dict[str, str | None] = dict.fromkeys(QUERIES)


def workload(queries: Mapping[str, str] = QUERIES, within: str = "48 hours") -> cep.Workload:
    """Queries by the letters of their types."""
    texts = {}
    for query, types in queries.items():
        items = ", ".join(f"{type} x{number}" for number, type in enumerate(types))
        texts[query] = f"PATTERN SEQ({items}) WHERE [id] WITHIN {within}"
    return cep.Workload(texts)


def plan(**sources: str | None) -> cep.WorkloadPlan:
    return cep.WorkloadPlan(workload(), sources=SCRATCH | sources)


def test_a_plan_by_hand() -> None:
    its = plan(q6="q3", q2="q6", q8="q6")
    assert its.order == ("q3", "q6", "q2", "q8")
    assert its.sources == {"q6": "q3", "q2": "q6", "q3": None, "q8": "q6"}
    assert its.embeddings == {"q6": (0, 1, 3), "q2": (2, 3), "q8": (0, 1, 2, 3)}
    assert [tuple(row[:-1]) for row in its.steps.itertuples(index=False)] == [
        ("q3", None, "scratch", ""),
        ("q6", "q3", "down", "pattern"),
        ("q2", "q6", "up", "pattern"),
        ("q8", "q6", "down", "pattern"),
    ]
    assert its.steps["cost"].isna().all()
    assert its.graph.equals(its.steps)
    assert its.describe().splitlines()[1:] == [
        "  q3: from scratch",
        "  q6: down from q3 (pattern)",
        "  q2: up from q6 (pattern)",
        "  q8: down from q6 (pattern)",
    ]
    assert its != plan(q6="q3", q2="q6") and hash(its) == hash(plan(q6="q3", q2="q6", q8="q6"))


def test_several_embeddings() -> None:
    queries = workload({"q1": "AB", "q2": "AAB"})
    sources = {"q1": None, "q2": "q1"}
    assert cep.WorkloadPlan(queries, sources=sources).embeddings == {"q2": (0, 2)}
    its = cep.WorkloadPlan(queries, sources=sources, embeddings={"q2": [1, 2]})
    assert its.reuse("q2").embedding == (1, 2) and its != cep.WorkloadPlan(queries, sources=sources)
    with pytest.raises(PlanError, match=r"'q2' is one of \(0, 2\), \(1, 2\), not \(0, 1\)"):
        cep.WorkloadPlan(queries, sources=sources, embeddings={"q2": [0, 1]})


def test_a_query_that_goes_on_is_reused_with_delays_only() -> None:
    """Of two embeddings the one that needs no wait is taken."""
    with pytest.raises(PlanError, match=r"'q6' would report matches late.* delays=True"):
        plan(q6="q8")
    its = cep.WorkloadPlan(workload(), sources=SCRATCH | {"q6": "q8"}, delays=True)
    assert its.reuse("q6").waits and not plan(q6="q3").reuse("q6").waits
    both = workload({"q1": "AB", "q2": "ABB"})
    assert cep.WorkloadPlan(both, sources={"q1": "q2", "q2": None}).embeddings == {"q1": (0, 2)}


def test_a_virtual_query_a_union_and_an_order() -> None:
    its = cep.WorkloadPlan(
        workload({"q1": "AB", "q2": "XAB", "q3": "AXYB"}),
        sources={"q1": ["q2", "v"], "q2": None, "q3": "v", "v": None},
        virtual={"v": "PATTERN SEQ(A a, X x, B b) WHERE [id] WITHIN 48 hours"},
        orders={"q3": ["x2"], "q1": ("x1", "x0")},
    )
    assert its.order == ("q2", "v", "q1", "q3") and [*its.workload.patterns] == ["q1", "q2", "q3"]
    assert [*its.computed.patterns] == ["q1", "q2", "q3", "v"] == [*its.sources]
    union = its.reuse("q1")
    assert (union.source, union.method, union.change) == (("q2", "v"), "union", "pattern")
    assert [(part.source, part.method, part.embedding) for part in union.parts] == [
        ("q2", "up", (1, 2)), ("v", "up", (0, 2)),
    ]  # fmt: skip
    assert its.embeddings == {"q1": ((1, 2), (0, 2)), "q3": (0, 1, 3)}
    assert its.describe().splitlines()[2:] == [
        "  v: from scratch, virtual: PATTERN SEQ(A a, X x, B b) WHERE [id] WITHIN 48 hours",
        "  q1: union from q2, v (pattern), joins x1, x0",
        "  q3: down from v (pattern), joins x2",
    ]
    assert cep.WorkloadPlan.from_dict(json.loads(json.dumps(its.to_dict()))) == its
    drawing = ET.fromstring(its._repr_html_())
    assert sum(e.tag.endswith("}path") for e in drawing.iter()) == 3
    (dashed,) = (e for e in drawing.iter() if e.get("stroke-dasharray"))
    boxes = [e for e in drawing.iter() if e.tag.endswith("}rect")]
    # The union is right of the deepest of its sources.
    assert len(boxes) == 4 and dashed in boxes
    assert its != cep.WorkloadPlan(
        its.workload, sources=its.sources, virtual=its.virtual, embeddings=its.embeddings
    )


def test_errors_of_virtual_queries_and_orders() -> None:
    queries = workload({"q1": "AB", "q2": "AXB"})
    alone = dict.fromkeys(("q1", "q2"))
    text = "PATTERN SEQ(A a, B b) WITHIN 48 hours"
    for options, message in (
        ({"sources": alone, "virtual": [text]}, "virtual is a mapping of names to patterns"),
        ({"sources": alone, "virtual": {"q1": text}}, "'q1' has the name of a query of the workload"),
        ({"sources": alone, "virtual": {"v": text}}, "sources leaves out v"),
        ({"sources": {**alone, "v": None}, "virtual": {"v": text}}, "'v' is the source of none"),
        ({"sources": {**alone, "v": None}, "virtual": {"v": "PATTERN"}}, "query 'v': "),
        ({"sources": alone, "orders": {"q1": ["x0", "x1"]}}, "'q1', which is computed from scratch, is its plan"),
        ({"sources": {**alone, "q2": "q1"}, "orders": {"q2": ["x0"]}}, "has each of its items x1 once"),
        ({"sources": {**alone, "q1": "q2"}, "orders": {"q1": ["x0"]}}, "has each of its items x0, x1 once.* computed up from q2"),
        ({"sources": alone, "orders": {"q3": []}}, "orders has a query 'q3'"),
        ({"virtual": {"v": text}}, "virtual and orders go with sources"),
    ):  # fmt: skip
        with pytest.raises(cep.CepbenchError, match=message):
            cep.WorkloadPlan(queries, **options)
    both = workload({"q1": "AB", "q2": "AXB", "q3": "AYB"})
    sources = {"q1": ("q2", "q3"), "q2": None, "q3": None}
    with pytest.raises(PlanError, match="is one for each of its 2 sources"):
        cep.WorkloadPlan(both, sources=sources, embeddings={"q1": [(0, 2)]})
    with pytest.raises(PlanError, match=r"into 'q3' is one of \(0, 2\), not \(0, 1\)"):
        cep.WorkloadPlan(both, sources=sources, embeddings={"q1": [(0, 2), (0, 1)]})


def test_equal_queries_are_computed_from_each_other_downwards() -> None:
    its = workload({"q1": "AB", "q2": "AB"})
    for source, query in (("q1", "q2"), ("q2", "q1")):
        (way,) = reuses(its, source, query)
        assert (way.method, way.change, way.waits) == ("down", "nothing", False)


def test_a_shorter_window_is_more_specific() -> None:
    texts = {q: f"PATTERN SEQ(A a, B b) WITHIN {s} s" for q, s in (("q1", 5), ("q2", 3))}
    found = [*reuses(cep.Workload(texts), "q1", "q2"), *reuses(cep.Workload(texts), "q2", "q1")]
    assert [(way.query, way.method) for way in found] == [("q2", "down"), ("q1", "up")]


MISTAKES = [
    ({"q6": "q3", "q3": "q6"}, "a circle: q6 from q3 from q6"),
    ({"q2": "q2"}, "a circle: q2 from q2"),
    ({"q2": "q3"}, "'q2' cannot be computed from 'q3': neither refines"),
    ({"q9": None}, "sources has a query 'q9' that the workload has not; it has q6, q2, q3, q8"),
    ({"q2": "q66"}, "sources has a query 'q66'.*did you mean 'q6'"),
    ({"q2": 3}, "the source of query 'q2' is a query, a tuple of several or None, not 3"),
    ({"q2": ("q6", 3)}, "is a query, a tuple of several or None, not"),
    ({"q2": ()}, "the source of query 'q2' is empty; from scratch it is None"),
    ({"q2": ("q6", "q6")}, "names a query twice"),
    ({"q2": ("q6", "q66")}, "sources has a query 'q66'.*did you mean 'q6'"),
    ({"q6": ("q2", "q3")}, "'q6' cannot be united from 'q2', which is not more specific"),
    ({"q2": ("q6", "q3")}, "'q2' cannot be computed from 'q3': neither refines"),
    ({"q2": ("q6", "q8"), "q6": "q2"}, "a circle: q6 from q2 from q6"),
]


@pytest.mark.parametrize(("sources", "message"), MISTAKES, ids=str)
def test_errors_of_sources(sources, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan(**sources)


def test_other_errors() -> None:
    its = workload()
    for options, message in (
        ({"sources": {"q6": None}}, "leaves out q2, q3, q8"),
        ({"sources": ["q6"]}, "sources is a mapping of queries, not a list"),
        ({"sources": SCRATCH, "cuts": {"q6": [1]}}, "leave one out"),
        ({"sources": SCRATCH, "shares_prefixes": True}, "leave one out"),
        ({"sources": SCRATCH, "embeddings": {"q6": [0, 1]}}, r"'q6' is one of \(\), not \(0, 1\)"),
        ({"sources": SCRATCH, "plans": {"q2": cep.OrderPlan(["a", "b"])}}, "query 'q2': "),
        ({"sources": SCRATCH, "plans": {"q2": "DP-B"}}, "query 'q2': plan must be an OrderPlan"),
        ({"sources": SCRATCH, "delays": 1}, "delays is True or False"),
        ({"delays": True}, "go with sources"),
    ):
        with pytest.raises(PlanError, match=message):
            cep.WorkloadPlan(its, **options)
    with pytest.raises(PlanError, match=r"for cep\.evaluate"):
        _ = plan().tables
    with pytest.raises(PlanError, match="made with sources"):
        _ = cep.WorkloadPlan(its).steps


def test_a_plan_of_matches_is_for_e_cube() -> None:
    its = cep.Workload({"q": "PATTERN SEQ(A a, B b) AGG COUNT WITHIN 5 s"})
    plan = cep.WorkloadPlan(its, sources={"q": None})
    assert cep.Aggregator(its, sharing=plan).method == "e-cube"
    assert not plan.computed.patterns["q"].aggregates
    with pytest.raises(EvaluationError, match="method e-cube, not a-seq"):
        cep.Aggregator(its, "a-seq", sharing=plan)


@given(st.data())
def test_plans_return_from_json_and_are_drawn(data: st.DataObject) -> None:
    types = st.lists(st.sampled_from("AB"), min_size=1, max_size=3)
    drawn = data.draw(st.lists(types, min_size=1, max_size=5))
    queries = workload({f"q{number}": "".join(its) for number, its in enumerate(drawn)})
    sources: dict[str, str | None] = {}
    for query in data.draw(st.permutations([*queries.patterns])):
        near = [s for s in sources if any(not way.waits for way in reuses(queries, s, query))]
        sources[query] = data.draw(st.sampled_from([None, *near]))
    plans = {"q0": cep.OrderPlan(reversed(queries.patterns["q0"].names))}
    its = cep.WorkloadPlan(queries, sources=sources, plans=plans)
    assert cep.WorkloadPlan.from_dict(json.loads(json.dumps(its.to_dict()))) == its
    place = {query: number for number, query in enumerate(its.order)}
    assert sorted(place) == sorted(queries.patterns)
    for query, source in sources.items():
        assert source is None or place[source] < place[query]
    drawing = ET.fromstring(its._repr_html_())
    boxes = {(e.get("x"), e.get("y")) for e in drawing.iter() if e.tag.endswith("}rect")}
    assert len(boxes) == len(queries.patterns)
    lines = [e for e in drawing.iter() if e.tag.endswith("}path")]
    assert len(lines) == sum(source is not None for source in sources.values())


def test_concepts_return_from_json() -> None:
    hierarchy = cep.ConceptHierarchy({"TX": ["D"], "OK": {"T": ["THospital"]}})
    patterns = {
        "q1": "PATTERN SEQ(TX a, OK b) WITHIN 2 hours",
        "q2": "PATTERN SEQ(D a, T b, T c) WITHIN 2 hours",
    }
    its = cep.WorkloadPlan(
        cep.Workload(patterns, hierarchy=hierarchy), sources={"q1": "q2", "q2": None}
    )
    assert its.reuse("q1").change == "both" and its.embeddings == {"q1": (0, 2)}
    assert cep.WorkloadPlan.from_dict(json.loads(json.dumps(its.to_dict()))) == its


def test_hostile_names_are_escaped() -> None:
    its = cep.Workload(dict.fromkeys(("<b>&", "<i>"), 'PATTERN SEQ("<u>" a) WITHIN 5 s'))
    drawn = cep.WorkloadPlan(its, sources={"<b>&": None, "<i>": "<b>&"})._repr_html_()
    text = "".join(ET.fromstring(drawn).itertext())
    assert "<b>&" in text and "<u>" in text and "<i>" in text
